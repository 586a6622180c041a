/* Sets of characters as ranges. */
#include "tokenizer/char_set.h"

#include "base/mem.h"

#include <stdlib.h>

void char_set_add(struct char_set *s, uint32_t first, uint32_t last)
{
    if (s->count == s->cap) {
        s->cap = s->cap ? s->cap * 2 : 16;
        s->r = xrealloc(s->r, s->cap * sizeof(*s->r));
    }
    s->r[s->count++] = (struct unicode_range){first, last};
}

void char_set_release(struct char_set *s)
{
    free(s->r);
    *s = (struct char_set){0};
}

static int by_first(const void *a, const void *b)
{
    const struct unicode_range *x = a, *y = b;

    return x->first < y->first ? -1 : x->first > y->first;
}

static bool is_rising(const struct char_set *s)
{
    for (size_t i = 1; i < s->count; i++)
        if (s->r[i].first < s->r[i - 1].first)
            return false;
    return true;
}

void char_set_tidy(struct char_set *s)
{
    size_t n = 0;

    if (!is_rising(s)) /* a table is */
        qsort(s->r, s->count, sizeof(*s->r), by_first);
    for (size_t i = 0; i < s->count; i++) {
        if (n && s->r[i].first <= s->r[n - 1].last + 1) {
            if (s->r[i].last > s->r[n - 1].last)
                s->r[n - 1].last = s->r[i].last;
        } else {
            s->r[n++] = s->r[i];
        }
    }
    s->count = n;
}

void char_set_add_set(struct char_set *s, const struct char_set *other)
{
    for (size_t i = 0; i < other->count; i++)
        char_set_add(s, other->r[i].first, other->r[i].last);
}

/* Surrogates are not characters: they are in a set or not, nobody can tell. */
void char_set_negate(struct char_set *s)
{
    struct char_set out = {0};
    uint32_t from = 0;

    char_set_tidy(s);
    for (size_t i = 0; i < s->count; i++) {
        if (from < s->r[i].first)
            char_set_add(&out, from, s->r[i].first - 1);
        from = s->r[i].last + 1;
    }
    if (from <= CHAR_LAST)
        char_set_add(&out, from, CHAR_LAST);
    char_set_release(s);
    *s = out;
}

void char_set_intersect(struct char_set *s, struct char_set *other)
{
    char_set_negate(s);
    char_set_negate(other);
    char_set_add_set(s, other);
    char_set_negate(s);
}

/* What cannot be written must not be in either side of a class. */
void char_set_drop_surrogates(struct char_set *s)
{
    struct char_set characters = {0};

    char_set_add(&characters, 0, 0xd7ff);
    char_set_add(&characters, 0xe000, CHAR_LAST);
    char_set_intersect(s, &characters);
    char_set_release(&characters);
}

void char_set_add_table(struct char_set *s, const struct unicode_range *r,
                        size_t count)
{
    for (size_t i = 0; i < count; i++)
        char_set_add(s, r[i].first, r[i].last);
}

void char_set_add_valued(struct char_set *s,
                         const struct unicode_valued_range *r, size_t count,
                         uint32_t mask)
{
    for (size_t i = 0; i < count; i++)
        if (mask >> r[i].value & 1)
            char_set_add(s, r[i].first, r[i].last);
}

bool char_set_holds(const struct char_set *s, uint32_t first, uint32_t last)
{
    size_t low = 0, high = s->count;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (s->r[mid].last < first)
            low = mid + 1;
        else
            high = mid;
    }
    return low < s->count && s->r[low].first <= first && s->r[low].last >= last;
}
