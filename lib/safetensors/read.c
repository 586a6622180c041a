/*
 * Opening and reading .safetensors files:
 *
 *     8 bytes  N, little-endian
 *     N bytes  the header (header.c)
 *     rest     data: the tensors side by side, no gap, no overlap
 */
#include "safetensors/safetensors_internal.h"

#include "base/bug.h"
#include "base/io.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct range {
    int64_t begin, end;
    const struct tensor_info *info;
};

static int range_order(const void *a, const void *b)
{
    const struct range *x = a, *y = b;

    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

/* Side by side from 0 to the end of the file? */
static int check_order(const struct range *ranges, size_t count,
                       int64_t data_size, struct err *err)
{
    char a[ST_SHOWN], b[ST_SHOWN];
    int64_t at = 0;

    for (size_t i = 0; i < count; i++) {
        st_show(ranges[i].info->name, a);
        if (ranges[i].begin == at) {
            at = ranges[i].end;
            continue;
        }
        if (i == 0)
            return err_set(err, ERR_INPUT,
                           "tensor '%s': the first one starts at %lld, not 0",
                           a, (long long)ranges[i].begin);
        st_show(ranges[i - 1].info->name, b);
        return err_set(err, ERR_INPUT,
                       "tensors '%s' [%lld, %lld) and '%s' [%lld, %lld) %s", b,
                       (long long)ranges[i - 1].begin, (long long)at, a,
                       (long long)ranges[i].begin, (long long)ranges[i].end,
                       ranges[i].begin < at ? "overlap"
                                            : "leave a gap between them");
    }
    for (size_t i = 0; at > data_size && i < count; i++)
        if (ranges[i].end > data_size)
            return err_set(err, ERR_INPUT,
                           "cut short: the header needs %lld bytes of data, "
                           "the file has %lld; tensor '%s' [%lld, %lld) is the "
                           "first that is not whole",
                           (long long)at, (long long)data_size,
                           st_show(ranges[i].info->name, a),
                           (long long)ranges[i].begin,
                           (long long)ranges[i].end);
    if (at < data_size)
        return err_set(err, ERR_INPUT,
                       "%lld bytes after the last tensor's end at %lld",
                       (long long)(data_size - at), (long long)at);
    return 0;
}

int st_check_ranges(const struct st_header *h, int64_t data_size,
                    struct err *err)
{
    struct range *ranges = mem_array(h->count, sizeof(*ranges), SIZE_MAX, err);
    int ret;

    if (!ranges)
        return -1;
    for (size_t i = 0; i < h->count; i++) {
        const struct tensor_info *info = &h->infos[i];

        ranges[i] =
            (struct range){info->offset, info->offset + info->bytes, info};
    }
    qsort(ranges, h->count, sizeof(*ranges), range_order);
    ret = check_order(ranges, h->count, data_size, err);
    free(ranges);
    return ret;
}

int st_header_length(const unsigned char prefix[8], int64_t size, int64_t *out,
                     struct err *err)
{
    uint64_t n = 0;

    for (int i = 7; i >= 0; i--)
        n = n << 8 | prefix[i];
    if (n > ST_HEADER_CAP)
        return err_set(err, ERR_INPUT,
                       "a header of %llu bytes; at most %d are allowed",
                       (unsigned long long)n, ST_HEADER_CAP);
    if ((int64_t)n > size - 8)
        return err_set(err, ERR_INPUT,
                       "cut short: a header of %llu bytes in a file of %lld",
                       (unsigned long long)n, (long long)size);
    *out = (int64_t)n;
    return 0;
}

/* Opens one file and gives what its header says, offsets made absolute. */
static int open_file(struct st_file *file, const char *path,
                     struct st_header *h, struct err *err)
{
    unsigned char prefix[8];
    int64_t n, size;

    file->path = xstrdup(path);
    file->fd = io_open(path, &size, err);
    if (file->fd < 0)
        return -1;
    if (size < 8) {
        err_set(err, ERR_INPUT, "%lld bytes, shorter than a header's length",
                (long long)size);
        return err_in(err, "%s", path);
    }
    if (io_pread(file->fd, path, prefix, 8, 0, err))
        return -1;
    if (st_header_length(prefix, size, &n, err))
        return err_in(err, "%s", path);
    file->header = mem_array((size_t)n + 1, 1, ST_HEADER_CAP + 1, err);
    if (!file->header)
        return err_in(err, "%s", path);
    if (io_pread(file->fd, path, file->header, (size_t)n, 8, err))
        return -1;
    if (st_header_parse(file->header, (size_t)n, h, err) ||
        st_check_ranges(h, size - 8 - n, err))
        return err_in(err, "%s", path);
    for (size_t i = 0; i < h->count; i++)
        h->infos[i].offset += 8 + n;
    return 0;
}

static int info_order(const void *a, const void *b)
{
    return strcmp(((const struct tensor_info *)a)->name,
                  ((const struct tensor_info *)b)->name);
}

/* Puts the headers' tensors into one array. */
static int merge(struct safetensors *st, struct st_header *headers,
                 struct err *err)
{
    size_t total = 0;

    st->metadata = headers[0].metadata;
    st->metadata_count = headers[0].metadata_count;
    headers[0].metadata = NULL;
    for (size_t i = 0; i < st->file_count; i++)
        total += headers[i].count;
    st->infos = mem_array(total, sizeof(*st->infos), SIZE_MAX, err);
    if (!st->infos)
        return -1;
    for (size_t i = 0; i < st->file_count; i++)
        for (size_t k = 0; k < headers[i].count; k++) {
            st->infos[st->count] = headers[i].infos[k];
            st->infos[st->count++].file = (int)i;
        }
    return 0;
}

static int check_names(struct safetensors *st, struct err *err)
{
    char shown[ST_SHOWN];

    if (st->file_count < 2 || st->count == 0)
        return 0;
    qsort(st->infos, st->count, sizeof(*st->infos), info_order);
    for (size_t i = 1; i < st->count; i++) {
        const struct tensor_info *a = &st->infos[i - 1], *b = &st->infos[i];

        if (strcmp(a->name, b->name) == 0)
            return err_set(err, ERR_INPUT, "tensor '%s' is in %s and in %s",
                           st_show(a->name, shown), st->files[a->file].path,
                           st->files[b->file].path);
    }
    return 0;
}

struct safetensors *safetensors_open_files(const char *const *paths,
                                           size_t count, struct err *err)
{
    struct safetensors *st = xcalloc(1, sizeof(*st));
    struct st_header *headers = xcalloc(count, sizeof(*headers));
    int ret = 0;

    BUG_ON(count == 0);
    st->files = xcalloc(count, sizeof(*st->files));
    for (size_t i = 0; i < count && ret == 0; i++) {
        st->files[i].fd = -1;
        st->file_count++;
        ret = open_file(&st->files[i], paths[i], &headers[i], err);
    }
    if (ret == 0)
        ret = merge(st, headers, err);
    if (ret == 0)
        ret = check_names(st, err);
    for (size_t i = 0; i < count; i++)
        st_header_release(&headers[i]);
    free(headers);
    if (ret == 0)
        return st;
    safetensors_close(st);
    return NULL;
}

struct safetensors *safetensors_open(const char *path, struct err *err)
{
    return safetensors_open_files(&path, 1, err);
}

void safetensors_close(struct safetensors *st)
{
    if (!st)
        return;
    for (size_t i = 0; i < st->file_count; i++) {
        if (st->files[i].fd >= 0)
            close(st->files[i].fd);
        free(st->files[i].path);
        free(st->files[i].header);
    }
    free(st->files);
    free(st->infos);
    free(st->metadata);
    free(st->warning);
    free(st);
}

size_t safetensors_count(const struct safetensors *st)
{
    return st->count;
}

const struct tensor_info *safetensors_at(const struct safetensors *st, size_t i)
{
    BUG_ON(i >= st->count);
    return &st->infos[i];
}

const struct tensor_info *safetensors_find(const struct safetensors *st,
                                           const char *name)
{
    size_t low = 0, high = st->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, st->infos[middle].name);

        if (order == 0)
            return &st->infos[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

const char *safetensors_path(const struct safetensors *st,
                             const struct tensor_info *info)
{
    return st->files[info->file].path;
}

const char *safetensors_metadata(const struct safetensors *st, const char *key)
{
    for (size_t i = 0; i < st->metadata_count; i++)
        if (strcmp(st->metadata[i].key, key) == 0)
            return st->metadata[i].value;
    return NULL;
}

const char *safetensors_warning(const struct safetensors *st)
{
    return st->warning;
}

int safetensors_read(const struct safetensors *st,
                     const struct tensor_info *info, int64_t offset, size_t len,
                     void *dst, struct err *err)
{
    const struct st_file *file = &st->files[info->file];
    char shown[ST_SHOWN];

    BUG_ON(offset < 0 || offset > info->bytes ||
           len > (size_t)(info->bytes - offset));
    if (io_pread(file->fd, file->path, dst, len, info->offset + offset, err))
        return err_in(err, "tensor '%s'", st_show(info->name, shown));
    return 0;
}

int safetensors_load(const struct safetensors *st, const char *name, size_t cap,
                     struct tensor *out, struct err *err)
{
    const struct tensor_info *info = safetensors_find(st, name);
    char shown[ST_SHOWN];

    out->data = NULL;
    if (!info)
        return err_set(err, ERR_INPUT, "no tensor '%s'", st_show(name, shown));
    if (tensor_init(out, info->dtype, info->shape, cap, err))
        return err_in(err, "tensor '%s'", st_show(name, shown));
    if (safetensors_read(st, info, 0, (size_t)info->bytes, out->data, err)) {
        tensor_release(out);
        return -1;
    }
    return 0;
}
