#ifndef KERNELS_POOLS_H
#define KERNELS_POOLS_H

#include "tensor/dtype.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Keys selected by pools (glm-5-next.md 7).  Pool p of a sequence is its tokens
 * p size .. p size + size - 1; tokens after the last whole pool are in none.
 * Everything is f32 (double in the _f64 forms), rows are divided among the
 * threads.
 */
struct pools {
    int64_t size;       /* tokens of a pool */
    int64_t heads, dim; /* of the queries; a pool has one key for all heads */
    int64_t chosen;     /* pools a row takes, when there are as many */
    bool has_tail;      /* a row sees the tokens of its unfinished pool */
    double scale;       /* of a dot product */
};

/*
 * A key a pool: for each column c the softmax, over the members j of a pool, of
 * gate[j][c] + place[j][c], rounded to t, weighs them:
 * y[p][c] = t(sum over j of t(w[j] * x[j][c])), j ascending.  x and gate
 * [tokens, dim], place [size, dim], y [tokens / size, dim].
 */
void pool_keys(float *y, const float *x, const float *gate, const float *place,
               const struct pools *shape, int64_t tokens, enum dtype t);
void pool_keys_f64(double *y, const double *x, const double *gate,
                   const double *place, const struct pools *shape,
                   int64_t tokens, enum dtype t);

/*
 * What each token sees, visible [tokens, tokens]: 1 or 0.
 *     score(t, p) = sum over h of weight[t, h] * max(q[t, h] . k[p] * scale, 0)
 * (in PyTorch's order, kernels/linear.h; in double dot products chain128, heads
 * ascending), the lowest f32 when the last token
 * of p is after t.  A row takes `chosen` pools in the order of topk.h among all
 * pools of the sequence, and of these sees the tokens of those that end at t or
 * before; and with has_tail the last (t + 1) mod size tokens up to t.  q
 * [tokens, heads, dim], k [tokens / size, dim], weight [tokens, heads].
 */
void pool_select(unsigned char *visible, const float *q, const float *k,
                 const float *weight, const struct pools *shape,
                 int64_t tokens);
void pool_select_f64(unsigned char *visible, const double *q, const double *k,
                     const double *weight, const struct pools *shape,
                     int64_t tokens);
#endif
