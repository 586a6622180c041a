/*
 * Integers beyond 64 bits: magnitudes of 32-bit digits, least first, with a
 * sign.  Templates hardly meet them; the plain schoolbook methods will do
 * within JINJA_MAX_INTEGER_BITS.
 */
#include "jinja/jinja_internal.h"

#include "base/bug.h"

#include <math.h>
#include <string.h>

enum { MAX_DIGITS = JINJA_MAX_INTEGER_BITS / 32 };

static struct jbig *new_big(struct rt *rt, size_t n)
{
    if (n > MAX_DIGITS + 2)
        rt_fail(rt, ERR_UNSUPPORTED, "an integer of more than %d bits",
                JINJA_MAX_INTEGER_BITS);
    struct jbig *b = rt_alloc(rt, sizeof(*b) + n * sizeof(b->d[0]));

    rt_step(rt, n / 4);
    b->n = (uint32_t)n;
    return b;
}

static void trim(struct jbig *b)
{
    while (b->n > 0 && b->d[b->n - 1] == 0)
        b->n--;
    if (b->n == 0)
        b->negative = false;
}

/* A JV_INT when it fits. */
static struct jval finish(struct jbig *b)
{
    trim(b);
    if (b->n <= 2) {
        uint64_t m = 0;

        for (uint32_t i = b->n; i-- > 0;)
            m = m << 32 | b->d[i];
        if (m <= INT64_MAX)
            return jval_int(b->negative ? -(int64_t)m : (int64_t)m);
        if (b->negative && m == (uint64_t)INT64_MAX + 1)
            return jval_int(INT64_MIN);
    }
    return (struct jval){.type = JV_BIG, .big = b};
}

static struct jbig *widen(struct rt *rt, struct jval v)
{
    if (v.type == JV_BIG)
        return v.big;
    int64_t i = v.type == JV_BOOL ? v.b : v.i;
    uint64_t m = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
    struct jbig *b = new_big(rt, 2);

    b->negative = i < 0;
    b->d[0] = (uint32_t)m;
    b->d[1] = (uint32_t)(m >> 32);
    trim(b);
    return b;
}

static int compare_magnitude(const struct jbig *a, const struct jbig *b)
{
    if (a->n != b->n)
        return a->n < b->n ? -1 : 1;
    for (uint32_t i = a->n; i-- > 0;)
        if (a->d[i] != b->d[i])
            return a->d[i] < b->d[i] ? -1 : 1;
    return 0;
}

static struct jbig *add_magnitude(struct rt *rt, const struct jbig *a,
                                  const struct jbig *b)
{
    if (a->n < b->n) {
        const struct jbig *t = a;

        a = b;
        b = t;
    }
    struct jbig *sum = new_big(rt, a->n + 1);
    uint64_t carry = 0;

    for (uint32_t i = 0; i < a->n; i++) {
        carry += (uint64_t)a->d[i] + (i < b->n ? b->d[i] : 0);
        sum->d[i] = (uint32_t)carry;
        carry >>= 32;
    }
    sum->d[a->n] = (uint32_t)carry;
    return sum;
}

/* |a| - |b|, where |a| >= |b|. */
static struct jbig *sub_magnitude(struct rt *rt, const struct jbig *a,
                                  const struct jbig *b)
{
    struct jbig *rest = new_big(rt, a->n);
    int64_t borrow = 0;

    for (uint32_t i = 0; i < a->n; i++) {
        borrow += (int64_t)a->d[i] - (i < b->n ? (int64_t)b->d[i] : 0);
        rest->d[i] = (uint32_t)borrow;
        borrow >>= 32;
    }
    return rest;
}

struct jval jbig_add(struct rt *rt, struct jval a, struct jval b, bool minus)
{
    struct jbig *x = widen(rt, a), *y = widen(rt, b), *z;
    bool negative = minus ? !y->negative : y->negative;

    if (x->negative == negative) {
        z = add_magnitude(rt, x, y);
        z->negative = negative;
    } else if (compare_magnitude(x, y) >= 0) {
        z = sub_magnitude(rt, x, y);
        z->negative = x->negative;
    } else {
        z = sub_magnitude(rt, y, x);
        z->negative = negative;
    }
    return finish(z);
}

struct jval jbig_mul(struct rt *rt, struct jval a, struct jval b)
{
    struct jbig *x = widen(rt, a), *y = widen(rt, b);
    struct jbig *z = new_big(rt, (size_t)x->n + y->n + 1);

