/* Norms of rows, and the sums of order lanes16 v1 under them. */
#include "kernels/norm.h"

#include "kernels/round.h"
#include "kernels/rows_internal.h"

#include <math.h>

enum { LANES = 16 };

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

void rms_norm(float *y, const float *x, const float *weight, int64_t rows,
              int64_t cols, double eps, enum dtype t)
{
    for (int64_t row = 0; row < rows; row++, y += cols, x += cols) {
        float mean = lanes16_squares(x, cols) / (float)cols;

        scale(y, x, 1.0f / sqrtf(mean + (float)eps), weight, NULL, cols, t);
    }
}

void layer_norm(float *y, const float *x, const float *weight,
                const float *bias, int64_t rows, int64_t cols, double eps,
                enum dtype t)
{
    for (int64_t row = 0; row < rows; row++, y += cols, x += cols) {
        centre(y, x, lanes16_sum(x, cols) / (float)cols, cols);
        float variance = lanes16_squares(y, cols) / (float)cols;

        scale(y, y, 1.0f / sqrtf(variance + (float)eps), weight, bias, cols, t);
    }
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

void rms_norm_f64(double *y, const double *x, const double *weight,
                  int64_t rows, int64_t cols, double eps)
{
    for (int64_t row = 0; row < rows; row++, y += cols, x += cols) {
        double mean = lanes16_squares_f64(x, cols) / (double)cols;

        scale_f64(y, x, 1.0 / sqrt(mean + eps), weight, NULL, cols);
    }
}

void layer_norm_f64(double *y, const double *x, const double *weight,
                    const double *bias, int64_t rows, int64_t cols, double eps)
{
    for (int64_t row = 0; row < rows; row++, y += cols, x += cols) {
        double mean = lanes16_sum_f64(x, cols) / (double)cols;

        for (int64_t i = 0; i < cols; i++)
            y[i] = x[i] - mean;
        double variance = lanes16_squares_f64(y, cols) / (double)cols;
        scale_f64(y, y, 1.0 / sqrt(variance + eps), weight, bias, cols);
    }
}
