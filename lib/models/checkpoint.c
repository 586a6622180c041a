/* A Hugging Face checkpoint by tensor name, one part of the model at a time. */
#include "models/checkpoint.h"

#include "base/arena.h"
#include "base/bug.h"
#include "base/mem.h"
#include "hash/hash.h"
#include "models/quantized.h"
#include "models/weight_line.h"
#include "safetensors/safetensors.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_SIZE = 256, ALIGN = 64, PIECE = 1 << 16, BLOCK = 128 };
static const size_t BUFFER_CAP = (size_t)1 << 40;

enum wanted_kind { WANTED_DENSE, WANTED_PARAM, WANTED_INTS };

/* Elements [offset, offset + count) of a tensor. */
struct wanted {
    enum wanted_kind kind;
    char name[NAME_SIZE];
    struct tensor_shape shape; /* of the whole; of a param any of that count */
    int64_t offset, count;
    int64_t out, in;
    bool is_kept;
    void *target;
    bool is_prefix; /* may the tensor be longer? */
};

struct entry {
    const struct tensor_info *info;
    const char *name; /* canonical; NULL: ignored */
    bool is_wanted, is_skipped;
    int64_t elements_read;
    const struct entry *same; /* an earlier one of this name and these bytes */
};

struct buffer {
    char *base;
    size_t size, used;
};

struct checkpoint {
    const struct checkpoint_names *names;
    struct safetensors *st;
    struct entry *entries; /* sorted by canonical name, ignored ones last */
    size_t count, named;   /* all; those that have a name */
    enum precision precision;
    struct buffer buffers[2];
    struct arena arena;
};

/* ---- names ---- */

static void rename_once(const struct rename *rule, char *name)
{
    char from[NAME_SIZE], tail[NAME_SIZE];
    size_t n = strlen(rule->from), len = strlen(name);
    bool at_start = rule->from[0] == '^';
    bool at_end = n > 0 && rule->from[n - 1] == '$';
    char *at;

    n -= (size_t)at_start + (size_t)at_end;
    BUG_ON(n >= sizeof(from));
    memcpy(from, rule->from + at_start, n);
    from[n] = '\0';
    if (at_start)
        at = strncmp(name, from, n) == 0 ? name : NULL;
    else if (at_end)
        at = len >= n && strcmp(name + len - n, from) == 0 ? name + len - n
                                                           : NULL;
    else
        at = strstr(name, from);
    if (!at || len - n + strlen(rule->to) >= NAME_SIZE)
        return;
    strcpy(tail, at + n);
    strcpy(at, rule->to);
    strcat(at, tail);
}

static bool is_past_layers(const struct checkpoint_names *names,
                           const char *name)
{
    static const char prefix[] = "model.layers.";
    char *end;

    if (names->layers == 0 || strncmp(name, prefix, strlen(prefix)) != 0)
        return false;
    long long n = strtoll(name + strlen(prefix), &end, 10);
    return *end == '.' && n >= names->layers;
}

/* The canonical name, or NULL for an ignored tensor. */
static const char *canonical(struct checkpoint *c, const char *stored)
{
    const struct checkpoint_names *names = c->names;
    char name[NAME_SIZE];

    for (size_t i = 0; names->ignored && names->ignored[i]; i++)
        if (fnmatch(names->ignored[i], stored, 0) == 0)
            return NULL;
    if (strlen(stored) >= NAME_SIZE) /* nothing that is ever wanted */
        return arena_strdup(&c->arena, stored);
    strcpy(name, stored);
    for (const struct rename *r = names->renames; r && r->from; r++)
        rename_once(r, name);
    return is_past_layers(names, name) ? NULL : arena_strdup(&c->arena, name);
}

static int by_name(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    if (!x->name != !y->name)
        return x->name ? -1 : 1;
    if (!x->name)
        return strcmp(x->info->name, y->info->name);
    int order = strcmp(x->name, y->name);
    return order ? order : strcmp(x->info->name, y->info->name);
}

