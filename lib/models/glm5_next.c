/*
 * GLM-5-Next's text model (glm-5-next.md): a residual of four streams, no
 * positions at all.
 *
 *     h = streams of h with attention(norm(a mean of them))
 *     h = streams of h with ffn(norm(a mean of them))
 *
 * Attention is Kimi Delta Attention in three layers of four, latent attention
 * over the tokens that an indexer of pools selects in the fourth; the ffn is
 * dense in the first layers, then sigmoid routing and a shared expert, with
 * limits on gate and up everywhere.
 */
#include "models/glm5_next.h"

#include "base/mem.h"
#include "models/decoder.h"
#include "models/eager_ops.h"
#include "models/hyper.h"
#include "models/hyper_layer.h"
#include "models/kda.h"
#include "models/mla.h"
#include "models/moe.h"
#include "models/pool_indexer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct kind {
    bool is_linear, is_sparse; /* its attention, its ffn */
    bool is_shared, is_kept;   /* what it sees is the layer's before; is the
                                  next layer's */
};

struct glm {
    struct decoder decoder;
    struct kind *kinds; /* of the layers */
    struct hyper hyper;
    struct kda kda;
    struct mla mla;
    struct pool_indexer indexer;
    double limit;        /* of every ffn's gate and up */
    unsigned char *seen; /* what is kept for the next layer, [rows, rows] of
                            every sequence */
};

struct layer {
    struct decoder_weights common;
    struct hyper_weights attention_streams, ffn_streams;
    struct kda_weights linear;
    struct mla_weights latent;
    struct pool_indexer_weights indexer;
};

static const struct glm *glm_of(const struct decoder *d)
{
    return (const struct glm *)d;
}

static bool is_sparse(const struct decoder *d, int64_t layer)
{
    return glm_of(d)->kinds[layer].is_sparse;
}

/* ---- config.json (2) ---- */

/* A list of one text a layer, or NULL when there is none. */
static int read_list(const struct section *s, const char *key, int64_t layers,
                     const json_t **out, struct err *err)
{
    const json_t *list = config_value(s, key);

    *out = json_is_null(list) ? NULL : list;
    if (!*out)
        return 0;
    if (!json_is_array(list) || json_array_size(list) != (size_t)layers)
        return config_refuse(s, key, err, "is not a list of %lld layers",
                             (long long)layers);
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!json_is_string(json_array_get(list, i)))
            return config_refuse(s, key, err, "is not a list of texts");
    return 0;
}

static const char *text_at(const json_t *list, int64_t i)
{
    return json_string_value(json_array_get(list, (size_t)i));
}

static bool is_one_of(const char *text, const char *const *names)
{
    while (*names && strcmp(text, *names) != 0)
        names++;
    return *names != NULL;
}

static int read_kinds(struct glm *m, const struct section *s, struct err *err)
{
    static const char *const sparse_names[] = {"full_attention",
                                               "deepseek_sparse_attention",
                                               "indexed_attention", NULL};
    int64_t layers = m->decoder.layers, dense;
    const json_t *attention, *ffn;

    if (read_list(s, "layer_types", layers, &attention, err) ||
        read_list(s, "mlp_layer_types", layers, &ffn, err))
        return -1;
    m->kinds = xcalloc((size_t)layers, sizeof(*m->kinds));
    for (int64_t i = 0; i < layers; i++) {
        struct kind *k = &m->kinds[i];
        const char *type;

        *k = (struct kind){.is_linear = i % 4 != 3, .is_sparse = i >= 3};
        if (attention) {
            type = text_at(attention, i);
            k->is_linear = strcmp(type, "linear_attention") == 0;
            if (!k->is_linear && !is_one_of(type, sparse_names))
                return config_refuse(s, "layer_types", err,
                                     "holds '%s': not supported", type);
        }
        if (ffn) {
            type = text_at(ffn, i);
            k->is_sparse = strcmp(type, "sparse") == 0;
            if (!k->is_sparse && strcmp(type, "dense") != 0)
                return config_refuse(s, "mlp_layer_types", err,
                                     "holds '%s': not supported", type);
        }
    }
    if (!config_has(s, "first_k_dense_replace"))
        return 0;
    if (config_amount(s, "first_k_dense_replace", 0, &dense, err))
        return -1;
    for (int64_t i = 0; i < layers; i++)
        if (m->kinds[i].is_sparse != (i >= dense))
            return config_refuse(s, "first_k_dense_replace", err,
                                 "contradicts the types of the layers");
    return 0;
}

