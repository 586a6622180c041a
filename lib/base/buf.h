#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdarg.h>
#include <stddef.h>

/* A growing run of bytes; data is always NUL-terminated behind len. */
struct buf {
    char *data;
    size_t len, cap;
};

#define BUF_INIT   \
    {              \
        NULL, 0, 0 \
    }

void buf_release(struct buf *b);         /* empty again; NULL data is fine */
void buf_clear(struct buf *b);           /* len 0, memory kept */
void buf_cut(struct buf *b, size_t len); /* to len bytes, at most as many */
void buf_reserve(struct buf *b, size_t more);
void buf_add(struct buf *b, const void *data, size_t len);
void buf_addstr(struct buf *b, const char *text);
void buf_addch(struct buf *b, int c);
void buf_addf(struct buf *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void buf_addv(struct buf *b, const char *format, va_list ap);

/* The bytes as a string that the caller frees; b is empty afterwards. */
char *buf_detach(struct buf *b);
#endif
