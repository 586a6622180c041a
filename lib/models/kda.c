/* Kimi Delta Attention. */
#include "models/kda.h"

#include "base/bug.h"
#include "kernels/cascade.h"
#include "kernels/chunk_delta.h"
#include "kernels/conv.h"
#include "kernels/eager.h"
#include "kernels/elementary.h"
#include "kernels/token_delta.h"
#include "models/eager_ops.h"

#include <math.h>

static int64_t channels(const struct kda *m)
{
    return m->heads * m->dim;
}

static void convolution_part(const struct kda *m, struct kda_weights *w,
                             struct part *p, const char *prefix)
{
    static const char letters[] = "qkv";
    struct param *targets[] = {&w->q_conv, &w->k_conv, &w->v_conv};
    int64_t n = channels(m) * m->taps;

    for (int i = 0; i < 3; i++) {
        if (m->is_joined)
            part_params(p, targets[i], 3 * n, i * n, n, "%s.conv1d.weight",
                        prefix);
        else
            part_param(p, targets[i], n, "%s.%c_conv1d.weight", prefix,
                       letters[i]);
    }
}

void kda_part(const struct kda *m, struct kda_weights *w, struct part *p,
              const char *prefix)
{
    int64_t wide = channels(m), hidden = m->hidden;
    bool was_kept = p->is_kept;

    part_dense(p, &w->q, wide, hidden, "%s.q_proj.weight", prefix);
    part_dense(p, &w->k, wide, hidden, "%s.k_proj.weight", prefix);
    part_dense(p, &w->v, wide, hidden, "%s.v_proj.weight", prefix);
    part_dense(p, &w->f_a, m->dim, hidden, "%s.f_a_proj.weight", prefix);
    part_dense(p, &w->f_b, wide, m->dim, "%s.f_b_proj.weight", prefix);
    part_dense(p, &w->b, m->heads, hidden, "%s.b_proj.weight", prefix);
    if (m->is_full_gate) {
        part_dense(p, &w->gate, wide, hidden, "%s.g_proj.weight", prefix);
    } else {
        part_dense(p, &w->gate_a, m->dim, hidden, "%s.g_a_proj.weight", prefix);
        part_dense(p, &w->gate, wide, m->dim, "%s.g_b_proj.weight", prefix);
    }
    part_param(p, &w->norm, m->dim, "%s.o_norm.weight", prefix);
    part_dense(p, &w->o, hidden, wide, "%s.o_proj.weight", prefix);
    p->is_kept = m->is_kept;
    convolution_part(m, w, p, prefix);
    part_param(p, &w->dt_bias, wide, "%s.dt_bias", prefix);
    (m->is_padded ? part_prefix : part_param)(p, &w->a_log, m->heads,
                                              "%s.A_log", prefix);
    p->is_kept = was_kept;
}

/* silu(convolution(W x)), rounded once. */
static struct act mixed(struct ops *o, const struct kda *m, const struct act *x,
                        const struct dense_weight *w, const struct param *taps)
{
    struct act in = op_dense(o, x, w, NULL);
    struct act before = ops_zeros(o, m->taps - 1, in.cols);
    struct act y = ops_new(o, in.rows, in.cols, in.dtype);
    int64_t n = y.rows * y.cols;

    if (act_is_wide(&y)) {
        conv_causal_f64(act_d(&y), act_d(&before), act_d(&in), taps->d, y.cols,
                        m->taps, y.rows);
        eager_silu_f64(act_d(&y), act_d(&y), n);
    } else if (m->chunk) {
        conv_causal_fused(act_f(&y), act_f(&before), act_f(&in), taps->f,
                          y.cols, m->taps, y.rows);
        op_silu_by_channel(&y);
    } else {
        conv_causal(act_f(&y), act_f(&before), act_f(&in), taps->f, y.cols,
                    m->taps, y.rows);
        eager_silu(act_f(&y), act_f(&y), n, y.dtype);
    }
    return y;
}

/* Step by step as PyTorch computes the recurrence of a graph in f32. */
static bool is_stepwise(const struct ops *o, const struct kda *m)
{
    return o->sums == SUMS_TORCH_F32 && !m->chunk;
}

/* Each head to unit length times scale, in place; f32 from here. */
static void unit(struct ops *o, const struct kda *m, struct act *x,
                 double scale)
{
    int64_t rows = x->rows * m->heads;

    x->dtype = ops_dtype(o->precision, DTYPE_F32);
    if (act_is_wide(x))
        channel_unit_f64(act_d(x), act_d(x), scale, rows, m->dim);
    else if (m->chunk)
        chunk_unit(act_f(x), act_f(x), scale, rows, m->dim);
    else if (is_stepwise(o, m))
        chunk_unit_inverse(act_f(x), act_f(x), scale, rows, m->dim);
    else
        channel_unit(act_f(x), act_f(x), scale, rows, m->dim);
}

/* The logarithm of the decay, step by step as PyTorch computes it; x becomes
 * it. */
static void log_decay(const struct kda *m, const struct kda_weights *w,
                      const struct act *x)
{
    int64_t wide = channels(m), n = x->rows * wide;
    float *g = act_f(x);

    for (int64_t i = 0; i < n; i++) {
        float rate = elem_exp_f32(w->a_log.f[i % wide / m->dim]);
        float z = g[i] + w->dt_bias.f[i % wide];

        if (!isnan(m->bound))
            g[i] = rate * z;
        else
            g[i] = -rate * (z > 20 ? z : elem_log_f32(1 + elem_exp_f32(z)));
    }
    if (isnan(m->bound))
        return;
    op_eager_sigmoid(x);
    for (int64_t i = 0; i < n; i++)
        g[i] *= (float)m->bound;
}

