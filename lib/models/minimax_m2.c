/*
 * MiniMax-M2 (minimax-m2.md):
 *
 *     h = h + attention(norm(h))      grouped queries; q and k normed over the
 *                                     whole projection, part of a head rotated
 *     h = h + moe(norm(h))            sigmoid scores, a bias in the choice only
 */
#include "models/minimax_m2.h"

#include "models/decoder.h"
#include "models/eager_ops.h"
#include "models/grouped.h"

#include <math.h>
#include <stdio.h>

struct minimax {
    struct decoder decoder;
    struct grouped attn;
};

struct layer {
    struct decoder_weights common;
    struct param q_norm, k_norm;
    struct grouped_weights attn;
};

static const struct minimax *minimax_of(const struct decoder *d)
{
    return (const struct minimax *)d;
}

/* ---- config.json (2) ---- */

static int read_rotary(struct minimax *m, const struct section *s,
                       struct err *err)
{
    struct rotary *r = &m->attn.rotary;
    int64_t dims;
    double positions;

    if (config_real(s, "max_position_embeddings", 196608, &positions, err) ||
        rotary_read(r, s, 5000000, positions, err) ||
        config_count(s, "rotary_dim", m->attn.head_dim, &dims, err))
        return -1;
    r->dims = isnan(r->partial)
                  ? dims
                  : (int64_t)((double)m->attn.head_dim * r->partial);
    if (r->dims < 2 || r->dims % 2 || r->dims > m->attn.head_dim)
        return config_refuse(s, "rotary_dim", err,
                             "or the partial factor gives %lld columns of %lld",
                             (long long)r->dims, (long long)m->attn.head_dim);
    return 0;
}

static int read_config(struct decoder *d, struct err *err)
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
    struct minimax *m = (struct minimax *)d;
    const struct section *s = config_root(d->config);

    if (config_count(s, "vocab_size", 200064, &d->vocab, err) ||
        config_count(s, "hidden_size", 3072, &d->hidden, err) ||
        config_count(s, "intermediate_size", 1536, &m->decoder.experts.width,
                     err) ||
        config_count(s, "num_hidden_layers", 62, &d->layers, err) ||
        config_count(s, "num_attention_heads", 48, &m->attn.heads, err) ||
        config_count(s, "num_key_value_heads", 8, &m->attn.kv_heads, err) ||
        config_count(s, "head_dim", 128, &m->attn.head_dim, err) ||
        config_real(s, "rms_norm_eps", 1e-6, &m->decoder.eps, err) ||
        config_count(s, "num_experts_per_tok", 8, &m->decoder.routing.chosen,
                     err) ||
        config_count(s, "num_local_experts|num_experts", 256,
                     &m->decoder.experts.count, err) ||
        config_flag(s, "tie_word_embeddings", false, &d->is_tied, err) ||
        config_expect_text(s, "hidden_act", "silu", err) ||
        config_expect_text(s, "scoring_func", "sigmoid", err) ||
        config_expect_flag(s, "use_qk_norm", true, err) ||
        config_expect_flag(s, "use_routing_bias", true, err) ||
        read_rotary(m, s, err))
        return -1;
    if (m->attn.heads % m->attn.kv_heads)
        return config_refuse(s, "num_key_value_heads", err,
                             "does not divide the heads");
    if (m->decoder.routing.chosen > m->decoder.experts.count)
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
    d->router = ROUTER_F32_SCORES;
    m->decoder.routing.groups = m->decoder.routing.groups_kept = 1;
    m->decoder.routing.is_normalised = true;
    m->decoder.routing.scale = 1;
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

static void layer_part(const struct decoder *d, int64_t i,
                       struct decoder_weights *w, struct part *p,
                       const char *at)
{
    const struct minimax *m = minimax_of(d);
    struct layer *l = (struct layer *)w;
    int64_t hidden = d->hidden, experts = d->experts.count;
    int64_t queries = grouped_queries(&m->attn);
    char in[96];

    (void)i;
    snprintf(in, sizeof(in), "%s.self_attn", at);
    grouped_part(&m->attn, &l->attn, hidden, queries, p, in);
    part_param(p, &l->q_norm, queries, "%s.q_norm.weight", in);
    part_param(p, &l->k_norm, grouped_keys(&m->attn), "%s.k_norm.weight", in);
    part_dense(p, &w->router, experts, hidden, "%s.mlp.gate.weight", at);
    part_param(p, &w->bias, experts, "%s.mlp.e_score_correction_bias", at);
}

/* ---- attention (4) ---- */

static struct act attention(struct decoder_pass *p,
                            const struct decoder_weights *w, int64_t layer,
                            const struct sequence *s, const struct act *x)
{
    const struct minimax *m = minimax_of(p->decoder);
    const struct layer *l = (const struct layer *)w;
    struct ops *o = &p->ops;
    struct act q = op_dense(o, x, &l->attn.q, NULL);
    struct act k = op_dense(o, x, &l->attn.k, NULL);
    struct act v = op_dense(o, x, &l->attn.v, NULL);

    q = op_eager_rms_norm(o, &q, &l->q_norm, q.cols, m->decoder.eps);
    k = op_eager_rms_norm(o, &k, &l->k_norm, k.cols, m->decoder.eps);
    struct sdpa how = grouped_turn(p, &m->attn, s, &q, &k);
    decoder_keep(p, layer, &k, &v);
    struct act seen = op_sdpa(o, &q, &k, &v, &how);
    return op_dense(o, &seen, &l->attn.o, NULL);
}

/* ---- the family ---- */

static size_t values(const struct decoder *d, int64_t rows, int64_t longest)
{
    (void)rows;
    return (size_t)(longest *
                    grouped_row_values(&minimax_of(d)->attn, d->hidden));
}

static void kept(const struct decoder *d, int64_t *keys, int64_t *values)
{
    *keys = *values = grouped_keys(&minimax_of(d)->attn);
}

static const struct decoder_hooks hooks = {
    .size = sizeof(struct minimax),
    .weights_size = sizeof(struct layer),
    .renames = renames,
    .ignored = ignored,
    .read = read_config,
    .layer_part = layer_part,
    .values = values,
    .attention = attention,
    .kept = kept,
};

const struct model_family minimax_m2_family =
    DECODER_FAMILY("minimax_m2", &hooks);
