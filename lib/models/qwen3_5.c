/*
 * Qwen3.5's text model:
 *
 *     h = h + mixer(norm(h))      a gated delta net in three layers of four,
 *                                 gated attention in the fourth
 *     h = h + ffn(norm(h))        dense; or, of the larger models, experts by
 *                                 the softmax of a router, and a gated one
 *
 *     attention: q, gate = q_proj x; heads of q and k normed, a quarter of each
 *                rotated; o (grouped attention(q, k, v) * sigmoid(gate))
 *
 * All norms but the gated delta net's multiply by 1 + weight.
 */
#include "models/qwen3_5.h"

#include "base/mem.h"
#include "models/decoder.h"
#include "models/eager_ops.h"
#include "models/gated_net.h"
#include "models/grouped.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct qwen {
    struct decoder decoder;
    struct grouped attn;
    struct gated_net net;
    bool *is_linear; /* of the layers */
};

struct layer {
    struct decoder_weights common;
    struct param q_norm, k_norm;
    struct grouped_weights attn; /* q: queries and gates, head by head */
    struct dense_weight shared_gate;
    struct gated_net_weights net;
};

static const struct qwen *qwen_of(const struct decoder *d)
{
    return (const struct qwen *)d;
}

/* ---- config.json ---- */

static int read_layers(struct qwen *m, const struct section *s, struct err *err)
{
    static const char key[] = "layer_types";
    const json_t *list = config_value(s, key);
    int64_t layers = m->decoder.layers, every;

    if (config_count(s, "full_attention_interval", 4, &every, err))
        return -1;
    m->is_linear = xcalloc((size_t)layers, sizeof(*m->is_linear));
    for (int64_t i = 0; i < layers; i++)
        m->is_linear[i] = (i + 1) % every != 0;
    if (!list || json_is_null(list))
        return 0;
    if (!json_is_array(list) || json_array_size(list) != (size_t)layers)
        return config_refuse(s, key, err, "is not a list of %lld layers",
                             (long long)layers);
    for (int64_t i = 0; i < layers; i++) {
        const char *type = json_string_value(json_array_get(list, (size_t)i));

        m->is_linear[i] = type && strcmp(type, "linear_attention") == 0;
        if (!type || (!m->is_linear[i] && strcmp(type, "full_attention") != 0))
            return config_refuse(s, key, err, "holds '%.40s': not supported",
                                 type ? type : "no text");
    }
    return 0;
}

static int read_rotary(struct qwen *m, const struct section *s, struct err *err)
{
    /* of images: the three positions of a token of text are one */
    static const char *const unused[] = {"mrope_interleaved", "mrope_section",
                                         NULL};
    struct rotary *r = &m->attn.rotary;
    const struct section *inner;
    double positions, dims;

    if (config_real(s, "max_position_embeddings", 32768, &positions, err) ||
        rotary_read(r, s, 10000, positions, err) ||
        config_section(s, "rope_parameters", &inner, err))
        return -1;
    if (inner)
        config_ignore(inner, unused);
    dims = (double)m->attn.head_dim * (isnan(r->partial) ? 0.25 : r->partial);
    if (!(dims >= 2) || dims > (double)m->attn.head_dim || (int64_t)dims % 2)
        return config_refuse(s, "partial_rotary_factor", err,
                             "gives %g columns of %lld", dims,
                             (long long)m->attn.head_dim);
    r->dims = (int64_t)dims;
    return 0;
}

static bool has_experts(const struct decoder *d)
{
    return d->model.family == &qwen3_5_moe_family ||
           d->model.family == &qwen3_5_moe_text_family;
}

static int read_ffn(struct decoder *d, const struct section *s, struct err *err)
{
    static const char *const unused[] = {"intermediate_size", NULL};
    struct routing *r = &d->routing;

    if (!has_experts(d))
        return config_count(s, "intermediate_size", 12288, &d->dense_width,
                            err);
    if (config_count(s, "num_experts", 256, &d->experts.count, err) ||
        config_count(s, "moe_intermediate_size", 512, &d->experts.width, err) ||
        config_count(s, "shared_expert_intermediate_size", 512,
                     &d->shared_width, err) ||
        config_count(s, "num_experts_per_tok", 8, &r->chosen, err))
        return -1;
    config_ignore(s, unused);
    d->router = ROUTER_F32_SCORES;
    r->groups = r->groups_kept = 1;
    r->is_normalised = true;
    r->scale = 1;
    return decoder_check_groups(d, s, "num_experts", "num_experts_per_tok",
                                err);
}

