/*
 * blocks32 with AVX2 and FMA: 16 outputs side by side, three rows at a time.
 * Subnormals are flushed by the processor (MXCSR), as the order asks.
 */
#include "kernels/blocks32.h"

#include "kernels/kernels_internal.h"
#include "kernels/threads.h"

#include <immintrin.h>
#include <string.h>

enum { FULL = 32, LANES = 16, FLUSH = 0x8040 /* FTZ and DAZ */ };

struct job {
    float *y;
    const float *x, *bias;
    const struct dense_weight *w;
    int64_t rows;
    struct blocks32 how;
};

/* Eight columns of eight rows, `stride` apart: panel[k][0 .. 8) from there. */
static void transpose_eight(float *panel, const uint16_t *w, int64_t stride)
{
    __m128i r[8], t[8];

    for (int i = 0; i < 8; i++)
        r[i] = _mm_loadu_si128((const __m128i *)(w + i * stride));
    for (int i = 0; i < 4; i++) {
        t[2 * i] = _mm_unpacklo_epi16(r[i], r[i + 4]);
        t[2 * i + 1] = _mm_unpackhi_epi16(r[i], r[i + 4]);
    }
    for (int i = 0; i < 4; i++) {
        r[2 * i] = _mm_unpacklo_epi16(t[i], t[i + 4]);
        r[2 * i + 1] = _mm_unpackhi_epi16(t[i], t[i + 4]);
    }
    for (int i = 0; i < 4; i++) {
        t[2 * i] = _mm_unpacklo_epi16(r[i], r[i + 4]);
        t[2 * i + 1] = _mm_unpackhi_epi16(r[i], r[i + 4]);
    }
    for (int k = 0; k < 8; k++) {
        __m256i wide = _mm256_slli_epi32(_mm256_cvtepu16_epi32(t[k]), 16);

        _mm256_store_ps(panel + k * LANES, _mm256_castsi256_ps(wide));
    }
}

/* Weights of outputs [first, first + n), widened: panel[k][lane]. */
static void fill_panel(float *panel, const struct dense_weight *w,
                       int64_t first, int64_t n)
{
    const uint16_t *data = (const uint16_t *)w->data + first * w->in;
    int64_t whole = n < LANES ? 0 : w->in / 8 * 8;

    for (int64_t k = 0; k < whole; k += 8) {
        transpose_eight(panel + k * LANES, data + k, w->in);
        transpose_eight(panel + k * LANES + 8, data + 8 * w->in + k, w->in);
    }
    for (int64_t k = whole; k < w->in; k++)
        for (int64_t lane = 0; lane < LANES; lane++)
            panel[k * LANES + lane] =
                lane < n ? bf16_to_f32(data[lane * w->in + k]) : 0;
}

/* y = y + (e + o), y [2] vectors */
static inline void fold(__m256 *y, __m256 ea, __m256 eb, __m256 oa, __m256 ob)
{
    y[0] = _mm256_add_ps(y[0], _mm256_add_ps(ea, oa));
    y[1] = _mm256_add_ps(y[1], _mm256_add_ps(eb, ob));
}

static inline void step(__m256 *a, __m256 *b, const float *x, __m256 wa,
                        __m256 wb)
{
    __m256 v = _mm256_broadcast_ss(x);

    *a = _mm256_fmadd_ps(v, wa, *a);
    *b = _mm256_fmadd_ps(v, wb, *b);
}

/* Three rows of x, columns [0, n) of one chunk, added to y [3][2]. */
static void three_rows(__m256 *y, const float *x, int64_t stride,
                       const float *panel, int64_t n, int64_t block)
{
    const __m256 zero = _mm256_setzero_ps();
    const float *x1 = x + stride, *x2 = x + 2 * stride;

    for (int64_t at = 0; at < n; at += block) {
        int64_t end = n - at < block ? n : at + block, k = at;
        __m256 e0 = zero, e1 = zero, e2 = zero, e3 = zero, e4 = zero, e5 = zero;
        __m256 o0 = zero, o1 = zero, o2 = zero, o3 = zero, o4 = zero, o5 = zero;

        for (; k + 1 < end; k += 2) {
            const float *w = panel + k * LANES;
            __m256 wa = _mm256_load_ps(w), wb = _mm256_load_ps(w + 8);

            step(&e0, &e1, x + k, wa, wb);
            step(&e2, &e3, x1 + k, wa, wb);
            step(&e4, &e5, x2 + k, wa, wb);
            wa = _mm256_load_ps(w + 16);
            wb = _mm256_load_ps(w + 24);
            step(&o0, &o1, x + k + 1, wa, wb);
            step(&o2, &o3, x1 + k + 1, wa, wb);
            step(&o4, &o5, x2 + k + 1, wa, wb);
        }
        if (k < end) {
            const float *w = panel + k * LANES;
            __m256 wa = _mm256_load_ps(w), wb = _mm256_load_ps(w + 8);

            step(&e0, &e1, x + k, wa, wb);
            step(&e2, &e3, x1 + k, wa, wb);
            step(&e4, &e5, x2 + k, wa, wb);
        }
        if (end - at < FULL - 1) { /* the zeros of the padding */
            e0 = _mm256_add_ps(e0, zero), e1 = _mm256_add_ps(e1, zero);
            e2 = _mm256_add_ps(e2, zero), e3 = _mm256_add_ps(e3, zero);
            e4 = _mm256_add_ps(e4, zero), e5 = _mm256_add_ps(e5, zero);
        }
        if (end - at < FULL) {
            o0 = _mm256_add_ps(o0, zero), o1 = _mm256_add_ps(o1, zero);
            o2 = _mm256_add_ps(o2, zero), o3 = _mm256_add_ps(o3, zero);
            o4 = _mm256_add_ps(o4, zero), o5 = _mm256_add_ps(o5, zero);
        }
        fold(y, e0, e1, o0, o1);
        fold(y + 2, e2, e3, o2, o3);
        fold(y + 4, e4, e5, o4, o5);
    }
}

