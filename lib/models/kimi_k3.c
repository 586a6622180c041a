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
#include "base/path.h"
#include "kernels/residual.h"
#include "kernels/situ.h"
#include "kernels/softmax.h"
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

struct kimi3 {
    struct decoder decoder;
    struct mla mla;
    struct kda kda;
    bool *is_kda;  /* [layers] */
    int64_t block; /* layers of a residual block; 0: none */
    struct unit unit;
    struct routing routing;
    bool is_softmax, is_latent_normed;
    int64_t dense_layers, every, dense_width;
    int64_t experts, width, latent; /* experts 0: all dense; latent 0: none */
    int64_t shared_width;           /* 0: no shared expert */
    double eps;
    struct checkpoint_names names;
};

struct mix {
    struct param norm, proj;
};

struct layer {
    struct param input_norm, post_norm, bias, latent_norm;
    struct mix before_attention, before_ffn;
    struct kda_weights kda;
    struct mla_weights mla;
    struct dense_weight router, latent_down, latent_up;
    struct expert ffn; /* dense, or the shared expert */
};

static const struct kimi3 *kimi3_of(const struct decoder *d)
{
    return (const struct kimi3 *)d;
}

static bool is_moe(const struct kimi3 *m, int64_t layer)
{
    return m->experts && layer >= m->dense_layers && layer % m->every == 0;
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
    *k = (struct kda){.hidden = m->decoder.hidden, .bound = NAN, .eps = m->eps};
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
    struct routing *r = &m->routing;
    bool is_grouped;
    int64_t shared;
    const char *scores;

    if (config_amount(s, "num_experts", 0, &m->experts, err) ||
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
        config_count(s, "num_experts_per_token", m->experts ? -1 : 1,
                     &r->chosen, err) ||
        config_count(s, "moe_intermediate_size", m->experts ? -1 : 1, &m->width,
                     err) ||
        config_expect_text(s, "topk_method", "noaux_tc", err))
        return -1;
    m->shared_width = shared * m->width;
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
    if (m->experts == 0)
        return 0;
    if (r->groups_kept > r->groups || m->experts % r->groups ||
        (r->groups > 1 && m->experts / r->groups < 2))
        return config_refuse(s, "num_expert_group", err,
                             "does not divide the experts into groups of two "
                             "or more, or is less than topk_group");
    if (r->chosen > m->experts / r->groups * r->groups_kept)
        return config_refuse(s, "num_experts_per_token", err,
                             "is more than the experts of the groups kept");
    return 0;
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
        config_count(s, "intermediate_size", 11008, &m->dense_width, err) ||
        config_count(s, "num_hidden_layers", 32, &d->layers, err) ||
        config_real(s, "rms_norm_eps", 1e-6, &m->eps, err) ||
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
    config_ignore_common(s);
    config_ignore(s, unused);
    return 0;
}

