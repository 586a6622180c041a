/*
 * A pack's tensors, one part of the model at a time.
 *
 * A slot says what one member of a part is in the file:
 *
 *     packed   PATH.weight U32 [out, in/16], PATH.scales and PATH.biases F16
 *              [out, in/128], PATH.signs F32 [in] when the module is rotated
 *     dense    NAME F16, BF16 or F32 [out, in...], used as stored
 *     param    NAME F16, BF16 or F32, widened
 */
#include "models/bonsai_weights.h"

#include "base/bug.h"
#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SLOTS = 24, NAME_SIZE = 160, GROUP = 128, WORD = 16, ALIGN = 64 };
static const size_t POOL_CAP = (size_t)1 << 36;

enum slot_kind { SLOT_PACKED, SLOT_DENSE, SLOT_PARAM };

struct slot {
    enum slot_kind kind;
    char name[NAME_SIZE]; /* packed: the path under language_model. */
    struct tensor_shape shape;
    void *target;
};

struct slots {
    struct slot at[MAX_SLOTS];
    size_t count;
};

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
};

/* ---- the description ---- */

static struct slot *add_slot(struct slots *s, enum slot_kind kind, void *target,
                             struct tensor_shape shape)
{
    BUG_ON(s->count == MAX_SLOTS);
    struct slot *slot = &s->at[s->count++];

    *slot = (struct slot){.kind = kind, .shape = shape, .target = target};
    return slot;
}

__attribute__((format(printf, 6, 7))) static void
add_packed(struct slots *s, struct linear *target, int64_t out, int64_t in,
           int64_t layer, const char *format, ...)
{
    struct slot *slot = add_slot(s, SLOT_PACKED, target, SHAPE(out, in));
    int n =
        snprintf(slot->name, NAME_SIZE, "model.layers.%lld.", (long long)layer);
    va_list ap;

    va_start(ap, format);
    vsnprintf(slot->name + n, NAME_SIZE - (size_t)n, format, ap);
    va_end(ap);
}

static void add_tensor(struct slots *s, enum slot_kind kind, void *target,
                       struct tensor_shape shape, const char *prefix,
                       const char *name)
{
    struct slot *slot = add_slot(s, kind, target, shape);

    snprintf(slot->name, NAME_SIZE, "%s%s", prefix, name);
}

static void layer_slots(const struct bonsai_config *c, int64_t i,
                        struct bonsai_layer *l, struct slots *s)
{
    const struct bonsai_text_config *t = &c->text;
    int64_t hidden = t->hidden, head = t->head_dim;
    int64_t keys = t->key_heads * t->key_dim;
    int64_t values = t->value_heads * t->value_dim;
    int64_t channels = 2 * keys + values;
    char at[64], gdn[80], attn[80];

