/* DeepSeek-V4's config.json (deepseek-v4.md 2). */
#include "models/deepseek_v4_internal.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the layers (2.2) ---- */

static const char *const attention_names[] = {"sliding_attention",
                                              "compressed_sparse_attention",
                                              "heavily_compressed_attention"};
static const char *const ffn_names[] = {"moe", "hash_moe"};

/* The list under a key into out[layers], each the index of a name. */
static int read_names(const struct section *s, const char *key,
                      const char *const *names, int count, int64_t layers,
                      int *out, struct err *err)
{
    const json_t *list = config_value(s, key);

    if ((int64_t)json_array_size(list) < layers)
        return config_refuse(s, key, err, "names fewer layers than %lld",
                             (long long)layers);
    for (int64_t i = 0; i < layers; i++) {
        const char *name = json_string_value(json_array_get(list, (size_t)i));

        out[i] = -1;
        for (int k = 0; k < count && name; k++)
            if (strcmp(name, names[k]) == 0)
                out[i] = k;
        if (out[i] < 0)
            return config_refuse(s, key, err,
                                 "has '%.40s' for layer %lld: not supported",
                                 name ? name : "no name", (long long)i);
    }
    return 0;
}

/* compress_ratios choose the class alone: the rate is compress_rates'. */
static int read_ratios(const struct section *s, int64_t layers, int *out,
                       struct err *err)
{
    static const char key[] = "compress_ratios";
    const json_t *list = config_value(s, key);

    if ((int64_t)json_array_size(list) < layers)
        return config_refuse(s, key, err, "names fewer layers than %lld",
                             (long long)layers);
    for (int64_t i = 0; i < layers; i++) {
        const json_t *item = json_array_get(list, (size_t)i);
        json_int_t ratio =
            json_is_integer(item) ? json_integer_value(item) : -1;

        if (ratio != 0 && ratio != 4 && ratio != 128)
            return config_refuse(s, key, err,
                                 "has %lld for layer %lld, not 0, 4 or 128",
                                 (long long)ratio, (long long)i);
        out[i] = ratio == 0 ? SLIDING : ratio == 4 ? CSA : HCA;
    }
    return 0;
}

static int read_attention(const struct section *s, int64_t layers, int *out,
                          struct err *err)
{
    static const char *const superseded[] = {"compress_ratios", NULL};

    if (config_has(s, "layer_types")) {
        config_ignore(s, superseded);
        return read_names(s, "layer_types", attention_names, 3, layers, out,
                          err);
    }
    if (config_has(s, "compress_ratios"))
        return read_ratios(s, layers, out, err);
    for (int64_t i = 0; i < layers; i++)
        out[i] = i < 2 || i % 2 == 0 ? HCA : CSA;
    return 0;
}

static int read_ffn(const struct section *s, int64_t layers, int *out,
                    struct err *err)
{
    int64_t hashed;

    if (config_amount(s, "num_hash_layers", 3, &hashed, err))
        return -1;
    if (config_has(s, "mlp_layer_types"))
        return read_names(s, "mlp_layer_types", ffn_names, 2, layers, out, err);
    for (int64_t i = 0; i < layers; i++)
        out[i] = i < hashed;
    return 0;
}

static int read_layers(struct deepseek *m, const struct section *s,
                       struct err *err)
{
    int64_t n = m->decoder.layers;
    int *of = xcalloc((size_t)n, sizeof(*of)), ret;

    m->attention = xcalloc((size_t)n, sizeof(*m->attention));
    m->is_hash = xcalloc((size_t)n, sizeof(*m->is_hash));
    ret = read_attention(s, n, of, err);
    for (int64_t i = 0; i < n && ret == 0; i++)
        m->attention[i] = (enum attention)of[i];
    if (ret == 0)
        ret = read_ffn(s, n, of, err);
    for (int64_t i = 0; i < n && ret == 0; i++)
        m->is_hash[i] = of[i] != 0;
    free(of);
    return ret;
}

static int read_rates(struct deepseek *m, const struct section *s,
                      struct err *err)
{
    const struct section *rates;

    m->rates[CSA] = 4;
    m->rates[HCA] = 128;
    if (config_section(s, "compress_rates", &rates, err))
        return -1;
    for (int k = CSA; k <= HCA && rates; k++)
        if (config_count(rates, attention_names[k], m->rates[k], &m->rates[k],
                         err))
            return -1;
    return config_count(s, "compress_rate_csa", m->rates[CSA], &m->rates[CSA],
                        err) ||
                   config_count(s, "compress_rate_hca", m->rates[HCA],
                                &m->rates[HCA], err)
               ? -1
               : 0;
}

