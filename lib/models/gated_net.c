/* The gated delta net. */
#include "models/gated_net.h"

#include "base/bug.h"
#include "kernels/channel_delta.h"
#include "kernels/chunk_delta.h"
#include "kernels/conv.h"
#include "kernels/eager.h"
#include "kernels/elementary.h"
#include "kernels/gated_chunk.h"
#include "models/eager_ops.h"

#include <math.h>

enum { CHUNK = 64 };

static int64_t key_columns(const struct gated_net *m)
{
    return m->shape.key_heads * m->shape.key_dim;
}

static int64_t value_columns(const struct gated_net *m)
{
    return m->shape.value_heads * m->shape.value_dim;
}

static int64_t mixed_columns(const struct gated_net *m)
{
    return 2 * key_columns(m) + value_columns(m);
}

int gated_net_read(struct gated_net *m, const struct section *s,
                   struct err *err)
{
    struct gated_delta *g = &m->shape;

    if (config_count(s, "linear_conv_kernel_dim", 4, &m->taps, err) ||
        config_count(s, "linear_key_head_dim", 128, &g->key_dim, err) ||
        config_count(s, "linear_value_head_dim", 128, &g->value_dim, err) ||
        config_count(s, "linear_num_key_heads", 16, &g->key_heads, err) ||
        config_count(s, "linear_num_value_heads", 32, &g->value_heads, err))
        return -1;
    if (g->value_heads % g->key_heads)
        return config_refuse(s, "linear_num_key_heads", err,
                             "does not divide the value heads");
    g->qk_stride = key_columns(m);
    g->v_stride = value_columns(m);
    return 0;
}

void gated_net_part(const struct gated_net *m, struct gated_net_weights *w,
                    struct part *p, const char *prefix)
{
    int64_t heads = m->shape.value_heads, values = value_columns(m);
    int64_t mixed = mixed_columns(m), hidden = m->hidden;

    part_dense(p, &w->qkv, mixed, hidden, "%s.in_proj_qkv.weight", prefix);
    part_dense(p, &w->z, values, hidden, "%s.in_proj_z.weight", prefix);
    part_dense(p, &w->a, heads, hidden, "%s.in_proj_a.weight", prefix);
    part_dense(p, &w->b, heads, hidden, "%s.in_proj_b.weight", prefix);
    part_dense(p, &w->out, hidden, values, "%s.out_proj.weight", prefix);
    part_param(p, &w->conv, mixed * m->taps, "%s.conv1d.weight", prefix);
    part_param(p, &w->a_log, heads, "%s.A_log", prefix);
    part_param(p, &w->dt_bias, heads, "%s.dt_bias", prefix);
    part_param(p, &w->norm, m->shape.value_dim, "%s.norm.weight", prefix);
}

/* silu(convolution(in_proj_qkv x)), both rounded. */
static struct act mixed(struct ops *o, const struct gated_net *m,
                        const struct gated_net_weights *w, const struct act *x)
{
    struct act in = op_dense(o, x, &w->qkv, NULL);
    struct act before = ops_zeros(o, m->taps - 1, in.cols);
    struct act y = ops_new(o, in.rows, in.cols, in.dtype);

    if (act_is_wide(&y)) {
        conv_causal_f64(act_d(&y), act_d(&before), act_d(&in), w->conv.d,
                        y.cols, m->taps, y.rows);
        eager_silu_f64(act_d(&y), act_d(&y), y.rows * y.cols);
    } else {
        conv_causal_fused(act_f(&y), act_f(&before), act_f(&in), w->conv.f,
                          y.cols, m->taps, y.rows);
        op_round(&y);
        op_silu_by_channel(&y);
    }
    return y;
}

/* Columns of x, a head each of `dim`, to unit length times scale; f32 from
 * here. */
static struct act unit(struct ops *o, const struct act *x, int64_t first,
                       int64_t columns, int64_t dim, double scale)
{
    struct act y = op_columns(o, x, first, columns);
    int64_t rows = y.rows * (columns / dim);

    y.dtype = ops_dtype(o->precision, DTYPE_F32);
    if (act_is_wide(&y))
        channel_unit_f64(act_d(&y), act_d(&y), scale, rows, dim);
    else
        chunk_unit_inverse(act_f(&y), act_f(&y), scale, rows, dim);
    return y;
}

