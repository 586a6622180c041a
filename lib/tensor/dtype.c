/* Element types and their exact conversions. */
#include "tensor/dtype.h"

#include "base/bug.h"

#include <string.h>

static const struct {
    const char *name;
    unsigned bits;
} types[DTYPE_COUNT] = {
    [DTYPE_U64] = {"U64", 64},
    [DTYPE_I64] = {"I64", 64},
    [DTYPE_F64] = {"F64", 64},
    [DTYPE_C64] = {"C64", 64},
    [DTYPE_F32] = {"F32", 32},
    [DTYPE_U32] = {"U32", 32},
    [DTYPE_I32] = {"I32", 32},
    [DTYPE_BF16] = {"BF16", 16},
    [DTYPE_F16] = {"F16", 16},
    [DTYPE_U16] = {"U16", 16},
    [DTYPE_I16] = {"I16", 16},
    [DTYPE_F8_E5M2FNUZ] = {"F8_E5M2FNUZ", 8},
    [DTYPE_F8_E4M3FNUZ] = {"F8_E4M3FNUZ", 8},
    [DTYPE_F8_E8M0] = {"F8_E8M0", 8},
    [DTYPE_F8_E4M3] = {"F8_E4M3", 8},
    [DTYPE_F8_E5M2] = {"F8_E5M2", 8},
    [DTYPE_I8] = {"I8", 8},
    [DTYPE_U8] = {"U8", 8},
    [DTYPE_F6_E3M2] = {"F6_E3M2", 6},
    [DTYPE_F6_E2M3] = {"F6_E2M3", 6},
    [DTYPE_F4] = {"F4", 4},
    [DTYPE_BOOL] = {"BOOL", 8},
};

const char *dtype_name(enum dtype d)
{
    return types[d].name;
}

unsigned dtype_bits(enum dtype d)
{
    return types[d].bits;
}

bool dtype_parse(const char *name, enum dtype *out)
{
    for (int d = 0; d < DTYPE_COUNT; d++)
        if (strcmp(types[d].name, name) == 0) {
            *out = (enum dtype)d;
            return true;
        }
    return false;
}

bool dtype_is_float(enum dtype d)
{
    return d == DTYPE_F64 || d == DTYPE_F32 || d == DTYPE_BF16 ||
           d == DTYPE_F16;
}

bool dtype_is_int(enum dtype d)
{
    switch (d) {
    case DTYPE_U64:
    case DTYPE_I64:
    case DTYPE_U32:
    case DTYPE_I32:
    case DTYPE_U16:
    case DTYPE_I16:
    case DTYPE_U8:
    case DTYPE_I8:
    case DTYPE_BOOL:
        return true;
    default:
        return false;
    }
}

static uint32_t bits_of(float x)
{
    uint32_t u;

    memcpy(&u, &x, sizeof(u));
    return u;
}

static float float_of(uint32_t u)
{
    float x;

    memcpy(&x, &u, sizeof(x));
    return x;
}

float f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16;
    uint32_t exponent = (h >> 10) & 31, fraction = h & 1023;

    if (exponent == 31)
        return float_of(sign | 0x7f800000 | fraction << 13);
    if (exponent == 0) { /* zero or subnormal: fraction * 2^-24, exact */
        float x = (float)fraction * 0x1p-24f;

        return sign ? -x : x;
    }
    return float_of(sign | (exponent + 112) << 23 | fraction << 13);
}

uint16_t f16_from_f32(float x)
{
    uint32_t u = bits_of(x), sign = (u >> 16) & 0x8000, a = u & 0x7fffffff;

    if (a > 0x7f800000) /* NaN stays a NaN, quiet */
        return (uint16_t)(sign | 0x7e00 | ((a >> 13) & 0x1ff));
    if (a >= 0x477ff000) /* at least 65520 rounds to infinity */
        return (uint16_t)(sign | 0x7c00);
    if (a < 0x38800000) { /* below 2^-14: the sum's last place is 2^-24 */
        float y = float_of(a) + 0.5f;

        return (uint16_t)(sign | (bits_of(y) - bits_of(0.5f)));
    }
    a += 0xc8000000 + 0xfff + ((a >> 13) & 1); /* rebias, round half to even */
    return (uint16_t)(sign | (a >> 13));
}

