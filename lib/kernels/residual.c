/* Attention of a row over its own earlier states. */
#include "kernels/residual.h"

#include "base/bug.h"
#include "kernels/cascade.h"
#include "kernels/kernels_internal.h"
#include "kernels/norm.h"
#include "kernels/softmax.h"
#include "kernels/threads.h"

#include <math.h>

#define SQRT sqrtf
#define SQUARES lanes16_squares
#include "kernels/real_f32.inc"

#include "kernels/residual_plain.inc"

/* ---- as PyTorch ---- */

static const float *state_of(const struct residual_job *job, int64_t row,
                             int64_t j)
{
    const float *x = job->x + row * job->stride;

    return j < job->n ? x + (1 + j) * job->width : x;
}

static float torch_score(const struct residual_job *job, const float *v,
                         float *terms)
{
    const int64_t width = job->width;

    for (int64_t i = 0; i < width; i++)
        terms[i] = v[i] * v[i];
    float mean = cascade_sum(terms, width) / (float)width;
    float scale = 1 / sqrtf(mean + job->eps);
    for (int64_t i = 0; i < width; i++)
        terms[i] = v[i] * scale * (job->norm[i] * job->proj[i]);
    return cascade_sum(terms, width);
}

static void torch_piece(void *ctx, int64_t first, int64_t end)
{
    const struct residual_job *job = ctx;
    const int64_t n = job->n + 1, width = job->width;
    float *p =
        threads_scratch(SCRATCH_PIECE, (size_t)(2 * n + width) * sizeof(*p));
    float *column = p + n, *terms = column + n;

    for (int64_t r = first; r < end; r++) {
        for (int64_t j = 0; j < n; j++)
            p[j] = torch_score(job, state_of(job, r, j), terms);
        softmax_vec_row(p, p, n);
        for (int64_t i = 0; i < width; i++) {
            for (int64_t j = 0; j < n; j++)
                column[j] = p[j] * state_of(job, r, j)[i];
            job->y[r * width + i] =
                canonical_f32(cascade_column_sum(column, n, i, width));
        }
    }
}

void residual_mix_torch(float *y, const float *x, const float *norm,
                        const float *proj, double eps, int64_t n, int64_t width,
                        int64_t stride, int64_t rows)
{
    struct residual_job job = {y, x, norm, proj, (float)eps, n, width, stride};

    BUG_ON(n < 0 || (n + 1) * width > stride);
    threads_for(rows, 1, torch_piece, &job);
}

/* ---- in double ---- */

#undef SQRT
#undef SQUARES
#define SQRT sqrt
#define SQUARES lanes16_squares_f64
#include "kernels/real_f64.inc"

#include "kernels/residual_plain.inc"
