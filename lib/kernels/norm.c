/* Norms of rows, and the sums of order lanes16 v1 under them. */
#include "kernels/norm.h"

#include "kernels/round.h"
#include "kernels/rows_internal.h"
#include "kernels/threads.h"

#include <math.h>

/* GRAIN: values that a thread takes at a time, some 10 microseconds' work. */
enum { LANES = 16, GRAIN = 16384 };

/* Once for float and once for double. */
#define LANES16(name, real, step)                       \
    real name(const real *x, int64_t n)                 \
    {                                                   \
        real lane[LANES] = {0};                         \
                                                        \
        for (int64_t k = 0; k < n; k++) {               \
            real *l = &lane[k % LANES];                 \
                                                        \
            *l = step;                                  \
        }                                               \
        for (int half = LANES / 2; half > 0; half /= 2) \
            for (int i = 0; i < half; i++)              \
                lane[i] += lane[i + half];              \
        return lane[0];                                 \
    }
static LANES16(sum_plain, float, *l + x[k]) static LANES16(squares_plain, float,
                                                           fmaf(x[k], x[k], *l))
    LANES16(lanes16_sum_f64, double, *l + x[k])
        LANES16(lanes16_squares_f64, double, fma(x[k], x[k], *l))

            float lanes16_sum(const float *x, int64_t n)
{
    return round_to(DTYPE_F32,
                    rows_use_avx2() ? lanes16_sum_avx2(x, n) : sum_plain(x, n));
}

float lanes16_squares(const float *x, int64_t n)
{
    return round_to(DTYPE_F32, rows_use_avx2() ? lanes16_squares_avx2(x, n)
                                               : squares_plain(x, n));
}

static void centre(float *y, const float *x, float mean, int64_t n)
{
    if (rows_use_avx2()) {
        norm_centre_avx2(y, x, mean, n);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] - mean;
}

static void scale(float *y, const float *x, float r, const float *w,
                  const float *b, int64_t n, enum dtype t)
{
    if (rows_use_avx2()) {
        norm_scale_avx2(y, x, r, w, b, n, t);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        float v = round_to(t, x[i] * r);

        if (w)
            v = round_to(t, w[i] * v);
        if (b)
            v = round_to(t, v + b[i]);
        y[i] = v;
    }
}

struct job {
    float *y;
    const float *x, *weight, *bias;
    int64_t cols;
    float eps;
    enum dtype t;
};

static void rms_piece(void *ctx, int64_t first, int64_t end)
{
    const struct job *job = ctx;
    int64_t cols = job->cols;

    for (int64_t row = first; row < end; row++) {
        const float *x = job->x + row * cols;
        float mean = lanes16_squares(x, cols) / (float)cols;

        scale(job->y + row * cols, x, 1.0f / sqrtf(mean + job->eps),
              job->weight, NULL, cols, job->t);
    }
}

void rms_norm(float *y, const float *x, const float *weight, int64_t rows,
              int64_t cols, double eps, enum dtype t)
{
    struct job job = {y, x, weight, NULL, cols, (float)eps, t};

    threads_for(rows, 1 + GRAIN / (cols + 1), rms_piece, &job);
}

static void layer_piece(void *ctx, int64_t first, int64_t end)
{
    const struct job *job = ctx;
    int64_t cols = job->cols;

    for (int64_t row = first; row < end; row++) {
        const float *x = job->x + row * cols;
        float *y = job->y + row * cols, variance;

        centre(y, x, lanes16_sum(x, cols) / (float)cols, cols);
        variance = lanes16_squares(y, cols) / (float)cols;
        scale(y, y, 1.0f / sqrtf(variance + job->eps), job->weight, job->bias,
              cols, job->t);
    }
}

void layer_norm(float *y, const float *x, const float *weight,
                const float *bias, int64_t rows, int64_t cols, double eps,
                enum dtype t)
{
    struct job job = {y, x, weight, bias, cols, (float)eps, t};

    threads_for(rows, 1 + GRAIN / (cols + 1), layer_piece, &job);
}

static void scale_f64(double *y, const double *x, double r, const double *w,
                      const double *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double v = x[i] * r;

        if (w)
            v = w[i] * v;
        if (b)
            v += b[i];
        y[i] = v == v ? v : __builtin_nan("");
    }
}

struct job_f64 {
    double *y;
    const double *x, *weight, *bias;
    int64_t cols;
    double eps;
};

static void rms_piece_f64(void *ctx, int64_t first, int64_t end)
{
    const struct job_f64 *job = ctx;
    int64_t cols = job->cols;

    for (int64_t row = first; row < end; row++) {
        const double *x = job->x + row * cols;
        double mean = lanes16_squares_f64(x, cols) / (double)cols;

        scale_f64(job->y + row * cols, x, 1.0 / sqrt(mean + job->eps),
                  job->weight, NULL, cols);
    }
}

void rms_norm_f64(double *y, const double *x, const double *weight,
                  int64_t rows, int64_t cols, double eps)
{
    struct job_f64 job = {y, x, weight, NULL, cols, eps};

    threads_for(rows, 1 + GRAIN / (cols + 1), rms_piece_f64, &job);
}

static void layer_piece_f64(void *ctx, int64_t first, int64_t end)
{
    const struct job_f64 *job = ctx;
    int64_t cols = job->cols;

    for (int64_t row = first; row < end; row++) {
        const double *x = job->x + row * cols;
        double *y = job->y + row * cols;
        double mean = lanes16_sum_f64(x, cols) / (double)cols, variance;

        for (int64_t i = 0; i < cols; i++)
            y[i] = x[i] - mean;
        variance = lanes16_squares_f64(y, cols) / (double)cols;
        scale_f64(y, y, 1.0 / sqrt(variance + job->eps), job->weight, job->bias,
                  cols);
    }
}

void layer_norm_f64(double *y, const double *x, const double *weight,
                    const double *bias, int64_t rows, int64_t cols, double eps)
{
    struct job_f64 job = {y, x, weight, bias, cols, eps};

    threads_for(rows, 1 + GRAIN / (cols + 1), layer_piece_f64, &job);
}