static struct entry *find(const struct checkpoint *c, const char *name)
{
    size_t low = 0, high = c->named;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(c->entries[middle].name, name);

        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == c->named || strcmp(c->entries[low].name, name) != 0)
        return NULL;
    return &c->entries[low];
}

static int check_duplicates(struct checkpoint *c, struct err *err)
{
    char first[HASH_SHA256_HEX], second[HASH_SHA256_HEX];

    for (size_t i = 1; i < c->named; i++) {
        struct entry *a = &c->entries[i - 1], *b = &c->entries[i];

        if (strcmp(a->name, b->name) != 0)
            continue;
        if (weight_digest(c->st, a->info, first, err) ||
            weight_digest(c->st, b->info, second, err))
            return -1;
        if (a->info->dtype != b->info->dtype || strcmp(first, second) != 0)
            return err_set(err, ERR_INPUT,
                           "tensors '%s' and '%s' are one tensor of the model, "
                           "with different bytes",
                           a->info->name, b->info->name);
        b->same = a->same ? a->same : a;
    }
    return 0;
}

struct checkpoint *checkpoint_open(const char *pack,
                                   const struct checkpoint_names *names,
                                   struct err *err)
{
    struct safetensors *st = safetensors_open_pack(pack, err);

    if (!st)
        return NULL;
    struct checkpoint *c = xcalloc(1, sizeof(*c));
    c->names = names;
    c->st = st;
    c->precision = PRECISION_F32;
    c->count = safetensors_count(st);
    c->entries = xcalloc(c->count + 1, sizeof(*c->entries));
    for (size_t i = 0; i < c->count; i++) {
        c->entries[i].info = safetensors_at(st, i);
        c->entries[i].name = canonical(c, c->entries[i].info->name);
        c->named += c->entries[i].name != NULL;
    }
    qsort(c->entries, c->count, sizeof(*c->entries), by_name);
    if (check_duplicates(c, err)) {
        checkpoint_close(c);
        return NULL;
    }
    return c;
}

void checkpoint_close(struct checkpoint *c)
{
    if (!c)
        return;
    for (int i = 0; i < 2; i++)
        free(c->buffers[i].base);
    arena_release(&c->arena);
    free(c->entries);
    safetensors_close(c->st);
    free(c);
}

void checkpoint_set_precision(struct checkpoint *c, enum precision p)
{
    c->precision = p;
}

/* ---- parts ---- */

void part_clear(struct part *p)
{
    p->count = 0;
    p->is_kept = false;
}

void part_release(struct part *p)
{
    free(p->items);
    *p = (struct part)PART_INIT;
}

static struct wanted *add(struct part *p, enum wanted_kind kind, void *target,
                          const char *format, va_list ap)
{
    if (p->count == p->capacity) {
        p->capacity = p->capacity ? 2 * p->capacity : 32;
        p->items = xrealloc(p->items, p->capacity * sizeof(*p->items));
    }
    struct wanted *w = &p->items[p->count++];
    *w = (struct wanted){.kind = kind, .is_kept = p->is_kept, .target = target};
    int n = vsnprintf(w->name, NAME_SIZE, format, ap);
    BUG_ON(n < 0 || n >= NAME_SIZE);
    return w;
}

void part_dense(struct part *p, struct dense_weight *target, int64_t out,
                int64_t in, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    struct wanted *w = add(p, WANTED_DENSE, target, format, ap);
    va_end(ap);
    w->shape = SHAPE(out, in);
    w->count = out * in;
    w->out = out;
    w->in = in;
}

void part_rows(struct part *p, struct dense_weight *target, int64_t out,
               int64_t first, int64_t count, int64_t in, const char *format,
               ...)
{
    va_list ap;

    BUG_ON(first + count > out);
    va_start(ap, format);
    struct wanted *w = add(p, WANTED_DENSE, target, format, ap);
    va_end(ap);
    w->shape = SHAPE(out, in);
    w->offset = first * in;
    w->count = count * in;
    w->out = count;
    w->in = in;
}

