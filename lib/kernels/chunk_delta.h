#ifndef KERNELS_CHUNK_DELTA_H
#define KERNELS_CHUNK_DELTA_H

#include "kernels/channel_delta.h"

#include <stdint.h>

/*
 * The delta rule of channel_delta.h in chunks of tokens, operation by operation
 * as PyTorch's CPU backend computes Transformers' form of it: what a chunk adds
 * to the state is solved for at once.  All f32.  With G the sums of g from a
 * chunk's first token on (added in double, each rounded), D[i][j] =
 * exp(G_i - G_j), S the state before the chunk [keys, values] and i, j its
 * tokens:
 *
 *     A[i][j] = -sum over c of (beta_i k_i)[c] k_j[c] D[i][j][c]      j < i
 *     row by row, i ascending:  A[i][j] += sum over m < i of A[i][m] A[m][j]
 *     u = (A + 1) (beta v) - ((A + 1) (beta k exp(G))) S
 *     y_i = (q_i exp(G_i)) S + sum over j <= i of (q_i . k_j D[i][j]) u_j
 *     S = S exp(G_last) + (k exp(G_last - G))^T u
 *
 * Sums over c are cascade_sum, those over m cascade_column_sum (cascade.h),
 * matrix products one fma chain.  exp is exact; PyTorch's, from a closed
 * library, is another in one value of a hundred, by one unit in the last place.
 *
 * Arguments as in channel_delta(), but for g, the logarithm of the decay; the
 * state starts at 0.  Heads are divided among the threads.
 */
void chunk_delta(float *y, const float *q, const float *k, const float *v,
                 const float *g, const float *beta,
                 const struct channel_delta *shape, int64_t chunk,
                 int64_t tokens);

/* y = x / sqrt(cascade_sum(x^2) + 1e-6) * scale over rows of dim values. */
void chunk_unit(float *y, const float *x, double scale, int64_t rows,
                int64_t dim);

/* The same by x * (1 / sqrt(...)) * scale. */
void chunk_unit_inverse(float *y, const float *x, double scale, int64_t rows,
                        int64_t dim);
#endif
