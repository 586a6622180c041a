/*
 * DeepSeek-V4 (deepseek-v4.md), a residual of N streams:
 *
 *     u = collapse(X); X = mix(attention(norm(u)), X)     hyper-connections
 *     u = collapse(X); X = mix(moe(norm(u)), X)
 *     states = norm(head(X))
 *
 * Keys and values are one head of D columns.  A sliding layer sees a window of
 * them; the others also see entries compressed from windows of m tokens: HCA
 * all that have ended, CSA those that an indexer picks.
 */
#include "models/deepseek_v4.h"

#include "base/mem.h"
#include "kernels/elementary.h"
#include "kernels/round.h"
#include "kernels/softmax.h"
#include "models/compressed_ops.h"
#include "models/decoder.h"
#include "models/eager_ops.h"
#include "models/hyper.h"
#include "models/hyper_layer.h"
#include "models/moe.h"
#include "models/rotary.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum attention { SLIDING, CSA, HCA };
enum scoring { SQRTSOFTPLUS, SIGMOID, SOFTMAX };

struct deepseek {
    struct decoder decoder;
    struct hyper hyper;
    int64_t heads, dim, q_rank; /* NH, D, Rq */
    int64_t groups, group_rank; /* of the output: G, Ro */
    int64_t window, rates[3];   /* by enum attention */
    int64_t index_heads, index_dim, index_most;
    double limit; /* of the experts' gate and up */
    enum scoring scoring;
    struct rotary main, compress;
    enum attention *attention; /* of every layer */
    bool *is_hash;             /* are its experts given by the token's id? */
    struct hyper_weights head;
};

struct layer {
    struct decoder_weights common;
    struct hyper_weights attention_hyper, ffn_hyper;
    struct param q_norm, kv_norm, sinks;
    struct dense_weight q_a, q_b, kv, o_a, o_b;
    struct compressor compressor, indexer; /* of CSA and HCA, of CSA */
    struct dense_weight index_q, index_weights;
    const int64_t *experts_of_id; /* [vocab, chosen] */
};

static const struct deepseek *deepseek_of(const struct decoder *d)
{
    return (const struct deepseek *)d;
}

static void release(struct decoder *d)
{
    struct deepseek *m = (struct deepseek *)d;

    free(m->attention);
    free(m->is_hash);
}

static struct act clamped_swiglu(struct ops *o, const struct act *gate,
                                 const struct act *up, const void *ctx);

/* ---- config.json: the layers (2.2) ---- */

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

/* ---- config.json: rotary embeddings (2.3, 2.4) ---- */

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

/* ---- config.json: the rest (2.1) ---- */

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

static int read_config(struct decoder *d, struct err *err)
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
    d->experts.unit = clamped_swiglu;
    d->experts.ctx = &m->limit;
    return config_finish(d->config, err);
}

/* ---- tensors (3) ---- */

/* From the published names, and those that save_pretrained() mixes, to the
 * names in memory. */