/* Has a layer an indexer of its own?  What says so: a list of a word a layer,
 * a letter a layer, or how many layers share one. */
static int read_indexer_of(const struct section *s, int64_t layers,
                           bool *is_full, struct err *err)
{
    static const char types_key[] = "indexer_types";
    static const char pattern_key[] = "index_topk_pattern";
    const json_t *types, *pattern = config_value(s, pattern_key);
    const char *key = types_key, *letters = json_string_value(pattern);
    int64_t every, skip;

    if (read_list(s, types_key, layers, &types, err) ||
        config_amount(s, "index_topk_freq", 1, &every, err) ||
        config_amount(s, "index_skip_topk_offset", 2, &skip, err))
        return -1;
    if (!types && !letters) {
        key = pattern_key;
        if (read_list(s, key, layers, &types, err))
            return -1;
    }
    if (!types && letters && strlen(letters) != (size_t)layers)
        return config_refuse(s, pattern_key, err,
                             "is not as long as there are layers");
    for (int64_t i = 0; i < layers; i++) {
        int64_t past = i - skip + 1 > 0 ? i - skip + 1 : 0;
        const char *word = types               ? text_at(types, i)
                           : !letters          ? NULL
                           : letters[i] == 'F' ? "full"
                           : letters[i] == 'S' ? "shared"
                                               : "";

        is_full[i] =
            word ? strcmp(word, "full") == 0 : every <= 1 || past % every == 0;
        if (word && !is_full[i] && strcmp(word, "shared") != 0)
            return config_refuse(s, letters && !types ? pattern_key : key, err,
                                 "is neither full nor shared for layer %lld",
                                 (long long)i);
    }
    return 0;
}

/* A layer that shares one stands right after the layer that has it. */
static int read_indexers(struct glm *m, const struct section *s,
                         struct err *err)
{
    int64_t layers = m->decoder.layers;
    bool *is_full = xcalloc((size_t)layers, sizeof(*is_full));
    int ret = read_indexer_of(s, layers, is_full, err);

    for (int64_t i = 0; i < layers && ret == 0; i++) {
        struct kind *k = &m->kinds[i], *before = i ? k - 1 : NULL;

        k->is_shared = !k->is_linear && !is_full[i];
        if (!k->is_shared)
            continue;
        if (!before || before->is_linear || before->is_shared)
            ret = config_refuse(s, "indexer_types", err,
                                "shares in layer %lld an indexer that the "
                                "layer before does not have",
                                (long long)i);
        else
            before->is_kept = true;
    }
    free(is_full);
    return ret ? -1 : pool_indexer_read(&m->indexer, s, err);
}

/* A list of layer numbers, from 0 or from 1, that says which are linear. */
static int check_numbers(const struct glm *m, const struct section *s,
                         const char *key, bool is_linear, struct err *err)
{
    const json_t *list = config_value(s, key);
    int64_t layers = m->decoder.layers, want = 0;

    if (!list || json_is_null(list))
        return 0;
    for (int64_t i = 0; i < layers; i++)
        want += m->kinds[i].is_linear == is_linear;
    for (int64_t base = 0; base < 2; base++) {
        bool agrees =
            json_is_array(list) && json_array_size(list) == (size_t)want;

        for (size_t k = 0; agrees && k < json_array_size(list); k++) {
            int64_t i = json_integer_value(json_array_get(list, k)) - base;

            agrees = i >= 0 && i < layers && m->kinds[i].is_linear == is_linear;
        }
        if (agrees)
            return 0;
    }
    return config_refuse(s, key, err, "contradicts layer_types");
}

