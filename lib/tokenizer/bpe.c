/*
 * Byte pair encoding.  The adjacent pair of lowest rank, leftmost among equals,
 * is replaced until none is left: short pieces by looking through an array,
 * long ones with a heap (n log n).
 */
#include "base/bug.h"
#include "base/mem.h"
#include "tokenizer/tokenizer_internal.h"

#include <stdlib.h>
#include <string.h>

enum { SHORT = 24, MAX_PROBES = 4096 };

static uint64_t hash_pair(uint64_t key)
{
    key *= 0x9e3779b97f4a7c15u;
    return key ^ key >> 32;
}

/* What two adjacent symbols of text make, if anything. */
struct pair {
    uint32_t rank, id; /* rank UINT32_MAX: nothing */
};

static struct pair find_pair(const struct model *m, const char *text,
                             const struct symbol *a, const struct symbol *b)
{
    const struct pair none = {UINT32_MAX, 0};

    if (m->kind == MODEL_TIKTOKEN) {
        size_t len = (size_t)a->len + b->len;
        int64_t id =
            len <= m->longest ? vocab_find(&m->vocab, text + a->at, len) : -1;

        return id < 0 ? none : (struct pair){(uint32_t)id, (uint32_t)id};
    }
    uint64_t key = (uint64_t)a->id << 32 | b->id;
    for (size_t i = hash_pair(key) & m->pair_mask;;
         i = (i + 1) & m->pair_mask) {
        const struct pair_slot *slot = &m->pairs[i];

        if (slot->key == key)
            return (struct pair){slot->rank, slot->id};
        if (slot->key == UINT64_MAX)
            return none;
    }
}

/* Brings closer what find_pair() will look at. */
static void fetch_pair(const struct model *m, const struct symbol *a,
                       const struct symbol *b)
{
    uint64_t key = (uint64_t)a->id << 32 | b->id;

    if (m->kind == MODEL_BPE)
        __builtin_prefetch(&m->pairs[hash_pair(key) & m->pair_mask]);
}

static size_t shown(size_t len)
{
    return len < 100 ? len : 100;
}

/* A merge on its way into the table. */
struct pending {
    const char *part[2]; /* as spelled */
    size_t len[2], rank;
    size_t at[2], end; /* both in the model's alphabet, side by side */
    uint32_t hash[2];
    bool is_odd; /* a spelling without bytes, or a prefix between */
    int64_t id[2], whole;
};

static int put_pair(struct model *m, const struct pending *p, struct err *err)
{
    uint64_t key = (uint64_t)p->id[0] << 32 | (uint64_t)p->id[1];
    size_t i = hash_pair(key) & m->pair_mask, probes = 0;

    while (m->pairs[i].key != UINT64_MAX && m->pairs[i].key != key) {
        i = (i + 1) & m->pair_mask;
        if (++probes > MAX_PROBES)
            return err_set(err, ERR_INPUT, "merges: pairs are made to collide");
    }
    m->pairs[i] =
        (struct pair_slot){key, (uint32_t)p->rank, (uint32_t)p->whole};
    return 0;
}

static int64_t find_spelled(const struct model *m, const char *text, size_t len)
{
    return vocab_find_raw(&m->vocab, m->is_byte_level, text, len);
}

/* The token that two make: most often the last one's, or its neighbour. */
static int64_t find_whole(const struct model *m, const struct pending *p,
                          const char *text, int64_t last)
{
    const struct vocab *v = &m->vocab;
    size_t len = p->end - p->at[0];
    const uint32_t *at = m->is_byte_level ? v->byte_at : v->raw_at;
    const uint32_t *lens = m->is_byte_level ? v->byte_len : v->raw_len;

    for (int64_t id = last; id <= last + 1; id++)
        if (id >= 0 && id < (int64_t)v->limit && at[id] != UINT32_MAX &&
            lens[id] == len && memcmp(v->keys + at[id], text, len) == 0)
            return id;
    return vocab_find(v, text, len);
}

