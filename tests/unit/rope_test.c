/* Rotary embeddings: frequencies, axes, both forms. */
#include "forms.h"
#include "kernels/elementary.h"
#include "kernels/rope.h"
#include "kernels/round.h"
#include "kernels/rows_internal.h"
#include "tap.h"

/* mlx 0.32.0 on CPU: 1.0 / base ** (mx.arange(0, dims, 2, mx.float32) / dims),
 * as bits; the same from exact powers. */
static const uint32_t vision_32[] = {
    0x3f800000, 0x3f0ff59a, 0x3ea1e89b, 0x3e361887, 0x3dcccccd, 0x3d6655c2,
    0x3d0186e3, 0x3c91ad39, 0x3c23d70a, 0x3bb8449c, 0x3b4f3e38, 0x3ae91528,
    0x3a83126f, 0x3a136a16, 0x39a5cb60, 0x393a7753};
static const uint32_t vision_36[] = {
    0x3f800000, 0x3f1977cc, 0x3eb800d6, 0x3e5c9d35, 0x3e044133, 0x3d9e91b6,
    0x3d3e1e95, 0x3ce3f280, 0x3c88a69b, 0x3c23d70a, 0x3bc47060, 0x3b6b8631,
    0x3b0d3169, 0x3aa94938, 0x3a4af7f3, 0x39f35a5c, 0x3991e2e1, 0x392ee9bf};
static const uint32_t text_64[] = {
    0x3f800000, 0x3f1ab32b, 0x3ebaf81b, 0x3e61f835, 0x3e088d77, 0x3da50956,
    0x3d47763f, 0x3cf11177, 0x3c91ad39, 0x3c301052, 0x3bd4ca15, 0x3b80967d,
    0x3b1b690d, 0x3abbd3ed, 0x3a6301e2, 0x3a092e02, 0x39a5cb60, 0x394860c1,
    0x38f22ce2, 0x3892587e, 0x3830df52, 0x37d5c441, 0x37812dab, 0x371c1fc4,
    0x36bcb0c1, 0x36640cc6, 0x3609cf4a, 0x35a68e4c, 0x35494c57, 0x34f3499d,
    0x3493048e, 0x3431af44};

static void test_frequencies(void)
{
    float f[32];
    double wide[32];

    rope_inv_freq(f, 32, 1e4);
    is_mem(f, vision_32, sizeof(vision_32), "vision, 32 dims");
    rope_inv_freq(f, 36, 1e4);
    is_mem(f, vision_36, sizeof(vision_36), "vision, 36 dims");
    rope_inv_freq(f, 64, 1e7);
    is_mem(f, text_64, sizeof(text_64), "text, 64 dims");
    rope_inv_freq_f64(wide, 64, 1e7);
    int far = 0;
    for (int i = 0; i < 32; i++)
        far += fabs(wide[i] - (double)f[i]) > 0x1.8p-23 * wide[i];
    is_int(far, 0, "the double ones are near");
}

static const struct rope_text small = {64, 1e7, {11, 11, 10}};

static void test_axes(void)
{
    int wrong = 0;

    for (int i = 0; i < 32; i++)
        wrong += rope_text_axis(&small, i) != i % 3;
    is_int(wrong, 0, "sections 11, 11, 10: axes 0 1 2 0 1 2 ...");
    struct rope_text other = {16, 1e4, {4, 2, 2}};
    static const int want[8] = {0, 1, 2, 0, 1, 2, 0, 0};
    for (int i = 0; i < 8; i++)
        wrong += rope_text_axis(&other, i) != want[i];
    is_int(wrong, 0, "sections 4, 2, 2: the rest is temporal");
}

enum { ROWS = 35, HEADS = 3, DIM = 80 };

static float noise(int i)
{
    return (float)sin((double)i * 12.9898) * 3;
}