static const struct rename renames[] = {
    {".scale$", ".weight_scale_inv"},
    {"_hc.weight_scale_inv$", "_hc.scale"},
    {"^layers.", "model.layers."},
    {"^embed.", "model.embed_tokens."},
    {"^embed_tokens.", "model.embed_tokens."},
    {"^model.embed.", "model.embed_tokens."},
    {"^norm.", "model.norm."},
    {"^hc_head", "model.hc_head"},
    {"^head.", "lm_head."},
    {"^model.head.", "lm_head."},
    {"model.hc_head_", "model.hc_head."},
    {"model.hc_head.hc_", "model.hc_head."},
    {".hc_attn_", ".attn_hc."},
    {".hc_ffn_", ".ffn_hc."},
    {".attn_norm.", ".input_layernorm."},
    {".ffn_norm.", ".post_attention_layernorm."},
    {".attn.", ".self_attn."},
    {".ffn.", ".mlp."},
    {".self_attn.indexer.", ".self_attn.compressor.indexer."},
    {".indexer.compressor.", ".indexer."},
    {".indexer.weights_proj.", ".indexer.scorer.weights_proj."},
    {".compressor.norm.", ".compressor.kv_norm."},
    {".indexer.norm.", ".indexer.kv_norm."},
    {".self_attn.norm.", ".self_attn.kv_norm."},
    {".q_norm.", ".q_a_norm."},
    {".wq_a.", ".q_a_proj."},
    {".wq_b.", ".q_b_proj."},
    {".wkv.", ".kv_proj."},
    {".wgate.", ".gate_proj."},
    {".wo_a.", ".o_a_proj."},
    {".wo_b.", ".o_b_proj."},
    {".attn_sink$", ".sinks"},
    {".ape$", ".position_bias"},
    {".mlp.gate.bias$", ".mlp.gate.e_score_correction_bias"},
    {".w1.", ".gate_proj."},
    {".w3.", ".up_proj."},
    {".w2.", ".down_proj."},
    {NULL, NULL},
};
static const char *const ignored[] = {"mtp.*", "*.mtp.*", NULL};

static struct windows layer_windows(const struct deepseek *m, int64_t i)
{
    return (struct windows){.rate = m->rates[m->attention[i]],
                            .width = m->dim,
                            .is_overlapping = m->attention[i] == CSA};
}

static struct windows index_windows(const struct deepseek *m)
{
    return (struct windows){
        .rate = m->rates[CSA], .width = m->index_dim, .is_overlapping = true};
}

static void attention_part(const struct deepseek *m, int64_t i, struct layer *l,
                           struct part *p)
{
    int64_t hidden = m->decoder.hidden, queries = m->heads * m->dim;
    struct windows windows = layer_windows(m, i), index = index_windows(m);
    char at[64], inner[96];

    snprintf(at, sizeof(at), "model.layers.%lld.self_attn", (long long)i);
    part_dense(p, &l->q_a, m->q_rank, hidden, "%s.q_a_proj.weight", at);
    part_dense(p, &l->q_b, queries, m->q_rank, "%s.q_b_proj.weight", at);
    part_dense(p, &l->kv, m->dim, hidden, "%s.kv_proj.weight", at);
    part_dense(p, &l->o_a, m->groups * m->group_rank, queries / m->groups,
               "%s.o_a_proj.weight", at);
    part_dense(p, &l->o_b, hidden, m->groups * m->group_rank,
               "%s.o_b_proj.weight", at);
    p->is_kept = true;
    part_param(p, &l->q_norm, m->q_rank, "%s.q_a_norm.weight", at);
    part_param(p, &l->kv_norm, m->dim, "%s.kv_norm.weight", at);
    part_param(p, &l->sinks, m->heads, "%s.sinks", at);
    p->is_kept = false;
    snprintf(inner, sizeof(inner), "%s.compressor", at);
    if (m->attention[i] != SLIDING)
        compressor_part(&l->compressor, &windows, hidden, p, inner);
    if (m->attention[i] != CSA)
        return;
    snprintf(inner, sizeof(inner), "%s.compressor.indexer", at);
    compressor_part(&l->indexer, &index, hidden, p, inner);
    part_dense(p, &l->index_q, m->index_heads * m->index_dim, m->q_rank,
               "%s.q_b_proj.weight", inner);
    part_dense(p, &l->index_weights, m->index_heads, hidden,
               "%s.scorer.weights_proj.weight", inner);
}

static void ffn_part(const struct decoder *d, int64_t i, struct layer *l,
                     struct part *p, const char *prefix)
{
    int64_t hidden = d->hidden, experts = d->experts.count;
    char at[96], in[128];

