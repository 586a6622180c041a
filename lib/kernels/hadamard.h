#ifndef KERNELS_HADAMARD_H
#define KERNELS_HADAMARD_H

#include <stdint.h>

/*
 * The normalized Walsh-Hadamard transform in natural order, in place on every
 * contiguous block of `block` elements (a power of two that divides `width`)
 * of `rows` rows of `width`; signs [width] are +1 or -1.
 *
 * hadamard_rotate multiplies by the signs and then transforms (before a packed
 * product); hadamard_inverse transforms and then multiplies by the signs
 * (after an embedding lookup).
 *
 * Order: radix-2 butterflies, strides 1, 2, 4 ... block / 2: the pair (a, c)
 * becomes (a + c, a - c), each rounded; then every element times 1/sqrt(block)
 * rounded to the type (for 512, 1024, 2048, 4096 in f32: 0x3D3504F3,
 * 0x3D000000, 0x3CB504F3, 0x3C800000).
 */
void hadamard_rotate(float *x, const float *signs, int64_t width, int64_t block,
                     int64_t rows);
void hadamard_inverse(float *x, const float *signs, int64_t width,
                      int64_t block, int64_t rows);
void hadamard_rotate_f64(double *x, const double *signs, int64_t width,
                         int64_t block, int64_t rows);
void hadamard_inverse_f64(double *x, const double *signs, int64_t width,
                          int64_t block, int64_t rows);
#endif
