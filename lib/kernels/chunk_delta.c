/* The delta rule in chunks, as PyTorch computes it; heads are independent. */
#include "kernels/chunk_delta.h"

#include "base/bug.h"
#include "kernels/cascade.h"
#include "kernels/chunk_internal.h"
#include "kernels/elementary.h"
#include "kernels/kernels_internal.h"
#include "kernels/threads.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { ROW_GRAIN = 8 };

struct job {
    float *y;
    const float *q, *k, *v, *g, *beta;
    const struct channel_delta *shape;
    int64_t chunk, tokens;
};

/* What a head keeps, in its thread's scratch. */
struct head {
    int64_t dim;
    float *state;               /* [dim, dim] */
    float *q, *k, *v, *g;       /* [chunk, dim]; g summed */
    float *k_beta, *decayed;    /* [chunk, dim] */
    float *u, *more;            /* [chunk, dim] */
    float *a, *products, *beta; /* [chunk, chunk], [dim or chunk], [chunk] */
};

void chunk_product(float *y, const float *a, int64_t row, int64_t step,
                   const float *b, int64_t rows, int64_t inner, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) {
            float sum = 0;

            for (int64_t k = 0; k < inner; k++)
                sum = fmaf(a[i * row + k * step], b[k * cols + j], sum);
            y[i * cols + j] = sum;
        }
}

static void copy_in(const struct job *job, const struct head *h, int64_t which,
                    int64_t first, int64_t n)
{
    const int64_t heads = job->shape->heads, dim = h->dim;

    for (int64_t i = 0; i < n; i++) {
        const int64_t from = ((first + i) * heads + which) * dim;
        const size_t size = (size_t)dim * sizeof(float);

        memcpy(h->q + i * dim, job->q + from, size);
        memcpy(h->k + i * dim, job->k + from, size);
        memcpy(h->v + i * dim, job->v + from, size);
        memcpy(h->g + i * dim, job->g + from, size);
        h->beta[i] = job->beta[(first + i) * heads + which];
    }
    for (int64_t c = 0; c < dim; c++) {
        double sum = 0;

        for (int64_t i = 0; i < n; i++) {
            sum += (double)h->g[i * dim + c];
            h->g[i * dim + c] = (float)sum;
        }
    }
    for (int64_t i = 0; i < n * dim; i++) {
        h->v[i] *= h->beta[i / dim];
        h->k_beta[i] = h->k[i] * h->beta[i / dim];
    }
}

/* sum over c of x_i[c] k_j[c] D[i][j][c] */
static float decayed_dot(const struct head *h, const float *x, int64_t i,
                         int64_t j)
{
    const int64_t dim = h->dim;

    for (int64_t c = 0; c < dim; c++) {
        float decay = elem_exp_f32(h->g[i * dim + c] - h->g[j * dim + c]);

        h->products[c] = x[i * dim + c] * h->k[j * dim + c] * decay;
    }
    return cascade_sum(h->products, dim);
}

/* A + 1, A solved row by row: the rows above are done, their diagonals 0. */
static void solve(const struct head *h, int64_t n, float *row)
{
    float *a = h->a;

    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++)
            a[i * n + j] = j < i ? -decayed_dot(h, h->k_beta, i, j) : 0;
        memcpy(row, a + i * n, (size_t)i * sizeof(*row));
        for (int64_t j = 0; j < i; j++) {
            for (int64_t m = 0; m < i; m++)
                h->products[m] = row[m] * a[m * n + j];
            a[i * n + j] = row[j] + cascade_column_sum(h->products, i, j, i);
        }
    }
    for (int64_t i = 0; i < n; i++)
        a[i * n + i] = 1;
}

