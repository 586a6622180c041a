/* What the kinds of models share: tables lent, and tokens of short pieces kept.
 */
#include "tokenizer/model.h"
#include "base/mem.h"
#include "tokenizer/byte_level.h"

#include <stdlib.h>
#include <string.h>

enum { CACHE_SLOTS = 1 << 14, CACHE_TEXT = 22, CACHE_TOKENS = 6 };

/* A short piece and its tokens. */
struct cached {
    uint32_t hash;
    uint8_t len, count;
    char text[CACHE_TEXT];
    uint32_t ids[CACHE_TOKENS];
    uint8_t lens[CACHE_TOKENS];
};

int64_t model_find(const struct model *m, const char *token, size_t len)
{
    struct buf bytes = BUF_INIT;
    int64_t id = -1;

    if (m->kind != MODEL_TIKTOKEN)
        return vocab_find(&m->vocab, token, len);
    if (byte_level_bytes(token, len, &bytes))
        id = vocab_find(&m->bytes, bytes.data, bytes.len);
    buf_release(&bytes);
    return id;
}

static char *copy_text(const char *text)
{
    return text ? xstrdup(text) : NULL;
}

struct model *model_borrow(const struct model *m)
{
    struct model *other = xmalloc(sizeof(*other));

    *other = *m;
    other->is_borrowing = true;
    other->seams = NULL;
    other->unk_token = copy_text(m->unk_token);
    other->prefix = copy_text(m->prefix);
    other->suffix = copy_text(m->suffix);
    return other;
}

void model_free(struct model *m)
{
    if (!m)
        return;
    free(m->unk_token);
    free(m->prefix);
    free(m->suffix);
    seams_free(m->seams);
    if (!m->is_borrowing) {
        vocab_release(&m->vocab);
        vocab_release(&m->bytes);
        pairs_release(&m->pairs);
        free(m->scores);
        trie_free(m->prefixes);
    }
    free(m);
}

/* The tokens of a part of a piece, behind those that are there. */
static int encode_part(const struct model *m, struct model_work *work,
                       const char *text, size_t len, struct err *err)
{
    struct cached *slot = NULL;
    size_t first = work->token_count;
    uint32_t hash = 0;

    if (len <= CACHE_TEXT) {
        if (!work->cache)
            work->cache = xcalloc(CACHE_SLOTS, sizeof(*work->cache));
        hash = vocab_hash(text, len);
        slot = &work->cache[hash & (CACHE_SLOTS - 1)];
        if (slot->hash == hash && slot->len == len && slot->count &&
            memcmp(slot->text, text, len) == 0) {
            for (size_t i = 0; i < slot->count; i++)
                work_put(work, slot->ids[i], slot->lens[i]);
            return 0;
        }
    }
    if (bpe_encode(m, work, text, len, err))
        return -1;
    if (slot && work->token_count - first <= CACHE_TOKENS) {
        slot->hash = hash;
        slot->len = (uint8_t)len;
        slot->count = (uint8_t)(work->token_count - first);
        memcpy(slot->text, text, len);
        for (size_t i = 0; i < slot->count; i++) {
            slot->ids[i] = work->tokens[first + i].id;
            slot->lens[i] = (uint8_t)work->tokens[first + i].len;
        }
    }
    return 0;
}

int model_encode(const struct model *m, struct model_work *work,
                 const char *text, size_t len, struct err *err)
{
    work->token_count = 0;
    if (m->kind == MODEL_UNIGRAM)
        return unigram_encode(m, work, text, len, err);
    while (m->seams && len > CACHE_TEXT) {
        size_t n = seams_next(m->seams, text, len);

        if (encode_part(m, work, text, n, err))
            return -1;
        text += n;
        len -= n;
    }
    return encode_part(m, work, text, len, err);
}

void model_work_release(struct model_work *w)
{
    free(w->symbols);
    free(w->heap);
    free(w->tokens);
    free(w->paths);
    free(w->cache);
    buf_release(&w->text);
    *w = (struct model_work){0};
}
