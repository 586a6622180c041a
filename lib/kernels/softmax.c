/* Softmax along a row. */
#include "kernels/softmax.h"

#include "kernels/elementary.h"
#include "kernels/norm.h"
#include "kernels/rows_internal.h"

#include <math.h>

static float max_plain(const float *x, int64_t n)
{
    float max = -INFINITY;

    for (int64_t i = 0; i < n; i++) {
        if (x[i] != x[i])
            return __builtin_nanf("");
        max = x[i] > max ? x[i] : max;
    }
    return max + 0; /* +0 where it was -0 */
}

float softmax_max(const float *x, int64_t n)
{
    return rows_use_avx2() ? softmax_max_avx2(x, n) : max_plain(x, n);
}

float softmax_exp(float *y, const float *x, float max, int64_t n)
{
    if (rows_use_avx2())
        norm_centre_avx2(y, x, max, n);
    else
        for (int64_t i = 0; i < n; i++)
            y[i] = x[i] - max;
    elem_exp_row(y, y, n);
    return lanes16_sum(y, n);
}

void softmax_row(float *y, const float *x, int64_t n)
{
    float factor = 1.0f / softmax_exp(y, x, softmax_max(x, n), n);

    for (int64_t i = 0; i < n; i++)
        y[i] *= factor;
}

float vec_exp(float x)
{
    static const float p[] = {
        0.00139304355252534151077271f, 0.00833336077630519866943359f,
        0.0416664853692054748535156f, 0.166666671633720397949219f, 0.5f};

    if (!(x >= -104)) /* or a NaN */
        return x < 0 ? 0 : x;
    if (x > 100)
        return INFINITY;
    float n = rintf(x * 1.442695040888963407f);
    float r = fmaf(n, -0.693145751953125f, x);
    r = fmaf(n, -1.428606765330187045e-06f, r);
    float y = 0.000198527617612853646278381f;
    for (size_t i = 0; i < sizeof(p) / sizeof(p[0]); i++)
        y = fmaf(y, r, p[i]);
    return ldexpf(1 + fmaf(r * r, y, r), (int)n);
}

/* One after the other when they do not fill a vector. */
static float vec_sum(const float *x, int64_t n)
{
    float sum = 0;

    if (n >= 16)
        return lanes16_sum(x, n);
    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    return sum;
}

void softmax_vec_row(float *y, const float *x, int64_t n)
{
    float max = softmax_max(x, n);

    for (int64_t i = 0; i < n; i++)
        y[i] = vec_exp(x[i] - max);
    float factor = 1.0f / vec_sum(y, n);
    for (int64_t i = 0; i < n; i++)
        y[i] *= factor;
}

double softmax_max_f64(const double *x, int64_t n)
{
    double max = -INFINITY;

    for (int64_t i = 0; i < n; i++) {
        if (x[i] != x[i])
            return __builtin_nan("");
        max = x[i] > max ? x[i] : max;
    }
    return max + 0; /* +0 where it was -0 */
}

double softmax_exp_f64(double *y, const double *x, double max, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = elem_exp(x[i] - max);
    return lanes16_sum_f64(y, n);
}

void softmax_row_f64(double *y, const double *x, int64_t n)
{
    double factor = 1.0 / softmax_exp_f64(y, x, softmax_max_f64(x, n), n);

    for (int64_t i = 0; i < n; i++)
        y[i] *= factor;
}