void part_slice(struct part *p, struct dense_weight *target, int64_t count,
                int64_t index, int64_t rows, int64_t first, int64_t out,
                int64_t in, const char *format, ...)
{
    va_list ap;

    BUG_ON(index >= count || first + out > rows);
    va_start(ap, format);
    struct wanted *w = add(p, WANTED_DENSE, target, format, ap);
    va_end(ap);
    w->shape = SHAPE(count, rows, in);
    w->offset = (index * rows + first) * in;
    w->count = out * in;
    w->out = out;
    w->in = in;
}

void part_param(struct part *p, struct param *target, int64_t count,
                const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    struct wanted *w = add(p, WANTED_PARAM, target, format, ap);
    va_end(ap);
    w->shape = SHAPE(count);
    w->count = count;
}

void part_params(struct part *p, struct param *target, int64_t total,
                 int64_t first, int64_t count, const char *format, ...)
{
    va_list ap;

    BUG_ON(first + count > total);
    va_start(ap, format);
    struct wanted *w = add(p, WANTED_PARAM, target, format, ap);
    va_end(ap);
    w->shape = SHAPE(total);
    w->offset = first;
    w->count = count;
}

void part_prefix(struct part *p, struct param *target, int64_t count,
                 const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    struct wanted *w = add(p, WANTED_PARAM, target, format, ap);
    va_end(ap);
    w->shape = SHAPE(count);
    w->count = count;
    w->is_prefix = true;
}

void part_ints(struct part *p, const int64_t **target, int64_t count,
               const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    struct wanted *w = add(p, WANTED_INTS, (void *)target, format, ap);
    va_end(ap);
    w->shape = SHAPE(count);
    w->count = count;
}

/* ---- checking ---- */

bool checkpoint_has(const struct checkpoint *c, const char *format, ...)
{
    char name[NAME_SIZE];
    va_list ap;

    va_start(ap, format);
    int n = vsnprintf(name, NAME_SIZE, format, ap);
    va_end(ap);
    return n > 0 && n < NAME_SIZE && find(c, name);
}

static struct entry *beside(const struct checkpoint *c, const struct wanted *w,
                            const char *suffix)
{
    char name[NAME_SIZE + 16];

    snprintf(name, sizeof(name), "%s%s", w->name, suffix);
    return find(c, name);
}

/* How a wanted tensor lies in the files. */
enum form {
    FORM_PLAIN,
    FORM_F8,  /* NAME F8_E4M3 and a grid of scales, NAME_scale_inv */
    FORM_FP4, /* NAME I8 and NAME_scale_inv, or NAME_packed U8 and NAME_scale:
                 two columns a byte, a scale a group of 32 */
    FORM_INT4 /* NAME_packed I32 [out, in / 8], NAME_scale, NAME_shape */
};

struct stored {
    enum form form;
    struct entry *data, *scales, *shape; /* the latter two may be NULL */
};

static struct stored locate(const struct checkpoint *c, const struct wanted *w)
{
    struct stored s = {.data = find(c, w->name)};

    if (s.data) {
        enum dtype dtype = s.data->info->dtype;

        s.form = dtype == DTYPE_F8_E4M3 ? FORM_F8
                 : dtype == DTYPE_I8    ? FORM_FP4
                                        : FORM_PLAIN;
        if (s.form != FORM_PLAIN)
            s.scales = beside(c, w, "_scale_inv");
        return s;
    }
    s.data = beside(c, w, "_packed");
    s.scales = beside(c, w, "_scale");
    if (s.data && s.data->info->dtype == DTYPE_I32) {
        s.form = FORM_INT4;
        s.shape = beside(c, w, "_shape");
    } else {
        s.form = FORM_FP4;
    }
    return s;
}

