/*
 * Kimi-K2.5's text model, which is DeepSeek-V3 (kimi-k2.5.md):
 *
 *     h = h + mla(norm(h))            latent queries and keys, yarn
 *     h = h + ffn(norm(h))            dense in the first layers, then sigmoid
 *                                     routing in groups and a shared expert
 */
#include "models/kimi_k25.h"

#include "base/mem.h"
#include "base/path.h"
#include "models/decoder.h"
#include "models/eager_ops.h"
#include "models/mla.h"
#include "models/moe.h"
#include "models/rotary.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct kimi {
    struct decoder decoder;
    struct mla mla;
    struct rotary rotary;
    struct routing routing;
    int64_t dense_layers, dense_width;    /* the first layers' ffn */
    int64_t experts, width, shared_width; /* the others' */
    double eps;
    struct checkpoint_names names;
};

struct layer {
    struct param input_norm, post_norm, bias;
    struct mla_weights attention;
    struct dense_weight router;
    struct expert ffn; /* dense, or the shared expert */
};

static const struct kimi *kimi_of(const struct decoder *d)
{
    return (const struct kimi *)d;
}

static bool is_dense(const struct kimi *m, int64_t layer)
{
    return layer < m->dense_layers;
}

/* ---- config.json (2) ---- */

static int read_rotary(struct kimi *m, const struct section *s, struct err *err)
{
    struct rotary *r = &m->rotary;
    bool is_adjacent;
    double positions;

    if (config_real(s, "max_position_embeddings", 4096, &positions, err) ||
        rotary_read(r, s, 10000, positions, err) ||
        config_flag(s, "rope_interleave", true, &is_adjacent, err))
        return -1;
    if (!isnan(r->partial) && r->partial != 1)
        return config_refuse(s, "partial_rotary_factor", err,
                             "is not 1: not supported");
    if (m->mla.rope % 2 || m->mla.rope == 0)
        return config_refuse(s, "qk_rope_head_dim", err, "is odd or 0");
    r->dims = m->mla.rope;
    m->mla.rotary = r;
    m->mla.pairs = is_adjacent ? ROTARY_ADJACENT : ROTARY_HALVES;
    if (r->type != ROTARY_DEFAULT && r->mscale_all_dim != 0) { /* (6) */
        double g = rotary_mscale(r->factor, r->mscale_all_dim);

        m->mla.scale *= g * g;
    }
    return 0;
}

static int read_routing(struct kimi *m, const struct section *s,
                        struct err *err)
{
    struct routing *r = &m->routing;
    int64_t shared;

    r->eps = 1e-20;
    if (config_count(s, "n_routed_experts|num_local_experts", 256, &m->experts,
                     err) ||
        config_count(s, "moe_intermediate_size", 2048, &m->width, err) ||
        config_count(s, "n_shared_experts", 1, &shared, err) ||
        config_count(s, "num_experts_per_tok", 8, &r->chosen, err) ||
        config_count(s, "n_group", 8, &r->groups, err) ||
        config_count(s, "topk_group", 4, &r->groups_kept, err) ||
        config_flag(s, "norm_topk_prob", true, &r->is_normalised, err) ||
        config_real(s, "routed_scaling_factor", 2.5, &r->scale, err) ||
        config_expect_text(s, "scoring_func", "sigmoid", err) ||
        config_expect_text(s, "topk_method", "noaux_tc", err))
        return -1;
    m->shared_width = shared * m->width;
    if (r->groups_kept > r->groups || m->experts % r->groups ||
        (r->groups > 1 && m->experts / r->groups < 2))
        return config_refuse(s, "n_group", err,
                             "does not divide the experts into groups of two "
                             "or more, or is less than topk_group");
    if (r->chosen > m->experts / r->groups * r->groups_kept)
        return config_refuse(s, "num_experts_per_tok", err,
                             "is more than the experts of the groups kept");
    return 0;
}

