/*
 * Kimi-K3's text model (kimi-k3.md):
 *
 *     P = embed[ids]                  a prefix sum; B: the blocks before it
 *     h = mix(B, P)                   attention over blocks and prefix
 *     every few layers: P joins B and starts anew
 *     P = P + attention(norm(h))      KDA, or gated MLA without positions
 *     P = P + ffn(norm(mix(B, P)))    dense, or latent experts and a shared one
 *     out = norm(mix(B, P))
 *
 * Without attn_res_block_size P is an ordinary residual, and h is P.  A row of
 * the residual is [P | block 0 | block 1 | ...].
 */
#include "models/kimi_k3.h"

#include "base/mem.h"
#include "kernels/residual.h"
#include "kernels/situ.h"
#include "models/decoder.h"
#include "models/eager_ops.h"
#include "models/kda.h"
#include "models/mla.h"
#include "models/moe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct unit { /* activation_situ_*; beta 0: SwiGLU */
    double beta, linear;
};

struct mix {
    struct param norm, proj;
};

struct kimi3 {
    struct decoder decoder;
    struct mla mla;
    struct kda kda;
    bool *is_kda;  /* [layers] */
    int64_t block; /* layers of a residual block; 0: none */
    struct unit unit;
    bool is_softmax, is_latent_normed;
    int64_t dense_layers, every;
    int64_t latent; /* of the experts; 0: none */
    struct mix last;
};

struct layer {
    struct decoder_weights common;
    struct param latent_norm;
    struct mix before_attention, before_ffn;
    struct kda_weights kda;
    struct mla_weights mla;
    struct dense_weight latent_down, latent_up;
};

static const struct kimi3 *kimi3_of(const struct decoder *d)
{
    return (const struct kimi3 *)d;
}

static bool is_sparse(const struct decoder *d, int64_t layer)
{
    const struct kimi3 *m = kimi3_of(d);

    return d->experts.count && layer >= m->dense_layers &&
           layer % m->every == 0;
}

static bool starts_block(const struct kimi3 *m, int64_t layer)
{
    return m->block && layer % m->block == 0;
}

/* Blocks that layers before this one have left. */
static int64_t blocks_before(const struct kimi3 *m, int64_t layer)
{
    return m->block ? (layer + m->block - 1) / m->block : 0;
}

static struct act situ_unit(struct ops *o, const struct act *gate,
                            const struct act *up, const void *ctx);

/* ---- config.json (2) ---- */

/* Sets a flag for each 1-based layer of a list. */
static int read_layers(const struct section *s, const char *key, int64_t layers,
                       bool *out, struct err *err)
{
    const json_t *list = config_value(s, key);

    for (size_t i = 0; i < json_array_size(list); i++) {
        json_int_t at = json_integer_value(json_array_get(list, i));

        if (at < 1 || at > layers)
            return config_refuse(s, key, err, "names no layer of 1 to %lld",
                                 (long long)layers);
        out[at - 1] = true;
    }
    return 0;
}

static int read_kda(struct kimi3 *m, const struct section *s, struct err *err)
{
    const struct section *linear;
    struct kda *k = &m->kda;
    int64_t layers = m->decoder.layers;
    int ret;

    m->is_kda = xcalloc((size_t)layers, sizeof(*m->is_kda));
    if (config_section(s, "linear_attn_config", &linear, err))
        return -1;
    if (!linear)
        return 0;
    *k = (struct kda){.hidden = m->decoder.hidden,
                      .bound = NAN,
                      .eps = m->decoder.eps,
                      .is_padded = true};
    if (config_count(linear, "num_heads", -1, &k->heads, err) ||
        config_count(linear, "head_dim", -1, &k->dim, err) ||
        config_count(linear, "short_conv_kernel_size", 4, &k->taps, err) ||
        config_flag(linear, "use_full_rank_gate", false, &k->is_full_gate,
                    err) ||
        (config_has(linear, "gate_lower_bound") &&
         config_real(linear, "gate_lower_bound", NAN, &k->bound, err)))
        return -1;
    config_ignore(linear,
                  (const char *[]){"gate_lower_bound", NULL}); /* null */
    if (k->bound >= 0)
        return config_refuse(linear, "gate_lower_bound", err, "is not below 0");
    bool *is_full = xcalloc((size_t)layers, sizeof(*is_full));
    ret = read_layers(linear, "kda_layers", layers, m->is_kda, err);
    if (ret == 0)
        ret = read_layers(linear, "full_attn_layers", layers, is_full, err);
    for (int64_t i = 0; i < layers && ret == 0; i++)
        if (config_has(linear, "full_attn_layers") &&
            is_full[i] == m->is_kda[i])
            ret = config_refuse(linear, "full_attn_layers", err,
                                "and 'kda_layers' contradict each other in "
                                "layer %lld",
                                (long long)i + 1);
    free(is_full);
    return ret;
}

