/* A part's tensors into a buffer, as the precision wants them. */
#include "models/checkpoint_internal.h"

#include "base/bug.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE = 1 << 16 };

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
    const struct entry *e = checkpoint_find(c, name);

    BUG_ON(!e);
    return loaded_dtype(c, e->info->dtype, false);
}

static size_t wanted_bytes(const struct checkpoint *c, const struct wanted *w)
{
    size_t n = (size_t)w->count;
    enum dtype stored = stored_find(c, w).data->info->dtype;

    if (w->kind == WANTED_PARAM)
        return weight_buffer_piece(n * sizeof(float)) +
               weight_buffer_piece(n * sizeof(double));
    if (w->kind == WANTED_INTS)
        return weight_buffer_piece(n * sizeof(int64_t));
    return weight_buffer_piece(
        n * dtype_bits(loaded_dtype(c, stored, w->is_kept)) / 8);
}

static int load_dense(struct checkpoint *c, const struct wanted *w,
                      const struct stored *s, struct weight_buffer *b,
                      struct err *err)
{
    const struct entry *e = s->data;
    enum dtype dtype = loaded_dtype(c, e->info->dtype, w->is_kept);
    size_t size = dtype_bits(dtype) / 8, n = (size_t)w->count;
    char *data = weight_buffer_take(b, n * size);

    *(struct dense_weight *)w->target =
        (struct dense_weight){dtype, w->out, w->in, data};
    if (s->form != FORM_PLAIN)
        return stored_decode(c, w, s, dtype, data, err);
    if (dtype == e->info->dtype)
        return safetensors_read(c->st, e->info, w->offset * (int64_t)size,
                                n * size, data, err);
    float *piece = xmalloc(2 * PIECE * sizeof(*piece));
    int ret = 0;
    for (size_t at = 0, m; at < n && ret == 0; at += m) {
        m = n - at < PIECE ? n - at : PIECE;
        ret = stored_floats(c, e, w->offset + (int64_t)at, m, piece + PIECE,
                            piece, err);
        dtype_from_f32(dtype, piece, m, data + at * size);
    }
    free(piece);
    return ret;
}

static int load_param(struct checkpoint *c, const struct wanted *w,
                      struct entry *e, struct weight_buffer *b, struct err *err)
{
    size_t n = (size_t)w->count;
    enum dtype dtype = loaded_dtype(c, e->info->dtype, w->is_kept);
    float *f = weight_buffer_take(b, n * sizeof(*f));
    double *d = weight_buffer_take(
        b, n * sizeof(*d)); /* holds the stored bytes first */

    if (stored_floats(c, e, w->offset, n, d, f, err))
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
                     const struct entry *e, struct weight_buffer *b,
                     struct err *err)
{
    size_t n = (size_t)w->count, size = dtype_bits(e->info->dtype) / 8;
    int64_t *out = weight_buffer_take(b, n * sizeof(*out));
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

size_t checkpoint_bytes(const struct checkpoint *c, const struct part *p)
{
    size_t bytes = 0, decoding = 0;

    for (size_t i = 0; i < p->count; i++) {
        struct stored s = stored_find(c, &p->items[i]);
        size_t n = stored_decoding_bytes(&p->items[i], &s);

        bytes += wanted_bytes(c, &p->items[i]);
        decoding = n > decoding ? n : decoding;
    }
    return bytes + decoding;
}

static int load(struct checkpoint *c, const struct wanted *w,
                const struct stored *s, struct weight_buffer *b,
                struct err *err)
{
    switch (w->kind) {
    case WANTED_DENSE:
        return load_dense(c, w, s, b, err);
    case WANTED_PARAM:
        return load_param(c, w, s->data, b, err);
    default:
        return load_ints(c, w, s->data, b, err);
    }
}

/* ---- what stays ---- */

static size_t target_size(enum wanted_kind kind)
{
    return kind == WANTED_DENSE   ? sizeof(struct dense_weight)
           : kind == WANTED_PARAM ? sizeof(struct param)
                                  : sizeof(const int64_t *);
}

static const struct held *find_held(const struct entry *e,
                                    const struct wanted *w)
{
    for (const struct held *h = e->held; h; h = h->next)
        if (h->kind == w->kind && h->offset == w->offset &&
            h->count == w->count && h->is_kept == w->is_kept)
            return h;
    return NULL;
}

/* Loads w into memory of its own. */
static int hold(struct checkpoint *c, const struct wanted *w,
                const struct stored *s, size_t bytes, struct err *err)
{
    struct weight_buffer own = {0};

    if (weight_buffer_reserve(&own, bytes, CHECKPOINT_CAP, err) ||
        load(c, w, s, &own, err)) {
        free(own.base);
        return -1;
    }
    struct held *h = xcalloc(1, sizeof(*h));
    *h = (struct held){.next = s->data->held,
                       .kind = w->kind,
                       .offset = w->offset,
                       .count = w->count,
                       .is_kept = w->is_kept,
                       .memory = own.base,
                       .bytes = bytes};
    memcpy(&h->loaded, w->target, target_size(w->kind));
    s->data->held = h;
    c->hold_room -= bytes;
    return 0;
}

void checkpoint_hold(struct checkpoint *c, size_t bytes)
{
    checkpoint_forget(c);
    c->hold_room = bytes;
}

void checkpoint_forget(struct checkpoint *c)
{
    for (size_t i = 0; i < c->count; i++) {
        struct held *next;

        for (struct held *h = c->entries[i].held; h; h = next) {
            next = h->next;
            c->hold_room += h->bytes;
            free(h->memory);
            free(h);
        }
        c->entries[i].held = NULL;
    }
}

/* What may stay, and the bytes of what goes into the buffer. */
static int load_held(struct checkpoint *c, const struct part *p, size_t *others,
                     struct err *err)
{
    *others = 0;
    for (size_t i = 0; i < p->count; i++) {
        const struct wanted *w = &p->items[i];
        struct stored s = stored_find(c, w);
        size_t bytes = wanted_bytes(c, w);

        if (find_held(s.data, w))
            continue;
        if (bytes >= c->hold_room)
            *others += bytes;
        else if (hold(c, w, &s, bytes, err))
            return -1;
    }
    return 0;
}

int checkpoint_load(struct checkpoint *c, const struct part *p,
                    enum checkpoint_buffer into, struct err *err)
{
    struct weight_buffer *b = &c->buffers[into];
    size_t bytes;

    if (load_held(c, p, &bytes, err) ||
        weight_buffer_reserve(b, bytes, CHECKPOINT_CAP, err))
        return -1;
    for (size_t i = 0; i < p->count; i++) {
        const struct wanted *w = &p->items[i];
        struct stored s = stored_find(c, w);
        const struct held *h = find_held(s.data, w);

        BUG_ON(!s.data->is_wanted);
        if (h)
            memcpy(w->target, &h->loaded, target_size(w->kind));
        else if (load(c, w, &s, b, err))
            return -1;
        s.data->elements_read +=
            s.form == FORM_PLAIN ? w->count : shape_count(&s.data->info->shape);
    }
    return 0;
}

int checkpoint_row(struct checkpoint *c, const char *name, int64_t row,
                   int64_t cols, const struct act *out, struct err *err)
{
    struct entry *e = checkpoint_find(c, name);
    size_t n = (size_t)cols;
    float *raw = xmalloc(2 * n * sizeof(*raw)), *values = raw + n;
    int ret;

    BUG_ON(!e || !e->is_wanted || out->cols != cols);
    ret = stored_floats(c, e, row * cols, n, raw, values, err);
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
