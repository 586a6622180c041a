#ifndef TOKENIZER_MERGES_H
#define TOKENIZER_MERGES_H

#include "tokenizer/vocab.h"

/*
 * The merges of byte pair encoding: which two tokens, side by side, become
 * which third, and in what order.
 */
struct pair_slot {
    uint64_t key; /* left << 32 | right, + 1; 0: empty */
    uint32_t rank, id;
};
struct pairs {
    struct pair_slot *slots; /* open addressed */
    size_t mask, count;
};

/* What two tokens make, if anything. */
struct merge {
    uint32_t rank, id; /* rank UINT32_MAX: nothing */
};

static inline uint64_t pair_key(uint32_t left, uint32_t right)
{
    return ((uint64_t)left << 32 | right) + 1;
}
static inline size_t pair_home(const struct pairs *p, uint64_t key)
{
    key *= 0x9e3779b97f4a7c15u;
    return (key ^ key >> 32) & p->mask;
}
static inline struct merge pairs_find(const struct pairs *p, uint32_t left,
                                      uint32_t right)
{
    uint64_t key = pair_key(left, right);

    for (size_t i = pair_home(p, key);; i = (i + 1) & p->mask) {
        const struct pair_slot *slot = &p->slots[i];

        if (slot->key == key)
            return (struct merge){slot->rank, slot->id};
        if (slot->key == 0)
            return (struct merge){UINT32_MAX, 0};
    }
}
/* Brings closer what pairs_find() will look at. */
static inline void pairs_fetch(const struct pairs *p, uint32_t left,
                               uint32_t right)
{
    __builtin_prefetch(&p->slots[pair_home(p, pair_key(left, right))]);
}
void pairs_release(struct pairs *p);

/*
 * Fills `pairs` from the texts of a list of merges, in the order of their
 * ranks.  Both parts and what they make must be tokens of `vocab`, which is
 * indexed; of the second part, its first `prefix` bytes are left out of what
 * they make (continuing_subword_prefix).  A pair that comes again takes the
 * later rank, as upstream's table does.
 *
 *     merges_part(m, 0, "a", 1);
 *     merges_part(m, 1, "b", 1);
 *     merges_add(m, &err) ... merges_end(m, &err);
 *     merges_free(m);
 *
 * Errors (ERR_INPUT) name the item, from 0.
 */
struct merges;
struct merges *merges_new(const struct vocab *vocab, struct pairs *pairs,
                          size_t prefix, struct err *err);
/* Part 0 or 1 of the next merge. */
void merges_part(struct merges *m, int which, const char *text, size_t len);
int merges_add(struct merges *m, struct err *err);
int merges_end(struct merges *m, struct err *err);
size_t merges_count(const struct merges *m);
void merges_free(struct merges *m);
#endif
