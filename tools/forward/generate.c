/* Greedy generation from the prompt of one case. */
#include "generate.h"

#include "base/bug.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "cli/cli.h"
#include "safetensors/safetensors.h"
#include "sink.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t ROWS_CAP = (size_t)1 << 34;

/* A tensor whose number of rows is known only at the end. */
struct growing {
    const char *name;
    int64_t rows, cols;
    enum dtype dtype; /* as computed */
    char *data;       /* room for all rows, as stored */
};

struct record {
    struct growing logits, hidden, images;
    int64_t chosen; /* the token of the last row of logits */
    double best;
    bool is_sound; /* every logit of that row is finite */
};

static size_t stored_size(const struct growing *g)
{
    return dtype_bits(sink_dtype(g->dtype)) / 8;
}

static void keep(struct growing *g, const struct tap_piece *piece)
{
    const struct act *v = &piece->values;

    for (int64_t r = 0; r < v->rows; r++) {
        int64_t at = (piece->row + r) * g->cols + piece->column;
        char *out = g->data + (size_t)at * stored_size(g);

        BUG_ON(piece->row + r >= g->rows);
        if (act_is_wide(v))
            dtype_to_f32(DTYPE_F64, act_d(v) + r * v->cols, (size_t)v->cols,
                         (float *)(void *)out);
        else
            dtype_from_f32(g->dtype, act_f(v) + r * v->cols, (size_t)v->cols,
                           out);
    }
}

/* The running argmax over a row that comes in blocks of columns. */
static void choose(struct record *record, const struct tap_piece *piece)
{
    const struct act *v = &piece->values;
    int64_t last = v->rows - 1;

    if (piece->column == 0) {
        record->best = -INFINITY;
        record->is_sound = true;
        record->chosen = 0;
    }
    for (int64_t i = 0; i < v->cols; i++) {
        double x = act_is_wide(v) ? act_d(v)[last * v->cols + i]
                                  : (double)act_f(v)[last * v->cols + i];

        if (!isfinite(x))
            record->is_sound = false;
        if (x > record->best) {
            record->best = x;
            record->chosen = piece->column + i;
        }
    }
}

static int take_piece(void *ctx, const struct tap_piece *piece, struct err *err)
{
    struct record *record = ctx;

    (void)err;
    if (strcmp(piece->name, "logits") == 0) {
        keep(&record->logits, piece);
        choose(record, piece);
    } else if (strcmp(piece->name, "hidden_states") == 0) {
        keep(&record->hidden, piece);
    } else if (strcmp(piece->name, "image_embeds") == 0) {
        keep(&record->images, piece);
    }
    return 0;
}

static int announce(void *ctx, const struct stage_shape *shape, struct err *err)
{
    struct record *record = ctx;
    struct growing *g =
        strcmp(shape->name, "logits") == 0          ? &record->logits
        : strcmp(shape->name, "hidden_states") == 0 ? &record->hidden
        : strcmp(shape->name, "image_embeds") == 0  ? &record->images
                                                    : NULL;

    if (!g)
        return 0;
    g->cols = shape->cols;
    g->dtype = shape->dtype;
    if (g == &record->images)
        g->rows = shape->rows;
    g->data =
        mem_array((size_t)(g->rows * g->cols), stored_size(g), ROWS_CAP, err);
    return g->data ? 0 : -1;
}

/* ---- the file ---- */

static int declare(struct safetensors_writer *w, const struct growing *g,
                   int64_t rows, struct err *err)
{
    return g->data ? safetensors_declare(w, g->name, sink_dtype(g->dtype),
                                         SHAPE(rows, g->cols), err)
                   : 0;
}

static int put(struct safetensors_writer *w, int handle,
               const struct growing *g, int64_t rows, struct err *err)
{
    return g->data
               ? safetensors_write(w, handle, 0, g->data,
                                   (size_t)(rows * g->cols) * stored_size(g),
                                   err)
               : 0;
}

static int write_outputs(const struct record *record, const int64_t *ids,
                         int64_t count, const char *dir, struct err *err)
{
    char *path = path_join(dir, "outputs.safetensors");
    struct safetensors_writer *w = safetensors_create(path, err);

    free(path);
    if (!w)
        return -1;
    int tokens = safetensors_declare(w, "continuation_ids", DTYPE_I64,
                                     SHAPE(count), err);
    int logits = declare(w, &record->logits, count, err);
    int hidden = declare(w, &record->hidden, count, err);
    int images = declare(w, &record->images, record->images.rows, err);
    if (tokens < 0 || logits < 0 || hidden < 0 || images < 0 ||
        safetensors_write(w, tokens, 0, ids, (size_t)count * sizeof(*ids),
                          err) ||
        put(w, logits, &record->logits, count, err) ||
        put(w, hidden, &record->hidden, count, err) ||
        put(w, images, &record->images, record->images.rows, err)) {
        safetensors_abort(w);
        return -1;
    }
    return safetensors_finish(w, err);
}

/* ---- the loop ---- */

static int answer(const struct run *r, int64_t budget, struct record *record,
                  int64_t *ids, int64_t *count, struct err *err)
{
    struct model_tap tap = {record, take_piece};

    if (model_begin(r->model, &r->forward, &r->job.sequences[0], budget, &tap,
                    err))
        return -1;
    for (*count = 0; *count < budget;) {
        if (!record->is_sound)
            return err_set(err, ERR_INPUT,
                           "logits of generated token %lld are not all finite: "
                           "no token can be chosen",
                           (long long)*count);
        ids[(*count)++] = record->chosen;
        printf("%lld\n", (long long)record->chosen);
        if (cli_flush(err))
            return -1;
        if (model_is_stop(r->model, record->chosen) || *count == budget)
            break;
        if (model_step(r->model, record->chosen, &tap, err))
            return -1;
    }
    return 0;
}

static int generate_into(const struct run *r, const char *dir, struct err *err)
{
    const int64_t budget = r->opt->generate;
    struct record record = {
        .logits = {.name = "logits", .rows = budget},
        .hidden = {.name = "hidden_states", .rows = budget},
        .images = {.name = "image_embeds"},
    };
    int64_t *ids = mem_array((size_t)budget, sizeof(*ids), ROWS_CAP, err),
            count = 0;
    int ret = -1;

    if (ids &&
        model_stages(r->model, &r->forward, &r->job.sequences[0], announce,
                     &record, err) == 0 &&
        answer(r, budget, &record, ids, &count, err) == 0)
        ret = write_outputs(&record, ids, count, dir, err);
    free(ids);
    free(record.logits.data);
    free(record.hidden.data);
    free(record.images.data);
    return ret;
}

int generate(const struct run *r, struct err *err)
{
    if (r->job.count != 1)
        return err_set(err, ERR_USAGE, "--generate takes one case, not %zu",
                       r->job.count);
    char *dir = run_case_dir(r, r->out.part, 0);
    int ret = io_make_dirs(dir, err) || generate_into(r, dir, err) ? -1 : 0;
    free(dir);
    return ret;
}