/* ---- rotary embeddings (2.3, 2.4) ---- */

/* rope_parameters {main: {...}, compress: {...}}; what else is in it is not
 * used. */
static int read_nested(struct deepseek *m, const struct section *s,
                       const struct section *both, double positions,
                       struct err *err)
{
    static const char *const superseded[] = {
        "rope_theta", "compress_rope_theta", "rope_scaling", NULL};
    const struct section *main, *compress;
    json_t *all = (json_t *)config_value(s, "rope_parameters"), *value;
    const char *key;

    json_object_foreach(all, key, value)
    {
        const char *const other[] = {key, NULL};

        if (strcmp(key, "main") != 0 && strcmp(key, "compress") != 0)
            config_ignore(both, other);
    }
    config_ignore(s, superseded);
    if (config_section(both, "main", &main, err) ||
        config_section(both, "compress", &compress, err))
        return -1;
    if (!main || !compress)
        return config_refuse(s, "rope_parameters", err,
                             "has only one of 'main' and 'compress'");
    return rotary_read_object(&m->main, main, 10000, positions, err) ||
                   rotary_read_object(&m->compress, compress, 160000, positions,
                                      err)
               ? -1
               : 0;
}

/* One object for both: `main` takes its theta alone. */
static int read_flat(struct deepseek *m, const struct section *s,
                     const struct section *inner, double positions,
                     struct err *err)
{
    const struct section *old;

    if (rotary_read(&m->compress, s, 10000, positions, err) ||
        config_section(s, "rope_scaling", &old, err))
        return -1;
    m->main = (struct rotary){.type = ROTARY_DEFAULT,
                              .theta = m->compress.theta,
                              .partial = m->compress.partial,
                              .attention_factor = 1};
    inner = old ? old : inner;
    if (!inner || !config_has(inner, "attention_factor"))
        m->compress.attention_factor = 1;
    if (config_real(s, "compress_rope_theta", 160000, &m->compress.theta, err))
        return -1;
    if (!(m->compress.theta > 1) || !(m->compress.theta < 1e18))
        return config_refuse(s, "compress_rope_theta", err, "is out of range");
    return 0;
}

static int read_dims(struct deepseek *m, struct rotary *r,
                     const struct section *s, double partial, struct err *err)
{
    double dims = (double)m->dim * (isnan(r->partial) ? partial : r->partial);

    if (r->type != ROTARY_DEFAULT && r->type != ROTARY_YARN)
        return config_refuse(s, "rope_parameters", err,
                             "is neither 'default' nor 'yarn': not supported");
    if (!(dims >= 2) || !(dims <= (double)m->dim) || (int64_t)dims % 2)
        return config_refuse(s, "qk_rope_head_dim", err,
                             "or the partial factor gives %g columns of %lld",
                             dims, (long long)m->dim);
    r->dims = (int64_t)dims;
    r->is_truncated = true; /* upstream looks for the key in another place */
    return 0;
}

static int read_rotary(struct deepseek *m, const struct section *s,
                       struct err *err)
{
    const struct section *inner;
    double positions, partial;
    int64_t dims;

    if (config_real(s, "max_position_embeddings", 1048576, &positions, err) ||
        config_section(s, "rope_parameters", &inner, err) ||
        config_amount(s, "qk_rope_head_dim", 0, &dims, err) ||
        config_real(s, "partial_rotary_factor",
                    dims ? (double)dims / (double)m->dim : 0.125, &partial,
                    err))
        return -1;
    bool is_nested =
        inner && (config_has(inner, "main") || config_has(inner, "compress"));
    if (is_nested ? read_nested(m, s, inner, positions, err)
                  : read_flat(m, s, inner, positions, err))
        return -1;
    return read_dims(m, &m->main, s, partial, err) ||
                   read_dims(m, &m->compress, s, partial, err)
               ? -1
               : 0;
}

/* ---- the rest (2.1) ---- */

static int read_experts(struct deepseek *m, const struct section *s,
                        struct err *err)
{
    static const char *const names[] = {"sqrtsoftplus", "sigmoid", "softmax"};
    struct routing *r = &m->decoder.routing;
    const char *scoring;
    int64_t shared;
    int which = -1;

