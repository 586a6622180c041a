/* Questions to the Unicode tables, and UTF-8. */
#include "tokenizer/unicode.h"

bool unicode_has(const struct unicode_range *ranges, size_t count, uint32_t c)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (ranges[mid].last < c)
            low = mid + 1;
        else
            high = mid;
    }
    return low < count && ranges[low].first <= c;
}

size_t unicode_to_lower(uint32_t c, uint32_t out[2])
{
    size_t low = 0, high = unicode_lower_count;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (unicode_lower[mid].from < c)
            low = mid + 1;
        else
            high = mid;
    }
    if (low == unicode_lower_count || unicode_lower[low].from != c) {
        out[0] = c;
        return 1;
    }
    out[0] = unicode_lower[low].to[0];
    out[1] = unicode_lower[low].to[1];
    return out[1] ? 2 : 1;
}

uint32_t unicode_compose(uint32_t first, uint32_t second)
{
    size_t low = 0, high = unicode_pairs_count;

    if (first - 0x1100 < 19 && second - 0x1161 < 21)
        return 0xac00 + ((first - 0x1100) * 21 + (second - 0x1161)) * 28;
    if (first - 0xac00 < 11172 && (first - 0xac00) % 28 == 0 &&
        second - 0x11a8 < 27)
        return first + (second - 0x11a7);
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const struct unicode_pair *p = &unicode_pairs[mid];

        if (p->first < first || (p->first == first && p->second < second))
            low = mid + 1;
        else
            high = mid;
    }
    if (low < unicode_pairs_count && unicode_pairs[low].first == first &&
        unicode_pairs[low].second == second)
        return unicode_pairs[low].whole;
    return 0;
}

uint32_t utf8_get_before(const char *text, size_t end, size_t *start)
{
    size_t n;

    do
        end--;
    while (((unsigned char)text[end] & 0xc0) == 0x80);
    *start = end;
    return utf8_get(text + end, &n);
}
