/*
 * Elementary functions in double.  Each reduces its argument to a short
 * interval exactly (fma, or constants with trailing zeros), sums a Taylor
 * series there, and adds the large terms last.  A number that a double cannot
 * hold is the sum of two: `hi` the nearest, `lo` what is left.
 */
#include "kernels/elementary.h"

#include "kernels/rows_internal.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* ln 2 with 42 bits, so that n * it is exact, and what is left. */
#define LN2_HI 0x1.62e42fefa3800p-1
#define LN2_LO 0x1.ef35793c76730p-45
#define LOG2_E 0x1.71547652b82fep+0
#define SQRT_2 0x1.6a09e667f3bcdp+0
#define TWO_OVER_SQRT_PI 0x1.20dd750429b6dp+0
#define TWO_OVER_SQRT_PI_LO 0x1.1ae3a914fed80p-56
#define COUNT(a) (int)(sizeof(a) / sizeof((a)[0]))

static const double no_number = __builtin_nan("");

struct two {
    double hi, lo;
};

/* a + b exactly. */
static struct two two_sum(double a, double b)
{
    double sum = a + b, part = sum - a;

    return (struct two){sum, (a - (sum - part)) + (b - part)};
}

static struct two two_product(double a, double b)
{
    double product = a * b;

    return (struct two){product, fma(a, b, -product)};
}

/* The nearest integer, |x| < 2^51. */
static double nearest(double x)
{
    return (x + 0x1.8p52) - 0x1.8p52;
}

/* c[0] + c[1] x + c[2] x^2 + ... */
static double polynomial(const double *c, int n, double x)
{
    double y = c[n - 1];

    for (int i = n - 2; i >= 0; i--)
        y = y * x + c[i];
    return y;
}

/* 2^n, -1022 <= n <= 1023. */
static double power_of_two(int n)
{
    uint64_t bits = (uint64_t)(n + 1023) << 52;
    double x;

    memcpy(&x, &bits, sizeof(x));
    return x;
}

/* x = 2^k * m, m in [sqrt(1/2), sqrt(2)]; x > 0 and finite. */
static double split(double x, int *k)
{
    uint64_t bits;
    int more = 0;

    if (x < 0x1p-1022) {
        x *= 0x1p54;
        more = -54;
    }
    memcpy(&bits, &x, sizeof(bits));
    *k = (int)(bits >> 52) - 1023 + more;
    bits = (bits & 0x000fffffffffffff) | 0x3ff0000000000000;
    memcpy(&x, &bits, sizeof(x));
    if (x > SQRT_2) {
        x *= 0.5;
        ++*k;
    }
    return x;
}

/* ---- exp ---- */

const double elem_short_exp[ELEM_SHORT_TERMS] = {1,
                                                 1,
                                                 1.0 / 2,
                                                 1.0 / 6,
                                                 1.0 / 24,
                                                 1.0 / 120,
                                                 1.0 / 720,
                                                 1.0 / 5040,
                                                 1.0 / 40320,
                                                 1.0 / 362880,
                                                 1.0 / 3628800,
                                                 1.0 / 39916800};

/* 1/k! from k = 2 on: exp(r) = 1 + r + r^2 * series(r). */
static const double exp_series[] = {1.0 / 2,
                                    1.0 / 6,
                                    1.0 / 24,
                                    1.0 / 120,
                                    1.0 / 720,
                                    1.0 / 5040,
                                    1.0 / 40320,
                                    1.0 / 362880,
                                    1.0 / 3628800,
                                    1.0 / 39916800,
                                    1.0 / 479001600,
                                    1.0 / 6227020800.0,
                                    1.0 / 87178291200.0,
                                    1.0 / 1307674368000.0,
                                    1.0 / 20922789888000.0,
                                    1.0 / 355687428096000.0,
                                    1.0 / 6402373705728000.0,
                                    1.0 / 121645100408832000.0,
                                    1.0 / 2432902008176640000.0};

enum { EXP_TERMS = 12 }; /* of them are enough for |r| <= ln(2) / 2 */

