#ifndef TOKENIZER_VOCAB_H
#define TOKENIZER_VOCAB_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * A vocabulary: tokens by id and ids by token, in one alphabet (as the file
 * spells them, or bytes).  Filled first, indexed once, then only asked:
 *
 *     size_t at = vocab_add_text(&v, text, len);
 *     vocab_put(&v, id, at, len, &err) ...
 *     vocab_index(&v, &err);
 *     id = vocab_find(&v, text, len);
 */
enum { VOCAB_MAX_ID = 1 << 24 };

struct vocab_text {
    uint32_t at, len; /* in text; at is UINT32_MAX where there is no such id */
};
struct vocab_slot {
    uint32_t hash, id_plus_1; /* 0: empty */
    struct vocab_text key;
};

struct vocab {
    struct buf text;          /* the tokens, a NUL behind each */
    struct vocab_text *texts; /* by id */
    size_t limit;             /* one more than the highest id */
    size_t cap, count;
    struct vocab_slot *slots; /* open addressed */
    size_t mask;
};

/* A token's text on its way: where it lies until vocab_put() has its id. */
size_t vocab_add_text(struct vocab *v, const char *text, size_t len);
/* ERR_INPUT for an id above the limit or given twice. */
int vocab_put(struct vocab *v, size_t id, size_t at, size_t len,
              struct err *err);
/* ERR_INPUT when two ids have one text, or texts were made to collide. */
int vocab_index(struct vocab *v, struct err *err);
void vocab_release(struct vocab *v);

/* The text of an id, NUL-terminated; NULL when there is no such id. */
const char *vocab_text(const struct vocab *v, int64_t id, size_t *len);

/* The id of a text, or -1. */
int64_t vocab_find(const struct vocab *v, const char *text, size_t len);

/* Up to 8 bytes as a number that differs for each of them, given their count;
 * without a loop, whose end no processor foresees. */
static inline uint64_t vocab_word(const char *text, size_t len)
{
    uint32_t first, last;

    if (len < 4)
        return len ? (uint64_t)(unsigned char)text[0] << 16 |
                         (uint64_t)(unsigned char)text[len / 2] << 8 |
                         (unsigned char)text[len - 1]
                   : 0;
    memcpy(&first, text, 4);
    memcpy(&last, text + len - 4, 4);
    return (uint64_t)first << 32 | last;
}

/* Are two texts of one length equal?  Most are a few bytes: no call. */
static inline bool vocab_is_same(const char *a, const char *b, size_t len)
{
    for (; len > 8; a += 8, b += 8, len -= 8)
        if (memcmp(a, b, 8) != 0)
            return false;
    return vocab_word(a, len) == vocab_word(b, len);
}

/*
 * The same in steps, for many at once: memory is far.  The hash brings the slot
 * closer, the slot the text.
 */
static inline uint32_t text_hash(uint64_t seed, const char *text, size_t len)
{
    uint64_t h = 0x9e3779b97f4a7c15u ^ seed ^ len, word;

    for (; len > 8; text += 8, len -= 8) {
        memcpy(&word, text, 8);
        h = (h ^ word) * 0xff51afd7ed558ccdu;
        h ^= h >> 32;
    }
    h = (h ^ vocab_word(text, len)) * 0xff51afd7ed558ccdu;
    h ^= h >> 29;
    h *= 0xc4ceb9fe1a85ec53u;
    return (uint32_t)(h >> 32);
}
static inline uint32_t vocab_hash(const char *text, size_t len)
{
    return text_hash(0, text, len);
}
static inline void vocab_fetch_slot(const struct vocab *v, uint32_t hash)
{
    __builtin_prefetch(&v->slots[hash & v->mask]);
}
static inline void vocab_fetch_text(const struct vocab *v, uint32_t hash)
{
    __builtin_prefetch(v->text.data + v->slots[hash & v->mask].key.at);
}
int64_t vocab_find_hashed(const struct vocab *v, const char *text, size_t len,
                          uint32_t hash);

/* As many slots as keep a table of so many entries quick: a power of two.  No
 * table may have more bytes than TABLE_CAP. */
enum { TABLE_CAP = 1 << 30 };
size_t table_slots(size_t entries);
#endif
