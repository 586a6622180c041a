/* Texts to numbers: open addressed, at most half full. */
#include "tokenizer/text_map.h"

#include "base/mem.h"
#include "tokenizer/vocab.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* The text's slot, or the empty one that it may take. */
static struct text_map_slot *
find_slot(const struct text_map *m, const char *text, size_t len, uint32_t hash)
{
    for (size_t i = hash & (m->cap - 1);; i = (i + 1) & (m->cap - 1)) {
        struct text_map_slot *s = &m->slots[i];

        if (!s->text || (s->hash == hash && s->len == len &&
                         memcmp(s->text, text, len) == 0))
            return s;
    }
}

static void grow(struct text_map *m)
{
    struct text_map_slot *old = m->slots;
    size_t old_cap = m->cap;

    if (old_cap == 0 && getrandom(&m->seed, sizeof(m->seed), 0) < 0)
        m->seed = (uint64_t)(uintptr_t)m;
    m->cap = old_cap ? old_cap * 2 : 64;
    m->slots = xcalloc(m->cap, sizeof(*m->slots));
    for (size_t i = 0; i < old_cap; i++)
        if (old[i].text)
            *find_slot(m, old[i].text, old[i].len, old[i].hash) = old[i];
    free(old);
}

bool text_map_put(struct text_map *m, const char *text, size_t len,
                  uint32_t value)
{
    if (2 * m->count == m->cap)
        grow(m);
    uint32_t hash = text_hash(m->seed, text, len);
    struct text_map_slot *s = find_slot(m, text, len, hash);
    if (s->text)
        return false;
    *s = (struct text_map_slot){text, len, hash, value};
    m->count++;
    return true;
}

uint32_t text_map_find(const struct text_map *m, const char *text, size_t len)
{
    if (m->cap == 0)
        return TEXT_MAP_NONE;
    const struct text_map_slot *s =
        find_slot(m, text, len, text_hash(m->seed, text, len));
    return s->text ? s->value : TEXT_MAP_NONE;
}

void text_map_release(struct text_map *m)
{
    free(m->slots);
    *m = (struct text_map){0};
}
