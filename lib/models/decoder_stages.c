/* The stages of a decoder, and how they go to the tap. */
#include "models/decoder_internal.h"

#include "base/bug.h"
#include "models/eager_ops.h"

#include <stdio.h>

int decoder_tap_rows(const struct decoder_pass *p, int64_t sequence,
                     const char *name, int64_t column, const struct act *values,
                     struct err *err)
{
    struct tap_piece piece = {.sequence = sequence,
                              .name = name,
                              .row = p->exported,
                              .column = column,
                              .values = *values};

    return p->tap->piece(p->tap->ctx, &piece, err);
}

int decoder_tap_all(const struct decoder_pass *p, const char *name,
                    const struct act *x, struct err *err)
{
    for (int64_t i = 0; i < p->count; i++) {
        struct act rows = decoder_rows(p, x, i);

        if (decoder_tap_rows(p, i, name, 0, &rows, err))
            return -1;
    }
    return 0;
}

static const char *layer_stage(char out[96], int64_t layer, const char *name)
{
    snprintf(out, 96, "trace.layer%lld.%s", (long long)layer, name);
    return out;
}

int decoder_tap(const struct decoder_pass *p, int64_t layer, const char *name,
                const struct act *x, struct err *err)
{
    char stage[96];

    return decoder_tap_all(p, layer_stage(stage, layer, name), x, err);
}

int decoder_tap_routed(const struct decoder_pass *p, int64_t layer,
                       const struct routed *r, struct err *err)
{
    return decoder_tap(p, layer, "experts", &r->chosen_ids, err) ||
                   decoder_tap(p, layer, "margin", &r->margin, err)
               ? -1
               : 0;
}

size_t decoder_plain_stages(const struct decoder *d, int64_t layer,
                            struct decoder_stage *out)
{
    size_t n = 0;

    out[n++] = (struct decoder_stage){"mixer", d->hidden, false};
    if (decoder_is_sparse(d, layer)) {
        out[n++] = (struct decoder_stage){"router", d->experts.count,
                                          d->router == ROUTER_F32};
        out[n++] = (struct decoder_stage){"experts", d->routing.chosen, true};
        out[n++] = (struct decoder_stage){"margin", 1, true};
    }
    out[n++] = (struct decoder_stage){"mlp", d->hidden, false};
    out[n++] = (struct decoder_stage){"out", d->width, false};
    return n;
}

int decoder_stages(const struct model *m, const struct forward_options *o,
                   const struct sequence *s, stage_visitor *visit, void *ctx,
                   struct err *err)
{
    const struct decoder *d = (const struct decoder *)m;
    enum dtype t = ops_compute(o->precision);
    struct decoder_stage parts[DECODER_STAGES];
    int64_t exported = sequence_exported(s);
    struct stage_shape ends[] = {
        {"trace.final_norm", s->rows, d->hidden, t},
        {"hidden_states", exported, d->hidden, t},
        {"logits", exported, d->vocab, t},
    };
    struct stage_shape start = {"trace.input_embeds", s->rows, d->hidden, t};
    size_t last = sizeof(ends) / sizeof(ends[0]) - o->is_states_only;
    char name[96];

    if (visit(ctx, &start, err))
        return -1;
    for (int64_t i = 0; i < d->layers; i++) {
        size_t n = d->hooks->stages ? d->hooks->stages(d, i, parts)
                                    : decoder_plain_stages(d, i, parts);

        BUG_ON(n > DECODER_STAGES);
        for (size_t k = 0; k < n; k++) {
            struct stage_shape shape = {
                layer_stage(name, i, parts[k].name), s->rows, parts[k].cols,
                ops_dtype(o->precision, parts[k].is_f32 ? DTYPE_F32 : t)};

            if (visit(ctx, &shape, err))
                return -1;
        }
    }
    for (size_t i = 0; i < last; i++)
        if (visit(ctx, &ends[i], err))
            return -1;
    return 0;
}
