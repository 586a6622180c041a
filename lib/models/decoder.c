/* What decoder-only text families have in common: the pass over the layers. */
#include "models/decoder.h"

#include "base/bug.h"
#include "base/mem.h"
#include "base/path.h"
#include "models/eager_ops.h"
#include "models/moe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char EMBED[] = "model.embed_tokens.weight";
static const char HEAD[] = "lm_head.weight";
static const char NORM[] = "model.norm.weight";
enum { HEAD_ROWS = 4096, PIECES = 4096 };

static struct decoder *decoder_of(struct model *m)
{
    return (struct decoder *)m;
}

static const struct decoder *const_decoder(const struct model *m)
{
    return (const struct decoder *)m;
}

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

/* ---- opening ---- */

static const char *head_name(const struct decoder *d)
{
    return d->is_tied ? EMBED : HEAD;
}

bool decoder_is_sparse(const struct decoder *d, int64_t layer)
{
    return d->experts.count &&
           (!d->hooks->is_sparse || d->hooks->is_sparse(d, layer));
}

struct experts decoder_experts(const struct decoder *d, int64_t layer)
{
    struct experts e = d->experts;

    snprintf(e.prefix, sizeof(e.prefix), "model.layers.%lld.mlp.experts",
             (long long)layer);
    return e;
}

static void layer_part(const struct decoder *d, int64_t layer,
                       struct decoder_weights *w, struct part *p)
{
    char at[64];

    snprintf(at, sizeof(at), "model.layers.%lld", (long long)layer);
    part_clear(p);
    p->is_kept = d->hooks->is_norm_kept;
    part_param(p, &w->input_norm, d->hidden, "%s.input_layernorm.weight", at);
    part_param(p, &w->post_norm, d->hidden,
               "%s.post_attention_layernorm.weight", at);
    p->is_kept = false;
    d->hooks->layer_part(d, layer, w, p, at);
}

static void end_part(struct decoder *d, struct part *p)
{
    part_clear(p);
    if (d->hooks->end_part)
        d->hooks->end_part(d, p);
    p->is_kept = d->hooks->is_norm_kept;
    part_param(p, &d->norm, d->hidden, "%s", NORM);
}

static int expect_ends(struct decoder *d, struct part *p, struct err *err)
{
    struct dense_weight ignored;

    end_part(d, p);
    p->is_kept = false;
    part_dense(p, &ignored, d->vocab, d->hidden, "%s", EMBED);
    if (!d->is_tied && checkpoint_has(d->weights, "%s", HEAD))
        part_dense(p, &ignored, d->vocab, d->hidden, "%s", HEAD);
    return checkpoint_expect(d->weights, p, err);
}

/* Checks every tensor, and that none is left over. */
static int expect_all(struct decoder *d, struct err *err)
{
    struct decoder_weights *w = xcalloc(1, d->hooks->weights_size);
    struct part p = PART_INIT;
    int ret = expect_ends(d, &p, err);

    for (int64_t i = 0; i < d->layers && ret == 0; i++) {
        struct experts e = decoder_experts(d, i);

        layer_part(d, i, w, &p);
        ret = checkpoint_expect(d->weights, &p, err);
        if (ret == 0 && decoder_is_sparse(d, i))
            ret = experts_expect(&e, err);
    }
    part_release(&p);
    free(w);
    if (ret)
        return -1;
    checkpoint_skip(d->weights, HEAD); /* a copy beside a tied one */
    return checkpoint_finish(d->weights, err);
}

static int open_pack(struct decoder *d, const char *pack, struct err *err)
{
    char *path = path_join(pack, "config.json");

    d->config = config_open(path, err);
    free(path);
    if (!d->config)
        return -1;
    d->ledger = ledger_new(pack);
    ledger_put(d->ledger, "config.json", d->config);
    if (decoder_check_quantization(config_root(d->config), err) ||
        d->hooks->read(d, err) || decoder_read_stops(d, err))
        return -1;
    d->width = d->width ? d->width : d->hidden;
    d->experts.in = d->experts.in ? d->experts.in : d->hidden;
    d->experts.unit = d->experts.unit ? d->experts.unit : expert_swiglu;
    d->names = (struct checkpoint_names){d->hooks->renames, d->hooks->ignored,
                                         d->layers};
    d->weights = checkpoint_open(pack, &d->names, err);
    d->experts.weights = d->weights;
    return d->weights ? expect_all(d, err) : -1;
}

struct model *decoder_open(const struct model_family *family, const char *pack,
                           bool is_kept, struct err *err)
{
    (void)is_kept; /* a layer at a time, whatever is asked */
    struct decoder *d = xcalloc(1, family->decoder->size);

    d->model.family = family;
    d->hooks = family->decoder;
    if (open_pack(d, pack, err) == 0)
        return &d->model;
    decoder_close(&d->model);
    return NULL;
}

void decoder_close(struct model *m)
{
    struct decoder *d = decoder_of(m);

    if (!d)
        return;
    if (d->hooks->release)
        d->hooks->release(d);
    decoder_generation_free(d->generation);
    checkpoint_close(d->weights);
    ledger_free(d->ledger);
    free(d);
}

/* ---- taps ---- */

static int tap(const struct decoder_pass *p, int64_t sequence, const char *name,
               int64_t column, const struct act *values, struct err *err)
{
    struct tap_piece piece = {.sequence = sequence,
                              .name = name,
                              .row = p->exported,
                              .column = column,
                              .values = *values};

    return p->tap->piece(p->tap->ctx, &piece, err);
}

