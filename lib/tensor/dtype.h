#ifndef TENSOR_DTYPE_H
#define TENSOR_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Element types by their safetensors names.  Order is that of the writer:
 * descending width class (formats.md 1.3).
 */
enum dtype {
    DTYPE_U64,
    DTYPE_I64,
    DTYPE_F64,
    DTYPE_C64,
    DTYPE_F32,
    DTYPE_U32,
    DTYPE_I32,
    DTYPE_BF16,
    DTYPE_F16,
    DTYPE_U16,
    DTYPE_I16,
    DTYPE_F8_E5M2FNUZ,
    DTYPE_F8_E4M3FNUZ,
    DTYPE_F8_E8M0,
    DTYPE_F8_E4M3,
    DTYPE_F8_E5M2,
    DTYPE_I8,
    DTYPE_U8,
    DTYPE_F6_E3M2,
    DTYPE_F6_E2M3,
    DTYPE_F4,
    DTYPE_BOOL,
    DTYPE_COUNT
};

const char *dtype_name(enum dtype d);
bool dtype_parse(const char *name, enum dtype *out); /* exact spelling */
unsigned dtype_bits(enum dtype d);
bool dtype_is_float(
    enum dtype d);               /* F64, F32, BF16 or F16: dtype_to_f64 works */
bool dtype_is_int(enum dtype d); /* BOOL and all I and U */

/*
 * f16 (IEEE binary16) and bf16 to f32 is exact; the way back rounds to the
 * nearest even, keeps subnormals, overflows to infinity and keeps NaN a NaN.
 * f64 -> f16 rounds once (not by way of f32).
 */
float f16_to_f32(uint16_t h);
uint16_t f16_from_f32(float x);
uint16_t f16_from_f64(double x);
float bf16_to_f32(uint16_t h);
uint16_t bf16_from_f32(float x);

/* n elements of a float or integer type to f64 (I64, U64 may round). */
void dtype_to_f64(enum dtype d, const void *src, size_t n, double *dst);
/* n elements of an integer type to i64: exact, U64 by its bits. */
void dtype_to_i64(enum dtype d, const void *src, size_t n, int64_t *dst);
/* n elements of F64, F32, BF16 or F16 to f32 (F64 rounds). */
void dtype_to_f32(enum dtype d, const void *src, size_t n, float *dst);
/* n f32 values to F32, BF16 or F16. */
void dtype_from_f32(enum dtype d, const float *src, size_t n, void *dst);
#endif
