/* Rows of quantised weights to bf16 values. */
#include "models/quantized.h"

#include "tensor/dtype.h"

#include <math.h>

static float to_bf16(float x)
{
    return bf16_to_f32(bf16_from_f32(x));
}

static float e4m3(uint8_t b)
{
    int exponent = b >> 3 & 15, mantissa = b & 7;
    float magnitude = exponent ? ldexpf((float)(8 + mantissa), exponent - 10)
                               : ldexpf((float)mantissa, -9);

    return b & 0x80 ? -magnitude : magnitude;
}

int64_t quantized_f8_row(float *y, const uint8_t *codes, const float *scales,
                         int64_t columns, int64_t group)
{
    for (int64_t i = 0; i < columns; i++) {
        if ((codes[i] & 0x7f) == 0x7f)
            return i;
        y[i] = to_bf16(e4m3(codes[i]) * scales[i / group]);
    }
    return -1;
}

void quantized_fp4_row(float *y, const uint8_t *codes, const float *scales,
                       int64_t columns)
{
    static const float magnitudes[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};

    for (int64_t i = 0; i < columns; i++) {
        int nibble = codes[i / 2] >> (i % 2 * 4) & 15;
        float v = magnitudes[nibble & 7] * scales[i / QUANTIZED_GROUP];

        y[i] = to_bf16(nibble & 8 ? -v : v);
    }
}

void quantized_int4_row(float *y, const uint32_t *words, const float *scales,
                        int64_t columns)
{
    for (int64_t i = 0; i < columns; i++) {
        int code = (int)(words[i / 8] >> (i % 8 * 4) & 15) - 8;

        y[i] = to_bf16((float)code * scales[i / QUANTIZED_GROUP]);
    }
}

float quantized_e8m0(uint8_t byte)
{
    return byte == 255 ? __builtin_nanf("") : ldexpf(1, byte - 127);
}
