/*
 * Pixels to patches, after mlx-vlm 0.6.3 models/qwen3_vl/
 * processing_qwen3_vl.py.  Every value is f32 and each operation rounds once.
 */
#include "image/processor.h"

#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "image/image_internal.h"
#include "json/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RATIO = 200 };

/* Keys of the published files that upstream's class takes no notice of. */
static const char *const ignored[] = {
    "image_processor_type",
    "processor_class",
    "do_convert_rgb",
    "do_resize",
    "resample",
    "data_format",
    "input_data_format",
    "return_tensors",
    "device",
    "disable_grouping",
    "crop_size",
    "do_center_crop",
    "do_pad",
    "pad_size",
    "size_divisor",
    "auto_map",
    "default_to_square",
};

static void note(const char **list, const char *name)
{
    size_t i = 0;

    while (list[i])
        i++;
    list[i] = name;
}

/* The value, or NULL when it is absent or null; says which in the lists. */
static json_t *take(struct image_processor *p, json_t *all, const char *key)
{
    json_t *value = json_object_get(all, key);

    if (json_is_null(value))
        value = NULL;
    note(value ? p->used : p->defaulted, key);
    return value;
}

static int take_int(struct image_processor *p, json_t *all, const char *key,
                    int64_t most, int64_t *out, struct err *err)
{
    if (!take(p, all, key))
        return 0;
    if (json_get_int(all, key, out, err))
        return -1;
    if (*out < 1 || *out > most)
        return err_set(err, ERR_INPUT, "'%s' is %lld", key, (long long)*out);
    return 0;
}

static int take_bool(struct image_processor *p, json_t *all, const char *key,
                     bool *out, struct err *err)
{
    return take(p, all, key) ? json_get_bool(all, key, out, err) : 0;
}

static int take_colors(struct image_processor *p, json_t *all, const char *key,
                       float out[3], struct err *err)
{
    json_t *list;

    if (!take(p, all, key))
        return 0;
    if (json_get_array(all, key, &list, err))
        return -1;
    if (json_array_size(list) != 3)
        return err_set(err, ERR_INPUT, "'%s' has %zu values, not 3", key,
                       json_array_size(list));
    for (size_t i = 0; i < 3; i++) {
        const json_t *v = json_array_get(list, i);

        if (!json_is_number(v))
            return err_set(err, ERR_INPUT, "'%s' holds no numbers", key);
        out[i] = (float)json_number_value(v);
    }
    return 0;
}

/* min_pixels and max_pixels win over size.shortest_edge and longest_edge. */
static int take_limits(struct image_processor *p, json_t *all, struct err *err)
{
    const int64_t most = INT64_MAX;
    json_t *size = take(p, all, "size");
    const char *key;
    json_t *value;

    if (size) {
        if (json_get_object(all, "size", &size, err))
            return -1;
        json_object_foreach(size, key, value)
        {
            int64_t *to = strcmp(key, "shortest_edge") == 0  ? &p->min_pixels
                          : strcmp(key, "longest_edge") == 0 ? &p->max_pixels
                                                             : NULL;

            if (json_is_null(value))
                continue;
            if (!to)
                return err_set(err, ERR_UNSUPPORTED, "'size' has a key '%s'",
                               key);
            if (json_get_int(size, key, to, err))
                return err_in(err, "'size'");
            if (*to < 1)
                return err_set(err, ERR_INPUT, "'size': '%s' is %lld", key,
                               (long long)*to);
        }
    }
    if (take_int(p, all, "min_pixels", most, &p->min_pixels, err) ||
        take_int(p, all, "max_pixels", most, &p->max_pixels, err))
        return -1;
    if (!p->min_pixels || !p->max_pixels)
        return err_set(err, ERR_INPUT,
                       "no 'size' with shortest_edge and longest_edge, nor "
                       "min_pixels and max_pixels: upstream's defaults would "
                       "give another grid");
    return 0;
}

