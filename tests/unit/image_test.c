/*
 * Decoding, resizing and patches against what Pillow and mlx-vlm gave: our own
 * small files (fixtures/image, see its README) and, when they are there, the
 * goldens beside the checkout (ASSAY_SHARED, default ../shared).
 */
#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "hash/hash.h"
#include "image/image.h"
#include "image/image_internal.h"
#include "image/processor.h"
#include "tap.h"
#include "json/json.h"

static void hash_rgb(const struct image *image, char out[HASH_SHA256_HEX])
{
    hash_sha256(image->rgb, (size_t)(image->width * image->height * 3), out);
}

static const char *text_of(json_t *row, const char *key)
{
    return json_string_value(json_object_get(row, key));
}

static int64_t item(json_t *row, const char *key, size_t i)
{
    return json_integer_value(json_array_get(json_object_get(row, key), i));
}

/* Calls `check` for each line of dir/name and tells how many were equal. */
static void each_row(const char *dir, const char *name,
                     void (*check)(const char *dir, json_t *row))
{
    char *path = path_join(dir, name);
    struct buf text = BUF_INIT;
    struct err err = ERR_INIT;
    int rows = 0, equal = 0;

    if (io_read_file(path, IO_JSON_CAP, &text, &err) == 0)
        for (char *line = strtok(text.data, "\n"); line;
             line = strtok(NULL, "\n")) {
            json_t *row = json_parse(line, strlen(line), &err);
            int failed = tap_failed;

            if (!row)
                ok(false, "%s line %d: %s", path, rows + 1, err.text);
            else
                check(dir, row);
            json_decref(row);
            rows++;
            equal += tap_failed == failed;
        }
    buf_release(&text);
    diag("%s: %d of %d rows equal", path, equal, rows);
    free(path);
}

static int load(const char *dir, json_t *row, struct image *image,
                struct err *err)
{
    const char *mode = text_of(row, "mode");
    bool is_rgba = mode && strcmp(mode, "RGBA") == 0;
    char *path = xasprintf("%s/files/%s", dir, text_of(row, "file"));
    int ret = is_rgba ? image_load_alpha(path, image, err)
                      : image_load(path, image, err);

    free(path);
    return ret;
}

