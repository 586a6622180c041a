/*
 * Kernels that follow PyTorch's CPU backend, against recordings of torch 2.13.0
 * (fixtures/torch, made by tests/oracle/torch_kernels.py).
 */
#include "kernels/blocks32.h"
#include "kernels/cascade.h"
#include "kernels/eager.h"
#include "kernels/linear.h"
#include "kernels/round.h"
#include "kernels/sdpa.h"
#include "kernels/softmax.h"
#include "kernels/streams.h"
#include "kernels/torch_dense.h"

#include "forms.h"
#include "recorded.h"

static void test_activations(void)
{
    enum { N = 65536 };
    float *x = calloc(N, sizeof(*x)), *y = calloc(N, sizeof(*y));
    int64_t n;
    float *silu = load(&n, "silu"), *sigmoid = load(&n, "sigmoid");

    for (int i = 0; i < N; i++) /* 0x8000 first */
        x[i] = bf16_to_f32((uint16_t)(i + 0x8000));
    eager_silu(y, x, N, DTYPE_BF16);
    is_int(differing(y, silu, N), 0, "silu of every bf16 value");
    eager_sigmoid(y, x, N, DTYPE_BF16);
    is_int(differing(y, sigmoid, N), 0, "sigmoid of every bf16 value");
    free(x), free(y), free(silu), free(sigmoid);
    x = load(&n, "sigmoid32.x");
    y = load(&n, "sigmoid32.y");
    eager_sigmoid(x, x, n, DTYPE_F32);
    is_int(differing(x, y, n), 0, "sigmoid in f32, the tail included");
    free(x), free(y);
}

static void test_sums(void)
{
    struct err err = ERR_INIT;
    struct tensor lengths = {0};
    int64_t n, count, wrong = 0;
    float *x = load(&n, "sum.x"), *y = load(&count, "sum.y");

    if (safetensors_load(recorded, "sum.lengths", 1 << 20, &lengths, &err))
        exit(1);
    for (int64_t i = 0; i < count; i++) {
        int64_t length = ((const int64_t *)lengths.data)[i / 3];

        wrong += cascade_sum(x + i % 3 * (n / 3), length) != y[i];
    }
    is_int(wrong, 0, "sums of rows of 1 to 3072 values");
    tensor_release(&lengths);
    free(x), free(y);
}

static float *load_part(const char *name, int which, const char *part,
                        int64_t *count)
{
    char full[32];

    snprintf(full, sizeof(full), "%s%d.%s", name, which, part);
    return load(count, "%s", full);
}

/* The shapes are those of torch_kernels.py. */
static void test_linear(void)
{
    static const int64_t shapes[][2] = {{1, 24}, {2, 8},  {2, 8},  {15, 4},
                                        {15, 4}, {16, 4}, {16, 4}, {4, 1}};

    for (int i = 0; i < 8; i++) {
        int64_t n, nw, ny, rows = shapes[i][0], out = shapes[i][1];
        float *x = load_part("linear", i, "x", &n);
        float *w = load_part("linear", i, "w", &nw);
        float *want = load_part("linear", i, "y", &ny);
        float *y = calloc((size_t)ny, sizeof(*y));
        struct dense_weight weight = {DTYPE_F32, out, nw / out, w};

        linear_torch(y, x, &weight, NULL, rows, rows);
        ok(differing(y, want, ny) == 0,
           "a product in f32 of %d rows, %d columns", (int)rows,
           (int)(nw / out));
        free(x), free(w), free(want), free(y);
    }
}

static void test_even(void)
{
    static const int columns[] = {40, 66, 72, 96, 100, 104, 210};
    enum { OUT = 24, ROWS = 40 };
    int64_t others = 0;

    for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
        int64_t n, nw, ny;
        float *x = load_part("even", columns[i], "x", &n);
        float *w = load_part("even", columns[i], "w", &nw);
        float *want = load_part("even", columns[i], "y", &ny);
        float *y = calloc((size_t)ny, sizeof(*y));
        uint16_t *narrow = calloc((size_t)nw, sizeof(*narrow));
        struct dense_weight weight = {DTYPE_BF16, OUT, columns[i], narrow};

        dtype_from_f32(DTYPE_BF16, w, (size_t)nw, narrow);
        even32_matmul(y, x, &weight, NULL, ROWS, 0);
        round_row(DTYPE_BF16, y, ny);
        ok(differing(y, want, ny) == 0, "a product in bf16 of %d columns",
           columns[i]);
        blocks32_matmul(y, x, &weight, NULL, ROWS, 0);
        others += differing(y, want, ny);
        free(x), free(w), free(want), free(y), free(narrow);
    }
    ok(others > 100, "blocks of 32 are another order");
}