static int read_linear(struct glm *m, const struct section *s, struct err *err)
{
    struct kda *a = &m->kda;
    const struct section *over;
    bool is_safe = true;

    a->is_beta_rounded = a->is_kept = true;
    a->chunk = 64;
    if (config_count(s, "linear_num_heads", 64, &a->heads, err) ||
        config_count(s, "linear_head_dim", 128, &a->dim, err) ||
        config_count(s, "linear_conv_kernel_dim", 4, &a->taps, err) ||
        config_real_or_null(s, "linear_lower_bound", -5, &a->bound, err) ||
        config_section(s, "linear_attn_config", &over, err))
        return -1;
    if (over) {
        if (config_count(over, "num_heads", a->heads, &a->heads, err) ||
            config_count(over, "head_dim", a->dim, &a->dim, err) ||
            config_count(over, "short_conv_kernel_size", a->taps, &a->taps,
                         err) ||
            config_real_or_null(over, "gate_lower_bound|lower_bound", a->bound,
                                &a->bound, err) ||
            config_flag(over, "safe_gate", true, &is_safe, err) ||
            check_numbers(m, over, "kda_layers", true, err) ||
            check_numbers(m, over, "full_attn_layers", false, err))
            return -1;
        if (is_safe && isnan(a->bound))
            a->bound = -5;
    }
    if (a->bound >= 0)
        return config_refuse(s, "linear_lower_bound", err, "is not below 0");
    return 0;
}

static int read_attention(struct glm *m, const struct section *s,
                          struct err *err)
{
    struct mla *a = &m->mla;

    *a = (struct mla){.hidden = m->decoder.hidden,
                      .heads = 64,
                      .q_rank = 1536,
                      .kv_rank = 512,
                      .nope = 256,
                      .value = 256};
    if (config_is_null(s, "q_lora_rank"))
        return config_refuse(s, "q_lora_rank", err, "is null: not supported");
    if (config_flag(s, "attention_bias", false, &a->has_bias, err) ||
        mla_read(a, s, err) || read_kinds(m, s, err))
        return -1;
    if (a->rope != 0)
        return config_refuse(s, "qk_rope_head_dim", err,
                             "is not 0: not supported");
    a->latent_eps = m->decoder.eps;
    m->indexer.hidden = m->kda.hidden = a->hidden;
    m->indexer.latent = a->q_rank;
    m->kda.eps = m->decoder.eps;
    return read_indexers(m, s, err) || read_linear(m, s, err) ? -1 : 0;
}

static int read_text(struct glm *m, const struct section *s, struct err *err)
{
    static const char *const unused[] = {"ep_size",
                                         "head_dim",
                                         "indexer_rope_interleave",
                                         "max_position_embeddings",
                                         "moe_layer_freq",
                                         "moe_router_dtype",
                                         "num_nextn_predict_layers",
                                         "output_router_logits",
                                         "pretraining_tp",
                                         "qk_head_dim",
                                         "quantization_config",
                                         "rope_parameters",
                                         "rope_scaling",
                                         "rope_theta",
                                         "router_aux_loss_coef",
                                         NULL};
    struct decoder *d = &m->decoder;

    d->experts.count = 288;
    d->routing.groups = d->routing.groups_kept = 1;
    if (config_count(s, "vocab_size", 154880, &d->vocab, err) ||
        config_count(s, "hidden_size", 4096, &d->hidden, err) ||
        config_count(s, "intermediate_size", 12288, &m->decoder.dense_width,
                     err) ||
        config_count(s, "num_hidden_layers", 45, &d->layers, err) ||
        config_real(s, "rms_norm_eps", 1e-5, &m->decoder.eps, err) ||
        config_real_or_null(s, "swiglu_limit", 10, &m->limit, err) ||
        config_flag(s, "tie_word_embeddings", false, &d->is_tied, err) ||
        config_expect_text(s, "hidden_act", "silu", err) ||
        config_expect_flag(s, "mhc", true, err) ||
        config_expect_flag(s, "mla_use_nope", true, err) ||
        config_expect_flag(s, "index_kpool_compress", true, err) ||
        hyper_read(&m->hyper, s, d->hidden, m->decoder.eps, err) ||
        read_attention(m, s, err) || decoder_read_routing(d, s, err))
        return -1;
    d->width = m->hyper.streams * d->hidden;
    d->experts.unit = expert_swiglu_limited;
    d->experts.ctx = &m->limit;
    config_ignore_common(s);
    config_ignore(s, unused);
    return 0;
}

