/*
 * Operations of a graph in f32 that PyTorch takes one by one, against
 * recordings of torch 2.13.0 (fixtures/torch, made by
 * tests/oracle/torch_steps.py).
 */
#include "kernels/eager.h"
#include "kernels/linear.h"
#include "kernels/residual.h"
#include "kernels/sdpa.h"
#include "kernels/token_delta.h"

#include "forms.h"
#include "recorded.h"

/* The shapes are those of torch_steps.py. */
static void test_delta(void)
{
    static const struct channel_delta shapes[] = {
        {1, 12}, {3, 12}, {1, 24}, {2, 24}, {3, 32}};
    enum { TOKENS = 7 };

    for (int i = 0; i < 5; i++) {
        int64_t n;
        float *q = load(&n, "delta%d.q", i), *k = load(&n, "delta%d.k", i);
        float *v = load(&n, "delta%d.v", i);
        float *decay = load(&n, "delta%d.decay", i);
        float *beta = load(&n, "delta%d.beta", i);
        float *want = load(&n, "delta%d.y", i);
        float *y = calloc((size_t)n, sizeof(*y));

        token_delta(y, q, k, v, decay, beta, &shapes[i], TOKENS);
        ok(differing(y, want, n) == 0, "the delta rule, %d heads of %d",
           (int)shapes[i].heads, (int)shapes[i].dim);
        free(q), free(k), free(v), free(decay), free(beta), free(want), free(y);
    }
}

static void test_mix(void)
{
    enum { ROWS = 5 };
    static const int64_t shapes[][2] = {
        {2, 40}, {3, 7}, {4, 72}, {9, 33}, {17, 40}};

    for (int i = 0; i < 5; i++) {
        int64_t n, states = shapes[i][0], width = shapes[i][1];
        int64_t stride = states * width;
        float *v = load(&n, "mix%d.v", i), *x = calloc((size_t)n, sizeof(*x));
        float *norm = load(&n, "mix%d.norm", i);
        float *proj = load(&n, "mix%d.proj", i);
        float *want = load(&n, "mix%d.y", i);
        float *y = calloc((size_t)n, sizeof(*y));

        for (int64_t r = 0; r < ROWS; r++) /* the last of a row comes first */
            for (int64_t j = 0; j < stride; j++)
                x[r * stride + (j + width) % stride] = v[r * stride + j];
        residual_mix_torch(y, x, norm, proj, 1e-5, states - 1, width, stride,
                           ROWS);
        ok(differing(y, want, n) == 0, "attention over %d states of %d",
           (int)states, (int)width);
        free(v), free(x), free(norm), free(proj), free(want), free(y);
    }
}

static void test_attention(void)
{
    static const int64_t shapes[][4] = {{3, 2, 12, 8},
                                        {2, 2, 192, 10},
                                        {6, 3, 16, 10},
                                        {17, 2, 24, 20},
                                        {40, 1, 200, 24}};

    for (int i = 0; i < 5; i++) {
        const int64_t *s = shapes[i];
        struct sdpa how = {.kind = SDPA_BATCH,
                           .heads = s[1],
                           .kv_heads = s[1],
                           .key_dim = s[2],
                           .value_dim = s[3],
                           .scale = 1 / sqrt((double)s[2])};
        int64_t n;
        float *q = load(&n, "attention%d.q", i);
        float *k = load(&n, "attention%d.k", i);
        float *v = load(&n, "attention%d.v", i);
        float *want = load(&n, "attention%d.y", i);
        float *y = calloc((size_t)n, sizeof(*y));

        sdpa(y, q, k, v, &how, s[0], s[0]);
        ok(differing(y, want, n) == 0, "attention of %d rows, keys of %d",
           (int)s[0], (int)s[2]);
        free(q), free(k), free(v), free(want), free(y);
    }
}

static void test_long(void)
{
    enum { ROWS = 16, OWN = 4 };

    for (int columns = 512; columns <= 1200;
         columns += columns == 512 ? 288 : 400)
        for (int outputs = 188; outputs <= 192; outputs += 4) {
            int64_t n;
            float *x = load(&n, "long%d.%d.x", columns, outputs);
            float *own = load(&n, "long%d.%d.w", columns, outputs);
            float *want = load(&n, "long%d.%d.y", columns, outputs);
            float *w = calloc((size_t)(outputs * columns), sizeof(*w));
            float *y = calloc((size_t)(ROWS * outputs), sizeof(*y));
            struct dense_weight weight = {DTYPE_F32, outputs, columns, w};
            int64_t wrong = 0;

            for (int64_t i = 0; i < outputs * columns; i++)
                w[i] = own[i % (OWN * columns)];
            linear_torch(y, x, &weight, NULL, ROWS, ROWS);
            for (int64_t r = 0; r < ROWS; r++)
                wrong += differing(y + r * outputs, want + r * OWN, OWN);
            ok(wrong == 0, "a product of %d columns, %d outputs", columns,
               outputs);
            free(x), free(own), free(want), free(w), free(y);
        }
}

static void test_softplus(void)
{
    int64_t n;
    float *x = load(&n, "softplus.x"), *want = load(&n, "softplus.y");

    eager_softplus(x, x, n);
    ok(n == 992 && differing(x, want, n) == 0, "softplus of whole vectors");
    free(x), free(want);
}

int main(void)
{
    recorded = recorded_open("fixtures/torch/steps.safetensors");
    for (int i = 0; use_form(i); i++) {
        test_delta();
        test_mix();
        test_attention();
        test_long();
        test_softplus();
    }
    safetensors_close(recorded);
    return done();
}
