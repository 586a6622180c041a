#ifndef BASE_MOUNT_H
#define BASE_MOUNT_H

#include "base/err.h"
#include "base/io.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * A folder that exists in this process alone: the files of an archive under the
 * archive's own path, ARCHIVE/data/x.json.  io.h looks here first, so that
 * whatever reads a folder on disk reads this one the same way.  It is for
 * reading only, and for one thread while it is filled.  The archive itself can
 * still be opened by its path, though it is a folder then.
 *
 * Every file is declared first; a declared file is listed and exists.  It can
 * be opened from mount_bytes() or mount_fd() on, until mount_drop().
 */
struct mount;

struct mount *mount_new(const char *root);
void mount_free(struct mount *m); /* NULL is fine */

/* A file below the root, "data/x.json". */
void mount_declare(struct mount *m, const char *path);

/* A declared file's content: a copy of bytes, or a descriptor of a regular
 * file, which is taken over. */
void mount_bytes(struct mount *m, const char *path, const void *data,
                 size_t len);
void mount_fd(struct mount *m, const char *path, int fd);

/* Lets go of a file's content. */
void mount_drop(struct mount *m, const char *path);

/* A new file without a name in TMPDIR (or /tmp), gone when it is closed. */
int mount_spill(struct err *err);

/* For io.c: is the path of some mount?  What it asks is then answered. */
enum mount_kind { MOUNT_NONE, MOUNT_FILE, MOUNT_FOLDER, MOUNT_NOTHING };
enum mount_kind mount_look(const char *path);
int mount_open(const char *path, struct err *err);      /* of a MOUNT_FILE */
void mount_list(const char *path, struct io_list *out); /* of a MOUNT_FOLDER */
#endif
