#ifndef MODELS_COMPRESSED_OPS_H
#define MODELS_COMPRESSED_OPS_H

#include "kernels/compressed.h"
#include "models/part.h"
#include "models/rotary.h"
#include "models/tensor_ops.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Operations of compressed attention (kernels/compressed.h) on the rows of one
 * sequence, and its compressor.  All return a new activation unless they say
 * `in place`.
 */

/* w * (x * rsqrt(mean + eps)) in f32 with a weight kept in f32, rounded once to
 * x's dtype (deepseek-v4.md 5.1). */
struct act op_kept_norm(struct ops *o, const struct act *x,
                        const struct param *weight, double eps);

/* Of each head of `width` columns, without a weight; in place. */
void op_head_norm(const struct act *x, int64_t width, double eps);

/* The last t->cosine.cols * 2 columns of every head of `width`; in place. */
void op_turn(const struct act *x, const struct rotary_tables *t, int64_t width,
             bool is_back);

/*
 * A compressor (6.1, 6.2): one entry of `width` columns for every whole window
 * of `rate` rows, pooled, normed and rotated at the window's first position.
 */
struct compressor {
    struct dense_weight kv, gate; /* [width or 2 width, hidden] */
    struct param bias, norm;      /* kept in f32 */
};

/* Adds PREFIX.kv_proj.weight, .gate_proj.weight, .position_bias and
 * .kv_norm.weight. */
void compressor_part(struct compressor *c, const struct windows *how,
                     int64_t hidden, struct part *p, const char *prefix);

struct act op_compress(struct ops *o, const struct compressor *c,
                       const struct windows *how, const struct rotary *rotary,
                       const int64_t *positions, const struct act *x,
                       double eps);

/* The indexer's picks, [rows, how->most] in the workspace. */
const int64_t *op_pick(struct ops *o, const struct act *q,
                       const struct act *key, const struct act *weight,
                       const struct picking *how);

struct act op_attend(struct ops *o, const struct act *q, const struct act *kv,
                     const struct param *sinks, const struct seeing *how);

/* Group g of x's columns by rows [g * out / groups, ...) of w, side by side. */
struct act op_grouped(struct ops *o, const struct act *x,
                      const struct dense_weight *w, int64_t groups);
#endif