static int read_unit(struct kimi3 *m, const struct section *s, struct err *err)
{
    struct unit *u = &m->unit;
    const char *act;

    if (config_text(s, "hidden_act", "silu", &act, err) ||
        config_real(s, "activation_situ_beta", 1, &u->beta, err) ||
        config_real(s, "activation_situ_linear_beta", 0, &u->linear, err))
        return -1;
    if (u->beta == 0)
        u->beta = 1;
    if (strcmp(act, "silu") == 0)
        u->beta = 0;
    else if (strcmp(act, "situ") != 0)
        return config_refuse(s, "hidden_act", err,
                             "is '%.40s', only 'situ' and 'silu' are supported",
                             act);
    if (u->beta < 0 || u->linear < 0)
        return config_refuse(s, "activation_situ_beta", err,
                             "or its kin is negative");
    return 0;
}

static int read_experts(struct kimi3 *m, const struct section *s,
                        struct err *err)
{
    struct routing *r = &m->decoder.routing;
    bool is_grouped;
    int64_t shared;
    const char *scores;

    if (config_amount(s, "num_experts", 0, &m->decoder.experts.count, err) ||
        config_amount(s, "num_shared_experts", 0, &shared, err) ||
        config_amount(s, "first_k_dense_replace", 0, &m->dense_layers, err) ||
        config_count(s, "moe_layer_freq", 1, &m->every, err) ||
        config_amount(s, "routed_expert_hidden_size", 0, &m->latent, err) ||
        config_flag(s, "latent_moe_use_norm", false, &m->is_latent_normed,
                    err) ||
        config_text(s, "moe_router_activation_func", "sigmoid", &scores, err) ||
        config_flag(s, "moe_renormalize", true, &r->is_normalised, err) ||
        config_real(s, "routed_scaling_factor", 1, &r->scale, err) ||
        config_flag(s, "use_grouped_topk", true, &is_grouped, err) ||
        config_count(s, "num_expert_group", 1, &r->groups, err) ||
        config_count(s, "topk_group", 1, &r->groups_kept, err) ||
        config_count(s, "num_experts_per_token",
                     m->decoder.experts.count ? -1 : 1, &r->chosen, err) ||
        config_count(s, "moe_intermediate_size",
                     m->decoder.experts.count ? -1 : 1,
                     &m->decoder.experts.width, err) ||
        config_expect_text(s, "topk_method", "noaux_tc", err))
        return -1;
    m->decoder.shared_width = shared * m->decoder.experts.width;
    m->is_softmax = strcmp(scores, "softmax") == 0;
    if (!m->is_softmax && strcmp(scores, "sigmoid") != 0)
        return config_refuse(s, "moe_router_activation_func", err,
                             "is '%.40s', only 'sigmoid' and 'softmax' are "
                             "supported",
                             scores);
    if (!is_grouped || r->groups == 1)
        r->groups = r->groups_kept = 1;
    r->eps = 1e-20;
    r->is_normalised = r->is_normalised && r->chosen > 1;
    return m->decoder.experts.count
               ? decoder_check_groups(&m->decoder, s, "num_expert_group",
                                      "num_experts_per_token", err)
               : 0;
}

