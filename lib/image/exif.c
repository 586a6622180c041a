/*
 * The orientation tag.  EXIF is a TIFF file in small:
 *
 *     "II*\0" or "MM\0*" | offset of the directory | ... |
 *     count | tag type count value-or-offset | ...
 */
#include "image/image_internal.h"

#include <string.h>

enum { TAG_ORIENTATION = 274 };

static uint32_t number(const uint8_t *p, int bytes, bool is_big)
{
    uint32_t v = 0;

    for (int i = 0; i < bytes; i++)
        v = v << 8 | p[is_big ? i : bytes - 1 - i];
    return v;
}

int image_exif_orientation(const uint8_t *exif, size_t len)
{
    while (len >= 6 && memcmp(exif, "Exif\0\0", 6) == 0) {
        exif += 6;
        len -= 6;
    }
    if (len < 8 || (memcmp(exif, "II*\0", 4) && memcmp(exif, "MM\0*", 4)))
        return 0;
    bool is_big = exif[0] == 'M';
    size_t at = number(exif + 4, 4, is_big);
    if (at > len || len - at < 2)
        return 0;
    uint32_t entries = number(exif + at, 2, is_big);
    int found = 0;
    at += 2;
    for (uint32_t i = 0; i < entries && len - at >= 12; i++, at += 12) {
        const uint8_t *e = exif + at;
        uint32_t type = number(e + 2, 2, is_big);

        if (number(e, 2, is_big) != TAG_ORIENTATION ||
            number(e + 4, 4, is_big) != 1)
            continue;
        uint32_t value = 0;
        if (type == 3 || type == 8) /* 16 bits, unsigned or signed */
            value = number(e + 8, 2, is_big);
        else if (type == 4 || type == 9) /* 32 bits */
            value = number(e + 8, 4, is_big);
        found = value <= 8 ? (int)value : 9; /* the last one counts */
    }
    return found;
}

int image_xmp_orientation(const uint8_t *xmp, size_t len)
{
    static const char name[] = "tiff:Orientation";
    const size_t n = sizeof(name) - 1;

    for (size_t i = 0; i + n < len; i++) {
        if (memcmp(xmp + i, name, n) != 0)
            continue;
        const uint8_t *p = xmp + i + n;
        size_t left = len - i - n;
        size_t skip = left >= 3 && p[0] == '=' && p[1] == '"' ? 2
                      : left >= 2 && p[0] == '>'              ? 1
                                                              : 0;
        if (skip && p[skip] >= '0' && p[skip] <= '9')
            return p[skip] - '0';
    }
    return 0;
}