    rt_step(rt, (size_t)x->n * y->n / 8);
    for (uint32_t i = 0; i < x->n; i++) {
        uint64_t carry = 0;

        for (uint32_t k = 0; k < y->n; k++) {
            carry += (uint64_t)x->d[i] * y->d[k] + z->d[i + k];
            z->d[i + k] = (uint32_t)carry;
            carry >>= 32;
        }
        z->d[i + y->n] = (uint32_t)carry;
    }
    z->negative = x->negative != y->negative;
    return finish(z);
}

static uint32_t bit_length(const struct jbig *b)
{
    if (b->n == 0)
        return 0;
    return b->n * 32 - (uint32_t)__builtin_clz(b->d[b->n - 1]);
}

/* |a| divided by |b|: quotient, and the remainder in *rest. */
static struct jbig *divide_magnitude(struct rt *rt, const struct jbig *a,
                                     const struct jbig *b, struct jbig **rest)
{
    struct jbig *q = new_big(rt, a->n), *r = new_big(rt, b->n + 1);

    rt_step(rt, (size_t)a->n * b->n);
    if (b->n == 1) {
        uint64_t carry = 0;

        for (uint32_t i = a->n; i-- > 0;) {
            carry = carry << 32 | a->d[i];
            q->d[i] = (uint32_t)(carry / b->d[0]);
            carry %= b->d[0];
        }
        r->d[0] = (uint32_t)carry;
    } else {
        /* a bit at a time: slow, short and sure */
        r->n = 0;
        for (uint32_t bit = bit_length(a); bit-- > 0;) {
            uint32_t in = a->d[bit / 32] >> bit % 32 & 1;

            for (uint32_t i = 0; i < r->n; i++) {
                uint32_t out = r->d[i] >> 31;

                r->d[i] = r->d[i] << 1 | in;
                in = out;
            }
            if (in)
                r->d[r->n++] = in;
            if (compare_magnitude(r, b) >= 0) {
                int64_t borrow = 0;

                for (uint32_t i = 0; i < r->n; i++) {
                    borrow +=
                        (int64_t)r->d[i] - (i < b->n ? (int64_t)b->d[i] : 0);
                    r->d[i] = (uint32_t)borrow;
                    borrow >>= 32;
                }
                while (r->n > 0 && r->d[r->n - 1] == 0)
                    r->n--;
                q->d[bit / 32] |= 1U << bit % 32;
            }
            if (bit % 32 == 0)
                rt_step(rt, b->n);
        }
    }
    trim(q);
    trim(r);
    *rest = r;
    return q;
}

void jbig_divmod(struct rt *rt, struct jval a, struct jval b, struct jval *q,
                 struct jval *r)
{
    struct jbig *x = widen(rt, a), *y = widen(rt, b), *rest;
    struct jbig *whole = divide_magnitude(rt, x, y, &rest);
    bool is_mixed = x->negative != y->negative, has_rest = rest->n > 0;

    whole->negative = is_mixed;
    rest->negative = x->negative;
    struct jval quotient = finish(whole), remainder = finish(rest);
    if (is_mixed && has_rest) { /* floor, not truncation */
        quotient = jbig_add(rt, quotient, jval_int(1), true);
        remainder = jbig_add(rt, remainder, b, false);
    }
    *q = quotient;
    *r = remainder;
}

struct jval jbig_pow(struct rt *rt, struct jval a, uint64_t n)
{
    struct jval result = jval_int(1);
    uint32_t bits = bit_length(widen(rt, a));

    if (bits > 1 && n > JINJA_MAX_INTEGER_BITS / (bits - 1))
        rt_fail(rt, ERR_UNSUPPORTED, "an integer of more than %d bits",
                JINJA_MAX_INTEGER_BITS);
    while (n) {
        if (n & 1)
            result = jbig_mul(rt, result, a);
        n >>= 1;
        if (n)
            a = jbig_mul(rt, a, a);
    }
    return result;
}

int jbig_compare(struct rt *rt, struct jval a, struct jval b)
{
    struct jbig *x = widen(rt, a), *y = widen(rt, b);

    if (x->negative != y->negative)
        return x->negative ? -1 : 1;
    int by = compare_magnitude(x, y);

    return x->negative ? -by : by;
}