/* exp(x.hi + x.lo), |x.lo| far below |x.hi| or both small. */
static double exp_of_two(struct two x)
{
    double n, q, scaled;
    struct two r, sum;
    int k;

    if (x.hi > 710)
        return INFINITY;
    if (x.hi < -746)
        return 0;
    n = nearest(x.hi * LOG2_E);
    k = (int)n;
    r = two_sum(fma(-n, LN2_HI, x.hi), x.lo - n * LN2_LO);
    q = r.hi * r.hi * polynomial(exp_series, EXP_TERMS, r.hi);
    sum = two_sum(1, r.hi);
    scaled = sum.hi + (sum.lo + (q + r.lo));
    /* In two steps: the first is exact, the second rounds a subnormal once. */
    return scaled * power_of_two(k / 2) * power_of_two(k - k / 2);
}

double elem_exp(double x)
{
    if (x != x)
        return no_number;
    return exp_of_two((struct two){x, 0});
}

/* ---- log ---- */

/* 2 atanh(s) = 2s + s * (s^2 * series(s^2)), for |s| <= 0.1716 */
static const double log_series[] = {
    2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11, 2.0 / 13,
    2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21, 2.0 / 23,
};

/*
 * k ln 2 + log(1 + f) + c, where c is small.  With s = f / (2 + f),
 * log(1 + f) = f - (f^2 / 2 - s * (f^2 / 2 + s^2 * series)).
 */
static double log_sum(int k, double f, double c)
{
    double s = f / (2 + f), z = s * s, half = 0.5 * f * f;
    double tail = s * (half + z * polynomial(log_series, COUNT(log_series), z));
    struct two square = two_product(f, f);
    struct two head = two_sum(f, -half);

    /* what f * f lost */
    tail += head.lo - 0.5 * square.lo;
    struct two sum = two_sum(k * LN2_HI, head.hi);
    return sum.hi + (sum.lo + (tail + (k * LN2_LO + c)));
}

double elem_log(double x)
{
    int k;

    if (x == 0)
        return -INFINITY;
    if (x == INFINITY)
        return x;
    if (!(x > 0))
        return no_number;
    double m = split(x, &k);
    return log_sum(k, m - 1, 0);
}

double elem_log1p(double x)
{
    int k;

    if (x == -1)
        return -INFINITY;
    if (x == INFINITY)
        return x;
    if (!(x > -1))
        return no_number;
    if (fabs(x) < 0x1p-54)
        return x;
    if (x > -0.25 && x < 0.375)
        return log_sum(0, x, 0);
    struct two u = two_sum(1, x);
    double m = split(u.hi, &k);
    return log_sum(k, m - 1, u.lo / u.hi);
}

/* log(x) to about 2^-65 of it; x > 0. */
static struct two log_of_two(double x)
{
    int k;
    double m = split(x, &k), f = m - 1;
    struct two g = two_sum(m, 1), s, z, cube, sum, k_ln2;

    s.hi = f / g.hi;
    s.lo = (fma(-s.hi, g.hi, f) - s.hi * g.lo) / g.hi;
    z = two_product(s.hi, s.hi);
    z.lo += 2 * s.hi * s.lo;
    /* 2/3 s^3 in two parts, the later terms in one */
    cube = two_product(z.hi, s.hi);
    cube.lo += z.lo * s.hi + z.hi * s.lo;
    struct two third = two_product(cube.hi, 0x1.5555555555555p-1);
    third.lo += cube.lo * (2.0 / 3) + cube.hi * 0x1.5555555555555p-55;
    double later = cube.hi * z.hi *
                   polynomial(log_series + 1, COUNT(log_series) - 1, z.hi);
    sum = two_sum(2 * s.hi, third.hi);
    sum.lo += 2 * s.lo + third.lo + later;
    k_ln2 = two_sum(k * LN2_HI, sum.hi);
    k_ln2.lo += sum.lo + k * LN2_LO;
    return two_sum(k_ln2.hi, k_ln2.lo);
}

