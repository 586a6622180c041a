/* Activations and gates, for every 16-bit input, against recorded digests. */
#include "forms.h"
#include "hash/hash.h"
#include "kernels/act.h"
#include "kernels/elementary.h"
#include "kernels/round.h"
#include "kernels/rows_internal.h"
#include "tap.h"
#include "json/json.h"

#include <pthread.h>

enum { VALUES = 65536 };

static float x[VALUES], y[VALUES];

static void decay_of(float *out, const float *a, int64_t n, enum dtype t)
{
    for (int64_t i = 0; i < n; i++)
        decay_rows(out + i, a + i, (float[]){1.5f}, (float[]){0.75f}, 1, 1, t);
}

static const struct {
    const char *name;
    void (*row)(float *out, const float *in, int64_t n, enum dtype t);
} functions[] = {
    {"sigmoid", sigmoid_row},     {"silu", silu_row},
    {"gelu_tanh", gelu_tanh_row}, {"gelu_erf", gelu_erf_row},
    {"softplus", softplus_row},   {"decay", decay_of},
};
static const enum dtype types[] = {DTYPE_F16, DTYPE_BF16, DTYPE_F32};

static void every_input(enum dtype t)
{
    for (int i = 0; i < VALUES; i++)
        x[i] =
            t == DTYPE_F16 ? f16_to_f32((uint16_t)i) : bf16_to_f32((uint16_t)i);
}

static void check(const json_t *root, size_t f, enum dtype t)
{
    enum dtype result = f == 5 ? DTYPE_F32 : t;
    static char bytes[VALUES * 4];
    char name[64], hex[HASH_SHA256_HEX];
    struct err err = ERR_INIT;
    const char *want = NULL;
    json_t *entry, *some;

    snprintf(name, sizeof(name), "%s %s", functions[f].name, dtype_name(t));
    every_input(t);
    functions[f].row(y, x, VALUES, t);
    dtype_from_f32(result, y, VALUES, bytes);
    hash_sha256(bytes, VALUES * (size_t)dtype_bits(result) / 8, hex);
    if (json_get_object(root, name, &entry, &err) ||
        json_get_str(entry, "sha256", &want, &err) ||
        json_get_array(entry, "some", &some, &err)) {
        ok(false, "%s: %s", name, err.text);
        return;
    }
    if (is_str(hex, want, name))
        return;
    for (size_t i = 0; i < json_array_size(some); i++) {
        const json_t *pair = json_array_get(some, i);
        int at = (int)json_integer_value(json_array_get(pair, 0));
        uint32_t got = 0;

        memcpy(&got, bytes + at * (int)dtype_bits(result) / 8,
               dtype_bits(result) / 8);
        diag("%a: got %x, wanted %s", (double)x[at], got,
             json_string_value(json_array_get(pair, 1)));
    }
}

/* Rows of odd lengths, in place, with and without a second operand. */
static void test_gates(void)
{
    for (int k = 0; k < 3; k++) {
        enum dtype t = types[k];
        float g[77], u[77], s[77], p[77], q[77];
        int wrong = 0;

        for (int i = 0; i < 77; i++) {
            g[i] = round_to(t, (float)(i - 38) * 0.37f);
            u[i] = round_to(t, (float)sin(i) * 2);
        }
        g[5] = NAN;
        g[6] = INFINITY;
        g[7] = -INFINITY;
        silu_row(s, g, 77, t);
        silu_mul_row(p, g, u, 77, t);
        memcpy(q, u, sizeof(q));
        silu_mul_row(q, g, q, 77, t);
        for (int i = 0; i < 77; i++) {
            float want = round_to(t, s[i] * u[i]);

            wrong += memcmp(&want, &p[i], 4) != 0;
            wrong += memcmp(&want, &q[i], 4) != 0;
        }
        is_int(wrong, 0, "silu(gate) * up");
        sigmoid_row(s, g, 77, t);
        mul_sigmoid_row(p, u, g, 77, t);
        silu_gate_row(q, g, u, 77, t);
        for (int i = 0; i < 77; i++) {
            float want = round_to(t, u[i] * s[i]), f32;

            wrong += memcmp(&want, &p[i], 4) != 0;
            silu_row(&f32, &g[i], 1, DTYPE_F32);
            want = round_to(t, f32 * u[i]);
            wrong += memcmp(&want, &q[i], 4) != 0;
        }
        is_int(wrong, 0, "x * sigmoid(gate), and silu in f32 times u");
    }
}

static void test_decay(void)
{
    static const float a[6] = {-3, -1, 0, 1, 2, 9}, dt[3] = {1, -2, 0.5f};
    static const float a_log[3] = {-1, 0, 2};
    double wide_a[6], wide_dt[3], wide_log[3], wide[6], far = 0;
    float g[6];

    for (int i = 0; i < 6; i++)
        wide_a[i] = (double)a[i];
    for (int i = 0; i < 3; i++) {
        wide_dt[i] = (double)dt[i];
        wide_log[i] = (double)a_log[i];
    }
    decay_rows(g, a, dt, a_log, 2, 3, DTYPE_F32);
    decay_rows_f64(wide, wide_a, wide_dt, wide_log, 2, 3);
    for (int i = 0; i < 6; i++) {
        double u = wide_a[i] + wide_dt[i % 3];
        double want = exp(-exp(wide_log[i % 3]) * log1p(exp(u)));

        far = fmax(far, fabs(wide[i] - want) / want);
        far = fmax(far, fabs((double)g[i] - want) / want * 1e-8);
    }
    ok(far < 1e-13, "decay of rows of heads, f64 and f32 (%g)", far);
}

