/*
 * Byte pair encoding.  The adjacent pair of lowest rank, leftmost among equals,
 * is replaced until none is left: short pieces by looking through an array,
 * long ones with a heap (n log n).
 */
#include "base/bug.h"
#include "base/mem.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/model.h"
#include "tokenizer/unicode.h"

#include <stdlib.h>
#include <string.h>

enum { SHORT = 24 };

/* What two adjacent symbols of text make, if anything. */
static struct merge find_merge(const struct model *m, const char *text,
                               const struct symbol *a, const struct symbol *b)
{
    if (m->kind != MODEL_TIKTOKEN)
        return pairs_find(&m->pairs, a->id, b->id);
    size_t len = (size_t)a->len + b->len;
    int64_t id =
        len <= m->longest ? vocab_find(&m->bytes, text + a->at, len) : -1;

    return id < 0 ? (struct merge){UINT32_MAX, 0}
                  : (struct merge){(uint32_t)id, (uint32_t)id};
}

static void fetch_merge(const struct model *m, const struct symbol *a,
                        const struct symbol *b)
{
    if (m->kind != MODEL_TIKTOKEN)
        pairs_fetch(&m->pairs, a->id, b->id);
}

/* The id of a piece that is one token, or -1. */
static int64_t find_piece(const struct model *m, struct model_work *w,
                          const char *text, size_t len)
{
    if (m->kind == MODEL_TIKTOKEN)
        return vocab_find(&m->bytes, text, len);
    if (!m->is_byte_level)
        return vocab_find(&m->vocab, text, len);
    buf_clear(&w->text);
    byte_level_spell(text, len, &w->text);
    return vocab_find(&m->vocab, w->text.data, w->text.len);
}

/* Is every symbol at the start a character or a byte of the fallback? */
static bool has_seams(const struct model *m)
{
    bool has_all = m->byte_fallback && !m->is_byte_level && !m->ignore_merges &&
                   !m->prefix && !m->suffix;

    for (int i = 0; i < 256; i++)
        has_all = has_all && m->fallback_ids[i] >= 0;
    return has_all;
}

void model_finish_bpe(struct model *m)
{
    static const char hex[] = "0123456789ABCDEF";

    for (int i = 0; i < 256; i++) {
        char u[4], name[] = "<0x00>";
        size_t n = utf8_put(byte_level_char((unsigned char)i), u);

        name[3] = hex[i >> 4];
        name[4] = hex[i & 15];
        m->byte_ids[i] = m->is_byte_level ? model_find(m, u, n) : -1;
        m->fallback_ids[i] = model_find(m, name, 6);
    }
    m->unk_id =
        m->has_unk ? model_find(m, m->unk_token, strlen(m->unk_token)) : -1;
    m->seams = has_seams(m) ? seams_new(&m->vocab) : NULL;
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
    struct merge pairs[SHORT];

    for (size_t i = 0; i + 1 < n; i++)
        fetch_merge(m, &s[i], &s[i + 1]);
    for (size_t i = 0; i + 1 < n; i++)
        pairs[i] = find_merge(m, text, &s[i], &s[i + 1]);
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
            fetch_merge(m, &s[best], &s[best + 2]);
        if (best > 0)
            fetch_merge(m, &s[best - 1], &s[best]);
        for (size_t i = best + 1; i < n; i++)
            s[i] = s[i + 1];
        for (size_t i = best + 1; i + 1 < n; i++)
            pairs[i] = pairs[i + 1];
        for (size_t i = best > 0 ? best - 1 : 0; i <= best && i + 1 < n; i++)
            pairs[i] = find_merge(m, text, &s[i], &s[i + 1]);
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
    struct merge p = find_merge(m, text, &s[at], &s[s[at].next]);
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
        struct merge p = find_merge(m, text, &s[at], &s[next]);
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
        int64_t id = find_piece(m, w, text, len);

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
