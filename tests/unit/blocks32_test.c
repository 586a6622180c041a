/* blocks32: the order against its definition, every form against the plain. */
#include "kernel_data.h"
#include "kernels/blocks32.h"

#include <float.h>

static struct dense_weight make(int64_t out, int64_t in, float (*value)(void))
{
    float *wide = data_fill(out * in, value);
    void *data = data_array(out * in, 2);

    dtype_from_f32(DTYPE_BF16, wide, (size_t)(out * in), data);
    free(wide);
    return (struct dense_weight){DTYPE_BF16, out, in, data};
}

/* Floats exact in bf16. */
static float *activations(int64_t n, float (*value)(void))
{
    float *x = data_fill(n, value);

    for (int64_t i = 0; i < n; i++)
        x[i] = bf16_to_f32(bf16_from_f32(x[i]));
    return x;
}

/* The order, word for word, of values far from subnormal. */
static float by_definition(const float *x, const uint16_t *w, int64_t n,
                           int64_t chunk)
{
    float sum = 0;

    for (int64_t c = 0; c < n; c += chunk) {
        float y = 0;

        for (int64_t k = c; k < n && k < c + chunk; k += 32) {
            float e = 0, o = 0;

            for (int64_t i = k; i < k + 32; i += 2) {
                e = fmaf(i < n ? x[i] : 0, i < n ? bf16_to_f32(w[i]) : 0, e);
                o = fmaf(i + 1 < n ? x[i + 1] : 0,
                         i + 1 < n ? bf16_to_f32(w[i + 1]) : 0, o);
            }
            y = y + (e + o);
        }
        sum = sum + y;
    }
    return sum;
}

static void test_definition(void)
{
    static const int64_t ins[] = {1, 2, 31, 32, 33, 64, 80, 300, 1024};
    const int64_t out = 5, rows = 4;
    int wrong = 0;

    select_form("plain");
    for (size_t n = 0; n < sizeof(ins) / sizeof(ins[0]); n++)
        for (int64_t chunk = 0; chunk <= 128; chunk += 64) {
            int64_t in = ins[n];
            struct dense_weight w = make(out, in, data_normal);
            float *x = activations(rows * in, data_normal);
            float *y = data_array(rows * out, 4);
            float *bias = data_fill(out, data_normal);

            blocks32_matmul(y, x, &w, bias, rows, chunk);
            for (int64_t i = 0; i < rows * out; i++)
                wrong += y[i] !=
                         by_definition(x + i / out * in,
                                       (const uint16_t *)w.data + i % out * in,
                                       in, chunk ? chunk : in) +
                             bias[i % out];
            blocks32_matmul(y, x, &w, NULL, 1, 32);
            if (in > 32 && in % 32 == 0) { /* blocks one by one, from y on */
                float z = 0;

                for (int64_t k = 0; k < in; k += 32) {
                    struct dense_weight part = {DTYPE_BF16, 1, 32,
                                                (const uint16_t *)w.data + k};

                    blocks_matmul(&z, x + k, &part, 1, 32, true);
                }
                wrong += z != y[0];
            }
            free((void *)w.data);
            free(x), free(y), free(bias);
        }
    is_int(wrong, 0, "plain sums follow the definition, whole or in chunks");
}

static void test_subnormals(void)
{
    /* bf16 codes: 2^-126 is 0x0080, below it subnormal */
    static const struct {
        uint16_t x, w;
        float want;
        const char *name;
    } cases[] = {
        {0x0001, 0x7f00, 0, "a subnormal activation counts as 0"},
        {0x7f00, 0x0040, 0, "a subnormal weight counts as 0"},
        {0x8001, 0x7f00, 0, "of its sign, and 0 + -0 is 0"},
        {0x0080, 0x3f80, FLT_MIN, "the least normal number does not"},
        {0x0080, 0x3f00, 0, "a subnormal product counts as 0"},
        {0x2000, 0x1f00, 0, "2^-63 * 2^-65 does too"},
    };

    for (int form = 0; form < 2; form++) {
        struct err err = ERR_INIT;

        if (kernels_select(form ? "avx2" : "plain", &err))
            continue;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
            struct dense_weight w = {DTYPE_BF16, 1, 1, &cases[i].w};
            float x = bf16_to_f32(cases[i].x), y;

            blocks32_matmul(&y, &x, &w, NULL, 1, 0);
            ok(y == cases[i].want && !signbit(y), "%s: %s", kernels_name(),
               cases[i].name);
        }
    }
}

/* bf16 values around the subnormal edge, exactly where rounding decides. */
static float edge(void)
{
    uint32_t bits = (uint32_t)(data_next() % 0x400) << 16;
    float x;

    memcpy(&x, &bits, sizeof(x));
    switch (data_next() % 4) {
    case 0:
        return x;
    case 1:
        return data_uniform();
    case 2:
        return ldexpf(data_uniform(), -63);
    default:
        return -x;
    }
}

static int differing(int64_t out, int64_t in, int64_t rows, int64_t chunk,
                     int threads, float (*value)(void))
{
    struct dense_weight w = make(out, in, value);
    float *x = activations(rows * in, value), *bias = data_fill(out, value);
    float *plain = data_array(rows * out, 4), *y = data_array(rows * out, 4);
    struct err err = ERR_INIT;
    int wrong;

    kernels_select("plain", &err);
    blocks32_matmul(plain, x, &w, bias, rows, chunk);
    kernels_select("avx2", &err);
    threads_set(threads, &err);
    blocks32_matmul(y, x, &w, bias, rows, chunk);
    threads_set(1, &err);
    wrong = memcmp(y, plain, (size_t)(rows * out) * sizeof(*y)) != 0;
    blocks_matmul(y, x, &w, rows, 32, true);
    kernels_select("plain", &err);
    blocks_matmul(plain, x, &w, rows, 32, true);
    wrong += memcmp(y, plain, (size_t)(rows * out) * sizeof(*y)) != 0;
    free((void *)w.data);
    free(x), free(bias), free(plain), free(y);
    return wrong;
}

static void test_forms(void)
{
    static const int64_t ins[] = {1, 17, 32, 63, 64, 95, 257, 700};
    static const int64_t outs[] = {1, 15, 16, 33};
    static float (*const values[])(void) = {data_normal, data_hard, edge};
    struct err err = ERR_INIT;
    int wrong = 0;

    if (kernels_select("avx2", &err)) {
        ok(true, "# SKIP no AVX2");
        return;
    }
    for (size_t v = 0; v < 3; v++)
        for (size_t i = 0; i < 8; i++)
            for (size_t o = 0; o < 4; o++)
                for (int64_t rows = 1; rows < 8; rows += 3)
                    for (int64_t chunk = 0; chunk < 96; chunk += 64)
                        wrong += differing(outs[o], ins[i], rows, chunk,
                                           1 + (int)(rows % 3), values[v]);
    is_int(wrong, 0, "AVX2 gives the plain form's bits");
}

int main(void)
{
    test_definition();
    test_subnormals();
    test_forms();
    return done();
}