/* Malformed files: our answer is stricter than Pillow's (formats.md 5). */
static const struct {
    const char *file;
    enum err_code code;
    const char *says;
} refused[] = {
    {"bad_empty.png", ERR_INPUT, "not a PNG, JPEG or WebP image"},
    {"bad_sigonly.png", ERR_INPUT, "PNG: cut short at byte 8"},
    {"bad_crcidat.png", ERR_INPUT, "bad CRC"},
    {"bad_crctext.png", ERR_INPUT, "chunk 'tEXt' at byte 33: bad CRC"},
    {"bad_crit.png", ERR_INPUT, "unknown critical chunk"},
    {"bad_zero.png", ERR_INPUT, "PNG: 0 x 29 pixels"},
    {"bad_depth3.png", ERR_INPUT, "colour type 2 with 3 bits"},
    {"bad_bombwarn.png", ERR_INPUT, "too little pixel data"},
    {"bad_dim65536.png", ERR_INPUT, "a side passes 65535"},
    {"bad_noplte.png", ERR_INPUT, "without PLTE"},
    {"bad_palover.png", ERR_INPUT, "of a palette of"},
    {"bad_twoihdr.png", ERR_INPUT, "a second IHDR"},
    {"bad_cuthalf.jpg", ERR_INPUT, "JPEG: cut short"},
    {"bad_soionly.jpg", ERR_INPUT, "not a PNG, JPEG or WebP image"},
    {"bad_hdronly.jpg", ERR_INPUT, "JPEG: cut short"},
    {"bad_zero.jpg", ERR_INPUT, "JPEG: "},
    {"bad_lead.jpg", ERR_INPUT, "not a PNG, JPEG or WebP image"},
    {"bad_prec12.jpg", ERR_UNSUPPORTED, "JPEG: Unsupported JPEG data"},
    {"bad_comp2.jpg", ERR_INPUT, "JPEG: "},
    {"bad_half.webp", ERR_INPUT, "WebP: "},
    {"bad_gif.png", ERR_UNSUPPORTED, "GIF images are not supported"},
    {"bad_bmp.png", ERR_UNSUPPORTED, "BMP images are not supported"},
    {"bad_apng.png", ERR_UNSUPPORTED, "animated"},
    {"wanim.webp", ERR_UNSUPPORTED, "animated"},
    {"bad-after-iend.png", ERR_INPUT, "PNG: 1 bytes after IEND"},
    {"bad-no-iend.png", ERR_INPUT, "no IEND"},
    {"bad-adler.png", ERR_INPUT, "incorrect data check"},
    {"bad-extra-row.png", ERR_INPUT, "Too much image data"},
    {"bad-extra-bytes.png", ERR_INPUT, "Extra compressed data"},
    {"bad-short-row.png", ERR_INPUT, "Not enough image data"},
    {"bad-filter.png", ERR_INPUT, "bad adaptive filter value"},
    {"bad-palette-odd.png", ERR_INPUT, "PLTE of 4 bytes"},
    {"bad-palette-two.png", ERR_INPUT, "a second PLTE"},
    {"bad-idat-apart.png", ERR_INPUT, "IDAT in two places"},
    {"bad-idat-none.png", ERR_INPUT, "no IDAT"},
    {"bad-chunk-name.png", ERR_INPUT, "no chunk at byte 33"},
    {"bad-pixels.png", ERR_INPUT, "60000 x 60000 pixels pass 178956970"},
    {"bad-no-eoi.jpg", ERR_INPUT, "JPEG: cut short"},
    {"bad-dc-cut.jpg", ERR_INPUT, "JPEG: cut short"},
    {"bad-exif.webp", ERR_INPUT, "WebP: the EXIF block is not TIFF"},
    {"bad-exif.jpg", ERR_INPUT, "JPEG: the EXIF block is not TIFF"},
    {"bad-gama.png", ERR_INPUT, "PNG: chunk 'gAMA': 3 bytes"},
    {"bad-srgb.png", ERR_INPUT, "PNG: chunk 'sRGB': 0 bytes"},
    {"bad-phys.png", ERR_INPUT, "PNG: chunk 'pHYs': 8 bytes"},
    {"bad-chrm.png", ERR_INPUT, "PNG: chunk 'cHRM': 31 bytes"},
    {"bad-trns.png", ERR_INPUT, "PNG: chunk 'tRNS': 5 bytes"},
    {"bad-iccp.png", ERR_INPUT, "PNG: chunk 'iCCP': compression method 1"},
    {"bad-ztxt.png", ERR_INPUT, "PNG: chunk 'zTXt': compression method 1"},
    {"bad-long-text.png", ERR_INPUT, "chunk 'zTXt': inflates to more than"},
    {"bad-jfif.jpg", ERR_INPUT, "JPEG: marker APP0 of 5 bytes"},
    {"bad-riff.webp", ERR_INPUT, "WebP: cut short or damaged"},
};

static void check_image(const char *dir, json_t *row)
{
    const char *file = text_of(row, "file");
    json_t *oriented = json_object_get(row, "oriented");
    char sha[HASH_SHA256_HEX];
    struct image image;
    struct err err = ERR_INIT;
    int ret = load(dir, row, &image, &err);

    if (ret == 0 && image.orientation < 0) { /* it shows when it is asked for */
        ret = image_orient(&image, &err);
        image_release(&image);
    }
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        if (strcmp(file, refused[i].file) == 0) {
            if (!ok(ret == -1 && err.code == refused[i].code &&
                        strstr(err.text, refused[i].says) && !image.rgb,
                    "%s is refused (%d)", file, refused[i].code))
                diag("code %d: %s", err.code, err.text);
            image_release(&image);
            return;
        }
    if (ret) {
        ok(false, "%s: %s", file, err.text);
        return;
    }
    ok(image.width == item(row, "size", 0) &&
           image.height == item(row, "size", 1),
       "%s: size", file);
    hash_rgb(&image, sha);
    is_str(sha, text_of(row, "rgb_sha256"), file);
    if (!oriented) /* then turning it upright changes nothing */
        oriented = row;
    ok(image_orient(&image, &err) == 0 &&
           image.width == item(oriented, "size", 0) &&
           image.height == item(oriented, "size", 1),
       "%s: size when upright", file);
    hash_rgb(&image, sha);
    is_str(sha, text_of(oriented, "rgb_sha256"), file);
    image_release(&image);
}