/* Against libm: these formulas are the plain ones. */
static void test_f64(void)
{
    double far = 0;

    for (double v = -30; v < 30; v += 0.173) {
        double out[5], s = 1 / (1 + exp(-v));

        sigmoid_row_f64(&out[0], &v, 1);
        silu_row_f64(&out[1], &v, 1);
        gelu_tanh_row_f64(&out[2], &v, 1);
        gelu_erf_row_f64(&out[3], &v, 1);
        softplus_row_f64(&out[4], &v, 1);
        double want[5] = {
            s, v * s,
            0.5 * v *
                (1 + tanh(sqrt(2 / acos(-1)) * (v + 0.044715 * v * v * v))),
            0.5 * v * (1 + erf(v / sqrt(2))), log1p(exp(v))};
        for (int i = 0; i < 5; i++)
            far = fmax(far, fabs(out[i] - want[i]) / (1 + fabs(want[i])));
    }
    static double many[5000], gates[5000], got[5000];
    int wrong = 0;
    for (int i = 0; i < 5000; i++) {
        many[i] = sin(i) * 9;
        gates[i] = cos(i) * 9;
    }
    silu_mul_row_f64(got, gates, many, 5000);
    for (int i = 0; i < 5000; i++) {
        double one;

        silu_row_f64(&one, &gates[i], 1);
        wrong += got[i] != one * many[i];
    }
    is_int(wrong, 0, "double: silu(gate) * up, value by value");
    ok(far < 1e-15, "double forms are the formulas (%g)", far);
}

static void *run(void *out)
{
    gelu_erf_row(out, x, VALUES, DTYPE_BF16);
    return NULL;
}

/* The first use of a table, by two threads at once. */
static void test_threads(void)
{
    static float other[VALUES];
    pthread_t thread;

    every_input(DTYPE_BF16);
    if (pthread_create(&thread, NULL, run, other))
        exit(1);
    run(y);
    pthread_join(thread, NULL);
    is_mem(y, other, sizeof(y), "two threads make one table");
}

static void test_avx2(void)
{
    static float plain[VALUES], factor[VALUES];
    static uint16_t values[VALUES];

    if (!__builtin_cpu_supports("avx2"))
        return;
    for (int i = 0; i < VALUES; i++) {
        /* what is a NaN in either type has one value, as in real tables */
        values[i] = (i & 0x7fff) > 0x7c00 ? 0x7e00 : (uint16_t)(i * 40503);
        factor[i] = round_to(DTYPE_F16, (float)sin(i));
    }
    for (int k = 0; k < 2; k++) {
        enum dtype t = types[k];

        every_input(t);
        for (int i = 0; i < VALUES; i++) {
            float v = t == DTYPE_F16 ? f16_to_f32(values[f16_from_f32(x[i])])
                                     : bf16_to_f32(values[bf16_from_f32(x[i])]);

            plain[i] = round_to(t, factor[i] * v);
        }
        for (int n = VALUES - 9; n <= VALUES; n++) {
            memcpy(y, factor, sizeof(y));
            table_row_avx2(y, x, y, n, values, t);
            if (n == VALUES || memcmp(y, plain, (size_t)n * 4) != 0)
                is_mem(y, plain, (size_t)n * 4,
                       "the AVX2 form of a table has the same bits");
        }
    }
}

/* The f32 rows in AVX2 against the plain form's, of every length's end. */
static void test_avx2_f32(void)
{
    static float plain[VALUES], factor[VALUES];
    struct err err = ERR_INIT;

    if (!__builtin_cpu_supports("avx2") || kernels_select("plain", &err))
        return;
    every_input(DTYPE_BF16);
    for (int i = 0; i < VALUES; i++)
        factor[i] = (float)sin(i) * 3;
    for (int n = VALUES - 8; n <= VALUES; n++) {
        size_t bytes = (size_t)n * sizeof(float);

        sigmoid_row(plain, x, n, DTYPE_F32);
        sigmoid_f32_avx2(y, x, NULL, n);
        is_mem(y, plain, bytes, "sigmoid");
        mul_sigmoid_row(plain, factor, x, n, DTYPE_F32);
        sigmoid_f32_avx2(y, x, factor, n);
        is_mem(y, plain, bytes, "x * sigmoid");
        silu_row(plain, x, n, DTYPE_F32);
        silu_f32_avx2(y, x, NULL, n, DTYPE_F32);
        is_mem(y, plain, bytes, "silu");
        silu_gate_row(plain, x, factor, n, DTYPE_BF16);
        silu_f32_avx2(y, x, factor, n, DTYPE_BF16);
        is_mem(y, plain, bytes, "silu times u, rounded");
        gelu_tanh_row(plain, x, n, DTYPE_F32);
        gelu_tanh_f32_avx2(y, x, 0.044715f, 0.7978845608028654f, n);
        is_mem(y, plain, bytes, "tanh GELU");
    }
}

int main(void)
{
    struct err err = ERR_INIT;
    json_t *root = json_read_file("fixtures/act/values.json", &err);

    if (!root) {
        ok(false, "%s", err.text);
        return done();
    }
    if (kernels_select("plain", &err)) /* once, and from the main thread */
        return 1;
    test_threads();
    for (int i = 0; use_form(i); i++) {
        for (size_t f = 0; f < sizeof(functions) / sizeof(functions[0]); f++)
            for (int k = 0; k < 3; k++)
                check(root, f, types[k]);
        test_gates();
        test_decay();
        test_f64();
    }
    json_decref(root);
    test_avx2();
    test_avx2_f32();
    return done();
}
