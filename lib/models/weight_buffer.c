/* The memory that a part's tensors are read into. */
#include "models/weight_buffer.h"

#include "base/bug.h"
#include "base/mem.h"

#include <stdlib.h>

enum { ALIGN = 64 };

size_t weight_buffer_piece(size_t n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

int weight_buffer_reserve(struct weight_buffer *b, size_t bytes, size_t cap,
                          struct err *err)
{
    b->used = 0;
    if (bytes <= b->size)
        return 0;
    free(b->base);
    b->size = 0;
    b->base = mem_array(bytes, 1, cap, err);
    if (!b->base)
        return -1;
    b->size = bytes;
    return 0;
}

void *weight_buffer_take(struct weight_buffer *b, size_t n)
{
    void *p = b->base + b->used;

    b->used += weight_buffer_piece(n);
    BUG_ON(b->used > b->size);
    return p;
}
