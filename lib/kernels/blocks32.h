#ifndef KERNELS_BLOCKS32_H
#define KERNELS_BLOCKS32_H

#include "kernels/dense.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * y[t, o] = sum over i of x[t, i] * w[o, i] (+ bias[o]) of bf16 activations and
 * bf16 weights: x [rows, in] are floats exact in bf16, w is BF16, y is not
 * rounded.
 *
 * The written order blocks32 v1, what one AMX bf16 tile step computes: i in
 * blocks of 32, the last padded with zeros; in each e and o start at 0,
 * e = fma(x[i], w[i], e) for even i, o likewise for odd i, ascending; then
 * y = y + (e + o), y starting at 0.  Subnormal inputs, sums and results count
 * as zeros of their sign.  With a chunk (a multiple of 32) the row is cut into
 * chunks, each summed from 0 and the sums added in order; 0: none.  The bias is
 * one more addition at the end.
 */
void blocks32_matmul(float *y, const float *x, const struct dense_weight *w,
                     const float *bias, int64_t rows, int64_t chunk);

/* The same in blocks of `block` columns, an even number up to 32, without
 * chunks and bias; is_added: every y starts at what it holds. */
void blocks_matmul(float *y, const float *x, const struct dense_weight *w,
                   int64_t rows, int64_t block, bool is_added);

/*
 * even32 v1: blocks32, but the n columns of a chunk that are not whole blocks
 * of 32 are cut evenly: into ceil(n / 32) blocks of one length, where that is a
 * whole even number.
 */
void even32_matmul(float *y, const float *x, const struct dense_weight *w,
                   const float *bias, int64_t rows, int64_t chunk);
int64_t even32_block(int64_t n); /* the length of its blocks */

/* One sum, of a[i * a_step] * b[i * b_step] for i < n, in blocks of `block`
 * columns: 32, or even32's of some n. */
float blocks_dot(const float *a, int64_t a_step, const float *b, int64_t b_step,
                 int64_t n, int64_t block);
#endif
