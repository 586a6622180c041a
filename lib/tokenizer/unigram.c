/*
 * Unigram: the best path through a piece by the sum of scores, from left to
 * right; a character without an entry of its own scores below all others.
 */
#include "base/mem.h"
#include "tokenizer/model.h"
#include "tokenizer/piece.h"
#include "tokenizer/unicode.h"

#include <stdlib.h>
#include <string.h>

static const double UNKNOWN_PENALTY = 10.0;

struct best_path {
    double score;
    uint32_t start; /* UINT32_MAX: not reached */
    uint32_t id;
};

int unigram_finish(struct model *m, int64_t unk_id, struct err *err)
{
    const struct vocab *v = &m->vocab;

    m->unk_id = unk_id;
    m->has_unk = unk_id >= 0;
    if (unk_id >= (int64_t)v->count)
        return err_set(err, ERR_INPUT, "unk_id %lld is not in the vocabulary",
                       (long long)unk_id);
    if (v->count == 0)
        return err_set(err, ERR_INPUT, "an empty vocabulary");
    m->least_score = m->scores[0];
    for (size_t i = 0; i < v->limit; i++)
        if (m->scores[i] < m->least_score)
            m->least_score = m->scores[i];
    for (int i = 0; i < 256; i++) {
        static const char hex[] = "0123456789ABCDEF";
        char name[] = "<0x00>";

        name[3] = hex[i >> 4];
        name[4] = hex[i & 15];
        m->fallback_ids[i] = vocab_find(v, name, 6);
    }
    if (m->prefixes) /* borrowed */
        return 0;
    m->prefixes = trie_new();
    for (size_t i = 0; i < v->limit; i++)
        trie_put(m->prefixes, v->text.data + v->texts[i].at, v->texts[i].len,
                 (uint32_t)i);
    return 0;
}

static void reach(struct best_path *to, double score, size_t start, uint32_t id)
{
    if (to->start == UINT32_MAX || score > to->score)
        *to = (struct best_path){score, (uint32_t)start, id};
}

/* Fills paths[1 ... len] with the best way to each end. */
static int find_paths(const struct model *m, struct best_path *paths,
                      const char *text, size_t len, struct err *err)
{
    uint64_t work = 0, most = WORK_FREE + WORK_A_BYTE * (uint64_t)len;
    size_t n;

    for (size_t i = 0; i < len; i += n) {
        double here = paths[i].score;
        uint32_t node = 0, id;
        bool has_single = false;

        utf8_get(text + i, &n);
        if (work > most)
            return err_set(err, ERR_INPUT,
                           "a piece of %zu bytes takes more than %llu steps",
                           len, (unsigned long long)most);
        for (size_t end = i; end < len;) {
            work++;
            if (!trie_step(m->prefixes, &node, text[end++], &id))
                break;
            if (id == TRIE_NONE)
                continue;
            reach(&paths[end], m->scores[id] + here, i, id);
            if (end - i == n)
                has_single = true;
        }
        if (has_single)
            continue;
        if (!m->has_unk)
            return err_set(err, ERR_INPUT,
                           "a character that the vocabulary lacks, and the "
                           "model has no unk_id");
        reach(&paths[i + n], m->least_score - UNKNOWN_PENALTY + here, i,
              (uint32_t)m->unk_id);
    }
    return 0;
}

/* A run of unknown characters: a token after all, its bytes, or unk. */
static void put_text(const struct model *m, struct model_work *w,
                     const char *text, size_t len)
{
    int64_t id = vocab_find(&m->vocab, text, len);
    bool has_bytes = m->byte_fallback;

    if (id >= 0) {
        work_put(w, (uint32_t)id, (uint32_t)len);
        return;
    }
    for (size_t i = 0; has_bytes && i < len; i++)
        has_bytes = m->fallback_ids[(unsigned char)text[i]] >= 0;
    if (!has_bytes) {
        work_put(w, (uint32_t)m->unk_id, (uint32_t)len);
        return;
    }
    for (size_t i = 0; i < len; i++)
        work_put(w, (uint32_t)m->fallback_ids[(unsigned char)text[i]], 1);
}

int unigram_encode(const struct model *m, struct model_work *w,
                   const char *text, size_t len, struct err *err)
{
    if (len + 1 > w->path_cap) {
        w->path_cap = len + len / 2 + 64;
        w->paths = xrealloc(w->paths, w->path_cap * sizeof(*w->paths));
    }
    for (size_t i = 0; i <= len; i++)
        w->paths[i] = (struct best_path){0.0, UINT32_MAX, 0};
    if (find_paths(m, w->paths, text, len, err))
        return -1;
    w->symbol_count = 0;
    for (size_t end = len; end > 0; end = w->paths[end].start)
        work_put_symbol(w, w->paths[end].id, end - w->paths[end].start);
    for (size_t i = 0, k = w->symbol_count; k-- > 0;) {
        bool is_unknown = m->has_unk && w->symbols[k].id == m->unk_id;
        size_t start = i;

        i += w->symbols[k].len;
        while (is_unknown && k > 0 && w->symbols[k - 1].id == m->unk_id)
            i += w->symbols[--k].len;
        put_text(m, w, text + start, i - start);
    }
    return 0;
}
