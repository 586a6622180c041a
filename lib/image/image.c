/* What all kinds of image share: telling them apart, limits, orientation. */
#include "image/image.h"

#include "base/io.h"
#include "base/mem.h"
#include "image/image_internal.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_FILE = 1 << 30 };

static const struct {
    const char *bytes;
    size_t offset, len;
    const char *name;
} others[] = {
    {"GIF8", 0, 4, "GIF"},
    {"BM", 0, 2, "BMP"},
    {"II*\0", 0, 4, "TIFF"},
    {"MM\0*", 0, 4, "TIFF"},
    {"II+\0", 0, 4, "TIFF"},
    {"MM\0+", 0, 4, "TIFF"},
    {"ftypavif", 4, 8, "AVIF"},
    {"ftypavis", 4, 8, "AVIF"},
    {"ftypheic", 4, 8, "HEIC"},
    {"ftypheix", 4, 8, "HEIC"},
    {"ftyphevc", 4, 8, "HEIC"},
    {"ftypmif1", 4, 8, "HEIF"},
    {"ftypmsf1", 4, 8, "HEIF"},
    {"\0\0\1\0", 0, 4, "ICO"},
    {"\0\0\2\0", 0, 4, "CUR"},
    {"icns", 0, 4, "ICNS"},
    {"\xff\x0a", 0, 2, "JPEG XL"},
    {"\0\0\0\x0cJXL ", 0, 8, "JPEG XL"},
    {"\0\0\0\x0cjP  ", 0, 8, "JPEG 2000"},
    {"\xff\x4f\xff\x51", 0, 4, "JPEG 2000"},
    {"8BPS", 0, 4, "PSD"},
    {"DDS ", 0, 4, "DDS"},
    {"qoif", 0, 4, "QOI"},
    {"\x76\x2f\x31\x01", 0, 4, "OpenEXR"},
    {"\x01\xda", 0, 2, "SGI"},
    {"P1\n", 0, 3, "PBM"},
    {"P2\n", 0, 3, "PGM"},
    {"P3\n", 0, 3, "PPM"},
    {"P4\n", 0, 3, "PBM"},
    {"P5\n", 0, 3, "PGM"},
    {"P6\n", 0, 3, "PPM"},
    {"P7\n", 0, 3, "PAM"},
    {"%PDF-", 0, 5, "PDF"},
    {"%!PS", 0, 4, "PostScript"},
    {"<svg", 0, 4, "SVG"},
};

static bool starts(const uint8_t *data, size_t len, size_t offset,
                   const char *bytes, size_t n)
{
    return len >= offset + n && memcmp(data + offset, bytes, n) == 0;
}

int image_check_size(uint64_t width, uint64_t height, struct err *err)
{
    if (width == 0 || height == 0)
        return err_set(err, ERR_INPUT, "%llu x %llu pixels",
                       (unsigned long long)width, (unsigned long long)height);
    if (width > IMAGE_MAX_SIDE || height > IMAGE_MAX_SIDE)
        return err_set(err, ERR_INPUT, "%llu x %llu pixels: a side passes %d",
                       (unsigned long long)width, (unsigned long long)height,
                       IMAGE_MAX_SIDE);
    if (width * height > IMAGE_MAX_PIXELS)
        return err_set(err, ERR_INPUT, "%llu x %llu pixels pass %d",
                       (unsigned long long)width, (unsigned long long)height,
                       IMAGE_MAX_PIXELS);
    return 0;
}

int image_alloc(struct image *image, uint64_t width, uint64_t height,
                struct err *err)
{
    if (image_check_size(width, height, err))
        return -1;
    image->rgb = mem_bytes((size_t)(width * height), 3,
                           (size_t)IMAGE_MAX_PIXELS * 3, err);
    if (!image->rgb)
        return -1;
    image->width = (int64_t)width;
    image->height = (int64_t)height;
    return 0;
}

int image_alloc_alpha(struct image *image, struct err *err)
{
    image->alpha = mem_bytes((size_t)(image->width * image->height), 1,
                             IMAGE_MAX_PIXELS, err);
    return image->alpha ? 0 : -1;
}

void image_release(struct image *image)
{
    if (!image)
        return;
    free(image->rgb);
    free(image->alpha);
    *image = (struct image)IMAGE_INIT;
}

const char *image_kind_name(enum image_kind kind)
{
    static const char *const names[] = {"PNG", "JPEG", "WebP"};

    return names[kind];
}