static int read_text(struct kimi3 *m, const struct section *s, struct err *err)
{
    /* head_dim is read nowhere, and nothing is rotated */
    static const char *const unused[] = {
        "head_dim",         "max_position_embeddings",
        "model_max_length", "num_nextn_predict_layers",
        "qk_head_dim",      "quantization_config",
        "rope_parameters",  "rope_scaling",
        "rope_theta",       NULL};
    struct decoder *d = &m->decoder;
    struct mla *a = &m->mla;
    bool is_nope;

    *a = (struct mla){
        .heads = 32, .kv_rank = -1, .nope = -1, .rope = -1, .value = -1};
    if (config_count(s, "vocab_size", 163840, &d->vocab, err) ||
        config_count(s, "hidden_size", 4096, &d->hidden, err) ||
        config_count(s, "intermediate_size", 11008, &m->decoder.dense_width,
                     err) ||
        config_count(s, "num_hidden_layers", 32, &d->layers, err) ||
        config_real(s, "rms_norm_eps", 1e-6, &m->decoder.eps, err) ||
        config_flag(s, "tie_word_embeddings", false, &d->is_tied, err) ||
        config_amount(s, "attn_res_block_size", 0, &m->block, err) ||
        config_flag(s, "mla_use_output_gate", false, &a->is_gated, err) ||
        config_flag(s, "mla_use_nope", false, &is_nope, err) ||
        mla_read(a, s, err) || read_kda(m, s, err) || read_unit(m, s, err) ||
        read_experts(m, s, err))
        return -1;
    if (!is_nope)
        return config_refuse(s, "mla_use_nope", err,
                             "is not true: rotary attention is not supported");
    a->hidden = d->hidden;
    d->width = d->hidden * (1 + blocks_before(m, d->layers));
    d->experts.in = m->latent;
    d->experts.unit = situ_unit;
    d->experts.ctx = &m->unit;
    config_ignore_common(s);
    config_ignore(s, unused);
    return 0;
}

static int read_config(struct decoder *d, struct err *err)
{
    static const char *const unused[] = {
        "ignore_index", "media_placeholder_token_id", "quantization_config",
        "vision_config", NULL};
    const struct section *root = config_root(d->config), *text;
    struct kimi3 *m = (struct kimi3 *)d;

    if (d->model.family != &kimi_k3_family)
        return read_text(m, root, err) ? -1 : config_finish(d->config, err);
    if (decoder_text_section(root, &text, err) || read_text(m, text, err))
        return -1;
    return decoder_finish_wrapper(d, unused, err);
}

/* ---- tensors (3) ---- */

static const struct rename renames[] = {
    {"^language_model.", ""},
    {".block_sparse_moe.", ".mlp."},
    {".mlp.gate.e_score_correction_bias", ".mlp.e_score_correction_bias"},
    {".w1.weight", ".gate_proj.weight"},
    {".w3.weight", ".up_proj.weight"},
    {".w2.weight", ".down_proj.weight"},
    {"_res.proj_weight", "_res_proj.weight"},
    {"_res.norm_weight", "_res_norm.weight"},
    {NULL, NULL},
};
static const char *const ignored[] = {"vision_tower.*", "mm_projector.*",
                                      "model.mtp*", "language_model.model.mtp*",
                                      NULL};

static void part_mix(const struct kimi3 *m, struct mix *mix, struct part *p,
                     const char *at, const char *name)
{
    int64_t hidden = m->decoder.hidden;

    if (m->block == 0)
        return;
    part_param(p, &mix->norm, hidden, "%s.%s_norm.weight", at, name);
    part_param(p, &mix->proj, hidden, "%s.%s_proj.weight", at, name);
}

static void part_moe(const struct decoder *d, struct layer *l, struct part *p,
                     const char *at)
{
    const struct kimi3 *m = kimi3_of(d);
    int64_t hidden = d->hidden, experts = d->experts.count;
    char in[96];

    part_dense(p, &l->common.router, experts, hidden, "%s.mlp.gate.weight", at);
    part_param(p, &l->common.bias, experts, "%s.mlp.e_score_correction_bias",
               at);
    if (m->latent) {
        part_dense(p, &l->latent_down, m->latent, hidden,
                   "%s.mlp.routed_expert_down_proj.weight", at);
        part_dense(p, &l->latent_up, hidden, m->latent,
                   "%s.mlp.routed_expert_up_proj.weight", at);
        if (m->is_latent_normed)
            part_param(p, &l->latent_norm, m->latent,
                       "%s.mlp.routed_expert_norm.weight", at);
    }
    snprintf(in, sizeof(in), "%s.mlp.shared_experts", at);
    if (d->shared_width)
        expert_part(&l->common.ffn, p, d->shared_width, hidden, in);
}

