/* Products of bf16 with bf16 in the order of PyTorch's calls. */
#include "kernels/torch_dense.h"

#include "base/bug.h"
#include "kernels/blocks32.h"
#include "kernels/kernels_internal.h"
#include "kernels/threads.h"
#include "kernels/torch_blocking.h"

#include <float.h>
#include <math.h>

enum { LANES = 8, ACCUMULATORS = 8, SMALL = 4096, SHORT = 64 };

static float flush(float x)
{
    return fabsf(x) < FLT_MIN ? copysignf(0, x) : x;
}

/* l[i] + l[i + n / 2], halving n to one */
static float fold_lanes(float *l)
{
    for (int n = LANES / 2; n > 0; n /= 2)
        for (int i = 0; i < n; i++)
            l[i] += l[i + n];
    return l[0];
}

static void add_eight(float *l, const float *a, const float *b)
{
    for (int i = 0; i < LANES; i++)
        l[i] = fmaf(a[i], b[i], l[i]);
}

static float dot(const float *a, const float *b, int64_t n)
{
    float l[ACCUMULATORS][LANES] = {{0}}, rest[LANES] = {0}, y;
    int64_t i = 0;

    for (; n - i >= LANES * ACCUMULATORS; i += LANES * ACCUMULATORS)
        for (int k = 0; k < ACCUMULATORS; k++)
            add_eight(l[k], a + i + k * LANES, b + i + k * LANES);
    for (int half = ACCUMULATORS / 2; half > 0; half /= 2)
        for (int k = 0; k < half; k++)
            for (int lane = 0; lane < LANES; lane++)
                l[k][lane] += l[k + half][lane];
    y = fold_lanes(l[0]);
    for (; n - i >= 2 * LANES; i += 2 * LANES) {
        add_eight(rest, a + i, b + i);
        add_eight(rest, a + i + LANES, b + i + LANES);
    }
    y += fold_lanes(rest);
    for (; i < n; i++)
        y = fmaf(a[i], b[i], y);
    return y;
}

static float pairs(const float *a, const float *b, int64_t n)
{
    float y = 0;

    for (int64_t i = 0; i < n; i += 2) {
        if (i + 1 < n)
            y = flush(fmaf(flush(a[i + 1]), flush(b[i + 1]), y));
        y = flush(fmaf(flush(a[i]), flush(b[i]), y));
    }
    return y;
}

/* Few and short: every output on its own. */
static void one_by_one(float *y, const float *x, const struct dense_weight *w,
                       const float *bias, int64_t rows,
                       float (*sum)(const float *, const float *, int64_t))
{
    const int64_t in = w->in;
    float *decoded =
        threads_scratch(SCRATCH_PIECE, (size_t)in * sizeof(*decoded) + 1);

    for (int64_t o = 0; o < w->out; o++) {
        dtype_to_f32(DTYPE_BF16, (const uint16_t *)w->data + o * in, (size_t)in,
                     decoded);
        for (int64_t t = 0; t < rows; t++) {
            float v = sum(x + t * in, decoded, in);

            y[t * w->out + o] = canonical_f32(bias ? v + bias[o] : v);
        }
    }
}

static void blocked(float *y, const float *x, const struct dense_weight *w,
                    const float *bias, int64_t rows, struct torch_blocking b)
{
    if (b.is_even)
        even32_matmul(y, x, w, bias, rows, b.chunk);
    else
        blocks32_matmul(y, x, w, bias, rows, b.chunk < w->in ? b.chunk : 0);
}

void torch_dense(float *y, const float *x, const struct dense_weight *w,
                 const float *bias, int64_t rows, int64_t call_rows,
                 int64_t call_out)
{
    bool is_vector = call_rows == 1 || call_out == 1;

    BUG_ON(w->dtype != DTYPE_BF16 || rows < 0 || rows > call_rows ||
           w->out > call_out || w->in < 1);
    if (call_rows <= SMALL && call_out <= SMALL && w->in <= SMALL &&
        call_rows * call_out * w->in <= SMALL)
        one_by_one(y, x, w, bias, rows, dot);
    else if (is_vector && w->in < SHORT)
        one_by_one(y, x, w, bias, rows, pairs);
    else if (is_vector)
        blocks32_matmul(y, x, w, bias, rows, 0);
    else
        blocked(y, x, w, bias, rows,
                torch_blocking(call_rows, call_out, w->in));
}
