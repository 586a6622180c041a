/* Any bytes as a bundle: as they are, and as a tar in a sound zstd frame, which
 * no mutation of the compressed bytes would be. */
#include "evidence/bundle.h"
#include "memory_file.h"

#include <zstd.h>

static void read_one(const void *data, size_t size)
{
    char path[64];
    struct err err = ERR_INIT;
    struct bundle b;
    int fd = memory_file(data, size, path);

    if (bundle_read(path, 16 << 20, NULL, &b, &err) == 0) {
        json_t *faults = json_array();

        bag_judge(&b.bag, faults);
        json_decref(faults);
        bundle_release(&b);
    } else if (err.code == ERR_NONE) {
        abort();
    }
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t cap = ZSTD_compressBound(size);
    void *packed = malloc(cap);
    size_t n = ZSTD_compress(packed, cap, data, size, 1);

    if (ZSTD_isError(n))
        abort();
    read_one(packed, n);
    read_one(data, size);
    free(packed);
    return 0;
}
