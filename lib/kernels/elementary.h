#ifndef KERNELS_ELEMENTARY_H
#define KERNELS_ELEMENTARY_H

#include <stdint.h>

/*
 * Elementary functions from explicit operations only: +, -, *, /, fma and the
 * bits of a number.  No C library's choice of code path reaches a tensor: the
 * bits are the same on every processor, from every compiler, at every level of
 * optimisation (fma() is exact with or without the instruction).
 *
 * Error of the double functions, in units of the last place of the exact
 * result, the largest seen against exact values (tests/unit/elementary_test.c,
 * fixtures/elementary/): below 1 everywhere, tanh below 2.  So the f32 forms,
 * which round the double ones, are the correctly rounded value but for a share
 * of about 1e-8 of all arguments.
 *
 * NaN in, or no value: the canonical NaN (0x7FC00000, 0x7FF8000000000000).
 */
double elem_exp(double x);
double elem_log(double x);   /* of 0: -infinity; below: NaN */
double elem_log1p(double x); /* of -1: -infinity; below: NaN */
double elem_sin(double x);   /* |x| <= 2^30, else NaN */
double elem_cos(double x);   /* |x| <= 2^30, else NaN */
double elem_tanh(double x);
double elem_erf(double x);
double elem_pow(double x, double y); /* x > 0 and both finite, else NaN */

/*
 * In f32.  exp and tanh have a shorter series of their own in double, which
 * also runs fast; the others are the double functions.  All are rounded once,
 * and below 0.50001 units in the last place.
 */
float elem_exp_f32(float x);
float elem_log_f32(float x);
float elem_log1p_f32(float x);
float elem_sin_f32(float x);
float elem_cos_f32(float x);
float elem_tanh_f32(float x);
float elem_erf_f32(float x);
float elem_pow_f32(float x, float y);

/* y[i] = elem_exp_f32(x[i]) and elem_tanh_f32(x[i]), y may be x; the same bits
 * in every kernel form. */
void elem_exp_row(float *y, const float *x, int64_t n);
void elem_tanh_row(float *y, const float *x, int64_t n);
#endif