static int check_keys(struct image_processor *p, json_t *all, struct err *err)
{
    static const char *const known[] = {
        "patch_size", "temporal_patch_size", "merge_size", "image_mean",
        "image_std",  "rescale_factor",      "do_rescale", "do_normalize",
        "size",       "min_pixels",          "max_pixels",
    };
    const char *key;
    json_t *value;

    json_object_foreach(all, key, value)
    {
        bool is_known = false;

        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
            is_known |= strcmp(key, known[i]) == 0;
        for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
            if (strcmp(key, ignored[i]) == 0) {
                note(p->ignored, ignored[i]);
                is_known = true;
            }
        if (!is_known)
            return err_set(err, ERR_UNSUPPORTED, "unknown key '%s'", key);
    }
    /* ignored upstream, but a pack that says so means something else */
    value = json_object_get(all, "do_resize");
    if (json_is_false(value))
        return err_set(err, ERR_UNSUPPORTED,
                       "'do_resize' is false, which upstream ignores");
    value = json_object_get(all, "resample");
    if (value && !json_is_null(value) &&
        !(json_is_integer(value) && json_integer_value(value) == 3))
        return err_set(err, ERR_UNSUPPORTED,
                       "'resample' is not 3 (bicubic), which upstream ignores");
    return 0;
}

static int read_settings(struct image_processor *p, json_t *all,
                         struct err *err)
{
    double factor = 1.0 / 255.0;

    if (check_keys(p, all, err) ||
        take_int(p, all, "patch_size", 1024, &p->patch, err) ||
        take_int(p, all, "temporal_patch_size", 64, &p->temporal, err) ||
        take_int(p, all, "merge_size", 64, &p->merge, err) ||
        take_bool(p, all, "do_rescale", &p->is_rescaled, err) ||
        take_bool(p, all, "do_normalize", &p->is_normalized, err) ||
        take_colors(p, all, "image_mean", p->mean, err) ||
        take_colors(p, all, "image_std", p->std, err) ||
        take_limits(p, all, err))
        return -1;
    if (take(p, all, "rescale_factor") &&
        json_get_real(all, "rescale_factor", &factor, err))
        return -1;
    p->factor = (float)factor;
    for (int c = 0; c < 3; c++)
        if (!isfinite(p->mean[c]) || !isfinite(p->std[c]) || p->std[c] == 0)
            return err_set(err, ERR_INPUT,
                           "'image_mean' or 'image_std' of "
                           "channel %d cannot be used",
                           c);
    return 0;
}

int image_processor_load(const char *pack, struct image_processor *out,
                         struct err *err)
{
    char *path = path_join(pack, "preprocessor_config.json");
    char *over_path = path_join(pack, "processor_config.json");
    json_t *all = json_read_file(path, err), *over = NULL, *object = NULL;
    int ret = -1;

    *out = (struct image_processor){
        .patch = 16,
        .temporal = 2,
        .merge = 2,
        .is_rescaled = true,
        .is_normalized = true,
        .mean = {0.5f, 0.5f, 0.5f},
        .std = {0.5f, 0.5f, 0.5f},
    };
    if (!all)
        goto out;
    if (!json_is_object(all)) {
        err_set(err, ERR_INPUT, "%s: not an object", path);
        goto out;
    }
    if (io_exists(over_path)) {
        over = json_read_file(over_path, err);
        if (!over)
            goto out;
        if (json_has(over, "image_processor")) {
            if (json_get_object(over, "image_processor", &object, err)) {
                err_in(err, "%s", over_path);
                goto out;
            }
            json_object_update(all, object);
        }
    }
    if (read_settings(out, all, err)) {
        err_in(err, "%s", object ? over_path : path);
        goto out;
    }
    ret = 0;
out:
    json_decref(all);
    json_decref(over);
    free(path);
    free(over_path);
    return ret;
}

