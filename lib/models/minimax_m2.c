/*
 * MiniMax-M2 (minimax-m2.md):
 *
 *     h = h + attention(norm(h))      grouped queries; q and k normed over the
 *                                     whole projection, part of a head rotated
 *     h = h + moe(norm(h))            sigmoid scores, a bias in the choice only
 */
#include "models/minimax_m2.h"

#include "base/mem.h"
#include "base/path.h"
#include "models/decoder.h"
#include "models/eager_ops.h"
#include "models/moe.h"
#include "models/rotary.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct minimax {
    struct decoder decoder;
    int64_t heads, kv_heads, head_dim, width, experts;
    double eps;
    struct rotary rotary;
    struct routing routing;
    struct checkpoint_names names;
};

struct layer {
    struct param input_norm, post_norm, q_norm, k_norm, bias;
    struct dense_weight q, k, v, o, router;
};

static const struct minimax *minimax_of(const struct decoder *d)
{
    return (const struct minimax *)d;
}

/* ---- config.json (2) ---- */

static int read_rotary(struct minimax *m, const struct section *s,
                       struct err *err)
{
    struct rotary *r = &m->rotary;
    int64_t dims;
    double positions;

    if (config_real(s, "max_position_embeddings", 196608, &positions, err) ||
        rotary_read(r, s, 5000000, positions, err) ||
        config_count(s, "rotary_dim", m->head_dim, &dims, err))
        return -1;
    r->dims =
        isnan(r->partial) ? dims : (int64_t)((double)m->head_dim * r->partial);
    if (r->dims < 2 || r->dims % 2 || r->dims > m->head_dim)
        return config_refuse(s, "rotary_dim", err,
                             "or the partial factor gives %lld columns of %lld",
                             (long long)r->dims, (long long)m->head_dim);
    return 0;
}

static int read_config(struct minimax *m, struct err *err)
{
    static const char *const unused[] = {"attn_type_list",
                                         "layernorm_attention_alpha",
                                         "layernorm_attention_beta",
                                         "layernorm_full_attention_alpha",
                                         "layernorm_full_attention_beta",
                                         "layernorm_linear_attention_alpha",
                                         "layernorm_linear_attention_beta",
                                         "layernorm_mlp_alpha",
                                         "layernorm_mlp_beta",
                                         "max_model_len",
                                         "mlp_intermediate_size",
                                         "mtp_transformer_layers",
                                         "num_mtp_modules",
                                         "output_router_logits",
                                         "qk_norm_type",
                                         "quantization_config",
                                         "router_aux_loss_coef",
                                         "router_jitter_noise",
                                         "sliding_window",
                                         "use_mtp",
                                         NULL};
    struct decoder *d = &m->decoder;
    const struct section *s = config_root(d->config);

    if (config_count(s, "vocab_size", 200064, &d->vocab, err) ||
        config_count(s, "hidden_size", 3072, &d->hidden, err) ||
        config_count(s, "intermediate_size", 1536, &m->width, err) ||
        config_count(s, "num_hidden_layers", 62, &d->layers, err) ||
        config_count(s, "num_attention_heads", 48, &m->heads, err) ||
        config_count(s, "num_key_value_heads", 8, &m->kv_heads, err) ||
        config_count(s, "head_dim", 128, &m->head_dim, err) ||
        config_real(s, "rms_norm_eps", 1e-6, &m->eps, err) ||
        config_count(s, "num_experts_per_tok", 8, &m->routing.chosen, err) ||
        config_count(s, "num_local_experts|num_experts", 256, &m->experts,
                     err) ||
        config_flag(s, "tie_word_embeddings", false, &d->is_tied, err) ||
        config_expect_text(s, "hidden_act", "silu", err) ||
        config_expect_text(s, "scoring_func", "sigmoid", err) ||
        config_expect_flag(s, "use_qk_norm", true, err) ||
        config_expect_flag(s, "use_routing_bias", true, err) ||
        read_rotary(m, s, err))
        return -1;
    if (m->heads % m->kv_heads)
        return config_refuse(s, "num_key_value_heads", err,
                             "does not divide the heads");
    if (m->routing.chosen > m->experts)
        return config_refuse(s, "num_experts_per_tok", err,
                             "is more than the experts");
    if (config_has(s, "shared_intermediate_size")) {
        const json_t *shared = config_value(s, "shared_intermediate_size");

        if (json_integer_value(shared) != 0)
            return config_refuse(s, "shared_intermediate_size", err,
                                 "is not 0: shared experts are not supported");
    }
    config_ignore_common(s);
    config_ignore(s, unused);
    d->width = d->hidden;
    m->routing.groups = m->routing.groups_kept = 1;
    m->routing.is_normalised = true;
    m->routing.scale = 1;
    return config_finish(d->config, err);
}

