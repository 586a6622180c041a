/* The Walsh-Hadamard transform with AVX2: the plain form's bits. */
#include "kernels/hadamard.h"

#include "kernels/kernels_internal.h"
#include "kernels/threads.h"

#include <immintrin.h>
#include <math.h>

/* Strides 1, 2 and 4 of eight floats: lane i takes its partner's value, and
 * the pair's second lane subtracts its own from it. */
static inline __m256 within(__m256 v)
{
    __m256 other = _mm256_permute_ps(v, 0xb1);

    v = _mm256_blend_ps(_mm256_add_ps(v, other), _mm256_sub_ps(other, v), 0xaa);
    other = _mm256_permute_ps(v, 0x4e);
    v = _mm256_blend_ps(_mm256_add_ps(v, other), _mm256_sub_ps(other, v), 0xcc);
    other = _mm256_permute2f128_ps(v, v, 0x01);
    return _mm256_blend_ps(_mm256_add_ps(v, other), _mm256_sub_ps(other, v),
                           0xf0);
}

/* Strides 1 and 2 of four doubles. */
static inline __m256d within_f64(__m256d v)
{
    __m256d other = _mm256_permute_pd(v, 0x5);

    v = _mm256_blend_pd(_mm256_add_pd(v, other), _mm256_sub_pd(other, v), 0xa);
    other = _mm256_permute2f128_pd(v, v, 0x01);
    return _mm256_blend_pd(_mm256_add_pd(v, other), _mm256_sub_pd(other, v),
                           0xc);
}

#include "kernels/avx2_f32.inc"

#include "kernels/hadamard_avx2.inc"

#include "kernels/avx2_f64.inc"

#include "kernels/hadamard_avx2.inc"
