#ifndef ARCHIVE_TAR_SHAPE_H
#define ARCHIVE_TAR_SHAPE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The raw bytes of a tar as they pass: the blocks before each entry's data, to
 * be held against those that the writer would put, and whether all padding is
 * zero.  libarchive, which reads the same bytes, says nothing of what it passes
 * over: reserved fields, unused link names, old types of a file.
 */
struct tar_shape;
struct tar_shape *tar_shape_new(void);
void tar_shape_free(struct tar_shape *s); /* NULL is fine */

void tar_shape_add(struct tar_shape *s, const void *bytes, size_t len);

/* The next entry's blocks, extended headers among them; valid until the next
 * call of either function.  NULL: they have not passed, or make no tar. */
const char *tar_shape_next(struct tar_shape *s, size_t *len);

/* Has something else than zeros padded the data of an entry? */
bool tar_shape_is_padded(const struct tar_shape *s);
#endif
