/* Added tokens: which there are, with which ids, and what finds them. */
#include "base/mem.h"
#include "tokenizer/added.h"

#include <stdlib.h>

enum { MAX_ADDED_LEN = 1024 };

void added_release(struct added *a)
{
    for (size_t i = 0; i < a->count; i++) {
        free(a->items[i].content);
        free(a->items[i].shown);
    }
    free(a->items);
    free(a->by_id);
    text_map_release(&a->all);
    trie_free(a->raw);
    trie_free(a->normalized);
    *a = (struct added){0};
}

struct added_token *added_find(const struct added *a, const char *text,
                               size_t len)
{
    uint32_t at = text_map_find(&a->all, text, len);

    return at == TEXT_MAP_NONE ? NULL : &a->items[at];
}

struct added_token *added_take(struct added *a, const char *text, size_t len)
{
    struct added_token *item = added_find(a, text, len);

    if (item)
        return item;
    if (a->count == a->cap) {
        a->cap = a->cap ? a->cap * 2 : 64;
        a->items = xrealloc(a->items, a->cap * sizeof(*a->items));
    }
    item = &a->items[a->count];
    *item = (struct added_token){
        .content = xstrndup(text, len), .len = len, .id = -1};
    text_map_put(&a->all, item->content, len, (uint32_t)a->count++);
    return item;
}

void added_copy(struct added *a, const struct added *from)
{
    for (size_t i = 0; i < from->count; i++) {
        const struct added_token *token = &from->items[i];
        struct added_token *item = added_take(a, token->content, token->len);
        char *content = item->content;

        *item = *token;
        item->content = content;
        item->shown = NULL;
    }
}

static void look_for(const struct added *a, struct added_token *item,
                     bool is_normalized)
{
    if (a->is_0_23)
        item->is_raw = item->is_normalized = false;
    if (is_normalized)
        item->is_normalized = item->is_shown_normalized = true;
    else
        item->is_raw = true;
}

static int64_t next_id(const struct added *a, const struct model *m)
{
    int64_t next = (int64_t)m->vocab.count;

    for (size_t i = 0; i < a->count; i++)
        if (a->items[i].id >= next)
            next = a->items[i].id + 1;
    return next;
}

void added_batch(struct added *a, const struct model *m,
                 const struct added_wish *wishes, size_t count)
{
    int64_t next = next_id(a, m);

    for (size_t i = 0; i < count; i++) {
        const struct added_wish *w = &wishes[i];

        if (!w->special || w->len == 0)
            continue;
        struct added_token *item = added_take(a, w->content, w->len);
        if (!item->special)
            look_for(a, item, w->normalized);
        item->special = true;
    }
    for (size_t i = 0; i < count; i++) {
        const struct added_wish *w = &wishes[i];

        if (w->len == 0)
            continue;
        struct added_token *item = added_take(a, w->content, w->len);
        item->single_word = w->single_word;
        item->lstrip = w->lstrip;
        item->rstrip = w->rstrip;
        if (!item->special || a->is_0_23)
            look_for(a, item, w->normalized);
        if (item->id < 0)
            item->id = model_find(m, w->content, w->len);
        if (item->id < 0)
            item->id = next++;
    }
}

static int read_wish(const json_t *value, struct added_wish *out,
                     struct err *err)
{
    if (!json_is_object(value))
        return err_set(err, ERR_INPUT, "not an object");
    if (json_get_str(value, "content", &out->content, err) ||
        json_get_bool(value, "single_word", &out->single_word, err) ||
        json_get_bool(value, "lstrip", &out->lstrip, err) ||
        json_get_bool(value, "rstrip", &out->rstrip, err) ||
        json_get_bool(value, "normalized", &out->normalized, err) ||
        json_get_bool(value, "special", &out->special, err))
        return -1;
    out->len = json_string_length(json_object_get(value, "content"));
    if (out->len == 0)
        return err_set(err, ERR_INPUT, "'content' is empty");
    if (out->len > MAX_ADDED_LEN)
        return err_set(err, ERR_INPUT, "'content' is longer than %d bytes",
                       MAX_ADDED_LEN);
    return 0;
}

/* Upstream gives ids by its own rule, whatever the file says. */
static int check_id(const struct added *a, const json_t *value,
                    const struct added_wish *wish, struct err *err)
{
    const struct added_token *item = added_find(a, wish->content, wish->len);
    int64_t id;

    if (json_get_int(value, "id", &id, err))
        return -1;
    if (item->id == id)
        return 0;
    return err_set(err, ERR_INPUT,
                   "'%s' has id %lld in the file, but upstream gives it %lld",
                   wish->content, (long long)id, (long long)item->id);
}

