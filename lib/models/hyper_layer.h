#ifndef MODELS_HYPER_LAYER_H
#define MODELS_HYPER_LAYER_H

#include "models/decoder.h"
#include "models/hyper.h"

/*
 * decoder_layer() of a residual of streams (models/hyper.h):
 *
 *     x = mix(attention(norm(in x)), x); x = mix(ffn(norm(in x)), x)
 */
struct hyper_sites {
    const struct hyper *hyper;
    const struct hyper_weights *attention, *ffn;
};

int hyper_layer(struct decoder_pass *p, const struct hyper_sites *sites,
                const struct decoder_weights *w, int64_t layer, struct act *x,
                struct err *err);
#endif