/* Both parts and what they make must be in the vocabulary. */
static int resolve(struct model *m, struct pending *p, const char *texts,
                   size_t prefix, int64_t last, struct err *err)
{
    for (int k = 0; k < 2; k++) {
        p->id[k] = p->is_odd
                       ? find_spelled(m, p->part[k], p->len[k])
                       : vocab_find_hashed(&m->vocab, texts + p->at[k],
                                           (k ? p->end : p->at[1]) - p->at[k],
                                           p->hash[k]);
        if (p->id[k] < 0)
            return err_set(err, ERR_INPUT,
                           "merges: item %zu: '%.*s' is not in the vocabulary",
                           p->rank, (int)shown(p->len[k]), p->part[k]);
    }
    if (p->is_odd) {
        struct buf whole = BUF_INIT;

        if (p->len[1] < prefix)
            return err_set(err, ERR_INPUT,
                           "merges: item %zu: shorter than the prefix",
                           p->rank);
        buf_add(&whole, p->part[0], p->len[0]);
        buf_add(&whole, p->part[1] + prefix, p->len[1] - prefix);
        p->whole = find_spelled(m, whole.data, whole.len);
        buf_release(&whole);
    } else {
        p->whole = find_whole(m, p, texts + p->at[0], last);
    }
    if (p->whole < 0)
        return err_set(err, ERR_INPUT,
                       "merges: item %zu: '%.*s%.*s' is not in the vocabulary",
                       p->rank, (int)shown(p->len[0]), p->part[0],
                       (int)shown(p->len[1]), p->part[1] + prefix);
    return 0;
}

/* Both parts in the model's alphabet, side by side in texts. */
static void spell(const struct model *m, struct pending *p, size_t prefix,
                  struct buf *texts)
{
    p->is_odd = prefix > 0;
    for (int k = 0; k < 2 && !p->is_odd; k++) {
        p->at[k] = texts->len;
        if (!m->is_byte_level)
            buf_add(texts, p->part[k], p->len[k]);
        else if (!vocab_to_bytes(p->part[k], p->len[k], texts))
            p->is_odd = true;
    }
    p->end = texts->len;
    for (int k = 0; k < 2 && !p->is_odd; k++) {
        p->hash[k] = vocab_hash(texts->data + p->at[k],
                                (k ? p->end : p->at[1]) - p->at[k]);
        vocab_fetch_slot(&m->vocab, p->hash[k]);
    }
}

/*
 * Memory is far and there are hundreds of thousands: a block at a time, each
 * step asking for what the next will look at.
 */
static int load_block(struct model *m, struct pending *block, size_t count,
                      size_t prefix, struct buf *texts, int64_t *last,
                      struct err *err)
{
    buf_clear(texts);
    for (size_t i = 0; i < count; i++)
        spell(m, &block[i], prefix, texts);
    for (size_t i = 0; i < count; i++)
        for (int k = 0; k < 2 && !block[i].is_odd; k++)
            vocab_fetch_text(&m->vocab, block[i].hash[k]);
    for (size_t i = 0; i < count; i++) {
        if (resolve(m, &block[i], texts->data, prefix, *last, err))
            return -1;
        *last = block[i].whole;
        uint64_t key =
            (uint64_t)block[i].id[0] << 32 | (uint64_t)block[i].id[1];
        __builtin_prefetch(&m->pairs[hash_pair(key) & m->pair_mask]);
    }
    for (size_t i = 0; i < count; i++)
        if (put_pair(m, &block[i], err))
            return -1;
    return 0;
}

int bpe_load_merges(struct model *m, const struct merge_text *merges,
                    size_t count, const char *file, const char *decoded,
                    struct err *err)
{
    enum { BLOCK = 32 };
    struct pending block[BLOCK];
    struct buf texts = BUF_INIT;
    size_t slots = 64, prefix = m->prefix ? strlen(m->prefix) : 0;
    int64_t last = -1;
    int ret = 0;

    while (slots < count * 2)
        slots *= 2;
    m->pairs = table_new(slots, sizeof(*m->pairs), err);
    if (!m->pairs)
        return -1;
    m->pair_mask = slots - 1;
    memset(m->pairs, 0xff, slots * sizeof(*m->pairs));
    for (size_t i = 0; i < count && ret == 0;) {
        size_t n = 0;

        for (; n < BLOCK && i < count; n++, i++) {
            block[n].rank = i;
            for (int k = 0; k < 2; k++) {
                block[n].len[k] = merges[i].len[k];
                block[n].part[k] =
                    merges[i].at[k] >> 31
                        ? decoded + (merges[i].at[k] & 0x7fffffff)
                        : file + merges[i].at[k];
            }
        }
        ret = load_block(m, block, n, prefix, &texts, &last, err);
    }
    buf_release(&texts);
    return ret;
}

void model_finish_bpe(struct model *m)
{
    static const char hex[] = "0123456789ABCDEF";

    for (int i = 0; i < 256; i++) {
        char byte = (char)i;
        char name[] = "<0x00>";

        name[3] = hex[i >> 4];
        name[4] = hex[i & 15];
        m->byte_ids[i] =
            m->is_byte_level ? vocab_find(&m->vocab, &byte, 1) : -1;
        m->fallback_ids[i] =
            vocab_find_raw(&m->vocab, m->is_byte_level, name, 6);
    }
    m->unk_id = m->has_unk ? vocab_find_raw(&m->vocab, m->is_byte_level,
                                            m->unk_token, strlen(m->unk_token))
                           : -1;
}