/* The magnitude, rounded once, half to even; `sticky`: more lies below it. */
static double round_magnitude(const struct jbig *b, bool sticky, int shift)
{
    uint32_t bits = bit_length(b), drop = bits > 64 ? bits - 64 : 0;
    uint64_t top = 0;

    for (uint32_t i = 0; i < 64 && drop + i < bits; i++) {
        uint32_t at = drop + i;

        top |= (uint64_t)(b->d[at / 32] >> at % 32 & 1) << i;
    }
    for (uint32_t at = 0; at < drop && !sticky; at++)
        sticky = b->d[at / 32] >> at % 32 & 1;
    if (sticky && bits >= 64)
        top |= 1;
    return ldexp((double)top, (int)drop + shift);
}

double jbig_to_double(struct rt *rt, struct jval v)
{
    struct jbig *b = widen(rt, v);
    double f = round_magnitude(b, false, 0);

    return b->negative ? -f : f;
}

/* a / b rounded once; b is not 0.  Infinite when it is too large. */
double jbig_divide(struct rt *rt, struct jval a, struct jval b)
{
    struct jbig *x = widen(rt, a), *y = widen(rt, b), *rest;
    int shift = 66 - (int)bit_length(x) + (int)bit_length(y);

    if (x->n == 0)
        return 0;
    shift = shift < 0 ? 0 : shift;
    struct jval scaled = {.type = JV_BIG, .big = x};
    if (shift > 0)
        scaled =
            jbig_mul(rt, scaled, jbig_pow(rt, jval_int(2), (uint64_t)shift));
    struct jbig *q = divide_magnitude(rt, widen(rt, scaled), y, &rest);
    double f = round_magnitude(q, rest->n > 0, -shift);

    return x->negative != y->negative ? -f : f;
}

struct jval jbig_from_double(struct rt *rt, double f)
{
    int exponent;
    double m = frexp(fabs(f), &exponent); /* 0.5 <= m < 1 */
    uint64_t digits = (uint64_t)ldexp(m, 53);

    BUG_ON(!isfinite(f));
    exponent -= 53;
    if (exponent <= 0)
        return jval_int((int64_t)f);
    struct jbig *b = new_big(rt, (size_t)exponent / 32 + 4);
    for (int i = 0; i < 53; i++) {
        int at = exponent + i;

        if (digits >> i & 1)
            b->d[at / 32] |= 1U << at % 32;
    }
    b->negative = f < 0;
    return finish(b);
}

struct jval jbig_parse(struct rt *rt, const char *digits, size_t n, int base)
{
    struct jbig *b = new_big(rt, n / 6 + 2); /* 36 < 2^6 */

    b->n = 0;
    rt_step(rt, n * n / 512);
    for (size_t i = 0; i < n; i++) {
        char c = digits[i];
        uint64_t carry = (uint64_t)(c <= '9'   ? c - '0'
                                    : c <= 'Z' ? c - 'A' + 10
                                               : c - 'a' + 10);

        for (uint32_t k = 0; k < b->n; k++) {
            carry += (uint64_t)b->d[k] * (uint64_t)base;
            b->d[k] = (uint32_t)carry;
            carry >>= 32;
        }
        if (carry)
            b->d[b->n++] = (uint32_t)carry;
    }
    return finish(b);
}

void jbig_print(struct rt *rt, struct jsb *out, struct jval v, int base)
{
    struct jbig *b = widen(rt, v), *left = new_big(rt, b->n);
    size_t room = (size_t)b->n * 32 + 2, at = room;
    char *text = rt_alloc(rt, room + 1);

    memcpy(left->d, b->d, b->n * sizeof(b->d[0]));
    trim(left);
    rt_step(rt, (size_t)b->n * b->n);
    do {
        uint64_t carry = 0;

        for (uint32_t i = left->n; i-- > 0;) {
            carry = carry << 32 | left->d[i];
            left->d[i] = (uint32_t)(carry / (uint64_t)base);
            carry %= (uint64_t)base;
        }
        trim(left);
        text[--at] = "0123456789abcdef"[carry];
    } while (left->n > 0);
    /* sys.set_int_max_str_digits: 4,300, for bases not a power of two */
    if (base == 10 && room - at > 4300)
        rt_fail(rt, ERR_INPUT,
                "an integer of more than 4300 digits is printed");
    if (b->negative)
        text[--at] = '-';
    jsb_add(out, text + at, room - at);
}