/* The same of `count` rows, one or three, from and to out [3][16]. */
static void some_rows(const struct job *job, float *out, int64_t row,
                      int64_t count, const float *panel)
{
    const int64_t in = job->w->in, chunk = job->how.chunk;
    const int64_t block = job->how.block;
    const float *x = job->x + row * in;
    int64_t stride = count < 3 ? 0 : in; /* then the first row three times */
    __m256 total[6], y[6];

    for (int i = 0; i < 6; i++)
        total[i] = _mm256_loadu_ps(out + i * 8);
    three_rows(total, x, stride, panel, in < chunk ? in : chunk, block);
    for (int64_t k = chunk; k < in; k += chunk) {
        for (int i = 0; i < 6; i++)
            y[i] = _mm256_setzero_ps();
        bool is_last = in - k < chunk;

        three_rows(y, x + k, stride, panel + k * LANES,
                   is_last ? in - k : chunk,
                   is_last ? job->how.last_block : block);
        for (int i = 0; i < 6; i++)
            total[i] = _mm256_add_ps(total[i], y[i]);
    }
    for (int i = 0; i < 6; i++)
        _mm256_storeu_ps(out + i * 8, total[i]);
}

/* What the sums of a tile start at. */
static void start(const struct job *job, float *out, int64_t row, int64_t count,
                  int64_t first, int64_t n)
{
    memset(out, 0, 3 * LANES * sizeof(*out));
    for (int64_t r = 0; r < count && job->how.is_added; r++)
        for (int64_t lane = 0; lane < n; lane++)
            out[r * LANES + lane] =
                job->y[(row + r) * job->w->out + first + lane];
}

static void store(const struct job *job, const float *out, int64_t row,
                  int64_t count, int64_t first, int64_t n)
{
    for (int64_t r = 0; r < count; r++)
        for (int64_t lane = 0; lane < n; lane++)
            job->y[(row + r) * job->w->out + first + lane] =
                out[r * LANES + lane];
}

static void finish(const struct job *job, int64_t first, int64_t end)
{
    for (int64_t t = 0; t < job->rows; t++)
        for (int64_t o = first; o < end; o++) {
            float *y = &job->y[t * job->w->out + o];

            *y = canonical_f32(job->bias ? *y + job->bias[o] : *y);
        }
}

static void piece(void *ctx, int64_t begin, int64_t end)
{
    const struct job *job = ctx;
    float *panel = threads_scratch(
        SCRATCH_PIECE, (size_t)(job->w->in * LANES) * sizeof(*panel) + 1);
    unsigned int control = _mm_getcsr();
    float out[3 * LANES];

    _mm_setcsr(control | FLUSH);
    for (int64_t o = begin, n; o < end; o += n) {
        n = end - o < LANES ? end - o : LANES;
        fill_panel(panel, job->w, o, n);
        for (int64_t t = 0, count; t < job->rows; t += count) {
            count = job->rows - t < 3 ? 1 : 3;
            start(job, out, t, count, o, n);
            some_rows(job, out, t, count, panel);
            store(job, out, t, count, o, n);
        }
    }
    _mm_setcsr(control);
    finish(job, begin, end);
}

void blocks32_matmul_avx2(float *y, const float *x,
                          const struct dense_weight *w, const float *bias,
                          int64_t rows, struct blocks32 how)
{
    struct job job = {y, x, bias, w, rows, how};

    threads_for(w->out, LANES, piece, &job);
}
