/*
 * Kernels that follow PyTorch's CPU backend, against recordings of torch 2.13.0
 * (fixtures/torch, made by tests/oracle/torch_kernels.py).
 */
#include "kernels/eager.h"
#include "kernels/round.h"
#include "kernels/sdpa.h"
#include "safetensors/safetensors.h"

#include "forms.h"

static struct safetensors *recorded;

/* A bf16 tensor as floats, and its element count. */
static float *load(const char *name, int64_t *count)
{
    struct err err = ERR_INIT;
    struct tensor t = {0};
    float *x;

    if (safetensors_load(recorded, name, 1 << 24, &t, &err)) {
        diag("%s", err.text);
        exit(1);
    }
    *count = shape_count(&t.shape);
    x = calloc((size_t)*count, sizeof(*x));
    dtype_to_f32(t.dtype, t.data, (size_t)*count, x);
    tensor_release(&t);
    return x;
}

static int64_t differing(const float *a, const float *b, int64_t n)
{
    int64_t wrong = 0;

    for (int64_t i = 0; i < n; i++)
        wrong += !(a[i] == b[i] || (a[i] != a[i] && b[i] != b[i]));
    return wrong;
}

static void test_activations(void)
{
    enum { N = 65536 };
    float *x = calloc(N, sizeof(*x)), *y = calloc(N, sizeof(*y));
    int64_t n;
    float *silu = load("silu", &n), *sigmoid = load("sigmoid", &n);

    for (int i = 0; i < N; i++) /* 0x8000 first */
        x[i] = bf16_to_f32((uint16_t)(i + 0x8000));
    eager_silu(y, x, N, DTYPE_BF16);
    is_int(differing(y, silu, N), 0, "silu of every bf16 value");
    eager_sigmoid(y, x, N, DTYPE_BF16);
    is_int(differing(y, sigmoid, N), 0, "sigmoid of every bf16 value");
    free(x), free(y), free(silu), free(sigmoid);
}

static int64_t attend(const char *name, struct sdpa how, int64_t *total)
{
    char part[32];
    float *t[4];
    int64_t n[4];

    for (int i = 0; i < 4; i++) {
        snprintf(part, sizeof(part), "%s.%c", name, "qkvy"[i]);
        t[i] = load(part, &n[i]);
    }
    float *y = calloc((size_t)n[3], sizeof(*y));
    int64_t rows = n[0] / (how.heads * how.key_dim);
    how.scale = 1 / sqrt((double)how.key_dim);
    sdpa(y, t[0], t[1], t[2], &how, rows, rows);
    round_row(DTYPE_BF16, y, n[3]);
    int64_t wrong = differing(y, t[3], n[3]);
    *total = n[3];
    free(y);
    for (int i = 0; i < 4; i++)
        free(t[i]);
    return wrong;
}

static void test_attention(void)
{
    struct sdpa flash = {SDPA_FLASH, 4, 2, 16, 16, 0, NULL};
    struct sdpa flash_long = {SDPA_FLASH, 1, 1, 8, 8, 0, NULL};
    struct sdpa math = {SDPA_MATH, 2, 2, 24, 16, 0, NULL};
    int64_t n;

    is_int(attend("flash", flash, &n), 0, "the fused kernel, every bit");
    /* beyond one block of keys a few sums round the other way */
    ok(attend("flash_long", flash_long, &n) <= 2,
       "the fused kernel past 512 keys");
    is_int(attend("math", math, &n), 0, "separate operations, every bit");
    flash.kind = SDPA_FLASH_EXACT;
    ok(attend("flash", flash, &n) > n / 100,
       "the exact exponential is another kernel");
}

/* A mask gives what fewer keys give, and leaves other rows alone. */
static void test_mask(void)
{
    enum { ROWS = 6, DIM = 4 };
    float q[ROWS * DIM], k[ROWS * DIM], v[ROWS * DIM];
    float causal[ROWS * DIM], masked[ROWS * DIM];
    unsigned char visible[ROWS * ROWS];

    for (int i = 0; i < ROWS * DIM; i++) {
        q[i] = (float)(i * 7 % 5) / 4;
        k[i] = (float)(i * 11 % 7) / 8;
        v[i] = (float)(i * 13 % 9) / 8;
    }
    for (int i = 0; i < ROWS * ROWS; i++)
        visible[i] = i % ROWS <= i / ROWS;
    for (int kind = SDPA_MATH; kind <= SDPA_FLASH_EXACT; kind++) {
        struct sdpa how = {(enum sdpa_kind)kind, 1, 1, DIM, DIM, 0.5, NULL};

        sdpa(causal, q, k, v, &how, ROWS, ROWS);
        how.visible = visible;
        sdpa(masked, q, k, v, &how, ROWS, ROWS);
        ok(memcmp(causal, masked, sizeof(causal)) == 0,
           "kind %d: a triangular mask is causal", kind);
        visible[4 * ROWS] = 0; /* row 4 does not see key 0 */
        sdpa(masked, q, k, v, &how, ROWS, ROWS);
        visible[4 * ROWS] = 1;
        ok(memcmp(causal, masked, 4 * DIM * sizeof(float)) == 0 &&
               memcmp(causal + 4 * DIM, masked + 4 * DIM,
                      DIM * sizeof(float)) != 0 &&
               memcmp(causal + 5 * DIM, masked + 5 * DIM,
                      DIM * sizeof(float)) == 0,
           "kind %d: one key hidden changes its row alone", kind);
    }
}

int main(void)
{
    struct err err = ERR_INIT;

    recorded = safetensors_open("fixtures/torch/kernels.safetensors", &err);
    if (!recorded) {
        diag("%s", err.text);
        return 1;
    }
    for (int i = 0; use_form(i); i++) {
        test_activations();
        test_attention();
        test_mask();
    }
    safetensors_close(recorded);
    return done();
}
