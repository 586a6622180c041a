#ifndef TOKENIZER_CHAR_SET_H
#define TOKENIZER_CHAR_SET_H

#include "tokenizer/unicode.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * Sets of characters, as ranges that one adds to and combines.  After
 * char_set_tidy() they are sorted, disjoint and not adjacent, which the other
 * operations ask for.  Starts as {0}; char_set_release() when done.
 */
struct char_set {
    struct unicode_range *r;
    size_t count, cap;
};

enum { CHAR_LAST = 0x10ffff };

void char_set_add(struct char_set *s, uint32_t first, uint32_t last);
void char_set_release(struct char_set *s);
void char_set_tidy(struct char_set *s);
void char_set_add_set(struct char_set *s, const struct char_set *other);
/* Surrogates are not characters: they are in a set or not, nobody can tell. */
void char_set_negate(struct char_set *s);
void char_set_intersect(struct char_set *s,
                        struct char_set *other); /* spends it */
void char_set_drop_surrogates(struct char_set *s);
void char_set_add_table(struct char_set *s, const struct unicode_range *r,
                        size_t count);
void char_set_add_valued(struct char_set *s,
                         const struct unicode_valued_range *r, size_t count,
                         uint32_t mask);
/* All of [first, last]? */
bool char_set_holds(const struct char_set *s, uint32_t first, uint32_t last);
#endif
