/* A Hugging Face checkpoint by tensor name, one part of the model at a time. */
#include "models/checkpoint.h"

#include "base/arena.h"
#include "base/bug.h"
#include "base/mem.h"
#include "hash/hash.h"
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

enum wanted_kind { WANTED_DENSE, WANTED_PARAM };

/* Elements [offset, offset + count) of a tensor. */
struct wanted {
    enum wanted_kind kind;
    char name[NAME_SIZE];
    struct tensor_shape shape; /* of the whole; of a param any of that count */
    int64_t offset, count;
    int64_t out, in;
    bool is_kept;
    void *target;
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

static int digest(const struct checkpoint *c, const struct tensor_info *info,
                  char out[HASH_SHA256_HEX], struct err *err)
{
    struct hash *h = hash_new(HASH_SHA256);
    char *piece = xmalloc(PIECE);
    int ret = 0;

    for (int64_t at = 0; at < info->bytes && ret == 0; at += PIECE) {
        size_t n = info->bytes - at < PIECE ? (size_t)(info->bytes - at)
                                            : (size_t)PIECE;

        ret = safetensors_read(c->st, info, at, n, piece, err);
        hash_add(h, piece, n);
    }
    free(piece);
    if (ret)
        hash_free(h);
    else
        hash_hex(h, out);
    return ret;
}

static int check_duplicates(struct checkpoint *c, struct err *err)
{
    char first[HASH_SHA256_HEX], second[HASH_SHA256_HEX];

    for (size_t i = 1; i < c->named; i++) {
        struct entry *a = &c->entries[i - 1], *b = &c->entries[i];

        if (strcmp(a->name, b->name) != 0)
            continue;
        if (digest(c, a->info, first, err) || digest(c, b->info, second, err))
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

static struct entry *scales_of(const struct checkpoint *c,
                               const struct wanted *w)
{
    char name[NAME_SIZE + 16];

    snprintf(name, sizeof(name), "%s_scale_inv", w->name);
    return find(c, name);
}

/* Block scales: one a block of 128 x 128, the last ones ragged; or a grid that
 * divides the matrix evenly. */
static bool is_grid(const struct wanted *w, const struct tensor_shape *s)
{
    if (s->dims != 2 || s->size[0] < 1 || s->size[1] < 1)
        return false;
    bool is_blocks = s->size[0] == (w->out + BLOCK - 1) / BLOCK &&
                     s->size[1] == (w->in + BLOCK - 1) / BLOCK;
    return is_blocks || (w->out % s->size[0] == 0 && w->in % s->size[1] == 0);
}

static int expect_scales(const struct checkpoint *c, const struct wanted *w,
                         const struct entry *e, struct err *err)
{
    struct entry *scales = scales_of(c, w);
    char shape[128];

    if (!scales || w->shape.dims != 2)
        return err_set(err, ERR_INPUT, "tensor '%s' is F8_E4M3 without '%s'",
                       e->info->name, "weight_scale_inv");
    shape_format(&scales->info->shape, shape, sizeof(shape));
    if (!is_grid(w, &scales->info->shape))
        return err_set(err, ERR_INPUT,
                       "tensor '%s' is %s, no grid of blocks of '%s'",
                       scales->info->name, shape, e->info->name);
    if (scales->info->dtype != DTYPE_F32 && scales->info->dtype != DTYPE_BF16 &&
        scales->info->dtype != DTYPE_F8_E8M0)
        return err_set(err, ERR_INPUT,
                       "tensor '%s' is %s, not F32, BF16 or F8_E8M0",
                       scales->info->name, dtype_name(scales->info->dtype));
    scales->is_wanted = true;
    return 0;
}

static int expect_one(const struct checkpoint *c, const struct wanted *w,
                      struct err *err)
{
    struct entry *e = find(c, w->name);
    char got[128], wanted[128];

    if (!e)
        return err_set(err, ERR_INPUT, "the pack holds no tensor '%s'",
                       w->name);
    bool fits = w->kind == WANTED_PARAM
                    ? shape_count(&e->info->shape) == w->count
                    : shape_equal(&e->info->shape, &w->shape);
    if (!fits) {
        shape_format(&e->info->shape, got, sizeof(got));
        shape_format(&w->shape, wanted, sizeof(wanted));
        return err_set(err, ERR_INPUT, "tensor '%s' is %s, not %s",
                       e->info->name, got, wanted);
    }
    e->is_wanted = true;
    switch (e->info->dtype) {
    case DTYPE_F32:
    case DTYPE_BF16:
    case DTYPE_F16:
        return 0;
    case DTYPE_F8_E4M3:
        if (w->kind == WANTED_DENSE)
            return expect_scales(c, w, e, err);
        break;
    default:
        break;
    }
    return err_set(err, ERR_UNSUPPORTED, "tensor '%s' is %s, not F32, BF16%s",
                   e->info->name, dtype_name(e->info->dtype),
                   w->kind == WANTED_DENSE ? ", F16 or F8_E4M3" : " or F16");
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
        return stored == DTYPE_F8_E4M3 ? DTYPE_BF16 : stored;
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
    enum dtype stored = find(c, w->name)->info->dtype;

    if (w->kind == WANTED_PARAM)
        return round_up(n * sizeof(float)) + round_up(n * sizeof(double));
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

static float f8_e4m3(uint8_t b)
{
    int exponent = b >> 3 & 15, mantissa = b & 7;
    float magnitude = exponent ? ldexpf((float)(8 + mantissa), exponent - 10)
                               : ldexpf((float)mantissa, -9);

    return b & 0x80 ? -magnitude : magnitude;
}

static float *read_scales(const struct checkpoint *c, const struct entry *e,
                          struct err *err)
{
    size_t n = (size_t)shape_count(&e->info->shape);
    float *out = mem_array(n, 2 * sizeof(*out), BUFFER_CAP, err);

    if (!out)
        return NULL;
    if (e->info->dtype != DTYPE_F8_E8M0) {
        if (read_floats(c, e, 0, n, out + n, out, err) == 0)
            return out;
    } else {
        uint8_t *raw = (uint8_t *)(out + n);

        if (safetensors_read(c->st, e->info, 0, n, raw, err) == 0) {
            for (size_t i = 0; i < n; i++)
                out[i] = ldexpf(1, raw[i] - 127);
            return out;
        }
    }
    free(out);
    return NULL;
}

/* Block FP8 to bf16: one product in f32, one rounding. */
static int load_f8(const struct checkpoint *c, const struct wanted *w,
                   struct entry *e, enum dtype dtype, char *data,
                   struct err *err)
{
    struct entry *scales = scales_of(c, w);
    const int64_t *grid = scales->info->shape.size;
    bool is_blocks = grid[0] == (w->out + BLOCK - 1) / BLOCK &&
                     grid[1] == (w->in + BLOCK - 1) / BLOCK;
    int64_t tall = is_blocks ? BLOCK : w->out / grid[0];
    int64_t wide = is_blocks ? BLOCK : w->in / grid[1];
    size_t in = (size_t)w->in, size = dtype_bits(dtype) / 8;
    float *scale = read_scales(c, scales, err);
    float *row = mem_array(in, sizeof(*row), BUFFER_CAP, err);
    uint8_t *raw = mem_array(in, 1, BUFFER_CAP, err);
    int ret = scale && row && raw ? 0 : -1;

    for (int64_t r = 0; r < w->out && ret == 0; r++) {
        ret = safetensors_read(c->st, e->info, w->offset + r * w->in, in, raw,
                               err);
        for (size_t k = 0; k < in && ret == 0; k++) {
            if ((raw[k] & 0x7f) == 0x7f)
                ret = err_set(err, ERR_INPUT,
                              "tensor '%s': element [%" PRId64
                              ", %zu] is not a number",
                              e->info->name, r, k);
            row[k] = bf16_to_f32(
                bf16_from_f32(f8_e4m3(raw[k]) *
                              scale[r / tall * grid[1] + (int64_t)k / wide]));
        }
        dtype_from_f32(dtype, row, in, data + (size_t)r * in * size);
    }
    free(raw);
    free(row);
    free(scale);
    scales->elements_read += shape_count(&scales->info->shape);
    return ret;
}

static int load_dense(struct checkpoint *c, const struct wanted *w,
                      struct entry *e, struct buffer *b, struct err *err)
{
    enum dtype dtype = loaded_dtype(c, e->info->dtype, w->is_kept);
    size_t size = dtype_bits(dtype) / 8, n = (size_t)w->count;
    char *data = take(b, n * size);

    *(struct dense_weight *)w->target =
        (struct dense_weight){dtype, w->out, w->in, data};
    if (e->info->dtype == DTYPE_F8_E4M3)
        return load_f8(c, w, e, dtype, data, err);
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

    if (read_floats(c, e, 0, n, d, f, err))
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
        struct entry *e = find(c, w->name);

        BUG_ON(!e->is_wanted);
        if (w->kind == WANTED_DENSE ? load_dense(c, w, e, b, err)
                                    : load_param(c, w, e, b, err))
            return -1;
        e->elements_read += w->count;
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

static int add_statistics(const struct checkpoint *c, const struct entry *e,
                          json_t *line, struct err *err)
{
    const struct tensor_info *info = e->info;
    double sum = 0, least = INFINITY, most = -INFINITY;
    size_t n = (size_t)shape_count(&info->shape);
    char sha256[HASH_SHA256_HEX];

    if (digest(c, info, sha256, err))
        return -1;
    json_object_set_new(line, "sha256", json_string(sha256));
    if (!dtype_is_float(info->dtype) || info->dtype == DTYPE_F64)
        return 0;
    float *piece = xmalloc(2 * PIECE * sizeof(*piece));
    int ret = 0;
    for (size_t at = 0, m; at < n && ret == 0; at += m) {
        m = n - at < PIECE ? n - at : PIECE;
        ret = read_floats(c, e, (int64_t)at, m, piece + PIECE, piece, err);
        for (size_t i = 0; i < m && ret == 0; i++) {
            double v = (double)piece[i];

            sum += v;
            least = v < least ? v : least;
            most = v > most ? v : most;
        }
    }
    free(piece);
    json_object_set_new(line, "mean", json_real_or_text(sum / (double)n));
    json_object_set_new(line, "min", json_real_or_text(least));
    json_object_set_new(line, "max", json_real_or_text(most));
    return ret;
}

static json_t *line_of(const struct checkpoint *c, const struct entry *e)
{
    const char *state = !e->name        ? "ignored"
                        : e->same       ? "duplicate"
                        : e->is_skipped ? "without effect"
                        : e->is_wanted  ? "read"
                                        : "unread";
    int64_t n = shape_count(&e->info->shape);
    const char *path = safetensors_path(c->st, e->info);
    const char *slash = strrchr(path, '/');
    json_t *shape = json_array();

    for (int i = 0; i < e->info->shape.dims; i++)
        json_array_append_new(shape, json_integer(e->info->shape.size[i]));
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:o, s:o}", "tensor", e->info->name,
        "canonical", e->name ? e->name : "", "file", slash ? slash + 1 : path,
        "dtype", dtype_name(e->info->dtype), "state", state, "shape", shape,
        "times_read",
        json_real_or_text((double)e->elements_read / (double)(n > 0 ? n : 1)));
}

json_t *checkpoint_ledger(const struct checkpoint *c, bool is_full,
                          struct err *err)
{
    json_t *out = json_array();

    for (size_t i = 0; i < c->count; i++) {
        json_t *line = line_of(c, &c->entries[i]);

        json_array_append_new(out, line);
        if (is_full && add_statistics(c, &c->entries[i], line, err)) {
            json_decref(out);
            return NULL;
        }
    }
    return out;
}
