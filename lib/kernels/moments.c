/* LayerNorm by Welford's steps, in PyTorch's order. */
#include "kernels/moments.h"

#include "kernels/round.h"

#include <math.h>
#include <stdbool.h>

enum { LANES = 8, STEPS = 16 };

/* How many values, their mean, and the sum of squared distances from it. */
struct moments {
    int64_t count;
    float mean, square;
};

/* Two sets joined as lanes are joined in the end ... */
static void join(struct moments *m, const struct moments *more)
{
    int64_t n = m->count + more->count;
    float share = n ? (float)more->count / (float)n : 0;
    float away = more->mean - m->mean;

    m->square += fmaf(away * away * share, (float)m->count, more->square);
    m->mean = fmaf(share, away, m->mean);
    m->count = n;
}

/* ... and as sets of lanes are, before that. */
static void join_lane(struct moments *m, const struct moments *more)
{
    int64_t n = m->count + more->count;
    float share = n ? (float)more->count / (float)n : 0;
    float away = more->mean - m->mean;

    m->square =
        fmaf(away, away * (share * (float)m->count), m->square + more->square);
    m->mean += share * away;
    m->count = n;
}

/* Values x[0], x[stride], ...: one lane of one set. */
static struct moments steps(const float *x, int64_t stride, int64_t n)
{
    struct moments m = {n, 0, 0};

    for (int64_t j = 0; j < n; j++) {
        float v = x[j * stride], away = v - m.mean;

        m.mean = fmaf(away, 1 / (float)(j + 1), m.mean);
        m.square = fmaf(away, v - m.mean, m.square);
    }
    return m;
}

static struct moments left_over(const float *x, int64_t n)
{
    struct moments m = {0, 0, 0};

    for (int64_t i = 0; i < n; i++) {
        float away = x[i] - m.mean;

        m.mean += away / (float)++m.count;
        m.square += away * (x[i] - m.mean);
    }
    return m;
}

/* Of a row of vectors of `width` values, in width / 8 sets. */
static struct moments of_row(const float *x, int64_t cols, int64_t width)
{
    int64_t vectors = cols / width;
    struct moments m = left_over(x + vectors * width, cols - vectors * width);

    for (int64_t lane = 0; lane < LANES; lane++) {
        struct moments all = {0, 0, 0};

        for (int64_t at = 0; at < vectors; at += STEPS)
            for (int64_t set = 0; set < width; set += LANES) {
                int64_t n = vectors - at < STEPS ? vectors - at : STEPS;
                struct moments part =
                    steps(x + at * width + set + lane, width, n);

                join_lane(&all, &part);
            }
        join(&m, &all);
    }
    return m;
}

void moments_layer_norm(float *y, const float *x, const float *weight,
                        const float *bias, int64_t rows, int64_t cols,
                        double eps, enum dtype t)
{
    const bool is_narrow = t != DTYPE_F32;

    for (int64_t row = 0; row < rows; row++, x += cols, y += cols) {
        struct moments m = of_row(x, cols, is_narrow ? 2 * LANES : LANES);
        float r = 1 / sqrtf(m.square / (float)cols + (float)eps);
        float shift = -(m.mean * r);

        for (int64_t i = 0; i < cols; i++) {
            float v = is_narrow ? fmaf(x[i], r, shift) : (x[i] - m.mean) * r;

            y[i] = round_to(t, fmaf(v, weight[i], bias[i]));
        }
    }
}
