#ifndef TOKENIZER_TRIE_H
#define TOKENIZER_TRIE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Texts to numbers, found by their beginnings, byte by byte:
 *
 *     uint32_t node = 0, value;
 *     while (at < len && trie_step(t, &node, text[at++], &value))
 *         if (value != TRIE_NONE) ...
 */
struct trie;
#define TRIE_NONE UINT32_MAX
struct trie *trie_new(void);
void trie_free(struct trie *t);
/* False when the text is there already: its first value stays. */
bool trie_put(struct trie *t, const char *text, size_t len, uint32_t value);
bool trie_may_start(const struct trie *t, char byte);
/* Goes on from *node (0 at first); *value is TRIE_NONE between texts. */
bool trie_step(const struct trie *t, uint32_t *node, char byte,
               uint32_t *value);
#endif