double elem_pow(double x, double y)
{
    if (!(x > 0) || x == INFINITY || !(fabs(y) < INFINITY))
        return no_number;
    struct two log_x = log_of_two(x);
    if (fabs(log_x.hi) * fabs(y) > 800)
        return (log_x.hi < 0) == (y < 0) ? INFINITY : 0;
    struct two product = two_product(log_x.hi, y);
    product.lo += log_x.lo * y;
    return exp_of_two(product);
}

/* ---- sin and cos ---- */

/* sin(r) = r + r^3 * series(r^2), cos(r) = 1 - r^2 / 2 + r^4 * series(r^2) */
static const double sin_series[] = {-1.0 / 6,
                                    1.0 / 120,
                                    -1.0 / 5040,
                                    1.0 / 362880,
                                    -1.0 / 39916800,
                                    1.0 / 6227020800.0,
                                    -1.0 / 1307674368000.0,
                                    1.0 / 355687428096000.0};
static const double cos_series[] = {1.0 / 24,
                                    -1.0 / 720,
                                    1.0 / 40320,
                                    -1.0 / 3628800,
                                    1.0 / 479001600,
                                    -1.0 / 87178291200.0,
                                    1.0 / 20922789888000.0,
                                    -1.0 / 6402373705728000.0};

/* x = n * pi / 2 + r, |r| <= pi / 4; returns n mod 4.  |x| <= 2^30. */
static int reduce(double x, struct two *r)
{
    double n = nearest(x * 0x1.45f306dc9c883p-1);
    double first = fma(-n, 0x1.921fb54442d18p+0, x); /* exact */
    struct two second = two_product(-n, 0x1.1a62633145c07p-54);

    *r = two_sum(first, second.hi);
    r->lo += second.lo + n * 0x1.f1976b7ed8fbcp-110;
    return (int)((int64_t)n & 3);
}

static double sin_of_two(struct two r)
{
    double z = r.hi * r.hi;
    double tail = r.hi * z * polynomial(sin_series, COUNT(sin_series), z);

    return r.hi + (tail + r.lo * (1 - 0.5 * z));
}

static double cos_of_two(struct two r)
{
    double z = r.hi * r.hi;
    double tail = z * z * polynomial(cos_series, COUNT(cos_series), z);
    struct two head = two_sum(1, -0.5 * z);

    return head.hi + (head.lo + (tail - r.hi * r.lo));
}

static double sin_of_quarter(int quarter, struct two r)
{
    double y = quarter & 1 ? cos_of_two(r) : sin_of_two(r);

    return quarter & 2 ? -y : y;
}

double elem_sin(double x)
{
    struct two r;

    if (!(fabs(x) <= 0x1p30))
        return no_number;
    int quarter = reduce(x, &r);
    return x == 0 ? x : sin_of_quarter(quarter, r);
}

double elem_cos(double x)
{
    struct two r;

    if (!(fabs(x) <= 0x1p30))
        return no_number;
    int quarter = reduce(x, &r);
    return sin_of_quarter(quarter + 1, r);
}

/* ---- tanh ---- */

double elem_tanh(double x)
{
    double a = fabs(x), y;

    if (x != x)
        return no_number;
    if (a > 20)
        y = 1;
    else if (a < 0x1p-28)
        y = a;
    else if (a > 0.55)
        y = 1 - 2 / (elem_exp(2 * a) + 1);
    else { /* t = exp(2a) - 1, without the 1 */
        double twice = 2 * a;
        double t = twice + twice * twice *
                               polynomial(exp_series, COUNT(exp_series), twice);
        y = t / (t + 2);
    }
    return copysign(y, x);
}

/* ---- erf ---- */

enum { ERF_TERMS = 14 };

static const double erf_table[][ERF_TERMS + 2] = {
#include "kernels/erf_table.inc"
};

