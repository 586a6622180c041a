#ifndef SAFETENSORS_STREAM_H
#define SAFETENSORS_STREAM_H

#include "base/err.h"
#include "safetensors/safetensors.h"

#include <stddef.h>
#include <stdint.h>

/*
 * A .safetensors file as it comes, in pieces of any length, for who cannot wait
 * for its end.  The header is checked as soon as it is whole, as
 * safetensors_open() does; then each tensor's bytes go to `data` and its end to
 * `end`, in the file's order.  -1 from either ends it.
 */
struct safetensors_stream;

struct safetensors_visitor {
    void *context;
    int (*data)(void *context, const struct tensor_info *info, const void *data,
                size_t len, struct err *err);
    int (*end)(void *context, const struct tensor_info *info, struct err *err);
};

/* `size` is the whole file's; what the visitor points to must live as long. */
struct safetensors_stream *
safetensors_stream_new(int64_t size, const struct safetensors_visitor *visitor);
int safetensors_stream_add(struct safetensors_stream *s, const void *data,
                           size_t len, struct err *err);
void safetensors_stream_free(struct safetensors_stream *s); /* NULL is fine */
#endif
