#ifndef IMAGE_PROCESSOR_H
#define IMAGE_PROCESSOR_H

#include "base/err.h"
#include "image/image.h"
#include "ledger/ledger.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * The image processors of two kinds of vision models, as mlx-vlm 0.6.3 has them
 * (numpy or mlx, and Pillow).  Qwen's (Qwen3VLImageProcessor): smart resize
 * with bicubic, rescale, normalise, rows of patches in merge-block order.
 * Kimi's (KimiK25ImageProcessor): smaller with bicubic where a limit of patches
 * asks, black up to whole merged patches, rows of patches in reading order.
 */
struct image_processor {
    int64_t patch, temporal, merge; /* patch and merge in pixels, patches */
    int64_t min_pixels, max_pixels;
    bool is_rescaled, is_normalized;
    float factor, mean[3], std[3];
    bool is_kimi;
    int64_t patch_limit, side_limit; /* Kimi's: of an image, of one side */
};

/*
 * Settings of a pack: preprocessor_config.json, and over it the object
 * 'image_processor' of processor_config.json when there is one; either may
 * stand alone.  An object 'media_proc_cfg' is Kimi's.  A key that nobody reads
 * and that has meaning is refused by its name (ERR_UNSUPPORTED), and so is a
 * pack without pixel limits: upstream's defaults are another model's.  Without
 * 'patch_size' it is 14 where config.json says qwen2_vl or qwen2_5_vl, else 16.
 */
int image_processor_load(struct ledger *ledger, struct image_processor *out,
                         struct err *err);

/* Does the pack hold such settings?  A file that cannot be read counts. */
bool image_processor_is_there(struct ledger *ledger);

/* Size of what is cut into patches: both sides multiples of patch * merge.
 * ERR_INPUT when one side is more than 200 times the other (Qwen). */
int image_processor_size(const struct image_processor *p, int64_t width,
                         int64_t height, int64_t *new_width,
                         int64_t *new_height, struct err *err);

/* Patches an image of that size gives (1 x rows x columns), and their length.
 */
int image_processor_grid(const struct image_processor *p, int64_t width,
                         int64_t height, int64_t grid[3], struct err *err);
int64_t image_processor_features(const struct image_processor *p);

/*
 * Resizes (bicubic, passes as in that Pillow) and writes grid[1] * grid[2]
 * rows of image_processor_features() values each.  Row ((bh * (gw / m) + bw)
 * * m + ih) * m + iw holds patch (bh * m + ih, bw * m + iw); its features go
 * channel, time, y, x; the one frame stands `temporal` times.  Kimi's patches
 * go row by row, features channel, y, x.
 */
int image_patches(const struct image_processor *p, const struct image *image,
                  enum image_passes passes, float *rows, struct err *err);
#endif
