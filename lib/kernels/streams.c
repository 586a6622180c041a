/* The arithmetic of hyper-connections. */
#include "kernels/streams.h"

#include "base/bug.h"
#include "kernels/blocks32.h"
#include "kernels/cascade.h"
#include "kernels/elementary.h"
#include "kernels/kernels_internal.h"
#include "kernels/round.h"
#include "kernels/softmax.h"
#include "kernels/threads.h"

#include <math.h>

enum { GRAIN = 4 };

/* The sum of m[j n] x[j]. */
static float streams_dot(const float *m, const float *x, int64_t n,
                         enum dtype t)
{
    float sum = 0;

    if (t == DTYPE_BF16)
        return blocks_dot(m, n, x, 1, n, 32);
    for (int64_t j = 0; j < n; j++)
        sum = fmaf(m[j * n], x[j], sum);
    return sum;
}

static double streams_dot_f64(const double *m, const double *x, int64_t n,
                              enum dtype t)
{
    double sum = 0;

    (void)t;
    for (int64_t j = 0; j < n; j++)
        sum = fma(m[j * n], x[j], sum);
    return sum;
}

/* Row or column i of a matrix [n, n]. */
static float line_sum(const float *line, int64_t n, int64_t step, int64_t i)
{
    float x[STREAMS_MOST];

    for (int64_t k = 0; k < n; k++)
        x[k] = line[k * step];
    return step == 1 ? cascade_sum(x, n) : cascade_column_sum(x, n, i, n);
}

static double line_sum_f64(const double *line, int64_t n, int64_t step,
                           int64_t i)
{
    double sum = 0;

    (void)i;
    for (int64_t k = 0; k < n; k++)
        sum += line[k * step];
    return sum;
}

/* The sum of w[k] x[k], of column `column` of `width`; up to four are added in
 * order. */
static float weighed_sum(const float *w, const float *x, int64_t n,
                         int64_t width, int64_t column)
{
    float product[STREAMS_MOST], sum = 0;

    for (int64_t k = 0; k < n; k++)
        product[k] = w[k] * x[k * width];
    if (n > 4)
        return cascade_column_sum(product, n, column, width);
    for (int64_t k = 0; k < n; k++)
        sum += product[k];
    return sum;
}

static double weighed_sum_f64(const double *w, const double *x, int64_t n,
                              int64_t width, int64_t column)
{
    double sum = 0;

    (void)column;
    for (int64_t k = 0; k < n; k++)
        sum += w[k] * x[k * width];
    return sum;
}

#define EXP vec_exp /* PyTorch's, of a row of any length */
#include "kernels/real_f32.inc"

#include "kernels/streams_plain.inc"

#undef EXP
#define EXP elem_exp
#include "kernels/real_f64.inc"

#include "kernels/streams_plain.inc"

void streams_sinkhorn(float *m, int64_t rows, int64_t n, int64_t iterations,
                      double eps)
{
    struct sinkhorn_job job = {m, n, iterations, (float)eps};

    BUG_ON(n > STREAMS_MOST);
    threads_for(rows, GRAIN, sinkhorn_piece, &job);
}

void streams_sinkhorn_f64(double *m, int64_t rows, int64_t n,
                          int64_t iterations, double eps)
{
    struct sinkhorn_job_f64 job = {m, n, iterations, eps};

    threads_for(rows, GRAIN, sinkhorn_piece_f64, &job);
}

void streams_collapse(float *y, const float *x, const float *w, int64_t rows,
                      int64_t n, int64_t width, enum dtype t)
{
    struct streams_job job = {y, x, NULL, w, n, width, t};

    BUG_ON(n > STREAMS_MOST);
    threads_for(rows, GRAIN, collapse_piece, &job);
}

void streams_collapse_f64(double *y, const double *x, const double *w,
                          int64_t rows, int64_t n, int64_t width)
{
    struct streams_job_f64 job = {y, x, NULL, w, n, width, DTYPE_F64};

    threads_for(rows, GRAIN, collapse_piece_f64, &job);
}

void streams_mix(float *x, const float *post, const float *m, const float *y,
                 int64_t rows, int64_t n, int64_t width, enum dtype t)
{
    struct streams_job job = {x, y, post, m, n, width, t};

    threads_for(rows, GRAIN, mix_piece, &job);
}

void streams_mix_f64(double *x, const double *post, const double *m,
                     const double *y, int64_t rows, int64_t n, int64_t width)
{
    struct streams_job_f64 job = {x, y, post, m, n, width, DTYPE_F64};

    threads_for(rows, GRAIN, mix_piece_f64, &job);
}
