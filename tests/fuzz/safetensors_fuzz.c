/* Any bytes as a .safetensors file: read or refused, nothing else. */
#include "memory_file.h"
#include "safetensors/safetensors.h"

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
    safetensors_close(st);
    close(fd);
    return 0;
}
