#ifndef KERNELS_ROUND_H
#define KERNELS_ROUND_H

#include "tensor/dtype.h"

#include <stdint.h>
#include <string.h>

/*
 * Rounding of a float to what a compute dtype can hold: F32 (as it is), F16 or
 * BF16, to the nearest even, subnormals kept, overflow to infinity.  Any NaN
 * becomes the canonical one.  The result is a float again.
 */
static inline float round_to(enum dtype t, float x)
{
    uint32_t u, sign, half;

    if (x != x)
        return __builtin_nanf("");
    if (t == DTYPE_F32)
        return x;
    memcpy(&u, &x, sizeof(u));
    sign = u & 0x80000000;
    u ^= sign;
    if (t == DTYPE_BF16) {
        u = (u + 0x7fff + ((u >> 16) & 1)) & 0xffff0000;
    } else if (u < 0x38800000) { /* below 2^-14: a multiple of 2^-24 */
        memcpy(&x, &u, sizeof(x));
        x = (x + 0.5f) - 0.5f;
        memcpy(&u, &x, sizeof(u));
    } else {
        half = 0xfff + ((u >> 13) & 1);
        u = u >= 0x477ff000 ? 0x7f800000 : (u + half) & 0xffffe000;
    }
    u |= sign;
    memcpy(&x, &u, sizeof(x));
    return x;
}

/* The same of a double, in one rounding (not by way of f32). */
float round_from_f64(enum dtype t, double x);

/* round_to() of n values in place, divided among the threads; the same bits in
 * every kernel form. */
void round_row(enum dtype t, float *x, int64_t n);
#endif
