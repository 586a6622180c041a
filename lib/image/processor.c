/*
 * Pixels to patches for the Qwen vision models, after mlx-vlm 0.6.3
 * models/qwen3_vl/ processing_qwen3_vl.py.  Every value is f32 and each
 * operation rounds once.
 */
#include "image/image_internal.h"
#include "image/processor_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_RATIO = 200 };
static const char PREPROCESSOR[] = "preprocessor_config.json";
static const char PROCESSOR[] = "processor_config.json";

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
    /* of videos */
    "do_sample_frames",
    "fps",
    "max_frames",
    "min_frames",
    "num_frames",
    "return_metadata",
    "video_metadata",
    NULL,
};

/* Upstream fails on null here, or takes it for false where Transformers takes
 * its default. */
static const char *const never_null[] = {
    "patch_size", "temporal_patch_size", "merge_size",
    "do_rescale", "do_normalize",        "rescale_factor",
};

/* preprocessor_config.json, and what processor_config.json puts over it. */
struct sources {
    const struct section *base, *over;
};

/* Where a key is read from. */
static const struct section *place(const struct sources *from, const char *key)
{
    if (!from->over || !json_object_get(config_object(from->over), key))
        return from->base;
    config_ignore(from->base, (const char *const[]){key, NULL});
    return from->over;
}

/* Is it there and not null?  Else what stands for it, which is taken over, is
 * noted. */
static bool is_set(const struct sources *from, const char *key,
                   json_t *standard)
{
    const struct section *s = place(from, key);

    if (!config_has(s, key))
        config_default(s, key, standard);
    else
        json_decref(standard);
    return config_has(s, key);
}

static int take_int(const struct sources *from, const char *key, int64_t most,
                    int64_t *out, struct err *err)
{
    if (!is_set(from, key, *out ? json_integer(*out) : json_null()))
        return 0;
    if (config_get_int(place(from, key), key, out, err))
        return -1;
    if (*out < 1 || *out > most)
        return err_set(err, ERR_INPUT, "'%s' is %lld", key, (long long)*out);
    return 0;
}

static int take_bool(const struct sources *from, const char *key, bool *out,
                     struct err *err)
{
    return is_set(from, key, json_boolean(*out))
               ? config_get_flag(place(from, key), key, out, err)
               : 0;
}

int processor_check_null(const struct section *s, const char *key,
                         struct err *err)
{
    return config_is_null(s, key) ? err_set(err, ERR_INPUT, "'%s' is null", key)
                                  : 0;
}

