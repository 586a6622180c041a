/* A growing run of bytes. */
#include "base/buf.h"

#include "base/bug.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buf_release(struct buf *b)
{
    free(b->data);
    *b = (struct buf)BUF_INIT;
}

void buf_cut(struct buf *b, size_t len)
{
    BUG_ON(len > b->len);
    b->len = len;
    if (b->data)
        b->data[len] = '\0';
}

void buf_clear(struct buf *b)
{
    buf_cut(b, 0);
}

void buf_reserve(struct buf *b, size_t more)
{
    size_t need;

    BUG_ON(!mem_add(b->len, more, &need) || !mem_add(need, 1, &need));
    if (need <= b->cap)
        return;
    size_t cap = b->cap < 64 ? 64 : b->cap;
    while (cap < need)
        cap += cap / 2;
    b->data = xrealloc(b->data, cap);
    b->cap = cap;
}

void buf_add(struct buf *b, const void *data, size_t len)
{
    buf_reserve(b, len);
    if (len)
        memcpy(b->data + b->len, data, len);
    b->len += len;
    b->data[b->len] = '\0';
}

void buf_addstr(struct buf *b, const char *text)
{
    buf_add(b, text, strlen(text));
}

void buf_addch(struct buf *b, int c)
{
    char byte = (char)c;

    buf_add(b, &byte, 1);
}

void buf_addv(struct buf *b, const char *format, va_list ap)
{
    va_list again;

    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, format, again);
    va_end(again);
    BUG_ON(n < 0);
    buf_reserve(b, (size_t)n);
    vsnprintf(b->data + b->len, (size_t)n + 1, format, ap);
    b->len += (size_t)n;
}

void buf_addf(struct buf *b, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    buf_addv(b, format, ap);
    va_end(ap);
}

char *buf_detach(struct buf *b)
{
    buf_reserve(b, 0);
    b->data[b->len] = '\0';
    char *text = b->data;
    *b = (struct buf)BUF_INIT;
    return text;
}
