/*
 * The row kernels eight values at a time.  Each takes its plain form's steps,
 * so it has its bits; a multiplication and an addition stay two roundings
 * unless the plain form says fma.
 */
#include "kernels/rows_internal.h"

#include "kernels/round.h"

#include <immintrin.h>
#include <math.h>
#include <string.h>

/* ---- exp and tanh ---- */

/* -105 <= x <= 90 */
static inline __m256d short_exp4(__m256d x)
{
    __m256d magic = _mm256_set1_pd(0x1.8p52);
    __m256d shifted =
        _mm256_fmadd_pd(x, _mm256_set1_pd(0x1.71547652b82fep+0), magic);
    __m256d n = _mm256_sub_pd(shifted, magic), y;
    __m256d r = _mm256_fnmadd_pd(n, _mm256_set1_pd(ELEM_LN2_HI), x);

    r = _mm256_fnmadd_pd(n, _mm256_set1_pd(ELEM_LN2_LO), r);
    y = _mm256_set1_pd(elem_short_exp[ELEM_SHORT_TERMS - 1]);
    for (int i = ELEM_SHORT_TERMS - 2; i >= 0; i--)
        y = _mm256_fmadd_pd(y, r, _mm256_set1_pd(elem_short_exp[i]));
    return _mm256_castsi256_pd(
        _mm256_add_epi64(_mm256_castpd_si256(y),
                         _mm256_slli_epi64(_mm256_castpd_si256(shifted), 52)));
}

static inline __m256 join(__m128 low, __m128 high)
{
    return _mm256_insertf128_ps(_mm256_castps128_ps256(low), high, 1);
}

static inline __m256 canonical_of(__m256 y, __m256 x)
{
    return _mm256_blendv_ps(y, _mm256_set1_ps(__builtin_nanf("")),
                            _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}

static inline __m256 exp8(__m256 x)
{
    __m256 v = _mm256_max_ps(_mm256_min_ps(x, _mm256_set1_ps(89)),
                             _mm256_set1_ps(-104));
    __m256d low = _mm256_cvtps_pd(_mm256_castps256_ps128(v));
    __m256d high = _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1));

    return canonical_of(join(_mm256_cvtpd_ps(short_exp4(low)),
                             _mm256_cvtpd_ps(short_exp4(high))),
                        x);
}

static inline __m128 tanh4(__m128 x)
{
    __m256d wide = _mm256_cvtps_pd(x), sign = _mm256_set1_pd(-0.0);
    __m256d a = _mm256_min_pd(_mm256_andnot_pd(sign, wide), _mm256_set1_pd(20));
    __m256d one = _mm256_set1_pd(1);
    __m256d e = short_exp4(_mm256_add_pd(a, a));
    __m256d y = _mm256_div_pd(_mm256_sub_pd(e, one), _mm256_add_pd(e, one));
    __m256d near0 = _mm256_fmadd_pd(
        _mm256_mul_pd(a, a), _mm256_mul_pd(a, _mm256_set1_pd(-1.0 / 3)), a);

    y = _mm256_blendv_pd(y, near0,
                         _mm256_cmp_pd(a, _mm256_set1_pd(0x1p-12), _CMP_LT_OQ));
    return _mm256_cvtpd_ps(_mm256_or_pd(y, _mm256_and_pd(sign, wide)));
}

static inline __m256 tanh8(__m256 x)
{
    return canonical_of(join(tanh4(_mm256_castps256_ps128(x)),
                             tanh4(_mm256_extractf128_ps(x, 1))),
                        x);
}

/* Loads up to eight values, zeros behind them. */
static inline __m256 load_some(const float *x, int64_t n, float block[8])
{
    if (n >= 8)
        return _mm256_loadu_ps(x);
    memset(block, 0, 8 * sizeof(float));
    memcpy(block, x, (size_t)n * sizeof(float));
    return _mm256_loadu_ps(block);
}

static inline void store_some(float *y, __m256 v, int64_t n)
{
    float block[8];

    if (n >= 8) {
        _mm256_storeu_ps(y, v);
        return;
    }
    _mm256_storeu_ps(block, v);
    memcpy(y, block, (size_t)n * sizeof(float));
}

