/* One pass of a decoder over its layers. */
#include "models/decoder_internal.h"

#include "base/mem.h"
#include "models/eager_ops.h"
#include "models/moe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { PIECES = 4096 };

int64_t decoder_first(const struct decoder_pass *p, int64_t i)
{
    int64_t first = 0;

    for (int64_t k = 0; k < i; k++)
        first += p->sequences[k].rows;
    return first;
}

struct act decoder_rows(const struct decoder_pass *p, const struct act *x,
                        int64_t i)
{
    return act_rows(x, decoder_first(p, i), p->sequences[i].rows);
}

static int embed(struct decoder_pass *p, const struct act *x, struct err *err)
{
    struct decoder *d = p->decoder;
    struct ops *o = &p->ops;
    size_t mark = ops_mark(o);
    struct act rows =
        d->hooks->spread ? ops_new(o, p->rows, d->hidden, x->dtype) : *x;

    for (int64_t i = 0; i < p->count; i++) {
        const struct sequence *s = &p->sequences[i];
        struct act of = decoder_rows(p, &rows, i);

        for (int64_t r = 0; r < s->rows; r++) {
            struct act row = act_rows(&of, r, 1);
            int64_t id = d->hooks->embedded ? d->hooks->embedded(d, s->ids[r])
                                            : s->ids[r];

            if (checkpoint_row(d->weights, decoder_embed, id, d->hidden, &row,
                               err))
                return -1;
        }
        if (decoder_tap_rows(p, i, "trace.input_embeds", 0, &of, err))
            return -1;
    }
    if (d->hooks->spread)
        d->hooks->spread(p, &rows, x);
    ops_release(o, mark);
    return 0;
}

/* A NaN or an infinity would go unseen into every later sum. */
static int check_finite(const struct decoder_pass *p, const char *stage,
                        const struct act *x, struct err *err)
{
    for (int64_t i = 0; i < p->count; i++) {
        struct act rows = decoder_rows(p, x, i);
        int64_t n = rows.rows * rows.cols;

        for (int64_t k = 0; k < n; k++)
            if (act_is_wide(&rows) ? !isfinite(act_d(&rows)[k])
                                   : !isfinite(act_f(&rows)[k]))
                return err_set(
                    err, ERR_INPUT, "%s: %s: position %lld is not finite",
                    p->sequences[i].name, stage, (long long)(k / rows.cols));
    }
    return 0;
}

static int run_layer(struct decoder_pass *p, struct decoder_weights *w,
                     int64_t i, struct act *x, struct err *err)
{
    struct decoder *d = p->decoder;
    size_t mark = ops_mark(&p->ops);
    struct part part = PART_INIT;
    int ret;

    decoder_layer_part(d, i, w, &part);
    ret = checkpoint_load(d->weights, &part, CHECKPOINT_LAYER, err);
    part_release(&part);
    if (ret == 0)
        ret = d->hooks->layer ? d->hooks->layer(p, w, i, x, err)
                              : decoder_layer(p, w, i, x, err);
    ops_release(&p->ops, mark);
    return ret;
}

static int run_layers(struct decoder_pass *p, struct act *x, struct err *err)
{
    struct decoder_weights *w = xcalloc(1, p->decoder->hooks->weights_size);
    char stage[96];
    int ret = 0;

    for (int64_t i = 0; i < p->decoder->layers && ret == 0; i++) {
        snprintf(stage, sizeof(stage), "layer %lld", (long long)i);
        ret = run_layer(p, w, i, x, err);
        if (ret)
            err_in(err, "%s", stage);
        else
            ret = check_finite(p, stage, x, err);
    }
    free(w);
    return ret;
}

/* The final norm of what the residual comes to. */
static int end(struct decoder_pass *p, const struct act *x, struct act *states,
               struct err *err)
{
    struct decoder *d = p->decoder;
    struct part part = PART_INIT;
    int ret;

    decoder_end_part(d, &part);
    ret = checkpoint_load(d->weights, &part, CHECKPOINT_LAYER, err);
    part_release(&part);
    if (ret)
        return -1;
    struct act h = d->hooks->gather ? d->hooks->gather(p, x) : *x;
    *states = decoder_norm(p, &h, &d->norm);
    return 0;
}

/* The head, some rows of it at a time, over the exported rows. */
static int logits(struct decoder_pass *p, const struct act *states,
                  struct err *err)
{
    struct decoder *d = p->decoder;
    struct ops *o = &p->ops;
    struct dense_weight head;
    struct part part = PART_INIT;
    int ret = 0;