static int read_text(struct kimi *m, const struct section *s, struct err *err)
{
    static const char *const unused[] = {"aux_loss_alpha",
                                         "ep_size",
                                         "head_dim",
                                         "moe_layer_freq",
                                         "num_nextn_predict_layers",
                                         "output_router_logits",
                                         "pretraining_tp",
                                         "qk_head_dim",
                                         "quantization_config",
                                         "router_aux_loss_coef",
                                         "seq_aux",
                                         NULL};
    struct decoder *d = &m->decoder;
    struct mla *a = &m->mla;

    *a = (struct mla){.heads = 128,
                      .q_rank = config_is_null(s, "q_lora_rank") ? 0 : 1536,
                      .kv_rank = 512,
                      .nope = 128,
                      .rope = 64,
                      .value = 128};
    if (config_count(s, "vocab_size", 129280, &d->vocab, err) ||
        config_count(s, "hidden_size", 7168, &d->hidden, err) ||
        config_count(s, "intermediate_size", 18432, &m->dense_width, err) ||
        config_count(s, "num_hidden_layers", 61, &d->layers, err) ||
        config_amount(s, "first_k_dense_replace", 3, &m->dense_layers, err) ||
        config_real(s, "rms_norm_eps", 1e-6, &m->eps, err) ||
        config_flag(s, "tie_word_embeddings", false, &d->is_tied, err) ||
        config_flag(s, "attention_bias", false, &a->has_bias, err) ||
        config_expect_text(s, "hidden_act", "silu", err) ||
        mla_read(a, s, err) || read_rotary(m, s, err) ||
        read_routing(m, s, err))
        return -1;
    a->hidden = d->width = d->hidden;
    config_ignore_common(s);
    config_ignore(s, unused);
    return 0;
}

static int read_config(struct kimi *m, struct err *err)
{
    /* of images, which no position here holds */
    static const char *const unused[] = {"ignore_index",
                                         "image_token_id",
                                         "media_placeholder_token_id",
                                         "projection_hidden_size",
                                         "projection_layer_norm_eps",
                                         "quantization_config",
                                         "use_unified_vision_chunk",
                                         "video_placeholder",
                                         "video_token_id",
                                         "vision_config",
                                         "vision_end_token_id",
                                         "vision_start_token_id",
                                         NULL};
    const struct section *root = config_root(m->decoder.config), *text;
    struct decoder *d = &m->decoder;

    if (d->model.family != &kimi_k25_family)
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
    {"^model.language_model.", "model."},
    {"^language_model.model.", "model."},
    {"^language_model.lm_head.", "lm_head."},
    {"^language_model.", "model."},
    {"^model.blocks.", "model.layers."},
    {NULL, NULL},
};
static const char *const ignored[] = {
    "vision_tower.*",          "mm_projector.*",
    "multi_modal_projector.*", "vision_model.*",
    "model.vision_tower.*",    "model.mm_projector.*",
    "*.rotary_emb.inv_freq",   NULL};

static void part_expert(struct part *p, struct expert *e, int64_t width,
                        int64_t hidden, const char *prefix)
{
    part_dense(p, &e->gate, width, hidden, "%s.gate_proj.weight", prefix);
    part_dense(p, &e->up, width, hidden, "%s.up_proj.weight", prefix);
    part_dense(p, &e->down, hidden, width, "%s.down_proj.weight", prefix);
}

static void layer_part(const struct kimi *m, int64_t i, struct layer *l,
                       struct part *p)
{
    int64_t hidden = m->decoder.hidden;
    char at[64], in[96];

