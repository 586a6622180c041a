/* PyTorch's fused CPU attention on bf16 operands, its exponential included. */
#include "kernels/flash.h"

#include "base/bug.h"
#include "base/mem.h"
#include "kernels/blocks32.h"
#include "kernels/elementary.h"
#include "kernels/kernels_internal.h"
#include "kernels/round.h"
#include "kernels/threads.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

enum { KEYS = 512, LANES = 16, PACKED = 64, BLOCK = 32, EIGHT = 8 };

float flash_exp(float x)
{
    const float c0 = 0.00010703434948458272f, c1 = 0.30354260500649682f;
    const float c2 = -0.22433836478672356f, c3 = -0.079204240219773236f;
    float y = x * 1.44269502f, f, c;
    uint32_t bits;

    if (x != x)
        return x;
    if (x < -87.33654f)
        return 0;
    f = y - floorf(y);
    c = fmaf(fmaf(fmaf(c3, f, c2), f, c1), f, c0);
    y = fmaf(0x1p23f, y - c, 127 * 0x1p23f);
    bits = (uint32_t)(int32_t)y;
    memcpy(&y, &bits, sizeof(y));
    return y;
}

struct job {
    float *y;
    const float *q, *k, *v;
    const struct sdpa *how;
    int64_t rows, keys;
    int64_t block; /* rows of queries that the kernel takes together */
};

/* One block of queries of one head, and the keys taken up at a time. */
struct tile {
    const struct job *job;
    int64_t head, first, rows; /* of the queries */
    float *q;                  /* [rows, key_dim] */
    uint16_t *k, *v;           /* [KEYS, key_dim], [value_dim, KEYS] as used */
    float *s, *values;         /* [rows, KEYS], [rows, value_dim] */
    float *max, *sum, *keep;   /* [rows] */
};

static bool is_seen(const struct job *job, int64_t row, int64_t key)
{
    int64_t last = job->keys - job->rows + row;

    if (job->how->visible)
        return job->how->visible[row * job->keys + key] != 0;
    return key <= last && (!job->how->window || key > last - job->how->window);
}

/* The keys that the kernel takes up for the tile: those its last row sees. */
static int64_t tile_keys(const struct tile *t)
{
    const struct job *job = t->job;
    int64_t past = job->how->visible ? job->rows : t->first + t->rows;

    return job->keys - job->rows + past;
}

static void load_keys(struct tile *t, int64_t first, int64_t n)
{
    const struct job *job = t->job;
    const struct sdpa *how = job->how;
    const int64_t dim = how->key_dim, wide = how->value_dim;
    const int64_t kv = t->head / (how->heads / how->kv_heads);

    for (int64_t j = 0; j < n; j++) {
        int64_t at = (first + j) * how->kv_heads + kv;

        dtype_from_f32(DTYPE_BF16, job->k + at * dim, (size_t)dim,
                       t->k + j * dim);
        for (int64_t i = 0; i < wide; i++)
            t->v[i * n + j] = bf16_from_f32(job->v[at * wide + i]);
    }
}

/* Whole sixteens, in two alternating lines of 16 lanes: 32 lanes. */
static float alternating_sum(const float *s, int64_t n)
{
    float lane[2 * LANES] = {0};

    for (int64_t j = 0; j < n; j++)
        lane[j % (2 * LANES)] += s[j];
    for (int64_t half = LANES; half > 0; half /= 2)
        for (int64_t i = 0; i < half; i++)
            lane[i] += lane[i + half];
    return lane[0];
}

/* Scores of one row to probabilities, rounded; the row's max, sum and keep. */
static void weigh_row(struct tile *t, int64_t row, int64_t first, int64_t n)
{
    const struct sdpa *how = t->job->how;
    const int64_t whole = n / LANES * LANES;
    const float scale = (float)how->scale;
    float *s = t->s + row * n, max = t->max[row], sum;

    for (int64_t j = 0; j < n; j++) {
        s[j] = is_seen(t->job, t->first + row, first + j) ? s[j] * scale
                                                          : -INFINITY;
        max = s[j] > max ? s[j] : max;
    }
    t->keep[row] = 1;
    if (max == -INFINITY) { /* nothing seen so far */
        memset(s, 0, (size_t)n * sizeof(*s));
        return;
    }
    for (int64_t j = 0; j < n; j++)
        s[j] = how->kind == SDPA_FLASH && j < whole ? flash_exp(s[j] - max)
                                                    : elem_exp_f32(s[j] - max);
    sum = alternating_sum(s, whole);
    for (int64_t j = whole; j < n; j++)
        sum += s[j];
    t->keep[row] = elem_exp_f32(t->max[row] - max);
    t->sum[row] = t->sum[row] * t->keep[row] + sum;
    t->max[row] = max;
    for (int64_t j = 0; j < n; j++)
        s[j] = round_to(DTYPE_BF16, s[j]);
}

/* Are there so many queries and keys that the kernel packs them? */
static bool is_packed(const struct job *job)
{
    return job->rows >= PACKED && job->keys >= PACKED;
}

/* Columns of a product's block: packed the largest even part of them, at most
 * 32; else 32. */
static int64_t block_of(const struct job *job, int64_t columns)
{
    int64_t even = columns + columns % 2, block = BLOCK;

    while (is_packed(job) && even % block)
        block -= 2;
    return block;
}

static float flush(float x)
{
    return fabsf(x) < FLT_MIN ? copysignf(0, x) : x;
}

/* y + a[1] b[1] + a[0] b[0], in this order; n 1: without the first. */
static float add_pair(float y, const float *a, const float *b, int64_t b_step,
                      int64_t n)
{
    if (n > 1)
        y = flush(fmaf(flush(a[1]), flush(b[b_step]), y));
    return flush(fmaf(flush(a[0]), flush(b[0]), y));
}