/* ---- tensors (3) ---- */

static const struct rename renames[] = {
    {".block_sparse_moe.", ".mlp."},
    {".mlp.gate.e_score_correction_bias", ".mlp.e_score_correction_bias"},
    {".mlp.switch_mlp.", ".mlp.experts."},
    {".w1.weight", ".gate_proj.weight"},
    {".w3.weight", ".up_proj.weight"},
    {".w2.weight", ".down_proj.weight"},
    {NULL, NULL},
};
static const char *const ignored[] = {"mtp.*", "*.mtp.*", NULL};

static void layer_part(const struct minimax *m, int64_t i, struct layer *l,
                       struct part *p)
{
    int64_t hidden = m->decoder.hidden;
    int64_t queries = m->heads * m->head_dim, keys = m->kv_heads * m->head_dim;
    char at[64];

    snprintf(at, sizeof(at), "model.layers.%lld", (long long)i);
    part_clear(p);
    part_param(p, &l->input_norm, hidden, "%s.input_layernorm.weight", at);
    part_param(p, &l->post_norm, hidden, "%s.post_attention_layernorm.weight",
               at);
    part_dense(p, &l->q, queries, hidden, "%s.self_attn.q_proj.weight", at);
    part_dense(p, &l->k, keys, hidden, "%s.self_attn.k_proj.weight", at);
    part_dense(p, &l->v, keys, hidden, "%s.self_attn.v_proj.weight", at);
    part_dense(p, &l->o, hidden, queries, "%s.self_attn.o_proj.weight", at);
    part_param(p, &l->q_norm, queries, "%s.self_attn.q_norm.weight", at);
    part_param(p, &l->k_norm, keys, "%s.self_attn.k_norm.weight", at);
    part_dense(p, &l->router, m->experts, hidden, "%s.mlp.gate.weight", at);
    part_param(p, &l->bias, m->experts, "%s.mlp.e_score_correction_bias", at);
}

static struct experts layer_experts(const struct minimax *m, int64_t i)
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

static void norm_part(const struct minimax *m, struct param *norm,
                      struct part *p)
{
    part_clear(p);
    part_param(p, norm, m->decoder.hidden, "model.norm.weight");
}

static int expect_all(struct minimax *m, struct err *err)
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
        if (ret == 0)
            ret = experts_expect(&e, err);
    }
    part_release(&p);
    return ret ? -1 : decoder_expect(d, err);
}

/* ---- attention (4) ---- */

static struct act attention(struct decoder_pass *p, const struct layer *l,
                            const struct sequence *s, const struct act *x)
{
    const struct minimax *m = minimax_of(p->decoder);
    struct ops *o = &p->ops;
    struct rotary_shape turned = {.pairs = ROTARY_HALVES,
                                  .heads = m->heads,
                                  .width = m->head_dim,
                                  .dims = m->rotary.dims};
    struct sdpa how = {.kind = p->options->is_flash_exact ? SDPA_FLASH_EXACT
                                                          : SDPA_FLASH,
                       .heads = m->heads,
                       .kv_heads = m->kv_heads,
                       .key_dim = m->head_dim,
                       .value_dim = m->head_dim,
                       .scale = 1 / sqrt((double)m->head_dim)};
    struct rotary_tables tables =
        rotary_tables(o, &m->rotary, s->positions, s->rows);
    struct act q = op_dense(o, x, &l->q, NULL);
    struct act k = op_dense(o, x, &l->k, NULL);
    struct act v = op_dense(o, x, &l->v, NULL);

    q = op_eager_rms_norm(o, &q, &l->q_norm, q.cols, m->eps);
    k = op_eager_rms_norm(o, &k, &l->k_norm, k.cols, m->eps);
    op_rotary(&q, &tables, &turned);
    turned.heads = m->kv_heads;
    op_rotary(&k, &tables, &turned);
    struct act seen = op_sdpa(o, &q, &k, &v, &how);
    return op_dense(o, &seen, &l->o, NULL);
}