static int read_config(struct decoder *d, struct err *err)
{
    /* of images, which no position here holds */
    static const char *const unused[] = {
        "image_end_token_id",  "image_start_token_id", "image_token_id",
        "quantization_config", "video_end_token_id",   "video_start_token_id",
        "video_token_id",      "vision_config",        NULL};
    const struct section *root = config_root(d->config), *text;
    struct glm *m = (struct glm *)d;

    if (config_section(root, "text_config", &text, err) ||
        read_text(m, text ? text : root, err))
        return -1;
    return decoder_finish_wrapper(d, unused, err);
}

/* ---- tensors (3) ---- */

static const struct rename renames[] = {
    {"^model.language_model.", "model."},
    {"^language_model.model.", "model."},
    {"^language_model.lm_head.", "lm_head."},
    {".hc_attn_", ".attn_hc."},
    {".hc_ffn_", ".ffn_hc."},
    {".self_attn.forget_gate.", ".self_attn."},
    {NULL, NULL},
};
static const char *const ignored[] = {"model.visual.*", "visual.*",
                                      "*.shared_head.*", NULL};

static void part_attention(const struct glm *m, const struct kind *kind,
                           struct layer *l, struct part *p, const char *at)
{
    char in[96];

    snprintf(in, sizeof(in), "%s.self_attn", at);
    if (kind->is_linear) {
        struct kda kda = m->kda;

        kda.is_joined =
            checkpoint_has(m->decoder.weights, "%s.conv1d.weight", in);
        kda_part(&kda, &l->linear, p, in);
        return;
    }
    mla_part(&m->mla, &l->latent, p, in);
    if (kind->is_shared)
        return;
    snprintf(in, sizeof(in), "%s.self_attn.indexer", at);
    pool_indexer_part(&m->indexer, &l->indexer, p, in);
}

static void layer_part(const struct decoder *d, int64_t i,
                       struct decoder_weights *w, struct part *p,
                       const char *at)
{
    const struct glm *m = glm_of(d);
    struct layer *l = (struct layer *)w;
    char in[96];

    snprintf(in, sizeof(in), "%s.attn_hc", at);
    hyper_part(&m->hyper, &l->attention_streams, p, in);
    snprintf(in, sizeof(in), "%s.ffn_hc", at);
    hyper_part(&m->hyper, &l->ffn_streams, p, in);
    part_attention(m, &m->kinds[i], l, p, at);
    (is_sparse(d, i) ? decoder_routed_part : decoder_dense_part)(d, w, p, at);
}

/* ---- attention of one sequence (5, 6) ---- */

/* What the rows of a sequence see of it: [rows, rows], kept from layer to
 * layer where the next one shares it. */
static unsigned char *seen_of(const struct decoder_pass *p,
                              const struct sequence *s)
{
    unsigned char *seen = glm_of(p->decoder)->seen;

    for (const struct sequence *at = p->sequences; at < s; at++)
        seen += at->rows * at->rows;
    return seen;
}