static void test_small_softmax(void)
{
    static const int streams[] = {2, 3, 4, 5, 8}, widths[] = {3, 15, 16, 40};
    int64_t count, wrong = 0;

    for (int i = 0; i < 5; i++) {
        float *x = load_part("sinkhorn", streams[i], "x", &count);
        float *want = load_part("sinkhorn", streams[i], "y", &count);

        streams_sinkhorn(x, 20, streams[i], 20, 1e-6);
        wrong += differing(x, want, count);
        free(x), free(want);
    }
    is_int(wrong, 0, "Sinkhorn of 2 to 8 streams, every bit");
    for (int i = 0; i < 4; i++) {
        float *x = load_part("softmax", widths[i], "x", &count);
        float *want = load_part("softmax", widths[i], "y", &count);

        for (int64_t row = 0; row < 20; row++)
            softmax_vec_row(x + row * widths[i], x + row * widths[i],
                            widths[i]);
        ok(differing(x, want, count) == 0, "softmax of %d values", widths[i]);
        free(x), free(want);
    }
}

/* Seven rows added up, of 56 columns: what experts give a token. */
static void test_slots(void)
{
    enum { ROWS = 4, SLOTS = 7, COLS = 56 };
    int64_t n, wrong = 0;
    float *x = load(&n, "slots.x"), *y = load(&n, "slots.y"), slot[SLOTS];

    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLS; c++) {
            for (int s = 0; s < SLOTS; s++)
                slot[s] = x[(r * SLOTS + s) * COLS + c];
            wrong +=
                cascade_column_sum(slot, SLOTS, c, COLS) != y[r * COLS + c];
        }
    is_int(wrong, 0, "sums over rows, column by column");
    free(x), free(y);
}

/* Products whose exact value is 0: any other order of sums is seen. */
static void test_calls(void)
{
    char name[32];
    int64_t n[3], cases = 0;

    for (int i = 0; snprintf(name, sizeof(name), "call%d.x", i) &&
                    safetensors_find(recorded, name);
         i++, cases++) {
        const struct tensor_info *x = safetensors_find(recorded, name);
        int64_t rows = x->shape.size[0], in = x->shape.size[1], out;
        float *from = load(&n[0], "%s", name), *want, *y;
        struct tensor w = {0};
        struct err err = ERR_INIT;

        snprintf(name, sizeof(name), "call%d.w", i);
        if (safetensors_load(recorded, name, 1 << 20, &w, &err))
            exit(1);
        out = w.shape.size[0];
        struct dense_weight weight = {DTYPE_BF16, out, in, w.data};
        snprintf(name, sizeof(name), "call%d.y", i);
        want = load(&n[2], "%s", name);
        y = calloc((size_t)(rows * out), sizeof(*y));
        torch_dense(y, from, &weight, NULL, rows, rows, out);
        round_row(DTYPE_BF16, y, rows * out);
        snprintf(name, sizeof(name), "a call of %d rows, %d of %d", (int)rows,
                 (int)out, (int)in);
        is_int(differing(y, want, rows * out), 0, name);
        torch_dense(y, from, &weight, NULL, 1, rows, out);
        round_row(DTYPE_BF16, y, out);
        is_int(differing(y, want, out), 0, "its first row by itself");
        free(from), free(want), free(y);
        tensor_release(&w);
    }
    ok(cases == 12, "twelve calls");
}

