/* Added tokens: read, and found leftmost, then longest, each by its flags. */
#include "base/mem.h"
#include "tokenizer/tokenizer_internal.h"

#include <stdlib.h>

enum { MAX_ADDED_LEN = 1024 };

static bool is_space(uint32_t c)
{
    return unicode_has(unicode_space, unicode_space_count, c);
}

static bool is_word(uint32_t c)
{
    return unicode_has(unicode_word, unicode_word_count, c);
}

/* Has the match at [start, end) no word character beside it? */
static bool stands_alone(const char *text, size_t len, size_t start, size_t end)
{
    size_t n;

    return (start == 0 || !is_word(utf8_get_before(text, start, &n))) &&
           (end == len || !is_word(utf8_get(text + end, &n)));
}

static size_t space_before(const char *text, size_t start)
{
    size_t before;

    while (start > 0 && is_space(utf8_get_before(text, start, &before)))
        start = before;
    return start;
}

static size_t space_behind(const char *text, size_t len, size_t end)
{
    size_t n;

    while (end < len && is_space(utf8_get(text + end, &n)))
        end += n;
    return end;
}

/* The longest token that begins at text[at], or NULL. */
static const struct added_token *longest(const struct added *a,
                                         const struct trie *t, const char *text,
                                         size_t len, size_t at, size_t *end,
                                         uint64_t *work)
{
    uint32_t node = 0, value, found = TRIE_NONE;
    size_t from = at;

    while (at < len && trie_step(t, &node, text[at++], &value))
        if (value != TRIE_NONE) {
            found = value;
            *end = at;
        }
    *work += at - from;
    return found == TRIE_NONE ? NULL : &a->items[found];
}

int added_cut(const struct added *a, const struct trie *t, const char *text,
              size_t len, added_each *each, void *arg, struct err *err)
{
    uint64_t work = 0, most = WORK_FREE + WORK_A_BYTE * (uint64_t)len;
    size_t done = 0;

    for (size_t at = 0; at < len;) {
        const struct added_token *token = NULL;
        size_t match_end = 0;

        while (at < len && !trie_may_start(t, text[at]))
            at++;
        if (at < len)
            token = longest(a, t, text, len, at, &match_end, &work);
        if (work > most)
            return err_set(err, ERR_INPUT,
                           "finding added tokens in %zu bytes takes more than "
                           "%llu steps",
                           len, (unsigned long long)most);
        if (!token) {
            at++;
            continue;
        }
        size_t start = at, end = match_end;
        at = match_end;
        if (token->single_word && !stands_alone(text, len, start, end))
            continue;
        if (token->lstrip) {
            start = space_before(text, start);
            if (start < done)
                start = done;
        }
        if (token->rstrip)
            end = space_behind(text, len, end);
        if (done < start && each(arg, NULL, done, start, err))
            return -1;
        /* One that another has already taken as its blanks vanishes. */
        if (start < end && each(arg, token, start, end, err))
            return -1;
        done = end;
    }
    return done < len ? each(arg, NULL, done, len, err) : 0;
}

static int read_token(struct tokenizer *t, json_t *value, int64_t *counter,
                      struct err *err)
{
    struct added_token token = {0};
    const char *content;
    int64_t id;

    if (!json_is_object(value))
        return err_set(err, ERR_INPUT, "not an object");
    if (json_get_int(value, "id", &id, err) ||
        json_get_str(value, "content", &content, err) ||
        json_get_bool(value, "single_word", &token.single_word, err) ||
        json_get_bool(value, "lstrip", &token.lstrip, err) ||
        json_get_bool(value, "rstrip", &token.rstrip, err) ||
        json_get_bool(value, "normalized", &token.normalized, err) ||
        json_get_bool(value, "special", &token.special, err))
        return -1;
    token.len = json_string_length(json_object_get(value, "content"));
    if (token.len == 0)
        return err_set(err, ERR_INPUT, "'content' is empty");
    if (token.len > MAX_ADDED_LEN)
        return err_set(err, ERR_INPUT, "'content' is longer than %d bytes",
                       MAX_ADDED_LEN);
    if (!trie_put(t->added.all, content, token.len, (uint32_t)t->added.count))
        return err_set(err, ERR_INPUT, "'%s' occurs twice", content);
    token.id = model_find(t->model, content, token.len);
    if (token.id < 0)
        token.id = (*counter)++;
    if (token.id != id)
        return err_set(err, ERR_INPUT,
                       "'%s' has id %lld in the file, but upstream gives it "
                       "%lld",
                       content, (long long)id, (long long)token.id);
    token.content = xstrndup(content, token.len);
    t->added.items[t->added.count++] = token;
    return 0;
}

int added_read(struct tokenizer *t, json_t *list, struct err *err)
{
    int64_t counter = (int64_t)t->model->vocab.count;
    size_t n = list ? json_array_size(list) : 0;

    if (list && !json_is_array(list))
        return err_set(err, ERR_INPUT, "not a list");
    t->added.all = trie_new();
    t->added.items = xcalloc(n, sizeof(*t->added.items));
    for (size_t i = 0; i < n; i++)
        if (read_token(t, json_array_get(list, i), &counter, err))
            return err_in(err, "[%zu]", i);
    return 0;
}

static int by_id(const void *a, const void *b, void *arg)
{
    const struct added_token *items = arg;
    int64_t x = items[*(const uint32_t *)a].id;
    int64_t y = items[*(const uint32_t *)b].id;

    return x < y ? -1 : x > y;
}

/* Upstream's order: special ones first, each kind in the file's order. */
int added_index(struct tokenizer *t, struct err *err)
{
    struct made made[2] = {0};
    struct pattern_scratch *match = pattern_scratch_new();
    int ret = 0;

    t->added.by_id = xcalloc(t->added.count, sizeof(*t->added.by_id));
    for (size_t i = 0; i < t->added.count; i++)
        t->added.by_id[i] = (uint32_t)i;
    if (t->added.count)
        qsort_r(t->added.by_id, t->added.count, sizeof(*t->added.by_id), by_id,
                t->added.items);
    t->added.raw = trie_new();
    t->added.normalized = trie_new();
    for (size_t i = 0; ret == 0 && i < 2 * t->added.count; i++) {
        size_t at = i % t->added.count;
        const struct added_token *token = &t->added.items[at];
        struct piece p = {token->content, token->len, NULL, 0};
        struct growth growth = growth_of(token->len);

        if (token->special != (i < t->added.count))
            continue;
        if (!token->normalized) {
            trie_put(t->added.raw, p.text, p.len, (uint32_t)at);
            continue;
        }
        ret =
            normalize(&t->chain.normalizer, &p, made, match, &growth, &p, err);
        if (ret == 0 && p.len == 0)
            ret = err_set(err, ERR_UNSUPPORTED,
                          "added token '%s' is empty when normalized",
                          token->content);
        if (ret == 0)
            trie_put(t->added.normalized, p.text, p.len, (uint32_t)at);
    }
    made_release(&made[0]);
    made_release(&made[1]);
    pattern_scratch_free(match);
    return ret;
}
