/* The row kernels eight values at a time; each has its plain form's bits. */
#include "kernels/rows_internal.h"

#include "kernels/round.h"

#include <immintrin.h>
#include <math.h>

static inline __m256 canonical8(__m256 x)
{
    return _mm256_blendv_ps(x, _mm256_set1_ps(__builtin_nanf("")),
                            _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}

static inline __m256 round8(enum dtype t, __m256 x)
{
    if (t == DTYPE_F16) {
        x = _mm256_cvtph_ps(_mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
    } else if (t == DTYPE_BF16) {
        __m256i u = _mm256_castps_si256(x);
        __m256i odd =
            _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
        __m256i half = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
        __m256i cut = _mm256_and_si256(_mm256_add_epi32(u, half),
                                       _mm256_set1_epi32(-0x10000));

        /* A NaN may have been carried into another number: keep it as it is. */
        x = _mm256_blendv_ps(_mm256_castsi256_ps(cut), x,
                             _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    }
    return canonical8(x);
}

void round_row_avx2(enum dtype t, float *x, int64_t n)
{
    int64_t i = 0;

    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(x + i, round8(t, _mm256_loadu_ps(x + i)));
    for (; i < n; i++)
        x[i] = round_to(t, x[i]);
}

static inline __m128i pack8(enum dtype t, __m256 x)
{
    if (t == DTYPE_F16)
        return _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT);
    __m256i u = _mm256_srli_epi32(_mm256_castps_si256(round8(t, x)), 16);
    return _mm_packus_epi32(_mm256_castsi256_si128(u),
                            _mm256_extracti128_si256(u, 1));
}

static inline __m256 unpack8(enum dtype t, __m128i bits)
{
    return t == DTYPE_F16 ? _mm256_cvtph_ps(bits)
                          : _mm256_castsi256_ps(_mm256_slli_epi32(
                                _mm256_cvtepu16_epi32(bits), 16));
}

void table_row_avx2(float *y, const float *x, const float *factor, int64_t n,
                    const uint16_t *values, enum dtype t)
{
    float part[2][8] = {{0}};
    uint16_t bits[8];
    int64_t count;

    for (int64_t i = 0; i < n; i += count) {
        const float *from = x + i, *times = factor ? factor + i : NULL;
        float *to = y + i;
        __m256 v;

        count = n - i < 8 ? n - i : 8;
        if (count < 8) { /* the last, shorter piece goes through blocks */
            memcpy(part[0], from, (size_t)count * sizeof(float));
            if (times)
                memcpy(part[1], times, (size_t)count * sizeof(float));
            from = to = part[0];
            times = times ? part[1] : NULL;
        }
        _mm_storeu_si128((__m128i *)bits, pack8(t, _mm256_loadu_ps(from)));
        for (int k = 0; k < 8; k++)
            bits[k] = values[bits[k]];
        v = unpack8(t, _mm_loadu_si128((const __m128i *)bits));
        if (times)
            v = round8(t, _mm256_mul_ps(_mm256_loadu_ps(times), v));
        _mm256_storeu_ps(to, v);
        if (count < 8)
            memcpy(y + i, part[0], (size_t)count * sizeof(float));
    }
}

/* l[i] + l[i + 8], then 4, 2, 1 apart */
static inline float fold(__m256 low, __m256 high)
{
    __m256 eight = _mm256_add_ps(low, high);
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight),
                             _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));

    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

