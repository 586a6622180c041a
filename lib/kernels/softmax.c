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