int image_processor_size(const struct image_processor *p, int64_t width,
                         int64_t height, int64_t *new_width,
                         int64_t *new_height, struct err *err)
{
    double f = (double)(p->patch * p->merge);
    double h = (double)height, w = (double)width;
    double high = h > w ? h : w, low = h > w ? w : h;

    if (width < 1 || height < 1)
        return err_set(err, ERR_INPUT, "%lld x %lld pixels", (long long)width,
                       (long long)height);
    if (high / low > MAX_RATIO)
        return err_set(err, ERR_INPUT,
                       "%lld x %lld pixels: one side is more than %d times "
                       "the other",
                       (long long)width, (long long)height, MAX_RATIO);
    double hb = rint(h / f) * f, wb = rint(w / f) * f; /* half to even */
    if (hb * wb > (double)p->max_pixels) {
        double beta = sqrt(h * w / (double)p->max_pixels);

        hb = fmax(f, floor(h / beta / f) * f);
        wb = fmax(f, floor(w / beta / f) * f);
    } else if (hb * wb < (double)p->min_pixels) {
        double beta = sqrt((double)p->min_pixels / (h * w));

        hb = ceil(h * beta / f) * f;
        wb = ceil(w * beta / f) * f;
    }
    if (hb > IMAGE_MAX_SIDE || wb > IMAGE_MAX_SIDE ||
        hb * wb > IMAGE_MAX_PIXELS)
        return err_set(err, ERR_INPUT,
                       "%lld x %lld pixels would become %.0f x %.0f",
                       (long long)width, (long long)height, wb, hb);
    *new_height = (int64_t)hb;
    *new_width = (int64_t)wb;
    return 0;
}

int image_processor_grid(const struct image_processor *p, int64_t width,
                         int64_t height, int64_t grid[3], struct err *err)
{
    int64_t w, h;

    if (image_processor_size(p, width, height, &w, &h, err))
        return -1;
    grid[0] = 1;
    grid[1] = h / p->patch;
    grid[2] = w / p->patch;
    return 0;
}

int64_t image_processor_features(const struct image_processor *p)
{
    return 3 * p->temporal * p->patch * p->patch;
}

/* Every value a byte can become, by channel. */
static void make_table(const struct image_processor *p, float table[3][256])
{
    for (int c = 0; c < 3; c++)
        for (int u = 0; u < 256; u++) {
            float v = (float)u;

            if (p->is_rescaled)
                v = v * p->factor;
            if (p->is_normalized) {
                v = v - p->mean[c];
                v = v / p->std[c];
            }
            table[c][u] = v;
        }
}

int image_patches(const struct image_processor *p, const struct image *image,
                  enum image_passes passes, float *rows, struct err *err)
{
    struct image sized = IMAGE_INIT;
    const struct image *from = image;
    const int64_t s = p->patch, m = p->merge;
    float table[3][256];
    int64_t w, h;

    if (image_processor_size(p, image->width, image->height, &w, &h, err))
        return -1;
    if (w != image->width || h != image->height) {
        if (image_resize(image, w, h, IMAGE_BICUBIC, passes, &sized, err))
            return -1;
        from = &sized;
    }
    make_table(p, table);
    for (int64_t bh = 0; bh < h / s / m; bh++)
        for (int64_t bw = 0; bw < w / s / m; bw++)
            for (int64_t inner = 0; inner < m * m; inner++) {
                int64_t top = (bh * m + inner / m) * s;
                int64_t left = (bw * m + inner % m) * s;

                for (int c = 0; c < 3; c++)
                    for (int64_t t = 0; t < p->temporal; t++)
                        for (int64_t y = 0; y < s; y++) {
                            const uint8_t *at =
                                from->rgb + ((top + y) * w + left) * 3 + c;

                            for (int64_t x = 0; x < s; x++)
                                *rows++ = table[c][at[3 * x]];
                        }
            }
    image_release(&sized);
    return 0;
}