/* g, or in f64 its exponential, which the recurrence takes. */
static struct act decay_of(struct ops *o, const struct gated_net *m,
                           const struct gated_net_weights *w,
                           const struct act *x)
{
    struct act y = op_dense(o, x, &w->a, NULL);
    const int64_t heads = m->shape.value_heads, n = y.rows * heads;

    y.dtype = ops_dtype(o->precision, DTYPE_F32);
    if (act_is_wide(&y)) {
        double *g = act_d(&y);

        for (int64_t i = 0; i < n; i++)
            g[i] += w->dt_bias.d[i % heads];
        eager_softplus_f64(g, g, n);
        for (int64_t i = 0; i < n; i++)
            g[i] = elem_exp(-elem_exp(w->a_log.d[i % heads]) * g[i]);
    } else {
        float *g = act_f(&y);

        for (int64_t i = 0; i < n; i++)
            g[i] += w->dt_bias.f[i % heads];
        eager_softplus(g, g, n);
        for (int64_t i = 0; i < n; i++)
            g[i] *= -elem_exp_f32(w->a_log.f[i % heads]);
    }
    return y;
}

static struct act beta_of(struct ops *o, const struct gated_net_weights *w,
                          const struct act *x)
{
    struct act y = op_dense(o, x, &w->b, NULL);

    op_eager_sigmoid(&y);
    y.dtype = ops_dtype(o->precision, DTYPE_F32);
    return y;
}

/* t(t(norm(y) * weight) * silu(z)), silu in f32; z is changed. */
static struct act gated_norm(struct ops *o, const struct gated_net *m,
                             const struct gated_net_weights *w,
                             const struct act *y, struct act *z)
{
    enum dtype t = y->dtype;
    struct act n =
        op_eager_rms_norm(o, y, &w->norm, m->shape.value_dim, m->eps);

    z->dtype = ops_dtype(o->precision, DTYPE_F32);
    if (act_is_wide(z))
        eager_silu_f64(act_d(z), act_d(z), z->rows * z->cols);
    else
        eager_silu(act_f(z), act_f(z), z->rows * z->cols, z->dtype);
    n = op_mul(o, &n, z);
    n.dtype = t;
    op_round(&n);
    return n;
}

struct act op_gated_net(struct ops *o, const struct gated_net *m,
                        const struct gated_net_weights *w, const struct act *x)
{
    const struct gated_delta *s = &m->shape;
    const int64_t keys = key_columns(m), values = value_columns(m);
    struct act qkv = mixed(o, m, w, x);
    struct act z = op_dense(o, x, &w->z, NULL);
    struct act beta = beta_of(o, w, x), g = decay_of(o, m, w, x);
    struct act q =
        unit(o, &qkv, 0, keys, s->key_dim, 1 / sqrt((double)s->key_dim));
    struct act k = unit(o, &qkv, keys, keys, s->key_dim, 1);
    struct act v = op_columns(o, &qkv, 2 * keys, values);
    struct act y = ops_new(o, x->rows, values, v.dtype);

    if (act_is_wide(&y)) {
        struct act state = ops_zeros(o, values, s->key_dim);

        gated_delta_f64(act_d(&y), act_d(&state), act_d(&q), act_d(&k),
                        act_d(&v), act_d(&g), act_d(&beta), s, x->rows);
    } else {
        gated_chunk(act_f(&y), act_f(&q), act_f(&k), act_f(&v), act_f(&g),
                    act_f(&beta), s, CHUNK, x->rows);
        op_round(&y);
    }
    y = gated_norm(o, m, w, &y, &z);
    return op_dense(o, &y, &w->out, NULL);
}

int64_t gated_net_row_values(const struct gated_net *m)
{
    return 2 * mixed_columns(m) + 2 * key_columns(m) + 5 * value_columns(m) +
           2 * m->shape.value_heads + m->hidden;
}

int64_t gated_net_state_values(const struct gated_net *m)
{
    return value_columns(m) * m->shape.key_dim +
           mixed_columns(m) * (m->taps - 1);
}
