/*
 * Kimi's pixels to patches, after mlx-vlm 0.6.3 models/kimi_k25/
 * processing_kimi_k25.py: an image is made smaller where it passes a limit of
 * patches, never larger, then filled up to whole merged patches with black on
 * its right and lower side.  Patches go row by row.  Every value is f32.
 */
#include "image/image_internal.h"
#include "image/processor_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of videos, or upstream's own bookkeeping. */
static const char *const without_effect[] = {
    "in_patch_limit_each_frame",
    "in_patch_limit_video",
    "sample_fps",
    "max_num_frames_each_video",
    "temporal_merge_kernel_size",
    "timestamp_mode",
    "config_type",
    NULL,
};

/* Upstream fails on null here, or leaves the keys behind it alone. */
static const char *const never_null[] = {
    "patch_size", "in_patch_limit",          "image_mean",
    "image_std",  "patch_limit_on_one_side",
};

/* A number, or two that are one: rows and columns merged. */
static int get_merge(const struct section *media, int64_t *out, struct err *err)
{
    const char *key = "merge_kernel_size";
    json_t *list;

    if (!json_is_array(json_object_get(config_object(media), key)))
        return config_count(media, key, 2, out, err);
    if (config_get_list(media, key, &list, err))
        return -1;
    if (json_array_size(list) != 2 ||
        !json_is_integer(json_array_get(list, 0)) ||
        !json_equal(json_array_get(list, 0), json_array_get(list, 1)))
        return err_set(err, ERR_UNSUPPORTED, "'%s' is not a square", key);
    *out = json_integer_value(json_array_get(list, 0));
    return 0;
}

int kimi_settings(const struct section *media, struct image_processor *out,
                  struct err *err)
{
    *out = (struct image_processor){
        .is_kimi = true,
        .temporal = 1,
        .is_rescaled = true,
        .is_normalized = true,
        .mean = {0.5f, 0.5f, 0.5f},
        .std = {0.5f, 0.5f, 0.5f},
    };
    for (size_t i = 0; i < sizeof(never_null) / sizeof(never_null[0]); i++)
        if (processor_check_null(media, never_null[i], err))
            return -1;
    if (config_count(media, "patch_size", 14, &out->patch, err) ||
        config_count(media, "in_patch_limit", 16384, &out->patch_limit, err) ||
        config_count(media, "patch_limit_on_one_side", 512, &out->side_limit,
                     err) ||
        get_merge(media, &out->merge, err) ||
        processor_read_colors(media, "image_mean", out->mean, err) ||
        processor_read_colors(media, "image_std", out->std, err))
        return -1;
    const struct {
        const char *key;
        int64_t value, most;
    } sizes[] = {{"patch_size", out->patch, 1024},
                 {"merge_kernel_size", out->merge, 64}};
    for (size_t i = 0; i < 2; i++)
        if (sizes[i].value < 1 || sizes[i].value > sizes[i].most)
            return err_set(err, ERR_INPUT, "'%s' is %lld", sizes[i].key,
                           (long long)sizes[i].value);
    if (config_has(media, "fixed_output_tokens"))
        return err_set(err, ERR_UNSUPPORTED,
                       "'fixed_output_tokens' is set, which upstream ignores");
    config_ignore(media, (const char *const[]){"fixed_output_tokens", NULL});
    config_ignore(media, without_effect);
    return processor_check_colors(out, err);
}

/* The size that the pixels are resized to, before they are filled up. */
static int resized(const struct image_processor *p, int64_t width,
                   int64_t height, int64_t *new_width, int64_t *new_height,
                   struct err *err)
{
    double w = (double)width, h = (double)height;
    double side = (double)p->side_limit * (double)p->patch;
    double columns = fmax(1, (double)(width / p->patch));
    double rows = fmax(1, (double)(height / p->patch));

    if (width < 1 || height < 1)
        return err_set(err, ERR_INPUT, "%lld x %lld pixels", (long long)width,
                       (long long)height);
    double scale = fmin(1, sqrt((double)p->patch_limit / (columns * rows)));
    scale = fmin(scale, fmin(side / w, side / h));
    *new_width = (int64_t)fmin(fmax(1, trunc(w * scale)), side);
    *new_height = (int64_t)fmin(fmax(1, trunc(h * scale)), side);
    return 0;
}

static int64_t filled(int64_t n, int64_t factor)
{
    return (n + factor - 1) / factor * factor;
}

int kimi_size(const struct image_processor *p, int64_t width, int64_t height,
              int64_t *new_width, int64_t *new_height, struct err *err)
{
    int64_t w, h, factor = p->merge * p->patch;

    if (resized(p, width, height, &w, &h, err) ||
        processor_check_size(width, height, (double)filled(w, factor),
                             (double)filled(h, factor), err))
        return -1;
    *new_width = filled(w, factor);
    *new_height = filled(h, factor);
    return 0;
}

int kimi_patches(const struct image_processor *p, const struct image *image,
                 enum image_passes passes, float *rows, struct err *err)
{
    struct image sized = IMAGE_INIT;
    const struct image *from = image;
    const int64_t s = p->patch;
    float table[3][256];
    int64_t w, h, whole_w, whole_h;

    if (kimi_size(p, image->width, image->height, &whole_w, &whole_h, err) ||
        resized(p, image->width, image->height, &w, &h, err))
        return -1;
    if (w != image->width || h != image->height) {
        if (image_resize(image, w, h, IMAGE_BICUBIC, passes, &sized, err))
            return -1;
        from = &sized;
    }
    for (int c = 0; c < 3; c++)
        for (int u = 0; u < 256; u++)
            table[c][u] = ((float)u / 255.0f - p->mean[c]) / p->std[c];
    for (int64_t top = 0; top < whole_h; top += s)
        for (int64_t left = 0; left < whole_w; left += s)
            for (int c = 0; c < 3; c++)
                for (int64_t y = top; y < top + s; y++)
                    for (int64_t x = left; x < left + s; x++)
                        *rows++ = table[c][x < w && y < h
                                               ? from->rgb[(y * w + x) * 3 + c]
                                               : 0];
    image_release(&sized);
    return 0;
}