    snprintf(at, sizeof(at), "model.layers.%lld", (long long)i);
    part_clear(p);
    part_param(p, &l->input_norm, hidden, "%s.input_layernorm.weight", at);
    part_param(p, &l->post_norm, hidden, "%s.post_attention_layernorm.weight",
               at);
    snprintf(in, sizeof(in), "%s.self_attn", at);
    mla_part(&m->mla, &l->attention, p, in);
    if (is_dense(m, i)) {
        snprintf(in, sizeof(in), "%s.mlp", at);
        part_expert(p, &l->ffn, m->dense_width, hidden, in);
        return;
    }
    snprintf(in, sizeof(in), "%s.mlp.shared_experts", at);
    part_expert(p, &l->ffn, m->shared_width, hidden, in);
    p->is_kept = true;
    part_dense(p, &l->router, m->experts, hidden, "%s.mlp.gate.weight", at);
    part_param(p, &l->bias, m->experts, "%s.mlp.gate.e_score_correction_bias",
               at);
}

static struct experts layer_experts(const struct kimi *m, int64_t i)
{
    struct experts e = {.weights = m->decoder.weights,
                        .count = m->experts,
                        .in = m->decoder.hidden,
                        .width = m->width,
                        .unit = expert_swiglu};

    snprintf(e.prefix, sizeof(e.prefix), "model.layers.%lld.mlp.experts",
             (long long)i);
    return e;
}

static void norm_part(const struct kimi *m, struct param *norm, struct part *p)
{
    part_clear(p);
    part_param(p, norm, m->decoder.hidden, "model.norm.weight");
}

static int expect_all(struct kimi *m, struct err *err)
{
    struct decoder *d = &m->decoder;
    struct part p = PART_INIT;
    struct layer layer;
    struct param norm;
    int ret;

    norm_part(m, &norm, &p);
    ret = checkpoint_expect(d->weights, &p, err);
    for (int64_t i = 0; i < d->layers && ret == 0; i++) {
        struct experts e = layer_experts(m, i);

        layer_part(m, i, &layer, &p);
        ret = checkpoint_expect(d->weights, &p, err);
        if (ret == 0 && !is_dense(m, i))
            ret = experts_expect(&e, err);
    }
    part_release(&p);
    return ret ? -1 : decoder_expect(d, err);
}

/* ---- experts (7) ---- */

static int moe(struct decoder_pass *p, const struct layer *l, int64_t layer,
               const struct act *x, struct act *y, struct err *err)
{
    const struct kimi *m = kimi_of(p->decoder);
    struct ops *o = &p->ops;
    struct experts experts = layer_experts(m, layer);
    struct act wide = *x, routed_sum;

    wide.dtype = ops_dtype(o->precision, DTYPE_F32); /* all of the router */
    struct act scores = op_dense(o, &wide, &l->router, NULL);
    if (decoder_tap(p, layer, "router", &scores, err))
        return -1;
    for (int64_t k = 0; k < p->count; k++) { /* one call of upstream's each */
        struct act rows = decoder_rows(p, &scores, k);

        op_eager_sigmoid(&rows);
    }
    struct routed routed = op_route(o, &scores, &l->bias, &m->routing);
    if (decoder_tap_routed(p, layer, &routed, err) ||
        op_experts(o, x, &routed, &experts, &routed_sum, err))
        return -1;
    struct act shared = decoder_unit(p, x, &l->ffn, &experts);
    *y = op_add(o, &routed_sum, &shared);
    return 0;
}

/* ---- the layer ---- */

static int ffn(struct decoder_pass *p, const struct layer *l, int64_t layer,
               const struct act *x, struct act *y, struct err *err)
{
    static const struct experts unit = {.unit = expert_swiglu};

    if (!is_dense(kimi_of(p->decoder), layer))
        return moe(p, l, layer, x, y, err);
    *y = decoder_unit(p, x, &l->ffn, &unit);
    return 0;
}

static int run_layer(struct decoder_pass *p, int64_t i, struct act *x,
                     struct err *err)
{
    const struct kimi *m = kimi_of(p->decoder);
    enum sdpa_kind kind = mla_sdpa(&m->mla, p->options->is_flash_exact);
    struct ops *o = &p->ops;
    struct part part = PART_INIT;
    struct layer l;