static void run_chunk(const struct job *job, const struct head *h,
                      int64_t which, int64_t first, int64_t n)
{
    const int64_t heads = job->shape->heads, dim = h->dim;
    const float *last = h->g + (n - 1) * dim;

    copy_in(job, h, which, first, n);
    solve(h, n, h->u);
    chunk_product(h->u, h->a, n, 1, h->v, n, n, dim);
    for (int64_t i = 0; i < n * dim; i++)
        h->decayed[i] = h->k_beta[i] * elem_exp_f32(h->g[i]);
    chunk_product(h->more, h->a, n, 1, h->decayed, n, n, dim);
    chunk_product(h->decayed, h->more, dim, 1, h->state, n, dim, dim);
    for (int64_t i = 0; i < n * dim; i++)
        h->u[i] -= h->decayed[i];

    for (int64_t i = 0; i < n * dim; i++)
        h->decayed[i] = h->q[i] * elem_exp_f32(h->g[i]);
    chunk_product(h->more, h->decayed, dim, 1, h->state, n, dim, dim);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            h->a[i * n + j] = j <= i ? decayed_dot(h, h->q, i, j) : 0;
    chunk_product(h->decayed, h->a, n, 1, h->u, n, n, dim);
    for (int64_t i = 0; i < n; i++)
        for (int64_t d = 0; d < dim; d++)
            job->y[((first + i) * heads + which) * dim + d] =
                canonical_f32(h->more[i * dim + d] + h->decayed[i * dim + d]);

    for (int64_t i = 0; i < n * dim; i++)
        h->decayed[i] = h->k[i] * elem_exp_f32(last[i % dim] - h->g[i]);
    for (int64_t c = 0; c < dim; c++) {
        float keep = elem_exp_f32(last[c]), *state = h->state + c * dim;

        chunk_product(h->more, h->decayed + c, 1, dim, h->u, 1, n, dim);
        for (int64_t d = 0; d < dim; d++)
            state[d] = state[d] * keep + h->more[d];
    }
}

static void piece(void *ctx, int64_t begin, int64_t end)
{
    const struct job *job = ctx;
    const int64_t dim = job->shape->dim, chunk = job->chunk, n = chunk * dim;
    const int64_t work = dim > chunk ? dim : chunk;
    float *at =
        threads_scratch(SCRATCH_PIECE, (size_t)(dim * dim + 8 * n +
                                                chunk * chunk + work + chunk) *
                                           sizeof(*at));
    struct head h = {.dim = dim, .state = at};

    h.q = at + dim * dim;
    h.k = h.q + n;
    h.v = h.k + n;
    h.g = h.v + n;
    h.k_beta = h.g + n;
    h.decayed = h.k_beta + n;
    h.u = h.decayed + n;
    h.more = h.u + n;
    h.a = h.more + n;
    h.products = h.a + chunk * chunk;
    h.beta = h.products + work;
    for (int64_t which = begin; which < end; which++) {
        memset(h.state, 0, (size_t)(dim * dim) * sizeof(*h.state));
        for (int64_t first = 0; first < job->tokens; first += chunk) {
            int64_t left = job->tokens - first;

            run_chunk(job, &h, which, first, left < chunk ? left : chunk);
        }
    }
}

void chunk_delta(float *y, const float *q, const float *k, const float *v,
                 const float *g, const float *beta,
                 const struct channel_delta *shape, int64_t chunk,
                 int64_t tokens)
{
    struct job job = {y, q, k, v, g, beta, shape, chunk, tokens};

    BUG_ON(shape->heads < 1 || shape->dim < 1 || chunk < 1 || tokens < 0);
    threads_for(shape->heads, 1, piece, &job);
}

struct unit_job {
    float *y;
    const float *x;
    float scale;
    int64_t dim;
    bool is_inverse; /* x * (1 / root), not x / root */
};

static void unit_piece(void *ctx, int64_t first, int64_t end)
{
    const struct unit_job *job = ctx;
    const int64_t dim = job->dim;
    float *squares =
        threads_scratch(SCRATCH_PIECE, (size_t)dim * sizeof(*squares));

    for (int64_t r = first; r < end; r++) {
        const float *x = job->x + r * dim;

        for (int64_t i = 0; i < dim; i++)
            squares[i] = x[i] * x[i];
        float root = sqrtf(cascade_sum(squares, dim) + 1e-6f);
        float inverse = 1 / root;
        for (int64_t i = 0; i < dim; i++) {
            float y = job->is_inverse ? x[i] * inverse : x[i] / root;

            job->y[r * dim + i] = canonical_f32(y * job->scale);
        }
    }
}

static void unit_rows(float *y, const float *x, double scale, int64_t rows,
                      int64_t dim, bool is_inverse)
{
    struct unit_job job = {y, x, (float)scale, dim, is_inverse};

    BUG_ON(dim < 1);
    threads_for(rows, ROW_GRAIN, unit_piece, &job);
}

void chunk_unit(float *y, const float *x, double scale, int64_t rows,
                int64_t dim)
{
    unit_rows(y, x, scale, rows, dim, false);
}

void chunk_unit_inverse(float *y, const float *x, double scale, int64_t rows,
                        int64_t dim)
{
    unit_rows(y, x, scale, rows, dim, true);
}
