/* Operations of compressed attention, and its compressor. */
#include "models/compressed_ops.h"

#include "base/bug.h"
#include "base/mem.h"
#include "models/eager_ops.h"

#include <stdlib.h>

struct act op_kept_norm(struct ops *o, const struct act *x,
                        const struct param *weight, double eps)
{
    struct act z = *x;

    z.dtype = ops_dtype(o->precision, DTYPE_F32);
    z = op_eager_rms_norm(o, &z, weight, z.cols, eps);
    z.dtype = x->dtype;
    op_round(&z);
    return z;
}

void op_head_norm(const struct act *x, int64_t width, double eps)
{
    int64_t rows = x->rows * (x->cols / width);

    if (act_is_wide(x))
        compressed_norm_f64(act_d(x), act_d(x), rows, width, eps);
    else
        compressed_norm(act_f(x), act_f(x), rows, width, eps, x->dtype);
}

void op_turn(const struct act *x, const struct rotary_tables *t, int64_t width,
             bool is_back)
{
    struct turn turn = {x->cols / width, width, 2 * t->cosine.cols, is_back};

    BUG_ON(x->cols % width || t->cosine.rows != x->rows);
    if (act_is_wide(x))
        compressed_turn_f64(act_d(x), act_d(&t->cosine), act_d(&t->sine), &turn,
                            x->rows);
    else
        compressed_turn(act_f(x), act_f(&t->cosine), act_f(&t->sine), &turn,
                        x->rows, x->dtype);
}

/* ---- the compressor ---- */

void compressor_part(struct compressor *c, const struct windows *how,
                     int64_t hidden, struct part *p, const char *prefix)
{
    int64_t out = how->is_overlapping ? 2 * how->width : how->width;
    bool was_kept = p->is_kept;

    p->is_kept = false;
    part_dense(p, &c->kv, out, hidden, "%s.kv_proj.weight", prefix);
    part_dense(p, &c->gate, out, hidden, "%s.gate_proj.weight", prefix);
    p->is_kept = true;
    part_param(p, &c->bias, how->rate * out, "%s.position_bias", prefix);
    part_param(p, &c->norm, how->width, "%s.kv_norm.weight", prefix);
    p->is_kept = was_kept;
}

/* Tables at the first position of every window. */
static struct rotary_tables window_tables(struct ops *o,
                                          const struct rotary *rotary,
                                          const int64_t *positions,
                                          int64_t rate, int64_t count)
{
    int64_t *starts = xcalloc((size_t)count + 1, sizeof(*starts));

    for (int64_t w = 0; w < count; w++)
        starts[w] = positions[w * rate];
    struct rotary_tables tables = rotary_tables(o, rotary, starts, count);
    free(starts);
    return tables;
}

struct act op_compress(struct ops *o, const struct compressor *c,
                       const struct windows *how, const struct rotary *rotary,
                       const int64_t *positions, const struct act *x,
                       double eps)
{
    int64_t count = x->rows / how->rate;
    struct act kv = op_dense(o, x, &c->kv, NULL);
    struct act gate = op_dense(o, x, &c->gate, NULL);
    struct act pooled = ops_new(o, count, how->width, kv.dtype);

    if (act_is_wide(x))
        compressed_windows_f64(act_d(&pooled), act_d(&kv), act_d(&gate),
                               c->bias.d, how, count);
    else
        compressed_windows(act_f(&pooled), act_f(&kv), act_f(&gate), c->bias.f,
                           how, count, pooled.dtype);
    struct act y = op_kept_norm(o, &pooled, &c->norm, eps);
    struct rotary_tables tables =
        window_tables(o, rotary, positions, how->rate, count);
    op_turn(&y, &tables, how->width, false);
    return y;
}

/* ---- attention ---- */

const int64_t *op_pick(struct ops *o, const struct act *q,
                       const struct act *key, const struct act *weight,
                       const struct picking *how)
{
    /* 8 bytes an index, whatever the workspace's numbers are */
    struct act place = ops_new(o, q->rows, 2 * how->most, q->dtype);
    int64_t *picked = place.data;

    BUG_ON(q->cols != how->heads * how->width || key->cols != how->width ||
           weight->cols != how->heads);
    if (act_is_wide(q))
        compressed_pick_f64(picked, act_d(q), act_d(key), act_d(weight), how,
                            q->rows, key->rows);
    else
        compressed_pick(picked, act_f(q), act_f(key), act_f(weight), how,
                        q->rows, key->rows);
    return picked;
}

struct act op_attend(struct ops *o, const struct act *q, const struct act *kv,
                     const struct param *sinks, const struct seeing *how)
{
    struct act y = ops_new(o, q->rows, q->cols, q->dtype);

    BUG_ON(q->cols != how->heads * how->dim || kv->cols != how->dim ||
           kv->rows != q->rows + how->entries || sinks->count != how->heads);
    if (act_is_wide(q))
        compressed_attend_f64(act_d(&y), act_d(q), act_d(kv), sinks->d, how,
                              q->rows);
    else
        compressed_attend(act_f(&y), act_f(q), act_f(kv), sinks->f, how,
                          q->rows, q->dtype);
    return y;
}

struct act op_grouped(struct ops *o, const struct act *x,
                      const struct dense_weight *w, int64_t groups)
{
    struct act y = ops_new(o, x->rows, w->out, x->dtype);
    int64_t in = x->cols / groups, out = w->out / groups;

    BUG_ON(x->cols % groups || w->out % groups || w->in != in);
    for (int64_t g = 0; g < groups; g++) {
        size_t mark = ops_mark(o);
        struct dense_weight part = dense_rows(w, g * out, out);
        struct act from = op_columns(o, x, g * in, in);
        struct act to = op_dense(o, &from, &part, NULL);

        y.dtype = to.dtype;
        act_put(&y, g * out, &to, 0, out);
        ops_release(o, mark);
    }
    return y;
}