    snprintf(at, sizeof(at), "language_model.model.layers.%lld.", (long long)i);
    snprintf(gdn, sizeof(gdn), "%slinear_attn.", at);
    snprintf(attn, sizeof(attn), "%sself_attn.", at);
    s->count = 0;
    l->is_full = bonsai_layer_is_full(c, i);
    add_tensor(s, SLOT_PARAM, &l->input_norm, SHAPE(hidden), at,
               "input_layernorm.weight");
    add_tensor(s, SLOT_PARAM, &l->post_norm, SHAPE(hidden), at,
               "post_attention_layernorm.weight");
    add_packed(s, &l->gate, t->intermediate, hidden, i, "mlp.gate_proj");
    add_packed(s, &l->up, t->intermediate, hidden, i, "mlp.up_proj");
    add_packed(s, &l->down, hidden, t->intermediate, i, "mlp.down_proj");
    if (l->is_full) {
        add_packed(s, &l->q, t->heads * head * 2, hidden, i,
                   "self_attn.q_proj");
        add_packed(s, &l->k, t->kv_heads * head, hidden, i, "self_attn.k_proj");
        add_packed(s, &l->v, t->kv_heads * head, hidden, i, "self_attn.v_proj");
        add_packed(s, &l->o, hidden, t->heads * head, i, "self_attn.o_proj");
        add_tensor(s, SLOT_PARAM, &l->q_norm, SHAPE(head), attn,
                   "q_norm.weight");
        add_tensor(s, SLOT_PARAM, &l->k_norm, SHAPE(head), attn,
                   "k_norm.weight");
        return;
    }
    add_packed(s, &l->qkv, channels, hidden, i, "linear_attn.in_proj_qkv");
    add_packed(s, &l->z, values, hidden, i, "linear_attn.in_proj_z");
    add_packed(s, &l->out, hidden, values, i, "linear_attn.out_proj");
    add_tensor(s, SLOT_DENSE, &l->a, SHAPE(t->value_heads, hidden), gdn,
               "in_proj_a.weight");
    add_tensor(s, SLOT_DENSE, &l->b, SHAPE(t->value_heads, hidden), gdn,
               "in_proj_b.weight");
    add_tensor(s, SLOT_PARAM, &l->conv, SHAPE(channels, t->conv_kernel, 1), gdn,
               "conv1d.weight");
    add_tensor(s, SLOT_PARAM, &l->a_log, SHAPE(t->value_heads), gdn, "A_log");
    add_tensor(s, SLOT_PARAM, &l->dt_bias, SHAPE(t->value_heads), gdn,
               "dt_bias");
    add_tensor(s, SLOT_PARAM, &l->gdn_norm, SHAPE(t->value_dim), gdn,
               "norm.weight");
}

static void add_affine(struct slots *s, struct affine *a, int64_t out,
                       int64_t in, const char *prefix, const char *name)
{
    char text[NAME_SIZE];

    snprintf(text, sizeof(text), "%s.weight", name);
    add_tensor(s, SLOT_DENSE, &a->weight, SHAPE(out, in), prefix, text);
    snprintf(text, sizeof(text), "%s.bias", name);
    add_tensor(s, SLOT_PARAM, &a->bias, SHAPE(out), prefix, text);
}

static void add_norm(struct slots *s, struct scale_shift *n, int64_t width,
                     const char *prefix, const char *name)
{
    char text[NAME_SIZE];

    snprintf(text, sizeof(text), "%s.weight", name);
    add_tensor(s, SLOT_PARAM, &n->weight, SHAPE(width), prefix, text);
    snprintf(text, sizeof(text), "%s.bias", name);
    add_tensor(s, SLOT_PARAM, &n->bias, SHAPE(width), prefix, text);
}

static void stem_slots(const struct bonsai_config *c,
                       struct bonsai_vision_stem *stem, struct slots *s)
{
    const struct bonsai_vision_config *v = &c->vision;
    static const char at[] = "vision_tower.";

    s->count = 0;
    add_tensor(s, SLOT_DENSE, &stem->patch_embed.weight,
               SHAPE(v->hidden, v->temporal, v->patch, v->patch, v->channels),
               at, "patch_embed.proj.weight");
    add_tensor(s, SLOT_PARAM, &stem->patch_embed.bias, SHAPE(v->hidden), at,
               "patch_embed.proj.bias");
    add_tensor(s, SLOT_PARAM, &stem->pos_embed, SHAPE(v->positions, v->hidden),
               at, "pos_embed.weight");
}

static void vision_block_slots(const struct bonsai_config *c, int64_t i,
                               struct bonsai_vision_block *b, struct slots *s)
{
    const struct bonsai_vision_config *v = &c->vision;
    char at[64];

    snprintf(at, sizeof(at), "vision_tower.blocks.%lld.", (long long)i);
    s->count = 0;
    add_norm(s, &b->norm1, v->hidden, at, "norm1");
    add_norm(s, &b->norm2, v->hidden, at, "norm2");
    add_affine(s, &b->qkv, 3 * v->hidden, v->hidden, at, "attn.qkv");
    add_affine(s, &b->proj, v->hidden, v->hidden, at, "attn.proj");
    add_affine(s, &b->fc1, v->intermediate, v->hidden, at, "mlp.linear_fc1");
    add_affine(s, &b->fc2, v->hidden, v->intermediate, at, "mlp.linear_fc2");
}

