/*
 * Writing a .safetensors file so that the same tensors give the same bytes:
 * metadata first with its keys sorted, tensors by dtype in descending width
 * and then by name, no white space, N a multiple of 8.
 */
#include "base/buf.h"
#include "base/bug.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "safetensors/safetensors_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct span {
    int64_t begin, end;
};

struct slot {
    char *name;
    enum dtype dtype;
    struct tensor_shape shape;
    int64_t bytes, offset; /* in the file, once laid out */
    struct span *done;     /* what was written, sorted and merged */
    size_t done_count, done_cap;
};

struct pair {
    char *key, *value;
};

struct safetensors_writer {
    char *path;
    int fd;
    struct slot *slots;
    size_t count, cap;
    struct pair *metadata;
    size_t metadata_count;
    bool is_laid_out;
};

struct safetensors_writer *safetensors_create(const char *path, struct err *err)
{
    int fd =
        open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    struct safetensors_writer *w;

    if (fd < 0) {
        err_write(err, "%s", path);
        return NULL;
    }
    w = xcalloc(1, sizeof(*w));
    w->path = xstrdup(path);
    w->fd = fd;
    return w;
}

static int check_text(const char *what, const char *text, struct err *err)
{
    size_t len = strlen(text);

    if (!utf8_is_valid(text, len))
        return err_set(err, ERR_INPUT, "a %s that is not UTF-8", what);
    if (len > ST_NAME_CAP)
        return err_set(err, ERR_INPUT, "a %s longer than %d bytes", what,
                       ST_NAME_CAP);
    return 0;
}

int safetensors_declare(struct safetensors_writer *w, const char *name,
                        enum dtype dtype, struct tensor_shape shape,
                        struct err *err)
{
    int64_t bytes = shape_bytes(&shape, dtype);
    char shown[ST_SHOWN], text[256];

    BUG_ON(w->is_laid_out);
    if (check_text("name", name, err))
        return err_in(err, "%s", w->path);
    if (strcmp(name, "__metadata__") == 0)
        return err_set(err, ERR_INPUT, "%s: no tensor may be named '%s'",
                       w->path, name);
    if (bytes < 0) {
        shape_format(&shape, text, sizeof(text));
        return err_set(err, ERR_INPUT, "%s: tensor '%s': no such size: %s %s",
                       w->path, st_show(name, shown), dtype_name(dtype), text);
    }
    if (w->count == w->cap) {
        w->cap = w->cap ? w->cap * 2 : 64;
        w->slots = xrealloc(w->slots, w->cap * sizeof(*w->slots));
    }
    w->slots[w->count] = (struct slot){
        .name = xstrdup(name), .dtype = dtype, .shape = shape, .bytes = bytes};
    return (int)w->count++;
}

int safetensors_set_metadata(struct safetensors_writer *w, const char *key,
                             const char *value, struct err *err)
{
    BUG_ON(w->is_laid_out);
    if (check_text("metadata key", key, err))
        return err_in(err, "%s", w->path);
    if (!utf8_is_valid(value, strlen(value)))
        return err_set(err, ERR_INPUT, "%s: metadata '%s' is not UTF-8",
                       w->path, key);
    for (size_t i = 0; i < w->metadata_count; i++)
        if (strcmp(w->metadata[i].key, key) == 0) {
            free(w->metadata[i].value);
            w->metadata[i].value = xstrdup(value);
            return 0;
        }
    w->metadata =
        xrealloc(w->metadata, (w->metadata_count + 1) * sizeof(*w->metadata));
    w->metadata[w->metadata_count++] =
        (struct pair){xstrdup(key), xstrdup(value)};
    return 0;
}

static void add_string(struct buf *b, const char *text)
{
    static const char from[] = "\"\\\b\f\n\r\t", into[] = "\"\\bfnrt";

    buf_addch(b, '"');
    for (; *text; text++) {
        const char *simple = strchr(from, *text);

        if (simple) {
            buf_addch(b, '\\');
            buf_addch(b, into[simple - from]);
        } else if ((unsigned char)*text < 0x20) {
            buf_addf(b, "\\u%04x", (unsigned)*text);
        } else {
            buf_addch(b, *text);
        }
    }
    buf_addch(b, '"');
}

