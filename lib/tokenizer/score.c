/*
 * Digits as long as they fit in 64 bits, the rest only counted, then one
 * product or quotient by a power of ten: serde_json's f64 without
 * `float_roundtrip`.
 */
#include "tokenizer/score.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_POWER = 308, MAX_EXPONENT = 1 << 30 };

struct digits {
    uint64_t value;
    int64_t exponent; /* of ten */
};

static double power_of_ten(int64_t exponent)
{
    static const double exact[] = {
        1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
        1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    char text[16];

    if (exponent < (int64_t)(sizeof(exact) / sizeof(exact[0])))
        return exact[exponent];
    snprintf(text, sizeof(text), "1e%d", (int)exponent);
    return strtod(text, NULL);
}

/* One more digit; false when it does not fit. */
static bool add_digit(struct digits *d, char c)
{
    uint64_t digit = (uint64_t)(c - '0'), value;

    if (__builtin_mul_overflow(d->value, (uint64_t)10, &value) ||
        __builtin_add_overflow(value, digit, &value))
        return false;
    d->value = value;
    return true;
}

static bool is_digit(const char *at, const char *end)
{
    return at < end && *at >= '0' && *at <= '9';
}

/* Those before the point: what does not fit counts. */
static const char *read_whole(const char *at, const char *end, struct digits *d)
{
    bool is_full = false;

    for (; is_digit(at, end); at++) {
        is_full = is_full || !add_digit(d, *at);
        d->exponent += is_full;
    }
    return at;
}

/* Those behind it: what does not fit is left out. */
static const char *read_fraction(const char *at, const char *end,
                                 struct digits *d)
{
    bool is_full = false;

    for (; is_digit(at, end); at++) {
        is_full = is_full || !add_digit(d, *at);
        d->exponent -= !is_full;
    }
    return at;
}

static int64_t read_exponent(const char *at, const char *end)
{
    bool is_negative = at < end && *at == '-';
    int64_t n = 0;

    if (at < end && (*at == '-' || *at == '+'))
        at++;
    for (; is_digit(at, end); at++)
        n = n < MAX_EXPONENT ? n * 10 + (*at - '0') : n;
    return is_negative ? -n : n;
}

static bool scale(const struct digits *d, double *out)
{
    int64_t exponent = d->exponent;

    *out = (double)d->value;
    for (; exponent < -MAX_POWER && *out != 0; exponent += MAX_POWER)
        *out /= 1e308;
    if (*out == 0)
        return true;
    if (exponent > MAX_POWER)
        return false;
    if (exponent < 0)
        *out /= power_of_ten(-exponent);
    else
        *out *= power_of_ten(exponent);
    return *out <= 1.7976931348623157e308;
}

bool score_read(const char *text, size_t len, double *out)
{
    const char *at = text, *end = text + len;
    bool is_negative = at < end && *at == '-';
    struct digits d = {0, 0};

    at = read_whole(at + is_negative, end, &d);
    if (at < end && *at == '.')
        at = read_fraction(at + 1, end, &d);
    if (at < end)
        d.exponent += read_exponent(at + 1, end);
    if (!scale(&d, out))
        return false;
    if (is_negative)
        *out = -*out;
    return true;
}