static int64_t attend(const char *name, struct sdpa how, int64_t *total)
{
    char part[32];
    float *t[4];
    int64_t n[4];

    for (int i = 0; i < 4; i++) {
        snprintf(part, sizeof(part), "%s.%c", name, "qkvy"[i]);
        t[i] = load(&n[i], "%s", part);
    }
    float *y = calloc((size_t)n[3], sizeof(*y));
    int64_t rows = n[0] / (how.heads * how.key_dim);
    how.scale = 1 / sqrt((double)how.key_dim);
    sdpa(y, t[0], t[1], t[2], &how, rows, rows);
    if (strcmp(name, "math32") != 0)
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
    struct sdpa flash = {SDPA_FLASH, 4, 2, 16, 16, 0, NULL, 0};
    struct sdpa flash_long = {SDPA_FLASH, 1, 1, 8, 8, 0, NULL, 0};
    struct sdpa flash_packed = {SDPA_FLASH, 1, 1, 40, 40, 0, NULL, 0};
    struct sdpa math32 = {SDPA_MATH_VEC, 1, 1, 24, 8, 0, NULL, 0};
    struct sdpa flash_row = {SDPA_FLASH, 2, 1, 72, 72, 0, NULL, 0};
    struct sdpa math = {SDPA_MATH, 2, 2, 24, 16, 0, NULL, 0};
    int64_t n;

    is_int(attend("flash", flash, &n), 0, "the fused kernel, every bit");
    is_int(attend("flash_long", flash_long, &n), 0,
           "the fused kernel past 512 keys, every bit");
    is_int(attend("flash_packed", flash_packed, &n), 0,
           "the fused kernel with keys packed in shorter blocks, every bit");
    is_int(attend("flash_row", flash_row, &n), 0,
           "the fused kernel with a row by itself, every bit");
    is_int(attend("math", math, &n), 0, "separate operations, every bit");
    math.kind = SDPA_MATH_VEC;
    is_int(attend("math", math, &n), 0, "with softmax's own exponential too");
    is_int(attend("math32", math32, &n), 0,
           "separate operations in f32 over 150 keys, every bit");
    flash.kind = SDPA_FLASH_EXACT;
    ok(attend("flash", flash, &n) > n / 100,
       "the exact exponential is another kernel");
}

/*
 * torch.softmax(x, -1), torch 2.13.0 with AVX-512, of the row below: bits.
 * Printed by: [hex(v) for v in torch.softmax(x, -1).view(torch.int32)]
 */
static void test_softmax(void)
{
    enum { N = 48 };
    static const uint32_t want[N] = {
        0x3446355a, 0x3818e934, 0x3bebee59, 0x354ec48e, 0x391f83a4, 0x3cf61e94,
        0x3657b254, 0x3a266713, 0x3e005fb8, 0x376102dd, 0x3b2d969f, 0x34982198,
        0x386aba5e, 0x3c3515a6, 0x359eb360, 0x3974dd44, 0x3d3ce78c, 0x36a58dd1,
        0x3a7f7038, 0x3e450fd8, 0x37acb406, 0x3b853c0d, 0x34e987e7, 0x38b42944,
        0x3c8afcf7, 0x35f39d99, 0x39bbf0ee, 0x3d90fd73, 0x36fe22c7, 0x3ac40e9a,
        0x3e974052, 0x38048e21, 0x3bcc8606, 0x35333e0b, 0x390a4784, 0x3cd55afd,
        0x363afb93, 0x3a10402e, 0x3dde91a4, 0x37430eac, 0x3b167ae1, 0x3483e110,
        0x384b7b0a, 0x3c1cfa67, 0x358992fe, 0x39544479, 0x3d23c1ce, 0x368f83e2};
    float x[N], y[N], exact[N];

    for (int i = 0; i < N; i++)
        x[i] = (float)(i * 37 % 101) / 7 - 9;
    memcpy(exact, want, sizeof(exact));
    softmax_vec_row(y, x, N);
    is_int(differing(y, exact, N), 0, "softmax in f32, every bit");
    softmax_row(y, x, N);
    ok(differing(y, exact, N) > 0, "the exact exponential gives others");
    ok(vec_exp(0) == 1 && vec_exp(-105) == 0 && vec_exp(-INFINITY) == 0 &&
           isnan(vec_exp(NAN)),
       "its exponential at the ends");
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
        struct sdpa how = {(enum sdpa_kind)kind, 1, 1, DIM, DIM, 0.5, NULL, 0};

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
    recorded = recorded_open("fixtures/torch/kernels.safetensors");
    for (int i = 0; use_form(i); i++) {
        test_activations();
        test_sums();
        test_linear();
        test_calls();
        test_slots();
        test_even();
        test_small_softmax();
        test_attention();
        test_softmax();
        test_mask();
    }
    safetensors_close(recorded);
    return done();
}