static int pair_order(const void *a, const void *b)
{
    return strcmp(((const struct pair *)a)->key, ((const struct pair *)b)->key);
}

static int name_order(const void *a, const void *b)
{
    return strcmp((*(struct slot *const *)a)->name,
                  (*(struct slot *const *)b)->name);
}

static int data_order(const void *a, const void *b)
{
    const struct slot *x = *(struct slot *const *)a;
    const struct slot *y = *(struct slot *const *)b;

    if (x->dtype != y->dtype)
        return x->dtype < y->dtype ? -1 : 1;
    return strcmp(x->name, y->name);
}

static void add_metadata(struct buf *b, struct safetensors_writer *w)
{
    if (w->metadata_count == 0)
        return;
    qsort(w->metadata, w->metadata_count, sizeof(*w->metadata), pair_order);
    buf_addstr(b, "\"__metadata__\":{");
    for (size_t i = 0; i < w->metadata_count; i++) {
        if (i)
            buf_addch(b, ',');
        add_string(b, w->metadata[i].key);
        buf_addch(b, ':');
        add_string(b, w->metadata[i].value);
    }
    buf_addch(b, '}');
}

static void add_entry(struct buf *b, const struct slot *slot)
{
    if (b->len > 1)
        buf_addch(b, ',');
    add_string(b, slot->name);
    buf_addf(b, ":{\"dtype\":\"%s\",\"shape\":[", dtype_name(slot->dtype));
    for (int i = 0; i < slot->shape.dims; i++)
        buf_addf(b, "%s%lld", i ? "," : "", (long long)slot->shape.size[i]);
    buf_addf(b, "],\"data_offsets\":[%lld,%lld]}", (long long)slot->offset,
             (long long)(slot->offset + slot->bytes));
}

static int write_at(struct safetensors_writer *w, const void *data, size_t len,
                    int64_t offset, struct err *err)
{
    const char *at = data;

    while (len > 0) {
        ssize_t n = pwrite(w->fd, at, len, offset);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(err, "%s: write", w->path);
        at += n;
        offset += n;
        len -= (size_t)n;
    }
    return 0;
}

/* Gives every tensor its place and writes the header. */
static int lay_out(struct safetensors_writer *w, struct err *err)
{
    struct slot **order = xcalloc(w->count, sizeof(struct slot *));
    struct buf header = BUF_INIT;
    unsigned char prefix[8];
    char shown[ST_SHOWN];
    int64_t at = 0;
    int ret = -1;

    for (size_t i = 0; i < w->count; i++)
        order[i] = &w->slots[i];
    qsort(order, w->count, sizeof(*order), name_order);
    for (size_t i = 1; i < w->count; i++)
        if (strcmp(order[i - 1]->name, order[i]->name) == 0) {
            err_set(err, ERR_INPUT, "%s: tensor '%s' twice", w->path,
                    st_show(order[i]->name, shown));
            goto out;
        }
    qsort(order, w->count, sizeof(*order), data_order);
    buf_addch(&header, '{');
    add_metadata(&header, w);
    for (size_t i = 0; i < w->count; i++) {
        order[i]->offset = at;
        if (__builtin_add_overflow(at, order[i]->bytes, &at)) {
            err_set(err, ERR_INPUT, "%s: the sizes overflow", w->path);
            goto out;
        }
        add_entry(&header, order[i]);
    }
    buf_addch(&header, '}');
    while (header.len % 8 != 0)
        buf_addch(&header, ' ');
    if (header.len > ST_HEADER_CAP || at > INT64_MAX - 8 - ST_HEADER_CAP) {
        err_set(err, ERR_UNSUPPORTED, "%s: a header of %zu bytes", w->path,
                header.len);
        goto out;
    }
    for (int i = 0; i < 8; i++)
        prefix[i] = (unsigned char)(header.len >> (8 * i));
    for (size_t i = 0; i < w->count; i++)
        w->slots[i].offset += 8 + (int64_t)header.len;
    if (write_at(w, prefix, 8, 0, err) ||
        write_at(w, header.data, header.len, 8, err))
        goto out;
    w->is_laid_out = true;
    ret = 0;
out:
    free(order);
    buf_release(&header);
    return ret;
}

