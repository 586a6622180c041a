/* Rounding, lanes16, norms and softmax: definitions, and AVX2 against plain. */
#include "forms.h"
#include "kernels/elementary.h"
#include "kernels/norm.h"
#include "kernels/round.h"
#include "kernels/rows_internal.h"
#include "kernels/softmax.h"
#include "tap.h"

static const enum dtype types[] = {DTYPE_F32, DTYPE_F16, DTYPE_BF16};
static uint32_t state = 1;

static uint32_t draw(void)
{
    state = state * 1664525 + 1013904223;
    return state >> 8;
}

static float noise(void)
{
    return (float)draw() / 0x1p23f - 1;
}

static bool same(float a, float b)
{
    return memcmp(&a, &b, 4) == 0;
}

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static void test_rounding(void)
{
    enum { COUNT = 200000 };
    static float x[COUNT], y[COUNT];
    int wrong = 0, wide = 0;

    for (int i = 0; i < COUNT; i++) {
        uint32_t u = draw() << 16 ^ draw();

        if (i % 2) /* near f16's range, half of them ties */
            u = (u & 0x8fffffff) | 0x30000000;
        if (i % 4 == 1)
            u = (u & 0xffffe000) | 0x1000;
        memcpy(&x[i], &u, 4);
    }
    for (int i = 0; i < COUNT; i++) {
        float half = f16_to_f32(f16_from_f32(x[i]));
        float brain = bf16_to_f32(bf16_from_f32(x[i]));

        if (x[i] != x[i])
            half = brain = NAN;
        wrong += !same(round_to(DTYPE_F16, x[i]), half);
        wrong += !same(round_to(DTYPE_BF16, x[i]), brain);
        wide += !same(round_from_f64(DTYPE_F16, (double)x[i]), half);
        wide += !same(round_from_f64(DTYPE_BF16, (double)x[i]), brain);
    }
    is_int(wrong, 0, "round_to is the conversion there and back");
    is_int(wide, 0, "and so is round_from_f64 of a float");
    ok(round_from_f64(DTYPE_BF16, 0x1.0100000001p0) == 0x1.02p0f &&
           round_from_f64(DTYPE_BF16, 0x1.0300000000001p0) == 0x1.04p0f &&
           round_from_f64(DTYPE_BF16, 0x1.02ffffffffffp0) == 0x1.02p0f &&
           round_from_f64(DTYPE_BF16, -0x1.0100000001p0) == -0x1.02p0f,
       "a double rounds once, not by way of f32");
    for (int k = 0; k < 3; k++) {
        memcpy(y, x, sizeof(y));
        round_row(types[k], y, COUNT);
        wrong = 0;
        for (int i = 0; i < COUNT; i++)
            wrong += !same(y[i], round_to(types[k], x[i]));
        is_int(wrong, 0, "a row rounds as each value does");
        if (!has_avx2())
            continue;
        float *again = malloc(sizeof(y));
        if (!again)
            exit(1);
        memcpy(again, x, sizeof(x));
        round_row_avx2(types[k], again, COUNT);
        is_mem(again, y, sizeof(y), "the AVX2 form has the same bits");
        free(again);
    }
}

static float lanes(const float *v, int n, bool is_squared)
{
    float l[16] = {0};

    for (int k = 0; k < n; k++)
        l[k % 16] = is_squared ? fmaf(v[k], v[k], l[k % 16]) : l[k % 16] + v[k];
    for (int i = 0; i < 8; i++)
        l[i] += l[i + 8];
    for (int i = 0; i < 4; i++)
        l[i] += l[i + 4];
    for (int i = 0; i < 2; i++)
        l[i] += l[i + 2];
    return l[0] + l[1];
}

