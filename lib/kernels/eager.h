#ifndef KERNELS_EAGER_H
#define KERNELS_EAGER_H

#include "tensor/dtype.h"

#include <stdint.h>

/*
 * Elementwise operations as PyTorch's CPU backend (with AVX-512) computes them
 * one by one: in f32, each result rounded once to t (F32: not further).  Inputs
 * are exact in t; y may be any input.  The _f64 forms round nothing.  Work is
 * divided among the threads.
 *
 *     silu      t(x / (1 + exp(-x)))
 *     sigmoid   t(1 / (1 + exp(-x)))
 *     silu_mul  t(silu(gate) * up)
 *     softplus  log1p(exp(x)), x itself above 20; f32
 *
 * exp is vec_exp() (softmax.h), log1p vec_log1p() (vec_elementary.h) on whole
 * pairs of 16 values, which PyTorch takes as vectors, and the exact ones on the
 * n mod 32 after them: so x is the tensor of one of upstream's calls.
 */
void eager_silu(float *y, const float *x, int64_t n, enum dtype t);
void eager_silu_f64(double *y, const double *x, int64_t n);
void eager_sigmoid(float *y, const float *x, int64_t n, enum dtype t);
void eager_sigmoid_f64(double *y, const double *x, int64_t n);
void eager_softplus(float *y, const float *x, int64_t n);
void eager_softplus_f64(double *y, const double *x, int64_t n);
void eager_silu_mul(float *y, const float *gate, const float *up, int64_t n,
                    enum dtype t);
void eager_silu_mul_f64(double *y, const double *gate, const double *up,
                        int64_t n);

/*
 * Rotary embedding of columns [first, first + dims) of every head of x
 * [rows, heads, width], in place, by tables cosine and sine [rows, dims / 2]:
 *
 *     t(t(a * c) + t(-b * s)),  t(t(b * c) + t(a * s))
 *
 * of the pairs (i, i + dims / 2), ROTARY_HALVES; or of the pairs (2i, 2i + 1),
 * whose results go to i and i + dims / 2, ROTARY_ADJACENT.
 */
enum rotary_pairs { ROTARY_HALVES, ROTARY_ADJACENT };
struct rotary_shape {
    enum rotary_pairs pairs;
    int64_t heads, width, first, dims;
};
void eager_rotary(float *x, const float *cosine, const float *sine,
                  const struct rotary_shape *shape, int64_t rows, enum dtype t);
void eager_rotary_f64(double *x, const double *cosine, const double *sine,
                      const struct rotary_shape *shape, int64_t rows);
#endif
