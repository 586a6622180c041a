/* A part's tensors into a buffer, as the precision wants them. */
#include "models/checkpoint_internal.h"

#include "base/bug.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64, PIECE = 1 << 16 };

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

static size_t round_up(size_t n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

static size_t wanted_bytes(const struct checkpoint *c, const struct wanted *w)
{
    size_t n = (size_t)w->count;
    enum dtype stored = stored_find(c, w).data->info->dtype;

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
                      struct entry *e, struct buffer *b, struct err *err)
{
    size_t n = (size_t)w->count;
    enum dtype dtype = loaded_dtype(c, e->info->dtype, w->is_kept);
    float *f = take(b, n * sizeof(*f));
    double *d = take(b, n * sizeof(*d)); /* holds the stored bytes first */

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
    b->base = mem_array(bytes, 1, CHECKPOINT_CAP, err);
    if (!b->base)
        return -1;
    b->size = bytes;
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
        struct stored s = stored_find(c, w);

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