uint16_t f16_from_f64(double x)
{
    /* Round to odd in f32 first: 24 bits are more than 11 + 2. */
    float f = (float)x;
    uint32_t u = bits_of(f);

    if ((double)f != x && x == x && (u & 1) == 0 &&
        (u & 0x7f800000) != 0x7f800000) {
        bool is_up = (double)f > x;
        bool is_negative = u >> 31;

        /* step toward the other neighbour of x, whose last bit is odd */
        u = is_up == is_negative ? u + 1 : u - 1;
        f = float_of(u);
    }
    return f16_from_f32(f);
}

float bf16_to_f32(uint16_t h)
{
    return float_of((uint32_t)h << 16);
}

uint16_t bf16_from_f32(float x)
{
    uint32_t u = bits_of(x);

    if ((u & 0x7fffffff) > 0x7f800000)
        return (uint16_t)((u >> 16) | 0x40);
    return (uint16_t)((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}

#define CONVERT(type, expression)                                 \
    for (size_t i = 0; i < n; i++) {                              \
        type v;                                                   \
                                                                  \
        memcpy(&v, (const char *)src + i * sizeof(v), sizeof(v)); \
        dst[i] = expression;                                      \
    }                                                             \
    break

void dtype_to_f64(enum dtype d, const void *src, size_t n, double *dst)
{
    switch (d) {
    case DTYPE_F64:
        CONVERT(double, v);
    case DTYPE_F32:
        CONVERT(float, (double)v);
    case DTYPE_F16:
        CONVERT(uint16_t, (double)f16_to_f32(v));
    case DTYPE_BF16:
        CONVERT(uint16_t, (double)bf16_to_f32(v));
    case DTYPE_U64:
        CONVERT(uint64_t, (double)v);
    case DTYPE_I64:
        CONVERT(int64_t, (double)v);
    case DTYPE_U32:
        CONVERT(uint32_t, (double)v);
    case DTYPE_I32:
        CONVERT(int32_t, (double)v);
    case DTYPE_U16:
        CONVERT(uint16_t, (double)v);
    case DTYPE_I16:
        CONVERT(int16_t, (double)v);
    case DTYPE_U8:
    case DTYPE_BOOL:
        CONVERT(uint8_t, (double)v);
    case DTYPE_I8:
        CONVERT(int8_t, (double)v);
    default:
        BUG("a type without values");
    }
}

void dtype_to_i64(enum dtype d, const void *src, size_t n, int64_t *dst)
{
    switch (d) {
    case DTYPE_U64:
    case DTYPE_I64:
        CONVERT(int64_t, v);
    case DTYPE_U32:
        CONVERT(uint32_t, v);
    case DTYPE_I32:
        CONVERT(int32_t, v);
    case DTYPE_U16:
        CONVERT(uint16_t, v);
    case DTYPE_I16:
        CONVERT(int16_t, v);
    case DTYPE_U8:
    case DTYPE_BOOL:
        CONVERT(uint8_t, v);
    case DTYPE_I8:
        CONVERT(int8_t, v);
    default:
        BUG("a type without whole values");
    }
}

void dtype_to_f32(enum dtype d, const void *src, size_t n, float *dst)
{
    switch (d) {
    case DTYPE_F64:
        CONVERT(double, (float)v);
    case DTYPE_F32:
        CONVERT(float, v);
    case DTYPE_F16:
        CONVERT(uint16_t, f16_to_f32(v));
    case DTYPE_BF16:
        CONVERT(uint16_t, bf16_to_f32(v));
    default:
        BUG("not a float type");
    }
}

void dtype_from_f32(enum dtype d, const float *src, size_t n, void *dst)
{
    for (size_t i = 0; i < n; i++) {
        uint16_t half;

        switch (d) {
        case DTYPE_F32:
            memcpy((char *)dst + i * 4, src + i, 4);
            break;
        case DTYPE_F16:
        case DTYPE_BF16:
            half =
                d == DTYPE_F16 ? f16_from_f32(src[i]) : bf16_from_f32(src[i]);
            memcpy((char *)dst + i * 2, &half, 2);
            break;
        default:
            BUG("not a float type");
        }
    }
}