static int read_config(struct kimi3 *m, struct err *err)
{
    static const char *const unused[] = {
        "ignore_index", "media_placeholder_token_id", "quantization_config",
        "vision_config", NULL};
    const struct section *root = config_root(m->decoder.config), *text;
    struct decoder *d = &m->decoder;

    if (d->model.family != &kimi_k3_family)
        return read_text(m, root, err) ? -1 : config_finish(d->config, err);
    if (config_section(root, "text_config", &text, err))
        return -1;
    if (!text)
        return config_refuse(root, "text_config", err, "is missing");
    if (read_text(m, text, err) ||
        config_flag(root, "tie_word_embeddings", d->is_tied, &d->is_tied, err))
        return -1;
    config_ignore_common(root);
    config_ignore(root, unused);
    return config_finish(d->config, err);
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

static void part_expert(struct part *p, struct expert *e, int64_t width,
                        int64_t hidden, const char *prefix)
{
    part_dense(p, &e->gate, width, hidden, "%s.gate_proj.weight", prefix);
    part_dense(p, &e->up, width, hidden, "%s.up_proj.weight", prefix);
    part_dense(p, &e->down, hidden, width, "%s.down_proj.weight", prefix);
}

static void part_moe(const struct kimi3 *m, struct layer *l, struct part *p,
                     const char *at)
{
    int64_t hidden = m->decoder.hidden;
    char in[96];

    part_dense(p, &l->router, m->experts, hidden, "%s.mlp.gate.weight", at);
    part_param(p, &l->bias, m->experts, "%s.mlp.e_score_correction_bias", at);
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
    if (m->shared_width)
        part_expert(p, &l->ffn, m->shared_width, hidden, in);
}

static void layer_part(const struct kimi3 *m, int64_t i, struct layer *l,
                       struct part *p)
{
    int64_t hidden = m->decoder.hidden;
    char at[64], in[96];

    snprintf(at, sizeof(at), "model.layers.%lld", (long long)i);
    part_clear(p);
    part_param(p, &l->input_norm, hidden, "%s.input_layernorm.weight", at);
    part_param(p, &l->post_norm, hidden, "%s.post_attention_layernorm.weight",
               at);
    part_mix(m, &l->before_attention, p, at, "self_attention_res");
    part_mix(m, &l->before_ffn, p, at, "mlp_res");
    snprintf(in, sizeof(in), "%s.self_attn", at);
    if (m->is_kda[i])
        kda_part(&m->kda, &l->kda, p, in);
    else
        mla_part(&m->mla, &l->mla, p, in);
    snprintf(in, sizeof(in), "%s.mlp", at);
    if (is_moe(m, i))
        part_moe(m, l, p, at);
    else
        part_expert(p, &l->ffn, m->dense_width, hidden, in);
}

static struct act situ_unit(struct ops *o, const struct act *gate,
                            const struct act *up, const void *ctx);

static struct experts layer_experts(const struct kimi3 *m, int64_t i)
{
    struct experts e = {.weights = m->decoder.weights,
                        .count = m->experts,
                        .in = m->latent ? m->latent : m->decoder.hidden,
                        .width = m->width,
                        .unit = situ_unit,
                        .ctx = &m->unit};

    snprintf(e.prefix, sizeof(e.prefix), "model.layers.%lld.mlp.experts",
             (long long)i);
    return e;
}

static void end_part(const struct kimi3 *m, struct mix *mix, struct param *norm,
                     struct part *p)
{
    part_clear(p);
    part_mix(m, mix, p, "model", "output_attn_res");
    part_param(p, norm, m->decoder.hidden, "model.norm.weight");
}

static int expect_all(struct kimi3 *m, struct err *err)
{
    struct decoder *d = &m->decoder;
    struct part p = PART_INIT;
    struct layer layer;
    struct param norm;
    struct mix mix;
    int ret;

    end_part(m, &mix, &norm, &p);
    ret = checkpoint_expect(d->weights, &p, err);
    for (int64_t i = 0; i < d->layers && ret == 0; i++) {
        struct experts e = layer_experts(m, i);

        layer_part(m, i, &layer, &p);
        ret = checkpoint_expect(d->weights, &p, err);
        if (ret == 0 && is_moe(m, i))
            ret = experts_expect(&e, err);
    }
    part_release(&p);
    return ret ? -1 : decoder_expect(d, err);
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
    size_t size = act_is_wide(x) ? sizeof(double) : sizeof(float);

    for (int64_t r = 0; r < x->rows; r++)
        memcpy((char *)x->data + (size_t)(r * x->cols + k * from->cols) * size,
               (const char *)from->data + (size_t)(r * from->cols) * size,
               (size_t)from->cols * size);
}

static void spread(struct decoder_pass *p, const struct act *embedded,
                   const struct act *x)
{
    size_t size = act_is_wide(x) ? sizeof(double) : sizeof(float);

    (void)p;
    memset(x->data, 0, (size_t)(x->rows * x->cols) * size);
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
        residual_mix_f64(act_d(&y), act_d(x), w->norm.d, w->proj.d, m->eps,
                         blocks, hidden, x->cols, x->rows);
    else
        residual_mix(act_f(&y), act_f(x), w->norm.f, w->proj.f, m->eps, blocks,
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
             y.rows * y.cols, y.dtype);
    return y;
}

static void score(const struct kimi3 *m, const struct act *x)
{
    if (!m->is_softmax) {
        op_eager_sigmoid(x);
        return;
    }
    for (int64_t r = 0; r < x->rows; r++) {
        struct act row = act_rows(x, r, 1);

        if (act_is_wide(x))
            softmax_row_f64(act_d(&row), act_d(&row), row.cols);
        else
            softmax_row(act_f(&row), act_f(&row), row.cols);
    }
}

/* Routing sees x itself, the experts its latent. */
static int moe(struct decoder_pass *p, const struct layer *l, int64_t layer,
               const struct act *x, struct act *y, struct err *err)
{
    const struct kimi3 *m = kimi3_of(p->decoder);
    struct ops *o = &p->ops;
    struct experts experts = layer_experts(m, layer);
    struct act wide = *x, z = *x;

    wide.dtype = ops_dtype(o->precision, DTYPE_F32);
    struct act scores = op_dense(o, &wide, &l->router, NULL);
    if (decoder_tap(p, layer, "router", &scores, err))
        return -1;
    for (int64_t k = 0; k < p->count; k++) {
        struct act rows = decoder_rows(p, &scores, k);

        score(m, &rows);
    }
    struct routed routed = op_route(o, &scores, &l->bias, &m->routing);
    if (decoder_tap_routed(p, layer, &routed, err))
        return -1;
    if (m->latent)
        z = op_dense(o, x, &l->latent_down, NULL);
    if (op_experts(o, &z, &routed, &experts, y, err))
        return -1;
    if (m->latent && m->is_latent_normed)
        *y = op_eager_rms_norm(o, y, &l->latent_norm, y->cols, m->eps);
    if (m->latent)
        *y = op_dense(o, y, &l->latent_up, NULL);
    if (m->shared_width) {
        struct act shared = decoder_unit(p, x, &l->ffn, &experts);

        *y = op_add(o, y, &shared);
    }
    return 0;
}

static int ffn(struct decoder_pass *p, const struct layer *l, int64_t layer,
               const struct act *x, struct act *y, struct err *err)
{
    const struct kimi3 *m = kimi3_of(p->decoder);
    struct experts unit = {.unit = situ_unit, .ctx = &m->unit};

    if (is_moe(m, layer))
        return moe(p, l, layer, x, y, err);
    *y = decoder_unit(p, x, &l->ffn, &unit);
    return 0;
}

/* ---- the layer ---- */

static struct act attention(struct decoder_pass *p, const struct layer *l,
                            int64_t layer, const struct sequence *s,
                            const struct act *x)
{
    const struct kimi3 *m = kimi3_of(p->decoder);

    if (m->is_kda[layer])
        return op_kda(&p->ops, &m->kda, &l->kda, x);
    return op_mla(&p->ops, &m->mla, &l->mla, x, s->positions, SDPA_MATH);
}

/* What attention makes of the mixed residual, [rows, hidden]. */
static struct act mixer_of(struct decoder_pass *p, const struct layer *l,
                           int64_t layer, const struct act *x)
{
    const struct kimi3 *m = kimi3_of(p->decoder);
    struct ops *o = &p->ops;
    struct act mixer = ops_new(o, x->rows, m->decoder.hidden, x->dtype);

    for (int64_t k = 0; k < p->count; k++) {
        size_t mark = ops_mark(o);
        struct act rows = decoder_rows(p, x, k);
        struct act to = decoder_rows(p, &mixer, k);
        struct act h =
            mix(o, m, &rows, blocks_before(m, layer), &l->before_attention);

        h = op_eager_rms_norm(o, &h, &l->input_norm, h.cols, m->eps);
        struct act y = attention(p, l, layer, &p->sequences[k], &h);
        act_copy(&to, &y);
        ops_release(o, mark);
    }
    return mixer;
}

static int run_layer(struct decoder_pass *p, int64_t i, struct act *x,
                     struct err *err)
{
    const struct kimi3 *m = kimi3_of(p->decoder);
    struct ops *o = &p->ops;
    struct part part = PART_INIT;
    struct layer l;
    struct act f;

    layer_part(m, i, &l, &part);
    int ret =
        checkpoint_load(p->decoder->weights, &part, CHECKPOINT_LAYER, err);
    part_release(&part);
    if (ret)
        return -1;
    struct act mixer = mixer_of(p, &l, i, x);
    if (decoder_tap(p, i, "mixer", &mixer, err))
        return -1;
    struct act prefix = part_of(o, x, 0, m->decoder.hidden);
    if (starts_block(m, i)) { /* the entering prefix, not h */
        put_part(x, 1 + blocks_before(m, i), &prefix);
        prefix = mixer;
    } else {
        prefix = op_add(o, &prefix, &mixer);
    }
    put_part(x, 0, &prefix);
    struct act h = mix(o, m, x, blocks_before(m, i + 1), &l.before_ffn);
    h = op_eager_rms_norm(o, &h, &l.post_norm, h.cols, m->eps);
    if (ffn(p, &l, i, &h, &f, err) || decoder_tap(p, i, "mlp", &f, err))
        return -1;
    prefix = op_add(o, &prefix, &f);
    put_part(x, 0, &prefix);
    return decoder_tap(p, i, "out", &prefix, err);
}

static int finish(struct decoder_pass *p, const struct act *x, struct act *out,
                  struct err *err)
{
    const struct kimi3 *m = kimi3_of(p->decoder);
    struct part part = PART_INIT;
    struct param norm;
    struct mix last;

    end_part(m, &last, &norm, &part);
    int ret =
        checkpoint_load(p->decoder->weights, &part, CHECKPOINT_LAYER, err);
    part_release(&part);
    if (ret)
        return -1;
    struct act h =
        mix(&p->ops, m, x, blocks_before(m, m->decoder.layers), &last);
    *out = op_eager_rms_norm(&p->ops, &h, &norm, h.cols, m->eps);
    return 0;
}

static size_t values(const struct decoder *d, int64_t rows, int64_t longest)
{
    const struct kimi3 *m = kimi3_of(d);
    struct experts e = layer_experts(m, 0);
    int64_t unit =
        m->shared_width > m->dense_width ? m->shared_width : m->dense_width;
    int64_t row = mla_row_values(&m->mla), kda = kda_row_values(&m->kda);

    return (size_t)(rows * (10 * d->hidden + 3 * unit + 2 * m->latent) +
                    longest * (2 * d->hidden + (row > kda ? row : kda)) +
                    kda_state_values(&m->kda)) +
           moe_values(&e, &m->routing, rows);
}

static size_t stages(const struct decoder *d, int64_t layer,
                     struct decoder_stage *out)
{
    const struct kimi3 *m = kimi3_of(d);
    const struct decoder_stage router[] = {
        {"router", m->experts, true}, DECODER_ROUTED_STAGES(m->routing.chosen)};
    size_t n = 0;

    out[n++] = (struct decoder_stage){"mixer", d->hidden, false};
    for (size_t k = 0; is_moe(m, layer) && k < 3; k++)
        out[n++] = router[k];
    out[n++] = (struct decoder_stage){"mlp", d->hidden, false};
    out[n++] = (struct decoder_stage){"out", d->hidden, false};
    return n;
}

static void release(struct decoder *d)
{
    free(((struct kimi3 *)d)->is_kda);
}

static const struct decoder_hooks hooks = {.values = values,
                                           .layer = run_layer,
                                           .finish = finish,
                                           .spread = spread,
                                           .stages = stages,
                                           .release = release};

static struct model *open_as(const struct model_family *family,
                             const char *pack, struct err *err)
{
    struct kimi3 *m = xcalloc(1, sizeof(*m));
    struct decoder *d = &m->decoder;
    char *path = path_join(pack, "config.json");

    d->model.family = family;
    d->hooks = &hooks;
    d->config = config_open(path, err);
    free(path);
    if (d->config && read_config(m, err) == 0) {
        m->names = (struct checkpoint_names){renames, ignored, d->layers};
        d->weights = checkpoint_open(pack, &m->names, err);
        if (d->weights && expect_all(m, err) == 0)
            return &d->model;
    }
    decoder_close(&d->model);
    return NULL;
}

/* Generation is not offered: what would be kept for it is not. */
static struct model *open_k3(const char *pack, bool is_kept, struct err *err)
{
    (void)is_kept;
    return open_as(&kimi_k3_family, pack, err);
}

static struct model *open_linear(const char *pack, bool is_kept,
                                 struct err *err)
{
    (void)is_kept;
    return open_as(&kimi_linear_family, pack, err);
}

const struct model_family kimi_k3_family =
    DECODER_FAMILY_OF("kimi_k3", open_k3, SUMS_CHAIN128);
const struct model_family kimi_linear_family =
    DECODER_FAMILY_OF("kimi_linear", open_linear, SUMS_CHAIN128);