static int read_text(struct qwen *m, const struct section *s, struct err *err)
{
    static const char *const unused[] = {"mamba_ssm_dtype",
                                         "mlp_only_layers",
                                         "mtp_num_hidden_layers",
                                         "mtp_use_dedicated_embeddings",
                                         "output_router_logits",
                                         "router_aux_loss_coef",
                                         NULL};
    struct decoder *d = &m->decoder;
    const bool is_large = has_experts(d);

    if (config_count(s, "vocab_size", 248320, &d->vocab, err) ||
        config_count(s, "hidden_size", is_large ? 2048 : 4096, &d->hidden,
                     err) ||
        config_count(s, "num_hidden_layers", is_large ? 40 : 32, &d->layers,
                     err) ||
        config_count(s, "num_attention_heads", 16, &m->attn.heads, err) ||
        config_count(s, "num_key_value_heads", is_large ? 2 : 4,
                     &m->attn.kv_heads, err) ||
        config_count(s, "head_dim", 256, &m->attn.head_dim, err) ||
        config_real(s, "rms_norm_eps", 1e-6, &d->eps, err) ||
        config_flag(s, "tie_word_embeddings", false, &d->is_tied, err) ||
        config_expect_text(s, "hidden_act", "silu", err) ||
        config_expect_flag(s, "attention_bias", false, err) ||
        config_expect_flag(s, "attn_output_gate", true, err) ||
        read_layers(m, s, err) || read_rotary(m, s, err) || read_ffn(d, s, err))
        return -1;
    m->net.hidden = d->hidden;
    m->net.eps = d->eps;
    if (gated_net_read(&m->net, s, err))
        return -1;
    if (m->attn.heads % m->attn.kv_heads)
        return config_refuse(s, "num_key_value_heads", err,
                             "does not divide the heads");
    config_ignore_common(s);
    config_ignore(s, unused);
    return 0;
}

static int read_config(struct decoder *d, struct err *err)
{
    /* of images, which no position here holds */
    static const char *const unused[] = {
        "image_token_id",      "language_model_only",
        "video_token_id",      "vision_config",
        "vision_end_token_id", "vision_start_token_id",
        "vision_feature_dim",  NULL};
    const struct section *root = config_root(d->config), *text;
    struct qwen *m = (struct qwen *)d;

    if (d->model.family == &qwen3_5_text_family ||
        d->model.family == &qwen3_5_moe_text_family)
        return read_text(m, root, err) ? -1 : config_finish(d->config, err);
    if (decoder_text_section(root, &text, err) || read_text(m, text, err))
        return -1;
    return decoder_finish_wrapper(d, unused, err);
}

static void release(struct decoder *d)
{
    free(((struct qwen *)d)->is_linear);
}

/* ---- tensors ---- */

static const struct rename renames[] = {
    {"^model.language_model.", "model."},
    {NULL, NULL},
};
static const char *const ignored[] = {"model.visual.*", "mtp.*", NULL};

static void layer_part(const struct decoder *d, int64_t i,
                       struct decoder_weights *w, struct part *p,
                       const char *at)
{
    const struct qwen *m = qwen_of(d);
    struct layer *l = (struct layer *)w;
    int64_t hidden = d->hidden;
    char in[96];

    if (d->experts.count) {
        part_dense(p, &w->router, d->experts.count, hidden,
                   "%s.mlp.gate.weight", at);
        part_dense(p, &l->shared_gate, 1, hidden,
                   "%s.mlp.shared_expert_gate.weight", at);
        snprintf(in, sizeof(in), "%s.mlp.shared_expert", at);
        expert_part(&w->ffn, p, d->shared_width, hidden, in);
    } else {
        decoder_dense_part(d, w, p, at);
    }
    if (m->is_linear[i]) {
        snprintf(in, sizeof(in), "%s.linear_attn", at);
        gated_net_part(&m->net, &l->net, p, in);
        return;
    }
    snprintf(in, sizeof(in), "%s.self_attn", at);
    grouped_part(&m->attn, &l->attn, hidden, 2 * grouped_queries(&m->attn), p,
                 in);
    part_param(p, &l->q_norm, m->attn.head_dim, "%s.q_norm.weight", in);
    part_param(p, &l->k_norm, m->attn.head_dim, "%s.k_norm.weight", in);
}

/* ---- attention ---- */

/* One of the two halves of every head of q_proj's result. */
static struct act half(struct ops *o, const struct qwen *m, const struct act *x,
                       int64_t which)
{
    struct act y = ops_new(o, x->rows, grouped_queries(&m->attn), x->dtype);
    struct act from = *x, to = y;

    from.rows = to.rows = x->rows * m->attn.heads;
    from.cols = 2 * m->attn.head_dim;
    to.cols = m->attn.head_dim;
    size_t mark = ops_mark(o);
    struct act part =
        op_columns(o, &from, which * m->attn.head_dim, m->attn.head_dim);
    act_copy(&to, &part);
    ops_release(o, mark);
    return y;
}

