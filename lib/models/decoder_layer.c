/* A plain decoder layer and the steps of which it is made. */
#include "models/decoder.h"
#include "models/eager_ops.h"

struct act decoder_unit(struct decoder_pass *p, const struct act *x,
                        const struct expert *w, const struct experts *e)
{
    struct ops *o = &p->ops;
    struct act y = ops_new(o, x->rows, w->down.out, x->dtype);

    for (int64_t k = 0; k < p->count; k++) {
        size_t mark = ops_mark(o);
        struct act rows = decoder_rows(p, x, k), to = decoder_rows(p, &y, k);
        struct act of = op_expert(o, &rows, w, e);

        y.dtype = of.dtype;
        act_copy(&to, &of);
        ops_release(o, mark);
    }
    return y;
}

struct act decoder_norm(struct decoder_pass *p, const struct act *x,
                        const struct param *weight)
{
    const struct decoder *d = p->decoder;

    return d->hooks->norm
               ? d->hooks->norm(&p->ops, x, weight, d->eps)
               : op_eager_rms_norm(&p->ops, x, weight, x->cols, d->eps);
}

int decoder_mixer(struct decoder_pass *p, const struct decoder_weights *w,
                  int64_t layer, const struct act *x, struct act *y,
                  struct err *err)
{
    struct ops *o = &p->ops;

    *y = ops_new(o, x->rows, p->decoder->hidden, x->dtype);
    for (int64_t k = 0; k < p->count; k++) {
        size_t mark = ops_mark(o);
        struct act rows = decoder_rows(p, x, k), to = decoder_rows(p, y, k);
        struct act of =
            p->decoder->hooks->attention(p, w, layer, &p->sequences[k], &rows);

        act_copy(&to, &of);
        ops_release(o, mark);
    }
    return decoder_tap(p, layer, "mixer", y, err);
}

struct act decoder_linear(struct decoder_pass *p, const struct act *x,
                          const struct dense_weight *w)
{
    struct ops *o = &p->ops;
    struct act y = ops_new(o, x->rows, w->out, x->dtype);

    for (int64_t k = 0; k < p->count; k++) {
        size_t mark = ops_mark(o);
        struct act rows = decoder_rows(p, x, k), to = decoder_rows(p, &y, k);
        struct act of = op_eager_linear(o, &rows, w);

        y.dtype = of.dtype;
        act_copy(&to, &of);
        ops_release(o, mark);
    }
    return y;
}

int decoder_scores(struct decoder_pass *p, const struct decoder_weights *w,
                   int64_t layer, const struct act *x, struct act *scores,
                   struct err *err)
{
    const struct decoder *d = p->decoder;
    enum dtype wide = ops_dtype(p->ops.precision, DTYPE_F32);
    struct act in = *x;

    if (d->router == ROUTER_F32)
        in.dtype = wide;
    *scores = decoder_linear(p, &in, &w->router);
    if (decoder_tap(p, layer, "router", scores, err))
        return -1;
    if (d->router == ROUTER_F32_SCORES)
        scores->dtype = wide;
    for (int64_t k = 0; k < p->count; k++) { /* one call of upstream's each */
        struct act rows = decoder_rows(p, scores, k);

        if (d->hooks->score)
            d->hooks->score(d, &rows);
        else
            op_eager_sigmoid(&rows);
    }
    return 0;
}

int decoder_route(struct decoder_pass *p, const struct decoder_weights *w,
                  int64_t layer, const struct act *x, struct routed *out,
                  struct err *err)
{
    struct act scores;

    if (decoder_scores(p, w, layer, x, &scores, err))
        return -1;
    *out = op_route(&p->ops, &scores, &w->bias, &p->decoder->routing);
    return 0;
}

int decoder_moe(struct decoder_pass *p, const struct decoder_weights *w,
                int64_t layer, const struct act *x, const struct routed *routed,
                struct act *y, struct err *err)
{
    struct experts e = decoder_experts(p->decoder, layer);

    if (decoder_tap_routed(p, layer, routed, err) ||
        op_experts(&p->ops, x, routed, &e, y, err))
        return -1;
    if (p->decoder->shared_width) {
        struct act shared = decoder_unit(p, x, &w->ffn, &e);

        *y = op_add(&p->ops, y, &shared);
    }
    return 0;
}

int decoder_ffn(struct decoder_pass *p, const struct decoder_weights *w,
                int64_t layer, const struct act *x, struct act *y,
                struct err *err)
{
    struct routed routed;

    if (!decoder_is_sparse(p->decoder, layer)) {
        *y = decoder_unit(p, x, &w->ffn, &p->decoder->experts);
        return 0;
    }
    return decoder_route(p, w, layer, x, &routed, err)
               ? -1
               : decoder_moe(p, w, layer, x, &routed, y, err);
}

int decoder_mlp(struct decoder_pass *p, const struct decoder_weights *w,
                int64_t layer, const struct act *x, struct act *y,
                struct err *err)
{
    const struct decoder_hooks *h = p->decoder->hooks;

    if (h->ffn ? h->ffn(p, w, layer, x, y, err)
               : decoder_ffn(p, w, layer, x, y, err))
        return -1;
    return decoder_tap(p, layer, "mlp", y, err);
}

int decoder_layer(struct decoder_pass *p, const struct decoder_weights *w,
                  int64_t layer, struct act *x, struct err *err)
{
    struct ops *o = &p->ops;
    struct act y, normed = decoder_norm(p, x, &w->input_norm);

    if (decoder_mixer(p, w, layer, &normed, &y, err))
        return -1;
    struct act h = op_add(o, x, &y);
    normed = decoder_norm(p, &h, &w->post_norm);
    if (decoder_mlp(p, w, layer, &normed, &y, err))
        return -1;
    h = op_add(o, &h, &y);
    act_copy(x, &h);
    return decoder_tap(p, layer, "out", x, err);
}