static void test_lanes(void)
{
    static float v[1100];
    int sums = 0, squares = 0, fast = 0;

    for (int n = 0; n < 1100; n++) {
        v[n] = noise() * 100;
        if (n % 7 == 0)
            v[n] = -0.0f;
    }
    for (int n = 0; n < 1100; n++) {
        const float *from = v + n % 5;
        int count = n - n % 5;
        float sum = lanes(from, count, false),
              square = lanes(from, count, true);

        sums += !same(lanes16_sum(from, count), sum);
        squares += !same(lanes16_squares(from, count), square);
        if (has_avx2()) {
            fast += !same(lanes16_sum_avx2(from, count), sum);
            fast += !same(lanes16_squares_avx2(from, count), square);
        }
    }
    is_int(sums, 0, "sums in the order lanes16");
    is_int(squares, 0, "sums of squares in the order lanes16");
    is_int(fast, 0, "the AVX2 forms have the same bits");
    ok(lanes16_sum_f64((double[]){1, 2, 3}, 3) == 6 &&
           lanes16_squares_f64((double[]){1, 2, 3}, 3) == 14,
       "in double");
}

enum { COLS = 203, ROWS = 4 };

static void test_norms(void)
{
    for (int k = 0; k < 3; k++) {
        enum dtype t = types[k];
        float x[ROWS * COLS], y[ROWS * COLS], z[ROWS * COLS];
        float w[COLS], b[COLS];
        double dx[ROWS * COLS], dy[ROWS * COLS], dw[COLS], db[COLS], far = 0;
        int rms = 0, bare = 0, layer = 0;

        for (int i = 0; i < ROWS * COLS; i++) {
            x[i] = round_to(t, noise() * (i < COLS ? 1e-3f : 3) + 0.1f);
            dx[i] = (double)x[i];
        }
        for (int i = 0; i < COLS; i++) {
            w[i] = round_to(t, noise() * 2);
            b[i] = round_to(t, noise());
            dw[i] = (double)w[i];
            db[i] = (double)b[i];
        }
        rms_norm(y, x, w, ROWS, COLS, 1e-6, t);
        rms_norm(z, x, NULL, ROWS, COLS, 1e-6, t);
        for (int row = 0; row < ROWS; row++) {
            const float *v = x + row * COLS;
            float r = 1.0f / sqrtf(lanes(v, COLS, true) / COLS + 1e-6f);

            for (int i = 0; i < COLS; i++) {
                float hat = round_to(t, v[i] * r);

                bare += !same(z[row * COLS + i], hat);
                rms += !same(y[row * COLS + i], round_to(t, w[i] * hat));
            }
        }
        is_int(rms, 0, "rms_norm rounds the normed value, then the product");
        is_int(bare, 0, "without weight");
        rms_norm_f64(dy, dx, dw, ROWS, COLS, 1e-6);
        for (int i = 0; i < ROWS * COLS; i++)
            far = fmax(far, fabs(dy[i] - (double)y[i]) / (1 + fabs(dy[i])));
        layer_norm(y, x, w, b, ROWS, COLS, 1e-6, t);
        for (int row = 0; row < ROWS; row++) {
            float c[COLS], mean = lanes(x + row * COLS, COLS, false) / COLS;

            for (int i = 0; i < COLS; i++)
                c[i] = x[row * COLS + i] - mean;
            float r = 1.0f / sqrtf(lanes(c, COLS, true) / COLS + 1e-6f);
            for (int i = 0; i < COLS; i++) {
                float scaled = round_to(t, w[i] * round_to(t, c[i] * r));

                layer += !same(y[row * COLS + i], round_to(t, scaled + b[i]));
            }
        }
        is_int(layer, 0, "layer_norm rounds three times");
        layer_norm_f64(dy, dx, dw, db, ROWS, COLS, 1e-6);
        for (int i = 0; i < ROWS * COLS; i++)
            far = fmax(far, fabs(dy[i] - (double)y[i]) / (1 + fabs(dy[i])));
        ok(far < (t == DTYPE_F32 ? 3e-5 : 2e-2), "double is near %s (%g)",
           dtype_name(t), far);
        memcpy(z, x, sizeof(z));
        layer_norm(z, z, w, b, ROWS, COLS, 1e-6, t);
        is_mem(z, y, sizeof(z), "in place");
        if (has_avx2()) {
            x[3] = NAN;
            x[11] = INFINITY;
            x[202] = -NAN;
            norm_scale_avx2(y, x, 1.7f, w, b, COLS, t);
            int wrong = 0;
            for (int i = 0; i < COLS; i++) {
                float v = round_to(t, w[i] * round_to(t, x[i] * 1.7f));

                wrong += !same(y[i], round_to(t, v + b[i]));
            }
            is_int(wrong, 0, "the AVX2 form has the same bits");
        }
    }
}