/* The decay itself, likewise. */
static void stepwise_decay(const struct kda *m, const struct kda_weights *w,
                           const struct act *x)
{
    int64_t wide = channels(m), n = x->rows * wide;
    bool is_bounded = !isnan(m->bound);
    float *g = act_f(x);

    for (int64_t i = 0; i < n; i++) {
        float rate = elem_exp_f32(w->a_log.f[i % wide / m->dim]);

        g[i] += w->dt_bias.f[i % wide];
        if (is_bounded)
            g[i] *= rate;
    }
    if (is_bounded)
        eager_sigmoid(g, g, n, DTYPE_F32);
    else
        eager_softplus(g, g, n);
    for (int64_t i = 0; i < n; i++) {
        float rate = elem_exp_f32(w->a_log.f[i % wide / m->dim]);

        g[i] = elem_exp_f32(g[i] * (is_bounded ? (float)m->bound : -rate));
    }
}

/* Or, in chunks, its logarithm. */
static struct act decay_of(struct ops *o, const struct kda *m,
                           const struct kda_weights *w, const struct act *x)
{
    struct channel_delta shape = {m->heads, m->dim};
    struct act low = op_dense(o, x, &w->f_a, NULL);
    struct act y = op_dense(o, &low, &w->f_b, NULL);

    y.dtype = ops_dtype(o->precision, DTYPE_F32);
    if (act_is_wide(&y))
        channel_decay_f64(act_d(&y), act_d(&y), w->dt_bias.d, w->a_log.d,
                          m->bound, &shape, y.rows);
    else if (m->chunk)
        log_decay(m, w, &y);
    else if (is_stepwise(o, m))
        stepwise_decay(m, w, &y);
    else
        channel_decay(act_f(&y), act_f(&y), w->dt_bias.f, w->a_log.f, m->bound,
                      &shape, y.rows);
    return y;
}

static struct act beta_of(struct ops *o, const struct kda *m,
                          const struct kda_weights *w, const struct act *x)
{
    struct act y = op_dense(o, x, &w->b, NULL);
    enum dtype wide = ops_dtype(o->precision, DTYPE_F32);

    if (!m->is_beta_rounded)
        y.dtype = wide;
    op_eager_sigmoid(&y);
    y.dtype = wide;
    return y;
}

static struct act gate_of(struct ops *o, const struct kda *m,
                          const struct kda_weights *w, const struct act *x)
{
    if (m->is_full_gate)
        return op_dense(o, x, &w->gate, NULL);
    struct act low = op_dense(o, x, &w->gate_a, NULL);
    return op_dense(o, &low, &w->gate, NULL);
}

/* t(norm(x) * weight * sigmoid(gate)), x and gate changed. */
static void gated_norm(const struct kda *m, const struct kda_weights *w,
                       const struct act *x, struct act *gate)
{
    cascade_rms_norm(act_f(x), act_f(x), w->norm.f, x->rows * m->heads, m->dim,
                     m->eps, DTYPE_F32);
    gate->dtype = DTYPE_F32;
    op_eager_sigmoid(gate);
    for (int64_t i = 0; i < x->rows * x->cols; i++)
        act_f(x)[i] *= act_f(gate)[i];
    op_round(x);
}

struct act op_kda(struct ops *o, const struct kda *m,
                  const struct kda_weights *w, const struct act *x)
{
    struct channel_delta shape = {m->heads, m->dim};
    struct act q = mixed(o, m, x, &w->q, &w->q_conv);
    struct act k = mixed(o, m, x, &w->k, &w->k_conv);
    struct act v = mixed(o, m, x, &w->v, &w->v_conv);
    struct act decay = decay_of(o, m, w, x), beta = beta_of(o, m, w, x);
    struct act state = ops_zeros(o, m->heads * m->dim, m->dim);
    struct act gate = gate_of(o, m, w, x);
    struct act y = ops_new(o, x->rows, channels(m), v.dtype);
    int64_t rows = x->rows * m->heads;

    unit(o, m, &q, 1 / sqrt((double)m->dim));
    unit(o, m, &k, 1);
    if (act_is_wide(&y)) {
        channel_delta_f64(act_d(&y), act_d(&state), act_d(&q), act_d(&k),
                          act_d(&v), act_d(&decay), act_d(&beta), &shape,
                          x->rows);
        channel_norm_f64(act_d(&y), act_d(&y), w->norm.d, act_d(&gate), m->eps,
                         rows, m->dim);
    } else if (m->chunk) {
        chunk_delta(act_f(&y), act_f(&q), act_f(&k), act_f(&v), act_f(&decay),
                    act_f(&beta), &shape, m->chunk, x->rows);
        op_round(&y);
        gated_norm(m, w, &y, &gate);
    } else if (is_stepwise(o, m)) {
        token_delta(act_f(&y), act_f(&q), act_f(&k), act_f(&v), act_f(&decay),
                    act_f(&beta), &shape, x->rows);
        op_round(&y);
        gated_norm(m, w, &y, &gate);
    } else {
        channel_delta(act_f(&y), act_f(&state), act_f(&q), act_f(&k), act_f(&v),
                      act_f(&decay), act_f(&beta), &shape, x->rows);
        op_round(&y);
        channel_norm(act_f(&y), act_f(&y), w->norm.f, act_f(&gate), m->eps,
                     rows, m->dim, y.dtype);
    }
    return op_dense(o, &y, &w->o, NULL);
}

int64_t kda_row_values(const struct kda *m)
{
    return 9 * channels(m) + 2 * m->dim + m->heads + m->hidden;
}

int64_t kda_state_values(const struct kda *m)
{
    return channels(m) * (m->dim + 3 * (m->taps - 1));
}
