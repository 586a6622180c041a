#ifndef KERNELS_ACT_H
#define KERNELS_ACT_H

#include "tensor/dtype.h"

#include <stdint.h>

/*
 * Activations and gates on n values.  t is the compute dtype: every operation
 * that upstream's graph makes rounds its result to it (F32: to f32), constants
 * too; inputs are exact in it.  y may be any of the inputs.  The _f64 forms
 * round nothing.  NaN gives the canonical NaN.  Long rows are divided among the
 * threads (kernels/threads.h).
 *
 *     sigmoid    e = t(exp(|x|)); d = t(1 + e); q = t(1 / d);
 *                x < 0 ? q : t(1 - q)
 *     silu       t(x * sigmoid(x))
 *     gelu_tanh  c = t(x^3); p = t(t(0.5) * x);
 *                h = t(tanh(t(k2 * t(x + t(k1 * c))))); t(p * t(1 + h)),
 *                k1 = t(0.044715), k2 = t(sqrt(2 / pi))
 *     gelu_erf   t(t(x * t(1 + t(erf(t(x / t(sqrt 2)))))) / 2)
 *     softplus   m = max(x, 0); e = t(exp(t(min(x, 0) - m))); t(m + log1p(e)),
 *                log1p and the sum in f32; log1p(v) is v when 1 + v is 1, else
 *                v * (log(1 + v) / ((1 + v) - 1))
 *
 * exp, tanh and erf are the exact value rounded to t.  In F16 and BF16 these
 * are tables of 65,536 entries, made by the same steps at first use (from any
 * thread).  Follows mlx 0.32.0 (python/mlx/nn/layers/activations.py, Metal's
 * unary_ops.h and binary_ops.h).
 */
void sigmoid_row(float *y, const float *x, int64_t n, enum dtype t);
void sigmoid_row_f64(double *y, const double *x, int64_t n);
void silu_row(float *y, const float *x, int64_t n, enum dtype t);
void silu_row_f64(double *y, const double *x, int64_t n);
void gelu_tanh_row(float *y, const float *x, int64_t n, enum dtype t);
void gelu_tanh_row_f64(double *y, const double *x, int64_t n);
void gelu_erf_row(float *y, const float *x, int64_t n, enum dtype t);
void gelu_erf_row_f64(double *y, const double *x, int64_t n);
void softplus_row(float *y, const float *x, int64_t n, enum dtype t);
void softplus_row_f64(double *y, const double *x, int64_t n);

/* t(silu(gate) * up), the MLP's gate. */
void silu_mul_row(float *y, const float *gate, const float *up, int64_t n,
                  enum dtype t);
void silu_mul_row_f64(double *y, const double *gate, const double *up,
                      int64_t n);

/* t(x * sigmoid(gate)), the gate of full attention. */
void mul_sigmoid_row(float *y, const float *x, const float *gate, int64_t n,
                     enum dtype t);
void mul_sigmoid_row_f64(double *y, const double *x, const double *gate,
                         int64_t n);

/* t(silu(z) * u) with silu and product in f32: the gated delta net's output
 * gate. */
void silu_gate_row(float *y, const float *z, const float *u, int64_t n,
                   enum dtype t);
void silu_gate_row_f64(double *y, const double *z, const double *u, int64_t n);

/*
 * The gated delta net's decay, always f32: for each of `rows` rows of `heads`
 * g = exp(-exp(a_log[h]) * softplus(t(a[h] + dt_bias[h]))), t the promoted
 * dtype of a and dt_bias, both exponentials and the product in f32.
 */
void decay_rows(float *g, const float *a, const float *dt_bias,
                const float *a_log, int64_t rows, int64_t heads, enum dtype t);
void decay_rows_f64(double *g, const double *a, const double *dt_bias,
                    const double *a_log, int64_t rows, int64_t heads);
#endif
