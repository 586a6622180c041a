/*
 * The Bonsai 2 family: one pass over the weights for all positions of all
 * sequences, and generation with caches.  Both run the same layers over the
 * same rows in the same order, so they give the same bits.
 */
#include "models/bonsai.h"

#include "base/bug.h"
#include "base/mem.h"
#include "models/bonsai_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Generation: what is kept between steps. */
struct generation {
    struct bonsai_pass pass;
    struct sequence sequence; /* grows by one row a step */
    int64_t *ids, *positions; /* [capacity], [3, capacity] */
    int64_t capacity, next_position;
    struct bonsai_cache *caches; /* one a layer */
    struct forward_options options;
    struct model_tap tap;
};

struct bonsai {
    struct model model;
    struct bonsai_config config;
    struct bonsai_weights *weights;
    struct generation *generation;
};

static struct bonsai *bonsai_of(struct model *m)
{
    return (struct bonsai *)m;
}

static const struct bonsai *const_bonsai(const struct model *m)
{
    return (const struct bonsai *)m;
}

/* ---- taps ---- */

int bonsai_tap(const struct bonsai_pass *pass, int64_t sequence,
               const char *name, int64_t row, int64_t column,
               const struct act *values, struct err *err)
{
    struct tap_piece piece = {.sequence = sequence,
                              .name = name,
                              .row = row,
                              .column = column,
                              .values = *values};

    return pass->tap->piece(pass->tap->ctx, &piece, err);
}

const char *bonsai_layer_stage(char out[64], int64_t layer, const char *part)
{
    snprintf(out, 64, "trace.layer%lld.%s", (long long)layer, part);
    return out;
}

/* ---- dtypes, before anything is computed (bonsai2.md 1.8) ---- */

struct flow {
    enum precision precision;
    const struct bonsai_weights *weights;
    enum dtype residual;
};

static enum dtype stored(const struct flow *f, int64_t layer, const char *name)
{
    char full[160];

    snprintf(full, sizeof(full), "language_model.model.layers.%lld.%s",
             (long long)layer, name);
    return ops_dtype(f->precision, bonsai_weights_dtype(f->weights, full));
}

/* The dtype of a layer's mixer, from that of its input. */
static enum dtype mixer_dtype(const struct flow *f, int64_t layer, bool is_full)
{
    enum dtype x =
        ops_promote(f->residual, stored(f, layer, "input_layernorm.weight"));

    if (!is_full)
        return ops_promote(x, stored(f, layer, "linear_attn.conv1d.weight"));
    enum dtype q = ops_promote(x, stored(f, layer, "self_attn.q_norm.weight"));
    enum dtype k = ops_promote(x, stored(f, layer, "self_attn.k_norm.weight"));
    return ops_promote(q, k);
}

struct layer_flow {
    enum dtype mixer, mlp, out;
};

static struct layer_flow
layer_flow(struct flow *f, const struct bonsai_config *c, int64_t layer)
{
    struct layer_flow l;

    l.mixer = mixer_dtype(f, layer, bonsai_layer_is_full(c, layer));
    enum dtype h = ops_promote(f->residual, l.mixer);
    l.mlp = ops_promote(h, stored(f, layer, "post_attention_layernorm.weight"));
    l.out = ops_promote(h, l.mlp);
    f->residual = l.out;
    return l;
}

static struct flow flow_begin(const struct bonsai *b, enum precision precision)
{
    return (struct flow){precision, b->weights,
                         ops_dtype(precision, DTYPE_F16)};
}

static enum dtype final_dtype(const struct flow *f)
{
    return ops_promote(
        f->residual,
        ops_dtype(f->precision,
                  bonsai_weights_dtype(f->weights,
                                       "language_model.model.norm.weight")));
}

static int visit_vision(const struct bonsai *b, enum precision precision,
                        const struct sequence *s, stage_visitor *visit,
                        void *ctx, struct err *err)
{
    const struct bonsai_vision_config *v = &b->config.vision;
    enum dtype dtype = ops_dtype(precision, DTYPE_F16);
    int64_t merged = s->patch_rows / (v->merge * v->merge);
    char attn[64], out[64];
    struct stage_shape stem[] = {
        {"trace.vision.patch_embed", s->patch_rows, v->hidden, dtype},
        {"trace.vision.pos_embed", s->patch_rows, v->hidden, dtype},
        {"trace.vision.rotary_angles", s->patch_rows, v->hidden / v->heads / 2,
         ops_dtype(precision, DTYPE_F32)},
    };
    struct stage_shape ends[] = {
        {"image_embeds", merged, v->out_hidden, dtype},
        {"trace.vision.merger", merged, v->out_hidden, dtype},
    };

    for (size_t i = 0; i < sizeof(stem) / sizeof(stem[0]); i++)
        if (visit(ctx, &stem[i], err))
            return -1;
    for (int64_t i = 0; i < v->depth; i++) {
        struct stage_shape block[] = {
            {attn, s->patch_rows, v->hidden, dtype},
            {out, s->patch_rows, v->hidden, dtype},
        };

        snprintf(attn, sizeof(attn), "trace.vision.block%lld.attn",
                 (long long)i);
        snprintf(out, sizeof(out), "trace.vision.block%lld.out", (long long)i);
        if (visit(ctx, &block[0], err) || visit(ctx, &block[1], err))
            return -1;
    }
    return visit(ctx, &ends[0], err) || visit(ctx, &ends[1], err) ? -1 : 0;
}