static void layer_part(const struct decoder *d, int64_t i,
                       struct decoder_weights *w, struct part *p,
                       const char *at)
{
    const struct kimi3 *m = kimi3_of(d);
    struct layer *l = (struct layer *)w;
    char in[96];

    part_mix(m, &l->before_attention, p, at, "self_attention_res");
    part_mix(m, &l->before_ffn, p, at, "mlp_res");
    snprintf(in, sizeof(in), "%s.self_attn", at);
    if (m->is_kda[i])
        kda_part(&m->kda, &l->kda, p, in);
    else
        mla_part(&m->mla, &l->mla, p, in);
    if (is_sparse(d, i))
        part_moe(d, l, p, at);
    else
        decoder_dense_part(d, w, p, at);
}

static void end_part(struct decoder *d, struct part *p)
{
    struct kimi3 *m = (struct kimi3 *)d;

    part_mix(m, &m->last, p, "model", "output_attn_res");
}

/* ---- the residual (4) ---- */

/* Columns of part k of the residual: 0 is the prefix, 1 + b block b. */
static struct act part_of(struct ops *o, const struct act *x, int64_t k,
                          int64_t hidden)
{
    return op_columns(o, x, k * hidden, hidden);
}

static void put_part(const struct act *x, int64_t k, const struct act *from)
{
    act_put(x, k * from->cols, from, 0, from->cols);
}

static void spread(struct decoder_pass *p, const struct act *embedded,
                   const struct act *x)
{
    (void)p;
    memset(x->data, 0, (size_t)(x->rows * x->cols) * act_value_size(x));
    put_part(x, 0, embedded);
}

/* Attention over `blocks` blocks and the prefix; the prefix without blocks. */
static struct act mix(struct ops *o, const struct kimi3 *m, const struct act *x,
                      int64_t blocks, const struct mix *w)
{
    int64_t hidden = m->decoder.hidden;

    if (blocks == 0)
        return part_of(o, x, 0, hidden);
    struct act y = ops_new(o, x->rows, hidden, x->dtype);
    if (act_is_wide(x))
        residual_mix_f64(act_d(&y), act_d(x), w->norm.d, w->proj.d,
                         m->decoder.eps, blocks, hidden, x->cols, x->rows);
    else
        (o->sums == SUMS_TORCH_F32 ? residual_mix_torch : residual_mix)(
            act_f(&y), act_f(x), w->norm.f, w->proj.f, m->decoder.eps, blocks,
            hidden, x->cols, x->rows);
    op_round(&y);
    return y;
}

/* ---- the feed-forward half (8) ---- */

static struct act situ_unit(struct ops *o, const struct act *gate,
                            const struct act *up, const void *ctx)
{
    const struct unit *u = ctx;

    if (u->beta == 0)
        return op_swiglu(o, gate, up);
    struct act y = ops_new(o, gate->rows, gate->cols, gate->dtype);
    if (act_is_wide(&y))
        situ_f64(act_d(&y), act_d(gate), act_d(up), u->beta, u->linear,
                 y.rows * y.cols);
    else
        situ(act_f(&y), act_f(gate), act_f(up), u->beta, u->linear,
             o->sums == SUMS_TORCH_F32, y.rows * y.cols, y.dtype);
    return y;
}

static void score(const struct decoder *d, const struct act *x)
{
    if (kimi3_of(d)->is_softmax)
        op_eager_softmax(x);
    else
        op_eager_sigmoid(x);
}

/* Experts that see a latent of x: routing sees x itself. */
static int latent_moe(struct decoder_pass *p, const struct layer *l,
                      int64_t layer, const struct act *x, struct act *y,
                      struct err *err)
{
    const struct decoder *d = p->decoder;
    const struct kimi3 *m = kimi3_of(d);
    struct ops *o = &p->ops;
    struct experts experts = decoder_experts(d, layer);
    struct routed routed;

    if (decoder_route(p, &l->common, layer, x, &routed, err) ||
        decoder_tap_routed(p, layer, &routed, err))
        return -1;
    struct act z = decoder_linear(p, x, &l->latent_down);
    if (op_experts(o, &z, &routed, &experts, y, err))
        return -1;
    if (m->is_latent_normed)
        *y = decoder_norm(p, y, &l->latent_norm);
    *y = decoder_linear(p, y, &l->latent_up);
    if (d->shared_width) {
        struct act shared = decoder_unit(p, x, &l->common.ffn, &experts);

        *y = op_add(o, y, &shared);
    }
    return 0;
}

