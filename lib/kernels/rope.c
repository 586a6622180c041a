/* Rotary position embeddings of text and vision. */
#include "kernels/rope.h"

#include "base/bug.h"
#include "kernels/elementary.h"
#include "kernels/round.h"
#include "kernels/rows_internal.h"
#include "kernels/threads.h"

enum {
    PAIRS = 64, /* whose cosines and sines are at hand at a time */
    GRAIN = 8   /* rows that a thread takes at a time */
};

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

static void rotate_f64(double *a, double *b, double c, double s)
{
    double xa = *a, xb = *b;

    *a = xa * c - xb * s;
    *b = xb * c + xa * s;
}

struct text_job {
    void *x;
    const struct rope_text *rope;
    const int64_t *const *positions;
    int64_t heads, head_dim;
    enum dtype t;
};

static void text_piece(void *ctx, int64_t begin, int64_t end)
{
    const struct text_job *job = ctx;
    const struct rope_text *rope = job->rope;
    int64_t half = rope->dims / 2, head_dim = job->head_dim;
    float f[PAIRS], c[PAIRS], s[PAIRS];

    for (int64_t first = 0, n; first < half; first += n) {
        n = half - first < PAIRS ? half - first : PAIRS;
        for (int64_t i = 0; i < n; i++)
            f[i] = frequency(first + i, rope->dims, rope->theta);
        for (int64_t row = begin; row < end; row++) {
            float *head = (float *)job->x + row * job->heads * head_dim + first;

            for (int64_t i = 0; i < n; i++) {
                int axis = rope_text_axis(rope, first + i);
                float angle = (float)job->positions[axis][row] * f[i];

                c[i] = elem_cos_f32(angle);
                s[i] = elem_sin_f32(angle);
            }
            for (int64_t h = 0; h < job->heads; h++, head += head_dim)
                rotate(head, head + half, c, s, n, job->t);
        }
    }
}

void rope_text_rows(float *x, const struct rope_text *rope,
                    const int64_t *const positions[3], int64_t rows,
                    int64_t heads, int64_t head_dim, enum dtype t)
{
    struct text_job job = {x, rope, positions, heads, head_dim, t};

    BUG_ON(rope->dims % 2 || rope->dims > head_dim);
    threads_for(rows, GRAIN, text_piece, &job);
}

static void text_piece_f64(void *ctx, int64_t begin, int64_t end)
{
    const struct text_job *job = ctx;
    const struct rope_text *rope = job->rope;
    int64_t half = rope->dims / 2, head_dim = job->head_dim;

    for (int64_t i = 0; i < half; i++) {
        double f = frequency_f64(i, rope->dims, rope->theta);
        int axis = rope_text_axis(rope, i);

        for (int64_t row = begin; row < end; row++) {
            double *head = (double *)job->x + row * job->heads * head_dim + i;
            double angle = (double)job->positions[axis][row] * f;
            double c = elem_cos(angle), s = elem_sin(angle);

            for (int64_t h = 0; h < job->heads; h++, head += head_dim)
                rotate_f64(head, head + half, c, s);
        }
    }
}

void rope_text_rows_f64(double *x, const struct rope_text *rope,
                        const int64_t *const positions[3], int64_t rows,
                        int64_t heads, int64_t head_dim)
{
    struct text_job job = {x, rope, positions, heads, head_dim, DTYPE_F64};

    BUG_ON(rope->dims % 2 || rope->dims > head_dim);
    threads_for(rows, GRAIN, text_piece_f64, &job);
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

struct vision_job {
    void *x;
    const void *angles;
    int64_t heads, head_dim;
    enum dtype t;
};

static void vision_piece(void *ctx, int64_t begin, int64_t end)
{
    const struct vision_job *job = ctx;
    int64_t half = job->head_dim / 2;
    float c[PAIRS], s[PAIRS];

    for (int64_t row = begin; row < end; row++) {
        const float *angles = (const float *)job->angles + row * half;

        for (int64_t first = 0, n; first < half; first += n) {
            float *head =
                (float *)job->x + row * job->heads * job->head_dim + first;

            n = half - first < PAIRS ? half - first : PAIRS;
            for (int64_t i = 0; i < n; i++) {
                c[i] = elem_cos_f32(angles[first + i]);
                s[i] = elem_sin_f32(angles[first + i]);
            }
            for (int64_t h = 0; h < job->heads; h++, head += job->head_dim)
                rotate(head, head + half, c, s, n, job->t);
        }
    }
}

void rope_vision_rows(float *x, const float *angles, int64_t rows,
                      int64_t heads, int64_t head_dim, enum dtype t)
{
    struct vision_job job = {x, angles, heads, head_dim, t};

    threads_for(rows, GRAIN, vision_piece, &job);
}

static void vision_piece_f64(void *ctx, int64_t begin, int64_t end)
{
    const struct vision_job *job = ctx;
    int64_t half = job->head_dim / 2;

    for (int64_t row = begin; row < end; row++)
        for (int64_t i = 0; i < half; i++) {
            double angle = ((const double *)job->angles)[row * half + i];
            double *head =
                (double *)job->x + row * job->heads * job->head_dim + i;
            double c = elem_cos(angle), s = elem_sin(angle);

            for (int64_t h = 0; h < job->heads; h++, head += job->head_dim)
                rotate_f64(head, head + half, c, s);
        }
}

void rope_vision_rows_f64(double *x, const double *angles, int64_t rows,
                          int64_t heads, int64_t head_dim)
{
    struct vision_job job = {x, angles, heads, head_dim, DTYPE_F64};

    threads_for(rows, GRAIN, vision_piece_f64, &job);
}
