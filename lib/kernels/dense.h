#ifndef KERNELS_DENSE_H
#define KERNELS_DENSE_H

#include "tensor/dtype.h"

#include <stdint.h>

/* Weights as stored: dtype F16, BF16 or F32; data [out, in], aligned to the
 * element. */
struct dense_weight {
    enum dtype dtype;
    int64_t out, in;
    const void *data;
};

/* The same weights from output row `first` on, `count` of them. */
struct dense_weight dense_rows(const struct dense_weight *w, int64_t first,
                               int64_t count);

/*
 * y[t, o] = sum over i of x[t, i] * w[o, i] (+ bias[o]); x [rows, in],
 * y [rows, out], not overlapping; bias [out] or NULL.
 *
 * The written order chain128 v1: i in blocks of 128, the last may be shorter;
 * in each c = 0; c = fma(x[i], w[i], c) for i ascending; then y = y + c,
 * y starting at 0.  The bias is one more addition at the end.
 */
void dense_matmul(float *y, const float *x, const struct dense_weight *w,
                  const float *bias, int64_t rows);

/*
 * The same in a named order: chain v1 is one chain over all of i, without
 * blocks and without the last addition: y = fma(x[i], w[i], y), i ascending, y
 * starting at 0.  MLX's CPU backend sums so (f16 and bf16 products are exact in
 * f32, so that a fused or a separate addition is the same there).
 */
enum dense_order { DENSE_CHAIN128, DENSE_CHAIN };
void dense_matmul_order(float *y, const float *x, const struct dense_weight *w,
                        const float *bias, enum dense_order order,
                        int64_t rows);

void dense_matmul_f64(double *y, const double *x, const struct dense_weight *w,
                      const double *bias, int64_t rows);
#endif