    if (config_count(s, "moe_intermediate_size|intermediate_size", 2048,
                     &m->decoder.experts.width, err) ||
        config_count(s, "n_routed_experts|num_local_experts", 256,
                     &m->decoder.experts.count, err) ||
        config_amount(s, "n_shared_experts", 1, &shared, err) ||
        config_count(s, "num_experts_per_tok", 6, &r->chosen, err) ||
        config_text(s, "scoring_func", names[0], &scoring, err) ||
        config_real(s, "routed_scaling_factor", 1.5, &r->scale, err) ||
        config_real(s, "swiglu_limit", 10, &m->limit, err))
        return -1;
    for (int i = 0; i < 3; i++)
        if (strcmp(scoring, names[i]) == 0)
            which = i;
    if (which < 0)
        return config_refuse(s, "scoring_func", err,
                             "is '%.40s': not supported", scoring);
    m->scoring = (enum scoring)which;
    if (shared != 1)
        return config_refuse(s, "n_shared_experts", err,
                             "is not 1: not supported");
    if (r->chosen > m->decoder.experts.count)
        return config_refuse(s, "num_experts_per_tok", err,
                             "is more than the experts");
    r->groups = r->groups_kept = 1;
    r->is_normalised = true;
    r->eps = 1e-20;
    return 0;
}

int deepseek_read(struct decoder *d, struct err *err)
{
    static const char *const unused[] = {"expert_dtype",
                                         "norm_topk_prob",
                                         "num_nextn_predict_layers",
                                         "output_router_logits",
                                         "quantization_config",
                                         "router_aux_loss_coef",
                                         "router_jitter_noise",
                                         "router_z_loss_coef",
                                         "topk_method",
                                         NULL};
    struct deepseek *m = (struct deepseek *)d;
    const struct section *s = config_root(d->config);
    int64_t kv_heads;

    if (config_count(s, "vocab_size", 129280, &d->vocab, err) ||
        config_count(s, "hidden_size", 4096, &d->hidden, err) ||
        config_count(s, "num_hidden_layers", 43, &d->layers, err) ||
        config_count(s, "num_attention_heads", 64, &m->heads, err) ||
        config_count(s, "num_key_value_heads", 1, &kv_heads, err) ||
        config_count(s, "head_dim", 512, &m->dim, err) ||
        config_count(s, "q_lora_rank", 1024, &m->q_rank, err) ||
        config_count(s, "o_groups", 8, &m->groups, err) ||
        config_count(s, "o_lora_rank", 1024, &m->group_rank, err) ||
        config_count(s, "sliding_window", 128, &m->window, err) ||
        config_count(s, "index_n_heads", 64, &m->index_heads, err) ||
        config_count(s, "index_head_dim", 128, &m->index_dim, err) ||
        config_count(s, "index_topk", 512, &m->index_most, err) ||
        config_real(s, "rms_norm_eps", 1e-6, &m->decoder.eps, err) ||
        config_flag(s, "tie_word_embeddings", false, &d->is_tied, err) ||
        config_expect_text(s, "hidden_act", "silu", err) ||
        config_expect_flag(s, "attention_bias", false, err) ||
        config_expect_flag(s, "mlp_bias", false, err) ||
        hyper_read(&m->hyper, s, d->hidden, m->decoder.eps, err) ||
        read_experts(m, s, err) || read_layers(m, s, err) ||
        read_rates(m, s, err) || read_rotary(m, s, err))
        return -1;
    if (kv_heads != 1)
        return config_refuse(s, "num_key_value_heads", err,
                             "is not 1: not supported");
    if (m->heads % m->groups)
        return config_refuse(s, "o_groups", err, "does not divide the heads");
    if (m->index_dim < m->compress.dims)
        return config_refuse(s, "index_head_dim", err,
                             "is less than the %lld columns rotated",
                             (long long)m->compress.dims);
    config_ignore_common(s);
    config_ignore(s, unused);
    d->width = m->hyper.streams * d->hidden;
    d->router = ROUTER_ROUNDED;
    d->shared_width = d->experts.width;
    d->experts.unit = deepseek_swiglu;
    d->experts.ctx = &m->limit;
    return config_finish(d->config, err);
}

void deepseek_release(struct decoder *d)
{
    struct deepseek *m = (struct deepseek *)d;

    free(m->attention);
    free(m->is_hash);
}
