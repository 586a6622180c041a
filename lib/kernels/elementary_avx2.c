/* exp and tanh of rows, eight floats at a time: the steps of elementary.c's
 * f32 forms, so their bits. */
#include "kernels/elementary.h"

#include "kernels/rows_internal.h"

#include <immintrin.h>
#include <string.h>

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

static inline __m256 canonical(__m256 y, __m256 x)
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

    return canonical(join(_mm256_cvtpd_ps(short_exp4(low)),
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
    return canonical(join(tanh4(_mm256_castps256_ps128(x)),
                          tanh4(_mm256_extractf128_ps(x, 1))),
                     x);
}

/* The last, shorter piece goes through a block of eight. */
#define ROW(step)                                              \
    float block[8] = {0};                                      \
    int64_t i = 0;                                             \
                                                               \
    for (; i + 8 <= n; i += 8)                                 \
        _mm256_storeu_ps(y + i, step(_mm256_loadu_ps(x + i))); \
    if (i < n) {                                               \
        memcpy(block, x + i, (size_t)(n - i) * sizeof(*x));    \
        _mm256_storeu_ps(block, step(_mm256_loadu_ps(block))); \
        memcpy(y + i, block, (size_t)(n - i) * sizeof(*y));    \
    }

void elem_exp_row_avx2(float *y, const float *x, int64_t n)
{
    ROW(exp8)
}

void elem_tanh_row_avx2(float *y, const float *x, int64_t n)
{
    ROW(tanh8)
}
