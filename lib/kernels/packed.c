/* Products with ternary weights: exact integers on a grid of each group. */
#include "kernels/packed.h"

#include "base/bug.h"
#include "kernels/kernels_internal.h"
#include "kernels/threads.h"
#include "tensor/dtype.h"

#include <math.h>
#include <string.h>

enum { ROWS = 64 /* activation rows split at a time */ };

int packed_check(const struct packed_weight *w, const uint16_t *biases,
                 struct err *err)
{
    int64_t groups = w->in / PACKED_GROUP;

    for (int64_t row = 0; row < w->out; row++)
        for (int64_t g = 0; g < groups; g++) {
            int64_t at = row * groups + g;
            const uint32_t *codes = w->codes + at * PACKED_WORDS;
            uint32_t threes = 0;

            for (int i = 0; i < PACKED_WORDS; i++)
                threes |= codes[i] & codes[i] >> 1 & 0x55555555;
            if (threes)
                return err_set(err, ERR_INPUT,
                               "row %lld, group %lld: code 3 in a ternary "
                               "weight",
                               (long long)row, (long long)g);
            if (w->scales[at] > 0x7bff)
                return err_set(err, ERR_INPUT,
                               "row %lld, group %lld: scale %g is negative or "
                               "not finite",
                               (long long)row, (long long)g,
                               (double)f16_to_f32(w->scales[at]));
            if (biases[at] != (w->scales[at] | 0x8000))
                return err_set(err, ERR_INPUT,
                               "row %lld, group %lld: bias %g is not the "
                               "negated scale %g",
                               (long long)row, (long long)g,
                               (double)f16_to_f32(biases[at]),
                               (double)f16_to_f32(w->scales[at]));
        }
    return 0;
}

struct packed_weight packed_rows(const struct packed_weight *w, int64_t first,
                                 int64_t count)
{
    struct packed_weight part = *w;

    BUG_ON(first < 0 || count < 0 || first > w->out - count);
    part.codes += first * (w->in / 16);
    part.scales += first * (w->in / PACKED_GROUP);
    part.out = count;
    return part;
}

/* codes - 1 of one row's group */
static void decode_group(const struct packed_weight *w, int64_t row, int64_t g,
                         int c[PACKED_GROUP])
{
    const uint32_t *codes =
        w->codes + (row * (w->in / PACKED_GROUP) + g) * PACKED_WORDS;

    for (int k = 0; k < PACKED_GROUP; k++)
        c[k] = (int)(codes[k / 16] >> (k % 16 * 2) & 3) - 1;
}

static float group_scale(const struct packed_weight *w, int64_t row, int64_t g)
{
    return f16_to_f32(w->scales[row * (w->in / PACKED_GROUP) + g]);
}

/*
 * One activation group on its grid: q and the returned u.  A value that is
 * not finite makes u a NaN, which makes the row's sums NaN.
 */
static float split_group(const float *x, enum packed_grid grid,
                         int32_t q[PACKED_GROUP])
{
    int bits = grid == PACKED_GRID24 ? 22 : 30, e;
    float m = 0;

    for (int k = 0; k < PACKED_GROUP; k++) {
        if (!isfinite(x[k])) {
            memset(q, 0, PACKED_GROUP * sizeof(*q));
            return NAN;
        }
        m = fabsf(x[k]) > m ? fabsf(x[k]) : m;
    }
    e = m == 0 ? 0 : ilogbf(m);
    if (e < -80)
        e = -80;
    for (int k = 0; k < PACKED_GROUP; k++) {
        /* a subnormal product is far below one half: still exact here */
        long v = lrintf(x[k] * ldexpf(1, bits - e));

        q[k] = (int32_t)(grid == PACKED_GRID24 && v > 0x7fffff ? 0x7fffff : v);
    }
    return ldexpf(1, e - bits);
}

struct grid_job {
    float *y;
    const float *x;
    const struct packed_weight *w;
    enum packed_grid grid;
    int64_t rows, groups;
    int32_t *q; /* [rows, in] */
    float *u;   /* [rows, groups] */
};

static void split_rows(void *ctx, int64_t first, int64_t end)
{
    const struct grid_job *job = ctx;

    for (int64_t i = first * job->groups; i < end * job->groups; i++)
        job->u[i] = split_group(job->x + i * PACKED_GROUP, job->grid,
                                job->q + i * PACKED_GROUP);
}

static void grid_piece(void *ctx, int64_t first, int64_t end)
{
    const struct grid_job *job = ctx;
    int64_t out = job->w->out;

    for (int64_t o = first; o < end; o++) {
        for (int64_t t = 0; t < job->rows; t++)
            job->y[t * out + o] = 0;
        for (int64_t g = 0; g < job->groups; g++) {
            float s = group_scale(job->w, o, g);
            int c[PACKED_GROUP];

            decode_group(job->w, o, g, c);
            for (int64_t t = 0; t < job->rows; t++) {
                const int32_t *q =
                    job->q + (t * job->groups + g) * PACKED_GROUP;
                float *y = &job->y[t * out + o];
                int64_t d = 0;

                for (int k = 0; k < PACKED_GROUP; k++)
                    d += (int64_t)c[k] * q[k];
                *y = fmaf(s * job->u[t * job->groups + g], (float)d, *y);
            }
        }
        for (int64_t t = 0; t < job->rows; t++)
            job->y[t * out + o] = canonical_f32(job->y[t * out + o]);
    }
}

