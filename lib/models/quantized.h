#ifndef MODELS_QUANTIZED_H
#define MODELS_QUANTIZED_H

#include <stdint.h>

/*
 * Rows of quantised weights to what Transformers makes of them on a CPU: code
 * times scale in f32, rounded once to bf16.  `scales` holds one a group of
 * `group` columns.
 *
 *     f8    E4M3 without infinities, a byte a column
 *     fp4   E2M1, two a byte, the even column low
 *     int4  code - 8, eight a word of 32 bits, the first column lowest
 */
enum { QUANTIZED_GROUP = 32 }; /* of fp4 and int4 */

/* Returns the first column that is not a number, or -1. */
int64_t quantized_f8_row(float *y, const uint8_t *codes, const float *scales,
                         int64_t columns, int64_t group);
void quantized_fp4_row(float *y, const uint8_t *codes, const float *scales,
                       int64_t columns);
void quantized_int4_row(float *y, const uint32_t *words, const float *scales,
                        int64_t columns);

/* 2^(byte - 127); NaN for 255. */
float quantized_e8m0(uint8_t byte);
#endif
