/*
 * Panels of weights and a block of chain128 over them, with AVX2.  Here and in
 * the other AVX2 files the registers' upper halves are cleared before the way
 * out: below -O2 gcc does not, and what follows then runs many times slower.
 */
#include "kernels/chain_internal.h"

#include <immintrin.h>

#include "kernels/avx2_f32.inc"

#include "kernels/chain_avx2.inc"

#include "kernels/avx2_f64.inc"

#include "kernels/chain_avx2.inc"

static __m256 load8(const char *p, enum dtype dtype)
{
    __m128i half;

    switch (dtype) {
    case DTYPE_F16:
        return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
    case DTYPE_BF16:
        half = _mm_loadu_si128((const __m128i *)p);
        return _mm256_castsi256_ps(
            _mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
    default:
        return _mm256_loadu_ps((const float *)p);
    }
}

static __m256d load4(const char *p, enum dtype dtype)
{
    __m128i half;

    switch (dtype) {
    case DTYPE_F16:
        half = _mm_loadl_epi64((const __m128i *)p);
        return _mm256_cvtps_pd(_mm_cvtph_ps(half));
    case DTYPE_BF16:
        half = _mm_cvtepu16_epi32(_mm_loadl_epi64((const __m128i *)p));
        return _mm256_cvtps_pd(_mm_castsi128_ps(_mm_slli_epi32(half, 16)));
    case DTYPE_F32:
        return _mm256_cvtps_pd(_mm_loadu_ps((const float *)p));
    default:
        return _mm256_loadu_pd((const double *)p);
    }
}

/* Eight rows' elements k .. k + 7 to panel rows k .. k + 7, eight columns. */
static inline __attribute__((always_inline)) void
turn8(float *to, const char *const rows[8], int64_t at, enum dtype dtype)
{
    __m256 r0 = load8(rows[0] + at, dtype), r1 = load8(rows[1] + at, dtype);
    __m256 r2 = load8(rows[2] + at, dtype), r3 = load8(rows[3] + at, dtype);
    __m256 r4 = load8(rows[4] + at, dtype), r5 = load8(rows[5] + at, dtype);
    __m256 r6 = load8(rows[6] + at, dtype), r7 = load8(rows[7] + at, dtype);
    __m256 a0 = _mm256_unpacklo_ps(r0, r1), a1 = _mm256_unpackhi_ps(r0, r1);
    __m256 a2 = _mm256_unpacklo_ps(r2, r3), a3 = _mm256_unpackhi_ps(r2, r3);
    __m256 a4 = _mm256_unpacklo_ps(r4, r5), a5 = _mm256_unpackhi_ps(r4, r5);
    __m256 a6 = _mm256_unpacklo_ps(r6, r7), a7 = _mm256_unpackhi_ps(r6, r7);
    __m256 b0 = _mm256_shuffle_ps(a0, a2, 0x44);
    __m256 b1 = _mm256_shuffle_ps(a0, a2, 0xee);
    __m256 b2 = _mm256_shuffle_ps(a1, a3, 0x44);
    __m256 b3 = _mm256_shuffle_ps(a1, a3, 0xee);
    __m256 b4 = _mm256_shuffle_ps(a4, a6, 0x44);
    __m256 b5 = _mm256_shuffle_ps(a4, a6, 0xee);
    __m256 b6 = _mm256_shuffle_ps(a5, a7, 0x44);
    __m256 b7 = _mm256_shuffle_ps(a5, a7, 0xee);

    _mm256_store_ps(to, _mm256_permute2f128_ps(b0, b4, 0x20));
    _mm256_store_ps(to + PANEL_F32, _mm256_permute2f128_ps(b1, b5, 0x20));
    _mm256_store_ps(to + 2 * PANEL_F32, _mm256_permute2f128_ps(b2, b6, 0x20));
    _mm256_store_ps(to + 3 * PANEL_F32, _mm256_permute2f128_ps(b3, b7, 0x20));
    _mm256_store_ps(to + 4 * PANEL_F32, _mm256_permute2f128_ps(b0, b4, 0x31));
    _mm256_store_ps(to + 5 * PANEL_F32, _mm256_permute2f128_ps(b1, b5, 0x31));
    _mm256_store_ps(to + 6 * PANEL_F32, _mm256_permute2f128_ps(b2, b6, 0x31));
    _mm256_store_ps(to + 7 * PANEL_F32, _mm256_permute2f128_ps(b3, b7, 0x31));
}

/* The same, four by four doubles. */
static inline __attribute__((always_inline)) void
turn4(double *to, const char *const rows[4], int64_t at, enum dtype dtype)
{
    __m256d r0 = load4(rows[0] + at, dtype), r1 = load4(rows[1] + at, dtype);
    __m256d r2 = load4(rows[2] + at, dtype), r3 = load4(rows[3] + at, dtype);
    __m256d a0 = _mm256_unpacklo_pd(r0, r1), a1 = _mm256_unpackhi_pd(r0, r1);
    __m256d a2 = _mm256_unpacklo_pd(r2, r3), a3 = _mm256_unpackhi_pd(r2, r3);

    _mm256_store_pd(to, _mm256_permute2f128_pd(a0, a2, 0x20));
    _mm256_store_pd(to + PANEL_F64, _mm256_permute2f128_pd(a1, a3, 0x20));
    _mm256_store_pd(to + 2 * PANEL_F64, _mm256_permute2f128_pd(a0, a2, 0x31));
    _mm256_store_pd(to + 3 * PANEL_F64, _mm256_permute2f128_pd(a1, a3, 0x31));
}

static inline __attribute__((always_inline)) void
fill(float *panel, const char *const rows[PANEL_F32], enum dtype dtype,
     int64_t n)
{
    const int64_t size = dtype_bits(dtype) / 8;
    int64_t k = 0;

    for (; k + 8 <= n; k += 8) {
        turn8(panel + k * PANEL_F32, rows, k * size, dtype);
        turn8(panel + k * PANEL_F32 + 8, rows + 8, k * size, dtype);
    }
    for (int r = 0; k < n && r < PANEL_F32; r++) {
        float rest[8];

        dtype_to_f32(dtype, rows[r] + k * size, (size_t)(n - k), rest);
        for (int64_t i = k; i < n; i++)
            panel[i * PANEL_F32 + r] = rest[i - k];
    }
}

static inline __attribute__((always_inline)) void
fill_f64(double *panel, const char *const rows[PANEL_F64], enum dtype dtype,
         int64_t n)
{
    const int64_t size = dtype_bits(dtype) / 8;
    int64_t k = 0;

    for (; k + 4 <= n; k += 4) {
        turn4(panel + k * PANEL_F64, rows, k * size, dtype);
        turn4(panel + k * PANEL_F64 + 4, rows + 4, k * size, dtype);
    }
    for (int r = 0; k < n && r < PANEL_F64; r++) {
        double rest[4];

        dtype_to_f64(dtype, rows[r] + k * size, (size_t)(n - k), rest);
        for (int64_t i = k; i < n; i++)
            panel[i * PANEL_F64 + r] = rest[i - k];
    }
}

void chain_fill(float *panel, const void *rows, enum dtype dtype,
                int64_t stride, int64_t count, int64_t n)
{
    const char *starts[PANEL_F32];

    for (int64_t r = 0; r < PANEL_F32; r++)
        starts[r] = (const char *)rows + (r < count ? r : count - 1) * stride;
    if (dtype == DTYPE_F16)
        fill(panel, starts, DTYPE_F16, n);
    else if (dtype == DTYPE_BF16)
        fill(panel, starts, DTYPE_BF16, n);
    else
        fill(panel, starts, DTYPE_F32, n);
    _mm256_zeroupper();
}

void chain_fill_f64(double *panel, const void *rows, enum dtype dtype,
                    int64_t stride, int64_t count, int64_t n)
{
    const char *starts[PANEL_F64];

    for (int64_t r = 0; r < PANEL_F64; r++)
        starts[r] = (const char *)rows + (r < count ? r : count - 1) * stride;
    if (dtype == DTYPE_F16)
        fill_f64(panel, starts, DTYPE_F16, n);
    else if (dtype == DTYPE_BF16)
        fill_f64(panel, starts, DTYPE_BF16, n);
    else if (dtype == DTYPE_F32)
        fill_f64(panel, starts, DTYPE_F32, n);
    else
        fill_f64(panel, starts, DTYPE_F64, n);
    _mm256_zeroupper();
}