/* ---- experts (5) ---- */

static int moe(struct decoder_pass *p, const struct layer *l, int64_t layer,
               const struct act *x, struct act *y, struct err *err)
{
    const struct minimax *m = minimax_of(p->decoder);
    struct ops *o = &p->ops;
    struct experts experts = layer_experts(m, layer);
    struct act scores = op_dense(o, x, &l->router, NULL);

    if (decoder_tap(p, layer, "router", &scores, err))
        return -1;
    scores.dtype = ops_dtype(o->precision, DTYPE_F32);
    for (int64_t k = 0; k < p->count; k++) { /* one call of upstream's each */
        struct act rows = decoder_rows(p, &scores, k);

        op_eager_sigmoid(&rows);
    }
    struct routed routed = op_route(o, &scores, &l->bias, &m->routing);
    return decoder_tap_routed(p, layer, &routed, err) ||
                   op_experts(o, x, &routed, &experts, y, err)
               ? -1
               : 0;
}

/* ---- the layer ---- */

static int run_layer(struct decoder_pass *p, int64_t i, struct act *x,
                     struct err *err)
{
    const struct minimax *m = minimax_of(p->decoder);
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
        struct act y = attention(p, &l, &p->sequences[k], &normed);

        act_copy(&to, &y);
        ops_release(o, mark);
    }
    if (decoder_tap(p, i, "mixer", &mixer, err))
        return -1;
    struct act h = op_add(o, x, &mixer);
    struct act normed = op_eager_rms_norm(o, &h, &l.post_norm, x->cols, m->eps);
    if (moe(p, &l, i, &normed, &f, err) || decoder_tap(p, i, "mlp", &f, err))
        return -1;
    struct act out = op_add(o, &h, &f);
    act_copy(x, &out);
    return decoder_tap(p, i, "out", x, err);
}

static int finish(struct decoder_pass *p, const struct act *x, struct act *out,
                  struct err *err)
{
    const struct minimax *m = minimax_of(p->decoder);
    struct part part = PART_INIT;
    struct param norm;

    norm_part(m, &norm, &part);
    return decoder_final_norm(p, x, &part, &norm, m->eps, out, err);
}

static size_t values(const struct decoder *d, int64_t rows, int64_t longest)
{
    const struct minimax *m = minimax_of(d);
    struct experts e = layer_experts(m, 0);
    int64_t queries = m->heads * m->head_dim, keys = m->kv_heads * m->head_dim;
    int64_t attention_row =
        2 * d->hidden + 3 * queries + 3 * keys + 2 * m->head_dim;

    return (size_t)(rows * 5 * d->hidden + longest * attention_row) +
           moe_values(&e, &m->routing, rows);
}

static size_t stages(const struct decoder *d, int64_t layer,
                     struct decoder_stage *out)
{
    const struct minimax *m = minimax_of(d);
    const struct decoder_stage all[] = {
        {"mixer", d->hidden, false},
        {"router", m->experts, false},
        DECODER_ROUTED_STAGES(m->routing.chosen),
        {"mlp", d->hidden, false},
        {"out", d->hidden, false},
    };

    (void)layer;
    memcpy(out, all, sizeof(all));
    return sizeof(all) / sizeof(all[0]);
}

static const struct decoder_hooks hooks = {
    .values = values, .layer = run_layer, .finish = finish, .stages = stages};

static struct model *open_pack(const char *pack, bool is_kept, struct err *err)
{
    struct minimax *m = xcalloc(1, sizeof(*m));
    struct decoder *d = &m->decoder;
    char *path = path_join(pack, "config.json");

    (void)is_kept; /* generation is not offered */
    d->model.family = &minimax_m2_family;
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

const struct model_family minimax_m2_family =
    DECODER_FAMILY("minimax_m2", open_pack);
