/* SSH's wire form and armor. */
#include "base/base64.h"
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

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Base64 in lines. */
static bool decode_lines(const char *text, size_t len, struct buf *out)
{
    struct buf line = BUF_INIT;

    for (size_t i = 0; i < len; i++)
        if (!is_blank(text[i]))
            buf_addch(&line, text[i]);
    bool is_sound = base64_decode(line.data, line.len, out);
    buf_release(&line);
    return is_sound;
}

int armor_decode(const char *text, size_t len, const char *what,
                 struct buf *out, struct err *err)
{
    char *begin = xasprintf("-----BEGIN %s-----", what);
    char *end = xasprintf("-----END %s-----", what);
    size_t head = strlen(begin), foot = strlen(end);
    const char *stop;
    int ret = -1;

    while (len > 0 && is_blank(text[len - 1]))
        len--;
    if (len < head + foot || memcmp(text, begin, head) != 0) {
        err_set(err, ERR_INPUT, "does not begin with %s", begin);
        goto out;
    }
    stop = text + len - foot;
    if (memcmp(stop, end, foot) != 0)
        err_set(err, ERR_INPUT, "does not end with %s", end);
    else if (!decode_lines(text + head, (size_t)(stop - text) - head, out))
        err_set(err, ERR_INPUT, "is not base64");
    else
        ret = 0;
out:
    free(end);
    free(begin);
    return ret;
}
