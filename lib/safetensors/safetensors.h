#ifndef SAFETENSORS_SAFETENSORS_H
#define SAFETENSORS_SAFETENSORS_H

#include "base/err.h"
#include "tensor/tensor.h"

#include <stddef.h>
#include <stdint.h>

/*
 * Tensors in safetensors files: one file, a pack (model.safetensors or the
 * shards that model.safetensors.index.json names), or a folder whose files are
 * read together.  Every header is read and every offset checked against the
 * file's size when it is opened (formats.md 1.2); tensor bytes are read on
 * demand with pread, so that a file cut short under us is an error.
 */
struct safetensors;

struct tensor_info {
    const char *name; /* as stored; escape before printing */
    enum dtype dtype;
    struct tensor_shape shape;
    int64_t bytes;
    int file;       /* index into the open set */
    int64_t offset; /* absolute, in that file */
};

/* Returns NULL with err set.  Release with safetensors_close(). */
struct safetensors *safetensors_open(const char *path, struct err *err);

/* A pack folder: index and shards are checked both ways (formats.md 1.4). */
struct safetensors *safetensors_open_pack(const char *dir, struct err *err);

/* What a pack's index says that need not be refused (a total_size that is not
 * the tensors'), for stderr; NULL: nothing. */
const char *safetensors_warning(const struct safetensors *st);

/* Several files as one set; one name twice is refused, naming both files. */
struct safetensors *safetensors_open_files(const char *const *paths,
                                           size_t count, struct err *err);
void safetensors_close(struct safetensors *st); /* NULL is fine */

size_t safetensors_count(const struct safetensors *st);
/* The i-th tensor in byte order of names; valid until close, never freed. */
const struct tensor_info *safetensors_at(const struct safetensors *st,
                                         size_t i);
/* NULL when there is none (no error is set: the caller knows what it means). */
const struct tensor_info *safetensors_find(const struct safetensors *st,
                                           const char *name);
/* The path of the file that holds it, for messages. */
const char *safetensors_path(const struct safetensors *st,
                             const struct tensor_info *info);
/* A value of the first file's __metadata__, or NULL. */
const char *safetensors_metadata(const struct safetensors *st, const char *key);

/* Reads `len` bytes at byte `offset` of the tensor's data. */
int safetensors_read(const struct safetensors *st,
                     const struct tensor_info *info, int64_t offset, size_t len,
                     void *dst, struct err *err);

/* Reads a whole tensor (at most `cap` bytes) into a new one. */
int safetensors_load(const struct safetensors *st, const char *name, size_t cap,
                     struct tensor *out, struct err *err);

/*
 * Writing (formats.md 1.3): same tensors, same bytes.  Declare every tensor
 * first, then write each one's bytes in any order and in pieces; finish checks
 * that each is complete, fsyncs and closes.  The file is made in place, inside
 * a folder that publish.h guards; on failure or abort it is removed.
 */
struct safetensors_writer;
struct safetensors_writer *safetensors_create(const char *path,
                                              struct err *err);
/* Returns the tensor's handle, or -1. */
int safetensors_declare(struct safetensors_writer *w, const char *name,
                        enum dtype dtype, struct tensor_shape shape,
                        struct err *err);
int safetensors_set_metadata(struct safetensors_writer *w, const char *key,
                             const char *value, struct err *err);
/* Bytes [offset, offset + len) of that tensor; each byte once. */
int safetensors_write(struct safetensors_writer *w, int handle, int64_t offset,
                      const void *data, size_t len, struct err *err);
/* Both end the writer, whatever they return. */
int safetensors_finish(struct safetensors_writer *w, struct err *err);
void safetensors_abort(struct safetensors_writer *w); /* NULL is fine */
#endif