/* Notes that [begin, end) is written; no byte may be written twice. */
static void mark(struct slot *slot, int64_t begin, int64_t end)
{
    size_t i = slot->done_count;

    while (i > 0 && slot->done[i - 1].begin >= end)
        i--;
    BUG_ON(i > 0 && slot->done[i - 1].end > begin);
    if (i > 0 && slot->done[i - 1].end == begin) {
        slot->done[i - 1].end = end;
    } else {
        if (slot->done_count == slot->done_cap) {
            slot->done_cap = slot->done_cap ? slot->done_cap * 2 : 4;
            slot->done =
                xrealloc(slot->done, slot->done_cap * sizeof(*slot->done));
        }
        memmove(slot->done + i + 1, slot->done + i,
                (slot->done_count - i) * sizeof(*slot->done));
        slot->done[i++] = (struct span){begin, end};
        slot->done_count++;
    }
    if (i < slot->done_count && slot->done[i].begin == end) {
        slot->done[i - 1].end = slot->done[i].end;
        memmove(slot->done + i, slot->done + i + 1,
                (slot->done_count - i - 1) * sizeof(*slot->done));
        slot->done_count--;
    }
}

int safetensors_write(struct safetensors_writer *w, int handle, int64_t offset,
                      const void *data, size_t len, struct err *err)
{
    struct slot *slot;

    BUG_ON(handle < 0 || (size_t)handle >= w->count);
    slot = &w->slots[handle];
    BUG_ON(offset < 0 || offset > slot->bytes ||
           len > (size_t)(slot->bytes - offset));
    if (!w->is_laid_out && lay_out(w, err))
        return -1;
    if (len == 0)
        return 0;
    if (write_at(w, data, len, slot->offset + offset, err))
        return -1;
    mark(slot, offset, offset + (int64_t)len);
    return 0;
}

static void release(struct safetensors_writer *w)
{
    if (w->fd >= 0)
        close(w->fd);
    for (size_t i = 0; i < w->count; i++) {
        free(w->slots[i].name);
        free(w->slots[i].done);
    }
    for (size_t i = 0; i < w->metadata_count; i++) {
        free(w->metadata[i].key);
        free(w->metadata[i].value);
    }
    free(w->slots);
    free(w->metadata);
    free(w->path);
    free(w);
}

void safetensors_abort(struct safetensors_writer *w)
{
    if (!w)
        return;
    unlink(w->path);
    release(w);
}

static int check_complete(const struct safetensors_writer *w, struct err *err)
{
    char shown[ST_SHOWN];

    for (size_t i = 0; i < w->count; i++) {
        const struct slot *slot = &w->slots[i];

        if (slot->bytes == 0 ||
            (slot->done_count == 1 && slot->done[0].begin == 0 &&
             slot->done[0].end == slot->bytes))
            continue;
        return err_set(err, ERR_INPUT,
                       "%s: tensor '%s' was not written in full", w->path,
                       st_show(slot->name, shown));
    }
    return 0;
}

int safetensors_finish(struct safetensors_writer *w, struct err *err)
{
    int ret = -1;

    if ((!w->is_laid_out && lay_out(w, err)) || check_complete(w, err))
        goto fail;
    if (fsync(w->fd)) {
        err_sys(err, "%s: fsync", w->path);
        goto fail;
    }
    ret = close(w->fd) ? err_sys(err, "%s: close", w->path) : 0;
    w->fd = -1;
    if (ret)
        goto fail;
    release(w);
    return 0;
fail:
    safetensors_abort(w);
    return -1;
}