/* Gray rows: the bytes of mode L are one channel of ours. */
static void hash_gray(const struct image *image, char out[HASH_SHA256_HEX])
{
    size_t pixels = (size_t)(image->width * image->height);
    uint8_t *one = xmalloc(pixels);

    for (size_t i = 0; i < pixels; i++)
        one[i] = image->rgb[3 * i];
    hash_sha256(one, pixels, out);
    free(one);
}

static void hash_rgba(const struct image *image, char out[HASH_SHA256_HEX])
{
    size_t pixels = (size_t)(image->width * image->height);
    uint8_t *rgba = xmalloc(4 * pixels);

    for (size_t i = 0; i < pixels; i++) {
        memcpy(rgba + 4 * i, image->rgb + 3 * i, 3);
        rgba[4 * i + 3] = image->alpha[i];
    }
    hash_sha256(rgba, 4 * pixels, out);
    free(rgba);
}

static void check_resize(const char *dir, json_t *row)
{
    const char *mode = text_of(row, "mode");
    const char *want13 = text_of(row, "pillow13_sha256");
    bool is_one = json_object_get(row, "only") != NULL; /* 12.3 alone known */
    const char *want = text_of(row, "sha256");
    const char *name = text_of(row, "filter");
    int64_t w = item(row, "out", 0), h = item(row, "out", 1);
    enum image_filter filter;
    struct image image, to;
    struct err err = ERR_INIT;
    char sha[HASH_SHA256_HEX];

    if (load(dir, row, &image, &err) || !image_filter_parse(name, &filter)) {
        ok(false, "%s %s: %s", text_of(row, "file"), name, err.text);
        return;
    }
    for (int is_13 = 0; is_13 < (is_one ? 1 : 2); is_13++) {
        char *title =
            xasprintf("%s %s to %dx%d, passes of %s", text_of(row, "file"),
                      name, (int)w, (int)h, is_13 ? "13.0" : "12.3");

        if (image_resize(&image, w, h, filter,
                         is_13 ? IMAGE_PASSES_13_0 : IMAGE_PASSES_12_3, &to,
                         &err)) {
            ok(false, "%s: %s", title, err.text);
        } else {
            if (strcmp(mode, "L") == 0)
                hash_gray(&to, sha);
            else if (strcmp(mode, "RGBA") == 0)
                hash_rgba(&to, sha);
            else
                hash_rgb(&to, sha);
            is_str(sha, is_13 && want13 ? want13 : want, title);
            image_release(&to);
        }
        free(title);
    }
    image_release(&image);
}

