#ifndef KERNELS_ROWS_INTERNAL_H
#define KERNELS_ROWS_INTERNAL_H

#include "tensor/dtype.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * The AVX2 forms of the row kernels.  Each gives its plain form's bits and is
 * called by the public function of its name when that form is in use.
 */
bool rows_use_avx2(void);

/* Shared by the two forms of exp: ln 2 in two parts, and 1/k!. */
#define ELEM_LN2_HI 0x1.62e42fefa39efp-1
#define ELEM_LN2_LO 0x1.abc9e3b39803fp-56
enum { ELEM_SHORT_TERMS = 12 };
extern const double elem_short_exp[ELEM_SHORT_TERMS];

void elem_exp_row_avx2(float *y, const float *x, int64_t n);
void elem_tanh_row_avx2(float *y, const float *x, int64_t n);

void round_row_avx2(enum dtype t, float *x, int64_t n);

/* y = values[the 16 bits of x], then t(factor * y) if factor. */
void table_row_avx2(float *y, const float *x, const float *factor, int64_t n,
                    const uint16_t *values, enum dtype t);

/* sigmoid(x), silu(x) and tanh GELU in f32; the first two times factor if there
 * is one, silu's product rounded to t. */
void sigmoid_f32_avx2(float *y, const float *x, const float *factor, int64_t n);
void silu_f32_avx2(float *y, const float *x, const float *factor, int64_t n,
                   enum dtype t);
void gelu_tanh_f32_avx2(float *y, const float *x, float k1, float k2,
                        int64_t n);

float lanes16_sum_avx2(const float *x, int64_t n);
float lanes16_squares_avx2(const float *x, int64_t n);
/* y = x - mean */
void norm_centre_avx2(float *y, const float *x, float mean, int64_t n);
/* y = t(x * r), then t(w * y) if w, then t(y + b) if b. */
void norm_scale_avx2(float *y, const float *x, float r, const float *w,
                     const float *b, int64_t n, enum dtype t);
float softmax_max_avx2(const float *x, int64_t n);

/* (a, b) = (t(a c - b s), t(b c + a s)) */
void rotate_pairs_avx2(float *a, float *b, const float *c, const float *s,
                       int64_t n, enum dtype t);
#endif
