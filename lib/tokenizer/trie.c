/*
 * Texts to numbers, found by their beginnings.  All edges are in one
 * open-addressed table.
 */
#include "tokenizer/trie.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

struct edge {
    uint64_t key; /* (node << 8 | byte) + 1; 0: empty */
    uint32_t to;
};

struct trie {
    struct edge *edges;
    size_t count, cap;
    uint32_t *ends; /* by node: the value put there, or TRIE_NONE */
    uint32_t nodes, node_cap;
    bool starts[256]; /* bytes that begin some token */
};

struct trie *trie_new(void)
{
    struct trie *t = xcalloc(1, sizeof(*t));

    t->cap = 64;
    t->edges = xcalloc(t->cap, sizeof(*t->edges));
    t->node_cap = 64;
    t->ends = xmalloc(t->node_cap * sizeof(*t->ends));
    memset(t->ends, 0xff, t->node_cap * sizeof(*t->ends));
    t->nodes = 1;
    return t;
}

void trie_free(struct trie *t)
{
    if (!t)
        return;
    free(t->edges);
    free(t->ends);
    free(t);
}

static struct edge *find_edge(const struct trie *t, uint32_t node,
                              unsigned char byte)
{
    uint64_t key = ((uint64_t)node << 8 | byte) + 1;
    size_t i = (key * 0x9e3779b97f4a7c15u >> 20) & (t->cap - 1);

    while (t->edges[i].key && t->edges[i].key != key)
        i = (i + 1) & (t->cap - 1);
    return &t->edges[i];
}

static void grow_edges(struct trie *t)
{
    struct edge *old = t->edges;
    size_t old_cap = t->cap;

    t->cap *= 2;
    t->edges = xcalloc(t->cap, sizeof(*t->edges));
    for (size_t i = 0; i < old_cap; i++)
        if (old[i].key)
            *find_edge(t, (uint32_t)((old[i].key - 1) >> 8),
                       (unsigned char)(old[i].key - 1)) = old[i];
    free(old);
}

static uint32_t step_into(struct trie *t, uint32_t node, unsigned char byte)
{
    struct edge *e = find_edge(t, node, byte);

    if (e->key)
        return e->to;
    if (t->nodes == t->node_cap) {
        t->ends = xrealloc(t->ends, 2 * t->node_cap * sizeof(*t->ends));
        memset(t->ends + t->node_cap, 0xff, t->node_cap * sizeof(*t->ends));
        t->node_cap *= 2;
    }
    e->key = ((uint64_t)node << 8 | byte) + 1;
    e->to = t->nodes++;
    uint32_t to = e->to;
    if (++t->count * 2 > t->cap)
        grow_edges(t);
    return to;
}

bool trie_put(struct trie *t, const char *text, size_t len, uint32_t value)
{
    uint32_t node = 0;

    if (len)
        t->starts[(unsigned char)text[0]] = true;
    for (size_t i = 0; i < len; i++)
        node = step_into(t, node, (unsigned char)text[i]);
    if (t->ends[node] != TRIE_NONE)
        return false;
    t->ends[node] = value;
    return true;
}

bool trie_may_start(const struct trie *t, char byte)
{
    return t->starts[(unsigned char)byte];
}

bool trie_step(const struct trie *t, uint32_t *node, char byte, uint32_t *value)
{
    const struct edge *e = find_edge(t, *node, (unsigned char)byte);

    if (!e->key)
        return false;
    *node = e->to;
    *value = t->ends[e->to];
    return true;
}
