/* Elementwise operations as PyTorch's CPU backend computes them. */
#include "kernels/eager.h"

#include "base/bug.h"
#include "kernels/elementary.h"
#include "kernels/kernels_internal.h"
#include "kernels/round.h"
#include "kernels/softmax.h"
#include "kernels/threads.h"
#include "kernels/vec_elementary.h"

/* Values, and rows, that a thread takes at a time. */
enum { GRAIN = 2048, ROW_GRAIN = 8 };

#define EXP elem_exp_f32
#define LOG1P elem_log1p_f32
#define EXP_VECTOR vec_exp
#define LOG1P_VECTOR vec_log1p
#include "kernels/real_f32.inc"

#include "kernels/eager_plain.inc"

#undef EXP
#undef EXP_VECTOR
#undef LOG1P
#undef LOG1P_VECTOR
#define EXP elem_exp
#define LOG1P elem_log1p
#define EXP_VECTOR elem_exp
#define LOG1P_VECTOR elem_log1p
#include "kernels/real_f64.inc"

#include "kernels/eager_plain.inc"

void eager_silu(float *y, const float *x, int64_t n, enum dtype t)
{
    unary(y, x, NULL, n, silu_value, t);
}

void eager_silu_f64(double *y, const double *x, int64_t n)
{
    unary_f64(y, x, NULL, n, silu_value_f64, DTYPE_F64);
}

void eager_sigmoid(float *y, const float *x, int64_t n, enum dtype t)
{
    unary(y, x, NULL, n, sigmoid_value, t);
}

void eager_sigmoid_f64(double *y, const double *x, int64_t n)
{
    unary_f64(y, x, NULL, n, sigmoid_value_f64, DTYPE_F64);
}

void eager_softplus(float *y, const float *x, int64_t n)
{
    unary(y, x, NULL, n, softplus_value, DTYPE_F32);
}

void eager_softplus_f64(double *y, const double *x, int64_t n)
{
    unary_f64(y, x, NULL, n, softplus_value_f64, DTYPE_F64);
}

void eager_silu_mul(float *y, const float *gate, const float *up, int64_t n,
                    enum dtype t)
{
    unary(y, gate, up, n, silu_value, t);
}

void eager_silu_mul_f64(double *y, const double *gate, const double *up,
                        int64_t n)
{
    unary_f64(y, gate, up, n, silu_value_f64, DTYPE_F64);
}

void eager_rotary(float *x, const float *cosine, const float *sine,
                  const struct rotary_shape *shape, int64_t rows, enum dtype t)
{
    rotary(x, cosine, sine, shape, rows, t);
}

void eager_rotary_f64(double *x, const double *cosine, const double *sine,
                      const struct rotary_shape *shape, int64_t rows)
{
    rotary_f64(x, cosine, sine, shape, rows, DTYPE_F64);
}
