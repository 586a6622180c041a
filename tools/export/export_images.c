/* assay-export --image: what an image file decodes to, resizes to, and gives
 * as patches, as digests on one line each. */
#include "export.h"

#include "base/mem.h"
#include "base/utf8.h"
#include "hash/hash.h"
#include "image/image.h"
#include "image/processor.h"
#include "json/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct settings {
    enum image_passes passes;
    bool is_resized, has_processor, is_alpha;
    int64_t width, height;
    enum image_filter filter;
    struct image_processor processor;
};

static int parse_resize(const char *text, struct settings *s, struct err *err)
{
    int end = 0;

    if (text[strspn(text, "0123456789x")] != ':' || /* sscanf is laxer */
        sscanf(text, "%6" SCNd64 "x%6" SCNd64 ":%n", &s->width, &s->height,
               &end) != 2 ||
        end == 0 || !image_filter_parse(text + end, &s->filter))
        return err_set(err, ERR_USAGE,
                       "--resize takes WxH:FILTER with box, bilinear, hamming, "
                       "bicubic or lanczos, not '%s'",
                       text);
    if (image_check_size((uint64_t)s->width, (uint64_t)s->height, err)) {
        err->code = ERR_USAGE; /* it is the line's, no image's */
        return err_in(err, "--resize");
    }
    s->is_resized = true;
    return 0;
}

static void put_digest(json_t *row, const char *key, const void *data,
                       size_t len)
{
    char sha256[HASH_SHA256_HEX];

    hash_sha256(data, len, sha256);
    json_object_set_new(row, key, json_string(sha256));
}

static void put_pixels(json_t *row, const char *key, const struct image *image)
{
    put_digest(row, key, image->rgb,
               (size_t)(image->width * image->height * 3));
}

/* As Pillow's RGBA lies in memory. */
static int put_rgba(json_t *row, const char *key, const struct image *image,
                    struct err *err)
{
    size_t pixels = (size_t)(image->width * image->height);
    uint8_t *rgba = mem_array(pixels, 4, SIZE_MAX / 2, err);

    if (!rgba)
        return -1;
    for (size_t i = 0; i < pixels; i++) {
        memcpy(rgba + 4 * i, image->rgb + 3 * i, 3);
        rgba[4 * i + 3] = image->alpha[i];
    }
    put_digest(row, key, rgba, 4 * pixels);
    free(rgba);
    return 0;
}

static int put_resized(json_t *row, const struct settings *s,
                       const struct image *image, struct err *err)
{
    struct image to;

    if (image_resize(image, s->width, s->height, s->filter, s->passes, &to,
                     err))
        return -1;
    int ret = 0;
    if (to.alpha)
        ret = put_rgba(row, "resized_rgba_sha256", &to, err);
    else
        put_pixels(row, "resized_sha256", &to);
    image_release(&to);
    return ret;
}

static int put_patches(json_t *row, const struct settings *s,
                       struct image *image, struct err *err)
{
    int64_t grid[3];
    float *rows;

    if (image_orient(image, err) ||
        image_processor_grid(&s->processor, image->width, image->height, grid,
                             err))
        return -1;
    size_t values = (size_t)(grid[0] * grid[1] * grid[2] *
                             image_processor_features(&s->processor));
    rows = mem_array(values, sizeof(*rows), SIZE_MAX / 2, err);
    if (!rows)
        return -1;
    int ret = image_patches(&s->processor, image, s->passes, rows, err);
    if (ret == 0) {
        json_object_set_new(row, "grid_thw",
                            json_pack("[I,I,I]", (json_int_t)grid[0],
                                      (json_int_t)grid[1],
                                      (json_int_t)grid[2]));
        put_digest(row, "patches_sha256", rows, values * sizeof(*rows));
    }
    free(rows);
    return ret;
}

static int describe(json_t *row, const char *path, const struct settings *s,
                    struct err *err)
{
    struct image image;
    int ret = -1;

    if (s->is_alpha ? image_load_alpha(path, &image, err)
                    : image_load(path, &image, err))
        return -1;
    json_object_set_new(row, "width", json_integer(image.width));
    json_object_set_new(row, "height", json_integer(image.height));
    put_pixels(row, "rgb_sha256", &image);
    if (image.orientation != 1)
        json_object_set_new(row, "orientation",
                            json_integer(image.orientation));
    if (image.warning[0])
        json_object_set_new(row, "warning", json_string(image.warning));
    if ((image.alpha && put_rgba(row, "rgba_sha256", &image, err)) ||
        (s->is_resized && put_resized(row, s, &image, err)) ||
        (s->has_processor && put_patches(row, s, &image, err))) {
        err_in(err, "%s", path);
        goto out;
    }
    ret = 0;
out:
    image_release(&image);
    return ret;
}

/* TAB-separated: the values of the JSON line in their order. */
static void print_text(const json_t *row)
{
    const char *key, *gap = "";
    json_t *value;

    json_object_foreach((json_t *)row, key, value)
    {
        char *text = json_is_string(value)
                         ? xstrdup(json_string_value(value))
                         : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);

        utf8_make_printable(text);
        printf("%s%s=%s", gap, key, text);
        gap = "\t";
        free(text);
    }
    putchar('\n');
}

static void print_json(const json_t *row)
{
    char *text = json_dumps(row, 0);

    puts(text);
    free(text);
}

int export_images(const struct export_options *opt,
                  const struct protocol *protocol, struct err *err)
{
    struct settings s = {0};
    struct err first = ERR_INIT;
    size_t refused = 0;
    bool is_all_unsupported = true;

    if ((opt->resize && parse_resize(opt->resize, &s, err)) ||
        image_passes_parse(protocol->image_library, &s.passes, err))
        return -1;
    s.is_alpha = opt->is_alpha;
    if (opt->pack) {
        struct ledger *ledger = ledger_new(opt->pack);
        int ret = image_processor_load(ledger, &s.processor, err);

        ledger_free(ledger);
        if (ret)
            return -1;
        s.has_processor = true;
    }
    for (size_t i = 0; i < opt->images.count; i++) {
        const char *path = opt->images.items[i];
        json_t *name = json_string(path);
        json_t *row = json_object();
        struct err why = ERR_INIT;

        /* a name that is not UTF-8 has no place in JSON */
        json_object_set_new(row, "file", name ? name : json_null());
        if (describe(row, path, &s, &why)) {
            json_t *reason = json_string(why.text);

            json_object_clear(row);
            name = json_string(path);
            json_object_set_new(row, "file", name ? name : json_null());
            json_object_set_new(row, "error",
                                reason ? reason : json_string("unreadable"));
            if (refused++ == 0)
                first = why;
            is_all_unsupported &= why.code == ERR_UNSUPPORTED;
        }
        if (opt->is_json)
            print_json(row);
        else
            print_text(row);
        json_decref(row);
    }
    if (refused == 1)
        return err_set(err, first.code, "%s", first.text);
    if (refused)
        return err_set(err, is_all_unsupported ? ERR_UNSUPPORTED : ERR_INPUT,
                       "%zu of %zu images refused; the first: %s", refused,
                       opt->images.count, first.text);
    return 0;
}
