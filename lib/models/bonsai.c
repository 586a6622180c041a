/*
 * The Bonsai 2 family.  One pass (bonsai_pass.c) and generation with caches
 * (bonsai_generate.c) run the same layers over the same rows in the same order,
 * so they give the same bits.
 */
#include "models/bonsai.h"

#include "base/bug.h"
#include "base/mem.h"
#include "models/bonsai_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

int bonsai_check_precision(enum precision p, struct err *err)
{
    if (p == PRECISION_BF16)
        return err_set(err, ERR_UNSUPPORTED,
                       "precision bf16: a Bonsai 2 pack computes in f16 or "
                       "f32");
    return 0;
}

/* ---- the family ---- */

static struct model *bonsai_open(const struct model_family *family,
                                 const char *pack, bool is_kept,
                                 struct err *err)
{
    struct bonsai *b = xcalloc(1, sizeof(*b));

    b->model.family = family;
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

    bonsai_generation_free(b->generation);
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
    return stops_has(&const_bonsai(m)->config.stops, token);
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
        /* at most 2^48; the sum stays below as well */
        if (g[0] * g[1] * g[2] > s->patch_rows - patches)
            return err_set(err, ERR_INPUT,
                           "patches: %lld rows, the grids up to image %lld "
                           "have more",
                           (long long)s->patch_rows, (long long)i);
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

static json_t *bonsai_keys(const struct model *m)
{
    return ledger_json(const_bonsai(m)->config.ledger);
}

static json_t *bonsai_weight_lines(const struct model *m, struct err *err)
{
    return bonsai_weights_ledger(const_bonsai(m)->weights, err);
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
    .memory = bonsai_memory,
    .begin = bonsai_begin,
    .step = bonsai_step,
    .keys = bonsai_keys,
    .weights = bonsai_weight_lines,
};