static int check_shape(const struct entry *e, struct tensor_shape shape,
                       struct err *err)
{
    char got[128], wanted[128];

    if (shape_equal(&e->info->shape, &shape))
        return 0;
    shape_format(&e->info->shape, got, sizeof(got));
    shape_format(&shape, wanted, sizeof(wanted));
    return err_set(err, ERR_INPUT, "tensor '%s' is %s, not %s", e->info->name,
                   got, wanted);
}

static int64_t blocks(int64_t n, int64_t size)
{
    return (n + size - 1) / size;
}

/* The rows and columns that share a scale, from the grid's shape: blocks of
 * 128 x 128, the last ones ragged, or a grid that divides evenly. */
static bool grid_of(const struct wanted *w, const struct tensor_shape *s,
                    int64_t *tall, int64_t *wide)
{
    if (s->dims != 2 || s->size[0] < 1 || s->size[1] < 1)
        return false;
    *tall = *wide = BLOCK;
    if (s->size[0] == blocks(w->out, BLOCK) &&
        s->size[1] == blocks(w->in, BLOCK))
        return true;
    *tall = w->out / s->size[0];
    *wide = w->in / s->size[1];
    return w->out % s->size[0] == 0 && w->in % s->size[1] == 0;
}

static int expect_scales(const struct wanted *w, const struct stored *s,
                         struct err *err)
{
    const struct tensor_info *info = s->scales ? s->scales->info : NULL;
    int64_t tall, wide;
    char shape[128];

    if (!info)
        return err_set(err, ERR_INPUT, "tensor '%s' is %s without its scales",
                       s->data->info->name, dtype_name(s->data->info->dtype));
    s->scales->is_wanted = true;
    if (info->dtype != DTYPE_F32 && info->dtype != DTYPE_BF16 &&
        info->dtype != DTYPE_F16 && info->dtype != DTYPE_F8_E8M0 &&
        info->dtype != DTYPE_U8)
        return err_set(err, ERR_INPUT,
                       "tensor '%s' is %s, not F32, BF16, F16, F8_E8M0 or U8",
                       info->name, dtype_name(info->dtype));
    if (s->form != FORM_F8)
        return check_shape(s->scales,
                           SHAPE(w->out, blocks(w->in, QUANTIZED_GROUP)), err);
    shape_format(&info->shape, shape, sizeof(shape));
    if (!grid_of(w, &info->shape, &tall, &wide))
        return err_set(err, ERR_INPUT,
                       "tensor '%s' is %s, no grid of blocks of '%s'",
                       info->name, shape, s->data->info->name);
    return 0;
}

/* The stored shape [out, in] that a packed tensor has beside it. */
static int check_stored_shape(const struct checkpoint *c,
                              const struct wanted *w, const struct stored *s,
                              struct err *err)
{
    int64_t wide[2] = {0, 0};
    int32_t narrow[2];
    const struct tensor_info *info = s->shape ? s->shape->info : NULL;

    if (!info)
        return 0;
    s->shape->is_wanted = true;
    if (check_shape(s->shape, SHAPE(2), err))
        return -1;
    if (info->dtype == DTYPE_I32) {
        if (safetensors_read(c->st, info, 0, sizeof(narrow), narrow, err))
            return -1;
        wide[0] = narrow[0];
        wide[1] = narrow[1];
    } else if (info->dtype == DTYPE_I64) {
        if (safetensors_read(c->st, info, 0, sizeof(wide), wide, err))
            return -1;
    }
    s->shape->elements_read += 2;
    if (wide[0] != w->out || wide[1] != w->in)
        return err_set(err, ERR_INPUT,
                       "tensor '%s' says [%" PRId64 ", %" PRId64
                       "], not [%" PRId64 ", %" PRId64 "]",
                       info->name, wide[0], wide[1], w->out, w->in);
    return 0;
}

