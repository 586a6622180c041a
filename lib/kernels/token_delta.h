#ifndef KERNELS_TOKEN_DELTA_H
#define KERNELS_TOKEN_DELTA_H

#include "kernels/channel_delta.h"

/*
 * The delta rule of channel_delta.h token by token, operation by operation as
 * PyTorch's CPU backend computes it (torch 2.13 with MKL): for each token in
 * turn, on a head's state S [dim keys, dim values], which starts at 0,
 *
 *     S[i][d] = S[i][d] * decay[i]
 *     r[d] = beta * (v[d] - sum over i of S[i][d] k[i])
 *     S[i][d] = S[i][d] + k[i] * r[d]           product and sum rounded
 *     y[d] = sum over i of S[i][d] q[i]
 *
 * The sums are products of a batch of heads: linear_mix() (linear.h) of one
 * head and of states below 400 values, else a chain.  All f32; arguments as in
 * channel_delta().  Heads are divided among the threads.
 */
void token_delta(float *y, const float *q, const float *k, const float *v,
                 const float *decay, const float *beta,
                 const struct channel_delta *shape, int64_t tokens);
#endif
