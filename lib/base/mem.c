/* Checked allocation. */
#include "base/mem.h"

#include <errno.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

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

enum { LINE = 64, HUGE_PAGE = 2 << 20 };

/* The next multiple of a power of two; 0 when there is none. */
static size_t round_up(size_t bytes, size_t unit)
{
    return bytes > SIZE_MAX - unit ? 0 : (bytes + unit - 1) & ~(unit - 1);
}

/* Memory in multiples of `unit`, and beginning at one. */
static void *aligned(size_t bytes, size_t unit, struct err *err)
{
    size_t padded = round_up(bytes ? bytes : 1, unit);
    void *p = padded && !is_failing() ? aligned_alloc(unit, padded) : NULL;

    if (!p)
        err_set(err, ERR_SYSTEM, "out of memory: %zu bytes", bytes);
    return p;
}

static void *on_huge_pages(size_t bytes, struct err *err)
{
    if (bytes < HUGE_PAGE)
        return aligned(bytes, LINE, err);
    void *p = aligned(bytes, HUGE_PAGE, err);
    if (p) /* a wish: without, it is only slower */
        madvise(p, round_up(bytes, HUGE_PAGE), MADV_HUGEPAGE);
    return p;
}

static bool is_within(size_t n, size_t size, size_t cap, size_t *bytes,
                      struct err *err)
{
    if (mem_mul(n, size, bytes) && *bytes <= cap)
        return true;
    err_set(err, ERR_INPUT, "%zu items of %zu bytes pass the limit of %zu", n,
            size, cap);
    return false;
}

void *mem_array(size_t n, size_t size, size_t cap, struct err *err)
{
    size_t bytes;

    if (!is_within(n, size, cap, &bytes, err))
        return NULL;
    void *p = aligned(bytes, LINE, err);
    return p ? memset(p, 0, round_up(bytes, LINE)) : NULL;
}

void *mem_bytes(size_t n, size_t size, size_t cap, struct err *err)
{
    size_t bytes;

    return is_within(n, size, cap, &bytes, err) ? on_huge_pages(bytes, err)
                                                : NULL;
}

void *mem_table(size_t n, size_t size, size_t cap, struct err *err)
{
    void *p = mem_bytes(n, size, cap, err);

    return p ? memset(p, 0, n * size) : NULL;
}

void mem_return_blocks(void)
{
    enum { BLOCKS_FROM = 128 << 10 };

    mallopt(M_MMAP_THRESHOLD, BLOCKS_FROM);
}
