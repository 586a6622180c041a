/* A pax tar in one zstd frame: writing. */
#include "archive/tar.h"
#include "base/io.h"
#include "base/mem.h"

#include <archive.h>
#include <archive_entry.h>
#include <stdlib.h>
#include <zstd.h>

enum { LEVEL = 3 };

struct tar_writer {
    int fd;
    char *path;
    struct archive *tar;
    ZSTD_CCtx *zstd; /* NULL: only counting */
    struct hash *hash;
    char *out;
    size_t out_cap;
    int64_t size;
    struct buf *copy; /* NULL: the bytes are not wanted */
    bool is_over;     /* being released */
    struct err err;   /* of the callback */
};

static int pack(struct tar_writer *w, const void *data, size_t len,
                ZSTD_EndDirective end)
{
    ZSTD_inBuffer in = {data, len, 0};
    size_t left;

    do {
        ZSTD_outBuffer out = {w->out, w->out_cap, 0};

        left = ZSTD_compressStream2(w->zstd, &out, &in, end);
        if (ZSTD_isError(left))
            return err_set(&w->err, ERR_SYSTEM, "%s: %s", w->path,
                           ZSTD_getErrorName(left));
        if (io_write(w->fd, w->path, w->out, out.pos, &w->err))
            return -1;
    } while (end == ZSTD_e_end ? left != 0 : in.pos < in.size);
    return 0;
}

/* What went wrong stays in w->err: libarchive, told of a failure, would leave
 * its own memory behind. */
static la_ssize_t take(struct archive *tar, void *context, const void *data,
                       size_t len)
{
    struct tar_writer *w = context;

    (void)tar;
    if (w->is_over || w->err.code)
        return (la_ssize_t)len;
    w->size += (int64_t)len;
    if (w->copy)
        buf_add(w->copy, data, len);
    if (w->zstd) {
        hash_add(w->hash, data, len);
        pack(w, data, len, ZSTD_e_continue);
    }
    return (la_ssize_t)len;
}

/* The callback's own reason, or libarchive's; `is_good`: this says that all is
 * well. */
static int result(struct tar_writer *w, bool is_good, struct err *err)
{
    if (w->err.code)
        return err_set(err, w->err.code, "%s", w->err.text);
    if (is_good)
        return 0;
    const char *text = archive_error_string(w->tar);
    return err_set(err, ERR_SYSTEM, "%s: %s", w->path,
                   text ? text : "cannot be written");
}

static int start_zstd(struct tar_writer *w, int64_t size)
{
    w->zstd = ZSTD_createCCtx();
    w->out_cap = ZSTD_CStreamOutSize();
    w->out = xmalloc(w->out_cap);
    return w->zstd &&
                   !ZSTD_isError(ZSTD_CCtx_setParameter(
                       w->zstd, ZSTD_c_compressionLevel, LEVEL)) &&
                   !ZSTD_isError(ZSTD_CCtx_setParameter(
                       w->zstd, ZSTD_c_checksumFlag, 1)) &&
                   !ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(
                       w->zstd, (unsigned long long)size))
               ? 0
               : -1;
}

struct tar_writer *tar_writer_new(int fd, const char *path, int64_t size,
                                  struct err *err)
{
    struct tar_writer *w = xcalloc(1, sizeof(*w));

    w->fd = fd;
    w->path = xstrdup(path);
    w->hash = hash_new(HASH_SHA256);
    w->tar = archive_write_new();
    if (!w->tar || (fd >= 0 && start_zstd(w, size))) {
        err_set(err, ERR_SYSTEM, "%s: out of memory", path);
    } else if (archive_write_set_format_pax_restricted(w->tar) ||
               archive_write_add_filter_none(w->tar) ||
               archive_write_set_bytes_per_block(w->tar, 0) ||
               archive_write_open(w->tar, w, NULL, take, NULL)) {
        result(w, false, err);
    } else {
        return w;
    }
    tar_writer_free(w);
    return NULL;
}

void tar_writer_free(struct tar_writer *w)
{
    if (!w)
        return;
    w->is_over = true; /* nothing more is written */
    if (w->tar)
        archive_write_free(w->tar);
    ZSTD_freeCCtx(w->zstd);
    hash_free(w->hash);
    free(w->out);
    free(w->path);
    free(w);
}

int tar_writer_entry(struct tar_writer *w, const char *name, bool is_dir,
                     int64_t size, int64_t mtime, struct err *err)
{
    struct archive_entry *entry = archive_entry_new();
    int ret;

    if (!entry)
        return err_set(err, ERR_SYSTEM, "%s: out of memory", w->path);
    archive_entry_set_pathname(entry, name);
    archive_entry_set_filetype(entry, is_dir ? AE_IFDIR : AE_IFREG);
    archive_entry_set_perm(entry, is_dir ? 0755 : 0644);
    archive_entry_set_size(entry, size);
    archive_entry_set_mtime(entry, (time_t)mtime, 0);
    ret = result(w, archive_write_header(w->tar, entry) == ARCHIVE_OK, err);
    archive_entry_free(entry);
    return ret;
}

int tar_writer_head(struct tar_writer *w, const char *name, bool is_dir,
                    int64_t size, int64_t mtime, struct buf *out,
                    struct err *err)
{
    /* what the entry before still lacks is no part of this one's head */
    int ret = archive_write_finish_entry(w->tar) == ARCHIVE_FATAL
                  ? result(w, false, err)
                  : 0;

    w->copy = out;
    if (ret == 0)
        ret = tar_writer_entry(w, name, is_dir, size, mtime, err);
    w->copy = NULL;
    return ret;
}

int tar_writer_data(struct tar_writer *w, const void *data, size_t len,
                    struct err *err)
{
    return result(w, archive_write_data(w->tar, data, len) == (la_ssize_t)len,
                  err);
}

int tar_writer_end(struct tar_writer *w, char sha256[HASH_SHA256_HEX],
                   int64_t *size, struct err *err)
{
    if (result(w, archive_write_close(w->tar) == ARCHIVE_OK, err))
        return -1;
    if (w->zstd && pack(w, NULL, 0, ZSTD_e_end))
        return result(w, false, err);
    if (sha256)
        hash_hex(w->hash, sha256);
    if (size)
        *size = w->size;
    return 0;
}
