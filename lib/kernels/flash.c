/* PyTorch's fused CPU attention on bf16 operands, its exponential included. */
#include "kernels/flash.h"

#include "base/bug.h"
#include "kernels/blocks32.h"
#include "kernels/elementary.h"
#include "kernels/kernels_internal.h"
#include "kernels/norm.h"
#include "kernels/round.h"
#include "kernels/threads.h"

#include <string.h>

enum { KEYS = 512, LANES = 16 };

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
};

static bool is_seen(const struct job *job, int64_t row, int64_t key)
{
    return job->how->visible ? job->how->visible[row * job->keys + key] != 0
                             : key <= job->keys - job->rows + row;
}

/* What a row has of the blocks so far. */
struct running {
    float max, sum;
    float *values; /* [value_dim] */
};

static void add_block(const struct job *job, int64_t row, int64_t head,
                      int64_t first, int64_t n, struct running *r, float *s)
{
    const struct sdpa *how = job->how;
    const int64_t dim = how->key_dim, wide = how->value_dim;
    const int64_t kv = head / (how->heads / how->kv_heads);
    const float *q = job->q + (row * how->heads + head) * dim;
    const float *v = job->v + (first * how->kv_heads + kv) * wide;
    const float scale = (float)how->scale;
    const int64_t whole = n / LANES * LANES;
    float max = r->max, keep, sum;

    for (int64_t j = 0; j < n; j++) {
        const float *k = job->k + ((first + j) * how->kv_heads + kv) * dim;

        s[j] = is_seen(job, row, first + j)
                   ? blocks32_dot(q, 1, k, 1, dim) * scale
                   : -INFINITY;
        max = s[j] > max ? s[j] : max;
    }
    if (max == -INFINITY) /* nothing seen so far */
        return;
    for (int64_t j = 0; j < n; j++)
        s[j] = how->kind == SDPA_FLASH && j < whole ? flash_exp(s[j] - max)
                                                    : elem_exp_f32(s[j] - max);
    sum = lanes16_sum(s, whole);
    for (int64_t j = whole; j < n; j++)
        sum += s[j];
    keep = elem_exp_f32(r->max - max);
    r->sum = r->sum * keep + sum;
    r->max = max;
    for (int64_t j = 0; j < n; j++)
        s[j] = round_to(DTYPE_BF16, s[j]);
    for (int64_t i = 0; i < wide; i++)
        r->values[i] = r->values[i] * keep +
                       blocks32_dot(s, 1, v + i, how->kv_heads * wide, n);
}

/* The keys that the kernel takes up for a row: those that the last row of its
 * block of queries sees. */
static int64_t keys_of_block(const struct job *job, int64_t row)
{
    int64_t size = job->rows >= 768 ? 256 : job->rows >= 192 ? 64 : 32;
    int64_t past = row - row % size + size;

    if (job->how->visible || past > job->rows)
        past = job->rows;
    return job->keys - job->rows + past;
}

static void piece(void *ctx, int64_t begin, int64_t end)
{
    const struct job *job = ctx;
    const int64_t wide = job->how->value_dim, heads = job->how->heads;
    float *s = threads_scratch(SCRATCH_PIECE, KEYS * sizeof(*s));

    for (int64_t i = begin; i < end; i++) {
        struct running r = {-INFINITY, 0, job->y + i * wide};

        memset(r.values, 0, (size_t)wide * sizeof(*r.values));
        int64_t last = keys_of_block(job, i / heads);
        for (int64_t first = 0; first < last; first += KEYS) {
            int64_t n = last - first < KEYS ? last - first : KEYS;

            add_block(job, i / heads, i % heads, first, n, &r, s);
        }
        float inverse = 1 / r.sum;
        for (int64_t k = 0; k < wide; k++)
            r.values[k] = canonical_f32(r.values[k] * inverse);
    }
}

void flash_attention(float *y, const float *q, const float *k, const float *v,
                     const struct sdpa *how, int64_t rows, int64_t keys)
{
    struct job job = {y, q, k, v, how, rows, keys};

    BUG_ON(how->kind == SDPA_MATH);
    threads_for(rows * how->heads, 1, piece, &job);
}