/* The last n < 16 values belong to the first lanes. */
static inline __m256i first_lanes(int64_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

/* A lane beyond the row's end keeps its sum as it is. */
static inline __m256 add_first(__m256 sum, __m256 more, __m256i mask)
{
    return _mm256_blendv_ps(sum, more, _mm256_castsi256_ps(mask));
}

float lanes16_sum_avx2(const float *x, int64_t n)
{
    __m256 low = _mm256_setzero_ps(), high = low;
    int64_t i = 0;

    for (; i + 16 <= n; i += 16) {
        low = _mm256_add_ps(low, _mm256_loadu_ps(x + i));
        high = _mm256_add_ps(high, _mm256_loadu_ps(x + i + 8));
    }
    if (i < n) {
        __m256i a = first_lanes(n - i), b = first_lanes(n - i - 8);

        low =
            add_first(low, _mm256_add_ps(low, _mm256_maskload_ps(x + i, a)), a);
        if (n - i > 8)
            high = add_first(
                high, _mm256_add_ps(high, _mm256_maskload_ps(x + i + 8, b)), b);
    }
    return fold(low, high);
}

float lanes16_squares_avx2(const float *x, int64_t n)
{
    __m256 low = _mm256_setzero_ps(), high = low, v;
    int64_t i = 0;

    for (; i + 16 <= n; i += 16) {
        v = _mm256_loadu_ps(x + i);
        low = _mm256_fmadd_ps(v, v, low);
        v = _mm256_loadu_ps(x + i + 8);
        high = _mm256_fmadd_ps(v, v, high);
    }
    if (i < n) {
        __m256i a = first_lanes(n - i), b = first_lanes(n - i - 8);

        v = _mm256_maskload_ps(x + i, a);
        low = add_first(low, _mm256_fmadd_ps(v, v, low), a);
        if (n - i > 8) {
            v = _mm256_maskload_ps(x + i + 8, b);
            high = add_first(high, _mm256_fmadd_ps(v, v, high), b);
        }
    }
    return fold(low, high);
}

void norm_centre_avx2(float *y, const float *x, float mean, int64_t n)
{
    __m256 m = _mm256_set1_ps(mean);
    int64_t i = 0;

    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(y + i, _mm256_sub_ps(_mm256_loadu_ps(x + i), m));
    for (; i < n; i++)
        y[i] = x[i] - mean;
}

void norm_scale_avx2(float *y, const float *x, float r, const float *w,
                     const float *b, int64_t n, enum dtype t)
{
    __m256 factor = _mm256_set1_ps(r);
    int64_t i = 0;

    for (; i + 8 <= n; i += 8) {
        __m256 v = round8(t, _mm256_mul_ps(_mm256_loadu_ps(x + i), factor));

        if (w)
            v = round8(t, _mm256_mul_ps(_mm256_loadu_ps(w + i), v));
        if (b)
            v = round8(t, _mm256_add_ps(v, _mm256_loadu_ps(b + i)));
        _mm256_storeu_ps(y + i, v);
    }
    for (; i < n; i++) {
        float v = round_to(t, x[i] * r);

        if (w)
            v = round_to(t, w[i] * v);
        if (b)
            v = round_to(t, v + b[i]);
        y[i] = v;
    }
}

float softmax_max_avx2(const float *x, int64_t n)
{
    __m256 largest = _mm256_set1_ps(-INFINITY), nan = _mm256_setzero_ps();
    float lanes[8], max;
    int64_t i = 0;

    for (; i + 8 <= n; i += 8) {
        __m256 v = _mm256_loadu_ps(x + i);

        largest = _mm256_max_ps(largest, v);
        nan = _mm256_or_ps(nan, _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    }
    if (_mm256_movemask_ps(nan))
        return __builtin_nanf("");
    _mm256_storeu_ps(lanes, largest);
    max = lanes[0];
    for (int k = 1; k < 8; k++)
        max = lanes[k] > max ? lanes[k] : max;
    for (; i < n; i++) {
        if (x[i] != x[i])
            return __builtin_nanf("");
        max = x[i] > max ? x[i] : max;
    }
    return max + 0; /* +0 where it was -0 */
}

void rotate_pairs_avx2(float *a, float *b, const float *c, const float *s,
                       int64_t n, enum dtype t)
{
    int64_t i = 0;

    for (; i + 8 <= n; i += 8) {
        __m256 xa = _mm256_loadu_ps(a + i), xb = _mm256_loadu_ps(b + i);
        __m256 vc = _mm256_loadu_ps(c + i), vs = _mm256_loadu_ps(s + i);

        _mm256_storeu_ps(a + i,
                         round8(t, _mm256_sub_ps(_mm256_mul_ps(xa, vc),
                                                 _mm256_mul_ps(xb, vs))));
        _mm256_storeu_ps(b + i,
                         round8(t, _mm256_add_ps(_mm256_mul_ps(xb, vc),
                                                 _mm256_mul_ps(xa, vs))));
    }
    for (; i < n; i++) {
        float xa = a[i], xb = b[i];

        a[i] = round_to(t, xa * c[i] - xb * s[i]);
        b[i] = round_to(t, xb * c[i] + xa * s[i]);
    }
}