static int bonsai_stages(const struct model *m, const struct forward_options *o,
                         const struct sequence *s, stage_visitor *visit,
                         void *ctx, struct err *err)
{
    const struct bonsai *b = const_bonsai(m);
    const struct bonsai_text_config *t = &b->config.text;
    struct flow flow = flow_begin(b, o->precision);
    struct stage_shape embeds = {"trace.input_embeds", s->prompt, t->hidden,
                                 flow.residual};
    char name[64];

    if (s->images && visit_vision(b, o->precision, s, visit, ctx, err))
        return -1;
    if (visit(ctx, &embeds, err))
        return -1;
    for (int64_t i = 0; i < t->layers; i++) {
        struct layer_flow l = layer_flow(&flow, &b->config, i);
        const struct {
            const char *part;
            enum dtype dtype;
        } parts[] = {{"mixer", l.mixer}, {"mlp", l.mlp}, {"out", l.out}};

        for (int part = 0; part < 3; part++) {
            struct stage_shape shape = {
                bonsai_layer_stage(name, i, parts[part].part), s->rows,
                t->hidden, parts[part].dtype};

            if (visit(ctx, &shape, err))
                return -1;
        }
    }
    enum dtype last = final_dtype(&flow);
    struct stage_shape ends[] = {
        {"hidden_states", sequence_exported(s), t->hidden, last},
        {"trace.final_norm", s->rows, t->hidden, last},
        {"logits", sequence_exported(s), t->vocab, last},
    };
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        if (visit(ctx, &ends[i], err))
            return -1;
    return 0;
}

/* ---- sizes ---- */

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

struct totals {
    int64_t rows, longest;    /* text rows in all, of the longest sequence */
    int64_t exported;         /* rows with logits, in all */
    int64_t patches, largest; /* in all, of the largest picture */
};

/* The first row that this pass exports of a sequence. */
static int64_t export_from(const struct sequence *s, int64_t first)
{
    return larger(first, s->prompt - 1);
}