static void test_text(void)
{
    int64_t t[ROWS] = {0, 1, 7, 7, 16383};
    int64_t h[ROWS] = {0, 1, 7, 8, 16383};
    int64_t w[ROWS] = {0, 1, 7, 11, 16383};
    const int64_t *const positions[3] = {t, h, w};
    static const enum dtype types[] = {DTYPE_F32, DTYPE_F16, DTYPE_BF16};
    float x[ROWS * HEADS * DIM], was[ROWS * HEADS * DIM], f[32];

    for (int i = 5; i < ROWS; i++) {
        t[i] = i;
        h[i] = 2 * i;
        w[i] = 3 * i;
    }
    rope_inv_freq(f, 64, 1e7);
    for (int k = 0; k < 3; k++) {
        int wrong = 0, moved = 0;

        for (int i = 0; i < ROWS * HEADS * DIM; i++)
            was[i] = x[i] = round_to(types[k], noise(i));
        rope_text_rows(x, &small, positions, ROWS, HEADS, DIM, types[k]);
        for (int i = 0; i < ROWS * HEADS; i++)
            for (int d = 0; d < DIM; d++) {
                const float *head = was + i * DIM;
                int p = d % 32;
                float angle = (float)positions[p % 3][i / HEADS] * f[p];
                float c = (float)cos((double)angle);
                float s = (float)sin((double)angle);
                float want = d < 32   ? head[d] * c - head[d + 32] * s
                             : d < 64 ? head[d] * c + head[d - 32] * s
                                      : head[d];

                wrong += x[i * DIM + d] != round_to(types[k], want);
                moved += x[i * DIM + d] != was[i * DIM + d];
            }
        is_int(wrong, 0, dtype_name(types[k]));
        ok(moved > ROWS * HEADS * 20, "and it turns");
    }
    double wide[ROWS * HEADS * DIM];
    double far = 0;
    for (int i = 0; i < ROWS * HEADS * DIM; i++) {
        x[i] = noise(i);
        wide[i] = (double)x[i];
    }
    rope_text_rows(x, &small, positions, ROWS, HEADS, DIM, DTYPE_F32);
    rope_text_rows_f64(wide, &small, positions, ROWS, HEADS, DIM);
    for (int i = 0; i < ROWS * HEADS * DIM; i++) /* but the far position */
        if (i / (HEADS * DIM) != 4)
            far = fmax(far, fabs(wide[i] - (double)x[i]));
    ok(far < 3e-5, "double is near f32 (%g)", far);
}

static void test_vision(void)
{
    /* a grid of 4 x 6 in blocks of 2 x 2, from the fourth patch on */
    static const struct posembed_grid grid = {4, 6, 48, 2};
    static const int rows[] = {1, 0, 0, 1, 1, 0}, cols[] = {1, 2, 3, 2, 3, 4};
    float angles[6 * 36], x[6 * 2 * 72], was[6 * 2 * 72], f[18];
    int wrong = 0;

    rope_vision_angles(angles, 36, 1e4, &grid, 3, 6);
    rope_inv_freq(f, 36, 1e4);
    for (int k = 0; k < 6; k++)
        for (int i = 0; i < 18; i++)
            wrong += angles[k * 36 + i] != (float)rows[k] * f[i] ||
                     angles[k * 36 + 18 + i] != (float)cols[k] * f[i];
    is_int(wrong, 0, "vision angles: rows, then columns, in block order");
    for (int i = 0; i < 6 * 2 * 72; i++)
        was[i] = x[i] = round_to(DTYPE_F16, noise(i));
    rope_vision_rows(x, angles, 6, 2, 72, DTYPE_F16);
    for (int i = 0; i < 12; i++)
        for (int d = 0; d < 72; d++) {
            float angle = angles[i / 2 * 36 + d % 36];
            float turned =
                d < 36 ? -was[i * 72 + d + 36] : was[i * 72 + d - 36];
            float want = was[i * 72 + d] * (float)cos((double)angle) +
                         turned * (float)sin((double)angle);

            wrong += x[i * 72 + d] != round_to(DTYPE_F16, want);
        }
    is_int(wrong, 0, "vision: pairs of halves, one rounding to f16");
    double wide_angles[6 * 36], wide[6 * 2 * 72], far = 0;
    for (int i = 0; i < 6 * 2 * 72; i++)
        wide[i] = (double)was[i];
    rope_vision_angles_f64(wide_angles, 36, 1e4, &grid, 3, 6);
    rope_vision_rows_f64(wide, wide_angles, 6, 2, 72);
    for (int i = 0; i < 6 * 2 * 72; i++)
        far = fmax(far, fabs(wide[i] - (double)x[i]));
    ok(far < 4e-3, "double is near f16 (%g)", far);
}

static void test_avx2(void)
{
    if (!__builtin_cpu_supports("avx2"))
        return;
    for (int n = 0; n < 40; n++) {
        float a[40], b[40], c[40], s[40];
        int wrong = 0;

        for (int i = 0; i < n; i++) {
            a[i] = round_to(DTYPE_BF16, noise(i));
            b[i] = round_to(DTYPE_BF16, noise(i + 50));
            c[i] = elem_cos_f32(noise(i + 90));
            s[i] = elem_sin_f32(noise(i + 90));
        }
        a[n / 2] = n % 3 ? NAN : INFINITY;
        b[n / 3] = -INFINITY;
        float pa[40], pb[40];
        for (int i = 0; i < n; i++) {
            pa[i] = round_to(DTYPE_BF16, a[i] * c[i] - b[i] * s[i]);
            pb[i] = round_to(DTYPE_BF16, b[i] * c[i] + a[i] * s[i]);
        }
        rotate_pairs_avx2(a, b, c, s, n, DTYPE_BF16);
        wrong += memcmp(a, pa, (size_t)n * 4) != 0;
        wrong += memcmp(b, pb, (size_t)n * 4) != 0;
        if (wrong || n == 39)
            is_int(wrong, 0, "the AVX2 form has the same bits");
    }
}

int main(void)
{
    test_frequencies();
    test_axes();
    for (int i = 0; use_form(i); i++) {
        test_text();
        test_vision();
    }
    test_avx2();
    return done();
}
