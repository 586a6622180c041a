/* A pack's tensors, one part of the model at a time. */
#include "models/bonsai_weights.h"

#include "base/bug.h"
#include "base/mem.h"
#include "models/bonsai_slots.h"
#include "models/weight_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64 };
static const size_t POOL_CAP = (size_t)1 << 36;

/* One buffer, handed out front to back. */
struct pool {
    char *base;
    size_t size, used;
};

struct bonsai_weights {
    const struct bonsai_config *config;
    struct safetensors *st;
    bool is_kept;
    struct pool pool;            /* parts that are read and dropped */
    struct pool *layer_pools;    /* kept layers: one each */
    struct bonsai_layer *layers; /* kept layers, or one */
    int64_t *bytes_read;         /* by place in the pack */
};

/* ---- sizes ---- */

static size_t round_up(size_t n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

static size_t packed_bytes(int64_t rows, int64_t in)
{
    return round_up((size_t)(rows * (in / BONSAI_WORD)) * sizeof(uint32_t)) +
           2 * round_up((size_t)(rows * (in / BONSAI_GROUP)) *
                        sizeof(uint16_t));
}

static size_t slot_bytes(const struct bonsai_weights *w,
                         const struct slot *slot)
{
    size_t n = (size_t)shape_count(&slot->shape);

    switch (slot->kind) {
    case SLOT_PACKED:
        return packed_bytes(slot->shape.size[0], slot->shape.size[1]);
    case SLOT_DENSE:
        return round_up((size_t)safetensors_find(w->st, slot->name)->bytes);
    default: /* raw bytes, and both widenings */
        return 2 * round_up(n * sizeof(float)) + round_up(n * sizeof(double));
    }
}

static size_t slots_bytes(const struct bonsai_weights *w, const struct slots *s)
{
    size_t sum = 0;

    for (size_t i = 0; i < s->count; i++)
        sum += slot_bytes(w, &s->at[i]);
    return sum;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* The bytes of the largest part. */
static size_t largest_part(const struct bonsai_weights *w)
{
    const struct bonsai_config *c = w->config;
    size_t largest = packed_bytes(BONSAI_HEAD_ROWS, c->text.hidden);
    union {
        struct bonsai_layer layer;
        struct bonsai_vision_stem stem;
        struct bonsai_vision_block block;
        struct bonsai_vision_merger merger;
    } part;
    struct slots s;

    for (int64_t i = 0; i < c->text.layers; i++) {
        bonsai_layer_slots(c, i, &part.layer, &s);
        largest = larger(largest, slots_bytes(w, &s));
    }
    bonsai_stem_slots(c, &part.stem, &s);
    largest = larger(largest, slots_bytes(w, &s));
    bonsai_vision_block_slots(c, 0, &part.block, &s);
    largest = larger(largest, slots_bytes(w, &s));
    bonsai_merger_slots(c, &part.merger, &s);
    return larger(largest, slots_bytes(w, &s));
}

struct bonsai_weights *bonsai_weights_open(const struct bonsai_config *config,
                                           const char *pack, bool is_kept,
                                           struct err *err)
{
    struct bonsai_weights *w = xcalloc(1, sizeof(*w));
    int ret = -1;

    w->config = config;
    w->is_kept = is_kept;
    w->st = safetensors_open_pack(pack, err);
    if (!w->st)
        goto out;
    if (bonsai_check_pack(config, w->st, err)) {
        err_in(err, "%s", pack);
        goto out;
    }
    w->bytes_read =
        xcalloc(safetensors_count(w->st) + 1, sizeof(*w->bytes_read));
    w->layers =
        xcalloc(is_kept ? (size_t)config->text.layers : 1, sizeof(*w->layers));
    w->layer_pools =
        xcalloc((size_t)config->text.layers, sizeof(*w->layer_pools));
    w->pool.size = largest_part(w);
    w->pool.base = mem_array(w->pool.size, 1, POOL_CAP, err);
    ret = w->pool.base ? 0 : -1;
out:
    if (ret) {
        bonsai_weights_close(w);
        return NULL;
    }
    return w;
}

void bonsai_weights_close(struct bonsai_weights *w)
{
    if (!w)
        return;
    if (w->layer_pools)
        for (int64_t i = 0; i < w->config->text.layers; i++)
            free(w->layer_pools[i].base);
    free(w->layer_pools);
    free(w->bytes_read);
    free(w->layers);
    free(w->pool.base);
    safetensors_close(w->st);
    free(w);
}

enum dtype bonsai_weights_dtype(const struct bonsai_weights *w,
                                const char *name)
{
    const struct tensor_info *info = safetensors_find(w->st, name);

    BUG_ON(!info);
    return info->dtype;
}

size_t bonsai_weights_bytes(const struct bonsai_weights *w)
{
    return w->pool.size;
}

/* ---- reading ---- */

static const char *head_path(const struct bonsai_config *c)
{
    return c->text.is_tied ? "model.embed_tokens" : "lm_head";
}

static void *take(struct pool *pool, size_t bytes)
{
    void *p = pool->base + pool->used;

    pool->used += round_up(bytes);
    BUG_ON(pool->used > pool->size);
    return p;
}

static int read_bytes(struct bonsai_weights *w, const struct tensor_info *info,
                      int64_t offset, int64_t n, void *out, struct err *err)
{
    size_t place = 0;

    while (safetensors_at(w->st, place) != info)
        place++;
    w->bytes_read[place] += n;
    return safetensors_read(w->st, info, offset, (size_t)n, out, err);
}

/* Rows [first, first + count) of a two-dimensional tensor. */
static void *read_rows(struct bonsai_weights *w, struct pool *pool,
                       const char *name, int64_t first, int64_t count,
                       struct err *err)
{
    const struct tensor_info *info = safetensors_find(w->st, name);
    int64_t row = info->bytes / info->shape.size[0];
    void *data = take(pool, (size_t)(row * count));

    if (read_bytes(w, info, first * row, row * count, data, err))
        return NULL;
    return data;
}

static int read_packed(struct bonsai_weights *w, struct pool *pool,
                       const char *path, int64_t first, int64_t count,
                       int64_t in, struct linear *out, struct err *err)
{
    const struct bonsai_module *m = bonsai_module(w->config, path);
    char name[BONSAI_NAME_SIZE + 32];

    out->block = m->block;
    out->signs = m->block ? bonsai_signs(w->config, in)->values : NULL;
    out->wide_signs = m->block ? bonsai_signs(w->config, in)->wide : NULL;
    out->weight.out = count;
    out->weight.in = in;
    snprintf(name, sizeof(name), "language_model.%s.weight", path);
    out->weight.codes = read_rows(w, pool, name, first, count, err);
    snprintf(name, sizeof(name), "language_model.%s.scales", path);
    if (out->weight.codes)
        out->weight.scales = read_rows(w, pool, name, first, count, err);
    if (!out->weight.codes || !out->weight.scales)
        return -1;
    size_t mark = pool->used;
    snprintf(name, sizeof(name), "language_model.%s.biases", path);
    const uint16_t *biases = read_rows(w, pool, name, first, count, err);
    pool->used = mark; /* only to be checked */
    if (!biases)
        return -1;
    if (packed_check(&out->weight, biases, err))
        return err_in(err, "%s: module '%s', rows from %lld",
                      safetensors_path(w->st, safetensors_find(w->st, name)),
                      path, (long long)first);
    return 0;
}

static int read_param(struct bonsai_weights *w, struct pool *pool,
                      const struct slot *slot, struct err *err)
{
    const struct tensor_info *info = safetensors_find(w->st, slot->name);
    struct param *p = slot->target;
    size_t n = (size_t)shape_count(&info->shape);
    float *f = take(pool, n * sizeof(*f));
    double *d = take(pool, n * sizeof(*d));
    size_t mark = pool->used;
    void *raw = take(pool, (size_t)info->bytes);

    if (read_bytes(w, info, 0, info->bytes, raw, err))
        return -1;
    dtype_to_f32(info->dtype, raw, n, f);
    dtype_to_f64(info->dtype, raw, n, d);
    pool->used = mark;
    *p = (struct param){info->dtype, (int64_t)n, f, d};
    return 0;
}

static int read_dense(struct bonsai_weights *w, struct pool *pool,
                      const struct slot *slot, struct err *err)
{
    const struct tensor_info *info = safetensors_find(w->st, slot->name);
    struct dense_weight *dense = slot->target;
    int64_t out = info->shape.size[0];

    dense->dtype = info->dtype;
    dense->out = out;
    dense->in = shape_count(&info->shape) / out;
    dense->data = read_rows(w, pool, slot->name, 0, out, err);
    return dense->data ? 0 : -1;
}

static int read_slots(struct bonsai_weights *w, struct pool *pool,
                      const struct slots *s, struct err *err)
{
    pool->used = 0;
    for (size_t i = 0; i < s->count; i++) {
        const struct slot *slot = &s->at[i];
        int64_t out = slot->shape.size[0], in = slot->shape.size[1];
        int ret;

        if (slot->kind == SLOT_PACKED)
            ret =
                read_packed(w, pool, slot->name, 0, out, in, slot->target, err);
        else if (slot->kind == SLOT_DENSE)
            ret = read_dense(w, pool, slot, err);
        else
            ret = read_param(w, pool, slot, err);
        if (ret)
            return -1;
    }
    return 0;
}

int bonsai_load_layer(struct bonsai_weights *w, int64_t layer,
                      const struct bonsai_layer **out, struct err *err)
{
    struct bonsai_layer *l = &w->layers[w->is_kept ? layer : 0];
    struct pool *pool = w->is_kept ? &w->layer_pools[layer] : &w->pool;
    struct slots s;

    *out = l;
    if (w->is_kept && pool->base)
        return 0;
    bonsai_layer_slots(w->config, layer, l, &s);
    if (w->is_kept) {
        pool->size = slots_bytes(w, &s);
        pool->base = mem_array(pool->size, 1, POOL_CAP, err);
        if (!pool->base)
            return -1;
    }
    return read_slots(w, pool, &s, err);
}

int bonsai_load_stem(struct bonsai_weights *w, struct bonsai_vision_stem *out,
                     struct err *err)
{
    struct slots s;

    bonsai_stem_slots(w->config, out, &s);
    return read_slots(w, &w->pool, &s, err);
}

int bonsai_load_vision_block(struct bonsai_weights *w, int64_t block,
                             struct bonsai_vision_block *out, struct err *err)
{
    struct slots s;

    bonsai_vision_block_slots(w->config, block, out, &s);
    return read_slots(w, &w->pool, &s, err);
}

int bonsai_load_merger(struct bonsai_weights *w,
                       struct bonsai_vision_merger *out, struct err *err)
{
    struct slots s;

    bonsai_merger_slots(w->config, out, &s);
    return read_slots(w, &w->pool, &s, err);
}

int bonsai_load_final_norm(struct bonsai_weights *w, struct param *out,
                           struct err *err)
{
    struct slots s;

    bonsai_final_norm_slots(w->config, out, &s);
    return read_slots(w, &w->pool, &s, err);
}

int bonsai_load_embedding(struct bonsai_weights *w, int64_t first,
                          int64_t count, struct linear *out, struct err *err)
{
    BUG_ON(count > BONSAI_HEAD_ROWS);
    w->pool.used = 0;
    return read_packed(w, &w->pool, "model.embed_tokens", first, count,
                       w->config->text.hidden, out, err);
}

int bonsai_load_head(struct bonsai_weights *w, int64_t first, int64_t count,
                     struct linear *out, struct err *err)
{
    BUG_ON(count > BONSAI_HEAD_ROWS);
    w->pool.used = 0;
    return read_packed(w, &w->pool, head_path(w->config), first, count,
                       w->config->text.hidden, out, err);
}

/* ---- the ledger ---- */

struct stored {
    const struct safetensors *st;
    const struct tensor_info *info;
};

static int read_stored(void *ctx, int64_t first, size_t n, float *scratch,
                       float *out, struct err *err)
{
    const struct stored *s = ctx;
    size_t size = dtype_bits(s->info->dtype) / 8;

    if (safetensors_read(s->st, s->info, first * (int64_t)size, n * size,
                         scratch, err))
        return -1;
    dtype_to_f32(s->info->dtype, scratch, n, out);
    return 0;
}

json_t *bonsai_weights_ledger(const struct bonsai_weights *w, struct err *err)
{
    json_t *out = json_array();

    for (size_t i = 0; i < safetensors_count(w->st); i++) {
        struct stored s = {w->st, safetensors_at(w->st, i)};
        double times = (double)w->bytes_read[i] /
                       (double)(s.info->bytes > 0 ? s.info->bytes : 1);
        json_t *line = weight_line(w->st, s.info, s.info->name,
                                   times > 0 ? "read" : "unread", times);

        json_array_append_new(out, line);
        if (weight_line_measure(line, w->st, s.info, read_stored, &s, err)) {
            json_decref(out);
            return NULL;
        }
    }
    return out;
}
