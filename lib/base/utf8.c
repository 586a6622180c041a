/* UTF-8, checked by the table of well-formed byte sequences. */
#include "base/utf8.h"

#include <string.h>

/* Bytes of the sequence that starts here; 0 when it is malformed. */
static size_t sequence(const unsigned char *s, size_t left)
{
    unsigned lead = s[0], low = 0x80, high = 0xbf;
    size_t n = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;

    if (n == 1)
        return 1;
    if (lead < 0xc2 || lead > 0xf4 || n > left)
        return 0;
    if (lead == 0xe0)
        low = 0xa0;
    else if (lead == 0xed)
        high = 0x9f;
    else if (lead == 0xf0)
        low = 0x90;
    else if (lead == 0xf4)
        high = 0x8f;
    if (s[1] < low || s[1] > high)
        return 0;
    for (size_t i = 2; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    return n;
}

size_t utf8_len(const char *text, size_t left)
{
    return left ? sequence((const unsigned char *)text, left) : 0;
}

size_t utf8_put(uint32_t c, char *out)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3f));
        out[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3f));
    out[2] = (char)(0x80 | (c >> 6 & 0x3f));
    out[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

bool utf8_is_valid(const char *text, size_t len)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t at = 0;

    while (at < len) {
        uint64_t eight;

        if (len - at >= 8) {
            memcpy(&eight, s + at, 8);
            if ((eight & 0x8080808080808080) == 0) {
                at += 8;
                continue;
            }
        }
        size_t n = sequence(s + at, len - at);

        if (n == 0)
            return false;
        at += n;
    }
    return true;
}

void utf8_make_printable(char *text)
{
    size_t left = strlen(text);

    while (left) {
        size_t n = utf8_len(text, left);

        if (n == 0 || (unsigned char)*text < 0x20 || *text == 0x7f)
            *text = '?';
        n = n ? n : 1;
        text += n;
        left -= n;
    }
}
