#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

/*
 * Things that die together: a template's tree, a tokenizer's tables, a case's
 * strings.  Nothing in it is freed by itself.
 */
struct arena_block;
struct arena {
    struct arena_block *blocks;
    size_t used; /* bytes handed out, for budgets */
};

#define ARENA_INIT \
    {              \
        NULL, 0    \
    }

void *arena_alloc(struct arena *a, size_t size); /* zeroed, 16-byte aligned */
char *arena_strdup(struct arena *a, const char *text);
char *arena_strndup(struct arena *a, const char *text, size_t len);
void arena_release(struct arena *a); /* empty again */
#endif
