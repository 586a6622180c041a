/*
 * Kimi-K2.5's text model, which is DeepSeek-V3 (kimi-k2.5.md):
 *
 *     h = h + mla(norm(h))            latent queries and keys, yarn
 *     h = h + ffn(norm(h))            dense in the first layers, then sigmoid
 *                                     routing in groups and a shared expert
 */
#include "models/kimi_k25.h"

#include "models/decoder.h"
#include "models/mla.h"
#include "models/rotary.h"

#include <math.h>
#include <stdio.h>

struct kimi {
    struct decoder decoder;
    struct mla mla;
    struct rotary rotary;
    int64_t dense_layers;       /* the first ones */
    int64_t image_id, video_id; /* places of images; -1: none */
};

struct layer {
    struct decoder_weights common;
    struct mla_weights attention;
};

static const struct kimi *kimi_of(const struct decoder *d)
{
    return (const struct kimi *)d;
}

static bool is_sparse(const struct decoder *d, int64_t layer)
{
    return layer >= kimi_of(d)->dense_layers;
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

static int read_text(struct kimi *m, const struct section *s, struct err *err)
{
    static const char *const unused[] = {"aux_loss_alpha",
                                         "ep_size",
                                         "head_dim",
                                         "moe_layer_freq",
                                         "num_mtp_layers",
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
    d->experts.count = 256;
    d->routing.groups = 8;
    d->routing.groups_kept = 4;
    if (config_count(s, "vocab_size", 129280, &d->vocab, err) ||
        config_count(s, "hidden_size", 7168, &d->hidden, err) ||
        config_count(s, "intermediate_size", 18432, &m->decoder.dense_width,
                     err) ||
        config_count(s, "num_hidden_layers", 61, &d->layers, err) ||
        config_amount(s, "first_k_dense_replace", 3, &m->dense_layers, err) ||
        config_real(s, "rms_norm_eps", 1e-6, &m->decoder.eps, err) ||
        config_flag(s, "tie_word_embeddings", false, &d->is_tied, err) ||
        config_flag(s, "attention_bias", false, &a->has_bias, err) ||
        config_expect_text(s, "hidden_act", "silu", err) ||
        mla_read(a, s, err) || read_rotary(m, s, err) ||
        decoder_read_routing(d, s, err))
        return -1;
    a->hidden = d->hidden;
    config_ignore_common(s);
    config_ignore(s, unused);
    return 0;
}

static int read_config(struct decoder *d, struct err *err)
{
    /* of images, which have no features here */
    static const char *const unused[] = {"ignore_index",
                                         "media_placeholder_token_id",
                                         "projection_hidden_size",
                                         "projection_layer_norm_eps",
                                         "quantization_config",
                                         "use_unified_vision_chunk",
                                         "video_placeholder",
                                         "vision_config",
                                         "vision_end_token_id",
                                         "vision_start_token_id",
                                         NULL};
    const struct section *root = config_root(d->config), *text;
    struct kimi *m = (struct kimi *)d;

    m->image_id = m->video_id = -1;
    if (d->model.family != &kimi_k25_family)
        return read_text(m, root, err) ? -1 : config_finish(d->config, err);
    if (decoder_text_section(root, &text, err) || read_text(m, text, err) ||
        config_amount(root, "image_token_id", 163605, &m->image_id, err) ||
        config_amount(root, "video_token_id", 163840, &m->video_id, err))
        return -1;
    return decoder_finish_wrapper(d, unused, err);
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

static void layer_part(const struct decoder *d, int64_t i,
                       struct decoder_weights *w, struct part *p,
                       const char *at)
{
    struct layer *l = (struct layer *)w;
    char in[96];

    snprintf(in, sizeof(in), "%s.self_attn", at);
    mla_part(&kimi_of(d)->mla, &l->attention, p, in);
    (is_sparse(d, i) ? decoder_routed_part : decoder_dense_part)(d, w, p, at);
}

/* ---- the family ---- */

static struct act attention(struct decoder_pass *p,
                            const struct decoder_weights *w, int64_t layer,
                            const struct sequence *s, const struct act *x)
{
    const struct mla *a = &kimi_of(p->decoder)->mla;
    const struct layer *l = (const struct layer *)w;

    (void)layer;
    return op_mla(&p->ops, a, &l->attention, x, s->positions,
                  mla_sdpa(a, p->options->is_flash_exact));
}

/* Transformers embeds places of images as token 0 before their features come
 * there, and leaves them so when none do. */
static int64_t embedded(const struct decoder *d, int64_t id)
{
    const struct kimi *m = kimi_of(d);

    return id == m->image_id || id == m->video_id ? 0 : id;
}

static size_t values(const struct decoder *d, int64_t rows, int64_t longest)
{
    (void)rows;
    return (size_t)(longest * mla_row_values(&kimi_of(d)->mla));
}

static const struct decoder_hooks hooks = {
    .size = sizeof(struct kimi),
    .weights_size = sizeof(struct layer),
    .renames = renames,
    .ignored = ignored,
    .read = read_config,
    .layer_part = layer_part,
    .is_sparse = is_sparse,
    .embedded = embedded,
    .values = values,
    .attention = attention,
};

const struct model_family kimi_k25_family = DECODER_FAMILY("kimi_k25", &hooks);
const struct model_family kimi_k2_family = DECODER_FAMILY("kimi_k2", &hooks);
const struct model_family deepseek_v3_family =
    DECODER_FAMILY("deepseek_v3", &hooks);