static void check_patches(const char *dir, json_t *row)
{
    json_t *config = json_object_get(row, "config");
    const char *want13 = text_of(row, "pillow13_f32_sha256");
    bool is_one = json_object_get(row, "only") != NULL; /* 12.3 alone known */
    struct image_processor p = {.is_rescaled = true, .is_normalized = true};
    struct image image;
    struct err err = ERR_INIT;
    char sha[HASH_SHA256_HEX];
    int64_t grid[3];

    json_get_int(config, "patch_size", &p.patch, &err);
    json_get_int(config, "temporal_patch_size", &p.temporal, &err);
    json_get_int(config, "merge_size", &p.merge, &err);
    json_get_int(config, "min_pixels", &p.min_pixels, &err);
    json_get_int(config, "max_pixels", &p.max_pixels, &err);
    p.factor = (float)(1.0 / 255.0);
    for (size_t c = 0; c < 3; c++) {
        p.mean[c] = (float)json_number_value(
            json_array_get(json_object_get(config, "image_mean"), c));
        p.std[c] = (float)json_number_value(
            json_array_get(json_object_get(config, "image_std"), c));
    }
    if (err.code || load(dir, row, &image, &err) ||
        image_orient(&image, &err) ||
        image_processor_grid(&p, image.width, image.height, grid, &err)) {
        ok(false, "%s: %s", text_of(row, "file"), err.text);
        return;
    }
    ok(grid[0] == item(row, "grid_thw", 0) &&
           grid[1] == item(row, "grid_thw", 1) &&
           grid[2] == item(row, "grid_thw", 2),
       "%s %s: grid", text_of(row, "file"), text_of(row, "name"));
    size_t bytes = (size_t)(grid[1] * grid[2] * image_processor_features(&p)) *
                   sizeof(float);
    float *rows = xmalloc(bytes);
    for (int is_13 = 0; is_13 < (is_one ? 1 : 2); is_13++) {
        char *title =
            xasprintf("%s %s: patches, passes of %s", text_of(row, "file"),
                      text_of(row, "name"), is_13 ? "13.0" : "12.3");

        ok(image_patches(&p, &image,
                         is_13 ? IMAGE_PASSES_13_0 : IMAGE_PASSES_12_3, rows,
                         &err) == 0,
           "%s", title);
        hash_sha256(rows, bytes, sha);
        is_str(sha, is_13 && want13 ? want13 : text_of(row, "f32_sha256"),
               title);
        free(title);
    }
    free(rows);
    image_release(&image);
}

static void check_smart_resize(const char *dir, json_t *row)
{
    struct image_processor p = {.patch = 1, .merge = 1};
    struct err err = ERR_INIT;
    int64_t w = -1, h = -1;
    const char *error = text_of(row, "error");

    (void)dir;
    json_get_int(row, "factor", &p.patch, &err);
    json_get_int(row, "min_pixels", &p.min_pixels, &err);
    json_get_int(row, "max_pixels", &p.max_pixels, &err);
    int ret = image_processor_size(&p, item(row, "in_hw", 1),
                                   item(row, "in_hw", 0), &w, &h, &err);
    if (!json_is_array(json_object_get(row, "out_hw")))
        ok(ret == -1 && err.code == ERR_INPUT, "%dx%d: refused, as %s",
           (int)item(row, "in_hw", 0), (int)item(row, "in_hw", 1),
           error ? error : "upstream does");
    else if (!ok(ret == 0 && h == item(row, "out_hw", 0) &&
                     w == item(row, "out_hw", 1),
                 "%dx%d to %dx%d within %d and %d", (int)item(row, "in_hw", 0),
                 (int)item(row, "in_hw", 1), (int)item(row, "out_hw", 0),
                 (int)item(row, "out_hw", 1), (int)p.min_pixels,
                 (int)p.max_pixels))
        diag("got %dx%d: %s", (int)h, (int)w, err.text);
}

static void run(const char *dir)
{
    static const struct {
        const char *name;
        void (*check)(const char *, json_t *);
    } sets[] = {
        {"images.jsonl", check_image},
        {"resize.jsonl", check_resize},
        {"patches.jsonl", check_patches},
        {"smart_resize.jsonl", check_smart_resize},
    };

    if (!io_is_dir(dir)) {
        diag("%s: not there, skipped", dir);
        return;
    }
    for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
        each_row(dir, sets[i].name, sets[i].check);
}

