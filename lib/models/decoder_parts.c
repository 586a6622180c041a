/* The tensors of a decoder: a layer's, those around the layers. */
#include "models/decoder_internal.h"

#include "base/mem.h"
#include "models/moe.h"

#include <stdio.h>
#include <stdlib.h>

const char decoder_embed[] = "model.embed_tokens.weight";
static const char HEAD[] = "lm_head.weight";
static const char NORM[] = "model.norm.weight";

void decoder_layer_part(const struct decoder *d, int64_t layer,
                        struct decoder_weights *w, struct part *p)
{
    char at[64];

    snprintf(at, sizeof(at), "model.layers.%lld", (long long)layer);
    part_clear(p);
    p->is_kept = d->hooks->is_norm_kept;
    part_param(p, &w->input_norm, d->hidden, "%s.input_layernorm.weight", at);
    part_param(p, &w->post_norm, d->hidden,
               "%s.post_attention_layernorm.weight", at);
    p->is_kept = false;
    d->hooks->layer_part(d, layer, w, p, at);
}

void decoder_end_part(struct decoder *d, struct part *p)
{
    part_clear(p);
    if (d->hooks->end_part)
        d->hooks->end_part(d, p);
    p->is_kept = d->hooks->is_norm_kept;
    part_param(p, &d->norm, d->hidden, "%s", NORM);
}

void decoder_dense_part(const struct decoder *d, struct decoder_weights *w,
                        struct part *p, const char *at)
{
    char in[96];

    snprintf(in, sizeof(in), "%s.mlp", at);
    expert_part(&w->ffn, p, d->dense_width, d->hidden, in);
}

void decoder_routed_part(const struct decoder *d, struct decoder_weights *w,
                         struct part *p, const char *at)
{
    const int64_t experts = d->experts.count;
    const bool is_kept = p->is_kept;
    char in[96];

    snprintf(in, sizeof(in), "%s.mlp.shared_experts", at);
    expert_part(&w->ffn, p, d->shared_width, d->hidden, in);
    p->is_kept = true;
    part_dense(p, &w->router, experts, d->hidden, "%s.mlp.gate.weight", at);
    part_param(p, &w->bias, experts, "%s.mlp.gate.e_score_correction_bias", at);
    p->is_kept = is_kept;
}

static const char *head_name(const struct decoder *d)
{
    return d->is_tied ? decoder_embed : HEAD;
}

bool decoder_has_head(const struct decoder *d)
{
    return checkpoint_has(d->weights, "%s", head_name(d));
}

int64_t decoder_head_part(const struct decoder *d, int64_t first,
                          struct dense_weight *head, struct part *p)
{
    int64_t n = d->vocab - first;

    n = n < DECODER_HEAD_ROWS ? n : DECODER_HEAD_ROWS;
    part_clear(p);
    part_rows(p, head, d->vocab, first, n, d->hidden, "%s", head_name(d));
    return n;
}

/* ---- all of them ---- */

static int expect_ends(struct decoder *d, struct part *p, struct err *err)
{
    struct dense_weight ignored;

    decoder_end_part(d, p);
    p->is_kept = false;
    part_dense(p, &ignored, d->vocab, d->hidden, "%s", decoder_embed);
    if (!d->is_tied && checkpoint_has(d->weights, "%s", HEAD))
        part_dense(p, &ignored, d->vocab, d->hidden, "%s", HEAD);
    return checkpoint_expect(d->weights, p, err);
}

int decoder_expect_all(struct decoder *d, struct err *err)
{
    struct decoder_weights *w = xcalloc(1, d->hooks->weights_size);
    struct part p = PART_INIT;
    int ret = expect_ends(d, &p, err);

    for (int64_t i = 0; i < d->layers && ret == 0; i++) {
        struct experts e = decoder_experts(d, i);

        decoder_layer_part(d, i, w, &p);
        ret = checkpoint_expect(d->weights, &p, err);
        if (ret == 0 && decoder_is_sparse(d, i))
            ret = experts_expect(&e, err);
    }
    part_release(&p);
    free(w);
    if (ret)
        return -1;
    checkpoint_skip(d->weights, HEAD); /* a copy beside a tied one */
    return checkpoint_finish(d->weights, err);
}

size_t decoder_weights_bytes(struct decoder *d)
{
    struct decoder_weights *w = xcalloc(1, d->hooks->weights_size);
    struct part p = PART_INIT;
    struct dense_weight head;
    size_t layer = 0, expert = 0, bytes;

    for (int64_t i = 0; i < d->layers; i++) {
        struct experts e = decoder_experts(d, i);

        decoder_layer_part(d, i, w, &p);
        bytes = checkpoint_bytes(d->weights, &p);
        layer = bytes > layer ? bytes : layer;
        bytes = decoder_is_sparse(d, i) ? experts_bytes(&e) : 0;
        expert = bytes > expert ? bytes : expert;
    }
    if (decoder_has_head(d)) {
        decoder_head_part(d, 0, &head, &p);
        bytes = checkpoint_bytes(d->weights, &p);
        layer = bytes > layer ? bytes : layer;
    }
    part_release(&p);
    free(w);
    return layer + expert;
}
