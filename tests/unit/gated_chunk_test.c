/* The gated delta rule in chunks: the recurrence, any chunk, any threads. */
#include "base/err.h"
#include "kernels/elementary.h"
#include "kernels/gated_chunk.h"
#include "kernels/threads.h"
#include "tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_HEADS = 2, HEADS = 4, KEYS = 6, VALUES = 5, TOKENS = 131 };
enum { Q = KEY_HEADS * KEYS, V = HEADS * VALUES };

static const struct gated_delta shape = {KEY_HEADS, HEADS, KEYS, VALUES, Q, V};
static float q[TOKENS * Q], k[TOKENS * Q], v[TOKENS * V];
static float g[TOKENS * HEADS], beta[TOKENS * HEADS];

static float next(void)
{
    static uint32_t state = 7;

    state = state * 1664525u + 1013904223u;
    return (float)(state >> 8) / (float)(1 << 24) - 0.5f;
}

static void fill(void)
{
    for (int i = 0; i < TOKENS * Q; i++)
        q[i] = next(), k[i] = 1.2f * next();
    for (int i = 0; i < TOKENS * V; i++)
        v[i] = next();
    for (int i = 0; i < TOKENS * HEADS; i++) {
        g[i] = -0.2f * (0.5f + next());
        beta[i] = 0.5f + next();
    }
}

/* The largest difference from the recurrence in double, of `tokens` tokens. */
static double far(const float *y, int64_t tokens)
{
    static double wide[5][TOKENS * (V > Q ? V : Q)], state[V * KEYS];
    static double of[TOKENS * V];
    double most = 0;

    memset(state, 0, sizeof(state));
    for (int i = 0; i < TOKENS * Q; i++)
        wide[0][i] = (double)q[i], wide[1][i] = (double)k[i];
    for (int i = 0; i < TOKENS * V; i++)
        wide[2][i] = (double)v[i];
    for (int i = 0; i < TOKENS * HEADS; i++) {
        wide[3][i] = elem_exp((double)g[i]);
        wide[4][i] = (double)beta[i];
    }
    gated_delta_f64(of, state, wide[0], wide[1], wide[2], wide[3], wide[4],
                    &shape, tokens);
    for (int64_t i = 0; i < tokens * V; i++)
        most = fmax(most, fabs(of[i] - (double)y[i]));
    return most;
}

/* One token of one head: y = (beta v . k) q, by hand. */
static void one_token(void)
{
    static const struct gated_delta one = {1, 1, 2, 1, 2, 1};
    const float a[] = {1, 2}, b[] = {0.5f, 0.25f}, c[] = {3}, zero = -1;
    const float half = 0.5f;
    float y;

    gated_chunk(&y, a, b, c, &zero, &half, &one, 64, 1);
    ok(y == 1.5f, "one token: beta v (q . k), whatever the decay");
}

int main(void)
{
    static const int64_t tokens[] = {1, 2, 47, 48, 49, 63, 64, 65, 128, TOKENS};
    static float y[TOKENS * V], again[TOKENS * V];

    struct err err = ERR_INIT;

    one_token();
    fill();
    for (size_t i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++) {
        gated_chunk(y, q, k, v, g, beta, &shape, 64, tokens[i]);
        double most = far(y, tokens[i]);

        ok(most > 0 && most < 2e-6, "%lld tokens: the recurrence (%g away)",
           (long long)tokens[i], most);
    }
    for (int64_t chunk = 1; chunk <= 32; chunk *= 4) {
        gated_chunk(again, q, k, v, g, beta, &shape, chunk, TOKENS);
        ok(far(again, TOKENS) < 2e-6, "chunks of %lld: the recurrence",
           (long long)chunk);
    }
    ok(threads_set(3, &err) == 0, "three threads");
    gated_chunk(again, q, k, v, g, beta, &shape, 64, TOKENS);
    ok(memcmp(y, again, sizeof(y)) == 0, "three threads: the same bits");
    gated_chunk(again, q, k, v, g, beta, &shape, 64, 65);
    ok(memcmp(y, again, 65 * V * sizeof(*y)) == 0,
       "fewer tokens: the first ones' bits");
    threads_set(1, &err);
    return done();
}