/* bonsai2.md A.4: mean = std = 0.5. */
static void test_pixel_values(void)
{
    static const struct {
        uint8_t u;
        uint32_t bits;
    } rows[] = {{0, 0xbf800000},   {1, 0xbf7dfdfe},   {2, 0xbf7bfbfc},
                {64, 0xbefefefe},  {127, 0xbb808000}, {128, 0x3b808100},
                {254, 0x3f7dfe00}, {255, 0x3f800000}};
    struct image_processor p = {.patch = 1,
                                .temporal = 1,
                                .merge = 1,
                                .min_pixels = 1,
                                .max_pixels = 1 << 20,
                                .is_rescaled = true,
                                .is_normalized = true,
                                .factor = (float)(1.0 / 255.0),
                                .mean = {0.5f, 0.5f, 0.5f},
                                .std = {0.5f, 0.5f, 0.5f}};
    uint8_t rgb[3];
    struct image image = {1, 1, rgb, IMAGE_PNG, 1, "", NULL};
    struct err err = ERR_INIT;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        float got[3];
        uint32_t bits;

        memset(rgb, rows[i].u, 3);
        ok(image_patches(&p, &image, IMAGE_PASSES_12_3, got, &err) == 0,
           "one pixel");
        memcpy(&bits, got, 4);
        is_int(bits, rows[i].bits, "normalised value of a byte");
    }
}

static void test_library_names(void)
{
    static const struct {
        const char *name;
        int want;
    } rows[] = {{"pillow 9.4", IMAGE_PASSES_12_1},
                {"pillow 12.1.1", IMAGE_PASSES_12_1},
                {"pillow 12.2", IMAGE_PASSES_12_3},
                {"pillow 12.3", IMAGE_PASSES_12_3},
                {"pillow 12.3.0", IMAGE_PASSES_12_3},
                {"pillow 13.0.0", IMAGE_PASSES_13_0},
                {"pillow 13.1", -1},
                {"pillow 12.4", -1},
                {"pillow", -1},
                {"pillow 12", -1},
                {"pillow 12.3x", -1},
                {"opencv 4.9", -1},
                {"", -1}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        enum image_passes got;
        struct err err = ERR_INIT;
        int ret = image_passes_parse(rows[i].name, &got, &err);

        ok(rows[i].want < 0 ? ret == -1 && err.code == ERR_UNSUPPORTED
                            : ret == 0 && (int)got == rows[i].want,
           "image library '%s'", rows[i].name);
    }
}

/* Cut at every byte, and with every byte changed in turn, a file decodes or is
 * refused; it never crashes (run with SAN=1). */
static void test_damage(const char *path)
{
    struct buf whole = BUF_INIT;
    struct err err = ERR_INIT;
    struct image image;
    int decoded = 0, refusals = 0;

    if (io_read_file(path, 1 << 20, &whole, &err)) {
        ok(false, "%s", err.text);
        return;
    }
    for (size_t n = 0; n < whole.len; n++) {
        uint8_t *copy = xmalloc(n); /* exactly as long: reads past it show */

        memcpy(copy, whole.data, n);
        err_clear(&err);
        if (image_decode(copy, n, &image, &err) == 0)
            decoded++;
        image_release(&image);
        free(copy);
    }
    is_int(decoded, 0, path);
    for (size_t i = 0; i < whole.len; i++) {
        whole.data[i] = (char)(whole.data[i] ^ 0x5a);
        err_clear(&err);
        if (image_decode(whole.data, whole.len, &image, &err) == 0)
            decoded++;
        else
            refusals++;
        image_release(&image);
        whole.data[i] = (char)(whole.data[i] ^ 0x5a);
    }
    ok(refusals > 0, "%s: %d single changes decode, %d are refused", path,
       decoded, refusals);
    buf_release(&whole);
}

int main(void)
{
    const char *shared = getenv("ASSAY_SHARED");
    char *goldens =
        xasprintf("%s/data/goldens/images", shared ? shared : "../shared");

    static const char *const small[] = {
        "palette1.png",    "exif6.png",     "gray16.png", "gray.jpg",
        "progressive.jpg", "lossless.webp", "exif8.webp"};

    test_pixel_values();
    test_library_names();
    run("fixtures/image");
    run(goldens);
    for (size_t i = 0; i < sizeof(small) / sizeof(small[0]); i++) {
        char *path = xasprintf("fixtures/image/files/%s", small[i]);

        test_damage(path);
        free(path);
    }
    free(goldens);
    return done();
}
