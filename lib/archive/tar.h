#ifndef ARCHIVE_TAR_H
#define ARCHIVE_TAR_H

#include "base/buf.h"
#include "base/err.h"
#include "hash/hash.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A pax tar in one zstd frame, written and read as a stream: memory does not
 * grow with the archive.  What is written depends on nothing but names, bytes
 * and one time: mode 0644 or 0755, owner 0, no owner names, two zero blocks and
 * no padding behind them.  Its identity is the SHA-256 of the tar; the
 * compressed bytes may differ between versions of zstd.
 */
struct tar_writer;

/*
 * Writes to fd, which stays the caller's; `path` only names it.  `size` is the
 * tar's length, which stands in the frame's header.  fd -1 counts only: data
 * need not be given then, and `size` does not matter.
 */
struct tar_writer *tar_writer_new(int fd, const char *path, int64_t size,
                                  struct err *err);
void tar_writer_free(struct tar_writer *w); /* NULL is fine */

/* The next entry; a folder's size is 0.  Its data follow, exactly `size`. */
int tar_writer_entry(struct tar_writer *w, const char *name, bool is_dir,
                     int64_t size, int64_t mtime, struct err *err);
int tar_writer_data(struct tar_writer *w, const void *data, size_t len,
                    struct err *err);

/* The next entry of a writer that only counts; the blocks that stand before its
 * data are appended to `out`. */
int tar_writer_head(struct tar_writer *w, const char *name, bool is_dir,
                    int64_t size, int64_t mtime, struct buf *out,
                    struct err *err);

/* Ends the archive; *size is the tar's length.  Either may be NULL. */
int tar_writer_end(struct tar_writer *w, char sha256[HASH_SHA256_HEX],
                   int64_t *size, struct err *err);

/*
 * Reading.  Only format tar and filter zstd, several frames or skippable ones
 * among them, a window of at most 2^27.  An entry that is neither a regular
 * file nor a folder is refused, as are a hard link, a file with holes, a mode,
 * owner or time that the writer would not put, a header or padding of other
 * bytes than the writer's, anything behind the end, and more bytes than the
 * limit. Names are the caller's to check.
 */
struct tar_reader;

struct tar_entry {
    const char *name; /* as it stands; valid until the next */
    bool is_dir;
    int64_t size, mtime;
};

struct tar_reader *tar_reader_open(const char *path, struct err *err);
void tar_reader_close(struct tar_reader *r); /* NULL is fine */

/* Most bytes of tar; 64 MiB until it is set. */
void tar_reader_limit(struct tar_reader *r, int64_t bytes);

/* 1 with the next entry, 0 at the archive's end, which is then checked, -1. */
int tar_reader_next(struct tar_reader *r, struct tar_entry *entry,
                    struct err *err);

/* Up to len bytes of the entry's data: how many, 0 at their end, -1. */
int64_t tar_reader_data(struct tar_reader *r, void *data, size_t len,
                        struct err *err);

/* After the end: the identity and the length of the tar. */
void tar_reader_identity(struct tar_reader *r, char sha256[HASH_SHA256_HEX],
                         int64_t *size);
#endif
