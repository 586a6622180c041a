/* Any bytes as a .safetensors file: read or refused, nothing else; and the same
 * of the bytes as they come, in pieces. */
#include "memory_file.h"
#include "safetensors/safetensors.h"
#include "safetensors/stream.h"

static int take(void *context, const struct tensor_info *info, const void *data,
                size_t len, struct err *err)
{
    (void)info;
    (void)data;
    (void)err;
    *(int64_t *)context += (int64_t)len;
    return 0;
}

static int end(void *context, const struct tensor_info *info, struct err *err)
{
    (void)err;
    *(int64_t *)context -= info->bytes;
    return 0;
}

/* A stream takes what a reader takes, and no other. */
static void stream(const uint8_t *data, size_t size, bool is_sound)
{
    int64_t left = 0;
    const struct safetensors_visitor v = {&left, take, end};
    struct safetensors_stream *s = safetensors_stream_new((int64_t)size, &v);
    struct err err = ERR_INIT;
    size_t step = 1 + size % 7;
    int ret = 0;

    for (size_t at = 0; at < size && ret == 0; at += step)
        ret = safetensors_stream_add(s, data + at,
                                     size - at < step ? size - at : step, &err);
    /* a header of no bytes is only found out by the byte behind it */
    if (is_sound ? ret || left : ret == 0 && size > 8)
        abort();
    safetensors_stream_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64], byte;
    struct err err = ERR_INIT;
    int fd = memory_file(data, size, path);
    struct safetensors *st = safetensors_open(path, &err);

    for (size_t i = 0; st && i < safetensors_count(st); i++) {
        const struct tensor_info *info = safetensors_at(st, i);

        /* every offset was checked: the last byte is there */
        if (info->bytes > 0 &&
            safetensors_read(st, info, info->bytes - 1, 1, &byte, &err))
            abort();
    }
    if (!st && err.code == ERR_NONE)
        abort();
    stream(data, size, st != NULL);
    safetensors_close(st);
    close(fd);
    return 0;
}