static int expect_quantized(const struct checkpoint *c, const struct wanted *w,
                            const struct stored *s, struct err *err)
{
    static const enum dtype dtypes[] = {DTYPE_F8_E4M3, DTYPE_I8, DTYPE_I32};
    int64_t packing = s->form == FORM_F8 ? 1 : s->form == FORM_FP4 ? 2 : 8;
    enum dtype dtype = s->data->info->dtype;

    if (w->kind != WANTED_DENSE || w->shape.dims != 2 || w->offset ||
        w->out != w->shape.size[0])
        return err_set(err, ERR_UNSUPPORTED,
                       "tensor '%s' is %s, which is not supported here",
                       s->data->info->name, dtype_name(dtype));
    if (dtype != dtypes[s->form - FORM_F8] &&
        !(s->form == FORM_FP4 && dtype == DTYPE_U8))
        return err_set(err, ERR_UNSUPPORTED, "tensor '%s' is %s, not U8 or I32",
                       s->data->info->name, dtype_name(dtype));
    s->data->is_wanted = true;
    return check_shape(s->data, SHAPE(w->out, blocks(w->in, packing)), err) ||
                   expect_scales(w, s, err) || check_stored_shape(c, w, s, err)
               ? -1
               : 0;
}

static int expect_one(const struct checkpoint *c, const struct wanted *w,
                      struct err *err)
{
    struct stored s = locate(c, w);

    if (!s.data)
        return err_set(err, ERR_INPUT, "the pack holds no tensor '%s'",
                       w->name);
    if (s.form != FORM_PLAIN)
        return expect_quantized(c, w, &s, err);
    s.data->is_wanted = true;
    /* a small tensor may have any shape of its size */
    int64_t count = shape_count(&s.data->info->shape);
    if ((w->kind == WANTED_DENSE ||
         (w->is_prefix ? count < w->count : count != shape_count(&w->shape))) &&
        check_shape(s.data, w->shape, err))
        return -1;
    enum dtype dtype = s.data->info->dtype;
    bool is_known =
        w->kind == WANTED_INTS
            ? dtype == DTYPE_I64 || dtype == DTYPE_I32
            : dtype == DTYPE_F32 || dtype == DTYPE_BF16 || dtype == DTYPE_F16;
    if (!is_known)
        return err_set(err, ERR_UNSUPPORTED, "tensor '%s' is %s, not %s",
                       s.data->info->name, dtype_name(dtype),
                       w->kind == WANTED_INTS ? "I64 or I32"
                                              : "F32, BF16 or F16");
    return 0;
}

int checkpoint_expect(struct checkpoint *c, const struct part *p,
                      struct err *err)
{
    for (size_t i = 0; i < p->count; i++)
        if (expect_one(c, &p->items[i], err))
            return -1;
    return 0;
}

void checkpoint_skip(struct checkpoint *c, const char *name)
{
    struct entry *e = find(c, name);

    if (e)
        e->is_skipped = true;
}

int checkpoint_finish(const struct checkpoint *c, struct err *err)
{
    for (size_t i = 0; i < c->named; i++) {
        const struct entry *e = &c->entries[i];

        if (!e->is_wanted && !e->is_skipped && !e->same)
            return err_set(err, ERR_INPUT,
                           "tensor '%s' has no place in the model",
                           e->info->name);
    }
    return 0;
}

/* ---- reading ---- */

static enum dtype loaded_dtype(const struct checkpoint *c, enum dtype stored,
                               bool is_kept)
{
    switch (c->precision) {
    case PRECISION_F16:
        return is_kept ? DTYPE_F32 : DTYPE_F16;
    case PRECISION_BF16:
        return is_kept ? DTYPE_F32 : DTYPE_BF16;
    default:
        return stored == DTYPE_F32 || stored == DTYPE_F16 ? stored : DTYPE_BF16;
    }
}

enum dtype checkpoint_dtype(const struct checkpoint *c, const char *name)
{
    const struct entry *e = find(c, name);

