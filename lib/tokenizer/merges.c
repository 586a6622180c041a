/*
 * Loads the merges.  Memory is far and there are hundreds of thousands: a block
 * at a time, each step asking for what the next will look at.
 */
#include "tokenizer/merges.h"

#include "base/mem.h"

#include <stdlib.h>

enum { BLOCK = 32, MAX_PROBES = 4096 };

struct part {
    size_t at, len; /* in texts */
    uint32_t hash;
};

struct merges {
    const struct vocab *vocab;
    struct pairs *pairs;
    size_t prefix;
    size_t count;       /* read so far: the next one's rank */
    int64_t last;       /* what the last one made */
    struct buf texts;   /* of the block's parts */
    size_t block_count; /* how many wait */
    struct part block[BLOCK][2];
};

static int new_slots(struct pairs *p, size_t slots, struct err *err)
{
    p->slots = mem_table(slots, sizeof(*p->slots), TABLE_CAP, err);
    p->mask = slots - 1;
    return p->slots ? 0 : -1;
}

struct merges *merges_new(const struct vocab *vocab, struct pairs *pairs,
                          size_t prefix, struct err *err)
{
    struct merges *m;

    pairs_release(pairs);
    if (new_slots(pairs, table_slots(vocab->count), err))
        return NULL;
    m = xcalloc(1, sizeof(*m));
    m->vocab = vocab;
    m->pairs = pairs;
    m->prefix = prefix;
    m->last = -1;
    return m;
}

void merges_free(struct merges *m)
{
    if (!m)
        return;
    buf_release(&m->texts);
    free(m);
}

size_t merges_count(const struct merges *m)
{
    return m->count;
}

void pairs_release(struct pairs *p)
{
    free(p->slots);
    *p = (struct pairs){0};
}

void merges_part(struct merges *m, int which, const char *text, size_t len)
{
    struct part *part = &m->block[m->block_count][which];

    *part = (struct part){m->texts.len, len, vocab_hash(text, len)};
    buf_add(&m->texts, text, len);
    vocab_fetch_slot(m->vocab, part->hash);
}

static int shown(size_t len)
{
    return (int)(len < 100 ? len : 100);
}

static bool is_token(const struct merges *m, int64_t id, const char *a,
                     size_t a_len, const char *b, size_t b_len)
{
    size_t len;
    const char *text = vocab_text(m->vocab, id, &len);

    return text && len == a_len + b_len && vocab_is_same(text, a, a_len) &&
           vocab_is_same(text + a_len, b, b_len);
}

/* The token that two make: most often the last one's neighbour, or it again. */
static int64_t find_whole(const struct merges *m, const char *a, size_t a_len,
                          const char *b, size_t b_len)
{
    struct buf whole = BUF_INIT;
    int64_t id;

    for (id = m->last + 1; id >= m->last; id--)
        if (is_token(m, id, a, a_len, b, b_len))
            return id;
    buf_add(&whole, a, a_len);
    buf_add(&whole, b, b_len);
    id = vocab_find(m->vocab, whole.data, whole.len);
    buf_release(&whole);
    return id;
}

/* The ids of a merge's parts, and of what they make. */
static int resolve(struct merges *m, const struct part part[2], size_t item,
                   uint32_t ids[2], struct err *err)
{
    const char *text[2];

    for (int k = 0; k < 2; k++) {
        text[k] = m->texts.data + part[k].at;
        int64_t id =
            vocab_find_hashed(m->vocab, text[k], part[k].len, part[k].hash);

        if (id < 0)
            return err_set(err, ERR_INPUT,
                           "item %zu: '%.*s' is not in the vocabulary", item,
                           shown(part[k].len), text[k]);
        ids[k] = (uint32_t)id;
    }
    if (part[1].len < m->prefix)
        return err_set(err, ERR_INPUT, "item %zu: shorter than the prefix",
                       item);
    const char *rest = text[1] + m->prefix;
    size_t rest_len = part[1].len - m->prefix;

    m->last = find_whole(m, text[0], part[0].len, rest, rest_len);
    if (m->last < 0)
        return err_set(err, ERR_INPUT,
                       "item %zu: '%.*s%.*s' is not in the vocabulary", item,
                       shown(part[0].len), text[0], shown(rest_len), rest);
    return 0;
}

static int put_pair(struct pairs *p, struct pair_slot slot, struct err *err)
{
    size_t i = pair_home(p, slot.key), probes = 0;

    while (p->slots[i].key && p->slots[i].key != slot.key) {
        i = (i + 1) & p->mask;
        if (++probes > MAX_PROBES)
            return err_set(err, ERR_INPUT, "pairs are made to collide");
    }
    p->count += p->slots[i].key == 0;
    p->slots[i] = slot;
    return 0;
}

/* Twice the slots, when `more` would leave too few of them empty. */
static int make_room(struct pairs *p, size_t more, struct err *err)
{
    struct pairs old = *p;
    int ret = 0;

    if (table_slots(p->count + more) <= p->mask + 1)
        return 0;
    if (new_slots(p, 2 * (old.mask + 1), err)) {
        *p = old;
        return -1;
    }
    p->count = 0;
    for (size_t i = 0; i <= old.mask && ret == 0; i++)
        if (old.slots[i].key)
            ret = put_pair(p, old.slots[i], err);
    pairs_release(&old);
    return ret;
}

/* Puts the block's merges into the table. */
static int empty_block(struct merges *m, struct err *err)
{
    struct pair_slot slots[BLOCK];
    size_t n = m->block_count, first = m->count - n;

    if (make_room(m->pairs, n, err))
        return -1;
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < 2; k++)
            vocab_fetch_text(m->vocab, m->block[i][k].hash);
    for (size_t i = 0; i < n; i++) {
        uint32_t ids[2];

        if (resolve(m, m->block[i], first + i, ids, err))
            return -1;
        slots[i] = (struct pair_slot){pair_key(ids[0], ids[1]),
                                      (uint32_t)(first + i), (uint32_t)m->last};
        pairs_fetch(m->pairs, ids[0], ids[1]);
    }
    for (size_t i = 0; i < n; i++)
        if (put_pair(m->pairs, slots[i], err))
            return -1;
    m->block_count = 0;
    buf_clear(&m->texts);
    return 0;
}

int merges_add(struct merges *m, struct err *err)
{
    m->count++;
    return ++m->block_count == BLOCK ? empty_block(m, err) : 0;
}

int merges_end(struct merges *m, struct err *err)
{
    return empty_block(m, err);
}