/* More rows than a thread takes at a time: the same as row by row. */
static void test_many_rows(void)
{
    enum { MANY = 90, WIDE = 1000 };
    static float x[MANY * WIDE], y[MANY * WIDE], z[MANY * WIDE], w[WIDE];
    static double dx[MANY * WIDE], dy[MANY * WIDE], dz[MANY * WIDE], dw[WIDE];

    for (int i = 0; i < MANY * WIDE; i++)
        dx[i] = (double)(x[i] = noise());
    for (int i = 0; i < WIDE; i++)
        dw[i] = (double)(w[i] = noise());
    rms_norm(y, x, w, MANY, WIDE, 1e-6, DTYPE_F16);
    rms_norm_f64(dy, dx, dw, MANY, WIDE, 1e-6);
    for (int i = 0; i < MANY; i++) {
        rms_norm(z + i * WIDE, x + i * WIDE, w, 1, WIDE, 1e-6, DTYPE_F16);
        rms_norm_f64(dz + i * WIDE, dx + i * WIDE, dw, 1, WIDE, 1e-6);
    }
    is_mem(y, z, sizeof(y), "rms_norm of many rows is that of each");
    is_mem(dy, dz, sizeof(dy), "in double");
    layer_norm(y, x, w, w, MANY, WIDE, 1e-6, DTYPE_BF16);
    layer_norm_f64(dy, dx, dw, dw, MANY, WIDE, 1e-6);
    for (int i = 0; i < MANY; i++) {
        layer_norm(z + i * WIDE, x + i * WIDE, w, w, 1, WIDE, 1e-6, DTYPE_BF16);
        layer_norm_f64(dz + i * WIDE, dx + i * WIDE, dw, dw, 1, WIDE, 1e-6);
    }
    is_mem(y, z, sizeof(y), "layer_norm of many rows is that of each");
    is_mem(dy, dz, sizeof(dy), "in double");
}

static void test_softmax(void)
{
    float x[333], y[333];
    double dx[333], dy[333], far = 0;
    int wrong = 0;

    for (int n = 1; n <= 333; n += 83) {
        for (int i = 0; i < n; i++) {
            x[i] = noise() * 20;
            if (i % 5 == 3)
                x[i] = -INFINITY;
            dx[i] = (double)x[i];
        }
        float max = x[0], sum;
        for (int i = 1; i < n; i++)
            max = x[i] > max ? x[i] : max;
        softmax_row(y, x, n);
        softmax_row_f64(dy, dx, n);
        float e[333];
        for (int i = 0; i < n; i++)
            e[i] = elem_exp_f32(x[i] - max);
        sum = lanes(e, n, false);
        for (int i = 0; i < n; i++) {
            wrong += !same(y[i], e[i] * (1.0f / sum));
            far = fmax(far, fabs(dy[i] - (double)y[i]));
        }
        if (has_avx2())
            wrong += !same(softmax_max_avx2(x, n), max);
    }
    is_int(wrong, 0, "softmax: exp(x - max) times the reciprocal of the sum");
    ok(far < 1e-6, "double is near (%g)", far);
    x[100] = NAN;
    softmax_row(y, x, 333);
    ok(same(y[0], NAN) && same(y[332], NAN), "a NaN spreads over its row");
    ok(isnan(softmax_max(x, 333)) &&
           (!has_avx2() || isnan(softmax_max_avx2(x, 333))),
       "a NaN is the largest");
    x[0] = x[1] = -INFINITY;
    softmax_row(y, x, 2);
    ok(same(y[0], NAN), "a fully masked row is NaN, not a distribution");
}

int main(void)
{
    for (int i = 0; use_form(i); i++) {
        test_rounding();
        test_lanes();
        test_norms();
        test_many_rows();
        test_softmax();
    }
    return done();
}
