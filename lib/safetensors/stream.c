/* A .safetensors file as it comes. */
#include "safetensors/stream.h"

#include "base/buf.h"
#include "base/mem.h"
#include "safetensors/safetensors_internal.h"

#include <stdlib.h>
#include <string.h>

struct safetensors_stream {
    const struct safetensors_visitor *visitor;
    int64_t size, at; /* of the file; where the next byte lies */
    struct buf start; /* the prefix and the header, until they are whole */
    int64_t data;     /* where the data begin; 0: not known */
    struct st_header header;
    const struct tensor_info **order; /* by offset */
    size_t next;                      /* of `order` */
};

struct safetensors_stream *
safetensors_stream_new(int64_t size, const struct safetensors_visitor *visitor)
{
    struct safetensors_stream *s = xcalloc(1, sizeof(*s));

    s->size = size;
    s->visitor = visitor;
    return s;
}

void safetensors_stream_free(struct safetensors_stream *s)
{
    if (!s)
        return;
    st_header_release(&s->header);
    buf_release(&s->start);
    free(s->order);
    free(s);
}

static int by_offset(const void *a, const void *b)
{
    const struct tensor_info *x = *(const struct tensor_info *const *)a;
    const struct tensor_info *y = *(const struct tensor_info *const *)b;

    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static int parse(struct safetensors_stream *s, struct err *err)
{
    struct st_header *h = &s->header;

    if (st_header_parse(s->start.data + 8, (size_t)(s->data - 8), h, err) ||
        st_check_ranges(h, s->size - s->data, err))
        return -1;
    s->order = xcalloc(h->count + 1, sizeof(struct tensor_info *));
    for (size_t i = 0; i < h->count; i++) {
        h->infos[i].offset += s->data;
        s->order[i] = &h->infos[i];
    }
    if (h->count)
        qsort(s->order, h->count, sizeof(struct tensor_info *), by_offset);
    return 0;
}

/* Takes what it needs of the header: how many bytes, -1. */
static int64_t add_header(struct safetensors_stream *s, const char *data,
                          size_t len, struct err *err)
{
    size_t want = s->data ? (size_t)s->data : 8;
    size_t n = want - s->start.len < len ? want - s->start.len : len;
    int64_t length;

    buf_add(&s->start, data, n);
    if (s->start.len < want)
        return (int64_t)n;
    if (!s->data) {
        if (st_header_length((const unsigned char *)s->start.data, s->size,
                             &length, err))
            return -1;
        s->data = 8 + length;
    } else if (parse(s, err)) {
        return -1;
    }
    return (int64_t)n;
}

/* The tensors that end where we are. */
static int end_tensors(struct safetensors_stream *s, struct err *err)
{
    while (s->next < s->header.count) {
        const struct tensor_info *info = s->order[s->next];

        if (s->at < info->offset + info->bytes)
            return 0;
        s->next++;
        if (s->visitor->end(s->visitor->context, info, err))
            return -1;
    }
    return 0;
}

int safetensors_stream_add(struct safetensors_stream *s, const void *data,
                           size_t len, struct err *err)
{
    const char *at = data;

    while (len > 0) {
        int64_t n;

        if (!s->order) {
            n = add_header(s, at, len, err);
            if (n < 0)
                return -1;
        } else if (s->next == s->header.count) {
            return err_set(err, ERR_INPUT, "bytes after the last tensor");
        } else {
            const struct tensor_info *info = s->order[s->next];

            n = info->offset + info->bytes - s->at;
            n = n < (int64_t)len ? n : (int64_t)len;
            if (s->visitor->data(s->visitor->context, info, at, (size_t)n, err))
                return -1;
        }
        s->at += n;
        at += n;
        len -= (size_t)n;
        if (s->order && end_tensors(s, err))
            return -1;
    }
    return 0;
}
