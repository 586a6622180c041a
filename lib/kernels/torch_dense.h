#ifndef KERNELS_TORCH_DENSE_H
#define KERNELS_TORCH_DENSE_H

#include "kernels/dense.h"

#include <stdint.h>

/*
 * y[t, o] = sum over i of x[t, i] * w[o, i] (+ bias[o]) of bf16 activations and
 * bf16 weights, as PyTorch's linear computes it in one call on a processor with
 * AMX: x [rows, in] are floats exact in bf16, w is BF16, y is not rounded.
 *
 * The order torch-amx v1 depends on the call.  call_rows is the number of rows
 * of upstream's call, of which x are some, call_out that of its outputs:
 *
 *     call_rows call_out in <= 4096    dots: 8 lanes of 8 accumulators each,
 *         i = 64 n + 8 a + lane; accumulators are added in halves (a and
 *         a + 4, + 2, + 1), then the lanes; a rest of whole sixteens goes to
 * one more accumulator of 8 lanes, eight after eight; then the rest, one by one
 *     else call_rows or call_out 1
 *         in < 64                      pairs: one chain, i = 1, 0, 3, 2 ...
 *         else                         blocks32
 *     else    blocks32 or even32, in the chunks of torch_blocking.h
 *
 * Measured with torch 2.13.0+cpu and one thread by sums that cancel, so that
 * every result is its roundings: no output of any call of up to 1,024 columns
 * differs.  Of one row or one output and more than about 3,000 columns the
 * library cuts rows too, which is not followed.  Subnormals are flushed
 * as in blocks32, but in dots.
 */
void torch_dense(float *y, const float *x, const struct dense_weight *w,
                 const float *bias, int64_t rows, int64_t call_rows,
                 int64_t call_out);
#endif