static struct totals count_totals(const struct sequence *s, int64_t count,
                                  int64_t first)
{
    struct totals t = {0};

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
static size_t pass_bytes(const struct bonsai_config *c, enum precision p,
                         const struct totals *t, int64_t chunk)
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

static int embed_all(struct bonsai_pass *pass, const struct act *residual,
                     struct err *err)
{
    const struct bonsai_config *c = pass->config;
    struct totals t = count_totals(pass->sequences, pass->count, pass->first);
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

static int finish(struct bonsai_pass *pass, const struct act *residual,
                  struct err *err)
{
    struct totals t = count_totals(pass->sequences, pass->count, pass->first);
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
static int layer_sequence(struct bonsai_pass *pass,
                          const struct bonsai_layer *l, int64_t layer,
                          struct bonsai_cache *cache, int64_t sequence,
                          struct act *x, struct err *err)
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
        if (layer_sequence(pass, l, layer, &cache, i, &x, err))
            return -1;
        dtype = x.dtype;
        at += x.rows;
        ops_release(&pass->ops, mark);
    }
    residual->dtype = dtype;
    return 0;
}

static int check_precision(enum precision p, struct err *err)
{
    if (p == PRECISION_BF16)
        return err_set(err, ERR_UNSUPPORTED,
                       "precision bf16: a Bonsai 2 pack computes in f16 or "
                       "f32");
    return 0;
}

static int bonsai_forward(struct model *m, const struct forward_options *o,
                          const struct sequence *s, int64_t count,
                          const struct model_tap *tap, struct err *err)
{
    struct bonsai *b = bonsai_of(m);
    struct totals t = count_totals(s, count, 0);
    struct bonsai_pass pass = {.config = &b->config,
                               .weights = b->weights,
                               .options = o,
                               .sequences = s,
                               .count = count,
                               .tap = tap};
    int ret = -1;

    if (check_precision(o->precision, err) ||
        ops_init(&pass.ops, o->precision, o->sums,
                 pass_bytes(&b->config, o->precision, &t, o->chunk), err))
        return -1;
    struct act residual = ops_new(&pass.ops, t.rows, b->config.text.hidden,
                                  ops_dtype(o->precision, DTYPE_F16));
    if (embed_all(&pass, &residual, err))
        goto out;
    for (int64_t i = 0; i < b->config.text.layers; i++)
        if (layer_all(&pass, i, &residual, t.longest, err))
            goto out;
    ret = finish(&pass, &residual, err);
out:
    ops_release_all(&pass.ops);
    return ret;
}

/* ---- generation ---- */

static void generation_free(struct generation *g)
{
    if (!g)
        return;
    ops_release_all(&g->pass.ops);
    free(g->ids);
    free(g->positions);
    free(g->caches);
    free(g);
}

/* The prompt's ids and positions, with room for what follows. */
static int generation_sequence(struct generation *g,
                               const struct sequence *prompt, struct err *err)
{
    size_t rows = (size_t)g->capacity;
    static const size_t cap = (size_t)1 << 32;

    g->ids = mem_array(rows, sizeof(*g->ids), cap, err);
    g->positions = mem_array(3 * rows, sizeof(*g->positions), cap, err);
    if (!g->ids || !g->positions)
        return -1;
    for (int64_t row = 0; row < prompt->rows; row++) {
        g->ids[row] = prompt->ids[row];
        for (int64_t axis = 0; axis < 3; axis++) {
            int64_t at =
                prompt->positions[axis * prompt->position_stride + row];

            g->positions[axis * g->capacity + row] = at;
            g->next_position = larger(g->next_position, at + 1);
        }
    }
    g->sequence = *prompt;
    g->sequence.ids = g->ids;
    g->sequence.positions = g->positions;
    g->sequence.position_stride = g->capacity;
    return 0;
}

static size_t generation_bytes(const struct bonsai_config *c,
                               const struct generation *g)
{
    enum { PIECES = 256 };
    struct totals t = count_totals(&g->sequence, 1, 0);
    size_t caches = 0;

    for (int64_t i = 0; i < c->text.layers; i++)
        caches += bonsai_cache_values(c, i, g->capacity);
    return pass_bytes(c, g->options.precision, &t, g->options.chunk) +
           ops_bytes(g->options.precision, caches,
                     (size_t)c->text.layers * 4 + PIECES);
}

/* Rows [first, rows) of the sequence through everything. */
static int generation_run(struct generation *g, struct err *err)
{
    struct bonsai_pass *pass = &g->pass;
    struct ops *o = &pass->ops;
    size_t mark = ops_mark(o);
    struct act x =
        ops_new(o, g->sequence.rows - pass->first, pass->config->text.hidden,
                ops_dtype(o->precision, DTYPE_F16));

    if (embed_all(pass, &x, err))
        return -1;
    for (int64_t i = 0; i < pass->config->text.layers; i++) {
        const struct bonsai_layer *l;

        if (bonsai_load_layer(pass->weights, i, &l, err) ||
            layer_sequence(pass, l, i, &g->caches[i], 0, &x, err))
            return -1;
    }
    if (finish(pass, &x, err))
        return -1;
    ops_release(o, mark);
    pass->first = g->sequence.rows;
    return 0;
}

static int bonsai_begin(struct model *m, const struct forward_options *o,
                        const struct sequence *prompt, int64_t capacity,
                        const struct model_tap *tap, struct err *err)
{
    struct bonsai *b = bonsai_of(m);
    int64_t layers = b->config.text.layers;

    if (check_precision(o->precision, err))
        return -1;
    generation_free(b->generation);
    struct generation *g = b->generation = xcalloc(1, sizeof(*g));
    g->options = *o;
    g->capacity = prompt->rows + capacity;
    g->caches = xcalloc((size_t)layers, sizeof(*g->caches));
    g->pass = (struct bonsai_pass){.config = &b->config,
                                   .weights = b->weights,
                                   .options = &g->options,
                                   .sequences = &g->sequence,
                                   .count = 1,
                                   .tap = tap};
    if (generation_sequence(g, prompt, err) ||
        ops_init(&g->pass.ops, o->precision, o->sums,
                 generation_bytes(&b->config, g), err))
        return -1;
    for (int64_t i = 0; i < layers; i++)
        bonsai_cache_init(&g->pass, &g->caches[i], i, g->capacity);
    return generation_run(g, err);
}

static int bonsai_step(struct model *m, int64_t token,
                       const struct model_tap *tap, struct err *err)
{
    struct generation *g = bonsai_of(m)->generation;
    int64_t row = g->sequence.rows;

    BUG_ON(row == g->capacity);
    g->ids[row] = token;
    for (int64_t axis = 0; axis < 3; axis++)
        g->positions[axis * g->capacity + row] = g->next_position;
    g->next_position++;
    g->sequence.rows++;
    g->pass.tap = tap;
    return generation_run(g, err);
}

/* ---- the family ---- */

static struct model *bonsai_open(const char *pack, bool is_kept,
                                 struct err *err)
{
    struct bonsai *b = xcalloc(1, sizeof(*b));

    b->model.family = &bonsai_family;
    if (bonsai_config_read(&b->config, pack, err)) {
        free(b);
        return NULL;
    }
    b->weights = bonsai_weights_open(&b->config, pack, is_kept, err);
    if (!b->weights) {
        bonsai_config_release(&b->config);
        free(b);
        return NULL;
    }
    return &b->model;
}

static void bonsai_close(struct model *m)
{
    struct bonsai *b = bonsai_of(m);

    generation_free(b->generation);
    bonsai_weights_close(b->weights);
    bonsai_config_release(&b->config);
    free(b);
}

static int64_t bonsai_vocab(const struct model *m)
{
    return const_bonsai(m)->config.text.vocab;
}

static bool bonsai_is_stop(const struct model *m, int64_t token)
{
    const struct bonsai_config *c = &const_bonsai(m)->config;

    for (int i = 0; i < c->stop_count; i++)
        if (c->stop_tokens[i] == token)
            return true;
    return false;
}

static int check_grids(const struct bonsai_config *c, const struct sequence *s,
                       struct err *err)
{
    int64_t merge = c->vision.merge, patches = 0, tokens = 0;
    enum { MAX_SIDE = 1 << 16 };

    for (int64_t i = 0; i < s->images; i++) {
        const int64_t *g = s->grids + 3 * i;

        for (int axis = 0; axis < 3; axis++)
            if (g[axis] < 1 || g[axis] > MAX_SIDE)
                return err_set(err, ERR_INPUT,
                               "image_grid_thw: image %lld has a side of %lld",
                               (long long)i, (long long)g[axis]);
        if (g[1] % merge || g[2] % merge)
            return err_set(err, ERR_INPUT,
                           "image_grid_thw: image %lld is no multiple of %lld "
                           "patches a side",
                           (long long)i, (long long)merge);
        patches += g[0] * g[1] * g[2];
    }
    for (int64_t i = 0; i < s->prompt; i++)
        tokens += s->ids[i] == c->image_token;
    int64_t cols = c->vision.channels * c->vision.temporal * c->vision.patch *
                   c->vision.patch;
    if (s->images && s->patch_cols != cols)
        return err_set(err, ERR_INPUT,
                       "patches: %lld columns, the vision tower takes %lld",
                       (long long)s->patch_cols, (long long)cols);
    if (patches != s->patch_rows)
        return err_set(err, ERR_INPUT,
                       "patches: %lld rows, the grids have %lld",
                       (long long)s->patch_rows, (long long)patches);
    if (tokens * merge * merge != patches)
        return err_set(err, ERR_INPUT,
                       "prompt_ids: %lld image tokens for %lld merged patches",
                       (long long)tokens,
                       (long long)(patches / (merge * merge)));
    return 0;
}

static int bonsai_check(const struct model *m, const struct sequence *s,
                        struct err *err)
{
    const struct bonsai_config *c = &const_bonsai(m)->config;
    enum { MAX_POSITION = 1 << 24 }; /* exact in f32 */

    for (int64_t i = 0; i < s->rows; i++) {
        if (s->ids[i] < 0 || s->ids[i] >= c->text.vocab)
            return err_set(err, ERR_INPUT,
                           "%s: token %lld is %lld, past the vocabulary of "
                           "%lld",
                           i < s->prompt ? "prompt_ids" : "continuation_ids",
                           (long long)(i < s->prompt ? i : i - s->prompt),
                           (long long)s->ids[i], (long long)c->text.vocab);
        for (int64_t axis = 0; axis < 3; axis++) {
            int64_t at = s->positions[axis * s->position_stride + i];

            if (at < 0 || at >= MAX_POSITION)
                return err_set(err, ERR_INPUT,
                               "position_ids: row %lld is at %lld",
                               (long long)i, (long long)at);
        }
    }
    return check_grids(c, s, err);
}

const struct model_family bonsai_family = {
    .model_type = "prism_hadamard_qwen35",
    .open = bonsai_open,
    .close = bonsai_close,
    .vocab = bonsai_vocab,
    .is_stop = bonsai_is_stop,
    .check = bonsai_check,
    .stages = bonsai_stages,
    .forward = bonsai_forward,
    .begin = bonsai_begin,
    .step = bonsai_step,
};
