/* The order in which PyTorch's CPU backend adds up a row. */
#include "kernels/cascade.h"

#include "kernels/kernels_internal.h"
#include "kernels/round.h"
#include "kernels/threads.h"

#include <string.h>

enum { LANES = 8, WAYS = 4, LEVELS = 4, MOST = LANES * WAYS, GRAIN = 8 };

static int ceil_log2(int64_t n)
{
    return n <= 2 ? 1 : 64 - __builtin_clzll((unsigned long long)n - 1);
}

static void add(float *sum, const float *x, int64_t width)
{
    for (int64_t i = 0; i < width; i++)
        sum[i] += x[i];
}

/* `width` columns of x [count, width], each in a chain cut into levels. */
static void chains(float *sum, const float *x, int64_t count, int64_t width)
{
    int power = ceil_log2(count) / LEVELS;
    float level[LEVELS][MOST] = {{0}};
    int64_t i = 0, step;

    power = power < 4 ? 4 : power;
    step = (int64_t)1 << power;
    while (i + step <= count) {
        for (int64_t end = i + step; i < end; i++)
            add(level[0], x + i * width, width);
        for (int j = 1; j < LEVELS; j++) {
            add(level[j], level[j - 1], width);
            memset(level[j - 1], 0, sizeof(level[j - 1]));
            if (i & (step - 1) << j * power)
                break;
        }
    }
    for (; i < count; i++)
        add(level[0], x + i * width, width);
    for (int j = 1; j < LEVELS; j++)
        add(level[0], level[j], width);
    memcpy(sum, level[0], (size_t)width * sizeof(*sum));
}

/* `count` steps of `width` values in four ways, into sum [width]. */
static void steps(float *sum, const float *x, int64_t count, int64_t width)
{
    float ways[MOST];
    int64_t whole = count / WAYS;

    chains(ways, x, whole, WAYS * width);
    for (int64_t i = whole * WAYS; i < count; i++)
        add(ways, x + i * width, width);
    for (int way = 1; way < WAYS; way++)
        add(ways, ways + way * width, width);
    memcpy(sum, ways, (size_t)width * sizeof(*sum));
}

float cascade_sum(const float *x, int64_t n)
{
    float lanes[LANES], y = 0;

    if (n < LANES) {
        steps(&y, x, n, 1);
        return y;
    }
    steps(lanes, x, n / LANES, LANES);
    for (int64_t i = n / LANES * LANES; i < n; i++)
        y += x[i];
    for (int i = 0; i < LANES; i++)
        y += lanes[i];
    return y;
}

float cascade_column_sum(const float *x, int64_t n, int64_t column,
                         int64_t columns)
{
    int64_t group = columns < LANES ? WAYS : MOST;
    float y;

    if (column < columns / group * group)
        chains(&y, x, n, 1);
    else
        steps(&y, x, n, 1);
    return y;
}

struct job {
    float *y;
    const float *x, *weight;
    int64_t cols;
    float eps;
    enum dtype t;
};

static void piece(void *ctx, int64_t first, int64_t end)
{
    const struct job *job = ctx;
    float *squares = threads_scratch(SCRATCH_PIECE,
                                     (size_t)job->cols * sizeof(*squares) + 1);

    for (int64_t row = first; row < end; row++) {
        const float *x = job->x + row * job->cols;
        float *y = job->y + row * job->cols, r;

        for (int64_t i = 0; i < job->cols; i++)
            squares[i] = x[i] * x[i];
        r = cascade_sum(squares, job->cols) / (float)job->cols;
        r = 1.0f / sqrtf(r + job->eps);
        for (int64_t i = 0; i < job->cols; i++) {
            float v = round_to(job->t, x[i] * r);

            y[i] = job->weight ? round_to(job->t, job->weight[i] * v) : v;
        }
    }
}

void cascade_rms_norm(float *y, const float *x, const float *weight,
                      int64_t rows, int64_t cols, double eps, enum dtype t)
{
    struct job job = {y, x, weight, cols, (float)eps, t};

    threads_for(rows, GRAIN, piece, &job);
}
