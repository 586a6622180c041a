/*
 * The order chain v1: one fused chain over all of a row, for dense and for
 * packed weights, in every kernel form and with one thread and three.
 */
#include "forms.h"
#include "kernel_data.h"
#include "kernels/dense.h"
#include "kernels/packed.h"

/* The order, word for word. */
static float chain(const float *x, const float *w, int64_t n)
{
    float y = 0;

    for (int64_t i = 0; i < n; i++)
        y = fmaf(x[i], w[i], y);
    return y;
}

static bool is_same(float got, float wanted)
{
    if (got != got || wanted != wanted)
        return got != got && wanted != wanted;
    return memcmp(&got, &wanted, sizeof(got)) == 0;
}

static int dense_wrong(enum dtype dtype, int64_t rows, int64_t out, int64_t in,
                       float (*value)(void))
{
    float *wide = data_fill(out * in, value), *x = data_fill(rows * in, value);
    float *bias = data_fill(out, value), *y = data_array(rows * out, 4);
    void *data = data_array(out * in, 4);
    struct dense_weight w = {dtype, out, in, data};
    int wrong = 0;

    dtype_from_f32(dtype, wide, (size_t)(out * in), data);
    dtype_to_f32(dtype, data, (size_t)(out * in), wide);
    dense_matmul_order(y, x, &w, bias, DENSE_CHAIN, rows);
    for (int64_t t = 0; t < rows; t++)
        for (int64_t o = 0; o < out; o++)
            wrong += !is_same(y[t * out + o],
                              chain(x + t * in, wide + o * in, in) + bias[o]);
    free(wide);
    free(x);
    free(bias);
    free(y);
    free(data);
    return wrong;
}

static int packed_wrong(int64_t rows, int64_t out, int64_t in)
{
    uint32_t *codes = data_array(out * in / 16, 4);
    uint16_t *scales = data_array(out * in / 128, 2);
    float *x = data_fill(rows * in, data_normal), *row = data_array(in, 4);
    float *y = data_array(rows * out, 4);
    struct packed_weight w = {out, in, codes, scales};
    int wrong = 0;

    for (int64_t i = 0; i < out * in; i++)
        codes[i / 16] |= (uint32_t)(data_next() % 3) << (2 * (i % 16));
    for (int64_t i = 0; i < out * in / 128; i++)
        scales[i] = f16_from_f32(fabsf(data_normal()));
    packed_matmul(y, x, &w, PACKED_CHAIN, rows);
    for (int64_t o = 0; o < out; o++) {
        packed_row(row, &w, o);
        for (int64_t t = 0; t < rows; t++)
            wrong += !is_same(y[t * out + o], chain(x + t * in, row, in));
    }
    free(codes);
    free(scales);
    free(x);
    free(row);
    free(y);
    return wrong;
}

int main(void)
{
    static const enum dtype dtypes[] = {DTYPE_F16, DTYPE_BF16, DTYPE_F32};
    static const int64_t shapes[][3] = {{1, 1, 1},    {1, 17, 300},
                                        {3, 7, 129},  {6, 16, 128},
                                        {7, 33, 127}, {131, 40, 256}};

    for (int form = 0; use_form(form); form++) {
        int wrong = 0;

        for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++)
            for (int d = 0; d < 3; d++) {
                const int64_t *n = shapes[s];

                wrong += dense_wrong(dtypes[d], n[0], n[1], n[2], data_normal);
                wrong += dense_wrong(dtypes[d], n[0], n[1], n[2], data_hard);
            }
        is_int(wrong, 0, "dense: one chain a sum");
        is_int(packed_wrong(1, 3, 128) + packed_wrong(5, 130, 512), 0,
               "packed: one chain over the decoded weights");
    }
    return done();
}
