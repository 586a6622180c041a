/*
 * The orientation tag.  EXIF is a TIFF file in small:
 *
 *     "II*\0" or "MM\0*" | offset of the directory | ... |
 *     count | tag type count value-or-offset | ...
 */
#include "image/image_internal.h"

#include <string.h>

enum { TAG_ORIENTATION = 274 };

static uint64_t number(const uint8_t *p, size_t bytes, bool is_big)
{
    uint64_t v = 0;

    for (size_t i = 0; i < bytes; i++)
        v = v << 8 | p[is_big ? i : bytes - 1 - i];
    return v;
}

enum type {
    SHORT = 3,
    LONG,
    RATIONAL,
    SIGNED_BYTE,
    SIGNED_SHORT = 8,
    SIGNED_LONG,
    SIGNED_RATIONAL,
    FLOAT,
    DOUBLE,
    IFD,
    LONG8 = 16
};

/* Bytes of one value by TIFF type; 0: a type that is passed over. */
static size_t type_size(uint64_t type)
{
    static const uint8_t sizes[] = {0, 1, 1, 2, 4, 8, 1, 1, 2,
                                    4, 8, 4, 8, 4, 0, 0, 8};

    return type < sizeof(sizes) ? sizes[type] : 0;
}

/* An orientation, 1 to 8, of whatever type of number; else 9. */
static int orientation_of(const uint8_t *at, uint64_t type, bool is_big)
{
    uint64_t v = number(at, type_size(type), is_big);
    uint32_t bits = (uint32_t)v;
    double real = 0;
    float single;

    switch (type) {
    case SHORT:
    case LONG:
    case SIGNED_BYTE:
    case SIGNED_SHORT:
    case SIGNED_LONG:
    case IFD:
    case LONG8:
        break; /* what is negative is large */
    case RATIONAL:
    case SIGNED_RATIONAL: {
        uint64_t over = number(at, 4, is_big),
                 under = number(at + 4, 4, is_big);

        if (type == SIGNED_RATIONAL && under >> 31) { /* both below zero */
            over = -over & UINT32_MAX;
            under = -under & UINT32_MAX;
        }
        v = under && over % under == 0 ? over / under : 0;
        break;
    }
    case FLOAT:
        memcpy(&single, &bits, sizeof(single));
        real = (double)single;
        v = 0;
        break;
    case DOUBLE:
        memcpy(&real, &v, sizeof(real));
        v = 0;
        break;
    default: /* bytes and text are no number */
        return 9;
    }
    for (int i = 1; i <= 8; i++)
        if (v == (uint64_t)i || real == i)
            return i;
    return 9;
}

int image_exif_orientation(const uint8_t *exif, size_t len)
{
    static const char *const headers[] = {"II*\0", "II\0*", "MM\0*", "MM*\0",
                                          "MM\0+"};
    bool is_tiff = false;
    int found = 0;

    while (len >= 6 && memcmp(exif, "Exif\0\0", 6) == 0) {
        exif += 6;
        len -= 6;
    }
    if (len == 0)
        return 0;
    for (int i = 0; i < 5 && len >= 8; i++)
        is_tiff |= memcmp(exif, headers[i], 4) == 0;
    if (!is_tiff)
        return -1;
    bool is_big = exif[0] == 'M';
    size_t at = number(exif + 4, 4, is_big);
    if (at > len || len - at < 2)
        return 0;
    uint64_t entries = number(exif + at, 2, is_big);
    at += 2;
    for (uint64_t i = 0; i < entries && len - at >= 12; i++, at += 12) {
        const uint8_t *e = exif + at, *value = e + 8;
        uint64_t type = number(e + 2, 2, is_big);
        uint64_t size = number(e + 4, 4, is_big) * type_size(type);
        uint64_t offset = number(e + 8, 4, is_big);

        if (size == 0)
            continue;
        if (size > 4) {
            if (offset > len || size > len - offset)
                break; /* Pillow reads no further either */
            value = exif + offset;
        }
        /* of several entries the last counts, of several values the first */
        if (number(e, 2, is_big) == TAG_ORIENTATION)
            found = orientation_of(value, type, is_big);
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
