#ifndef KERNELS_SOFTMAX_H
#define KERNELS_SOFTMAX_H

#include <stdint.h>

/*
 * Softmax along a row of n >= 1 values, in f32 (or double): e = exp(x - max),
 * s = the sum of e in the order lanes16 v1, y = e * (1 / s).  y may be x.
 * -infinity is a masked value and gives 0; a row of nothing else, or with a
 * NaN, gives NaN.  exp is elem_exp_row's (elem_exp in double).
 */
void softmax_row(float *y, const float *x, int64_t n);
void softmax_row_f64(double *y, const double *x, int64_t n);

/*
 * The same with vec_exp, and fewer than 16 values summed one after the other:
 * PyTorch's vectorised softmax.  Its exponential lies within 1 unit of the last
 * place (SLEEF's expf with fma): n = x log2(e) to the nearest integer; r = x -
 * n ln 2, ln 2 in two parts; y = (1 + fma(r r, p(r), r)) 2^n, p of degree 5; 0
 * below -104, infinity above 100.
 */
void softmax_vec_row(float *y, const float *x, int64_t n);
float vec_exp(float x);

/* Its parts, for attention: the largest value (a NaN when there is one); and
 * y = exp(x - max), returning the sum. */
float softmax_max(const float *x, int64_t n);
double softmax_max_f64(const double *x, int64_t n);
float softmax_exp(float *y, const float *x, float max, int64_t n);
double softmax_exp_f64(double *y, const double *x, double max, int64_t n);
#endif
