#ifndef BASE_MEM_H
#define BASE_MEM_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Memory.  The x functions are for small things whose size we choose: they end
 * the program with status 6 when there is none.  Whatever size an input chose
 * goes through mem_array(), which checks the product and a cap.
 */
void *xmalloc(size_t size);
void *xcalloc(size_t n, size_t size);
void *xrealloc(void *p, size_t size);
char *xstrdup(const char *text);
char *xstrndup(const char *text, size_t len);
char *xasprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * n elements of `size` bytes, zeroed, 64-byte aligned; NULL with ERR_INPUT
 * when the product overflows or passes `cap` bytes, ERR_SYSTEM when there is
 * no memory.  Free with free().  n = 0 gives a pointer that may be freed.
 */
void *mem_array(size_t n, size_t size, size_t cap, struct err *err);

/*
 * The same, on huge pages where the system has them and it is large: for tables
 * that are looked into at random.
 */
void *mem_table(size_t n, size_t size, size_t cap, struct err *err);

/*
 * The same, not zeroed: for a file that is read whole, for pixels; for bytes
 * that will all be written.
 */
void *mem_bytes(size_t n, size_t size, size_t cap, struct err *err);

/*
 * From now on a block of 128 KiB or more goes back to the system when it is
 * freed; else what is allocated beside such blocks keeps each one's place, and
 * memory grows with every case.  For programs that hold large blocks for long:
 * a block that is taken anew costs its page faults anew.
 */
void mem_return_blocks(void);

/* a * b and a + b into *out; false when they do not fit. */
static inline bool mem_mul(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}
static inline bool mem_add(size_t a, size_t b, size_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

/*
 * For tests: the n-th allocation from now (1 = the next) fails as if memory
 * had run out; 0 turns that off.  Set from ASSAY_FAIL_ALLOC too.
 */
void mem_fail_at(uint64_t n);
#endif