static int ffn(struct decoder_pass *p, const struct decoder_weights *w,
               int64_t layer, const struct act *x, struct act *y,
               struct err *err)
{
    bool is_latent = kimi3_of(p->decoder)->latent != 0;

    if (is_latent && is_sparse(p->decoder, layer))
        return latent_moe(p, (const struct layer *)w, layer, x, y, err);
    return decoder_ffn(p, w, layer, x, y, err);
}

/* ---- the layer ---- */

static struct act attention(struct decoder_pass *p,
                            const struct decoder_weights *w, int64_t layer,
                            const struct sequence *s, const struct act *x)
{
    const struct kimi3 *m = kimi3_of(p->decoder);
    const struct layer *l = (const struct layer *)w;

    if (m->is_kda[layer])
        return op_kda(&p->ops, &m->kda, &l->kda, x);
    return op_mla(&p->ops, &m->mla, &l->mla, x, s->positions,
                  p->ops.sums == SUMS_TORCH_F32 ? SDPA_BATCH : SDPA_MATH);
}

static int run_layer(struct decoder_pass *p, const struct decoder_weights *w,
                     int64_t i, struct act *x, struct err *err)
{
    const struct kimi3 *m = kimi3_of(p->decoder);
    const struct layer *l = (const struct layer *)w;
    struct ops *o = &p->ops;
    struct act h = mix(o, m, x, blocks_before(m, i), &l->before_attention), y;

    h = decoder_norm(p, &h, &w->input_norm);
    if (decoder_mixer(p, w, i, &h, &y, err))
        return -1;
    struct act prefix = part_of(o, x, 0, m->decoder.hidden);
    if (starts_block(m, i)) { /* the entering prefix, not h */
        put_part(x, 1 + blocks_before(m, i), &prefix);
        prefix = y;
    } else {
        prefix = op_add(o, &prefix, &y);
    }
    put_part(x, 0, &prefix);
    h = mix(o, m, x, blocks_before(m, i + 1), &l->before_ffn);
    h = decoder_norm(p, &h, &w->post_norm);
    if (decoder_mlp(p, w, i, &h, &y, err))
        return -1;
    prefix = op_add(o, &prefix, &y);
    put_part(x, 0, &prefix);
    return decoder_tap(p, i, "out", &prefix, err);
}

static struct act gather(struct decoder_pass *p, const struct act *x)
{
    const struct kimi3 *m = kimi3_of(p->decoder);

    return mix(&p->ops, m, x, blocks_before(m, m->decoder.layers), &m->last);
}

static size_t values(const struct decoder *d, int64_t rows, int64_t longest)
{
    const struct kimi3 *m = kimi3_of(d);
    int64_t row = mla_row_values(&m->mla), kda = kda_row_values(&m->kda);

    return (size_t)(rows * (6 * d->hidden + 2 * m->latent) +
                    longest * (row > kda ? row : kda) +
                    kda_state_values(&m->kda));
}

/* The residual's prefix alone is "out". */
static size_t stages(const struct decoder *d, int64_t layer,
                     struct decoder_stage *out)
{
    size_t n = decoder_plain_stages(d, layer, out);

    out[n - 1].cols = d->hidden;
    return n;
}

static void release(struct decoder *d)
{
    free(((struct kimi3 *)d)->is_kda);
}

static const struct decoder_hooks hooks = {
    .size = sizeof(struct kimi3),
    .weights_size = sizeof(struct layer),
    .renames = renames,
    .ignored = ignored,
    .read = read_config,
    .release = release,
    .layer_part = layer_part,
    .end_part = end_part,
    .is_sparse = is_sparse,
    .values = values,
    .spread = spread,
    .gather = gather,
    .layer = run_layer,
    .attention = attention,
    .ffn = ffn,
    .score = score,
    .stages = stages,
};

const struct model_family kimi_k3_family =
    DECODER_FAMILY_OF("kimi_k3", &hooks, SUMS_TORCH_F32);
const struct model_family kimi_linear_family =
    DECODER_FAMILY_OF("kimi_linear", &hooks, SUMS_TORCH_F32);
