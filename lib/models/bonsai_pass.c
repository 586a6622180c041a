/*
 * One pass over the weights: embeddings, every layer over all rows of all
 * sequences, final norm and head.  Generation runs the same steps over the rows
 * that are new (bonsai_generate.c).
 */
#include "models/bonsai_internal.h"

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The first row that this pass exports of a sequence. */
static int64_t export_from(const struct sequence *s, int64_t first)
{
    return larger(first, s->prompt - 1);
}

struct bonsai_totals bonsai_count(const struct sequence *s, int64_t count,
                                  int64_t first)
{
    struct bonsai_totals t = {0};

    for (int64_t i = 0; i < count; i++) {
        t.rows += s[i].rows;
        t.longest = larger(t.longest, s[i].rows);
        t.exported += s[i].rows - export_from(&s[i], first);
        t.patches += s[i].patch_rows;
        for (int64_t k = 0; k < s[i].images; k++)
            t.largest =
                larger(t.largest, s[i].grids[3 * k] * s[i].grids[3 * k + 1] *
                                      s[i].grids[3 * k + 2]);
    }
    return t;
}

/* Numbers for the final norm and the head over `exported` rows. */
static size_t head_values(const struct bonsai_config *c, int64_t chunk,
                          int64_t exported)
{
    return (size_t)(chunk * 2 * c->text.hidden + 2 * exported * c->text.hidden +
                    exported * BONSAI_HEAD_ROWS);
}