static void merger_slots(const struct bonsai_config *c,
                         struct bonsai_vision_merger *m, struct slots *s)
{
    const struct bonsai_vision_config *v = &c->vision;
    int64_t wide = v->hidden * v->merge * v->merge;
    static const char at[] = "vision_tower.merger.";

    s->count = 0;
    add_norm(s, &m->norm, v->hidden, at, "norm");
    add_affine(s, &m->fc1, wide, wide, at, "linear_fc1");
    add_affine(s, &m->fc2, v->out_hidden, wide, at, "linear_fc2");
}

static void final_norm_slots(const struct bonsai_config *c, struct param *p,
                             struct slots *s)
{
    s->count = 0;
    add_tensor(s, SLOT_PARAM, p, SHAPE(c->text.hidden), "language_model.model.",
               "norm.weight");
}

static const char *head_path(const struct bonsai_config *c)
{
    return c->text.is_tied ? "model.embed_tokens" : "lm_head";
}

/* ---- checking ---- */

struct check {
    struct bonsai_weights *w;
    bool *is_used; /* a flag a tensor of the file */
    size_t tensor_count;
    size_t modules_used;
};

static size_t index_of(const struct bonsai_weights *w,
                       const struct tensor_info *info)
{
    size_t low = 0, high = safetensors_count(w->st);

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;

        if (strcmp(safetensors_at(w->st, middle)->name, info->name) <= 0)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static const struct tensor_info *want(const struct bonsai_weights *w,
                                      const char *name, struct err *err)
{
    const struct tensor_info *info = safetensors_find(w->st, name);

    if (!info)
        err_set(err, ERR_INPUT, "the pack holds no tensor '%s'", name);
    return info;
}

static int check_shape(const struct tensor_info *info,
                       const struct tensor_shape *shape, struct err *err)
{
    char got[128], wanted[128];

    if (shape_equal(&info->shape, shape))
        return 0;
    shape_format(&info->shape, got, sizeof(got));
    shape_format(shape, wanted, sizeof(wanted));
    return err_set(err, ERR_INPUT, "tensor '%s' is %s, not %s", info->name, got,
                   wanted);
}

static int check_tensor(struct check *c, const char *name, enum dtype dtype,
                        struct tensor_shape shape, struct err *err)
{
    const struct tensor_info *info = want(c->w, name, err);

    if (!info || check_shape(info, &shape, err))
        return -1;
    if (info->dtype != dtype)
        return err_set(err, ERR_INPUT, "tensor '%s' is %s, not %s", name,
                       dtype_name(info->dtype), dtype_name(dtype));
    c->is_used[index_of(c->w, info)] = true;
    return 0;
}

static int check_float(struct check *c, const struct slot *slot,
                       struct err *err)
{
    const struct tensor_info *info = want(c->w, slot->name, err);

    if (!info || check_shape(info, &slot->shape, err))
        return -1;
    bool is_vision = strncmp(slot->name, "vision_tower.", 13) == 0;
    bool is_known =
        info->dtype == DTYPE_F16 ||
        (!is_vision && (info->dtype == DTYPE_BF16 || info->dtype == DTYPE_F32));
    if (!is_known)
        return err_set(err, ERR_INPUT, "tensor '%s' is %s, not F16%s",
                       slot->name, dtype_name(info->dtype),
                       is_vision ? "" : ", BF16 or F32");
    c->is_used[index_of(c->w, info)] = true;
    return 0;
}

static int check_signs(struct check *c, const char *path, int64_t width,
                       struct err *err)
{
    const struct bonsai_signs *manifest = bonsai_signs(c->w->config, width);
    char name[NAME_SIZE + 32];
    struct tensor stored = {0};
    int ret = -1;

    snprintf(name, sizeof(name), "language_model.%s.signs", path);
    if (check_tensor(c, name, DTYPE_F32, SHAPE(width), err))
        return -1;
    if (!manifest)
        return err_set(err, ERR_INPUT,
                       "hadamard.json has no sign vector of width %lld, which "
                       "'%s' needs",
                       (long long)width, path);
    if (safetensors_load(c->w->st, name, POOL_CAP, &stored, err))
        return -1;
    const float *got = stored.data;
    for (int64_t i = 0; i < width; i++) {
        if (got[i] != 1.0f && got[i] != -1.0f) {
            err_set(err, ERR_INPUT,
                    "tensor '%s': element %lld is neither +1 nor -1", name,
                    (long long)i);
            goto out;
        }
        if (got[i] != manifest->values[i]) {
            err_set(err, ERR_INPUT,
                    "tensor '%s': element %lld differs from hadamard.json's "
                    "vector of width %lld",
                    name, (long long)i, (long long)width);
            goto out;
        }
    }
    ret = 0;
out:
    tensor_release(&stored);
    return ret;
}

static int check_packed(struct check *c, const char *path, int64_t out,
                        int64_t in, struct err *err)
{
    const struct bonsai_module *m = bonsai_module(c->w->config, path);
    struct tensor_shape groups = SHAPE(out, in / GROUP);
    char name[NAME_SIZE + 32];

    if (!m)
        return err_set(err, ERR_INPUT, "config.json lists no module '%s'",
                       path);
    c->modules_used++;
    if (m->block && in % m->block)
        return err_set(err, ERR_INPUT,
                       "module '%s': width %lld is no multiple of its block "
                       "%lld",
                       path, (long long)in, (long long)m->block);
    snprintf(name, sizeof(name), "language_model.%s.weight", path);
    if (check_tensor(c, name, DTYPE_U32, SHAPE(out, in / WORD), err))
        return -1;
    snprintf(name, sizeof(name), "language_model.%s.scales", path);
    if (check_tensor(c, name, DTYPE_F16, groups, err))
        return -1;
    snprintf(name, sizeof(name), "language_model.%s.biases", path);
    if (check_tensor(c, name, DTYPE_F16, groups, err))
        return -1;
    return m->block ? check_signs(c, path, in, err) : 0;
}

static int check_slots(struct check *c, const struct slots *s, struct err *err)
{
    for (size_t i = 0; i < s->count; i++) {
        const struct slot *slot = &s->at[i];

        if (slot->kind == SLOT_PACKED
                ? check_packed(c, slot->name, slot->shape.size[0],
                               slot->shape.size[1], err)
                : check_float(c, slot, err))
            return -1;
    }
    return 0;
}

static int check_leftovers(const struct check *c, struct err *err)
{
    const struct bonsai_config *config = c->w->config;

    for (size_t i = 0; i < c->tensor_count; i++)
        if (!c->is_used[i])
            return err_set(err, ERR_INPUT,
                           "tensor '%s' has no place in the model",
                           safetensors_at(c->w->st, i)->name);
    if ((int64_t)c->modules_used != config->module_count)
        return err_set(err, ERR_INPUT,
                       "config.json lists %lld modules, the model has %zu",
                       (long long)config->module_count, c->modules_used);
    return 0;
}

/* ---- sizes ---- */

static size_t round_up(size_t n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

static size_t packed_bytes(int64_t rows, int64_t in)
{
    return round_up((size_t)(rows * (in / WORD)) * sizeof(uint32_t)) +
           2 * round_up((size_t)(rows * (in / GROUP)) * sizeof(uint16_t));
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

/* Visits every part: checks it, and finds the largest. */
static int check_all(struct check *c, size_t *largest, struct err *err)
{
    struct bonsai_weights *w = c->w;
    const struct bonsai_text_config *t = &w->config->text;
    struct bonsai_layer layer;
    struct bonsai_vision_stem stem;
    struct bonsai_vision_block block;
    struct bonsai_vision_merger merger;
    struct param norm;
    struct slots s;

    *largest = packed_bytes(BONSAI_HEAD_ROWS, t->hidden);
    if (check_packed(c, "model.embed_tokens", t->vocab, t->hidden, err) ||
        (!t->is_tied && check_packed(c, "lm_head", t->vocab, t->hidden, err)))
        return -1;
    for (int64_t i = 0; i < t->layers; i++) {
        layer_slots(w->config, i, &layer, &s);
        if (check_slots(c, &s, err))
            return -1;
        *largest = larger(*largest, slots_bytes(w, &s));
    }
    final_norm_slots(w->config, &norm, &s);
    if (check_slots(c, &s, err))
        return -1;
    stem_slots(w->config, &stem, &s);
    if (check_slots(c, &s, err))
        return -1;
    *largest = larger(*largest, slots_bytes(w, &s));
    for (int64_t i = 0; i < w->config->vision.depth; i++) {
        vision_block_slots(w->config, i, &block, &s);
        if (check_slots(c, &s, err))
            return -1;
        *largest = larger(*largest, slots_bytes(w, &s));
    }
    merger_slots(w->config, &merger, &s);
    if (check_slots(c, &s, err))
        return -1;
    *largest = larger(*largest, slots_bytes(w, &s));
    return check_leftovers(c, err);
}

struct bonsai_weights *bonsai_weights_open(const struct bonsai_config *config,
                                           const char *pack, bool is_kept,
                                           struct err *err)
{
    struct bonsai_weights *w = xcalloc(1, sizeof(*w));
    struct check check = {.w = w};
    size_t largest = 0;
    int ret = -1;

    w->config = config;
    w->is_kept = is_kept;
    w->st = safetensors_open_pack(pack, err);
    if (!w->st)
        goto out;
    const char *format = safetensors_metadata(w->st, "format");
    if (!format || strcmp(format, "mlx") != 0) {
        err_set(err, ERR_UNSUPPORTED,
                "the tensors' metadata does not say format 'mlx'");
        goto out;
    }
    check.tensor_count = safetensors_count(w->st);
    check.is_used = xcalloc(check.tensor_count, sizeof(bool));
    if (check_all(&check, &largest, err))
        goto out;
    w->layers =
        xcalloc(is_kept ? (size_t)config->text.layers : 1, sizeof(*w->layers));
    w->layer_pools =
        xcalloc((size_t)config->text.layers, sizeof(*w->layer_pools));
    w->pool.base = mem_array(largest, 1, POOL_CAP, err);
    w->pool.size = largest;
    ret = w->pool.base ? 0 : -1;
out:
    free(check.is_used);
    if (ret) {
        err_in(err, "%s", pack);
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

/* ---- reading ---- */

static void *take(struct pool *pool, size_t bytes)
{
    void *p = pool->base + pool->used;

    pool->used += round_up(bytes);
    BUG_ON(pool->used > pool->size);
    return p;
}

/* Rows [first, first + count) of a two-dimensional tensor. */
static void *read_rows(struct bonsai_weights *w, struct pool *pool,
                       const char *name, int64_t first, int64_t count,
                       struct err *err)
{
    const struct tensor_info *info = safetensors_find(w->st, name);
    int64_t row = info->bytes / info->shape.size[0];
    void *data = take(pool, (size_t)(row * count));

    if (safetensors_read(w->st, info, first * row, (size_t)(row * count), data,
                         err))
        return NULL;
    return data;
}

static int read_packed(struct bonsai_weights *w, struct pool *pool,
                       const char *path, int64_t first, int64_t count,
                       int64_t in, struct linear *out, struct err *err)
{
    const struct bonsai_module *m = bonsai_module(w->config, path);
    char name[NAME_SIZE + 32];

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

    if (safetensors_read(w->st, info, 0, (size_t)info->bytes, raw, err))
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
    layer_slots(w->config, layer, l, &s);
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

    stem_slots(w->config, out, &s);
    return read_slots(w, &w->pool, &s, err);
}

int bonsai_load_vision_block(struct bonsai_weights *w, int64_t block,
                             struct bonsai_vision_block *out, struct err *err)
{
    struct slots s;

    vision_block_slots(w->config, block, out, &s);
    return read_slots(w, &w->pool, &s, err);
}

int bonsai_load_merger(struct bonsai_weights *w,
                       struct bonsai_vision_merger *out, struct err *err)
{
    struct slots s;

    merger_slots(w->config, out, &s);
    return read_slots(w, &w->pool, &s, err);
}

int bonsai_load_final_norm(struct bonsai_weights *w, struct param *out,
                           struct err *err)
{
    struct slots s;

    final_norm_slots(w->config, out, &s);
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