    layer_part(m, i, &l, &part);
    int ret =
        checkpoint_load(p->decoder->weights, &part, CHECKPOINT_LAYER, err);
    part_release(&part);
    if (ret)
        return -1;
    struct act mixer = ops_new(o, x->rows, x->cols, x->dtype), f;
    for (int64_t k = 0; k < p->count; k++) {
        size_t mark = ops_mark(o);
        struct act rows = decoder_rows(p, x, k);
        struct act to = decoder_rows(p, &mixer, k);
        struct act normed =
            op_eager_rms_norm(o, &rows, &l.input_norm, x->cols, m->eps);
        struct act y = op_mla(o, &m->mla, &l.attention, &normed,
                              p->sequences[k].positions, kind);

        act_copy(&to, &y);
        ops_release(o, mark);
    }
    if (decoder_tap(p, i, "mixer", &mixer, err))
        return -1;
    struct act h = op_add(o, x, &mixer);
    struct act normed = op_eager_rms_norm(o, &h, &l.post_norm, x->cols, m->eps);
    if (ffn(p, &l, i, &normed, &f, err) || decoder_tap(p, i, "mlp", &f, err))
        return -1;
    struct act out = op_add(o, &h, &f);
    act_copy(x, &out);
    return decoder_tap(p, i, "out", x, err);
}

static int finish(struct decoder_pass *p, const struct act *x, struct act *out,
                  struct err *err)
{
    const struct kimi *m = kimi_of(p->decoder);
    struct part part = PART_INIT;
    struct param norm;

    norm_part(m, &norm, &part);
    return decoder_final_norm(p, x, &part, &norm, m->eps, out, err);
}

static size_t values(const struct decoder *d, int64_t rows, int64_t longest)
{
    const struct kimi *m = kimi_of(d);
    struct experts e = layer_experts(m, 0);
    int64_t unit =
        m->shared_width > m->dense_width ? m->shared_width : m->dense_width;

    return (size_t)(rows * 9 * d->hidden +
                    longest *
                        (2 * d->hidden + 3 * unit + mla_row_values(&m->mla))) +
           moe_values(&e, &m->routing, rows);
}

static size_t stages(const struct decoder *d, int64_t layer,
                     struct decoder_stage *out)
{
    const struct kimi *m = kimi_of(d);
    const struct decoder_stage router[] = {
        {"router", m->experts, true}, DECODER_ROUTED_STAGES(m->routing.chosen)};
    size_t n = 0;

    out[n++] = (struct decoder_stage){"mixer", d->hidden, false};
    for (size_t k = 0; !is_dense(m, layer) && k < 3; k++)
        out[n++] = router[k];
    out[n++] = (struct decoder_stage){"mlp", d->hidden, false};
    out[n++] = (struct decoder_stage){"out", d->hidden, false};
    return n;
}

static const struct decoder_hooks hooks = {
    .values = values, .layer = run_layer, .finish = finish, .stages = stages};

static struct model *open_as(const struct model_family *family,
                             const char *pack, struct err *err)
{
    struct kimi *m = xcalloc(1, sizeof(*m));
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
static struct model *open_k25(const char *pack, bool is_kept, struct err *err)
{
    (void)is_kept;
    return open_as(&kimi_k25_family, pack, err);
}

static struct model *open_k2(const char *pack, bool is_kept, struct err *err)
{
    (void)is_kept;
    return open_as(&kimi_k2_family, pack, err);
}

static struct model *open_v3(const char *pack, bool is_kept, struct err *err)
{
    (void)is_kept;
    return open_as(&deepseek_v3_family, pack, err);
}

const struct model_family kimi_k25_family =
    DECODER_FAMILY("kimi_k25", open_k25);
const struct model_family kimi_k2_family = DECODER_FAMILY("kimi_k2", open_k2);
const struct model_family deepseek_v3_family =
    DECODER_FAMILY("deepseek_v3", open_v3);
