#ifndef KERNELS_CHANNEL_DELTA_H
#define KERNELS_CHANNEL_DELTA_H

#include "tensor/dtype.h"

#include <stdint.h>

/*
 * The delta rule with a decay a head and key channel (Kimi Delta Attention:
 * kimi-k3.md 6), and what stands around it.  Everything is f32 (double in the
 * _f64 forms); rows, heads and columns are divided among the threads.
 *
 * For each token in turn, every head h and value column d of its state
 * S [dim values, dim keys]:
 *   1. S[d][i] = S[d][i] * decay[i]
 *   2. r = (v[d] - S[d] . k) * beta          (chain128)
 *   3. S[d][i] = fma(k[i], r, S[d][i])
 *   4. y[d] = S[d] . q                       (chain128; the updated state)
 */
struct channel_delta {
    int64_t heads, dim;
};

/* q, k, v, decay and y [tokens, heads, dim]; beta [tokens, heads]; state
 * [heads, dim, dim] is read and left as after the last token. */
void channel_delta(float *y, float *state, const float *q, const float *k,
                   const float *v, const float *decay, const float *beta,
                   const struct channel_delta *shape, int64_t tokens);
void channel_delta_f64(double *y, double *state, const double *q,
                       const double *k, const double *v, const double *decay,
                       const double *beta, const struct channel_delta *shape,
                       int64_t tokens);

/*
 * decay = exp(g) of x [rows, heads, dim], z = x + bias [heads, dim]:
 *   g = bound * sigmoid(exp(a_log[h]) * z)        bound below 0
 *   g = -exp(a_log[h]) * softplus(z)              bound NaN
 */
void channel_decay(float *y, const float *x, const float *bias,
                   const float *a_log, double bound,
                   const struct channel_delta *shape, int64_t rows);
void channel_decay_f64(double *y, const double *x, const double *bias,
                       const double *a_log, double bound,
                       const struct channel_delta *shape, int64_t rows);

/* y = x / sqrt(sum of x^2 + 1e-6) * scale over rows of dim values; lanes16. */
void channel_unit(float *y, const float *x, double scale, int64_t rows,
                  int64_t dim);
void channel_unit_f64(double *y, const double *x, double scale, int64_t rows,
                      int64_t dim);

/* y = t(x / sqrt(mean of x^2 + eps) * weight * sigmoid(z)) over rows of dim
 * values, one rounding; weight [dim]. */
void channel_norm(float *y, const float *x, const float *weight, const float *z,
                  double eps, int64_t rows, int64_t dim, enum dtype t);
void channel_norm_f64(double *y, const double *x, const double *weight,
                      const double *z, double eps, int64_t rows, int64_t dim);
#endif