    BUG_ON(!e);
    return loaded_dtype(c, e->info->dtype, false);
}

static size_t round_up(size_t n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

static size_t wanted_bytes(const struct checkpoint *c, const struct wanted *w)
{
    size_t n = (size_t)w->count;
    enum dtype stored = locate(c, w).data->info->dtype;

    if (w->kind == WANTED_PARAM)
        return round_up(n * sizeof(float)) + round_up(n * sizeof(double));
    if (w->kind == WANTED_INTS)
        return round_up(n * sizeof(int64_t));
    return round_up(n * dtype_bits(loaded_dtype(c, stored, w->is_kept)) / 8);
}

static void *take(struct buffer *b, size_t bytes)
{
    void *p = b->base + b->used;

    b->used += round_up(bytes);
    BUG_ON(b->used > b->size);
    return p;
}

/* n floats at element `offset`, through `raw` of 4 n bytes. */
static int read_floats(const struct checkpoint *c, const struct entry *e,
                       int64_t offset, size_t n, void *raw, float *out,
                       struct err *err)
{
    size_t size = dtype_bits(e->info->dtype) / 8;

    if (safetensors_read(c->st, e->info, offset * (int64_t)size, n * size, raw,
                         err))
        return -1;
    dtype_to_f32(e->info->dtype, raw, n, out);
    return 0;
}

static float *read_scales(const struct checkpoint *c, const struct entry *e,
                          struct err *err)
{
    size_t n = (size_t)shape_count(&e->info->shape);
    float *out = mem_array(n, 2 * sizeof(*out), BUFFER_CAP, err);
    int ret = 0;

    if (!out)
        return NULL;
    if (e->info->dtype != DTYPE_F8_E8M0 && e->info->dtype != DTYPE_U8) {
        ret = read_floats(c, e, 0, n, out + n, out, err);
    } else {
        uint8_t *raw = (uint8_t *)(out + n);

        ret = safetensors_read(c->st, e->info, 0, n, raw, err);
        for (size_t i = 0; i < n && ret == 0; i++)
            out[i] = quantized_e8m0(raw[i]);
    }
    for (size_t i = 0; i < n && ret == 0; i++)
        if (!isfinite(out[i]))
            ret =
                err_set(err, ERR_INPUT, "tensor '%s': scale %zu is not finite",
                        e->info->name, i);
    if (ret) {
        free(out);
        return NULL;
    }
    return out;
}

/* Row by row: codes, values, values as they are wanted. */
static int load_rows(const struct checkpoint *c, const struct wanted *w,
                     const struct stored *s, const float *scales, float *row,
                     char *codes, enum dtype dtype, char *data, struct err *err)
{
    const struct tensor_info *info = s->data->info;
    const int64_t *grid = s->scales->info->shape.size;
    size_t packed = (size_t)(info->bytes / w->out);
    size_t size = (size_t)w->in * dtype_bits(dtype) / 8;
    int64_t tall = 1, wide = QUANTIZED_GROUP, bad = -1;

    if (s->form == FORM_F8)
        grid_of(w, &s->scales->info->shape, &tall, &wide);
    for (int64_t r = 0; r < w->out; r++) {
        const float *scale = scales + r / tall * grid[1];

        if (safetensors_read(c->st, info, r * (int64_t)packed, packed, codes,
                             err))
            return -1;
        if (s->form == FORM_F8)
            bad = quantized_f8_row(row, (uint8_t *)codes, scale, w->in, wide);
        else if (s->form == FORM_FP4)
            quantized_fp4_row(row, (uint8_t *)codes, scale, w->in);
        else
            quantized_int4_row(row, (uint32_t *)(void *)codes, scale, w->in);
        if (bad >= 0)
            return err_set(err, ERR_INPUT,
                           "tensor '%s': element [%" PRId64 ", %" PRId64
                           "] is not a number",
                           info->name, r, bad);
        dtype_from_f32(dtype, row, (size_t)w->in, data + (size_t)r * size);
    }
    return 0;
}

static int load_quantized(const struct checkpoint *c, const struct wanted *w,
                          const struct stored *s, enum dtype dtype, char *data,
                          struct err *err)
{
    size_t in = (size_t)w->in;
    float *scales = read_scales(c, s->scales, err);
    float *row = mem_array(in, sizeof(*row), BUFFER_CAP, err);
    char *codes = mem_array(in, sizeof(uint32_t), BUFFER_CAP, err);
    int ret = -1;

    if (scales && row && codes)
        ret = load_rows(c, w, s, scales, row, codes, dtype, data, err);
    s->scales->elements_read += shape_count(&s->scales->info->shape);
    free(codes);
    free(row);
    free(scales);
    return ret;
}

static int load_dense(struct checkpoint *c, const struct wanted *w,
                      const struct stored *s, struct buffer *b, struct err *err)
{
    const struct entry *e = s->data;
    enum dtype dtype = loaded_dtype(c, e->info->dtype, w->is_kept);
    size_t size = dtype_bits(dtype) / 8, n = (size_t)w->count;
    char *data = take(b, n * size);

    *(struct dense_weight *)w->target =
        (struct dense_weight){dtype, w->out, w->in, data};
    if (s->form != FORM_PLAIN)
        return load_quantized(c, w, s, dtype, data, err);
    if (dtype == e->info->dtype)
        return safetensors_read(c->st, e->info, w->offset * (int64_t)size,
                                n * size, data, err);
    float *piece = xmalloc(2 * PIECE * sizeof(*piece));
    int ret = 0;
    for (size_t at = 0, m; at < n && ret == 0; at += m) {
        m = n - at < PIECE ? n - at : PIECE;
        ret = read_floats(c, e, w->offset + (int64_t)at, m, piece + PIECE,
                          piece, err);
        dtype_from_f32(dtype, piece, m, data + at * size);
    }
    free(piece);
    return ret;
}

static int load_param(struct checkpoint *c, const struct wanted *w,
                      struct entry *e, struct buffer *b, struct err *err)
{
    size_t n = (size_t)w->count;
    enum dtype dtype = loaded_dtype(c, e->info->dtype, w->is_kept);
    float *f = take(b, n * sizeof(*f));
    double *d = take(b, n * sizeof(*d)); /* holds the stored bytes first */

    if (read_floats(c, e, w->offset, n, d, f, err))
        return -1;
    for (size_t i = 0; i < n; i++) {
        if (dtype == DTYPE_BF16)
            f[i] = bf16_to_f32(bf16_from_f32(f[i]));
        else if (dtype == DTYPE_F16)
            f[i] = f16_to_f32(f16_from_f32(f[i]));
        d[i] = (double)f[i];
    }
    *(struct param *)w->target =
        (struct param){.dtype = dtype, .count = w->count, .f = f, .d = d};
    return 0;
}

static int load_ints(struct checkpoint *c, const struct wanted *w,
                     const struct entry *e, struct buffer *b, struct err *err)
{
    size_t n = (size_t)w->count, size = dtype_bits(e->info->dtype) / 8;
    int64_t *out = take(b, n * sizeof(*out));
    int32_t narrow;

    if (safetensors_read(c->st, e->info, 0, n * size, out, err))
        return -1;
    /* from the last on: none is overwritten unread */
    for (size_t i = n; size == sizeof(narrow) && i-- > 0;) {
        memcpy(&narrow, (const char *)out + i * sizeof(narrow), sizeof(narrow));
        out[i] = narrow;
    }
    *(const int64_t **)w->target = out;
    return 0;
}

static int reserve(struct buffer *b, size_t bytes, struct err *err)
{
    b->used = 0;
    if (bytes <= b->size)
        return 0;
    free(b->base);
    b->size = 0;
    b->base = mem_array(bytes, 1, BUFFER_CAP, err);
    if (!b->base)
        return -1;
    b->size = bytes;
    return 0;
}

size_t checkpoint_bytes(const struct checkpoint *c, const struct part *p)
{
    size_t bytes = 0, decoding = 0;

    for (size_t i = 0; i < p->count; i++) {
        struct stored s = locate(c, &p->items[i]);
        size_t scales = 0;

        bytes += wanted_bytes(c, &p->items[i]);
        if (s.form != FORM_PLAIN)
            scales = (size_t)shape_count(&s.scales->info->shape) * 2 *
                         sizeof(float) +
                     (size_t)p->items[i].in * 2 * sizeof(float);
        decoding = scales > decoding ? scales : decoding;
    }
    return bytes + decoding;
}

int checkpoint_load(struct checkpoint *c, const struct part *p,
                    enum checkpoint_buffer into, struct err *err)
{
    struct buffer *b = &c->buffers[into];
    size_t bytes = 0;

    for (size_t i = 0; i < p->count; i++)
        bytes += wanted_bytes(c, &p->items[i]);
    if (reserve(b, bytes, err))
        return -1;
    for (size_t i = 0; i < p->count; i++) {
        const struct wanted *w = &p->items[i];
        struct stored s = locate(c, w);

        BUG_ON(!s.data->is_wanted);
        if (w->kind == WANTED_DENSE   ? load_dense(c, w, &s, b, err)
            : w->kind == WANTED_PARAM ? load_param(c, w, s.data, b, err)
                                      : load_ints(c, w, s.data, b, err))
            return -1;
        s.data->elements_read +=
            s.form == FORM_PLAIN ? w->count : shape_count(&s.data->info->shape);
    }
    return 0;
}

int checkpoint_row(struct checkpoint *c, const char *name, int64_t row,
                   int64_t cols, const struct act *out, struct err *err)
{
    struct entry *e = find(c, name);
    size_t n = (size_t)cols;
    float *raw = xmalloc(2 * n * sizeof(*raw)), *values = raw + n;
    int ret;

    BUG_ON(!e || !e->is_wanted || out->cols != cols);
    ret = read_floats(c, e, row * cols, n, raw, values, err);
    if (ret == 0 && act_is_wide(out))
        for (size_t i = 0; i < n; i++)
            act_d(out)[i] = (double)values[i];
    else if (ret == 0)
        memcpy(out->data, values, n * sizeof(*values));
    if (ret == 0)
        op_round(out);
    e->elements_read += cols;
    free(raw);
    return ret;
}

/* ---- the ledger ---- */

struct decoding {
    const struct checkpoint *c;
    const struct entry *e;
};

static int read_decoded(void *ctx, int64_t first, size_t n, float *scratch,
                        float *out, struct err *err)
{
    const struct decoding *d = ctx;

    return read_floats(d->c, d->e, first, n, scratch, out, err);
}

static json_t *line_of(const struct checkpoint *c, const struct entry *e)
{
    const char *state = !e->name        ? "ignored"
                        : e->same       ? "duplicate"
                        : e->is_skipped ? "without effect"
                        : e->is_wanted  ? "read"
                                        : "unread";
    int64_t n = shape_count(&e->info->shape);

    return weight_line(c->st, e->info, e->name ? e->name : "", state,
                       (double)e->elements_read / (double)(n > 0 ? n : 1));
}

json_t *checkpoint_ledger(const struct checkpoint *c, bool is_full,
                          struct err *err)
{
    json_t *out = json_array();

    for (size_t i = 0; i < c->count; i++) {
        struct decoding d = {c, &c->entries[i]};
        json_t *line = line_of(c, d.e);

        json_array_append_new(out, line);
        if (is_full && weight_line_measure(line, c->st, d.e->info, read_decoded,
                                           &d, err)) {
            json_decref(out);
            return NULL;
        }
    }
    return out;
}
