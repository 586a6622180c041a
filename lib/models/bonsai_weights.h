#ifndef MODELS_BONSAI_WEIGHTS_H
#define MODELS_BONSAI_WEIGHTS_H

#include "base/err.h"
#include "models/bonsai_config.h"
#include "models/weights.h"
#include "safetensors/safetensors.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * A pack's tensors, one part of the model at a time.  Every expected tensor is
 * described in one place (the slots of a part); the same description checks
 * names, dtypes and shapes when the pack is opened, sizes the one buffer that
 * parts are read into, and reads them.  A part is valid until the next load,
 * unless the weights are kept (generation reads each layer many times).
 */

struct bonsai_layer {
    bool is_full;
    struct param input_norm, post_norm;
    struct linear gate, up, down;
    /* full attention */
    struct linear q, k, v, o;
    struct param q_norm, k_norm;
    /* gated delta net */
    struct linear qkv, z, out;
    struct dense_weight a, b;
    struct param conv, a_log, dt_bias, gdn_norm; /* conv [channels, 4] */
};

struct bonsai_vision_stem {
    struct affine patch_embed; /* in: [temporal, patch, patch, channel] */
    struct param pos_embed;    /* [positions, hidden] */
};

struct bonsai_vision_block {
    struct scale_shift norm1, norm2;
    struct affine qkv, proj, fc1, fc2;
};

struct bonsai_vision_merger {
    struct scale_shift norm;
    struct affine fc1, fc2;
};

struct bonsai_weights;

/*
 * Opens the pack's tensors and checks all of them against the configuration:
 * every expected tensor there, of its dtype and shape, none left over, and
 * every sign vector equal to the manifest's.  `config` must outlive it.
 */
struct bonsai_weights *bonsai_weights_open(const struct bonsai_config *config,
                                           const char *pack, bool is_kept,
                                           struct err *err);

/* A line a tensor (models/weight_line.h); reads all of them. */
json_t *bonsai_weights_ledger(const struct bonsai_weights *w, struct err *err);
void bonsai_weights_close(struct bonsai_weights *w); /* NULL is fine */

/* Of the largest part, loaded. */
size_t bonsai_weights_bytes(const struct bonsai_weights *w);

/* Reading a packed part also refuses a code 3, a negative or non-finite scale
 * and a bias that is not the negated scale. */
int bonsai_load_layer(struct bonsai_weights *w, int64_t layer,
                      const struct bonsai_layer **out, struct err *err);
int bonsai_load_stem(struct bonsai_weights *w, struct bonsai_vision_stem *out,
                     struct err *err);
int bonsai_load_vision_block(struct bonsai_weights *w, int64_t block,
                             struct bonsai_vision_block *out, struct err *err);
int bonsai_load_merger(struct bonsai_weights *w,
                       struct bonsai_vision_merger *out, struct err *err);
int bonsai_load_final_norm(struct bonsai_weights *w, struct param *out,
                           struct err *err);

/* Rows [first, first + count) of the embedding or of the output head; the
 * buffer serves at most BONSAI_HEAD_ROWS rows. */
enum { BONSAI_HEAD_ROWS = 4096 };
int bonsai_load_embedding(struct bonsai_weights *w, int64_t first,
                          int64_t count, struct linear *out, struct err *err);
int bonsai_load_head(struct bonsai_weights *w, int64_t first, int64_t count,
                     struct linear *out, struct err *err);

/* The dtype that the whole of a stored tensor has, by full name. */
enum dtype bonsai_weights_dtype(const struct bonsai_weights *w,
                                const char *name);
#endif
