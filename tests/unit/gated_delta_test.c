/* The gated delta rule: its steps in order, in pieces, and bits. */
#include "kernel_data.h"
#include "kernels/gated_delta.h"

struct inputs {
    float *q, *k, *v, *g, *beta, *state;
};

static float gate(void)
{
    return 1 - 0.1f * fabsf(data_uniform());
}
static float small(void)
{
    return 0.1f * data_normal();
}

static struct inputs make(const struct gated_delta *s, int64_t tokens,
                          float (*value)(void))
{
    int64_t heads = s->value_heads;

    return (struct inputs){
        data_fill(tokens * s->qk_stride, value),
        data_fill(tokens * s->qk_stride, value == data_hard ? value : small),
        data_fill(tokens * s->v_stride, value),
        data_fill(tokens * heads, gate),
        data_fill(tokens * heads, gate),
        data_fill(heads * s->value_dim * s->key_dim, value)};
}

static void release(struct inputs *in)
{
    free(in->q), free(in->k), free(in->v);
    free(in->g), free(in->beta), free(in->state);
}

/* Steps 1 to 5, one after the other, each over the whole row. */
static void test_steps(int64_t key_dim)
{
    const int64_t tokens = 5, value_dim = 3;
    struct gated_delta s = {2, 6, key_dim, value_dim, 2 * key_dim + 1, 20};
    struct inputs in = make(&s, tokens, data_normal);
    int64_t states = 6 * value_dim * key_dim;
    float *y = data_array(tokens * 6 * value_dim, 4),
          *state = data_array(states, 4), *row = data_array(key_dim, 4);
    int wrong = 0;

    memcpy(state, in.state, (size_t)states * 4);
    gated_delta(y, state, in.q, in.k, in.v, in.g, in.beta, &s, tokens);
    for (int64_t h = 0; h < 6; h++)
        for (int64_t d = 0; d < value_dim; d++) {
            memcpy(row, in.state + (h * value_dim + d) * key_dim,
                   (size_t)key_dim * 4);
            for (int64_t t = 0; t < tokens; t++) {
                const float *k = in.k + t * s.qk_stride + h / 3 * key_dim;
                const float *q = in.q + t * s.qk_stride + h / 3 * key_dim;
                volatile float delta, product;

                for (int64_t i = 0; i < key_dim; i++)
                    row[i] = row[i] * in.g[t * 6 + h];
                delta = in.v[t * s.v_stride + h * value_dim + d] -
                        chain128(row, k, key_dim);
                delta = delta * in.beta[t * 6 + h];
                for (int64_t i = 0; i < key_dim; i++) {
                    product = k[i] * delta;
                    row[i] = row[i] + product;
                }
                wrong +=
                    y[(t * 6 + h) * value_dim + d] != chain128(row, q, key_dim);
            }
            wrong += memcmp(row, state + (h * value_dim + d) * key_dim,
                            (size_t)key_dim * 4) != 0;
        }
    is_int(wrong, 0, "decay, read, write, read with q: each step rounded");
    release(&in);
    free(y), free(state), free(row);
}

static void same_bits(struct gated_delta s, int64_t tokens, bool is_hard)
{
    struct inputs in = make(&s, tokens, is_hard ? data_hard : data_normal);
    int64_t heads = s.value_heads, outs = tokens * heads * s.value_dim,
            states = heads * s.value_dim * s.key_dim;
    float *y[2] = {data_array(outs, 4), data_array(outs, 4)},
          *state[2] = {data_array(states, 4), data_array(states, 4)};
    double *wide_y[2] = {data_array(outs, 8), data_array(outs, 8)},
           *wide_state[2];
    double *q, *k, *v, *g, *beta;
    bool good = true, good_wide = true;
    double worst = 0;

    if (is_hard) {
        in.v[0] = INFINITY;
        in.k[tokens / 2 * s.qk_stride] = -NAN;
    }
    q = data_widen(in.q, tokens * s.qk_stride);
    k = data_widen(in.k, tokens * s.qk_stride);
    v = data_widen(in.v, tokens * s.v_stride);
    g = data_widen(in.g, tokens * heads);
    beta = data_widen(in.beta, tokens * heads);
    for (int i = -1; i < SETUPS; i++) {
        int n = i >= 0;

        if (i < 0) {
            set_threads(1);
            select_form("plain");
        } else if (!use_setup(i)) {
            continue;
        }
        memcpy(state[n], in.state, (size_t)states * 4);
        wide_state[n] = data_widen(in.state, states);
        for (int64_t t = 0, step; t < tokens; t += step) {
            step = i < 0 ? tokens : tokens - t < i + 1 ? tokens - t : i + 1;
            gated_delta(y[n] + t * heads * s.value_dim, state[n],
                        in.q + t * s.qk_stride, in.k + t * s.qk_stride,
                        in.v + t * s.v_stride, in.g + t * heads,
                        in.beta + t * heads, &s, step);
            gated_delta_f64(wide_y[n] + t * heads * s.value_dim, wide_state[n],
                            q + t * s.qk_stride, k + t * s.qk_stride,
                            v + t * s.v_stride, g + t * heads, beta + t * heads,
                            &s, step);
        }
        if (i < 0)
            continue;
        good &= memcmp(y[0], y[1], (size_t)outs * 4) == 0 &&
                memcmp(state[0], state[1], (size_t)states * 4) == 0;
        good_wide &=
            memcmp(wide_y[0], wide_y[1], (size_t)outs * 8) == 0 &&
            memcmp(wide_state[0], wide_state[1], (size_t)states * 8) == 0;
        free(wide_state[n]);
    }
    ok(good && good_wide, "heads %d and %d, [%d, %d], %d tokens%s: same bits",
       (int)s.key_heads, (int)heads, (int)s.value_dim, (int)s.key_dim,
       (int)tokens, is_hard ? ", hard values" : "");
    if (!is_hard) {
        for (int64_t i = 0; i < outs; i++)
            worst = fmax(worst, fabs((double)y[0][i] - wide_y[0][i]));
        ok(worst < 1e-4, "f32 within %.2g of f64", worst);
    }
    release(&in);
    free(q), free(k), free(v), free(g), free(beta), free(wide_state[0]);
    for (int n = 0; n < 2; n++)
        free(y[n]), free(state[n]), free(wide_y[n]);
}

int main(void)
{
    test_steps(32);
    test_steps(128);
    test_steps(200);
    for (int hard = 0; hard < 2; hard++) {
        same_bits((struct gated_delta){1, 1, 1, 1, 1, 1}, 3, hard);
        same_bits((struct gated_delta){2, 4, 32, 12, 64, 48}, 7, hard);
        same_bits((struct gated_delta){1, 3, 130, 33, 200, 99}, 6, hard);
        same_bits((struct gated_delta){2, 2, 128, 128, 256, 300}, 11, hard);
    }
    set_threads(1);
    return done();
}
