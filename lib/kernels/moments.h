#ifndef KERNELS_MOMENTS_H
#define KERNELS_MOMENTS_H

#include "tensor/dtype.h"

#include <stdint.h>

/*
 * LayerNorm of rows as PyTorch's CPU backend computes it (torch 2.13; bf16 and
 * f32 differ):
 *
 *     y = t(fma(w, (x - mean) r, b))                 F32
 *     y = t(fma(w, fma(x, r, -(mean r)), b))         BF16
 *
 * r = 1 / sqrt(variance + eps).  Mean and variance are added up by Welford's
 * steps in 8 lanes over whole eights (BF16: two sets of 8 lanes over whole
 * sixteens, then joined); then those of what is left over, one by one, and the
 * lanes, joined in order.  Rows of up to 256 columns (BF16: 512).
 *
 * x, y [rows, cols] (y may be x), weight and bias [cols].
 */
void moments_layer_norm(float *y, const float *x, const float *weight,
                        const float *bias, int64_t rows, int64_t cols,
                        double eps, enum dtype t);
#endif
