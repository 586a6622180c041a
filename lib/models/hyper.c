/* Hyper-connections: a residual of several streams. */
#include "models/hyper.h"

#include "base/bug.h"
#include "kernels/streams.h"
#include "models/eager_ops.h"

/* ---- configuration and tensors ---- */

int hyper_read(struct hyper *h, const struct section *s, int64_t hidden,
               double norm_eps, struct err *err)
{
    h->hidden = hidden;
    h->norm_eps = norm_eps;
    if (config_count(s, "hc_mult", 4, &h->streams, err) ||
        config_count(s, "hc_sinkhorn_iters", 20, &h->iterations, err) ||
        config_real(s, "hc_eps", 1e-6, &h->eps, err))
        return -1;
    if (h->streams > STREAMS_MOST)
        return config_refuse(s, "hc_mult", err, "is more than %d",
                             STREAMS_MOST);
    return 0;
}

static void want(const struct hyper *h, struct hyper_weights *w, struct part *p,
                 const char *prefix, int64_t out, int64_t scales)
{
    bool was_kept = p->is_kept;

    part_dense(p, &w->fn, out, h->streams * h->hidden, "%s.fn", prefix);
    p->is_kept = true;
    part_param(p, &w->base, out, "%s.base", prefix);
    part_param(p, &w->scale, scales, "%s.scale", prefix);
    p->is_kept = was_kept;
}

void hyper_part(const struct hyper *h, struct hyper_weights *w, struct part *p,
                const char *prefix)
{
    want(h, w, p, prefix, (2 + h->streams) * h->streams, 3);
}

void hyper_head_part(const struct hyper *h, struct hyper_weights *w,
                     struct part *p, const char *prefix)
{
    want(h, w, p, prefix, h->streams, 1);
}

/* ---- a site ---- */

struct hyper_site hyper_site(struct ops *o, const struct hyper *h, int64_t rows,
                             enum dtype t)
{
    enum dtype f = ops_dtype(o->precision, DTYPE_F32);
    struct hyper_site s;

    s.input = ops_new(o, rows, h->hidden, t);
    s.post = ops_new(o, rows, h->streams, f);
    s.comb = ops_new(o, rows, h->streams * h->streams, f);
    return s;
}

struct hyper_site hyper_site_rows(const struct hyper_site *s, int64_t first,
                                  int64_t count)
{
    return (struct hyper_site){act_rows(&s->input, first, count),
                               act_rows(&s->post, first, count),
                               act_rows(&s->comb, first, count)};
}

/* fn of the normed streams, in f32. */
static struct act coefficients(struct ops *o, const struct hyper *h,
                               const struct hyper_weights *w,
                               const struct act *x)
{
    struct act z = *x;

    z.dtype = ops_dtype(o->precision, DTYPE_F32);
    z = op_eager_rms_norm(o, &z, NULL, z.cols, h->norm_eps);
    return op_eager_linear(o, &z, &w->fn);
}

/* y = c[.., first + k] scale[which] + base[first + k] */
static void shifted(const struct act *y, const struct act *c, int64_t first,
                    const struct hyper_weights *w, int64_t which)
{
    for (int64_t r = 0; r < y->rows; r++)
        for (int64_t k = 0; k < y->cols; k++) {
            int64_t from = r * c->cols + first + k, to = r * y->cols + k;

            if (act_is_wide(y)) {
                act_d(y)[to] = act_d(c)[from] * w->scale.d[which];
                act_d(y)[to] += w->base.d[first + k];
            } else {
                act_f(y)[to] = act_f(c)[from] * w->scale.f[which];
                act_f(y)[to] += w->base.f[first + k];
            }
        }
}

static void sigmoid_then(const struct act *x, double factor, double more)
{
    op_eager_sigmoid(x);
    for (int64_t i = 0; i < x->rows * x->cols; i++) {
        if (act_is_wide(x))
            act_d(x)[i] = act_d(x)[i] * factor + more;
        else
            act_f(x)[i] = act_f(x)[i] * (float)factor + (float)more;
    }
}

