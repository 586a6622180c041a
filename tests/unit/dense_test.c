/* chain128 with f16, bf16 and f32 weights. */
#include "kernel_data.h"
#include "kernels/dense.h"

static const enum dtype dtypes[] = {DTYPE_F16, DTYPE_BF16, DTYPE_F32};
enum { DTYPES = 3 };

/* Random weights of a type, in an array of exactly that size. */
static struct dense_weight make(enum dtype dtype, int64_t out, int64_t in,
                                float (*value)(void))
{
    size_t size = dtype_bits(dtype) / 8;
    float *wide = data_fill(out * in, value);
    void *data = xmalloc((size_t)(out * in) * size + 1);

    dtype_from_f32(dtype, wide, (size_t)(out * in), data);
    free(wide);
    return (struct dense_weight){dtype, out, in, data};
}

static void test_order(void)
{
    static const int64_t ins[] = {1, 5, 127, 128, 129, 300};
    const int64_t out = 7, rows = 3;
    int wrong = 0;

    select_form("plain");
    for (int d = 0; d < DTYPES; d++)
        for (size_t n = 0; n < sizeof(ins) / sizeof(ins[0]); n++) {
            struct dense_weight w = make(dtypes[d], out, ins[n], data_normal);
            float *x = data_fill(rows * ins[n], data_normal),
                  *y = data_array(rows * out, 4), *bias,
                  *row = data_array(ins[n], 4);

            bias = data_fill(out, data_normal);
            dense_matmul(y, x, &w, bias, rows);
            for (int64_t o = 0; o < out; o++) {
                struct dense_weight one = dense_rows(&w, o, 1);

                dtype_to_f32(w.dtype, one.data, (size_t)ins[n], row);
                for (int64_t t = 0; t < rows; t++)
                    wrong += y[t * out + o] !=
                             chain128(x + t * ins[n], row, ins[n]) + bias[o];
            }
            free((void *)w.data);
            free(x), free(y), free(row), free(bias);
        }
    is_int(wrong, 0, "plain sums follow chain128, then the bias");
}

/* Against double: at most 80e-8 of the products' 2-norm (orders.md measured
 * 34 to 77 as the largest of plain f32 chains). */
static void test_error(void)
{
    const int64_t out = 33, in = 2048, rows = 9;
    struct dense_weight w = make(DTYPE_F16, out, in, data_normal);
    float *x = data_fill(rows * in, data_normal),
          *y = data_array(rows * out, 4), *row = data_array(in, 4);
    double *xx = data_widen(x, rows * in), *yy = data_array(rows * out, 8);
    double worst = 0, worst_wide = 0;

    dense_matmul(y, x, &w, NULL, rows);
    dense_matmul_f64(yy, xx, &w, NULL, rows);
    for (int64_t o = 0; o < out; o++) {
        struct dense_weight one = dense_rows(&w, o, 1);

        dtype_to_f32(w.dtype, one.data, (size_t)in, row);
        for (int64_t t = 0; t < rows; t++) {
            long double exact = 0, norm = 0;

            for (int64_t i = 0; i < in; i++) {
                long double p = (long double)x[t * in + i] * row[i];

                exact += p;
                norm += p * p;
            }
            norm = sqrtl(norm);
            worst = fmax(worst, (double)(fabsl(y[t * out + o] - exact) / norm));
            worst_wide = fmax(worst_wide,
                              (double)(fabsl(yy[t * out + o] - exact) / norm));
        }
    }
    ok(worst < 80e-8, "f32 error %.2g of the products' norm", worst);
    ok(worst_wide < 80e-8 / 5e8, "f64 error %.2g of it", worst_wide);
    free((void *)w.data);
    free(x), free(y), free(row), free(xx), free(yy);
}

static void spoil(float *x, int64_t n)
{
    static const float values[] = {INFINITY, -INFINITY, NAN, -NAN};

    for (int64_t i = 0; i < n; i += 37)
        x[i] = values[i % 4];
}

/* Every setup against plain with one thread, and rows one at a time. */
static void same_bits(int64_t out, int64_t in, int64_t rows, enum dtype dtype,
                      float (*value)(void), bool is_spoilt)
{
    struct dense_weight w = make(dtype, out, in, value);
    float *x = data_fill(rows * in, value), *bias = data_fill(out, value),
          *want = data_array(rows * out, 4), *got = data_array(rows * out, 4);
    double *xx, *bb = data_widen(bias, out), *want_wide, *got_wide;
    bool good = true, good_wide = true;
    size_t n = (size_t)(rows * out);

    if (is_spoilt)
        spoil(x, rows * in);
    xx = data_widen(x, rows * in);
    want_wide = data_array(rows * out, 8);
    got_wide = data_array(rows * out, 8);
    set_threads(1);
    select_form("plain");
    dense_matmul(want, x, &w, bias, rows);
    dense_matmul_f64(want_wide, xx, &w, bb, rows);
    for (int i = 0; i < SETUPS; i++) {
        if (!use_setup(i))
            continue;
        memset(got, 0xff, n * 4);
        memset(got_wide, 0xff, n * 8);
        dense_matmul(got, x, &w, bias, rows);
        dense_matmul_f64(got_wide, xx, &w, bb, rows);
        good &= memcmp(got, want, n * 4) == 0;
        good_wide &= memcmp(got_wide, want_wide, n * 8) == 0;
        memset(got, 0xff, n * 4);
        for (int64_t t = 0; t < rows; t += 2)
            dense_matmul(got + t * out, x + t * in, &w, bias,
                         rows - t < 2 ? 1 : 2);
        good &= memcmp(got, want, n * 4) == 0;
    }
    ok(good && good_wide, "%s [%d, %d] x %d rows%s: the same bits",
       dtype_name(dtype), (int)out, (int)in, (int)rows,
       is_spoilt ? ", not finite" : "");
    free((void *)w.data);
    free(x), free(xx), free(bias), free(bb);
    free(want), free(got), free(want_wide), free(got_wide);
}

static void test_canonical(void)
{
    uint16_t w16[2] = {0x7e01, 0xfc00}; /* a NaN with a payload, -inf */
    struct dense_weight w = {DTYPE_F16, 2, 1, w16};
    float x[2] = {1, 0}, y[4];
    static const uint32_t want[4] = {0x7fc00000, 0xff800000, 0x7fc00000,
                                     0x7fc00000};

    for (int i = 0; i < SETUPS; i++)
        if (use_setup(i)) {
            dense_matmul(y, x, &w, NULL, 2);
            is_mem(y, want, sizeof(want), "a NaN is the canonical NaN");
        }
}

int main(void)
{
    static const int64_t shapes[][3] = {
        {1, 1, 1},    {3, 7, 2},     {16, 128, 6}, {17, 129, 7},
        {31, 255, 5}, {40, 300, 13}, {96, 64, 1},  {50, 520, 100}};

    test_order();
    test_error();
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        for (int d = 0; d < DTYPES; d++) {
            const int64_t *s = shapes[i];

            same_bits(s[0], s[1], s[2], dtypes[d], data_normal, false);
            same_bits(s[0], s[1], s[2], dtypes[d], data_hard, false);
            same_bits(s[0], s[1], s[2], dtypes[d], data_hard, true);
        }
    test_canonical();
    set_threads(1);
    return done();
}
