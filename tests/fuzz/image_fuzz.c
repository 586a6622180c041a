/* Any bytes as an image: refused, or decoded, turned upright and resized.  One
 * target for the three kinds, as content decides which decoder runs. */
#include "image/image.h"

#include <stdlib.h>

enum { MAX_PIXELS = 1 << 18 }; /* larger ones only cost time */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct image image, to;
    struct err err = ERR_INIT;
    int64_t w = len ? 1 + data[len / 2] % 64 : 1, h = 1 + (int64_t)len % 64;

    if (image_decode_alpha(data, len, &image, &err))
        return 0;
    if (image.width * image.height <= MAX_PIXELS &&
        image_orient(&image, &err) == 0 &&
        image_resize(&image, w, h, (enum image_filter)(len % 5),
                     (enum image_passes)(len % 3), &to, &err) == 0)
        image_release(&to);
    image_release(&image);
    return 0;
}
