#ifndef BASE_IO_H
#define BASE_IO_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Files, read and written whole.  Every message names the path. */

enum { IO_JSON_CAP = 64 << 20 }; /* most bytes of a JSON document we read */

/* Opens a regular file for reading (a FIFO, directory or device is refused);
 * *size is its length.  Returns the descriptor or -1. */
int io_open(const char *path, int64_t *size, struct err *err);

/* Reads exactly len bytes at offset; a file cut short is ERR_INPUT. */
int io_pread(int fd, const char *path, void *dst, size_t len, int64_t offset,
             struct err *err);

/* Appends a whole regular file of at most `cap` bytes; "-" is stdin. */
int io_read_file(const char *path, size_t cap, struct buf *out,
                 struct err *err);

/* All of it, or ERR_SYSTEM; `path` only names it. */
int io_write(int fd, const char *path, const void *data, size_t len,
             struct err *err);

/* Writes a file beside its place, fsyncs and renames; an existing file is
 * ERR_EXISTS.  Missing parents are made. */
int io_write_file(const char *path, const void *data, size_t len,
                  struct err *err);

/* The same of what `put` writes to the file, which it leaves open. */
typedef int io_writer(int fd, void *ctx, struct err *err);
int io_write_by(const char *path, io_writer *put, void *ctx, struct err *err);

/* mkdir -p; the folder may be there already. */
int io_make_dirs(const char *path, struct err *err);

bool io_exists(const char *path); /* anything, links not followed */
bool io_is_dir(const char *path); /* links followed */

/* Refuses (ERR_EXISTS) to write where something is already; NULL is nowhere. */
int io_check_new(const char *path, struct err *err);

/* The same file, links followed: device and inode. */
bool io_is_same(const char *a, const char *b);

/* Names in a folder without "." and "..", sorted by bytes. */
struct io_list {
    char **names;
    size_t count;
};
int io_list(const char *path, struct io_list *out, struct err *err);
void io_list_release(struct io_list *list);

/* Removes a folder and all below it, never through a link. */
int io_remove_tree(const char *path, struct err *err);

/* Copies a regular file into a new one (mode 0644), fsynced. */
int io_copy_file(const char *from, const char *to, struct err *err);
#endif
