/* Things that die together. */
#include "base/arena.h"

#include "base/bug.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK_SIZE = 64 * 1024 - 64 };

struct arena_block {
    struct arena_block *next;
    size_t size, used;
    _Alignas(16) char data[];
};

void *arena_alloc(struct arena *a, size_t size)
{
    struct arena_block *b = a->blocks;
    size_t padded;

    BUG_ON(!mem_add(size, 15, &padded));
    padded = padded & ~(size_t)15;
    if (!b || b->size - b->used < padded) {
        size_t room = padded > BLOCK_SIZE ? padded : BLOCK_SIZE;

        b = xcalloc(1, sizeof(*b) + room);
        b->size = room;
        b->next = a->blocks;
        a->blocks = b;
    }
    void *p = b->data + b->used;
    b->used += padded;
    a->used += padded;
    return p;
}

char *arena_strndup(struct arena *a, const char *text, size_t len)
{
    char *copy = arena_alloc(a, len + 1);

    if (len)
        memcpy(copy, text, len);
    return copy;
}

char *arena_strdup(struct arena *a, const char *text)
{
    return arena_strndup(a, text, strlen(text));
}

void arena_release(struct arena *a)
{
    while (a->blocks) {
        struct arena_block *next = a->blocks->next;

        free(a->blocks);
        a->blocks = next;
    }
    a->used = 0;
}