static int tap_all(const struct decoder_pass *p, const char *name,
                   const struct act *x, struct err *err)
{
    for (int64_t i = 0; i < p->count; i++) {
        struct act rows = decoder_rows(p, x, i);

        if (tap(p, i, name, 0, &rows, err))
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

    return tap_all(p, layer_stage(stage, layer, name), x, err);
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
    const struct decoder *d = const_decoder(m);
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

/* ---- the pass ---- */

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

            if (checkpoint_row(d->weights, EMBED, id, d->hidden, &row, err))
                return -1;
        }
        if (tap(p, i, "trace.input_embeds", 0, &of, err))
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

    layer_part(d, i, w, &part);
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

    end_part(d, &part);
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

    if (!checkpoint_has(d->weights, "%s", head_name(d)))
        return err_set(err, ERR_INPUT, "the pack holds no tensor '%s'", HEAD);
    for (int64_t at = 0, n; at < d->vocab && ret == 0; at += n) {
        n = d->vocab - at < HEAD_ROWS ? d->vocab - at : HEAD_ROWS;
        part_clear(&part);
        part_rows(&part, &head, d->vocab, at, n, d->hidden, "%s", head_name(d));
        ret = checkpoint_load(d->weights, &part, CHECKPOINT_LAYER, err);
        for (int64_t i = 0; i < p->count && ret == 0; i++) {
            const struct sequence *s = &p->sequences[i];
            size_t mark = ops_mark(o);
            struct act rows = decoder_rows(p, states, i);

            rows = act_rows(&rows, s->prompt - 1, sequence_exported(s));
            struct act y =
                op_dense_part(o, &rows, &head, NULL, s->rows, d->vocab);
            ret = tap(p, i, "logits", at, &y, err);
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
        tap_all(p, "trace.final_norm", &states, err))
        return -1;
    for (int64_t i = 0; i < p->count; i++) {
        const struct sequence *s = &p->sequences[i];
        struct act rows = decoder_rows(p, &states, i);

        rows = act_rows(&rows, s->prompt - 1, sequence_exported(s));
        if (tap(p, i, "hidden_states", 0, &rows, err))
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
        (p->options->is_states_only ? 0 : (size_t)(longest * HEAD_ROWS));
    return ops_bytes(p->options->precision, values, PIECES);
}

static int run_pass(struct decoder_pass *p, struct err *err)
{
    struct decoder *d = p->decoder;
    const struct forward_options *o = p->options;
    int ret;

    if (ops_init(&p->ops, o->precision, o->sums, pass_bytes(p), err))
        return -1;
    struct act x =
        ops_new(&p->ops, p->rows, d->width,
                ops_dtype(o->precision, checkpoint_dtype(d->weights, EMBED)));
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
    struct decoder_pass p = {.decoder = decoder_of(m),
                             .options = o,
                             .sequences = s,
                             .count = count,
                             .tap = taps};

    return decoder_run(&p, err);
}

/* The largest weights held at once: a layer's and one expert's, or the ends. */
static size_t weights_bytes(struct decoder *d)
{
    struct decoder_weights *w = xcalloc(1, d->hooks->weights_size);
    struct part p = PART_INIT;
    struct dense_weight head;
    size_t layer = 0, expert = 0, bytes;

    for (int64_t i = 0; i < d->layers; i++) {
        struct experts e = decoder_experts(d, i);

        layer_part(d, i, w, &p);
        bytes = checkpoint_bytes(d->weights, &p);
        layer = bytes > layer ? bytes : layer;
        bytes = decoder_is_sparse(d, i) ? experts_bytes(&e) : 0;
        expert = bytes > expert ? bytes : expert;
    }
    part_clear(&p);
    if (checkpoint_has(d->weights, "%s", head_name(d))) {
        part_rows(&p, &head, d->vocab, 0,
                  d->vocab < HEAD_ROWS ? d->vocab : HEAD_ROWS, d->hidden, "%s",
                  head_name(d));
        bytes = checkpoint_bytes(d->weights, &p);
        layer = bytes > layer ? bytes : layer;
    }
    part_release(&p);
    free(w);
    return layer + expert;
}

size_t decoder_memory(struct model *m, const struct forward_options *o,
                      const struct sequence *s, int64_t count)
{
    struct decoder *d = decoder_of(m);
    struct decoder_pass p = {
        .decoder = d, .options = o, .sequences = s, .count = count};

    p.rows = decoder_first(&p, count);
    checkpoint_set_precision(d->weights, o->precision);
    return pass_bytes(&p) + weights_bytes(d);
}

/* ---- the rest of a family ---- */

int64_t decoder_vocab(const struct model *m)
{
    return const_decoder(m)->vocab;
}

int decoder_check(const struct model *m, const struct sequence *s,
                  struct err *err)
{
    const struct decoder *d = const_decoder(m);

    if (s->images)
        return err_set(err, ERR_UNSUPPORTED,
                       "%s: images are not supported in this family", s->name);
    for (int64_t i = 0; i < s->rows; i++)
        if (s->ids[i] < 0 || s->ids[i] >= d->vocab)
            return err_set(err, ERR_INPUT,
                           "%s: token %lld is %lld, past the vocabulary of "
                           "%lld",
                           s->name, (long long)i, (long long)s->ids[i],
                           (long long)d->vocab);
    return 0;
}

json_t *decoder_keys(const struct model *m)
{
    return ledger_json(const_decoder(m)->ledger);
}

json_t *decoder_weights(const struct model *m, struct err *err)
{
    return checkpoint_ledger(const_decoder(m)->weights, true, err);
}
