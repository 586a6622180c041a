/*
 * How fast the heavy kernels are, one thread's processor time, best of a few
 * runs: the AVX2
 * form, how many times faster than the plain form it is, and than a loop as
 * one would first write it, over weights already decoded to f32.
 *
 *     make bench            (about half a minute)
 */
#include "kernel_data.h"
#include "kernels/attention.h"
#include "kernels/dense.h"
#include "kernels/gated_delta.h"
#include "kernels/hadamard.h"
#include "kernels/packed.h"

#include <time.h>

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Sizes of the 2B model. */
enum { HIDDEN = 2048, INNER = 6144, HEADS = 8, KV = 2, DIM = 256, STATES = 16 };

struct bench {
    int64_t rows;
    struct packed_weight packed;
    struct dense_weight dense;
    float *x, *y, *w, *k, *v, *state, *gates;
};

static void packed24(struct bench *b)
{
    packed_matmul(b->y, b->x, &b->packed, PACKED_GRID24, b->rows);
}
static void packed32(struct bench *b)
{
    packed_matmul(b->y, b->x, &b->packed, PACKED_GRID32, b->rows);
}
static void dense(struct bench *b)
{
    dense_matmul(b->y, b->x, &b->dense, NULL, b->rows);
}
static void rotate(struct bench *b)
{
    hadamard_rotate(b->x, b->w, HIDDEN, 1024, b->rows);
}
static void prefill(struct bench *b)
{
    struct attention a = {ATTENTION_UNFUSED, DTYPE_F16, HEADS, KV, DIM, 0.0625};

    attention(b->y, b->x, b->k, b->v, &a, b->rows, 1);
}
static void delta(struct bench *b)
{
    struct gated_delta s = {STATES, STATES, 128, 128, HIDDEN, HIDDEN};

    gated_delta(b->y, b->state, b->x, b->k, b->v, b->gates, b->gates, &s,
                b->rows);
}

/* The first loop one would write for a product. */
static void naive_product(struct bench *b)
{
    for (int64_t t = 0; t < b->rows; t++)
        for (int64_t o = 0; o < INNER; o++) {
            const float *x = b->x + t * HIDDEN, *w = b->w + o * HIDDEN;
            float y = 0;

            for (int64_t i = 0; i < HIDDEN; i++)
                y += x[i] * w[i];
            b->y[t * INNER + o] = y;
        }
}

static double best_time(void (*run)(struct bench *), struct bench *b)
{
    double best = 1e9, begun = now();

    for (int i = 0; i < 7 && (i < 1 || now() - begun < 3); i++) {
        double start = now();

        run(b);
        best = fmin(best, now() - start);
    }
    return best;
}

static const struct {
    const char *name;
    void (*run)(struct bench *);
    void (*naive)(struct bench *);
    int64_t rows;
    double flops, bytes; /* per row; per call */
} kernels[] = {
    {"packed grid24, 6144 x 2048, 300 rows", packed24, naive_product, 300,
     2.0 * INNER *HIDDEN, 0},
    {"packed grid24, 1 row", packed24, naive_product, 1, 2.0 * INNER *HIDDEN,
     INNER *HIDDEN * 0.265625},
    {"packed grid32, 300 rows", packed32, naive_product, 300,
     2.0 * INNER *HIDDEN, 0},
    {"packed grid32, 1 row", packed32, naive_product, 1, 2.0 * INNER *HIDDEN,
     INNER *HIDDEN * 0.265625},
    {"dense f16, 6144 x 2048, 300 rows", dense, naive_product, 300,
     2.0 * INNER *HIDDEN, 0},
    {"dense f16, 1 row", dense, naive_product, 1, 2.0 * INNER *HIDDEN,
     INNER *HIDDEN * 2.0},
    {"rotation of 2048 in blocks of 1024, 300 rows", rotate, NULL, 300,
     HIDDEN * 10.0, HIDDEN * 300 * 8.0},
    {"attention f16, 8 heads of 256, 300 rows", prefill, NULL, 300,
     2.0 * 2 * HEADS *DIM * 150, 0},
    {"gated delta, 16 heads of 128 x 128, 300 tokens", delta, NULL, 300,
     STATES * 128.0 * 128 * 7, 0},
};

int main(void)
{
    struct bench b = {0};
    uint32_t *codes = data_array(INNER * HIDDEN / 16, 4);
    uint16_t *scales = data_array(INNER * HIDDEN / 128, 2);
    uint16_t *halves = data_array(INNER * HIDDEN, 2);

    for (int64_t i = 0; i < INNER * HIDDEN; i++)
        codes[i / 16] |= (uint32_t)(data_next() % 3) << i % 16 * 2;
    for (int64_t i = 0; i < INNER * HIDDEN / 128; i++)
        scales[i] = f16_from_f32(0.03f);
    b.packed = (struct packed_weight){INNER, HIDDEN, codes, scales};
    b.w = data_fill(INNER * HIDDEN, data_normal);
    dtype_from_f32(DTYPE_F16, b.w, INNER * HIDDEN, halves);
    b.dense = (struct dense_weight){DTYPE_F16, INNER, HIDDEN, halves};
    b.k = data_fill(300 * HIDDEN, data_normal);
    b.v = data_fill(300 * HIDDEN, data_normal);
    b.state = data_array(STATES * 128 * 128, 4);
    b.gates = data_fill(300 * STATES, data_uniform);
    b.y = data_array(300 * INNER, 4);
    for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++) {
        double fast, plain, flops;

        b.rows = kernels[i].rows;
        b.x = data_fill(300 * HIDDEN, data_normal);
        flops = kernels[i].flops * (double)b.rows;
        if (!select_form("avx2"))
            return 1;
        fast = best_time(kernels[i].run, &b);
        printf("%s: %.2f ms", kernels[i].name, 1e3 * fast);
        printf(", %.1f GFLOP/s", 1e-9 * flops / fast);
        if (kernels[i].bytes > 0)
            printf(", %.1f GB/s", 1e-9 * kernels[i].bytes / fast);
        select_form("plain");
        plain = best_time(kernels[i].run, &b);
        printf(", %.1f times plain", plain / fast);
        if (kernels[i].naive)
            printf(", %.1f times naive",
                   best_time(kernels[i].naive, &b) / fast);
        printf("\n");
        fflush(stdout);
        free(b.x);
    }
    free(codes), free(scales), free(halves), free(b.w), free(b.k), free(b.v);
    free(b.state), free(b.gates), free(b.y);
    return 0;
}
