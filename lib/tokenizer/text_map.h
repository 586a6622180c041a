#ifndef TOKENIZER_TEXT_MAP_H
#define TOKENIZER_TEXT_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Texts to numbers, for whole texts.  It keeps pointers: a text must outlive
 * the map.  Zeroed, it is empty.
 */
#define TEXT_MAP_NONE UINT32_MAX

struct text_map_slot {
    const char *text; /* NULL: empty */
    size_t len;
    uint32_t hash, value;
};
struct text_map {
    struct text_map_slot *slots;
    size_t cap, count; /* cap is a power of two */
    uint64_t seed; /* the process's own: no file knows which texts collide */
};

/* False when the text is there already: its first value stays. */
bool text_map_put(struct text_map *m, const char *text, size_t len,
                  uint32_t value);
uint32_t text_map_find(const struct text_map *m, const char *text, size_t len);
void text_map_release(struct text_map *m); /* empty again */
#endif
