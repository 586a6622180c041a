/*
 * The kernels of Kimi Delta Attention and its neighbours, against the vectors
 * of kimi-k3.md 14 (formulas of modeling_kimi_linear.py, computed in double).
 */
#include "kernels/channel_delta.h"
#include "kernels/residual.h"
#include "kernels/situ.h"

#include "forms.h"

static bool near(double got, double want, double limit)
{
    if (fabs(got - want) <= limit)
        return true;
    diag("got %.9g, wanted %.9g", got, want);
    return false;
}

static void test_situ(void)
{
    static const double gate[] = {1.5, -8, 40, .25}, up[] = {-3, 2, 100, .5};
    static const double want[] = {-3.4990271, -.0025808, 99.9329296, .0701713};
    float g[4], u[4], y[4];
    double wide[4];

    for (int i = 0; i < 4; i++) {
        g[i] = (float)gate[i];
        u[i] = (float)up[i];
    }
    situ(y, g, u, 4, 25, false, 4, DTYPE_F32);
    situ_f64(wide, gate, up, 4, 25, 4);
    for (int i = 0; i < 4; i++)
        ok(near(y[i], want[i], 1e-6 + fabs(want[i]) * 1e-6) &&
               near(wide[i], want[i], 6e-8),
           "SiTU %d", i);
    situ_f64(wide, gate, up, 4, 0, 4);
    ok(near(wide[0], 4 * tanh(1.5 / 4) / (1 + exp(-1.5)) * -3, 1e-12),
       "without a linear beta the up branch is left alone");
}

/* One head of two keys; the second value channel stays 0. */
static const struct channel_delta shape = {1, 2};
static const double inputs[] = {.5, -1, 0, .3}, bias[] = {.1, -.2};
static const double a_log[] = {0.6931471805599453};
static const double queries[] = {1, 2, .5, -1}, keys[] = {2, -1, 1, 1};
static const double values[] = {1, 0, -2, 0}, betas[] = {.5986877, .3318122};
static const double log_decay[] = {-3.8426239, -.4158635, -2.74917, -2.74917};

static void test_recurrence_f64(void)
{
    double decay[4], q[4], k[4], y[4], state[4] = {0};

    channel_decay_f64(decay, inputs, bias, a_log, -5, &shape, 2);
    for (int i = 0; i < 4; i++)
        ok(near(log(decay[i]), log_decay[i], 1e-6), "log-decay %d", i);
    channel_unit_f64(q, queries, sqrt(.5), 2, 2);
    channel_unit_f64(k, keys, 1, 2, 2);
    channel_delta_f64(y, state, q, k, values, decay, betas, &shape, 2);
    ok(near(y[0], 0, 1e-6) && near(y[2], .1709579, 1e-6), "outputs in double");
    ok(near(state[0], -.4378346, 1e-6) && near(state[1], -.4892256, 1e-6),
       "the final state in double");
    channel_decay_f64(decay, inputs, bias, a_log, NAN, &shape, 2);
    ok(near(log(decay[0]), -2 * log1p(exp(.6)), 1e-12),
       "without a bound the decay comes from a softplus");
}

static void narrow(float *y, const double *x, int n)
{
    for (int i = 0; i < n; i++)
        y[i] = (float)x[i];
}

static void test_recurrence(void)
{
    float f[4], b[2], a[1], q[4], k[4], v[4], beta[2];
    float decay[4], y[4], state[4] = {0};

    narrow(f, inputs, 4), narrow(b, bias, 2), narrow(a, a_log, 1);
    narrow(q, queries, 4), narrow(k, keys, 4), narrow(v, values, 4);
    narrow(beta, betas, 2);
    channel_decay(decay, f, b, a, -5, &shape, 2);
    channel_unit(q, q, sqrt(.5), 2, 2);
    channel_unit(k, k, 1, 2, 2);
    channel_delta(y, state, q, k, v, decay, beta, &shape, 2);
    ok(near(y[0], 0, 1e-6) && near(y[2], .1709579, 1e-6), "outputs in f32");
    ok(near(state[0], -.4378346, 1e-6) && near(state[1], -.4892256, 1e-6),
       "the final state in f32");
}

/* A pass in two pieces, state handed on, is the pass. */
static void test_pieces(void)
{
    enum { HEADS = 2, DIM = 5, ROWS = 9, N = ROWS * HEADS * DIM, FIRST = 4 };
    struct channel_delta wide = {HEADS, DIM};
    float x[4][N], beta[ROWS * HEADS], whole[N], pieces[N];
    float state[2][HEADS * DIM * DIM] = {{0}};
    const int at = FIRST * HEADS * DIM;

    for (int i = 0; i < N; i++) {
        x[0][i] = (float)(i * 7 % 13 - 6) / 16;
        x[1][i] = (float)(i * 11 % 17 - 8) / 16;
        x[2][i] = (float)(i * 5 % 19 - 9) / 8;
        x[3][i] = (float)(i * 3 % 23 + 1) / 24;
    }
    for (int i = 0; i < ROWS * HEADS; i++)
        beta[i] = (float)(i % 7 + 1) / 8;
    channel_delta(whole, state[0], x[0], x[1], x[2], x[3], beta, &wide, ROWS);
    channel_delta(pieces, state[1], x[0], x[1], x[2], x[3], beta, &wide, FIRST);
    channel_delta(pieces + at, state[1], x[0] + at, x[1] + at, x[2] + at,
                  x[3] + at, beta + FIRST * HEADS, &wide, ROWS - FIRST);
    ok(memcmp(whole, pieces, sizeof(whole)) == 0 &&
           memcmp(state[0], state[1], sizeof(state[0])) == 0,
       "in two pieces the same bits");
}

static void test_norm(void)
{
    static const float x[] = {3, -4}, weight[] = {2, .5f}, z[] = {0, 1};
    float y[2];

    channel_norm(y, x, weight, z, 0, 1, 2, DTYPE_BF16);
    ok(y[0] == 0.84765625f && y[1] == -0.4140625f,
       "the gated norm rounds once (%g, %g)", (double)y[0], (double)y[1]);
}

static void test_residual(void)
{
    static const float norm[] = {1, 2, .5f}, proj[] = {.3f, -.7f, 1};
    static const float same[] = {1, -2, 3, 1, -2, 3, 1, -2, 3};
    /* v_1 = (1, 0, 0), v_0 = (0, 1, 0): scores sqrt(3) (.3, -1.4) */
    static const float two[] = {1, 0, 0, 0, 1, 0};
    double p = 1 / (1 + exp(-1.7 * sqrt(3)));
    float y[3];

    residual_mix(y, same, norm, proj, 1e-5, 0, 3, 9, 1);
    ok(memcmp(y, same, sizeof(y)) == 0, "one candidate is the result");
    residual_mix(y, same, norm, proj, 1e-5, 2, 3, 9, 1);
    ok(near(y[0], 1, 1e-6) && near(y[1], -2, 1e-6) && near(y[2], 3, 1e-6),
       "equal candidates give the candidate");
    residual_mix(y, two, norm, proj, 0, 1, 3, 6, 1);
    ok(near(y[0], p, 1e-6) && near(y[1], 1 - p, 1e-6) && y[2] == 0,
       "raw candidates are weighed by the scores of normed ones");
}

int main(void)
{
    for (int i = 0; use_form(i); i++) {
        test_situ();
        test_recurrence_f64();
        test_recurrence();
        test_pieces();
        test_norm();
        test_residual();
    }
    return done();
}
