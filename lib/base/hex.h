#ifndef BASE_HEX_H
#define BASE_HEX_H

#include <stddef.h>
#include <stdint.h>

/* A hexadecimal digit's value, of either case; -1 when it is none. */
static inline int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
        return (c | 0x20) - 'a' + 10;
    return -1;
}

/* Exactly n digits (at most 8) as a number; -1 when one is none. */
static inline int hex_read(const char *text, size_t n, uint32_t *out)
{
    *out = 0;
    for (size_t i = 0; i < n; i++) {
        int digit = hex_digit(text[i]);

        if (digit < 0)
            return -1;
        *out = *out << 4 | (uint32_t)digit;
    }
    return 0;
}
#endif
