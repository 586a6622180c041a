/* Generation with caches: the prompt, then one row at a time. */
#include "base/bug.h"
#include "base/mem.h"
#include "models/bonsai_internal.h"

#include <stdlib.h>

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

void bonsai_generation_free(struct generation *g)
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
            g->next_position =
                at + 1 > g->next_position ? at + 1 : g->next_position;
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
    struct bonsai_totals t = bonsai_count(&g->sequence, 1, 0);
    size_t caches = 0;

    for (int64_t i = 0; i < c->text.layers; i++)
        caches += bonsai_cache_values(c, i, g->capacity);
    return bonsai_pass_bytes(c, g->options.precision, &t, g->options.chunk) +
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

    if (bonsai_embed(pass, &x, err))
        return -1;
    for (int64_t i = 0; i < pass->config->text.layers; i++) {
        const struct bonsai_layer *l;

        if (bonsai_load_layer(pass->weights, i, &l, err) ||
            bonsai_layer_chunks(pass, l, i, &g->caches[i], 0, &x, err))
            return -1;
    }
    if (bonsai_finish(pass, &x, err))
        return -1;
    ops_release(o, mark);
    pass->first = g->sequence.rows;
    return 0;
}

int bonsai_begin(struct model *m, const struct forward_options *o,
                 const struct sequence *prompt, int64_t capacity,
                 const struct model_tap *tap, struct err *err)
{
    struct bonsai *b = (struct bonsai *)m;
    int64_t layers = b->config.text.layers;

    if (bonsai_check_precision(o->precision, err))
        return -1;
    bonsai_generation_free(b->generation);
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

int bonsai_step(struct model *m, int64_t token, const struct model_tap *tap,
                struct err *err)
{
    struct generation *g = ((struct bonsai *)m)->generation;
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
