#ifndef KERNELS_GATED_CHUNK_H
#define KERNELS_GATED_CHUNK_H

#include "kernels/gated_delta.h"

#include <stdint.h>

/*
 * The gated delta rule of gated_delta.h in chunks of tokens, operation by
 * operation as PyTorch's CPU backend computes Transformers' form of it: what a
 * chunk adds to the state is solved for at once.  All f32.  With G the sums of
 * g from a chunk's first token on (added in double, each rounded), D[i][j] =
 * exp(G_i - G_j), S the state before the chunk [keys, values] and i, j its
 * tokens:
 *
 *     L[i][j] = (beta_i k_i . k_j) D[i][j]          j < i, 1 on the diagonal
 *     L u = beta v;  L w = beta k exp(G)            j ascending, an fma each;
 *                              whole blocks of 48 rows before a row's own are
 *                              summed from 0, then subtracted
 *     u = u - w S
 *     y_i = (q_i exp(G_i)) S + sum over j <= i of (q_i . k_j) D[i][j] u_j
 *     S = S exp(G_last) + (k exp(G_last - G))^T u
 *
 * Products are one fma chain, exp is exact (PyTorch's vectors differ by a unit
 * in the last place now and then).
 *
 * Arguments as in gated_delta(), but for g, the logarithm of the decay; the
 * state starts at 0.  Value heads are divided among the threads.
 */
void gated_chunk(float *y, const float *q, const float *k, const float *v,
                 const float *g, const float *beta,
                 const struct gated_delta *shape, int64_t chunk,
                 int64_t tokens);
#endif
