#ifndef ARCHIVE_ZSTD_FILE_H
#define ARCHIVE_ZSTD_FILE_H

#include "base/buf.h"
#include "base/err.h"

#include <stddef.h>

/*
 * Appends the contents of a zstd-compressed regular file: one or more frames,
 * each whole, with nothing behind them.  More than `cap` bytes, a frame cut
 * short, damaged data or a file that is not zstd are ERR_INPUT; `out` is then
 * as it was.
 */
int zstd_read_file(const char *path, size_t cap, struct buf *out,
                   struct err *err);
#endif