/* A product of one row: 16 lanes of pairs, lane i and i + 8, then neighbours.
 */
static float lanes_of_pairs(const float *a, const float *b, int64_t n)
{
    float lane[LANES] = {0};

    for (int64_t i = 0; i < n; i += 2) {
        float *at = &lane[i / 2 % LANES];

        *at = add_pair(*at, a + i, b + i, 1, n - i);
    }
    for (int i = 0; i < LANES / 2; i++)
        lane[i] += lane[i + LANES / 2];
    for (int step = 1; step < LANES / 2; step *= 2)
        for (int i = 0; i < LANES / 2; i += 2 * step)
            lane[i] += lane[i + step];
    return lane[0];
}

/* One row of queries that is not packed: the library takes other products. */
static void add_keys_to_row(struct tile *t, int64_t first, int64_t n)
{
    const struct job *job = t->job;
    const struct sdpa *how = job->how;
    const int64_t dim = how->key_dim, wide = how->value_dim;
    const int64_t kv = t->head / (how->heads / how->kv_heads);
    const float *k = job->k + (first * how->kv_heads + kv) * dim;
    const float *v = job->v + (first * how->kv_heads + kv) * wide;

    for (int64_t j = 0; j < n; j++)
        t->s[j] = lanes_of_pairs(t->q, k + j * how->kv_heads * dim, dim);
    weigh_row(t, 0, first, n);
    for (int64_t i = 0; i < wide; i++) {
        t->values[i] *= t->keep[0];
        for (int64_t at = 0; at < n; at += EIGHT) {
            int64_t end = at + EIGHT < n ? at + EIGHT : n;
            float sum = 0;

            for (int64_t j = at; j < end; j += 2)
                sum = add_pair(sum, t->s + j, v + j * how->kv_heads * wide + i,
                               how->kv_heads * wide, end - j);
            t->values[i] += sum;
        }
    }
}

static void add_keys(struct tile *t, int64_t first, int64_t n)
{
    const struct sdpa *how = t->job->how;
    const int64_t wide = how->value_dim, left = t->job->keys - first;
    struct dense_weight k = {DTYPE_BF16, n, how->key_dim, t->k};
    struct dense_weight v = {DTYPE_BF16, wide, n, t->v};

    if (t->rows == 1 && !is_packed(t->job)) {
        add_keys_to_row(t, first, n);
        return;
    }
    load_keys(t, first, n);
    blocks_matmul(t->s, t->q, &k, t->rows, block_of(t->job, how->key_dim),
                  false);
    for (int64_t row = 0; row < t->rows; row++)
        weigh_row(t, row, first, n);
    for (int64_t i = 0; i < t->rows * wide; i++)
        t->values[i] *= t->keep[i / wide];
    blocks_matmul(t->values, t->s, &v, t->rows,
                  block_of(t->job, left < KEYS ? left : KEYS), true);
}

static void run_tile(struct tile *t)
{
    const struct job *job = t->job;
    const struct sdpa *how = job->how;
    const int64_t dim = how->key_dim, wide = how->value_dim;

    for (int64_t row = 0; row < t->rows; row++) {
        memcpy(t->q + row * dim,
               job->q + ((t->first + row) * how->heads + t->head) * dim,
               (size_t)dim * sizeof(*t->q));
        t->max[row] = -INFINITY;
        t->sum[row] = 0;
    }
    memset(t->values, 0, (size_t)(t->rows * wide) * sizeof(*t->values));
    for (int64_t first = 0, last = tile_keys(t), n; first < last; first += n) {
        n = last - first < KEYS ? last - first : KEYS;
        add_keys(t, first, n);
    }
    for (int64_t row = 0; row < t->rows; row++) {
        float inverse = 1 / t->sum[row];
        float *y = job->y + ((t->first + row) * how->heads + t->head) * wide;

        for (int64_t i = 0; i < wide; i++)
            y[i] = canonical_f32(t->values[row * wide + i] * inverse);
    }
}

/* Tiles [begin, end): heads of one block of queries, then of the next.  The
 * products use this thread's scratch, so the tile has memory of its own. */
static void piece(void *ctx, int64_t begin, int64_t end)
{
    const struct job *job = ctx;
    const struct sdpa *how = job->how;
    const size_t dim = (size_t)how->key_dim, wide = (size_t)how->value_dim;
    const size_t rows = (size_t)job->block;
    float *floats = xcalloc(rows * (dim + KEYS + wide + 3), sizeof(*floats));
    uint16_t *halves = xcalloc(KEYS * (dim + wide), sizeof(*halves));
    struct tile t = {.job = job, .q = floats, .k = halves};

    t.v = halves + KEYS * dim;
    t.s = t.q + rows * dim;
    t.values = t.s + rows * KEYS;
    t.max = t.values + rows * wide;
    t.sum = t.max + rows;
    t.keep = t.sum + rows;
    for (int64_t i = begin; i < end; i++) {
        t.head = i % how->heads;
        t.first = i / how->heads * job->block;
        t.rows =
            job->rows - t.first < job->block ? job->rows - t.first : job->block;
        run_tile(&t);
    }
    free(floats);
    free(halves);
}

void flash_attention(float *y, const float *q, const float *k, const float *v,
                     const struct sdpa *how, int64_t rows, int64_t keys)
{
    int64_t block = rows >= 768 ? 256 : rows >= 192 ? 64 : 32;
    struct job job = {y, q, k, v, how, rows, keys, block};

    BUG_ON(how->kind == SDPA_MATH);
    threads_for((rows + block - 1) / block * how->heads, 1, piece, &job);
}