    if (!decoder_has_head(d))
        return err_set(err, ERR_INPUT,
                       "the pack holds no tensor 'lm_head.weight'");
    for (int64_t at = 0, n; at < d->vocab && ret == 0; at += n) {
        n = decoder_head_part(d, at, &head, &part);
        ret = checkpoint_load(d->weights, &part, CHECKPOINT_LAYER, err);
        for (int64_t i = 0; i < p->count && ret == 0; i++) {
            const struct sequence *s = &p->sequences[i];
            size_t mark = ops_mark(o);
            struct act rows = decoder_rows(p, states, i);

            rows = act_rows(&rows, s->prompt - 1, sequence_exported(s));
            struct act y =
                op_dense_part(o, &rows, &head, NULL, s->rows, d->vocab);
            ret = decoder_tap_rows(p, i, "logits", at, &y, err);
            ops_release(o, mark);
        }
    }
    part_release(&part);
    return ret;
}

static int finish(struct decoder_pass *p, const struct act *x, struct err *err)
{
    struct act states;

    if (end(p, x, &states, err) ||
        check_finite(p, "final norm", &states, err) ||
        decoder_tap_all(p, "trace.final_norm", &states, err))
        return -1;
    for (int64_t i = 0; i < p->count; i++) {
        const struct sequence *s = &p->sequences[i];
        struct act rows = decoder_rows(p, &states, i);

        rows = act_rows(&rows, s->prompt - 1, sequence_exported(s));
        if (decoder_tap_rows(p, i, "hidden_states", 0, &rows, err))
            return -1;
    }
    return p->options->is_states_only ? 0 : logits(p, &states, err);
}

static size_t pass_bytes(const struct decoder_pass *p)
{
    const struct decoder *d = p->decoder;
    int64_t rows = p->rows, longest = 0;
    int64_t widest =
        d->shared_width > d->dense_width ? d->shared_width : d->dense_width;

    for (int64_t i = 0; i < p->count; i++)
        longest =
            p->sequences[i].rows > longest ? p->sequences[i].rows : longest;
    size_t unit =
        (size_t)(rows * d->hidden + longest * (d->hidden + 3 * widest));
    size_t values =
        (size_t)(rows * (2 * d->width + 7 * d->hidden)) + unit +
        moe_values(&d->experts, &d->routing, rows) +
        d->hooks->values(d, rows, longest) +
        (p->options->is_states_only ? 0
                                    : (size_t)(longest * DECODER_HEAD_ROWS));
    return ops_bytes(p->options->precision, values, PIECES);
}

static int run_pass(struct decoder_pass *p, struct err *err)
{
    struct decoder *d = p->decoder;
    const struct forward_options *o = p->options;
    int ret;

    if (ops_init(&p->ops, o->precision, o->sums, pass_bytes(p), err))
        return -1;
    struct act x = ops_new(
        &p->ops, p->rows, d->width,
        ops_dtype(o->precision, checkpoint_dtype(d->weights, decoder_embed)));
    ret = embed(p, &x, err);
    if (ret == 0)
        ret = run_layers(p, &x, err);
    if (ret == 0)
        ret = finish(p, &x, err);
    ops_release_all(&p->ops);
    return ret;
}

int decoder_run(struct decoder_pass *p, struct err *err)
{
    struct decoder *d = p->decoder;
    int64_t *call_rows = xcalloc((size_t)p->count + 1, sizeof(*call_rows));

    for (int64_t i = 0; i < p->count; i++)
        call_rows[i] = p->sequences[i].rows;
    d->experts.call_rows = call_rows;
    p->rows = decoder_first(p, p->count);
    checkpoint_set_precision(d->weights, p->options->precision);
    int ret = run_pass(p, err);
    d->experts.call_rows = NULL;
    free(call_rows);
    return ret;
}

int decoder_forward(struct model *m, const struct forward_options *o,
                    const struct sequence *s, int64_t count,
                    const struct model_tap *taps, struct err *err)
{
    struct decoder_pass p = {.decoder = (struct decoder *)m,
                             .options = o,
                             .sequences = s,
                             .count = count,
                             .tap = taps};

    return decoder_run(&p, err);
}

size_t decoder_memory(struct model *m, const struct forward_options *o,
                      const struct sequence *s, int64_t count)
{
    struct decoder *d = (struct decoder *)m;
    struct decoder_pass p = {
        .decoder = d, .options = o, .sequences = s, .count = count};

    p.rows = decoder_first(&p, count);
    checkpoint_set_precision(d->weights, o->precision);
    return pass_bytes(&p) + decoder_weights_bytes(d);
}