static int decode(const void *bytes, size_t len, bool is_alpha_kept,
                  struct image *out, struct err *err)
{
    const uint8_t *data = bytes;
    int ret;

    *out = (struct image)IMAGE_INIT;
    if (starts(data, len, 0, "\x89PNG\r\n\x1a\n", 8)) {
        out->kind = IMAGE_PNG;
        ret = image_decode_png(data, len, is_alpha_kept, out, err);
    } else if (starts(data, len, 0, "\xff\xd8\xff", 3)) {
        out->kind = IMAGE_JPEG;
        ret = image_decode_jpeg(data, len, out, err);
    } else if (starts(data, len, 0, "RIFF", 4) &&
               starts(data, len, 8, "WEBP", 4)) {
        out->kind = IMAGE_WEBP;
        ret = image_decode_webp(data, len, is_alpha_kept, out, err);
    } else {
        for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
            if (starts(data, len, others[i].offset, others[i].bytes,
                       others[i].len))
                return err_set(err, ERR_UNSUPPORTED,
                               "%s images are not supported", others[i].name);
        return err_set(err, ERR_INPUT, "not a PNG, JPEG or WebP image");
    }
    if (ret) {
        err_in(err, "%s", image_kind_name(out->kind));
        image_release(out);
    } else if (out->orientation == 0 || out->orientation > 8) {
        out->orientation = 1;
    }
    return ret;
}

int image_decode(const void *data, size_t len, struct image *out,
                 struct err *err)
{
    return decode(data, len, false, out, err);
}

int image_decode_alpha(const void *data, size_t len, struct image *out,
                       struct err *err)
{
    return decode(data, len, true, out, err);
}

static int load(const char *path, bool is_alpha_kept, struct image *out,
                struct err *err)
{
    struct buf data = BUF_INIT;
    int ret = -1;

    *out = (struct image)IMAGE_INIT;
    if (io_read_file(path, MAX_FILE, &data, err) == 0) {
        ret = decode(data.data, data.len, is_alpha_kept, out, err);
        if (ret)
            err_in(err, "%s", path);
    }
    buf_release(&data);
    return ret;
}

int image_load(const char *path, struct image *out, struct err *err)
{
    return load(path, false, out, err);
}

int image_load_alpha(const char *path, struct image *out, struct err *err)
{
    return load(path, true, out, err);
}

/*
 * Where pixel (x, y) of the upright image lies in the stored one; W and H are
 * the stored size.  1 as it is, 2 mirrored, 3 by 180 degrees, 4 flipped, 5
 * transposed, 6 by 270 counter-clockwise, 7 transverse, 8 by 90.
 */
static int64_t source(int orientation, int64_t x, int64_t y, int64_t w,
                      int64_t h)
{
    switch (orientation) {
    case 2:
        return y * w + (w - 1 - x);
    case 3:
        return (h - 1 - y) * w + (w - 1 - x);
    case 4:
        return (h - 1 - y) * w + x;
    case 5:
        return x * w + y;
    case 6:
        return (h - 1 - x) * w + y;
    case 7:
        return (h - 1 - x) * w + (w - 1 - y);
    case 8:
        return x * w + (w - 1 - y);
    default:
        return y * w + x;
    }
}

int image_orient(struct image *image, struct err *err)
{
    struct image to = *image;
    int64_t w = image->width, h = image->height;
    bool is_turned = image->orientation >= 5;

    if (image->orientation == 1)
        return 0;
    if (image->orientation < 0)
        return err_set(err, ERR_INPUT, "%s: the EXIF block is not TIFF",
                       image_kind_name(image->kind));
    to.rgb = to.alpha = NULL;
    if (image_alloc(&to, (uint64_t)(is_turned ? h : w),
                    (uint64_t)(is_turned ? w : h), err) ||
        (image->alpha && image_alloc_alpha(&to, err))) {
        free(to.rgb);
        return -1;
    }
    for (int64_t y = 0; y < to.height; y++)
        for (int64_t x = 0; x < to.width; x++) {
            int64_t at = source(image->orientation, x, y, w, h);

            memcpy(to.rgb + (y * to.width + x) * 3, image->rgb + at * 3, 3);
            if (to.alpha)
                to.alpha[y * to.width + x] = image->alpha[at];
        }
    to.orientation = 1;
    free(image->rgb);
    free(image->alpha);
    *image = to;
    return 0;
}

void image_libraries(const char **png, const char **jpeg, const char **webp)
{
    *png = image_png_version();
    *jpeg = image_jpeg_version();
    *webp = image_webp_version();
}
