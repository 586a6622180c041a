#ifndef IMAGE_IMAGE_INTERNAL_H
#define IMAGE_IMAGE_INTERNAL_H

#include "image/image.h"

enum {
    IMAGE_MAX_SIDE = 65535,
    IMAGE_MAX_PIXELS = 178956970, /* Pillow: 2 * (1 GiB / 4 / 3), rounded */
};

/* Checks the size and allocates rgb; the second, alpha for as many pixels. */
int image_alloc(struct image *image, uint64_t width, uint64_t height,
                struct err *err);
int image_alloc_alpha(struct image *image, struct err *err);

/* Alpha is kept in out->alpha when it is asked for and there. */
int image_decode_png(const uint8_t *data, size_t len, bool is_alpha_kept,
                     struct image *out, struct err *err);
int image_decode_jpeg(const uint8_t *data, size_t len, struct image *out,
                      struct err *err);
int image_decode_webp(const uint8_t *data, size_t len, bool is_alpha_kept,
                      struct image *out, struct err *err);
const char *image_png_version(void);
const char *image_jpeg_version(void);
const char *image_webp_version(void);

/*
 * The orientation as Pillow's getexif() finds it: tag 274 of the first
 * directory of an EXIF block (TIFF, with or without "Exif\0\0" before it),
 * else tiff:Orientation in an XMP packet.  0 when there is none,
 * -1 when the block is no TIFF: Pillow then fails as soon as it is asked.
 */
int image_exif_orientation(const uint8_t *exif, size_t len);
int image_xmp_orientation(const uint8_t *xmp, size_t len);

/*
 * png_notes.c: what a PNG's chunks beside the pixels say of its orientation,
 * each the last of its kind.  Pillow asks eXIf or a text "exif", else the text
 * "Raw profile type exif", then the XMP packet.
 */
struct png_notes {
    bool has_exif;
    int exif, raw;
    bool is_xmp_text; /* the packet came as text, and is not empty */
    int xmp_text, xmp;
    size_t text_len;
};

/* Takes one chunk; ERR_INPUT where Pillow refuses the file for it. */
int png_note(struct png_notes *n, const uint8_t *type, const uint8_t *data,
             size_t len, int color, struct err *err);
int png_notes_orientation(const struct png_notes *n);
#endif
