#ifndef KERNELS_CHUNK_INTERNAL_H
#define KERNELS_CHUNK_INTERNAL_H

#include <stdint.h>

/* What the delta rules in chunks (chunk_delta.h, gated_chunk.h) share.
 *
 * y[rows, cols] = a b, a one fma chain over `inner`; a's element (i, k) lies at
 * i * row + k * step. */
void chunk_product(float *y, const float *a, int64_t row, int64_t step,
                   const float *b, int64_t rows, int64_t inner, int64_t cols);
#endif
