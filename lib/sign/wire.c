/* SSH's wire form, base64 and armor. */
#include "base/mem.h"
#include "sign/sign_internal.h"

#include <stdlib.h>
#include <string.h>

bool wire_u32(struct wire *w, uint32_t *out)
{
    if (w->left < 4)
        return false;
    *out = (uint32_t)w->at[0] << 24 | (uint32_t)w->at[1] << 16 |
           (uint32_t)w->at[2] << 8 | w->at[3];
    w->at += 4;
    w->left -= 4;
    return true;
}

bool wire_string(struct wire *w, struct wire_string *out)
{
    uint32_t len;

    if (!wire_u32(w, &len) || len > w->left)
        return false;
    *out = (struct wire_string){w->at, len};
    w->at += len;
    w->left -= len;
    return true;
}

bool wire_is(const struct wire_string *s, const char *text)
{
    return s->len == strlen(text) && memcmp(s->data, text, s->len) == 0;
}

void wire_put(struct buf *out, const void *data, size_t len)
{
    unsigned char head[4] = {(unsigned char)(len >> 24),
                             (unsigned char)(len >> 16),
                             (unsigned char)(len >> 8), (unsigned char)len};

    buf_add(out, head, sizeof(head));
    buf_add(out, data, len);
}

static const char alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

bool base64_decode(const char *text, size_t len, struct buf *out)
{
    unsigned bits = 0;
    size_t count = 0, pads = 0;

    for (size_t i = 0; i < len; i++) {
        const char *at;

        if (strchr(" \t\r\n", text[i]) && text[i])
            continue;
        if (text[i] == '=') {
            pads++;
            continue;
        }
        at = text[i] ? strchr(alphabet, text[i]) : NULL;
        if (!at || pads)
            return false;
        bits = bits << 6 | (unsigned)(at - alphabet);
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

int armor_decode(const char *text, size_t len, const char *what,
                 struct buf *out, struct err *err)
{
    char *begin = xasprintf("-----BEGIN %s-----", what);
    char *end = xasprintf("-----END %s-----", what);
    size_t head = strlen(begin), foot = strlen(end);
    const char *stop;
    int ret = -1;

    while (len > 0 && strchr(" \t\r\n", text[len - 1]) && text[len - 1])
        len--;
    if (len < head + foot || memcmp(text, begin, head) != 0) {
        err_set(err, ERR_INPUT, "does not begin with %s", begin);
        goto out;
    }
    stop = text + len - foot;
    if (memcmp(stop, end, foot) != 0)
        err_set(err, ERR_INPUT, "does not end with %s", end);
    else if (!base64_decode(text + head, (size_t)(stop - text) - head, out))
        err_set(err, ERR_INPUT, "is not base64");
    else
        ret = 0;
out:
    free(end);
    free(begin);
    return ret;
}
