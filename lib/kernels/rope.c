/* Rotary position embeddings of text and vision. */
#include "kernels/rope.h"

#include "base/bug.h"
#include "kernels/elementary.h"
#include "kernels/round.h"
#include "kernels/rows_internal.h"

enum { PAIRS = 64 }; /* whose cosines and sines are at hand at a time */

static float frequency(int64_t i, int64_t dims, double theta)
{
    float exponent = (float)(2 * i) / (float)dims;

    return 1.0f / elem_pow_f32((float)theta, exponent);
}

static double frequency_f64(int64_t i, int64_t dims, double theta)
{
    return 1.0 / elem_pow(theta, (double)(2 * i) / (double)dims);
}

void rope_inv_freq(float *f, int64_t dims, double theta)
{
    for (int64_t i = 0; i < dims / 2; i++)
        f[i] = frequency(i, dims, theta);
}

void rope_inv_freq_f64(double *f, int64_t dims, double theta)
{
    for (int64_t i = 0; i < dims / 2; i++)
        f[i] = frequency_f64(i, dims, theta);
}

int rope_text_axis(const struct rope_text *rope, int64_t pair)
{
    int axis = (int)(pair % 3);

    return axis > 0 && pair < 3 * rope->sections[axis] ? axis : 0;
}

static void rotate(float *a, float *b, const float *c, const float *s,
                   int64_t n, enum dtype t)
{
    if (rows_use_avx2()) {
        rotate_pairs_avx2(a, b, c, s, n, t);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        float xa = a[i], xb = b[i];

        a[i] = round_to(t, xa * c[i] - xb * s[i]);
        b[i] = round_to(t, xb * c[i] + xa * s[i]);
    }
}

static void rotate_f64(double *a, double *b, const double *c, const double *s,
                       int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double xa = a[i], xb = b[i];

        a[i] = xa * c[i] - xb * s[i];
        b[i] = xb * c[i] + xa * s[i];
    }
}

void rope_text_rows(float *x, const struct rope_text *rope,
                    const int64_t *const positions[3], int64_t rows,
                    int64_t heads, int64_t head_dim, enum dtype t)
{
    int64_t half = rope->dims / 2;
    float f[PAIRS], c[PAIRS], s[PAIRS];

    BUG_ON(rope->dims % 2 || rope->dims > head_dim);
    for (int64_t first = 0, n; first < half; first += n) {
        n = half - first < PAIRS ? half - first : PAIRS;
        for (int64_t i = 0; i < n; i++)
            f[i] = frequency(first + i, rope->dims, rope->theta);
        for (int64_t row = 0; row < rows; row++) {
            float *head = x + row * heads * head_dim + first;

            for (int64_t i = 0; i < n; i++) {
                int axis = rope_text_axis(rope, first + i);
                float angle = (float)positions[axis][row] * f[i];

                c[i] = elem_cos_f32(angle);
                s[i] = elem_sin_f32(angle);
            }
            for (int64_t h = 0; h < heads; h++, head += head_dim)
                rotate(head, head + half, c, s, n, t);
        }
    }
}

void rope_text_rows_f64(double *x, const struct rope_text *rope,
                        const int64_t *const positions[3], int64_t rows,
                        int64_t heads, int64_t head_dim)
{
    int64_t half = rope->dims / 2;

    BUG_ON(rope->dims % 2 || rope->dims > head_dim);
    for (int64_t i = 0; i < half; i++) {
        double f = frequency_f64(i, rope->dims, rope->theta);
        int axis = rope_text_axis(rope, i);

        for (int64_t row = 0; row < rows; row++) {
            double *head = x + row * heads * head_dim + i;
            double angle = (double)positions[axis][row] * f;
            double c = elem_cos(angle), s = elem_sin(angle);

            for (int64_t h = 0; h < heads; h++, head += head_dim)
                rotate_f64(head, head + half, &c, &s, 1);
        }
    }
}

void rope_vision_angles(float *angles, int64_t cols, double theta,
                        const struct posembed_grid *grid, int64_t first,
                        int64_t rows)
{
    int64_t half = cols / 2;

    BUG_ON(cols % 2);
    for (int64_t i = 0; i < half; i++) {
        float f = frequency(i, cols, theta);

        for (int64_t k = 0; k < rows; k++) {
            int64_t row, col;

            posembed_place(grid, first + k, &row, &col);
            angles[k * cols + i] = (float)row * f;
            angles[k * cols + half + i] = (float)col * f;
        }
    }
}

void rope_vision_angles_f64(double *angles, int64_t cols, double theta,
                            const struct posembed_grid *grid, int64_t first,
                            int64_t rows)
{
    int64_t half = cols / 2;

    BUG_ON(cols % 2);
    for (int64_t i = 0; i < half; i++) {
        double f = frequency_f64(i, cols, theta);

        for (int64_t k = 0; k < rows; k++) {
            int64_t row, col;

            posembed_place(grid, first + k, &row, &col);
            angles[k * cols + i] = (double)row * f;
            angles[k * cols + half + i] = (double)col * f;
        }
    }
}

void rope_vision_rows(float *x, const float *angles, int64_t rows,
                      int64_t heads, int64_t head_dim, enum dtype t)
{
    int64_t half = head_dim / 2;
    float c[PAIRS], s[PAIRS];

    for (int64_t row = 0; row < rows; row++, angles += half)
        for (int64_t first = 0, n; first < half; first += n) {
            float *head = x + row * heads * head_dim + first;

            n = half - first < PAIRS ? half - first : PAIRS;
            for (int64_t i = 0; i < n; i++) {
                c[i] = elem_cos_f32(angles[first + i]);
                s[i] = elem_sin_f32(angles[first + i]);
            }
            for (int64_t h = 0; h < heads; h++, head += head_dim)
                rotate(head, head + half, c, s, n, t);
        }
}

void rope_vision_rows_f64(double *x, const double *angles, int64_t rows,
                          int64_t heads, int64_t head_dim)
{
    int64_t half = head_dim / 2;

    for (int64_t row = 0; row < rows; row++, angles += half)
        for (int64_t i = 0; i < half; i++) {
            double *head = x + row * heads * head_dim + i;
            double c = elem_cos(angles[i]), s = elem_sin(angles[i]);

            for (int64_t h = 0; h < heads; h++, head += head_dim)
                rotate_f64(head, head + half, &c, &s, 1);
        }
}