void work_put_symbol(struct model_work *w, int64_t id, size_t len)
{
    if (w->symbol_count == w->symbol_cap) {
        w->symbol_cap = w->symbol_cap ? w->symbol_cap * 2 : 256;
        w->symbols = xrealloc(w->symbols, w->symbol_cap * sizeof(*w->symbols));
    }
    struct symbol *s = &w->symbols[w->symbol_count];
    const struct symbol *before = w->symbol_count++ ? s - 1 : NULL;
    s->id = (uint32_t)id;
    s->len = (uint32_t)len;
    s->at = before ? before->at + before->len : 0;
}

/* An unknown character waits for others to be fused with. */
struct unknown {
    size_t len;
    bool is_waiting;
};

static int put_unknown(const struct model *m, struct model_work *w,
                       struct unknown *unk, size_t len, struct err *err)
{
    if (!m->has_unk)
        return 0; /* dropped; its neighbours become adjacent */
    if (m->unk_id < 0)
        return err_set(err, ERR_INPUT,
                       "unk_token '%s' is not in the vocabulary", m->unk_token);
    if (unk->is_waiting && m->fuse_unk) {
        unk->len += len;
        return 0;
    }
    if (unk->is_waiting)
        work_put_symbol(w, m->unk_id, unk->len);
    *unk = (struct unknown){len, true};
    return 0;
}

static bool put_fallback(const struct model *m, struct model_work *w,
                         const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (m->fallback_ids[(unsigned char)text[i]] < 0)
            return false;
    for (size_t i = 0; i < len; i++)
        work_put_symbol(w, m->fallback_ids[(unsigned char)text[i]], 1);
    return true;
}

/* The symbols of a piece: its characters, or the bytes of a byte-level one. */
static int start_symbols(const struct model *m, struct model_work *w,
                         const char *text, size_t len, struct err *err)
{
    struct unknown unk = {0, false};
    char spelled[4];
    size_t n;

    w->symbol_count = 0;
    for (size_t i = 0; i < len; i += n) {
        const char *symbol = text + i;
        size_t symbol_len;
        int64_t id;

        if (m->is_byte_level) {
            n = symbol_len = 1;
            id = m->byte_ids[(unsigned char)text[i]];
        } else {
            utf8_get(text + i, &n);
            symbol_len = n;
            bool has_prefix = m->prefix && i > 0;
            bool has_suffix = m->suffix && i + n == len;
            if (has_prefix || has_suffix) {
                buf_clear(&w->text);
                if (has_prefix)
                    buf_addstr(&w->text, m->prefix);
                buf_add(&w->text, symbol, n);
                if (has_suffix)
                    buf_addstr(&w->text, m->suffix);
                symbol = w->text.data;
                symbol_len = w->text.len;
            }
            id = vocab_find(&m->vocab, symbol, symbol_len);
        }
        if (id >= 0) {
            if (unk.is_waiting)
                work_put_symbol(w, m->unk_id, unk.len);
            unk.is_waiting = false;
            work_put_symbol(w, id, n);
            continue;
        }
        if (m->is_byte_level && m->byte_fallback) {
            /* What upstream sees here is the character of the byte. */
            symbol_len =
                utf8_put(byte_level_char((unsigned char)text[i]), spelled);
            symbol = spelled;
        }
        if (m->byte_fallback && put_fallback(m, w, symbol, symbol_len))
            continue;
        if (put_unknown(m, w, &unk, n, err))
            return -1;
    }
    if (unk.is_waiting)
        work_put_symbol(w, m->unk_id, unk.len);
    return 0;
}

void work_put(struct model_work *w, uint32_t id, uint32_t len)
{
    if (w->token_count == w->token_cap) {
        w->token_cap = w->token_cap ? w->token_cap * 2 : 256;
        w->tokens = xrealloc(w->tokens, w->token_cap * sizeof(*w->tokens));
    }
    w->tokens[w->token_count++] = (struct model_token){id, len};
}

