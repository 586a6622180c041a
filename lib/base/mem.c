/* Checked allocation. */
#include "base/mem.h"

#include <errno.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t fail_countdown;

void mem_fail_at(uint64_t n)
{
    fail_countdown = n;
}

__attribute__((constructor)) static void read_environment(void)
{
    const char *text = getenv("ASSAY_FAIL_ALLOC");

    if (text)
        fail_countdown = strtoull(text, NULL, 10);
}

static bool is_failing(void)
{
    return fail_countdown > 0 && --fail_countdown == 0;
}

static void *checked(void *p)
{
    if (p)
        return p;
    fprintf(stderr, "%s: out of memory\n", program_invocation_short_name);
    exit(ERR_SYSTEM);
}

void *xmalloc(size_t size)
{
    return checked(is_failing() ? NULL : malloc(size ? size : 1));
}

void *xcalloc(size_t n, size_t size)
{
    return checked(is_failing() ? NULL : calloc(n ? n : 1, size ? size : 1));
}

void *xrealloc(void *p, size_t size)
{
    return checked(is_failing() ? NULL : realloc(p, size ? size : 1));
}

char *xstrndup(const char *text, size_t len)
{
    char *copy = xmalloc(len + 1);

    memcpy(copy, text, len);
    copy[len] = '\0';
    return copy;
}

char *xstrdup(const char *text)
{
    return xstrndup(text, strlen(text));
}

char *xasprintf(const char *format, ...)
{
    va_list ap;
    char *text;

    va_start(ap, format);
    int n = vasprintf(&text, format, ap);
    va_end(ap);
    return checked(n < 0 ? NULL : text);
}

void *mem_array(size_t n, size_t size, size_t cap, struct err *err)
{
    size_t bytes, padded;
    void *p = NULL;

    if (!mem_mul(n, size, &bytes) || bytes > cap ||
        !mem_add(bytes, 63, &padded)) {
        err_set(err, ERR_INPUT, "%zu items of %zu bytes pass the limit of %zu",
                n, size, cap);
        return NULL;
    }
    padded = padded & ~(size_t)63;
    if (!is_failing())
        p = aligned_alloc(64, padded ? padded : 64);
    if (!p) {
        err_set(err, ERR_SYSTEM, "out of memory: %zu bytes", bytes);
        return NULL;
    }
    memset(p, 0, padded ? padded : 64);
    return p;
}

void mem_return_blocks(void)
{
    enum { BLOCKS_FROM = 128 << 10 };

    mallopt(M_MMAP_THRESHOLD, BLOCKS_FROM);
}
