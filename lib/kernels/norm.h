#ifndef KERNELS_NORM_H
#define KERNELS_NORM_H

#include "tensor/dtype.h"

#include <stdint.h>

/*
 * Norms of `rows` rows of `cols` values, rows side by side; y may be x.  Sums
 * are lanes16 v1; t is the dtype that upstream's operations round to (F32: no
 * rounding), x and weights are exact in it.  The _f64 forms round nothing.
 * Rows are divided among the threads (kernels/threads.h).
 *
 * rms_norm: m = sum of x^2 / cols; r = 1 / sqrt(m + eps), eps rounded to f32;
 * y = t(w * t(x * r)).  weight [cols], or NULL: y = t(x * r).
 *
 * layer_norm: mean = sum of x / cols; c = x - mean; v = sum of c^2 / cols;
 * r = 1 / sqrt(v + eps); y = t(t(w * t(c * r)) + b).
 *
 * Follows mlx 0.32.0, fast.cpp and the rms_norm and layer_norm kernels.
 */
void rms_norm(float *y, const float *x, const float *weight, int64_t rows,
              int64_t cols, double eps, enum dtype t);
void rms_norm_f64(double *y, const double *x, const double *weight,
                  int64_t rows, int64_t cols, double eps);
void layer_norm(float *y, const float *x, const float *weight,
                const float *bias, int64_t rows, int64_t cols, double eps,
                enum dtype t);
void layer_norm_f64(double *y, const double *x, const double *weight,
                    const double *bias, int64_t rows, int64_t cols, double eps);

/* Sums along one row in the order lanes16 v1. */
float lanes16_sum(const float *x, int64_t n);
float lanes16_squares(const float *x, int64_t n);
double lanes16_sum_f64(const double *x, int64_t n);
double lanes16_squares_f64(const double *x, int64_t n);
#endif