    snprintf(at, sizeof(at), "%s.mlp", prefix);
    snprintf(in, sizeof(in), "%s.shared_experts", at);
    part_dense(p, &l->common.router, experts, hidden, "%s.gate.weight", at);
    expert_part(&l->common.ffn, p, d->shared_width, hidden, in);
    p->is_kept = true;
    if (deepseek_of(d)->is_hash[i])
        part_ints(p, &l->experts_of_id, d->vocab * d->routing.chosen,
                  "%s.gate.tid2eid", at);
    else
        part_param(p, &l->common.bias, experts,
                   "%s.gate.e_score_correction_bias", at);
    p->is_kept = false;
}

static void layer_part(const struct decoder *d, int64_t i,
                       struct decoder_weights *w, struct part *p,
                       const char *at)
{
    const struct deepseek *m = deepseek_of(d);
    struct layer *l = (struct layer *)w;
    char site[96];

    p->is_kept = true;
    snprintf(site, sizeof(site), "%s.attn_hc", at);
    hyper_part(&m->hyper, &l->attention_hyper, p, site);
    snprintf(site, sizeof(site), "%s.ffn_hc", at);
    hyper_part(&m->hyper, &l->ffn_hyper, p, site);
    p->is_kept = false;
    attention_part(m, i, l, p);
    ffn_part(d, i, l, p, at);
}

/* min(gate, limit), up within the limit both ways; silu(gate) up (7).  The
 * limit is of the gate's dtype. */
static struct act clamped_swiglu(struct ops *o, const struct act *gate,
                                 const struct act *up, const void *ctx)
{
    double limit = *(const double *)ctx;
    float narrow = act_is_wide(gate) ? 0 : round_from_f64(gate->dtype, limit);

    for (int64_t i = 0; i < gate->rows * gate->cols; i++) {
        if (act_is_wide(gate)) {
            double *g = act_d(gate) + i, *u = act_d(up) + i;

            *g = *g > limit ? limit : *g;
            *u = *u > limit ? limit : *u < -limit ? -limit : *u;
        } else {
            float *g = act_f(gate) + i, *u = act_f(up) + i;

            *g = *g > narrow ? narrow : *g;
            *u = *u > narrow ? narrow : *u < -narrow ? -narrow : *u;
        }
    }
    return op_swiglu(o, gate, up);
}

static void end_part(struct decoder *d, struct part *p)
{
    struct deepseek *m = (struct deepseek *)d;

    p->is_kept = true;
    hyper_head_part(&m->hyper, &m->head, p, "model.hc_head");
}

/* ---- attention (6) ---- */

/* What the indexer lets each row see of `entries` (6.3): latent is the normed
 * query latent. */
static const int64_t *pick(struct decoder_pass *p, const struct layer *l,
                           const struct sequence *s,
                           const struct rotary_tables *tables,
                           const struct act *x, const struct act *latent,
                           int64_t most)
{
    const struct deepseek *m = deepseek_of(p->decoder);
    struct ops *o = &p->ops;
    struct windows windows = index_windows(m);
    struct picking how = {.heads = m->index_heads,
                          .width = m->index_dim,
                          .rate = windows.rate,
                          .most = most};
    struct act keys = op_compress(o, &l->indexer, &windows, &m->compress,
                                  s->positions, x, m->decoder.eps);
    struct act q = op_dense(o, latent, &l->index_q, NULL);
    struct act weight = op_dense(o, x, &l->index_weights, NULL);

    op_turn(&q, tables, m->index_dim, false);
    return op_pick(o, &q, &keys, &weight, &how);
}

/* Its keys, and below them the layer's compressed entries. */
static struct act all_keys(struct ops *o, const struct act *kv,
                           const struct act *entries)
{
    struct act y = ops_new(o, kv->rows + entries->rows, kv->cols, kv->dtype);
    struct act near = act_rows(&y, 0, kv->rows);
    struct act far = act_rows(&y, kv->rows, entries->rows);

    act_copy(&near, kv);
    act_copy(&far, entries);
    return y;
}