void elem_exp_row_avx2(float *y, const float *x, int64_t n)
{
    float block[8];

    for (int64_t i = 0; i < n; i += 8)
        store_some(y + i, exp8(load_some(x + i, n - i, block)), n - i);
}

void elem_tanh_row_avx2(float *y, const float *x, int64_t n)
{
    float block[8];

    for (int64_t i = 0; i < n; i += 8)
        store_some(y + i, tanh8(load_some(x + i, n - i, block)), n - i);
}

/* ---- rounding ---- */

static inline __m256 canonical8(__m256 x)
{
    return canonical_of(x, x);
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
    float block[8];
    uint16_t bits[8];

    for (int64_t i = 0; i < n; i += 8) {
        __m256 v = load_some(x + i, n - i, block);

        _mm_storeu_si128((__m128i *)bits, pack8(t, v));
        for (int k = 0; k < 8; k++)
            bits[k] = values[bits[k]];
        v = unpack8(t, _mm_loadu_si128((const __m128i *)bits));
        if (factor)
            v = round8(t,
                       _mm256_mul_ps(load_some(factor + i, n - i, block), v));
        store_some(y + i, v, n - i);
    }
}

/* ---- activations in f32 ---- */

static inline __m256 abs8(__m256 x)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x);
}

static inline __m256 sigmoid8(__m256 x)
{
    __m256 one = _mm256_set1_ps(1);
    __m256 q = _mm256_div_ps(one, _mm256_add_ps(one, exp8(abs8(x))));

    return _mm256_blendv_ps(_mm256_sub_ps(one, q), q,
                            _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_LT_OQ));
}

/* float(x^3), the product in double */
static inline __m256 cube8(__m256 x)
{
    __m256d low = _mm256_cvtps_pd(_mm256_castps256_ps128(x));
    __m256d high = _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));

    low = _mm256_mul_pd(_mm256_mul_pd(low, low), low);
    high = _mm256_mul_pd(_mm256_mul_pd(high, high), high);
    return join(_mm256_cvtpd_ps(low), _mm256_cvtpd_ps(high));
}

static inline __m256 gelu_tanh8(__m256 x, __m256 k1, __m256 k2)
{
    __m256 u = _mm256_add_ps(x, _mm256_mul_ps(k1, cube8(x)));
    __m256 h = tanh8(_mm256_mul_ps(k2, u));

    return _mm256_mul_ps(_mm256_mul_ps(_mm256_set1_ps(0.5f), x),
                         _mm256_add_ps(_mm256_set1_ps(1), h));
}

void sigmoid_f32_avx2(float *y, const float *x, const float *factor, int64_t n)
{
    float block[8];

    for (int64_t i = 0; i < n; i += 8) {
        __m256 v = sigmoid8(load_some(x + i, n - i, block));

        if (factor)
            v = _mm256_mul_ps(load_some(factor + i, n - i, block), v);
        store_some(y + i, canonical8(v), n - i);
    }
}

void silu_f32_avx2(float *y, const float *x, const float *factor, int64_t n,
                   enum dtype t)
{
    float block[8];

    for (int64_t i = 0; i < n; i += 8) {
        __m256 v = load_some(x + i, n - i, block);

        v = _mm256_mul_ps(v, sigmoid8(v));
        if (factor)
            v = _mm256_mul_ps(v, load_some(factor + i, n - i, block));
        store_some(y + i, round8(t, v), n - i);
    }
}

void gelu_tanh_f32_avx2(float *y, const float *x, float k1, float k2, int64_t n)
{
    __m256 a = _mm256_set1_ps(k1), b = _mm256_set1_ps(k2);
    float block[8];

    for (int64_t i = 0; i < n; i += 8) {
        __m256 v = gelu_tanh8(load_some(x + i, n - i, block), a, b);

        store_some(y + i, canonical8(v), n - i);
    }
}

/* ---- sums and norms ---- */

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
