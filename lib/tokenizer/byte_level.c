/* Bytes as characters, and back. */
#include "tokenizer/byte_level.h"

#include "tokenizer/unicode.h"

const char byte_level_pattern[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|"
    "\\s+(?!\\S)|\\s+";

/* ASCII that stands for itself. */
static bool is_plain(char c)
{
    return c > 32 && c < 127;
}

uint32_t byte_level_char(unsigned char byte)
{
    if ((byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) ||
        byte >= 174)
        return byte;
    if (byte <= 32)
        return 0x100u + byte;
    return byte == 173 ? 0x100u + 67 : 0x100u + byte - 127 + 33;
}

/* -1 for a character that is none of the 256. */
static int byte_of(uint32_t c)
{
    if (c >= 0x100)
        return c <= 0x120   ? (int)c - 0x100
               : c <= 0x142 ? (int)c - 0x121 + 127
               : c == 0x143 ? 173
                            : -1;
    return c >= 174 || (c >= 161 && c <= 172) || (c >= 33 && c <= 126) ? (int)c
                                                                       : -1;
}

void byte_level_spell(const char *bytes, size_t len, struct buf *out)
{
    buf_reserve(out, 2 * len);
    char *to = out->data + out->len;

    for (size_t i = 0; i < len; i++)
        if (is_plain(bytes[i]))
            *to++ = bytes[i];
        else
            to += utf8_put(byte_level_char((unsigned char)bytes[i]), to);
    *to = '\0';
    out->len = (size_t)(to - out->data);
}

bool byte_level_bytes(const char *text, size_t len, struct buf *out)
{
    size_t start = out->len, n;

    buf_reserve(out, len);
    char *to = out->data + start;
    for (size_t i = 0; i < len; i += n) {
        int byte =
            is_plain(text[i]) ? text[i] : byte_of(utf8_get(text + i, &n));

        if (is_plain(text[i]))
            n = 1;
        if (byte < 0) {
            out->data[start] = '\0';
            return false;
        }
        *to++ = (char)byte;
    }
    *to = '\0';
    out->len = (size_t)(to - out->data);
    return true;
}