static const unsigned char *see(struct decoder_pass *p, const struct layer *l,
                                const struct kind *kind,
                                const struct sequence *s, const struct act *x,
                                const struct act *latent)
{
    if (kind->is_shared)
        return seen_of(p, s);
    const unsigned char *visible = op_pool_indexer(
        &p->ops, &glm_of(p->decoder)->indexer, &l->indexer, x, latent);
    if (kind->is_kept)
        memcpy(seen_of(p, s), visible, (size_t)(s->rows * s->rows));
    return visible;
}

static struct act attention(struct decoder_pass *p,
                            const struct decoder_weights *w, int64_t layer,
                            const struct sequence *s, const struct act *x)
{
    const struct glm *m = glm_of(p->decoder);
    const struct layer *l = (const struct layer *)w;
    const struct kind *kind = &m->kinds[layer];
    struct ops *o = &p->ops;

    if (kind->is_linear)
        return op_kda(o, &m->kda, &l->linear, x);
    struct mla_heads heads =
        op_mla_heads(o, &m->mla, &l->latent, x, s->positions);
    const unsigned char *visible = see(p, l, kind, s, x, &heads.latent);
    return op_mla_attend(o, &m->mla, &l->latent, x, &heads, visible,
                         mla_sdpa(&m->mla, p->options->is_flash_exact));
}

/* ---- the layer (4) ---- */

static int keep_seen(struct decoder_pass *p, struct err *err)
{
    struct glm *m = (struct glm *)p->decoder;
    size_t all = 0;

    for (int64_t i = 0; i < p->count; i++)
        all += (size_t)(p->sequences[i].rows * p->sequences[i].rows);
    free(m->seen);
    m->seen = mem_array(all, 1, SIZE_MAX, err);
    return m->seen ? 0 : -1;
}

static int run_layer(struct decoder_pass *p, const struct decoder_weights *w,
                     int64_t layer, struct act *x, struct err *err)
{
    const struct layer *l = (const struct layer *)w;
    const struct glm *m = glm_of(p->decoder);
    const struct hyper_sites sites = {&m->hyper, &l->attention_streams,
                                      &l->ffn_streams};

    if (m->kinds[layer].is_kept && keep_seen(p, err))
        return -1;
    return hyper_layer(p, &sites, w, layer, x, err);
}

static void spread(struct decoder_pass *p, const struct act *embedded,
                   const struct act *x)
{
    op_hyper_spread(&glm_of(p->decoder)->hyper, embedded, x);
}

static struct act gather(struct decoder_pass *p, const struct act *x)
{
    struct act mean = ops_new(&p->ops, x->rows, p->decoder->hidden, x->dtype);

    op_hyper_mean(&p->ops, &glm_of(p->decoder)->hyper, x, &mean);
    return mean;
}

static int64_t largest(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static size_t values(const struct decoder *d, int64_t rows, int64_t longest)
{
    const struct glm *m = glm_of(d);
    int64_t linear =
        longest * kda_row_values(&m->kda) + kda_state_values(&m->kda);
    int64_t latent = longest * mla_row_values(&m->mla) +
                     pool_indexer_values(&m->indexer, longest);
    int64_t streams = longest * hyper_work_values(&m->hyper);

    return (size_t)(rows * hyper_site_values(&m->hyper) +
                    largest(linear, latent) + streams);
}

static void release(struct decoder *d)
{
    struct glm *m = (struct glm *)d;

    free(m->kinds);
    free(m->seen);
}

static const struct decoder_hooks hooks = {
    .size = sizeof(struct glm),
    .weights_size = sizeof(struct layer),
    .renames = renames,
    .ignored = ignored,
    .read = read_config,
    .release = release,
    .layer_part = layer_part,
    .is_sparse = is_sparse,
    .values = values,
    .spread = spread,
    .gather = gather,
    .layer = run_layer,
    .attention = attention,
};

const struct model_family glm5_next_family =
    DECODER_FAMILY("glm5_next", &hooks);
const struct model_family glm5_next_text_family =
    DECODER_FAMILY("glm5_next_text", &hooks);
