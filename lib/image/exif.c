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

/* Bytes of one value by TIFF type; 0: a type that is passed over. */
static size_t type_size(uint32_t type)
{
    static const uint8_t sizes[] = {0, 1, 1, 2, 4, 8, 1, 1, 2,
                                    4, 8, 4, 8, 4, 0, 0, 8};

    return type < sizeof(sizes) ? sizes[type] : 0;
}

int image_exif_orientation(const uint8_t *exif, size_t len)
{
    static const char *const headers[] = {"II*\0", "II\0*", "MM\0*", "MM*\0"};
    bool is_tiff = false;
    int found = 0;

    while (len >= 6 && memcmp(exif, "Exif\0\0", 6) == 0) {
        exif += 6;
        len -= 6;
    }
    if (len == 0)
        return 0;
    for (int i = 0; i < 4 && len >= 8; i++)
        is_tiff |= memcmp(exif, headers[i], 4) == 0;
    if (!is_tiff)
        return -1;
    bool is_big = exif[0] == 'M';
    size_t at = number(exif + 4, 4, is_big);
    if (at > len || len - at < 2)
        return 0;
    uint32_t entries = number(exif + at, 2, is_big);
    at += 2;
    for (uint32_t i = 0; i < entries && len - at >= 12; i++, at += 12) {
        const uint8_t *e = exif + at;
        uint32_t type = number(e + 2, 2, is_big);
        uint32_t count = number(e + 4, 4, is_big);
        uint32_t offset = number(e + 8, 4, is_big);
        uint64_t size = (uint64_t)count * type_size(type);

        if (size == 0)
            continue;
        if (size > 4 && (offset > len || size > len - offset))
            break; /* Pillow reads no further either */
        if (number(e, 2, is_big) != TAG_ORIENTATION)
            continue;
        uint32_t value = 0; /* of several entries the last counts */
        if (count == 1 && (type == 3 || type == 8)) /* 16 bits */
            value = number(e + 8, 2, is_big);
        else if (count == 1 && (type == 4 || type == 9)) /* 32 bits */
            value = offset;
        found = value >= 1 && value <= 8 ? (int)value : 9; /* there, odd */
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
