/*
 * The kernels against upstream's operations (fixtures/kernels/make.py: mlx
 * 0.32.0, mlx-lm 0.31.3, f32 on the CPU).  The rotation is the same bits;
 * sums were added up in another order there, so those are near.
 */
#include "kernel_data.h"
#include "kernels/attention.h"
#include "kernels/conv.h"
#include "kernels/dense.h"
#include "kernels/gated_delta.h"
#include "kernels/hadamard.h"
#include "kernels/packed.h"
#include "safetensors/safetensors.h"

static struct safetensors *fixture;
static struct tensor loaded[64];
static int loaded_count;

static const struct tensor *load(const char *kernel, const char *name)
{
    struct err err = ERR_INIT;
    char *full = xasprintf("%s.%s", kernel, name);
    struct tensor *t = &loaded[loaded_count++];

    if (safetensors_load(fixture, full, 1 << 20, t, &err)) {
        printf("Bail out! %s\n", err.text);
        exit(1);
    }
    free(full);
    return t;
}

static float *numbers(const char *kernel, const char *name)
{
    return load(kernel, name)->data;
}

/* Against upstream's tensor: relative L2 distance at most `limit`. */
static void is_near(const char *kernel, const char *name, const float *got,
                    double limit)
{
    const struct tensor *want = load(kernel, name);
    const float *w = want->data;
    double difference = 0, norm = 0;

    for (int64_t i = 0; i < shape_count(&want->shape); i++) {
        double d = (double)got[i] - (double)w[i];

        difference += d * d;
        norm += (double)w[i] * (double)w[i];
    }
    difference = sqrt(difference / norm);
    ok(difference <= limit, "%s.%s: %.2g away of at most %.2g", kernel, name,
       difference, limit);
}

static void test_packed(void)
{
    const struct tensor *biases = load("packed", "biases");
    struct packed_weight w = {5, 256, load("packed", "codes")->data,
                              load("packed", "scales")->data};
    struct err err = ERR_INIT;
    float *x = numbers("packed", "x"), y[3 * 5], row[256];

    ok(packed_check(&w, biases->data, &err) == 0, "upstream's words are sound");
    packed_matmul(y, x, &w, PACKED_GRID24, 3);
    is_near("packed", "y", y, 3e-7);
    packed_matmul(y, x, &w, PACKED_GRID32, 3);
    is_near("packed", "y", y, 3e-7);
    packed_row(row, &w, 2);
    is_mem(row, numbers("packed", "row"), sizeof(row), "dequantize, bit exact");
}

static void test_dense(void)
{
    struct dense_weight w = {DTYPE_F16, 6, 130, load("dense", "w")->data};
    float y[4 * 6];

    dense_matmul(y, numbers("dense", "x"), &w, numbers("dense", "b"), 4);
    is_near("dense", "y", y, 3e-7);
}

static void test_rotation(const char *name, int64_t block)
{
    float *x = numbers(name, "x"), *s = numbers(name, "s");
    size_t size = (size_t)block * 4 * 4;
    float *copy = xmalloc(size);

    memcpy(copy, x, size);
    hadamard_rotate(copy, s, 2 * block, block, 2);
    is_mem(copy, numbers(name, "y"), size, "rotated, bit exact");
    memcpy(copy, x, size);
    hadamard_inverse(copy, s, 2 * block, block, 2);
    is_mem(copy, numbers(name, "z"), size, "and back, bit exact");
    free(copy);
}

static void test_attention(const char *name, enum attention_kind kind,
                           int64_t dim, int64_t rows, int64_t keys)
{
    struct attention a = {kind, DTYPE_F32, 4, 2, dim, 1 / sqrt((double)dim)};
    float *y = data_array(rows * 4 * dim, 4);

    attention(y, numbers(name, "q"), numbers(name, "k"), numbers(name, "v"), &a,
              rows, keys);
    is_near(name, "y", y, 3e-7);
    free(y);
}

static void test_delta(void)
{
    struct gated_delta shape = {2, 4, 32, 12, 64, 48};
    float y[6 * 4 * 12], *state = numbers("delta", "state");

    gated_delta(y, state, numbers("delta", "q"), numbers("delta", "k"),
                numbers("delta", "v"), numbers("delta", "g"),
                numbers("delta", "beta"), &shape, 6);
    is_near("delta", "y", y, 3e-7);
    is_near("delta", "after", state, 3e-7);
}

static void test_conv(void)
{
    float y[6 * 10];

    conv_causal(y, numbers("conv", "state"), numbers("conv", "x"),
                numbers("conv", "w"), 10, 4, 6);
    is_near("conv", "y", y, 2e-7);
}

int main(void)
{
    struct err err = ERR_INIT;

    fixture = safetensors_open("fixtures/kernels/upstream.safetensors", &err);
    if (!fixture) {
        printf("Bail out! %s\n", err.text);
        return 1;
    }
    for (int form = 0; form < 2; form++) {
        if (!select_form(form ? "avx2" : "plain"))
            continue;
        test_packed();
        test_dense();
        test_rotation("rotate512", 512);
        test_rotation("rotate1024", 1024);
        test_attention("causal", ATTENTION_UNFUSED, 64, 5, 5);
        test_attention("causal", ATTENTION_VECTOR, 64, 5, 5);
        test_attention("full", ATTENTION_FULL, 72, 9, 9);
        test_delta();
        test_conv();
        for (int i = 0; i < loaded_count; i++)
            tensor_release(&loaded[i]);
        loaded_count = 0;
    }
    safetensors_close(fixture);
    return done();
}
