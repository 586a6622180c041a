#ifndef KERNELS_STREAMS_H
#define KERNELS_STREAMS_H

#include "tensor/dtype.h"

#include <stdint.h>

/*
 * The arithmetic of hyper-connections (deepseek-v4.md 5.2): a residual of n
 * streams side by side in a row, x [rows, n, width].  t is the dtype that x and
 * the results are rounded to (F32: not); the _f64 forms round nothing.  Rows
 * are divided among the threads.
 */

/*
 * m [rows, n, n] in place, in f32: softmax along each row of a matrix, + eps;
 * columns divided by (their sum + eps); then iterations - 1 times rows, then
 * columns.  The softmax adds up in ascending order and multiplies by 1 / sum;
 * the other sums are PyTorch's (kernels/cascade.h), ascending in double.
 */
enum { STREAMS_MOST = 64 };
void streams_sinkhorn(float *m, int64_t rows, int64_t n, int64_t iterations,
                      double eps);
void streams_sinkhorn_f64(double *m, int64_t rows, int64_t n,
                          int64_t iterations, double eps);

/* y[width] = t(sum over k of w[k] * x[k]): products and sum in f32, in
 * PyTorch's order of the rows of a matrix (cascade_column_sum; ascending in
 * double); w [rows, n] is f32. */
void streams_collapse(float *y, const float *x, const float *w, int64_t rows,
                      int64_t n, int64_t width, enum dtype t);
void streams_collapse_f64(double *y, const double *x, const double *w,
                          int64_t rows, int64_t n, int64_t width);

/*
 * x[k] = t(t(t(post[k]) * y) + t(sum over j of t(m[j, k]) * x[j])), in place;
 * post [rows, n], m [rows, n, n], y [rows, width].  The sum is over the first
 * index of m: blocks32 in BF16, else one fma chain.
 */
void streams_mix(float *x, const float *post, const float *m, const float *y,
                 int64_t rows, int64_t n, int64_t width, enum dtype t);
void streams_mix_f64(double *x, const double *post, const double *m,
                     const double *y, int64_t rows, int64_t n, int64_t width);
#endif