int added_read(struct added *a, const struct model *m, const json_t *list,
               struct err *err)
{
    size_t n = json_array_size(list), i = 0;
    struct added_wish *wishes;
    int ret = 0;

    if (list && !json_is_array(list))
        return err_set(err, ERR_INPUT, "not a list");
    wishes = xcalloc(n, sizeof(*wishes));
    for (i = 0; ret == 0 && i < n; i++)
        ret = read_wish(json_array_get(list, i), &wishes[i], err);
    if (ret == 0) {
        added_batch(a, m, wishes, n);
        for (i = 0; ret == 0 && i < n; i++)
            ret = check_id(a, json_array_get(list, i), &wishes[i], err);
    }
    free(wishes);
    return ret ? err_in(err, "[%zu]", i - 1) : 0;
}

static int by_id(const void *a, const void *b, void *arg)
{
    const struct added_token *items = arg;
    int64_t x = items[*(const uint32_t *)a].id;
    int64_t y = items[*(const uint32_t *)b].id;

    return x < y ? -1 : x > y;
}

struct normalizing {
    const struct steps *steps;
    struct made made[2];
    struct pattern_scratch *match;
};

static int normalize_token(struct normalizing *n,
                           const struct added_token *token, struct piece *out,
                           struct err *err)
{
    struct piece p = {token->content, token->len, NULL, 0};
    struct growth growth = growth_of(token->len);

    if (normalize(n->steps, &p, n->made, n->match, &growth, out, err))
        return -1;
    if (out->len > 0)
        return 0;
    return err_set(err, ERR_UNSUPPORTED,
                   "added token '%s' is empty when normalized", token->content);
}

/* Where a token is looked for, and how it is shown. */
static int index_token(struct added *a, uint32_t at, struct normalizing *n,
                       struct err *err)
{
    struct added_token *token = &a->items[at];
    struct piece p;

    if (token->is_raw)
        trie_put(a->raw, token->content, token->len, at);
    if (!token->is_normalized && !(a->is_0_23 && token->is_shown_normalized))
        return 0;
    if (normalize_token(n, token, &p, err))
        return -1;
    if (token->is_normalized && !trie_put(a->normalized, p.text, p.len, at) &&
        a->is_0_23)
        return err_set(err, ERR_UNSUPPORTED,
                       "added token '%s' is like another when normalized: "
                       "which is found is chance in tokenizers 0.23",
                       token->content);
    if (a->is_0_23) {
        token->shown = xstrndup(p.text, p.len);
        token->shown_len = p.len;
    }
    return 0;
}

/* Where two are alike when normalized, the first counts: tokenizers 0.22 has
 * special ones first, each kind in the order in which they came. */
int added_index(struct added *a, const struct steps *normalizer,
                struct err *err)
{
    struct normalizing n = {.steps = normalizer,
                            .match = pattern_scratch_new()};
    int ret = 0;

    a->raw = trie_new();
    a->normalized = trie_new();
    a->by_id = xcalloc(a->count, sizeof(*a->by_id));
    for (size_t i = 0; i < a->count; i++)
        a->by_id[i] = (uint32_t)i;
    if (a->count)
        qsort_r(a->by_id, a->count, sizeof(*a->by_id), by_id, a->items);
    for (size_t i = 0; ret == 0 && i < 2 * a->count; i++) {
        uint32_t at = (uint32_t)(i % a->count);

        if (a->items[at].special == (i < a->count))
            ret = index_token(a, at, &n, err);
    }
    made_release(&n.made[0]);
    made_release(&n.made[1]);
    pattern_scratch_free(n.match);
    return ret;
}

const char *added_shown(const struct added *a, const struct added_token *token,
                        size_t *len, bool *is_special)
{
    const struct added_token *named = token;

    *len = token->len;
    if (token->shown) {
        *len = token->shown_len;
        named = added_find(a, token->shown, token->shown_len);
    }
    *is_special = named && named->special;
    return token->shown ? token->shown : token->content;
}

bool added_is_equal(const struct added *a, const struct added *b)
{
    bool is_equal = a->count == b->count;

    for (size_t i = 0; is_equal && i < a->count; i++) {
        const struct added_token *x = &a->items[i];
        const struct added_token *y = added_find(b, x->content, x->len);

        is_equal = y && x->id == y->id && x->single_word == y->single_word &&
                   x->lstrip == y->lstrip && x->rstrip == y->rstrip &&
                   x->special == y->special && x->is_raw == y->is_raw &&
                   x->is_normalized == y->is_normalized &&
                   x->is_shown_normalized == y->is_shown_normalized;
    }
    return is_equal;
}
