/*
 * Tokens by id and ids by token.  The slots are open addressed; equal hashes
 * are told apart by the texts.
 */
#include "tokenizer/vocab.h"

#include "base/mem.h"

#include <stdlib.h>

enum { MAX_PROBES = 4096 };

size_t table_slots(size_t entries)
{
    size_t slots = 64;

    while (slots < entries + entries / 2)
        slots *= 2;
    return slots;
}

int64_t vocab_find_hashed(const struct vocab *v, const char *text, size_t len,
                          uint32_t hash)
{
    for (size_t i = hash & v->mask; v->slots[i].id_plus_1;
         i = (i + 1) & v->mask) {
        const struct vocab_slot *s = &v->slots[i];

        if (s->hash == hash && s->key.len == len &&
            vocab_is_same(v->text.data + s->key.at, text, len))
            return (int64_t)s->id_plus_1 - 1;
    }
    return -1;
}

int64_t vocab_find(const struct vocab *v, const char *text, size_t len)
{
    return v->slots ? vocab_find_hashed(v, text, len, vocab_hash(text, len))
                    : -1;
}

const char *vocab_text(const struct vocab *v, int64_t id, size_t *len)
{
    if (id < 0 || (uint64_t)id >= v->limit || v->texts[id].at == UINT32_MAX)
        return NULL;
    *len = v->texts[id].len;
    return v->text.data + v->texts[id].at;
}

size_t vocab_add_text(struct vocab *v, const char *text, size_t len)
{
    size_t at = v->text.len;

    buf_reserve(&v->text, len + 1);
    memcpy(v->text.data + at, text, len);
    v->text.data[at + len] = '\0';
    v->text.len = at + len + 1;
    return at;
}

int vocab_put(struct vocab *v, size_t id, size_t at, size_t len,
              struct err *err)
{
    if (id >= VOCAB_MAX_ID)
        return err_set(err, ERR_INPUT, "id %zu is above the limit of %d", id,
                       VOCAB_MAX_ID);
    while (id >= v->cap) {
        size_t cap = v->cap ? v->cap * 2 : 1024;

        v->texts = xrealloc(v->texts, cap * sizeof(*v->texts));
        memset(v->texts + v->cap, 0xff, (cap - v->cap) * sizeof(*v->texts));
        v->cap = cap;
    }
    if (v->texts[id].at != UINT32_MAX)
        return err_set(err, ERR_INPUT, "id %zu stands for two tokens", id);
    v->texts[id] = (struct vocab_text){(uint32_t)at, (uint32_t)len};
    v->count++;
    if (id >= v->limit)
        v->limit = id + 1;
    return 0;
}

/* Puts a slot where it belongs; -1 with err when its key is there already. */
static int put(struct vocab *v, const struct vocab_slot *slot, struct err *err)
{
    size_t i = slot->hash & v->mask, probes = 0;

    for (; v->slots[i].id_plus_1; i = (i + 1) & v->mask) {
        const struct vocab_slot *s = &v->slots[i];

        if (s->hash == slot->hash && s->key.len == slot->key.len &&
            vocab_is_same(v->text.data + s->key.at, v->text.data + slot->key.at,
                          s->key.len))
            return err_set(err, ERR_INPUT, "ids %u and %u are one token",
                           s->id_plus_1 - 1, slot->id_plus_1 - 1);
        if (++probes > MAX_PROBES)
            return err_set(err, ERR_INPUT, "tokens are made to collide");
    }
    v->slots[i] = *slot;
    return 0;
}

int vocab_index(struct vocab *v, struct err *err)
{
    enum { AHEAD = 32 };
    struct vocab_slot waiting[AHEAD];
    size_t slots = table_slots(v->count), count = 0, done = 0;

    v->slots = mem_table(slots, sizeof(*v->slots), TABLE_CAP, err);
    if (!v->slots)
        return -1;
    v->mask = slots - 1;
    for (size_t id = 0; id < v->limit; id++) {
        struct vocab_text key = v->texts[id];

        if (key.at == UINT32_MAX)
            continue;
        if (count - done == AHEAD && put(v, &waiting[done++ % AHEAD], err))
            return -1;
        uint32_t hash = vocab_hash(v->text.data + key.at, key.len);
        vocab_fetch_slot(v, hash);
        waiting[count++ % AHEAD] =
            (struct vocab_slot){hash, (uint32_t)id + 1, key};
    }
    while (done < count)
        if (put(v, &waiting[done++ % AHEAD], err))
            return -1;
    return 0;
}

void vocab_release(struct vocab *v)
{
    buf_release(&v->text);
    free(v->texts);
    free(v->slots);
    *v = (struct vocab){0};
}
