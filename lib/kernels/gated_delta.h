#ifndef KERNELS_GATED_DELTA_H
#define KERNELS_GATED_DELTA_H

#include <stdint.h>

/*
 * The gated delta rule (bonsai2.md 2.4).  Value head h reads key head
 * h / (value_heads / key_heads).  For each token in turn, every head h and
 * row d of its state S [value_dim, key_dim]:
 *   1. S[d][i] = S[d][i] * g
 *   2. m = S[d] . k                      (chain128)
 *   3. delta = (v[d] - m) * beta
 *   4. S[d][i] = S[d][i] + k[i] * delta  (two roundings)
 *   5. y[d] = S[d] . q                   (chain128; the updated state)
 * Each step rounds to f32 (or double); y is not rounded further.
 */
struct gated_delta {
    int64_t key_heads, value_heads; /* the latter a multiple of the former */
    int64_t key_dim, value_dim;
    int64_t qk_stride, v_stride; /* elements from one token to the next */
};

/*
 * q and k [tokens][key_heads][key_dim], v [tokens][value_heads][value_dim],
 * each token's part contiguous and the tokens a stride apart; g and beta
 * [tokens, value_heads]; y [tokens, value_heads, value_dim]; state
 * [value_heads, value_dim, key_dim] is read and left as after the last token.
 */
void gated_delta(float *y, float *state, const float *q, const float *k,
                 const float *v, const float *g, const float *beta,
                 const struct gated_delta *shape, int64_t tokens);
void gated_delta_f64(double *y, double *state, const double *q, const double *k,
                     const double *v, const double *g, const double *beta,
                     const struct gated_delta *shape, int64_t tokens);
#endif
