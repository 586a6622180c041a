#ifndef IMAGE_IMAGE_H
#define IMAGE_IMAGE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Still images, as Pillow decodes and resizes them (formats.md 5).  A file's
 * kind is decided by its content.  Decoding gives the bytes of
 * Image.open(f).convert("RGB"): alpha dropped without compositing, gray
 * replicated, palettes expanded, 16 bits cut to the high byte (16-bit gray:
 * the smaller of value and 255), no gamma and no colour profile.
 *
 * Files are hostile.  More than 178,956,970 pixels or a side above 65,535 is
 * refused before anything is allocated; so are files that are cut short,
 * damaged, or carry data behind their end (PNG), and whatever Pillow's readers
 * stumble over beside the pixels (a short gAMA, a profile of more than 1 MiB),
 * all ERR_INPUT.  Animations, other formats, JPEG processes the library lacks
 * and a progressive JPEG without its last scans (whose guess differs between
 * versions of the library) are ERR_UNSUPPORTED.
 */
enum image_kind { IMAGE_PNG, IMAGE_JPEG, IMAGE_WEBP };

struct image {
    int64_t width, height;
    uint8_t *rgb; /* height rows of width pixels of 3 bytes, owned */
    enum image_kind kind;
    int orientation;   /* 1 to 8, of EXIF or else XMP; -1: EXIF is damaged */
    char warning[200]; /* what the decoder put right, as Pillow does; or "" */
    uint8_t *alpha;    /* a byte a pixel, owned; NULL unless asked for */
};

#define IMAGE_INIT                          \
    {                                       \
        0, 0, NULL, IMAGE_PNG, 1, {0}, NULL \
    }

/* Decodes; errors from image_load name the path.  On failure *out is empty. */
int image_load(const char *path, struct image *out, struct err *err);
int image_decode(const void *data, size_t len, struct image *out,
                 struct err *err);

/* The same with the alpha channel that the file stores, if it stores one: a
 * PNG of colour type 4 or 6 (tRNS is none) or a WebP with alpha. */
int image_load_alpha(const char *path, struct image *out, struct err *err);
int image_decode_alpha(const void *data, size_t len, struct image *out,
                       struct err *err);
void image_release(struct image *image);
const char *image_kind_name(enum image_kind kind);

/* ERR_INPUT for a side of 0 or past the limits. */
int image_check_size(uint64_t width, uint64_t height, struct err *err);

/* Turns it upright by its orientation (ImageOps.exif_transpose), which is 1
 * afterwards.  mlx-vlm does this to every image.  A damaged EXIF block is
 * ERR_INPUT. */
int image_orient(struct image *image, struct err *err);

/* Pillow's resampling filters. */
enum image_filter {
    IMAGE_BOX,
    IMAGE_BILINEAR,
    IMAGE_HAMMING,
    IMAGE_BICUBIC,
    IMAGE_LANCZOS,
};
bool image_filter_parse(const char *name, enum image_filter *out);

/*
 * Which pass comes first is Pillow's choice, and it changed twice; it shows in
 * the bytes, because each pass rounds to 8 bits.
 */
enum image_passes {
    IMAGE_PASSES_12_1, /* up to 12.1: horizontal first */
    IMAGE_PASSES_12_3, /* 12.2, 12.3: vertical first if H > 100 W and h < H */
    IMAGE_PASSES_13_0, /* 13.0: vertical first if H - h > 2 (W - w), h < H */
};

/* "pillow 12.3", "pillow 12.3.0"; another library or a version whose passes
 * nobody compared (before 5, after 13.0) is ERR_UNSUPPORTED. */
int image_passes_parse(const char *library, enum image_passes *out,
                       struct err *err);

/* Image.resize((width, height), filter): a new image; `from` is kept.  With
 * alpha it is Pillow's resize of RGBA: the colours are multiplied by alpha
 * before and divided by it after, unless the size stays. */
int image_resize(const struct image *from, int64_t width, int64_t height,
                 enum image_filter filter, enum image_passes passes,
                 struct image *out, struct err *err);

/* "libpng 1.6.39, ...": the libraries that can change a bit, for records. */
void image_libraries(const char **png, const char **jpeg, const char **webp);
#endif