void packed_matmul_plain(float *y, const float *x,
                         const struct packed_weight *w, enum packed_grid grid,
                         int64_t rows)
{
    struct grid_job job = {
        .w = w, .grid = grid, .groups = w->in / PACKED_GROUP};
    int64_t most = rows < ROWS ? rows : ROWS;
    size_t values = (size_t)(most * w->in), units = (size_t)(most * job.groups);

    job.q = threads_scratch(SCRATCH_SHARED, (values + units) * 4);
    job.u = (float *)(job.q + values);
    for (int64_t t = 0; t < rows; t += ROWS) {
        job.rows = rows - t < ROWS ? rows - t : ROWS;
        job.x = x + t * w->in;
        job.y = y + t * w->out;
        threads_for(job.rows, 1, split_rows, &job);
        threads_for(w->out, 1, grid_piece, &job);
    }
}

struct packed_job_f64 {
    double *y;
    const double *x;
    const struct packed_weight *w;
    int64_t rows;
};

static void f64_piece(void *ctx, int64_t first, int64_t end)
{
    const struct packed_job_f64 *job = ctx;
    int64_t groups = job->w->in / PACKED_GROUP, out = job->w->out;

    for (int64_t o = first; o < end; o++) {
        for (int64_t t = 0; t < job->rows; t++)
            job->y[t * out + o] = 0;
        for (int64_t g = 0; g < groups; g++) {
            double s = (double)group_scale(job->w, o, g), w[PACKED_GROUP];
            int code[PACKED_GROUP];

            decode_group(job->w, o, g, code);
            for (int k = 0; k < PACKED_GROUP; k++)
                w[k] = code[k] * s;
            for (int64_t t = 0; t < job->rows; t++) {
                const double *x = job->x + (t * groups + g) * PACKED_GROUP;
                double c = 0;

                for (int k = 0; k < PACKED_GROUP; k++)
                    c = fma(x[k], w[k], c);
                job->y[t * out + o] += c;
            }
        }
        for (int64_t t = 0; t < job->rows; t++)
            job->y[t * out + o] = canonical_f64(job->y[t * out + o]);
    }
}

void packed_matmul_f64_plain(double *y, const double *x,
                             const struct packed_weight *w, int64_t rows)
{
    struct packed_job_f64 job = {y, x, w, rows};

    threads_for(w->out, 1, f64_piece, &job);
}

static void check(const struct packed_weight *w, int64_t rows)
{
    BUG_ON(w->out < 0 || w->in < 0 || w->in % PACKED_GROUP != 0 || rows < 0);
}

/* chain v1: a few output rows are decoded at a time and go through
 * dense_matmul_order(). */
static void chain_matmul(float *y, const float *x,
                         const struct packed_weight *w, int64_t rows)
{
    enum { OUTPUTS = 64 };
    size_t width = (size_t)w->in;
    float *decoded = threads_scratch(
        SCRATCH_SHARED,
        (OUTPUTS * width + (size_t)rows * OUTPUTS) * sizeof(*decoded));
    float *part = decoded + OUTPUTS * width;

    for (int64_t first = 0, count; first < w->out; first += count) {
        count = w->out - first < OUTPUTS ? w->out - first : OUTPUTS;
        struct dense_weight dense = {DTYPE_F32, count, w->in, decoded};

        for (int64_t o = 0; o < count; o++)
            packed_row(decoded + (size_t)o * width, w, first + o);
        dense_matmul_order(part, x, &dense, NULL, DENSE_CHAIN, rows);
        for (int64_t t = 0; t < rows; t++)
            memcpy(y + t * w->out + first, part + t * count,
                   (size_t)count * sizeof(*y));
    }
}

void packed_matmul(float *y, const float *x, const struct packed_weight *w,
                   enum packed_grid grid, int64_t rows)
{
    check(w, rows);
    if (grid == PACKED_CHAIN) {
        chain_matmul(y, x, w, rows);
        return;
    }
    kernels_table()->packed_matmul(y, x, w, grid, rows);
}

void packed_matmul_f64(double *y, const double *x,
                       const struct packed_weight *w, int64_t rows)
{
    check(w, rows);
    kernels_table()->packed_matmul_f64(y, x, w, rows);
}

void packed_row(float *y, const struct packed_weight *w, int64_t row)
{
    BUG_ON(row < 0 || row >= w->out);
    for (int64_t g = 0; g < w->in / PACKED_GROUP; g++) {
        float s = group_scale(w, row, g);
        int c[PACKED_GROUP];

        decode_group(w, row, g, c);
        for (int k = 0; k < PACKED_GROUP; k++)
            y[g * PACKED_GROUP + k] = (float)(c[k] + 1) * s - s; /* exact */
    }
}

void packed_row_f64(double *y, const struct packed_weight *w, int64_t row)
{
    BUG_ON(row < 0 || row >= w->out);
    for (int64_t g = 0; g < w->in / PACKED_GROUP; g++) {
        double s = (double)group_scale(w, row, g);
        int c[PACKED_GROUP];

        decode_group(w, row, g, c);
        for (int k = 0; k < PACKED_GROUP; k++)
            y[g * PACKED_GROUP + k] = (c[k] + 1) * s - s;
    }
}
