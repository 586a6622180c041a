/* A pack's tensors, one part of the model at a time. */
#include "models/bonsai_weights.h"

#include "base/bug.h"
#include "base/mem.h"
#include "models/bonsai_slots.h"
#include "models/weight_buffer.h"
#include "models/weight_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t BUFFER_CAP = (size_t)1 << 36;

struct bonsai_weights {
    const struct bonsai_config *config;
    struct safetensors *st;
    bool is_kept;
    struct weight_buffer buffer;         /* parts that are read and dropped */
    struct weight_buffer *layer_buffers; /* kept layers: one each */
    struct bonsai_layer *layers;         /* kept layers, or one */
    int64_t *bytes_read;                 /* by place in the pack */
};

/* ---- sizes ---- */

static size_t packed_bytes(int64_t rows, int64_t in)
{
    return weight_buffer_piece((size_t)(rows * (in / BONSAI_WORD)) *
                               sizeof(uint32_t)) +
           2 * weight_buffer_piece((size_t)(rows * (in / BONSAI_GROUP)) *
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
        return weight_buffer_piece(
            (size_t)safetensors_find(w->st, slot->name)->bytes);
    default: /* raw bytes, and both widenings */
        return 2 * weight_buffer_piece(n * sizeof(float)) +
               weight_buffer_piece(n * sizeof(double));
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
    w->layer_buffers =
        xcalloc((size_t)config->text.layers, sizeof(*w->layer_buffers));
    ret = weight_buffer_reserve(&w->buffer, largest_part(w), BUFFER_CAP, err);
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
    if (w->layer_buffers)
        for (int64_t i = 0; i < w->config->text.layers; i++)
            free(w->layer_buffers[i].base);
    free(w->layer_buffers);
    free(w->bytes_read);
    free(w->layers);
    free(w->buffer.base);
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
    return w->buffer.size;
}

/* ---- reading ---- */

static const char *head_path(const struct bonsai_config *c)
{
    return c->text.is_tied ? "model.embed_tokens" : "lm_head";
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
static void *read_rows(struct bonsai_weights *w, struct weight_buffer *buffer,
                       const char *name, int64_t first, int64_t count,
                       struct err *err)
{
    const struct tensor_info *info = safetensors_find(w->st, name);
    int64_t row = info->bytes / info->shape.size[0];
    void *data = weight_buffer_take(buffer, (size_t)(row * count));

    if (read_bytes(w, info, first * row, row * count, data, err))
        return NULL;
    return data;
}

static int read_packed(struct bonsai_weights *w, struct weight_buffer *buffer,
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
    out->weight.codes = read_rows(w, buffer, name, first, count, err);
    snprintf(name, sizeof(name), "language_model.%s.scales", path);
    if (out->weight.codes)
        out->weight.scales = read_rows(w, buffer, name, first, count, err);
    if (!out->weight.codes || !out->weight.scales)
        return -1;
    size_t mark = buffer->used;
    snprintf(name, sizeof(name), "language_model.%s.biases", path);
    const uint16_t *biases = read_rows(w, buffer, name, first, count, err);
    buffer->used = mark; /* only to be checked */
    if (!biases)
        return -1;
    if (packed_check(&out->weight, biases, err))
        return err_in(err, "%s: module '%s', rows from %lld",
                      safetensors_path(w->st, safetensors_find(w->st, name)),
                      path, (long long)first);
    return 0;
}

static int read_param(struct bonsai_weights *w, struct weight_buffer *buffer,
                      const struct slot *slot, struct err *err)
{
    const struct tensor_info *info = safetensors_find(w->st, slot->name);
    struct param *p = slot->target;
    size_t n = (size_t)shape_count(&info->shape);
    float *f = weight_buffer_take(buffer, n * sizeof(*f));
    double *d = weight_buffer_take(buffer, n * sizeof(*d));
    size_t mark = buffer->used;
    void *raw = weight_buffer_take(buffer, (size_t)info->bytes);

    if (read_bytes(w, info, 0, info->bytes, raw, err))
        return -1;
    dtype_to_f32(info->dtype, raw, n, f);
    dtype_to_f64(info->dtype, raw, n, d);
    buffer->used = mark;
    *p = (struct param){info->dtype, (int64_t)n, f, d};
    return 0;
}

static int read_dense(struct bonsai_weights *w, struct weight_buffer *buffer,
                      const struct slot *slot, struct err *err)
{
    const struct tensor_info *info = safetensors_find(w->st, slot->name);
    struct dense_weight *dense = slot->target;
    int64_t out = info->shape.size[0];

    dense->dtype = info->dtype;
    dense->out = out;
    dense->in = shape_count(&info->shape) / out;
    dense->data = read_rows(w, buffer, slot->name, 0, out, err);
    return dense->data ? 0 : -1;
}

static int read_slots(struct bonsai_weights *w, struct weight_buffer *buffer,
                      const struct slots *s, struct err *err)
{
    buffer->used = 0;
    for (size_t i = 0; i < s->count; i++) {
        const struct slot *slot = &s->at[i];
        int64_t out = slot->shape.size[0], in = slot->shape.size[1];
        int ret;

        if (slot->kind == SLOT_PACKED)
            ret = read_packed(w, buffer, slot->name, 0, out, in, slot->target,
                              err);
        else if (slot->kind == SLOT_DENSE)
            ret = read_dense(w, buffer, slot, err);
        else
            ret = read_param(w, buffer, slot, err);
        if (ret)
            return -1;
    }
    return 0;
}

int bonsai_load_layer(struct bonsai_weights *w, int64_t layer,
                      const struct bonsai_layer **out, struct err *err)
{
    struct bonsai_layer *l = &w->layers[w->is_kept ? layer : 0];
    struct weight_buffer *buffer =
        w->is_kept ? &w->layer_buffers[layer] : &w->buffer;
    struct slots s;

    *out = l;
    if (w->is_kept && buffer->base)
        return 0;
    bonsai_layer_slots(w->config, layer, l, &s);
    if (w->is_kept &&
        weight_buffer_reserve(buffer, slots_bytes(w, &s), BUFFER_CAP, err))
        return -1;
    return read_slots(w, buffer, &s, err);
}

int bonsai_load_stem(struct bonsai_weights *w, struct bonsai_vision_stem *out,
                     struct err *err)
{
    struct slots s;

    bonsai_stem_slots(w->config, out, &s);
    return read_slots(w, &w->buffer, &s, err);
}

int bonsai_load_vision_block(struct bonsai_weights *w, int64_t block,
                             struct bonsai_vision_block *out, struct err *err)
{
    struct slots s;

    bonsai_vision_block_slots(w->config, block, out, &s);
    return read_slots(w, &w->buffer, &s, err);
}

int bonsai_load_merger(struct bonsai_weights *w,
                       struct bonsai_vision_merger *out, struct err *err)
{
    struct slots s;

    bonsai_merger_slots(w->config, out, &s);
    return read_slots(w, &w->buffer, &s, err);
}

int bonsai_load_final_norm(struct bonsai_weights *w, struct param *out,
                           struct err *err)
{
    struct slots s;

    bonsai_final_norm_slots(w->config, out, &s);
    return read_slots(w, &w->buffer, &s, err);
}

int bonsai_load_embedding(struct bonsai_weights *w, int64_t first,
                          int64_t count, struct linear *out, struct err *err)
{
    BUG_ON(count > BONSAI_HEAD_ROWS);
    w->buffer.used = 0;
    return read_packed(w, &w->buffer, "model.embed_tokens", first, count,
                       w->config->text.hidden, out, err);
}

int bonsai_load_head(struct bonsai_weights *w, int64_t first, int64_t count,
                     struct linear *out, struct err *err)
{
    BUG_ON(count > BONSAI_HEAD_ROWS);
    w->buffer.used = 0;
    return read_packed(w, &w->buffer, head_path(w->config), first, count,
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
