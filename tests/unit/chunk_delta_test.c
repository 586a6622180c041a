/*
 * The delta rule in chunks against the recurrence in double (an identity:
 * glm-5-next.md 12.3), and the sums and the convolution it takes from PyTorch.
 */
#include "kernels/cascade.h"
#include "kernels/channel_delta.h"
#include "kernels/chunk_delta.h"
#include "kernels/conv.h"

#include "tap.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { HEADS = 2, DIM = 16, TOKENS = 150, ALL = TOKENS * HEADS * DIM };

static float value(uint32_t *seed) /* in [-1, 1) */
{
    *seed = *seed * 1664525 + 1013904223;
    return (float)(int32_t)(*seed & 0xffffff00) / 2147483648.0f;
}

static void recurrence(void)
{
    static const struct channel_delta shape = {HEADS, DIM};
    static const int64_t tokens[] = {1, 63, 64, 65, TOKENS};
    static float q[ALL], k[ALL], v[ALL], g[ALL], beta[ALL], y[ALL];
    static double qd[ALL], kd[ALL], vd[ALL], decay[ALL], bd[ALL], yd[ALL];
    uint32_t seed = 7;

    for (int i = 0; i < ALL; i++) {
        q[i] = value(&seed);
        k[i] = value(&seed);
        vd[i] = v[i] = value(&seed);
        g[i] = 2.5f * value(&seed) - 2.5f;
        bd[i] = beta[i] = value(&seed) / 2 + 0.5f;
        decay[i] = exp(g[i]);
    }
    chunk_unit(q, q, 0.25, TOKENS * HEADS, DIM);
    chunk_unit(k, k, 1, TOKENS * HEADS, DIM);
    for (int i = 0; i < ALL; i++) {
        qd[i] = q[i];
        kd[i] = k[i];
    }
    for (size_t c = 0; c < sizeof(tokens) / sizeof(tokens[0]); c++) {
        double state[HEADS * DIM * DIM] = {0}, worst = 0;

        channel_delta_f64(yd, state, qd, kd, vd, decay, bd, &shape, tokens[c]);
        chunk_delta(y, q, k, v, g, beta, &shape, 64, tokens[c]);
        for (int64_t i = 0; i < tokens[c] * HEADS * DIM; i++)
            worst = fmax(worst, fabs((double)y[i] - yd[i]));
        ok(worst < 1e-6, "%lld tokens: the recurrence's values within 1e-6",
           (long long)tokens[c]);
    }
}

static void recall(void)
{
    /* beta 1, no decay, orthonormal keys: each key gives back its value */
    static const struct channel_delta shape = {1, 4};
    float k[16] = {0}, v[16], g[16] = {0}, beta[4] = {1, 1, 1, 1}, y[16];
    uint32_t seed = 3;

    for (int i = 0; i < 16; i++) {
        k[i] = i % 5 == 0;
        v[i] = value(&seed);
    }
    chunk_delta(y, k, k, v, g, beta, &shape, 2, 4);
    ok(memcmp(y, v, sizeof(v)) == 0, "values are recalled, exactly");
}

/*
 * torch 2.13.0 (CPU), x[i][j] = 1 / (1 + (37 i + 101 j) mod 257) in f32:
 *     python -c 'import torch; n = 33; x = 1 / torch.tensor(
 *         [[1.0 + (i * 37 + j * 101) % 257 for j in range(n)]
 *          for i in range(n)]); print([float(v).hex() for v in x.sum(-2)])'
 */
static const struct {
    int n, column;
    float want;
} columns[] = {
    {5, 0, 0x1.0e276cp+0f},   {5, 3, 0x1.b161eep-5f},
    {5, 4, 0x1.15a95ap-1f},   {33, 0, 0x1.0adfc2p+1f},
    {33, 3, 0x1.150904p-1f},  {33, 31, 0x1.0a45c6p-1f},
    {33, 32, 0x1.28589ap+0f}, {63, 0, 0x1.4d83dap+1f},
    {63, 3, 0x1.e821bep-1f},  {63, 31, 0x1.d7dfd8p-1f},
    {63, 32, 0x1.a55c74p+0f}, {63, 62, 0x1.3579p+0f},
};

static void sums(void)
{
    for (size_t c = 0; c < sizeof(columns) / sizeof(columns[0]); c++) {
        int n = columns[c].n, j = columns[c].column;
        float x[63];

        for (int i = 0; i < n; i++)
            x[i] = 1 / (float)(1 + (i * 37 + j * 101) % 257);
        ok(cascade_column_sum(x, n, j, n) == columns[c].want,
           "column %d of %d is PyTorch's sum", j, n);
    }
}

static void convolution(void)
{
    /* the product's last bit, 2^-24, lives only in the fused form */
    const float state[] = {-1 - 0x1p-11f}, x[] = {1 + 0x1p-12f};
    const float w[] = {1, 1 + 0x1p-12f};
    float y[1];

    conv_causal_fused(y, state, x, w, 1, 2, 1);
    ok(y[0] == 0x1p-24f, "a fused convolution rounds once");
    conv_causal(y, state, x, w, 1, 2, 1);
    ok(y[0] == 0, "the other one twice");
}

int main(void)
{
    recurrence();
    recall();
    sums();
    convolution();
    return done();
}