static size_t largest_of(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* The one workspace: what outlives the layers, and the widest of the rest. */
size_t bonsai_pass_bytes(const struct bonsai_config *c, enum precision p,
                         const struct bonsai_totals *t, int64_t chunk)
{
    const struct bonsai_vision_config *v = &c->vision;
    enum { PIECES = 256 }; /* allocations alive at once, for their alignment */
    size_t caches = 0;

    for (int64_t i = 0; i < c->text.layers; i++)
        caches = largest_of(caches, bonsai_cache_values(c, i, t->longest));
    size_t kept = (size_t)(t->rows * c->text.hidden +
                           t->patches / (v->merge * v->merge) * v->out_hidden);
    size_t widest =
        largest_of(bonsai_layer_values(c, smaller(chunk, t->longest)) + caches,
                   head_values(c, smaller(chunk, t->longest), t->exported));
    widest =
        largest_of(widest, bonsai_vision_values(c, t->patches, t->largest));
    return ops_bytes(p, kept + widest, PIECES);
}

/* ---- embeddings ---- */

/* One row of the table, rotated back (1.7). */
static int embed_token(struct bonsai_pass *pass, int64_t token,
                       const struct act *row, struct err *err)
{
    struct linear table;

    if (bonsai_load_embedding(pass->weights, token, 1, &table, err))
        return -1;
    if (act_is_wide(row))
        packed_row_f64(act_d(row), &table.weight, 0);
    else
        packed_row(act_f(row), &table.weight, 0);
    op_unrotate(row, &table);
    return 0;
}

/* Rows of a sequence: the table's, with image rows in the place of theirs. */
static int embed_rows(struct bonsai_pass *pass, int64_t sequence,
                      const struct act *rows, const struct act *images,
                      int64_t *image_row, struct err *err)
{
    const struct sequence *s = &pass->sequences[sequence];
    int64_t first = pass->first;

    for (int64_t i = 0; i < rows->rows; i++) {
        struct act row = act_rows(rows, i, 1);
        int64_t token = s->ids[first + i];

        if (token == pass->config->image_token && first + i < s->prompt) {
            struct act image = act_rows(images, (*image_row)++, 1);

            act_copy(&row, &image);
        } else if (embed_token(pass, token, &row, err)) {
            return -1;
        }
    }
    if (first >= s->prompt)
        return 0; /* the stage holds the prompt's rows */
    struct act prompt = act_rows(rows, 0, smaller(rows->rows, s->prompt));
    return bonsai_tap(pass, sequence, "trace.input_embeds", first, 0, &prompt,
                      err);
}

int bonsai_embed(struct bonsai_pass *pass, const struct act *residual,
                 struct err *err)
{
    const struct bonsai_config *c = pass->config;
    struct bonsai_totals t =
        bonsai_count(pass->sequences, pass->count, pass->first);
    int64_t group = c->vision.merge * c->vision.merge, at = 0, image_row = 0;
    size_t mark = ops_mark(&pass->ops);
    struct act images =
        ops_new(&pass->ops, t.patches / group, c->vision.out_hidden,
                ops_dtype(pass->ops.precision, DTYPE_F16));

    if (t.patches && pass->first == 0 && bonsai_vision(pass, &images, err))
        return -1;
    for (int64_t i = 0; i < pass->count; i++) {
        struct act rows =
            act_rows(residual, at, pass->sequences[i].rows - pass->first);

        if (embed_rows(pass, i, &rows, &images, &image_row, err))
            return -1;
        at += rows.rows;
    }
    ops_release(&pass->ops, mark);
    return 0;
}

/* ---- final norm and head ---- */

/* The final norm of one sequence's rows; those exported are gathered. */
static int norm_sequence(struct bonsai_pass *pass, int64_t sequence,
                         const struct act *x, const struct param *weight,
                         struct act *exported, int64_t *done, struct err *err)
{
    const struct bonsai_text_config *t = &pass->config->text;
    const struct sequence *s = &pass->sequences[sequence];
    int64_t from = export_from(s, pass->first);
    struct ops *o = &pass->ops;

    for (int64_t row = pass->first, rows; row < s->rows; row += rows) {
        size_t mark = ops_mark(o);

        rows = smaller(pass->options->chunk, s->rows - row);
        if (row < from) /* a piece is exported or not */
            rows = smaller(rows, from - row);
        struct act part = act_rows(x, row - pass->first, rows);
        struct act y = op_rms_norm(o, &part, weight, t->hidden, t->eps);
        if (row >= from && bonsai_tap(pass, sequence, "hidden_states",
                                      row - (s->prompt - 1), 0, &y, err))
            return -1;
        if (bonsai_tap(pass, sequence, "trace.final_norm", row, 0, &y, err))
            return -1;
        exported->dtype = y.dtype;
        if (row >= from) {
            struct act place = act_rows(exported, *done, rows);

            act_copy(&place, &y);
            *done += rows;
        }
        ops_release(o, mark);
    }
    return 0;
}

static int final_norm(struct bonsai_pass *pass, const struct act *residual,
                      struct act *exported, struct err *err)
{
    struct param weight;
    int64_t at = 0, done = 0;

    if (bonsai_load_final_norm(pass->weights, &weight, err))
        return -1;
    for (int64_t i = 0; i < pass->count; i++) {
        struct act x =
            act_rows(residual, at, pass->sequences[i].rows - pass->first);

        if (norm_sequence(pass, i, &x, &weight, exported, &done, err))
            return -1;
        at += x.rows;
    }
    return 0;
}

/* Logits of the gathered rows, a block of the vocabulary at a time. */
static int head(struct bonsai_pass *pass, const struct act *exported,
                struct err *err)
{
    const struct bonsai_text_config *t = &pass->config->text;
    struct ops *o = &pass->ops;
    struct linear block;
    struct act rotated = *exported;

    for (int64_t first = 0, count; first < t->vocab; first += count) {
        count = smaller(BONSAI_HEAD_ROWS, t->vocab - first);
        if (bonsai_load_head(pass->weights, first, count, &block, err))
            return -1;
        if (first == 0)
            rotated = op_rotate(o, exported, &block);
        size_t mark = ops_mark(o);
        struct act logits = op_packed(o, &rotated, &block);
        int64_t at = 0;
        for (int64_t i = 0; i < pass->count; i++) {
            const struct sequence *s = &pass->sequences[i];
            int64_t from = export_from(s, pass->first);
            struct act piece = act_rows(&logits, at, s->rows - from);

            if (bonsai_tap(pass, i, "logits", from - (s->prompt - 1), first,
                           &piece, err))
                return -1;
            at += piece.rows;
        }
        ops_release(o, mark);
    }
    return 0;
}

int bonsai_finish(struct bonsai_pass *pass, const struct act *residual,
                  struct err *err)
{
    struct bonsai_totals t =
        bonsai_count(pass->sequences, pass->count, pass->first);
    struct ops *o = &pass->ops;
    size_t mark = ops_mark(o);
    struct act exported =
        ops_new(o, t.exported, pass->config->text.hidden, residual->dtype);

    if (final_norm(pass, residual, &exported, err) ||
        head(pass, &exported, err))
        return -1;
    ops_release(o, mark);
    return 0;
}

/* ---- one pass ---- */

/* The rows `x` of one sequence through one layer, a chunk at a time. */
int bonsai_layer_chunks(struct bonsai_pass *pass, const struct bonsai_layer *l,
                        int64_t layer, struct bonsai_cache *cache,
                        int64_t sequence, struct act *x, struct err *err)
{
    enum dtype dtype = x->dtype;

    for (int64_t at = 0, rows; at < x->rows; at += rows) {
        rows = smaller(pass->options->chunk, x->rows - at);
        struct act piece = act_rows(x, at, rows);
        if (bonsai_layer_rows(pass, l, layer, cache, sequence, pass->first + at,
                              &piece, err))
            return -1;
        dtype = piece.dtype;
    }
    x->dtype = dtype;
    return 0;
}

static int layer_all(struct bonsai_pass *pass, int64_t layer,
                     struct act *residual, int64_t longest, struct err *err)
{
    const struct bonsai_layer *l;
    enum dtype dtype = residual->dtype;
    int64_t at = 0;

    if (bonsai_load_layer(pass->weights, layer, &l, err))
        return -1;
    for (int64_t i = 0; i < pass->count; i++) {
        size_t mark = ops_mark(&pass->ops);
        struct act x = act_rows(residual, at, pass->sequences[i].rows);
        struct bonsai_cache cache;

        bonsai_cache_init(pass, &cache, layer, longest);
        if (bonsai_layer_chunks(pass, l, layer, &cache, i, &x, err))
            return -1;
        dtype = x.dtype;
        at += x.rows;
        ops_release(&pass->ops, mark);
    }
    residual->dtype = dtype;
    return 0;
}

size_t bonsai_memory(struct model *m, const struct forward_options *o,
                     const struct sequence *s, int64_t count)
{
    const struct bonsai *b = (struct bonsai *)m;
    struct bonsai_totals t = bonsai_count(s, count, 0);

    return bonsai_pass_bytes(&b->config, o->precision, &t, o->chunk) +
           bonsai_weights_bytes(b->weights);
}

int bonsai_forward(struct model *m, const struct forward_options *o,
                   const struct sequence *s, int64_t count,
                   const struct model_tap *tap, struct err *err)
{
    struct bonsai *b = (struct bonsai *)m;
    struct bonsai_totals t = bonsai_count(s, count, 0);
    struct bonsai_pass pass = {.config = &b->config,
                               .weights = b->weights,
                               .options = o,
                               .sequences = s,
                               .count = count,
                               .tap = tap};
    int ret = -1;

    if (bonsai_check_precision(o->precision, err) ||
        ops_init(&pass.ops, o->precision, o->sums,
                 bonsai_pass_bytes(&b->config, o->precision, &t, o->chunk),
                 err))
        return -1;
    struct act residual = ops_new(&pass.ops, t.rows, b->config.text.hidden,
                                  ops_dtype(o->precision, DTYPE_F16));
    if (bonsai_embed(&pass, &residual, err))
        goto out;
    for (int64_t i = 0; i < b->config.text.layers; i++)
        if (layer_all(&pass, i, &residual, t.longest, err))
            goto out;
    ret = bonsai_finish(&pass, &residual, err);
out:
    ops_release_all(&pass.ops);
    return ret;
}