static struct act attention(struct decoder_pass *p,
                            const struct decoder_weights *w, int64_t layer,
                            const struct sequence *s, const struct act *x)
{
    const struct deepseek *m = deepseek_of(p->decoder);
    const struct layer *l = (const struct layer *)w;
    const enum attention kind = m->attention[layer];
    struct ops *o = &p->ops;
    struct windows windows = layer_windows(m, layer);
    struct seeing how = {.heads = m->heads,
                         .dim = m->dim,
                         .window = m->window,
                         .scale = 1 / sqrt((double)m->dim)};
    struct rotary_tables tables = rotary_tables(
        o, kind == SLIDING ? &m->main : &m->compress, s->positions, s->rows);
    struct act latent = op_dense(o, x, &l->q_a, NULL);
    struct act kv = op_dense(o, x, &l->kv, NULL);

    latent = op_kept_norm(o, &latent, &l->q_norm, m->decoder.eps);
    struct act q = op_dense(o, &latent, &l->q_b, NULL);
    op_head_norm(&q, m->dim, m->decoder.eps);
    op_turn(&q, &tables, m->dim, false);
    kv = op_kept_norm(o, &kv, &l->kv_norm, m->decoder.eps);
    op_turn(&kv, &tables, m->dim, false);
    if (kind != SLIDING && s->rows >= windows.rate) {
        struct act entries =
            op_compress(o, &l->compressor, &windows, &m->compress, s->positions,
                        x, m->decoder.eps);

        kv = all_keys(o, &kv, &entries);
        how.rate = windows.rate;
        how.entries = entries.rows;
        how.most = m->index_most < entries.rows ? m->index_most : entries.rows;
        if (kind == CSA)
            how.picked = pick(p, l, s, &tables, x, &latent, how.most);
    }
    struct act seen = op_attend(o, &q, &kv, &l->sinks, &how);
    op_turn(&seen, &tables, m->dim, true);
    struct act y = op_grouped(o, &seen, &l->o_a, m->groups);
    return op_dense(o, &y, &l->o_b, NULL);
}

/* ---- experts (7) ---- */

/* sqrt(softplus(x)), each of the two rounded; in place. */
static void sqrt_softplus(const struct act *x)
{
    for (int64_t i = 0; i < x->rows * x->cols; i++) {
        if (act_is_wide(x)) {
            double v = act_d(x)[i];

            act_d(x)[i] = sqrt(v > 20 ? v : elem_log1p(elem_exp(v)));
        } else {
            float v = act_f(x)[i];

            v = v > 20 ? v : elem_log1p_f32(elem_exp_f32(v));
            act_f(x)[i] = round_to(x->dtype, sqrtf(round_to(x->dtype, v)));
        }
    }
}

static void softmax(const struct act *x)
{
    for (int64_t r = 0; r < x->rows; r++) {
        struct act row = act_rows(x, r, 1);

        if (act_is_wide(x))
            softmax_row_f64(act_d(&row), act_d(&row), x->cols);
        else
            softmax_vec_row(act_f(&row), act_f(&row), x->cols);
    }
    op_round(x);
}

static void score(const struct decoder *d, const struct act *logits)
{
    enum scoring scoring = deepseek_of(d)->scoring;

    if (scoring == SQRTSOFTPLUS)
        sqrt_softplus(logits);
    else if (scoring == SIGMOID)
        op_eager_sigmoid(logits);
    else
        softmax(logits);
}

/* The experts that the layer's table gives to every row's id. */
static struct routed route_by_id(struct decoder_pass *p, const struct layer *l,
                                 const struct act *scores)
{
    const struct deepseek *m = deepseek_of(p->decoder);
    const int64_t k = m->decoder.routing.chosen;
    int64_t *given = xcalloc((size_t)(p->rows * k) + 1, sizeof(*given));
    int64_t *to = given;

    for (int64_t i = 0; i < p->count; i++)
        for (int64_t r = 0; r < p->sequences[i].rows; r++, to += k)
            memcpy(to, l->experts_of_id + p->sequences[i].ids[r] * k,
                   (size_t)k * sizeof(*to));
    struct routed routed =
        op_route_given(&p->ops, scores, given, &m->decoder.routing);
    free(given);
    return routed;
}

