#ifndef FUZZ_IMAGE_TARGET_H
#define FUZZ_IMAGE_TARGET_H

/* What png_fuzz, jpeg_fuzz and webp_fuzz share: any bytes as an image, refused
 * or decoded, turned upright, resized and cut into patches.  Content decides
 * which decoder runs, the seeds decide which one is tried. */
#include "image/image.h"
#include "image/processor.h"

#include <stdlib.h>

enum { FUZZ_MAX_PIXELS = 1 << 18 }; /* larger ones only cost time */

static void fuzz_patches(const struct image *image, enum image_passes passes)
{
    struct image_processor p = {.patch = 14,
                                .temporal = 2,
                                .merge = 2,
                                .min_pixels = 28 * 28,
                                .max_pixels = 28 * 28 * 16,
                                .is_rescaled = true,
                                .is_normalized = true,
                                .factor = 1 / 255.0f,
                                .mean = {0.5f, 0.5f, 0.5f},
                                .std = {0.5f, 0.5f, 0.5f}};
    struct err err = ERR_INIT;
    int64_t grid[3];

    if (image_processor_grid(&p, image->width, image->height, grid, &err))
        return;
    float *rows = malloc(
        (size_t)(grid[0] * grid[1] * grid[2] * image_processor_features(&p)) *
        sizeof(*rows));
    if (rows)
        image_patches(&p, image, passes, rows, &err);
    free(rows);
}

static void fuzz_image(const uint8_t *data, size_t len)
{
    struct image image, to;
    struct err err = ERR_INIT;
    int64_t w = len ? 1 + data[len / 2] % 64 : 1, h = 1 + (int64_t)len % 64;
    enum image_passes passes = (enum image_passes)(len % 3);

    if (image_decode_alpha(data, len, &image, &err)) {
        if (err.code == ERR_NONE || !*err.text)
            abort(); /* a refusal says why */
        return;
    }
    if (image.width * image.height <= FUZZ_MAX_PIXELS &&
        image_orient(&image, &err) == 0) {
        if (image_resize(&image, w, h, (enum image_filter)(len % 5), passes,
                         &to, &err) == 0)
            image_release(&to);
        fuzz_patches(&image, passes);
    }
    image_release(&image);
}
#endif
