/* Attention over a window of keys and over compressed entries. */
#include "kernels/compressed.h"

#include "kernels/blocks32.h"
#include "kernels/cascade.h"
#include "kernels/elementary.h"
#include "kernels/kernels_internal.h"
#include "kernels/norm.h"
#include "kernels/round.h"
#include "kernels/softmax.h"
#include "kernels/threads.h"
#include "kernels/topk.h"
#include "kernels/torch_blocking.h"

#include "base/bug.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 16, BLOCK = 32, SLOTS = 16, CHAIN_BLOCK = 128, GRAIN = 4 };

/* The blocks of one of upstream's products, [rows, in] by [in, out]. */
static int64_t block_of(int64_t rows, int64_t out, int64_t in)
{
    return rows > 1 && out > 1 && !torch_blocking(rows, out, in).is_even
               ? BLOCK
               : even32_block(in);
}

/* ---- which columns ---- */

/* The entries whose windows have ended by token t. */
static int64_t causal_entries(int64_t t, int64_t rate, int64_t entries)
{
    int64_t past = (t + 1) / rate;

    return past < entries ? past : entries;
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* The columns that a row sees, ascending, and the place of each among the whole
 * blocks that hold one: `wide` places. */
struct columns {
    int64_t *seen, *place, count, wide, block;
    int64_t inner; /* the blocks of a score's columns */
};

static size_t most_seen(const struct seeing *how, int64_t rows)
{
    int64_t near = how->window < rows ? how->window : rows;

    return (size_t)(near + (how->picked ? how->most : how->entries));
}

static size_t most_columns(const struct seeing *how, int64_t rows)
{
    int64_t near = how->window < rows ? how->window : rows;
    int64_t block = block_of(rows, how->dim, rows + how->entries);
    int64_t far = how->picked ? how->most : how->entries / block + 2;
    int64_t blocks = near / block + 2 + far;
    int64_t all = (rows + how->entries + block - 1) / block;

    return (size_t)((blocks < all ? blocks : all) * block);
}

static void see_one(struct columns *c, int64_t column)
{
    bool is_new =
        c->count == 0 || c->seen[c->count - 1] / c->block != column / c->block;

    c->wide += is_new ? c->block : 0;
    c->place[c->count] = c->wide - c->block + column % c->block;
    c->seen[c->count++] = column;
}

static void see(struct columns *c, const struct seeing *how, int64_t row,
                int64_t rows)
{
    int64_t first = row - how->window + 1;

    c->count = c->wide = 0;
    c->block = block_of(rows, how->dim, rows + how->entries);
    c->inner = block_of(rows, rows + how->entries, how->dim);
    for (int64_t j = first > 0 ? first : 0; j <= row; j++)
        see_one(c, j);
    if (how->picked) {
        const int64_t *picked = how->picked + row * how->most;

        for (int64_t i = 0; i < how->most && picked[i] >= 0; i++)
            see_one(c, rows + picked[i]);
    } else if (how->entries) {
        int64_t past = causal_entries(row, how->rate, how->entries);

        for (int64_t w = 0; w < past; w++)
            see_one(c, rows + w);
    }
}

/* ---- sums ---- */

static float chain(const float *a, int64_t a_step, const float *b,
                   int64_t b_step, int64_t n)
{
    float y = 0;

    for (int64_t at = 0; at < n; at += CHAIN_BLOCK) {
        int64_t end = n - at < CHAIN_BLOCK ? n : at + CHAIN_BLOCK;
        float c = 0;

        for (int64_t i = at; i < end; i++)
            c = fmaf(a[i * a_step], b[i * b_step], c);
        y += c;
    }
    return y;
}

static double chain_f64(const double *a, int64_t a_step, const double *b,
                        int64_t b_step, int64_t n)
{
    double y = 0;

    for (int64_t at = 0; at < n; at += CHAIN_BLOCK) {
        int64_t end = n - at < CHAIN_BLOCK ? n : at + CHAIN_BLOCK;
        double c = 0;

        for (int64_t i = at; i < end; i++)
            c = fma(a[i * a_step], b[i * b_step], c);
        y += c;
    }
    return y;
}

static float dot(const float *a, int64_t a_step, const float *b, int64_t b_step,
                 int64_t n, int64_t block, enum dtype t)
{
    return t == DTYPE_BF16 ? blocks_dot(a, a_step, b, b_step, n, block)
                           : chain(a, a_step, b, b_step, n);
}

static double dot_f64(const double *a, int64_t a_step, const double *b,
                      int64_t b_step, int64_t n, int64_t block, enum dtype t)
{
    (void)block;
    (void)t;
    return chain_f64(a, a_step, b, b_step, n);
}

static float sum_of_squares(const float *x, int64_t n)
{
    float *squares =
        threads_scratch(SCRATCH_PIECE, (size_t)n * sizeof(*squares) + 1);

    for (int64_t i = 0; i < n; i++)
        squares[i] = x[i] * x[i];
    return cascade_sum(squares, n);
}

static double sum_of_squares_f64(const double *x, int64_t n)
{
    return lanes16_squares_f64(x, n);
}

/* ---- both widths ---- */

#define EXP vec_exp /* PyTorch's, of whole vectors */
#define REAL_SQRT sqrtf
#include "kernels/real_f32.inc"

#include "kernels/compressed_plain.inc"

#undef EXP
#undef REAL_SQRT
#define EXP elem_exp
#define REAL_SQRT sqrt
#include "kernels/real_f64.inc"

#include "kernels/compressed_plain.inc"

void compressed_turn(float *x, const float *cosine, const float *sine,
                     const struct turn *turn, int64_t rows, enum dtype t)
{
    struct turn_job job = {x, cosine, sine, turn, t};

    BUG_ON(turn->dims % 2 || turn->dims > turn->width);
    threads_for(rows, GRAIN, turn_piece, &job);
}

void compressed_turn_f64(double *x, const double *cosine, const double *sine,
                         const struct turn *turn, int64_t rows)
{
    struct turn_job_f64 job = {x, cosine, sine, turn, DTYPE_F64};

    BUG_ON(turn->dims % 2 || turn->dims > turn->width);
    threads_for(rows, GRAIN, turn_piece_f64, &job);
}

void compressed_norm(float *y, const float *x, int64_t rows, int64_t cols,
                     double eps, enum dtype t)
{
    struct norm_job job = {y, x, cols, (float)eps, t};

    threads_for(rows, GRAIN, norm_piece, &job);
}

void compressed_norm_f64(double *y, const double *x, int64_t rows, int64_t cols,
                         double eps)
{
    struct norm_job_f64 job = {y, x, cols, eps, DTYPE_F64};

    threads_for(rows, GRAIN, norm_piece_f64, &job);
}

void compressed_windows(float *y, const float *kv, const float *gate,
                        const float *bias, const struct windows *how,
                        int64_t count, enum dtype t)
{
    struct windows_job job = {y, kv, gate, bias, how, t};

    threads_for(count, 1, windows_piece, &job);
}

void compressed_windows_f64(double *y, const double *kv, const double *gate,
                            const double *bias, const struct windows *how,
                            int64_t count)
{
    struct windows_job_f64 job = {y, kv, gate, bias, how, DTYPE_F64};

    threads_for(count, 1, windows_piece_f64, &job);
}

void compressed_pick(int64_t *picked, const float *q, const float *key,
                     const float *weight, const struct picking *how,
                     int64_t rows, int64_t entries)
{
    struct pick_job job = {picked, q, key, weight, how, entries};

    threads_for(rows, GRAIN, pick_piece, &job);
}

void compressed_pick_f64(int64_t *picked, const double *q, const double *key,
                         const double *weight, const struct picking *how,
                         int64_t rows, int64_t entries)
{
    struct pick_job_f64 job = {picked, q, key, weight, how, entries};

    threads_for(rows, GRAIN, pick_piece_f64, &job);
}

void compressed_attend(float *y, const float *q, const float *kv,
                       const float *sinks, const struct seeing *how,
                       int64_t rows, enum dtype t)
{
    struct attend_job job = {y, q, kv, sinks, how, rows, t};

    threads_for(rows, 1, attend_piece, &job);
}

void compressed_attend_f64(double *y, const double *q, const double *kv,
                           const double *sinks, const struct seeing *how,
                           int64_t rows)
{
    struct attend_job_f64 job = {y, q, kv, sinks, how, rows, DTYPE_F64};

    threads_for(rows, 1, attend_piece_f64, &job);
}