static void merge_short(const struct model *m, struct model_work *w,
                        const char *text)
{
    struct symbol *s = w->symbols;
    size_t n = w->symbol_count;
    struct pair pairs[SHORT];

    for (size_t i = 0; i + 1 < n; i++)
        fetch_pair(m, &s[i], &s[i + 1]);
    for (size_t i = 0; i + 1 < n; i++)
        pairs[i] = find_pair(m, text, &s[i], &s[i + 1]);
    while (n > 1) {
        size_t best = 0;

        for (size_t i = 1; i + 1 < n; i++)
            if (pairs[i].rank < pairs[best].rank)
                best = i;
        w->operations += n;
        if (pairs[best].rank == UINT32_MAX)
            break;
        s[best].id = pairs[best].id;
        s[best].len += s[best + 1].len;
        n--;
        if (best + 1 < n)
            fetch_pair(m, &s[best], &s[best + 2]);
        if (best > 0)
            fetch_pair(m, &s[best - 1], &s[best]);
        for (size_t i = best + 1; i < n; i++)
            s[i] = s[i + 1];
        for (size_t i = best + 1; i + 1 < n; i++)
            pairs[i] = pairs[i + 1];
        for (size_t i = best > 0 ? best - 1 : 0; i <= best && i + 1 < n; i++)
            pairs[i] = find_pair(m, text, &s[i], &s[i + 1]);
    }
    w->symbol_count = n;
}

static bool comes_before(const struct candidate *a, const struct candidate *b)
{
    return a->rank < b->rank || (a->rank == b->rank && a->at < b->at);
}

static void heap_put(struct model_work *w, struct candidate c)
{
    if (w->heap_count == w->heap_cap) {
        w->heap_cap = w->heap_cap ? w->heap_cap * 2 : 256;
        w->heap = xrealloc(w->heap, w->heap_cap * sizeof(*w->heap));
    }
    size_t i = w->heap_count++;
    while (i > 0 && comes_before(&c, &w->heap[(i - 1) / 2])) {
        w->heap[i] = w->heap[(i - 1) / 2];
        i = (i - 1) / 2;
        w->operations++;
    }
    w->heap[i] = c;
}

static struct candidate heap_take(struct model_work *w)
{
    struct candidate top = w->heap[0], last = w->heap[--w->heap_count];
    size_t i = 0, n = w->heap_count;

    for (;;) {
        size_t child = 2 * i + 1;

        if (child >= n)
            break;
        if (child + 1 < n && comes_before(&w->heap[child + 1], &w->heap[child]))
            child++;
        if (!comes_before(&w->heap[child], &last))
            break;
        w->heap[i] = w->heap[child];
        i = child;
        w->operations++;
    }
    if (n)
        w->heap[i] = last;
    return top;
}

static void consider(const struct model *m, struct model_work *w,
                     const char *text, int32_t at)
{
    const struct symbol *s = w->symbols;

    if (at < 0 || s[at].next < 0)
        return;
    struct pair p = find_pair(m, text, &s[at], &s[s[at].next]);
    if (p.rank != UINT32_MAX)
        heap_put(w, (struct candidate){p.rank, (uint32_t)at, p.id});
}

static void merge_long(const struct model *m, struct model_work *w,
                       const char *text)
{
    struct symbol *s = w->symbols;
    int32_t n = (int32_t)w->symbol_count;
    size_t kept = 0;

    w->heap_count = 0;
    for (int32_t i = 0; i < n; i++) {
        s[i].prev = i - 1;
        s[i].next = i + 1 < n ? i + 1 : -1;
    }
    for (int32_t i = 0; i < n; i++)
        consider(m, w, text, i);
    while (w->heap_count > 0) {
        struct candidate top = heap_take(w);
        int32_t at = (int32_t)top.at, next = s[at].next;

        w->operations++;
        if (s[at].len == 0 || next < 0)
            continue;
        struct pair p = find_pair(m, text, &s[at], &s[next]);
        if (p.rank == UINT32_MAX || p.id != top.id)
            continue; /* one of the two has changed since */
        s[at].id = top.id;
        s[at].len += s[next].len;
        s[at].next = s[next].next;
        if (s[next].next >= 0)
            s[s[next].next].prev = at;
        s[next].len = 0;
        consider(m, w, text, s[at].prev);
        consider(m, w, text, at);
    }
    for (int32_t i = 0; i < n; i++)
        if (s[i].len)
            s[kept++] = s[i];
    w->symbol_count = kept;
}

int bpe_encode(const struct model *m, struct model_work *w, const char *text,
               size_t len, struct err *err)
{
    if (m->ignore_merges) { /* tiktoken too */
        int64_t id = vocab_find(&m->vocab, text, len);

        if (id >= 0) {
            work_put(w, (uint32_t)id, (uint32_t)len);
            return 0;
        }
    }
    if (start_symbols(m, w, text, len, err))
        return -1;
    if (w->symbol_count <= SHORT)
        merge_short(m, w, text);
    else
        merge_long(m, w, text);
    for (size_t i = 0; i < w->symbol_count; i++)
        work_put(w, w->symbols[i].id, w->symbols[i].len);
    return 0;
}
