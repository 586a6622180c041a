/* Base64 (RFC 4648). */
#include "base/base64.h"

static const char alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int digit_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool base64_decode(const char *text, size_t len, struct buf *out)
{
    unsigned bits = 0;
    size_t count = 0, pads = 0;

    for (size_t i = 0; i < len; i++) {
        int digit = digit_of(text[i]);

        if (text[i] == '=') {
            pads++;
            continue;
        }
        if (digit < 0 || pads)
            return false;
        bits = bits << 6 | (unsigned)digit;
        if (++count % 4 == 0) {
            buf_addch(out, (int)(bits >> 16 & 255));
            buf_addch(out, (int)(bits >> 8 & 255));
            buf_addch(out, (int)(bits & 255));
            bits = 0;
        }
    }
    /* the bits that no byte takes are zero */
    if (count % 4 == 2 && pads == 2 && (bits & 15) == 0) {
        buf_addch(out, (int)(bits >> 4 & 255));
    } else if (count % 4 == 3 && pads == 1 && (bits & 3) == 0) {
        buf_addch(out, (int)(bits >> 10 & 255));
        buf_addch(out, (int)(bits >> 2 & 255));
    } else {
        return count % 4 == 0 && pads == 0;
    }
    return true;
}

void base64_encode(const void *data, size_t len, size_t width, struct buf *out)
{
    const unsigned char *at = data;
    size_t column = 0;

    for (size_t i = 0; i < len; i += 3) {
        size_t n = len - i < 3 ? len - i : 3;
        unsigned bits = (unsigned)at[i] << 16;

        if (n > 1)
            bits |= (unsigned)at[i + 1] << 8;
        if (n > 2)
            bits |= at[i + 2];
        for (size_t k = 0; k < 4; k++) {
            buf_addch(out, k <= n ? alphabet[bits >> (18 - 6 * k) & 63] : '=');
            if (width && ++column == width) {
                buf_addch(out, '\n');
                column = 0;
            }
        }
    }
    if (column)
        buf_addch(out, '\n');
}
