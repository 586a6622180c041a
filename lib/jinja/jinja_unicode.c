/* Code points: properties, case, UTF-8. */
#include "jinja/jinja_unicode.h"

#include <string.h>
#include <strings.h>

const struct juni_record *juni_get(uint32_t cp)
{
    uint32_t page = juni_first[cp >> juni_shift];

    return &juni_records[juni_second[(page << juni_shift) +
                                     (cp & ((1U << juni_shift) - 1))]];
}

bool juni_is(uint32_t cp, unsigned flags)
{
    return (juni_get(cp)->flags & flags) != 0;
}

size_t juni_map(uint32_t cp, enum juni_case to, uint32_t out[3])
{
    const struct juni_record *r = juni_get(cp);
    int32_t by = to == JUNI_TO_UPPER   ? r->upper
                 : to == JUNI_TO_LOWER ? r->lower
                                       : r->title;
    size_t n = r->lengths >> 2 * (int)to & 3;

    if (n == 0) {
        out[0] = (uint32_t)((int32_t)cp + by);
        return 1;
    }
    for (size_t i = 0; i < n; i++)
        out[i] = (uint32_t)juni_specials[(size_t)by + i];
    return n;
}

uint32_t juni_next(const char *data, size_t *at)
{
    const unsigned char *p = (const unsigned char *)data + *at;

    if (p[0] < 0x80) {
        *at += 1;
        return p[0];
    }
    if (p[0] < 0xe0) {
        *at += 2;
        return (p[0] & 0x1fU) << 6 | (p[1] & 0x3fU);
    }
    if (p[0] < 0xf0) {
        *at += 3;
        return (p[0] & 0x0fU) << 12 | (p[1] & 0x3fU) << 6 | (p[2] & 0x3fU);
    }
    *at += 4;
    return (p[0] & 0x07U) << 18 | (p[1] & 0x3fU) << 12 | (p[2] & 0x3fU) << 6 |
           (p[3] & 0x3fU);
}

uint32_t juni_before(const char *data, size_t *at)
{
    size_t i = *at - 1;

    while (((unsigned char)data[i] & 0xc0) == 0x80)
        i--;
    *at = i;
    return juni_next(data, &i);
}

size_t juni_count(const char *data, size_t len)
{
    size_t n = 0;

    for (size_t i = 0; i < len; i++)
        n += ((unsigned char)data[i] & 0xc0) != 0x80;
    return n;
}

bool juni_is_utf8(const char *data, size_t len, size_t *bad)
{
    const unsigned char *p = (const unsigned char *)data;

    for (size_t i = 0; i < len;) {
        size_t n = p[i] < 0x80 ? 1 : p[i] < 0xe0 ? 2 : p[i] < 0xf0 ? 3 : 4;

        *bad = i;
        if ((p[i] >= 0x80 && p[i] < 0xc2) || p[i] > 0xf4 || n > len - i)
            return false;
        for (size_t k = 1; k < n; k++)
            if ((p[i + k] & 0xc0) != 0x80)
                return false;
        if ((p[i] == 0xe0 && p[i + 1] < 0xa0) ||
            (p[i] == 0xed && p[i + 1] > 0x9f) ||
            (p[i] == 0xf0 && p[i + 1] < 0x90) ||
            (p[i] == 0xf4 && p[i + 1] > 0x8f))
            return false;
        i += n;
    }
    return true;
}

int32_t juni_named(const char *name, size_t len)
{
    size_t low = 0, high = juni_name_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const char *is = juni_names[middle].name;
        int by = strncasecmp(is, name, len);

        if (by == 0 && is[len])
            by = 1;
        if (by == 0)
            return (int32_t)juni_names[middle].cp;
        if (by < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}
