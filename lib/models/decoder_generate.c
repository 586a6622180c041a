/*
 * Generation with a decoder-only family: the prompt, then one token at a time.
 * Keys and values of earlier rows are kept where the family says how wide they
 * are; else every token is a pass over all tokens before it.  Weights stay in
 * memory, as many as there is room for; the others are read for every token.
 */
#include "base/bug.h"
#include "base/mem.h"
#include "base/room.h"
#include "models/decoder.h"

#include <stdlib.h>
#include <string.h>

static const size_t ROWS_CAP = (size_t)1 << 32, KEPT_CAP = (size_t)1 << 40;

/* Keys and values of one layer, [capacity, cols] each. */
struct kept {
    struct act k, v;
};

struct decoder_generation {
    struct forward_options options;
    int64_t *ids, *positions; /* [capacity] */
    int64_t rows, before;     /* known; and of those, through the layers */
    int64_t capacity, steps;
    struct kept *layers; /* [layers]; NULL: nothing is kept */
    int64_t layer_count;
};

void decoder_generation_free(struct decoder_generation *g)
{
    if (!g)
        return;
    for (int64_t i = 0; g->layers && i < g->layer_count; i++) {
        free(g->layers[i].k.data);
        free(g->layers[i].v.data);
    }
    free(g->layers);
    free(g->ids);
    free(g->positions);
    free(g);
}

/* ---- what ends an answer ---- */

/* Of generation_config.json, else of config.json. */
int decoder_read_stops(struct decoder *d, struct err *err)
{
    const struct section *s = config_root(d->config), *inner;
    bool is_there;

    if (stops_read(&d->stops, d->ledger, &is_there, err))
        return -1;
    if (is_there)
        return 0;
    if (config_section(s, "text_config", &inner, err))
        return -1;
    s = inner ? inner : s;
    return stops_add(&d->stops, config_value(s, "eos_token_id"), err)
               ? err_in(err, "%s", config_path(s))
               : 0;
}

bool decoder_is_stop(const struct model *m, int64_t token)
{
    return stops_has(&((const struct decoder *)m)->stops, token);
}

/* ---- what is kept ---- */

static int keep_room(struct act *a, int64_t rows, int64_t cols,
                     enum precision precision, struct err *err)
{
    size_t size = precision == PRECISION_F64 ? sizeof(double) : sizeof(float);

    *a = (struct act){mem_array((size_t)(rows * cols), size, KEPT_CAP, err),
                      rows, cols, DTYPE_F32};
    return a->data ? 0 : -1;
}

static int open_kept(struct decoder *d, struct decoder_generation *g,
                     struct err *err)
{
    int64_t keys, values;

    if (!d->hooks->kept)
        return 0;
    g->layer_count = d->layers;
    g->layers = xcalloc((size_t)d->layers, sizeof(*g->layers));
    for (int64_t i = 0; i < d->layers; i++) {
        d->hooks->kept(d, &keys, &values);
        if (keep_room(&g->layers[i].k, g->capacity, keys, g->options.precision,
                      err) ||
            keep_room(&g->layers[i].v, g->capacity, values,
                      g->options.precision, err))
            return -1;
    }
    return 0;
}

/* Puts x behind the first `before` rows; x becomes all of them. */
static void append(struct act *kept, int64_t before, struct act *x)
{
    kept->dtype = x->dtype;
    struct act to = act_rows(kept, before, x->rows);

    act_copy(&to, x);
    *x = act_rows(kept, 0, before + x->rows);
}

void decoder_keep(struct decoder_pass *p, int64_t layer, struct act *k,
                  struct act *v)
{
    struct decoder_generation *g = p->generation;

    if (!g)
        return;
    append(&g->layers[layer].k, g->before, k);
    append(&g->layers[layer].v, g->before, v);
}

/* Weights in half of the memory that the longest pass leaves. */
static void hold_weights(struct decoder *d, const struct decoder_generation *g,
                         const struct sequence *prompt)
{
    struct sequence longest = *prompt;
    struct err ignored = ERR_INIT;
    const char *limit;
    int64_t left;

    longest.prompt = longest.rows = g->capacity;
    size_t pass = decoder_memory(&d->model, &g->options, &longest, 1);
    if (room_in_memory(&left, &limit, &ignored) || (size_t)left < pass)
        left = (int64_t)pass;
    checkpoint_hold(d->weights, ((size_t)left - pass) / 2);
}

/* ---- the passes ---- */

/* The rows that are new, or all when nothing is kept; the last is exported. */
static int run(struct decoder *d, const struct model_tap *tap, struct err *err)
{
    struct decoder_generation *g = d->generation;
    int64_t first = g->layers ? g->before : 0;
    struct sequence s = {.name = "generation",
                         .prompt = g->rows - first,
                         .rows = g->rows - first,
                         .ids = g->ids + first,
                         .positions = g->positions + first,
                         .position_stride = g->capacity};
    struct decoder_pass p = {.decoder = d,
                             .options = &g->options,
                             .sequences = &s,
                             .count = 1,
                             .tap = tap,
                             .exported = g->steps,
                             .generation = g->layers ? g : NULL};

    if (decoder_run(&p, err))
        return -1;
    g->before = g->rows;
    g->steps++;
    return 0;
}

int decoder_begin(struct model *m, const struct forward_options *o,
                  const struct sequence *prompt, int64_t capacity,
                  const struct model_tap *tap, struct err *err)
{
    struct decoder *d = (struct decoder *)m;
    struct decoder_generation *g = xcalloc(1, sizeof(*g));

    decoder_generation_free(d->generation);
    d->generation = g;
    g->options = *o;
    g->capacity = prompt->rows + capacity;
    g->rows = prompt->rows;
    g->ids = mem_array((size_t)g->capacity, sizeof(*g->ids), ROWS_CAP, err);
    g->positions =
        mem_array((size_t)g->capacity, sizeof(*g->positions), ROWS_CAP, err);
    if (!g->ids || !g->positions || open_kept(d, g, err))
        return -1;
    memcpy(g->ids, prompt->ids, (size_t)g->rows * sizeof(*g->ids));
    memcpy(g->positions, prompt->positions,
           (size_t)g->rows * sizeof(*g->positions));
    hold_weights(d, g, prompt);
    return run(d, tap, err);
}

int decoder_step(struct model *m, int64_t token, const struct model_tap *tap,
                 struct err *err)
{
    struct decoder *d = (struct decoder *)m;
    struct decoder_generation *g = d->generation;

    BUG_ON(g->rows == g->capacity);
    g->ids[g->rows] = token;
    g->positions[g->rows] = g->positions[g->rows - 1] + 1;
    g->rows++;
    return run(d, tap, err);
}