/* (-1)^n 2 / (sqrt(pi) n! (2n + 1)) from n = 1 on */
#define ERF_TERM(factorial, odd) (TWO_OVER_SQRT_PI / ((factorial) * (odd)))
static const double erf_series[] = {
    -ERF_TERM(1.0, 3),         ERF_TERM(2.0, 5),
    -ERF_TERM(6.0, 7),         ERF_TERM(24.0, 9),
    -ERF_TERM(120.0, 11),      ERF_TERM(720.0, 13),
    -ERF_TERM(5040.0, 15),     ERF_TERM(40320.0, 17),
    -ERF_TERM(362880.0, 19),   ERF_TERM(3628800.0, 21),
    -ERF_TERM(39916800.0, 23), ERF_TERM(479001600.0, 25),
};

double elem_erf(double x)
{
    double a = fabs(x), y;

    if (x != x)
        return no_number;
    if (a < 0.5) {
        double z = x * x;

        y = TWO_OVER_SQRT_PI_LO +
            z * polynomial(erf_series, COUNT(erf_series), z);
        return fma(x, TWO_OVER_SQRT_PI, x * y);
    }
    if (a >= 6)
        return copysign(1, x);
    int i = (int)((a - 0.5) * 4);
    const double *c = erf_table[i];
    double h = a - (0.625 + 0.25 * i);
    y = c[0] + (c[1] + h * polynomial(c + 2, ERF_TERMS, h));
    return copysign(y, x);
}

/* ---- f32 ---- */

/*
 * exp(x) in double for -105 <= x <= 90, to about 2^-47: the steps that
 * rows_avx2.c takes four at a time.
 */
static double short_exp(double x)
{
    double shifted = fma(x, LOG2_E, 0x1.8p52), n = shifted - 0x1.8p52;
    double r = fma(-n, ELEM_LN2_LO, fma(-n, ELEM_LN2_HI, x));
    double y = elem_short_exp[ELEM_SHORT_TERMS - 1];
    uint64_t bits, shift;

    for (int i = ELEM_SHORT_TERMS - 2; i >= 0; i--)
        y = fma(y, r, elem_short_exp[i]);
    memcpy(&shift, &shifted, sizeof(shift));
    memcpy(&bits, &y, sizeof(bits));
    bits += shift << 52; /* n stands in the low bits */
    memcpy(&y, &bits, sizeof(y));
    return y;
}

float elem_exp_f32(float x)
{
    if (x != x)
        return __builtin_nanf("");
    if (x > 89) /* above FLT_MAX in any case */
        x = 89;
    if (x < -104) /* below half of the smallest subnormal */
        x = -104;
    return (float)short_exp((double)x);
}

/* tanh(a) = (e - 1) / (e + 1) with e = exp(2a); near 0 a - a^3 / 3. */
float elem_tanh_f32(float x)
{
    double a = fabs((double)x), e, y;

    if (x != x)
        return __builtin_nanf("");
    if (a > 20)
        a = 20;
    e = short_exp(2 * a);
    y = a < 0x1p-12 ? fma(a * a, a * (-1.0 / 3), a) : (e - 1) / (e + 1);
    return copysignf((float)y, x);
}

void elem_exp_row(float *y, const float *x, int64_t n)
{
    if (rows_use_avx2()) {
        elem_exp_row_avx2(y, x, n);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        y[i] = elem_exp_f32(x[i]);
}

void elem_tanh_row(float *y, const float *x, int64_t n)
{
    if (rows_use_avx2()) {
        elem_tanh_row_avx2(y, x, n);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        y[i] = elem_tanh_f32(x[i]);
}

float elem_log_f32(float x)
{
    return (float)elem_log((double)x);
}

float elem_log1p_f32(float x)
{
    return (float)elem_log1p((double)x);
}

float elem_sin_f32(float x)
{
    return (float)elem_sin((double)x);
}

float elem_cos_f32(float x)
{
    return (float)elem_cos((double)x);
}

float elem_erf_f32(float x)
{
    return (float)elem_erf((double)x);
}

float elem_pow_f32(float x, float y)
{
    return (float)elem_pow((double)x, (double)y);
}
