/*
 * Products of a batch and LayerNorm, against recordings of torch 2.13.0
 * (fixtures/torch/batches.safetensors, made by tests/oracle/torch_batches.py).
 */
#include "kernels/linear.h"
#include "kernels/moments.h"
#include "kernels/round.h"

#include "recorded.h"

/* The shapes are those of torch_batches.py. */
static void test_scores(void)
{
    static const int64_t shapes[][3] = {{4, 16, 6},   {4, 16, 7},
                                        {4, 128, 16}, {3, 12, 150},
                                        {8, 64, 53},  {32, 16, 20}};

    for (int i = 0; i < 6; i++) {
        int64_t heads = shapes[i][0], width = shapes[i][1], n = shapes[i][2];
        int64_t nq, nk, nw, neach, ntotal, wrong = 0;
        float *q = load(&nq, "score%d.q", i), *k = load(&nk, "score%d.k", i);
        float *w = load(&nw, "score%d.w", i);
        float *each = load(&neach, "score%d.each", i);
        float *total = load(&ntotal, "score%d.total", i);
        float *y = calloc((size_t)n, sizeof(*y));
        enum linear_order order = linear_batch_order(heads, width, n);

        for (int64_t r = 0; r < neach / n; r++)
            for (int64_t p = 0; p < n; p++)
                wrong += linear_dot(q + r * width, k + p * width, width,
                                    order) != each[r * n + p];
        ok(wrong == 0, "[%d, %d] by [%d, %d]", (int)heads, (int)width,
           (int)width, (int)n);
        wrong = 0;
        for (int64_t t = 0; t < ntotal / n; t++) {
            linear_mix(y, w + t * heads, each + t * heads * n, heads, n);
            wrong += differing(y, total + t * n, n);
        }
        ok(wrong == 0, "[%d] by [%d, %d]", (int)heads, (int)heads, (int)n);
        free(q), free(k), free(w), free(each), free(total), free(y);
    }
}

static void test_norms(void)
{
    static const int columns[] = {3, 12, 16, 24, 64, 100, 128, 200};

    for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
        int n = columns[i];
        int64_t count;
        float *x = load(&count, "norm%d.x", n);
        float *narrow = load(&count, "norm%d.bf16", n);
        float *wide = load(&count, "norm%d.f32", n);
        float *y = calloc((size_t)count, sizeof(*y));
        int64_t rows = count / n;
        float *w = load(&count, "norm%d.w", n),
              *b = load(&count, "norm%d.b", n);

        moments_layer_norm(y, x, w, b, rows, n, 1e-6, DTYPE_F32);
        ok(differing(y, wide, rows * n) == 0, "LayerNorm of %d in f32", n);
        round_row(DTYPE_BF16, x, rows * n);
        moments_layer_norm(y, x, w, b, rows, n, 1e-6, DTYPE_BF16);
        ok(differing(y, narrow, rows * n) == 0, "LayerNorm of %d in bf16", n);
        free(x), free(narrow), free(wide), free(y), free(w), free(b);
    }
}

int main(void)
{
    recorded = recorded_open("fixtures/torch/batches.safetensors");
    test_scores();
    test_norms();
    safetensors_close(recorded);
    return done();
}