static struct act gated_attention(struct decoder_pass *p, const struct layer *l,
                                  const struct sequence *s, const struct act *x)
{
    const struct qwen *m = qwen_of(p->decoder);
    const double eps = p->decoder->eps;
    struct ops *o = &p->ops;
    struct act both = op_dense(o, x, &l->attn.q, NULL);
    struct act q = half(o, m, &both, 0), gate = half(o, m, &both, 1);
    struct act k = op_dense(o, x, &l->attn.k, NULL);
    struct act v = op_dense(o, x, &l->attn.v, NULL);

    q = op_centred_norm(o, &q, &l->q_norm, m->attn.head_dim, eps);
    k = op_centred_norm(o, &k, &l->k_norm, m->attn.head_dim, eps);
    struct sdpa how = grouped_turn(p, &m->attn, s, &q, &k);
    struct act seen = op_sdpa(o, &q, &k, &v, &how);
    op_eager_sigmoid(&gate);
    seen = op_mul(o, &seen, &gate);
    return op_dense(o, &seen, &l->attn.o, NULL);
}

static struct act attention(struct decoder_pass *p,
                            const struct decoder_weights *w, int64_t layer,
                            const struct sequence *s, const struct act *x)
{
    const struct qwen *m = qwen_of(p->decoder);
    const struct layer *l = (const struct layer *)w;

    if (m->is_linear[layer])
        return op_gated_net(&p->ops, &m->net, &l->net, x);
    return gated_attention(p, l, s, x);
}

/* ---- experts ---- */

static void score(const struct decoder *d, const struct act *logits)
{
    (void)d;
    op_eager_softmax(logits);
}

/* The shared expert times sigmoid(shared_gate x). */
static struct act shared(struct decoder_pass *p, const struct layer *l,
                         const struct act *x)
{
    struct ops *o = &p->ops;
    struct act y = decoder_unit(p, x, &l->common.ffn, &p->decoder->experts);
    struct act gate = op_dense(o, x, &l->shared_gate, NULL);

    for (int64_t k = 0; k < p->count; k++) { /* one call of upstream's each */
        struct act rows = decoder_rows(p, &gate, k);

        op_eager_sigmoid(&rows);
    }
    for (int64_t i = 0; i < y.rows * y.cols; i++) {
        if (act_is_wide(&y))
            act_d(&y)[i] *= act_d(&gate)[i / y.cols];
        else
            act_f(&y)[i] *= act_f(&gate)[i / y.cols];
    }
    op_round(&y);
    return y;
}

static int ffn(struct decoder_pass *p, const struct decoder_weights *w,
               int64_t layer, const struct act *x, struct act *y,
               struct err *err)
{
    const struct decoder *d = p->decoder;
    struct experts experts = decoder_experts(d, layer);
    struct ops *o = &p->ops;
    struct act scores;

    if (!d->experts.count)
        return decoder_ffn(p, w, layer, x, y, err);
    if (decoder_scores(p, w, layer, x, &scores, err))
        return -1;
    struct routed routed = op_route(o, &scores, NULL, &d->routing);
    routed.weight.dtype = x->dtype; /* rounded to the logits' */
    op_round(&routed.weight);
    if (decoder_tap_routed(p, layer, &routed, err) ||
        op_experts(o, x, &routed, &experts, y, err))
        return -1;
    struct act beside = shared(p, (const struct layer *)w, x);
    *y = op_add(o, y, &beside);
    return 0;
}

/* ---- the families ---- */

static struct act norm(struct ops *o, const struct act *x,
                       const struct param *weight, double eps)
{
    return op_centred_norm(o, x, weight, x->cols, eps);
}

static size_t values(const struct decoder *d, int64_t rows, int64_t longest)
{
    const struct qwen *m = qwen_of(d);
    int64_t full = grouped_row_values(&m->attn, d->hidden) +
                   5 * grouped_queries(&m->attn); /* gates, halves apart */
    int64_t linear = gated_net_row_values(&m->net);

    return (size_t)(2 * rows + longest * (full > linear ? full : linear) +
                    gated_net_state_values(&m->net) + 3 * d->hidden +
                    2 * m->attn.head_dim);
}

static const struct decoder_hooks hooks = {
    .size = sizeof(struct qwen),
    .weights_size = sizeof(struct layer),
    .renames = renames,
    .ignored = ignored,
    .read = read_config,
    .release = release,
    .layer_part = layer_part,
    .values = values,
    .norm = norm,
    .attention = attention,
    .ffn = ffn,
    .score = score,
};

const struct model_family qwen3_5_family = DECODER_FAMILY("qwen3_5", &hooks);
const struct model_family qwen3_5_text_family =
    DECODER_FAMILY("qwen3_5_text", &hooks);
const struct model_family qwen3_5_moe_family =
    DECODER_FAMILY("qwen3_5_moe", &hooks);
const struct model_family qwen3_5_moe_text_family =
    DECODER_FAMILY("qwen3_5_moe_text", &hooks);
