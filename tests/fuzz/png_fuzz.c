/* Any bytes as a PNG.  A mutation would stop at the first CRC, so each is made
 * right again, but for one input in eight. */
#include "image_target.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max,
                               unsigned seed);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    fuzz_image(data, len);
    return 0;
}

static uint32_t crc32(const uint8_t *p, size_t n)
{
    uint32_t crc = 0xffffffff;

    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
    }
    return ~crc;
}

static uint32_t get_u32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 |
           p[3];
}

static void mend_chunks(uint8_t *data, size_t len)
{
    for (size_t at = 8; at + 12 <= len;) {
        size_t n = get_u32(data + at);

        if (n > len - at - 12)
            return;
        uint32_t crc = crc32(data + at + 4, n + 4);
        for (int i = 0; i < 4; i++)
            data[at + 8 + n + (size_t)i] = (uint8_t)(crc >> (24 - 8 * i));
        at += n + 12;
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max,
                               unsigned seed)
{
    static const uint8_t signature[] = {0x89, 'P',  'N',  'G',
                                        '\r', '\n', 0x1a, '\n'};

    size = LLVMFuzzerMutate(data, size, max);
    if (seed % 8 && size >= sizeof(signature)) {
        memcpy(data, signature, sizeof(signature));
        mend_chunks(data, size);
    }
    return size;
}
