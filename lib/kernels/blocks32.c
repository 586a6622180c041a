/* Products of bf16 with bf16 in the written order blocks32. */
#include "kernels/blocks32.h"

#include "base/bug.h"
#include "kernels/kernels_internal.h"
#include "kernels/threads.h"

#include <float.h>

enum { BLOCK = 32, GRAIN = 16 };

static float flush(float x)
{
    return fabsf(x) < FLT_MIN ? copysignf(0, x) : x;
}

/*
 * fma with a subnormal result flushed.  Whether it is subnormal is asked of the
 * result rounded to 24 bits, so one that became the least normal number only by
 * the coarser rounding of subnormals is flushed too.
 */
static float fma_flushed(float a, float b, float c)
{
    float y = fmaf(a, b, c);

    if (fabsf(y) == FLT_MIN &&
        fabsf(fmaf(a * 0x1p64f, b, c * 0x1p64f)) < FLT_MIN * 0x1p64f)
        return copysignf(0, y);
    return flush(y);
}

static float dot_from(float y, const float *a, int64_t a_step, const float *b,
                      int64_t b_step, int64_t n, int64_t block)
{
    y = flush(y);

    for (int64_t at = 0; at < n; at += block) {
        int64_t end = n - at < block ? n : at + block;
        float pair[2] = {0, 0};

        for (int64_t i = at; i < end; i++)
            pair[i % 2] = fma_flushed(flush(a[i * a_step]),
                                      flush(b[i * b_step]), pair[i % 2]);
        /* the zeros of the padding: fma(0, 0, -0) is 0 */
        if (end - at < BLOCK - 1)
            pair[0] += 0.0f;
        if (end - at < BLOCK)
            pair[1] += 0.0f;
        y = flush(y + flush(pair[0] + pair[1]));
    }
    return y;
}

float blocks_dot(const float *a, int64_t a_step, const float *b, int64_t b_step,
                 int64_t n, int64_t block)
{
    return dot_from(0, a, a_step, b, b_step, n, block);
}

int64_t even32_block(int64_t n)
{
    int64_t blocks = (n + BLOCK - 1) / BLOCK;

    return blocks > 1 && n % (2 * blocks) == 0 ? n / blocks : BLOCK;
}

struct job {
    float *y;
    const float *x, *bias;
    const struct dense_weight *w;
    int64_t rows;
    struct blocks32 how;
};

static void piece(void *ctx, int64_t first, int64_t end)
{
    const struct job *job = ctx;
    const struct dense_weight *w = job->w;
    const int64_t chunk = job->how.chunk, block = job->how.block;
    const int64_t first_chunk = w->in < chunk ? w->in : chunk;
    float *decoded =
        threads_scratch(SCRATCH_PIECE, (size_t)w->in * sizeof(*decoded) + 1);

    for (int64_t o = first; o < end; o++) {
        dtype_to_f32(w->dtype, (const uint16_t *)w->data + o * w->in,
                     (size_t)w->in, decoded);
        for (int64_t t = 0; t < job->rows; t++) {
            const float *x = job->x + t * w->in;
            float *to = &job->y[t * w->out + o];
            float y = dot_from(job->how.is_added ? *to : 0, x, 1, decoded, 1,
                               first_chunk, block);

            for (int64_t k = first_chunk; k < w->in; k += chunk) {
                bool is_last = w->in - k < chunk;

                y = flush(y + dot_from(0, x + k, 1, decoded + k, 1,
                                       is_last ? w->in - k : chunk,
                                       is_last ? job->how.last_block : block));
            }
            if (job->bias)
                y += job->bias[o];
            *to = canonical_f32(y);
        }
    }
}

void blocks32_matmul_plain(float *y, const float *x,
                           const struct dense_weight *w, const float *bias,
                           int64_t rows, struct blocks32 how)
{
    struct job job = {y, x, bias, w, rows, how};

    threads_for(w->out, GRAIN, piece, &job);
}

void blocks32_matmul(float *y, const float *x, const struct dense_weight *w,
                     const float *bias, int64_t rows, int64_t chunk)
{
    BUG_ON(w->dtype != DTYPE_BF16 || rows < 0 || chunk < 0 || chunk % BLOCK);
    if (w->in == 0) /* no sum at all */
        chunk = BLOCK;
    struct blocks32 how = {BLOCK, BLOCK, chunk ? chunk : w->in, false};
    kernels_table()->blocks32_matmul(y, x, w, bias, rows, how);
}

void blocks_matmul(float *y, const float *x, const struct dense_weight *w,
                   int64_t rows, int64_t block, bool is_added)
{
    struct blocks32 how = {block, block, w->in, is_added};

    BUG_ON(w->dtype != DTYPE_BF16 || rows < 0 || w->in < 1 || block < 2 ||
           block > BLOCK || block % 2);
    kernels_table()->blocks32_matmul(y, x, w, NULL, rows, how);
}

void even32_matmul(float *y, const float *x, const struct dense_weight *w,
                   const float *bias, int64_t rows, int64_t chunk)
{
    int64_t whole = chunk && chunk < w->in ? chunk : w->in ? w->in : BLOCK;
    struct blocks32 how = {even32_block(whole), even32_block(w->in % whole),
                           whole, false};

    BUG_ON(w->dtype != DTYPE_BF16 || rows < 0 || chunk < 0);
    kernels_table()->blocks32_matmul(y, x, w, bias, rows, how);
}
