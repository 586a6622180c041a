/* Functions as PyTorch's vectors compute them, on pairs of floats. */
#include "kernels/vec_elementary.h"

#include <math.h>

struct pair {
    float high, low;
};

/* Exactly x + y. */
static struct pair exact_sum(float x, float y)
{
    float s = x + y, v = s - x;

    return (struct pair){s, (x - (s - v)) + (y - v)};
}

static struct pair sum(struct pair x, struct pair y)
{
    struct pair s = exact_sum(x.high, y.high);

    s.low += x.low + y.low;
    return s;
}

/* x the larger one */
static struct pair ordered_sum(struct pair x, struct pair y)
{
    float s = x.high + y.high;

    return (struct pair){s, (((x.high - s) + y.high) + x.low) + y.low};
}

static struct pair product(struct pair x, struct pair y)
{
    float p = x.high * y.high, rest = fmaf(x.high, y.high, -p);

    return (struct pair){p, fmaf(x.high, y.low, fmaf(x.low, y.high, rest))};
}

static struct pair times(struct pair x, float y)
{
    float p = x.high * y;

    return (struct pair){p, fmaf(x.low, y, fmaf(x.high, y, -p))};
}

static struct pair square(struct pair x)
{
    float p = x.high * x.high, rest = fmaf(x.high, x.high, -p);

    return (struct pair){p, fmaf(x.high + x.high, x.low, rest)};
}

static struct pair quotient(struct pair x, struct pair y)
{
    float inverse = 1 / y.high, q = x.high * inverse;
    float rest = fmaf(inverse, x.high, -q);
    float off = fmaf(-y.low, inverse, fmaf(-y.high, inverse, 1));

    return (struct pair){q, fmaf(q, off, fmaf(x.low, inverse, rest))};
}

static const struct pair ln2 = {0.69314718246459960938f,
                                -1.904654323148236017e-09f};

static struct pair logarithm(float x)
{
    static const struct pair third = {0.66666662693023681640625f,
                                      3.69183861259614332084311e-09f};
    int exponent;
    float m = frexpf(x, &exponent), p = 0.240320354700088500976562f;

    if (m < 0.75f) {
        m *= 2;
        exponent--;
    }
    struct pair a = quotient(exact_sum(-1, m), exact_sum(1, m)), b = square(a);
    p = fmaf(p, b.high, 0.285112679004669189453125f);
    p = fmaf(p, b.high, 0.400007992982864379882812f);
    struct pair y = times(ln2, (float)exponent);
    y = ordered_sum(y, (struct pair){2 * a.high, 2 * a.low});
    return ordered_sum(y, product(product(b, a), sum(times(b, p), third)));
}

static float exponential(struct pair x)
{
    static const float c[] = {
        0.00836596917361021041870117f, 0.0416710823774337768554688f,
        0.166665524244308471679688f, 0.499999850988388061523438f};
    float n = rintf((x.high + x.low) * 1.442695040888963407f);
    float p = 0.00136324646882712841033936f;
    struct pair r = sum(x, (struct pair){n * -0.693145751953125f, 0});

    r = sum(r, (struct pair){n * -1.428606765330187045e-06f, 0});
    float high = r.high + r.low;
    r = (struct pair){high, r.high - high + r.low};
    for (int i = 0; i < 4; i++)
        p = fmaf(p, r.high, c[i]);
    r = ordered_sum(r, times(square(r), p));
    r = ordered_sum((struct pair){1, 0}, r);
    return ldexpf(r.high + r.low, (int)n);
}

float vec_pow(float x, float y)
{
    return exponential(times(logarithm(x), y));
}

float vec_log1p(float x)
{
    int exponent;
    float p = 0.3027294874e+0f;

    if (!(x >= 0))
        return __builtin_nanf("");
    frexpf((x + 1) * (1.0f / 0.75f), &exponent);
    exponent--; /* x + 1 = (1 + m) 2^exponent */
    float scale = ldexpf(1, -exponent), m = fmaf(x, scale, scale - 1);
    float below = 2 + m;
    struct pair a =
        quotient((struct pair){m, 0}, (struct pair){below, 2 - below + m});
    float b = a.high * a.high;
    p = fmaf(p, b, 0.3996108174e+0f);
    p = fmaf(p, b, 0.6666694880e+0f);
    struct pair y = ordered_sum(times(ln2, (float)exponent),
                                (struct pair){2 * a.high, 2 * a.low});
    y = ordered_sum(y, (struct pair){b * a.high * p, 0});
    return y.high + y.low;
}
