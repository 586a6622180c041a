/* Kimi Delta Attention. */
#include "models/kda.h"

#include "base/bug.h"
#include "kernels/conv.h"
#include "kernels/eager.h"
#include "models/eager_ops.h"

#include <math.h>
#include <string.h>

static int64_t channels(const struct kda *m)
{
    return m->heads * m->dim;
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
    part_param(p, &w->q_conv, wide * m->taps, "%s.q_conv1d.weight", prefix);
    part_param(p, &w->k_conv, wide * m->taps, "%s.k_conv1d.weight", prefix);
    part_param(p, &w->v_conv, wide * m->taps, "%s.v_conv1d.weight", prefix);
    part_param(p, &w->dt_bias, wide, "%s.dt_bias", prefix);
    part_param(p, &w->a_log, m->heads, "%s.A_log", prefix);
    p->is_kept = was_kept;
}

static struct act zeros(struct ops *o, int64_t rows, int64_t cols)
{
    struct act y = ops_new(o, rows, cols, ops_dtype(o->precision, DTYPE_F32));
    size_t size = act_is_wide(&y) ? sizeof(double) : sizeof(float);

    memset(y.data, 0, (size_t)(rows * cols) * size);
    return y;
}

/* silu(convolution(W x)), rounded once. */
static struct act mixed(struct ops *o, const struct kda *m, const struct act *x,
                        const struct dense_weight *w, const struct param *taps)
{
    struct act in = op_dense(o, x, w, NULL);
    struct act before = zeros(o, m->taps - 1, in.cols);
    struct act y = ops_new(o, in.rows, in.cols, in.dtype);
    int64_t n = y.rows * y.cols;

    if (act_is_wide(&y)) {
        conv_causal_f64(act_d(&y), act_d(&before), act_d(&in), taps->d, y.cols,
                        m->taps, y.rows);
        eager_silu_f64(act_d(&y), act_d(&y), n);
    } else {
        conv_causal(act_f(&y), act_f(&before), act_f(&in), taps->f, y.cols,
                    m->taps, y.rows);
        eager_silu(act_f(&y), act_f(&y), n, y.dtype);
    }
    return y;
}

/* Each head to unit length times scale, in place; f32 from here. */
static void unit(struct ops *o, const struct kda *m, struct act *x,
                 double scale)
{
    int64_t rows = x->rows * m->heads;

    x->dtype = ops_dtype(o->precision, DTYPE_F32);
    if (act_is_wide(x))
        channel_unit_f64(act_d(x), act_d(x), scale, rows, m->dim);
    else
        channel_unit(act_f(x), act_f(x), scale, rows, m->dim);
}

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

struct act op_kda(struct ops *o, const struct kda *m,
                  const struct kda_weights *w, const struct act *x)
{
    struct channel_delta shape = {m->heads, m->dim};
    struct act q = mixed(o, m, x, &w->q, &w->q_conv);
    struct act k = mixed(o, m, x, &w->k, &w->k_conv);
    struct act v = mixed(o, m, x, &w->v, &w->v_conv);
    struct act decay = decay_of(o, m, w, x), beta = beta_of(o, m, w, x);
    struct act state = zeros(o, m->heads * m->dim, m->dim);
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
