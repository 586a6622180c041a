/* A pax tar in zstd frames: reading, strictly. */
#include "archive/tar.h"
#include "archive/tar_shape.h"
#include "base/io.h"
#include "base/mem.h"
#include "hash/queue.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

enum { WINDOW_LOG = 27, END_BLOCKS = 1024, FIRST_LIMIT = 64 << 20 };

struct tar_reader {
    int fd;
    char *path;
    struct archive *tar;
    ZSTD_DCtx *zstd;
    struct hash_queue *hash; /* of the tar, while we look at it */
    struct tar_shape *shape;
    struct tar_writer *same; /* writes the same entries, to nowhere */
    struct tar_entry last;   /* to be held against that, its name our own */
    struct buf found, head;  /* of the last: as it passed, as it is put */
    char *packed;            /* one step */
    ZSTD_inBuffer in;
    size_t frame_left; /* 0: between frames */
    int64_t size;      /* of tar, so far */
    int64_t written;   /* place behind the last byte that is not zero */
    int64_t limit;
    bool at_end; /* the file is read */
    struct err err;
};

/* More compressed bytes, when all are used. */
static int fill(struct tar_reader *r)
{
    ssize_t n;

    if (r->in.pos < r->in.size || r->at_end)
        return 0;
    do {
        n = read(r->fd, r->packed, ZSTD_DStreamInSize());
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return err_sys(&r->err, "%s: read", r->path);
    r->at_end = n == 0;
    r->in = (ZSTD_inBuffer){r->packed, (size_t)n, 0};
    return 0;
}

static void note(struct tar_reader *r, const char *plain, size_t len)
{
    size_t last = len;

    hash_queue_add(r->hash, len);
    tar_shape_add(r->shape, plain, len);
    while (last > 0 && plain[last - 1] == '\0')
        last--;
    if (last)
        r->written = r->size + (int64_t)last;
    r->size += (int64_t)len;
}

static la_ssize_t give(struct archive *tar, void *context, const void **data)
{
    struct tar_reader *r = context;
    ZSTD_outBuffer out = {hash_queue_next(r->hash), ZSTD_DStreamOutSize(), 0};

    (void)tar;
    *data = out.dst;
    while (out.pos == 0) {
        size_t before = r->in.pos;

        if (fill(r))
            return -1;
        if (r->at_end && r->frame_left == 0)
            return 0;
        r->frame_left = ZSTD_decompressStream(r->zstd, &out, &r->in);
        if (ZSTD_isError(r->frame_left))
            return err_set(&r->err, ERR_INPUT, "%s: %s", r->path,
                           ZSTD_getErrorName(r->frame_left));
        if (r->at_end && out.pos == 0 && r->in.pos == before && r->frame_left)
            return err_set(&r->err, ERR_INPUT, "%s: a zstd frame is cut short",
                           r->path);
    }
    note(r, out.dst, out.pos);
    if (r->size > r->limit)
        return err_set(&r->err, ERR_INPUT,
                       "%s: unpacks to more than %lld bytes", r->path,
                       (long long)r->limit);
    return (la_ssize_t)out.pos;
}

static int failed(struct tar_reader *r, struct err *err)
{
    if (r->err.code)
        return err_set(err, r->err.code, "%s", r->err.text);
    const char *text = archive_error_string(r->tar);
    return err_set(err, ERR_INPUT, "%s: %s", r->path,
                   text ? text : "not a tar");
}

struct tar_reader *tar_reader_open(const char *path, struct err *err)
{
    struct tar_reader *r = xcalloc(1, sizeof(*r));
    int64_t size;

    r->path = xstrdup(path);
    r->limit = FIRST_LIMIT;
    r->fd = io_open(path, &size, err);
    if (r->fd < 0)
        goto fail;
    r->same = tar_writer_new(-1, path, 0, err);
    if (!r->same)
        goto fail;
    r->shape = tar_shape_new();
    r->hash = hash_queue_new(HASH_SHA256, ZSTD_DStreamOutSize());
    r->packed = xmalloc(ZSTD_DStreamInSize());
    r->zstd = ZSTD_createDCtx();
    r->tar = archive_read_new();
    if (!r->zstd || !r->tar ||
        ZSTD_isError(
            ZSTD_DCtx_setParameter(r->zstd, ZSTD_d_windowLogMax, WINDOW_LOG))) {
        err_set(err, ERR_SYSTEM, "%s: out of memory", path);
        goto fail;
    }
    if (archive_read_support_format_tar(r->tar) ||
        archive_read_open(r->tar, r, NULL, give, NULL)) {
        failed(r, err);
        goto fail;
    }
    return r;
fail:
    tar_reader_close(r);
    return NULL;
}

void tar_reader_close(struct tar_reader *r)
{
    if (!r)
        return;
    if (r->tar)
        archive_read_free(r->tar);
    ZSTD_freeDCtx(r->zstd);
    hash_queue_free(r->hash);
    tar_writer_free(r->same);
    tar_shape_free(r->shape);
    free((char *)r->last.name);
    buf_release(&r->found);
    buf_release(&r->head);
    if (r->fd >= 0)
        close(r->fd);
    free(r->packed);
    free(r->path);
    free(r);
}

void tar_reader_limit(struct tar_reader *r, int64_t bytes)
{
    r->limit = bytes;
}

/* Two zero blocks, and nothing behind them. */
static int check_end(struct tar_reader *r, struct err *err)
{
    int64_t end = archive_read_header_position(r->tar);
    const void *ignored;
    la_ssize_t n;

    while ((n = give(r->tar, r, &ignored)) > 0)
        ;
    if (n < 0)
        return failed(r, err);
    if (r->written > end || r->size > end + END_BLOCKS)
        return err_set(err, ERR_INPUT, "%s: something stands behind the end",
                       r->path);
    if (r->size != end + END_BLOCKS)
        return err_set(err, ERR_INPUT, "%s: the tar is cut short", r->path);
    if (tar_shape_is_padded(r->shape))
        return err_set(err, ERR_INPUT, "%s: something stands behind a file",
                       r->path);
    return 0;
}

static bool is_empty(const char *text)
{
    return !text || !*text;
}

static int check_entry(struct tar_reader *r, struct archive_entry *e,
                       struct err *err)
{
    const char *name = archive_entry_pathname(e), *what = NULL;
    mode_t type = archive_entry_filetype(e);

    if (!name)
        return err_set(err, ERR_INPUT, "%s: an entry without a name", r->path);
    if (archive_entry_hardlink(e))
        what = "a hard link";
    else if (type == AE_IFLNK)
        what = "a symbolic link";
    else if (type != AE_IFREG && type != AE_IFDIR)
        what = "neither a file nor a folder";
    else if (archive_entry_sparse_count(e))
        what = "a file with holes";
    else if (type == AE_IFDIR && archive_entry_size(e) != 0)
        what = "a folder with data";
    else if (archive_entry_perm(e) != (type == AE_IFDIR ? 0755 : 0644))
        what = "of another mode than 0644, or 0755 for a folder";
    else if (archive_entry_uid(e) || archive_entry_gid(e) ||
             !is_empty(archive_entry_uname(e)) ||
             !is_empty(archive_entry_gname(e)))
        what = "of another owner than 0";
    else if (archive_entry_mtime_nsec(e) || archive_entry_atime_is_set(e) ||
             archive_entry_ctime_is_set(e) || archive_entry_xattr_count(e))
        what = "with attributes of its own";
    if (!what)
        return 0;
    /* a name may hold what no line should */
    return err_set(err, ERR_INPUT, "%s: an entry is %s", r->path, what);
}

/* Was the last entry's header, to its last byte, the one that the writer puts?
 * Asked only when the data have passed, so that a size that is not there costs
 * nothing: the writer makes up for data with zeros. */
static int check_head(struct tar_reader *r, struct err *err)
{
    const struct tar_entry *e = &r->last;

    if (!e->name)
        return 0;
    buf_clear(&r->head);
    if (tar_writer_head(r->same, e->name, e->is_dir, e->size, e->mtime,
                        &r->head, err))
        return -1;
    if (r->found.len == r->head.len &&
        memcmp(r->found.data, r->head.data, r->head.len) == 0)
        return 0;
    /* a name may hold what no line should */
    return err_set(err, ERR_INPUT,
                   "%s: an entry's header is not as it would be written",
                   r->path);
}

static void keep_head(struct tar_reader *r, const struct tar_entry *entry)
{
    size_t len = 0;
    const char *head = tar_shape_next(r->shape, &len);

    free((char *)r->last.name);
    r->last = *entry;
    r->last.name = xstrdup(entry->name);
    buf_clear(&r->found);
    if (head)
        buf_add(&r->found, head, len);
}

int tar_reader_next(struct tar_reader *r, struct tar_entry *entry,
                    struct err *err)
{
    struct archive_entry *e;
    int state = archive_read_next_header(r->tar, &e);

    if (state != ARCHIVE_OK && state != ARCHIVE_EOF)
        return failed(r, err);
    if (check_head(r, err))
        return -1;
    if (state == ARCHIVE_EOF)
        return check_end(r, err);
    if (check_entry(r, e, err))
        return -1;
    *entry = (struct tar_entry){archive_entry_pathname(e),
                                archive_entry_filetype(e) == AE_IFDIR,
                                archive_entry_size(e), archive_entry_mtime(e)};
    keep_head(r, entry);
    return 1;
}

int64_t tar_reader_data(struct tar_reader *r, void *data, size_t len,
                        struct err *err)
{
    la_ssize_t n = archive_read_data(r->tar, data, len);

    return n < 0 ? failed(r, err) : (int64_t)n;
}

void tar_reader_identity(struct tar_reader *r, char sha256[HASH_SHA256_HEX],
                         int64_t *size)
{
    hash_queue_hex(r->hash, sha256);
    *size = r->size;
}