int processor_read_colors(const struct section *s, const char *key,
                          float out[3], struct err *err)
{
    json_t *list;

    if (!config_has(s, key)) {
        config_default(s, key,
                       json_pack("[f, f, f]", (double)out[0], (double)out[1],
                                 (double)out[2]));
        return 0;
    }
    if (config_get_list(s, key, &list, err))
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

static int take_colors(const struct sources *from, const char *key,
                       float out[3], struct err *err)
{
    return processor_read_colors(place(from, key), key, out, err);
}

static int take_size(struct image_processor *p, const struct section *size,
                     struct err *err)
{
    const struct {
        const char *key;
        int64_t *to;
    } edges[] = {{"shortest_edge", &p->min_pixels},
                 {"longest_edge", &p->max_pixels}};
    const char *key;
    json_t *value;

    for (size_t i = 0; i < 2; i++) {
        if (!config_value(size, edges[i].key))
            continue;
        if (config_get_int(size, edges[i].key, edges[i].to, err))
            return err_in(err, "'size'");
        if (*edges[i].to < 1)
            return err_set(err, ERR_INPUT, "'size': '%s' is %lld", edges[i].key,
                           (long long)*edges[i].to);
    }
    json_object_foreach((json_t *)config_object(size), key, value)
    {
        if (strcmp(key, "shortest_edge") != 0 &&
            strcmp(key, "longest_edge") != 0 && !json_is_null(value))
            return err_set(err, ERR_UNSUPPORTED, "'size' has a key '%s'", key);
    }
    return 0;
}

/* min_pixels and max_pixels win over size.shortest_edge and longest_edge. */
static int take_limits(struct image_processor *p, const struct sources *from,
                       struct err *err)
{
    const int64_t most = INT64_MAX;
    const struct section *size;

    if (is_set(from, "size", json_null()) &&
        (config_get_section(place(from, "size"), "size", &size, err) ||
         take_size(p, size, err)))
        return -1;
    if (take_int(from, "min_pixels", most, &p->min_pixels, err) ||
        take_int(from, "max_pixels", most, &p->max_pixels, err))
        return -1;
    if (!p->min_pixels || !p->max_pixels)
        return err_set(err, ERR_INPUT,
                       "no 'size' with shortest_edge and longest_edge, nor "
                       "min_pixels and max_pixels: upstream's defaults would "
                       "give another grid");
    return 0;
}

/* Ignored upstream, but a pack that says so means something else. */
static int check_ignored(const struct sources *from, struct err *err)
{
    const json_t *resize =
        json_object_get(config_object(place(from, "do_resize")), "do_resize");
    const json_t *filter =
        json_object_get(config_object(place(from, "resample")), "resample");

    if (json_is_false(resize))
        return err_set(err, ERR_UNSUPPORTED,
                       "'do_resize' is false, which upstream ignores");
    if (filter && !json_is_null(filter) &&
        !(json_is_integer(filter) && json_integer_value(filter) == 3))
        return err_set(err, ERR_UNSUPPORTED,
                       "'resample' is not 3 (bicubic), which upstream ignores");
    for (size_t i = 0; i < sizeof(never_null) / sizeof(never_null[0]); i++)
        if (processor_check_null(place(from, never_null[i]), never_null[i],
                                 err))
            return -1;
    config_ignore(from->base, ignored);
    if (from->over)
        config_ignore(from->over, ignored);
    return 0;
}

int processor_check_colors(const struct image_processor *p, struct err *err)
{
    for (int c = 0; c < 3; c++)
        if (!isfinite(p->mean[c]) || !isfinite(p->std[c]) || p->std[c] == 0)
            return err_set(err, ERR_INPUT,
                           "'image_mean' or 'image_std' of "
                           "channel %d cannot be used",
                           c);
    return 0;
}

static int read_settings(struct image_processor *p, const struct sources *from,
                         struct err *err)
{
    double factor = 1.0 / 255.0;

    if (check_ignored(from, err) ||
        take_int(from, "patch_size", 1024, &p->patch, err) ||
        take_int(from, "temporal_patch_size", 64, &p->temporal, err) ||
        take_int(from, "merge_size", 64, &p->merge, err) ||
        take_bool(from, "do_rescale", &p->is_rescaled, err) ||
        take_bool(from, "do_normalize", &p->is_normalized, err) ||
        take_colors(from, "image_mean", p->mean, err) ||
        take_colors(from, "image_std", p->std, err) ||
        take_limits(p, from, err))
        return -1;
    if (is_set(from, "rescale_factor", json_real(factor)) &&
        config_get_real(place(from, "rescale_factor"), "rescale_factor",
                        &factor, err))
        return -1;
    p->factor = (float)factor;
    return processor_check_colors(p, err);
}

/* What stands beside the image processor is for text, video and the template.
 */
static const char *const beside[] = {
    "processor_class", "auto_map",    "chat_template", "video_processor",
    "tokenizer",       "image_token", "video_token",   NULL,
};

/* Both files, of which one must hold settings of images. */
static int open_sources(struct ledger *ledger, struct sources *out,
                        struct err *err)
{
    const struct section *whole;

    if (ledger_file(ledger, PREPROCESSOR, &out->base, err) ||
        ledger_file(ledger, PROCESSOR, &whole, err))
        return -1;
    if (whole) {
        config_ignore(whole, beside);
        if (config_section(whole, "image_processor", &out->over, err))
            return -1;
    }
    if (!out->base) {
        out->base = out->over;
        out->over = NULL;
    }
    return out->base ? 0 : ledger_need(ledger, PREPROCESSOR, &out->base, err);
}

bool image_processor_is_there(struct ledger *ledger)
{
    struct err why = ERR_INIT; /* a damaged file is there */
    const struct section *file;

    return ledger_file(ledger, PREPROCESSOR, &file, &why) || file ||
           ledger_file(ledger, PROCESSOR, &file, &why) ||
           (file && config_has(file, "image_processor"));
}

/* The patch of a pack that names none: each class of upstream's has its own. */
static int default_patch(struct ledger *ledger, int64_t *out, struct err *err)
{
    static const char *const smaller[] = {"qwen2_vl", "qwen2_5_vl"};
    const struct section *config;

    *out = 16;
    if (ledger_file(ledger, "config.json", &config, err))
        return -1;
    const char *type = json_string_value(
        config ? json_object_get(config_object(config), "model_type") : NULL);
    for (size_t i = 0; type && i < 2; i++)
        if (strcasecmp(type, smaller[i]) == 0)
            *out = 14;
    return 0;
}

int image_processor_load(struct ledger *ledger, struct image_processor *out,
                         struct err *err)
{
    const struct section *media;
    struct sources from = {0};

    *out = (struct image_processor){
        .temporal = 2,
        .merge = 2,
        .is_rescaled = true,
        .is_normalized = true,
        .mean = {0.5f, 0.5f, 0.5f},
        .std = {0.5f, 0.5f, 0.5f},
    };
    if (default_patch(ledger, &out->patch, err) ||
        open_sources(ledger, &from, err) ||
        config_section(from.base, "media_proc_cfg", &media, err))
        return -1;
    if (media)
        config_ignore(from.base, (const char *const[]){"auto_map", NULL});
    if (media ? kimi_settings(media, out, err) : read_settings(out, &from, err))
        return err_in(err, "%s",
                      config_path(from.over ? from.over : from.base));
    return ledger_finish(ledger, PREPROCESSOR, err) ||
                   ledger_finish(ledger, PROCESSOR, err)
               ? -1
               : 0;
}

int processor_check_size(int64_t width, int64_t height, double new_width,
                         double new_height, struct err *err)
{
    if (new_height > IMAGE_MAX_SIDE || new_width > IMAGE_MAX_SIDE ||
        new_height * new_width > IMAGE_MAX_PIXELS)
        return err_set(
            err, ERR_INPUT, "%lld x %lld pixels would become %.0f x %.0f",
            (long long)width, (long long)height, new_width, new_height);
    return 0;
}

int image_processor_size(const struct image_processor *p, int64_t width,
                         int64_t height, int64_t *new_width,
                         int64_t *new_height, struct err *err)
{
    if (p->is_kimi)
        return kimi_size(p, width, height, new_width, new_height, err);
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
    if (processor_check_size(width, height, wb, hb, err))
        return -1;
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

    if (p->is_kimi)
        return kimi_patches(p, image, passes, rows, err);
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
