/*
 * Blocks of a tar, told apart:
 *
 *     [x header, its body]  header  data  zeros up to a whole block    an entry
 *     zeros                                                            the end
 *
 * An extended header's "size" record, if any, is the data's size.
 */
#include "archive/tar_shape.h"

#include "base/buf.h"
#include "base/mem.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 512, HEAD_CAP = 1 << 20 };

struct tar_shape {
    struct buf heads; /* of entries that passed, not yet taken */
    size_t *lengths;  /* of each */
    size_t count, cap, taken, taken_bytes;
    struct buf head; /* of the entry at hand */
    char block[BLOCK];
    size_t filled;
    size_t body;        /* of an extended header, blocks still to come */
    int64_t data, zero; /* bytes of data and padding still to come */
    int64_t size;       /* that an extended header tells, or -1 */
    bool is_over, is_broken, has_padding;
};

struct tar_shape *tar_shape_new(void)
{
    struct tar_shape *s = xcalloc(1, sizeof(*s));

    s->size = -1;
    return s;
}

void tar_shape_free(struct tar_shape *s)
{
    if (!s)
        return;
    buf_release(&s->heads);
    buf_release(&s->head);
    free(s->lengths);
    free(s);
}

bool tar_shape_is_padded(const struct tar_shape *s)
{
    return s->has_padding;
}

/* The size field, in octal digits; -1 when it is none. */
static int64_t octal(const char *field, size_t n)
{
    int64_t value = 0;

    for (size_t i = 0; i < n && field[i] && field[i] != ' '; i++) {
        if (field[i] < '0' || field[i] > '7')
            return -1;
        value = value * 8 + (field[i] - '0');
    }
    return value;
}

/* "LENGTH KEY=VALUE\n" records: the value of "size", or -1. */
static int64_t pax_size(const char *body)
{
    for (const char *at = body; *at >= '0' && *at <= '9';) {
        char *end;
        unsigned long n = strtoul(at, &end, 10);

        if (*end != ' ' || n == 0 || strlen(at) < n)
            return -1;
        if (strncmp(end, " size=", 6) == 0)
            return strtoll(end + 6, NULL, 10);
        at += n;
    }
    return -1;
}

/* An entry's blocks are whole: its data are next. */
static void end_head(struct tar_shape *s, int64_t size)
{
    if (s->count == s->cap) {
        s->cap = s->cap ? s->cap * 2 : 64;
        s->lengths = xrealloc(s->lengths, s->cap * sizeof(*s->lengths));
    }
    s->lengths[s->count++] = s->head.len;
    buf_add(&s->heads, s->head.data, s->head.len);
    buf_clear(&s->head);
    s->data = s->size >= 0 ? s->size : size;
    s->zero = (BLOCK - s->data % BLOCK) % BLOCK;
    s->size = -1;
}

static bool is_zero(const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (bytes[i])
            return false;
    return true;
}

static void take_block(struct tar_shape *s)
{
    const char *block = s->block;
    int64_t size = octal(block + 124, 12);

    if (s->body == 0 && is_zero(block, BLOCK)) {
        s->is_over = true;
        return;
    }
    buf_add(&s->head, block, BLOCK);
    s->is_broken |= s->head.len > HEAD_CAP;
    if (s->body > 0) {
        if (--s->body == 0) /* behind the header of the extension itself */
            s->size = pax_size(s->head.data + BLOCK);
    } else if (size < 0) {
        s->is_broken = true;
    } else if (block[156] == 'x') {
        s->is_broken |= s->head.len > BLOCK || size > HEAD_CAP;
        s->body = (size_t)((size + BLOCK - 1) / BLOCK);
    } else {
        end_head(s, size);
    }
}

void tar_shape_add(struct tar_shape *s, const void *bytes, size_t len)
{
    const char *at = bytes;

    while (len > 0 && !s->is_over && !s->is_broken) {
        size_t n;

        if (s->data > 0) {
            n = s->data < (int64_t)len ? (size_t)s->data : len;
            s->data -= (int64_t)n;
        } else if (s->zero > 0) {
            n = s->zero < (int64_t)len ? (size_t)s->zero : len;
            s->has_padding |= !is_zero(at, n);
            s->zero -= (int64_t)n;
        } else {
            n = BLOCK - s->filled < len ? BLOCK - s->filled : len;
            memcpy(s->block + s->filled, at, n);
            s->filled += n;
            if (s->filled == BLOCK) {
                s->filled = 0;
                take_block(s);
            }
        }
        at += n;
        len -= n;
    }
    if (s->taken == s->count) { /* nothing waits: begin the lists anew */
        s->taken = s->count = s->taken_bytes = 0;
        buf_clear(&s->heads);
    }
}

const char *tar_shape_next(struct tar_shape *s, size_t *len)
{
    if (s->taken == s->count)
        return NULL;
    const char *head = s->heads.data + s->taken_bytes;

    *len = s->lengths[s->taken++];
    s->taken_bytes += *len;
    return head;
}