static int check_experts_of_id(const struct deepseek *m, const struct layer *l,
                               struct err *err)
{
    for (int64_t i = 0; i < m->decoder.vocab * m->decoder.routing.chosen; i++)
        if (l->experts_of_id[i] < 0 ||
            l->experts_of_id[i] >= m->decoder.experts.count)
            return err_set(err, ERR_INPUT,
                           "tid2eid gives token %lld expert %lld, past the "
                           "model's %lld",
                           (long long)(i / m->decoder.routing.chosen),
                           (long long)l->experts_of_id[i],
                           (long long)m->decoder.experts.count);
    return 0;
}

static int ffn(struct decoder_pass *p, const struct decoder_weights *w,
               int64_t layer, const struct act *x, struct act *y,
               struct err *err)
{
    const struct deepseek *m = deepseek_of(p->decoder);
    const struct layer *l = (const struct layer *)w;
    struct act scores;

    if (!m->is_hash[layer])
        return decoder_ffn(p, w, layer, x, y, err);
    if (check_experts_of_id(m, l, err) ||
        decoder_scores(p, w, layer, x, &scores, err))
        return -1;
    struct routed routed = route_by_id(p, l, &scores);
    return decoder_moe(p, w, layer, x, &routed, y, err);
}

/* ---- the layer (5) ---- */

static int run_layer(struct decoder_pass *p, const struct decoder_weights *w,
                     int64_t layer, struct act *x, struct err *err)
{
    const struct layer *l = (const struct layer *)w;
    const struct hyper_sites sites = {&deepseek_of(p->decoder)->hyper,
                                      &l->attention_hyper, &l->ffn_hyper};

    return hyper_layer(p, &sites, w, layer, x, err);
}

static void spread(struct decoder_pass *p, const struct act *embedded,
                   const struct act *x)
{
    op_hyper_spread(&deepseek_of(p->decoder)->hyper, embedded, x);
}

static struct act gather(struct decoder_pass *p, const struct act *x)
{
    const struct deepseek *m = deepseek_of(p->decoder);
    struct act h = ops_new(&p->ops, x->rows, p->decoder->hidden, x->dtype);

    for (int64_t k = 0; k < p->count; k++) {
        struct act rows = decoder_rows(p, x, k), to = decoder_rows(p, &h, k);

        op_hyper_head(&p->ops, &m->hyper, &m->head, &rows, &to);
    }
    return h;
}

/* ---- the family ---- */

static size_t values(const struct decoder *d, int64_t rows, int64_t longest)
{
    const struct deepseek *m = deepseek_of(d);
    int64_t queries = m->heads * m->dim, index = m->index_heads * m->index_dim;
    int64_t compressed = 7 * (m->dim + m->index_dim);
    int64_t attention_row =
        2 * d->hidden + 2 * m->q_rank + 3 * queries + 4 * m->dim + compressed +
        index + m->index_heads + 2 * m->index_most + 2 * m->main.dims +
        3 * m->compress.dims + 2 * m->groups * m->group_rank;

    return (size_t)(rows * (2 * d->hidden + hyper_site_values(&m->hyper)) +
                    longest * (attention_row + hyper_work_values(&m->hyper)));
}

static const struct decoder_hooks hooks = {
    .size = sizeof(struct deepseek),
    .weights_size = sizeof(struct layer),
    .renames = renames,
    .ignored = ignored,
    .read = read_config,
    .release = release,
    .layer_part = layer_part,
    .end_part = end_part,
    .values = values,
    .spread = spread,
    .gather = gather,
    .norm = op_kept_norm,
    .is_norm_kept = true,
    .layer = run_layer,
    .attention = attention,
    .ffn = ffn,
    .score = score,
};

const struct model_family deepseek_v4_family =
    DECODER_FAMILY("deepseek_v4", &hooks);