static void collapse(const struct hyper *h, const struct act *x,
                     const struct act *weights, const struct act *y)
{
    if (act_is_wide(x))
        streams_collapse_f64(act_d(y), act_d(x), act_d(weights), x->rows,
                             h->streams, h->hidden);
    else
        streams_collapse(act_f(y), act_f(x), act_f(weights), x->rows,
                         h->streams, h->hidden, y->dtype);
}

void op_hyper(struct ops *o, const struct hyper *h,
              const struct hyper_weights *w, const struct act *x,
              const struct hyper_site *site)
{
    const int64_t n = h->streams;
    size_t mark = ops_mark(o);
    struct act c = coefficients(o, h, w, x);
    struct act pre = ops_new(o, x->rows, n, c.dtype);

    BUG_ON(x->cols != n * h->hidden || site->input.rows != x->rows);
    shifted(&pre, &c, 0, w, 0);
    shifted(&site->post, &c, n, w, 1);
    shifted(&site->comb, &c, 2 * n, w, 2);
    sigmoid_then(&pre, 1, h->eps);
    sigmoid_then(&site->post, 2, 0);
    if (act_is_wide(x))
        streams_sinkhorn_f64(act_d(&site->comb), x->rows, n, h->iterations,
                             h->eps);
    else
        streams_sinkhorn(act_f(&site->comb), x->rows, n, h->iterations, h->eps);
    collapse(h, x, &pre, &site->input);
    ops_release(o, mark);
}

void op_hyper_mix(const struct hyper *h, const struct hyper_site *site,
                  const struct act *y, const struct act *x)
{
    BUG_ON(x->cols != h->streams * h->hidden || y->cols != h->hidden ||
           y->rows != x->rows || site->post.rows != x->rows);
    if (act_is_wide(x))
        streams_mix_f64(act_d(x), act_d(&site->post), act_d(&site->comb),
                        act_d(y), x->rows, h->streams, h->hidden);
    else
        streams_mix(act_f(x), act_f(&site->post), act_f(&site->comb), act_f(y),
                    x->rows, h->streams, h->hidden, x->dtype);
}

/* ---- the ends ---- */

void op_hyper_spread(const struct hyper *h, const struct act *embedded,
                     const struct act *x)
{
    for (int64_t k = 0; k < h->streams; k++)
        act_put(x, k * h->hidden, embedded, 0, h->hidden);
}

void op_hyper_head(struct ops *o, const struct hyper *h,
                   const struct hyper_weights *w, const struct act *x,
                   const struct act *y)
{
    size_t mark = ops_mark(o);
    struct act c = coefficients(o, h, w, x);
    struct act pre = ops_new(o, x->rows, h->streams, c.dtype);

    shifted(&pre, &c, 0, w, 0);
    sigmoid_then(&pre, 1, h->eps);
    collapse(h, x, &pre, y);
    ops_release(o, mark);
}

void op_hyper_mean(struct ops *o, const struct hyper *h, const struct act *x,
                   const struct act *y)
{
    size_t mark = ops_mark(o);
    struct act ones =
        ops_new(o, x->rows, h->streams, ops_dtype(o->precision, DTYPE_F32));

    for (int64_t i = 0; i < ones.rows * ones.cols; i++) {
        if (act_is_wide(&ones))
            act_d(&ones)[i] = 1;
        else
            act_f(&ones)[i] = 1;
    }
    struct act sum = *y;
    sum.dtype = ones.dtype;
    collapse(h, x, &ones, &sum);
    for (int64_t i = 0; i < y->rows * y->cols; i++) {
        if (act_is_wide(y))
            act_d(y)[i] /= (double)h->streams;
        else
            act_f(y)[i] /= (float)h->streams;
    }
    op_round(y);
    ops_release(o, mark);
}

int64_t hyper_site_values(const struct hyper *h)
{
    return h->hidden + h->streams + h->streams * h->streams;
}

int64_t hyper_work_values(const struct hyper *h)
{
    int64_t out = (2 + h->streams) * h->streams;

    return h->streams * h->hidden + h->streams + out;
}
