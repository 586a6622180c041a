/*
 * Reads a tokenizer.json in one pass: the model's vocabulary and merges as they
 * stream by, the small components through a tree each.  What depends on several
 * of them (ids, tables) is made afterwards, so keys may come in any order.
 */
#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "tokenizer/tokenizer_internal.h"
#include "json/stream.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_CAP = 1 << 30, MAX_ADDED_LEN = 1024, MAX_PREFIX = 256 };

/* What is read before it can be put together. */
struct draft {
    struct json_stream stream;
    const char *file;
    json_t *parts[5];            /* by enum part */
    json_t *document, *settings; /* what is small of the file, of its model */
    struct buf decoded;          /* merges whose text has escapes */
    struct merge_text *merges;
    size_t merge_count, merge_cap;
    bool merges_are_texts;
    const bool *null_flag; /* the model's last one that is null */
    size_t id_cap, score_cap;
    bool has_version, has_model, has_vocab, has_merges, vocab_is_list;
    char *model_type;
    int64_t unk_id; /* Unigram's */
    struct model *model;
};
enum part { ADDED, NORMALIZER, PRE_TOKENIZER, POST_PROCESSOR, DECODER };
static const char *const part_names[] = {
    "added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder"};

void tokenizer_warn(struct tokenizer *t, const char *format, ...)
{
    struct buf text = BUF_INIT;
    va_list ap;

    va_start(ap, format);
    buf_addv(&text, format, ap);
    va_end(ap);
    t->warnings =
        xrealloc(t->warnings, (t->warning_count + 1) * sizeof(*t->warnings));
    t->warnings[t->warning_count++] = buf_detach(&text);
}

static bool key_is(const struct json_stream *s, const char *key)
{
    return s->len == strlen(key) && memcmp(s->text, key, s->len) == 0;
}

static int wrong_type(const struct draft *d, const char *what, struct err *err)
{
    return json_stream_fail(&d->stream, ERR_INPUT, err, "%s", what);
}

/* Keeps a token's text (with a NUL behind it) under its id. */
static int put_token(struct draft *d, size_t id, size_t at, size_t len,
                     struct err *err)
{
    struct err why = ERR_INIT;

    if (vocab_put(&d->model->vocab, &d->id_cap, id, at, len, &why) == 0)
        return 0;
    return json_stream_fail(&d->stream, why.code, err, "%s", why.text);
}

static int parse_id(const struct draft *d, size_t *out, struct err *err)
{
    const struct json_stream *s = &d->stream;

    *out = 0;
    for (size_t i = 0; i < s->len; i++) {
        if (s->text[i] < '0' || s->text[i] > '9' || i > 9)
            return wrong_type(d, "an id is not a small whole number", err);
        *out = *out * 10 + (size_t)(s->text[i] - '0');
    }
    return 0;
}

/* {"token": id, ...} */
static int read_vocab_map(struct draft *d, struct err *err)
{
    struct json_stream *s = &d->stream;
    struct vocab *v = &d->model->vocab;

    for (;;) {
        enum json_event event = json_stream_next(s, err);
        size_t at = v->raw.len, len = s->len, id;

        if (event == STREAM_OBJECT_END)
            return 0;
        if (event != STREAM_KEY)
            return -1;
        buf_add(&v->raw, s->text, s->len);
        buf_addch(&v->raw, '\0');
        event = json_stream_next(s, err);
        if (event == STREAM_BAD)
            return -1;
        if (event != STREAM_NUMBER)
            return wrong_type(d, "an id is not a number", err);
        if (parse_id(d, &id, err) || put_token(d, id, at, len, err))
            return -1;
    }
}

/* [["token", score], ...] */
static int read_vocab_list(struct draft *d, struct err *err)
{
    struct json_stream *s = &d->stream;
    struct vocab *v = &d->model->vocab;
    char number[64];

    d->vocab_is_list = true;
    for (size_t id = 0;; id++) {
        enum json_event event = json_stream_next(s, err);
        size_t at = v->raw.len, len;

        if (event == STREAM_LIST_END)
            return 0;
        if (event == STREAM_LIST)
            event = json_stream_next(s, err);
        else if (event != STREAM_BAD)
            return wrong_type(d, "an item is not a token and its score", err);
        if (event != STREAM_TEXT)
            return event == STREAM_BAD
                       ? -1
                       : wrong_type(d, "a token is not a string", err);
        len = s->len;
        buf_add(&v->raw, s->text, s->len);
        buf_addch(&v->raw, '\0');
        event = json_stream_next(s, err);
        if (event != STREAM_NUMBER || s->len >= sizeof(number))
            return event == STREAM_BAD
                       ? -1
                       : wrong_type(d, "a score is not a number", err);
        memcpy(number, s->text, s->len);
        number[s->len] = '\0';
        if (put_token(d, id, at, len, err))
            return -1;
        if (id >= d->score_cap) {
            d->score_cap = d->score_cap ? d->score_cap * 2 : 1024;
            d->model->scores = xrealloc(
                d->model->scores, d->score_cap * sizeof(*d->model->scores));
        }
        d->model->scores[id] = strtod(number, NULL);
        event = json_stream_next(s, err);
        if (event != STREAM_LIST_END)
            return event == STREAM_BAD
                       ? -1
                       : wrong_type(d, "more than a token and its score", err);
    }
}

/* Where the event's text stays: in the file, or copied when it had escapes. */
static void keep_text(struct draft *d, const char *text, size_t len,
                      uint32_t *at, uint32_t *out_len)
{
    const struct json_stream *s = &d->stream;

    *out_len = (uint32_t)len;
    if (text >= s->data && text <= s->data + s->size) {
        *at = (uint32_t)(text - s->data);
    } else {
        *at = (uint32_t)d->decoded.len | 0x80000000u;
        buf_add(&d->decoded, text, len);
    }
}

/* One merge: "a b", or ["a", "b"]; the first one says which. */
static int read_merge(struct draft *d, enum json_event event,
                      struct merge_text *m, struct err *err)
{
    struct json_stream *s = &d->stream;

    if (event != STREAM_BAD && d->merge_count > 0 &&
        (event == STREAM_TEXT) != d->merges_are_texts)
        return wrong_type(d, "merges are strings or pairs, not both", err);
    if (event == STREAM_TEXT) {
        const char *gap = memchr(s->text, ' ', s->len);
        size_t first = gap ? (size_t)(gap - s->text) : 0;

        if (!gap || memchr(gap + 1, ' ', s->len - first - 1))
            return wrong_type(d, "a merge has not exactly one space", err);
        keep_text(d, s->text, first, &m->at[0], &m->len[0]);
        keep_text(d, gap + 1, s->len - first - 1, &m->at[1], &m->len[1]);
        return 0;
    }
    if (event != STREAM_LIST)
        return wrong_type(d, "a merge is neither a string nor a pair", err);
    for (int i = 0; i < 3; i++) {
        event = json_stream_next(s, err);
        if (event == STREAM_BAD)
            return -1;
        if (event != (i < 2 ? STREAM_TEXT : STREAM_LIST_END))
            return wrong_type(d, "a merge is not two strings", err);
        if (i < 2)
            keep_text(d, s->text, s->len, &m->at[i], &m->len[i]);
    }
    return 0;
}

/* The first line of a merges file, which upstream leaves out wherever it is. */
static bool is_heading(const struct json_stream *s, enum json_event event)
{
    static const char heading[] = "#version";

    return event == STREAM_TEXT && s->len >= strlen(heading) &&
           memcmp(s->text, heading, strlen(heading)) == 0;
}

static int read_merges(struct draft *d, struct err *err)
{
    struct json_stream *s = &d->stream;
    enum json_event event = json_stream_next(s, err);

    if (event != STREAM_LIST)
        return event == STREAM_BAD ? -1 : wrong_type(d, "not a list", err);
    for (;;) {
        event = json_stream_next(s, err);
        if (event == STREAM_BAD)
            return -1;
        if (event == STREAM_LIST_END)
            return 0;
        if (d->merge_count == d->merge_cap) {
            d->merge_cap = d->merge_cap ? d->merge_cap * 2 : 1024;
            d->merges = xrealloc(d->merges, d->merge_cap * sizeof(*d->merges));
        }
        if (is_heading(s, event))
            continue;
        if (read_merge(d, event, &d->merges[d->merge_count], err))
            return -1;
        d->merges_are_texts = event == STREAM_TEXT;
        d->merge_count++;
    }
}

static int read_vocab(struct draft *d, struct err *err)
{
    enum json_event event = json_stream_next(&d->stream, err);

    if (event == STREAM_OBJECT)
        return read_vocab_map(d, err);
    if (event == STREAM_LIST)
        return read_vocab_list(d, err);
    return event == STREAM_BAD ? -1 : wrong_type(d, "not a vocabulary", err);
}

static int read_text(struct draft *d, char **out, struct err *err)
{
    enum json_event event = json_stream_next(&d->stream, err);

    if (event == STREAM_NOTHING)
        return 0;
    if (event != STREAM_TEXT)
        return event == STREAM_BAD ? -1 : wrong_type(d, "not a string", err);
    if (memchr(d->stream.text, '\0', d->stream.len))
        return wrong_type(d, "holds a NUL", err);
    *out = xstrndup(d->stream.text, d->stream.len);
    return 0;
}

static int read_flag(struct draft *d, bool *out, struct err *err)
{
    enum json_event event = json_stream_next(&d->stream, err);

    if (event == STREAM_NOTHING) {
        d->null_flag = out;
        return 0;
    }
    if (event != STREAM_TRUTH)
        return event == STREAM_BAD ? -1
                                   : wrong_type(d, "not true or false", err);
    *out = d->stream.text[0] == 't';
    return 0;
}

static int read_dropout(struct draft *d, struct err *err)
{
    enum json_event event = json_stream_next(&d->stream, err);
    bool is_zero = true;

    if (event == STREAM_NOTHING)
        return 0;
    if (event != STREAM_NUMBER)
        return event == STREAM_BAD ? -1 : wrong_type(d, "not a number", err);
    for (size_t i = 0; i < d->stream.len; i++)
        if (d->stream.text[i] == 'e' || d->stream.text[i] == 'E')
            break;
        else if (d->stream.text[i] >= '1' && d->stream.text[i] <= '9')
            is_zero = false;
    return is_zero ? 0
                   : json_stream_fail(
                         &d->stream, ERR_UNSUPPORTED, err, "a dropout of %.*s",
                         (int)(d->stream.len < 60 ? d->stream.len : 60),
                         d->stream.text);
}

static int read_unk_id(struct draft *d, struct err *err)
{
    enum json_event event = json_stream_next(&d->stream, err);
    size_t id;

    if (event == STREAM_NOTHING)
        return 0;
    if (event != STREAM_NUMBER)
        return event == STREAM_BAD ? -1 : wrong_type(d, "not a number", err);
    if (parse_id(d, &id, err))
        return -1;
    d->unk_id = (int64_t)id;
    return 0;
}

/* For the ledger: a value that is read over, one that was just read, and of
 * the large ones how many there were. */
static int keep_skipped(struct draft *d, json_t *object, const char *key,
                        struct err *err)
{
    size_t from, to;

    d->stream.unique = true;
    if (json_stream_skip(&d->stream, &from, &to, err))
        return -1;
    d->stream.unique = false;
    json_t *value = json_parse(d->file + from, to - from, err);
    json_object_set_new(object, key, value);
    return value ? 0 : -1;
}

static void keep_setting(struct draft *d, const char *key)
{
    const struct json_stream *s = &d->stream;
    struct err why = ERR_INIT;
    bool is_vocab = strcmp(key, "vocab") == 0;
    json_t *value;

    if (json_object_get(d->settings, key))
        return;
    if (is_vocab || strcmp(key, "merges") == 0)
        value = json_sprintf("%zu %s",
                             is_vocab ? d->model->vocab.count : d->merge_count,
                             is_vocab ? "tokens" : "merges");
    else
        value = json_parse(d->file + s->start, s->at - s->start, &why);
    json_object_set_new(d->settings, key, value ? value : json_null());
}

static int read_model_value(struct tokenizer *t, struct draft *d,
                            const char *key, struct err *err)
{
    struct model *m = d->model;

    if (strcmp(key, "type") == 0)
        return read_text(d, &d->model_type, err);
    if (strcmp(key, "vocab") == 0) {
        d->has_vocab = true;
        return read_vocab(d, err);
    }
    if (strcmp(key, "merges") == 0) {
        d->has_merges = true;
        return read_merges(d, err);
    }
    if (strcmp(key, "dropout") == 0)
        return read_dropout(d, err);
    if (strcmp(key, "unk_token") == 0)
        return read_text(d, &m->unk_token, err);
    if (strcmp(key, "unk_id") == 0)
        return read_unk_id(d, err);
    if (strcmp(key, "continuing_subword_prefix") == 0)
        return read_text(d, &m->prefix, err);
    if (strcmp(key, "end_of_word_suffix") == 0)
        return read_text(d, &m->suffix, err);
    if (strcmp(key, "fuse_unk") == 0)
        return read_flag(d, &m->fuse_unk, err);
    if (strcmp(key, "byte_fallback") == 0)
        return read_flag(d, &m->byte_fallback, err);
    if (strcmp(key, "ignore_merges") == 0)
        return read_flag(d, &m->ignore_merges, err);
    tokenizer_warn(t, "model: unknown key '%s'", key);
    return keep_skipped(d, d->settings, key, err);
}

/* Keys seen so far, so that a second one is refused. */
struct seen {
    char *names[64];
    size_t count;
};

static int note_key(struct draft *d, struct seen *seen, char **key,
                    struct err *err)
{
    *key = xstrndup(d->stream.text, d->stream.len);
    for (size_t i = 0; i < seen->count; i++)
        if (strcmp(seen->names[i], *key) == 0) {
            json_stream_fail(&d->stream, ERR_INPUT, err, "duplicate key '%s'",
                             *key);
            free(*key);
            return -1;
        }
    if (seen->count == 64) {
        free(*key);
        return wrong_type(d, "more than 64 keys", err);
    }
    seen->names[seen->count++] = *key;
    return 0;
}

static void forget_keys(struct seen *seen)
{
    for (size_t i = 0; i < seen->count; i++)
        free(seen->names[i]);
}

static int read_model(struct tokenizer *t, struct draft *d, struct err *err)
{
    struct seen seen = {0};
    enum json_event event = json_stream_next(&d->stream, err);
    int ret = event == STREAM_OBJECT ? 0 : -1;

    if (event != STREAM_OBJECT && event != STREAM_BAD)
        wrong_type(d, "not an object", err);
    d->has_model = true;
    while (ret == 0) {
        char *key;

        event = json_stream_next(&d->stream, err);
        if (event == STREAM_OBJECT_END)
            break;
        if (event == STREAM_BAD || note_key(d, &seen, &key, err)) {
            ret = -1;
            break;
        }
        ret = read_model_value(t, d, key, err);
        if (ret)
            err_in(err, "%s", key);
        else
            keep_setting(d, key);
    }
    forget_keys(&seen);
    return ret;
}

static int read_part(struct draft *d, enum part part, struct err *err)
{
    size_t from, to;

    d->stream.unique = true;
    if (json_stream_skip(&d->stream, &from, &to, err))
        return -1;
    d->stream.unique = false;
    json_t *value = json_parse(d->file + from, to - from, err);
    json_object_set_new(d->document, part_names[part], value);
    if (part == ADDED && json_is_null(value))
        return err_set(err, ERR_INPUT, "not a list");
    if (value && !json_is_null(value))
        d->parts[part] = json_incref(value);
    return value ? 0 : -1;
}

static int read_version(struct draft *d, struct err *err)
{
    enum json_event event = json_stream_next(&d->stream, err);

    d->has_version = true;
    if (event == STREAM_BAD)
        return -1;
    if (event != STREAM_TEXT || !key_is(&d->stream, "1.0"))
        return json_stream_fail(&d->stream, ERR_UNSUPPORTED, err,
                                "not \"1.0\"");
    json_object_set_new(d->document, "version", json_string("1.0"));
    return 0;
}

static int read_top_value(struct tokenizer *t, struct draft *d, const char *key,
                          struct err *err)
{
    if (strcmp(key, "version") == 0)
        return read_version(d, err);
    if (strcmp(key, "model") == 0)
        return read_model(t, d, err);
    for (enum part part = ADDED; part <= DECODER; part++)
        if (strcmp(key, part_names[part]) == 0)
            return read_part(d, part, err);
    if (keep_skipped(d, d->document, key, err))
        return -1;
    bool is_known =
        strcmp(key, "truncation") == 0 || strcmp(key, "padding") == 0;
    if (!is_known)
        tokenizer_warn(t, "unknown key '%s'", key);
    else if (json_has(d->document, key) &&
             !json_is_object(json_object_get(d->document, key)))
        return err_set(err, ERR_INPUT, "not an object");
    else if (json_has(d->document, key))
        tokenizer_warn(t, "'%s' does not apply here", key);
    return 0;
}

static int read_document(struct tokenizer *t, struct draft *d, struct err *err)
{
    struct seen seen = {0};
    enum json_event event = json_stream_next(&d->stream, err);
    int ret = event == STREAM_OBJECT ? 0 : -1;

    if (event != STREAM_OBJECT && event != STREAM_BAD)
        wrong_type(d, "not an object", err);
    while (ret == 0) {
        char *key;

        event = json_stream_next(&d->stream, err);
        if (event == STREAM_OBJECT_END)
            break;
        if (event == STREAM_BAD || note_key(d, &seen, &key, err)) {
            ret = -1;
            break;
        }
        ret = read_top_value(t, d, key, err);
        if (ret)
            err_in(err, "%s", key);
    }
    forget_keys(&seen);
    if (ret == 0)
        ret = json_stream_next(&d->stream, err) == STREAM_DONE ? 0 : -1;
    return ret;
}

/* -- putting it together -- */

static int get_flag(const json_t *token, const char *key, bool *out,
                    struct err *err)
{
    return json_get_bool(token, key, out, err);
}

static int read_added_token(struct tokenizer *t, json_t *value,
                            int64_t *counter, struct err *err)
{
    struct added_token token = {0};
    const char *content;
    int64_t id;

    if (!json_is_object(value))
        return err_set(err, ERR_INPUT, "not an object");
    if (json_get_int(value, "id", &id, err) ||
        json_get_str(value, "content", &content, err) ||
        get_flag(value, "single_word", &token.single_word, err) ||
        get_flag(value, "lstrip", &token.lstrip, err) ||
        get_flag(value, "rstrip", &token.rstrip, err) ||
        get_flag(value, "normalized", &token.normalized, err) ||
        get_flag(value, "special", &token.special, err))
        return -1;
    token.len = json_string_length(json_object_get(value, "content"));
    if (token.len == 0)
        return err_set(err, ERR_INPUT, "'content' is empty");
    if (token.len > MAX_ADDED_LEN)
        return err_set(err, ERR_INPUT, "'content' is longer than %d bytes",
                       MAX_ADDED_LEN);
    if (!trie_put(t->added.all, content, token.len, (uint32_t)t->added.count))
        return err_set(err, ERR_INPUT, "'%s' occurs twice", content);
    token.id = vocab_find_raw(&t->model->vocab, t->model->is_byte_level,
                              content, token.len);
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

static int read_added(struct tokenizer *t, json_t *list, struct err *err)
{
    int64_t counter = (int64_t)t->model->vocab.count;
    size_t n = list ? json_array_size(list) : 0;

    if (list && !json_is_array(list))
        return err_set(err, ERR_INPUT, "not a list");
    t->added.all = trie_new();
    t->added.items = xcalloc(n, sizeof(*t->added.items));
    for (size_t i = 0; i < n; i++)
        if (read_added_token(t, json_array_get(list, i), &counter, err))
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

bool chain_is_byte_level(const struct chain *c, const struct model *m)
{
    size_t n = c->pre_tokenizer.count, byte_levels = 0;

    for (size_t i = 0; i < n; i++)
        byte_levels += c->pre_tokenizer.items[i].kind == STEP_BYTE_LEVEL;
    return m->kind == MODEL_BPE && byte_levels == 1 &&
           c->pre_tokenizer.items[n - 1].kind == STEP_BYTE_LEVEL &&
           !m->prefix && !m->suffix;
}

/* A component's section; NULL when there is none. */
static int part_section(const struct section *root, enum part part,
                        const struct section **out, struct err *err)
{
    const json_t *value = config_value(root, part_names[part]);

    *out = NULL;
    if (!value)
        return 0;
    if (!json_is_object(value))
        return err_set(err, ERR_INPUT, "not an object");
    return config_get_section(root, part_names[part], out, err);
}

static int read_chain(struct tokenizer *t, const struct section *root,
                      struct err *err)
{
    struct chain *c = &t->chain;
    const struct section *s;

    if (part_section(root, NORMALIZER, &s, err) ||
        (s && steps_read_normalizer(s, &c->normalizer, err)))
        return err_in(err, "normalizer");
    if (part_section(root, PRE_TOKENIZER, &s, err) ||
        (s && steps_read_pre_tokenizer(s, &c->pre_tokenizer, err)))
        return err_in(err, "pre_tokenizer");
    if (part_section(root, DECODER, &s, err) ||
        (s && steps_read_decoder(s, &c->decoder, err)))
        return err_in(err, "decoder");
    c->has_decoder = s != NULL;
    if (part_section(root, POST_PROCESSOR, &s, err) ||
        (s && frames_read(s, &t->frames, err)))
        return err_in(err, "post_processor");
    return 0;
}

/* What was read as it streamed by. */
static void note_streamed(const struct section *root, enum model_kind kind)
{
    static const char *const both[] = {"type", "vocab"};
    static const char *const flags[] = {"byte_fallback", "fuse_unk",
                                        "ignore_merges"};
    static const char *const bpe[] = {"merges", "dropout", "unk_token",
                                      "continuing_subword_prefix",
                                      "end_of_word_suffix"};
    const struct section *model;
    struct err why = ERR_INIT;

    config_value(root, "version");
    config_value(root, part_names[ADDED]);
    config_ignore(root, (const char *const[]){"truncation", "padding", NULL});
    if (config_section(root, "model", &model, &why) || !model)
        return;
    for (size_t i = 0; i < sizeof(both) / sizeof(both[0]); i++)
        config_value(model, both[i]);
    if (kind == MODEL_UNIGRAM)
        config_value(model, "unk_id");
    size_t count = sizeof(bpe) / sizeof(bpe[0]);
    for (size_t i = 0; kind == MODEL_BPE && i < count; i++)
        config_value(model, bpe[i]);
    count = kind == MODEL_BPE ? sizeof(flags) / sizeof(flags[0]) : 1;
    for (size_t i = 0; i < count; i++) {
        if (!config_has(model, flags[i]))
            config_default(model, flags[i], json_false());
        config_value(model, flags[i]);
    }
}

static void drop_empty(char **text)
{
    if (*text && **text == '\0') {
        free(*text);
        *text = NULL;
    }
}

static int check_model(struct draft *d, struct err *err)
{
    struct model *m = d->model;

    if (!d->has_vocab)
        return err_set(err, ERR_INPUT, "no 'vocab'");
    if (d->model_type && strcmp(d->model_type, "BPE") != 0 &&
        strcmp(d->model_type, "Unigram") != 0)
        return err_set(err, ERR_UNSUPPORTED, "unknown type '%s'",
                       d->model_type);
    bool is_unigram = d->model_type ? strcmp(d->model_type, "Unigram") == 0
                                    : d->vocab_is_list && !d->has_merges;
    if (!d->model_type && !is_unigram && !d->has_merges)
        return err_set(err, ERR_UNSUPPORTED,
                       "neither a 'type' nor 'merges' say which model it is");
    if (is_unigram != d->vocab_is_list)
        return err_set(err, ERR_INPUT, "'vocab' is not what the type needs");
    if (!is_unigram && !d->has_merges)
        return err_set(err, ERR_INPUT, "no 'merges'");
    m->kind = is_unigram ? MODEL_UNIGRAM : MODEL_BPE;
    if (is_unigram && d->null_flag == &m->byte_fallback)
        return err_set(err, ERR_INPUT, "'byte_fallback' is null");
    drop_empty(&m->prefix);
    drop_empty(&m->suffix);
    for (const char *at = m->prefix; at && *at; at++)
        if ((unsigned char)*at >= 0x80)
            return err_set(err, ERR_UNSUPPORTED,
                           "a continuing_subword_prefix outside ASCII");
    m->has_unk = m->unk_token != NULL;
    return 0;
}

static int finish(struct tokenizer *t, struct draft *d,
                  const struct section *root, struct err *err)
{
    struct model *m = d->model;

    if (!d->has_version)
        return err_set(err, ERR_INPUT, "no 'version'");
    if (!d->has_model)
        return err_set(err, ERR_INPUT, "no 'model'");
    if (check_model(d, err))
        return err_in(err, "model");
    note_streamed(root, m->kind);
    if (read_chain(t, root, err))
        return -1;
    m->is_byte_level = t->chain.is_byte_level =
        chain_is_byte_level(&t->chain, m);
    if (vocab_index(&m->vocab, m->is_byte_level, err))
        return err_in(err, "model");
    if (m->kind == MODEL_BPE) {
        if (bpe_load_merges(m, d->merges, d->merge_count, d->file,
                            d->decoded.data, err))
            return err_in(err, "model");
        model_finish_bpe(m);
    } else if (unigram_finish(m, d->unk_id, err)) {
        return err_in(err, "model");
    }
    if (read_added(t, d->parts[ADDED], err))
        return err_in(err, "added_tokens");
    return added_index(t, err);
}

/* Does nothing but `trim_offsets`, which moves no id, tell the two apart? */
static bool is_equal_part(const json_t *a, const json_t *b)
{
    json_t *x = a ? json_deep_copy(a) : json_null();
    json_t *y = b ? json_deep_copy(b) : json_null();
    json_t *two[2] = {x, y};

    for (int i = 0; i < 2; i++) {
        const json_t *list = json_object_get(two[i], "pretokenizers");

        json_object_del(two[i], "trim_offsets");
        for (size_t k = 0; k < json_array_size(list); k++)
            json_object_del(json_array_get(list, k), "trim_offsets");
    }
    bool is_equal = json_equal(x, y);
    json_decref(x);
    json_decref(y);
    return is_equal;
}

static bool is_decoder_of(const json_t *a, const json_t *b)
{
    const char *x = json_string_value(json_object_get(a, "type"));
    const char *y = json_string_value(json_object_get(b, "type"));

    /* ByteLevel's keys have no effect in a decoder. */
    if (x && y && strcmp(x, "ByteLevel") == 0 && strcmp(y, "ByteLevel") == 0)
        return true;
    return is_equal_part(a, b);
}

static bool is_rebuilt_same(const struct draft *d, const struct rebuild *r)
{
    const struct model *m = d->model;

    return is_equal_part(d->parts[NORMALIZER], r->normalizer) &&
           is_equal_part(d->parts[PRE_TOKENIZER], r->pre_tokenizer) &&
           is_decoder_of(d->parts[DECODER], r->decoder) &&
           m->fuse_unk == r->fuse_unk && m->byte_fallback == r->byte_fallback &&
           !m->ignore_merges && !m->unk_token;
}

static void replace_part(struct draft *d, enum part part, json_t *by)
{
    json_decref(d->parts[part]);
    d->parts[part] = by ? json_incref(by) : NULL;
    json_object_set(d->document, part_names[part], by ? by : json_null());
}

static void rebuild_draft(struct draft *d, const struct rebuild *as)
{
    replace_part(d, NORMALIZER, as->normalizer);
    replace_part(d, PRE_TOKENIZER, as->pre_tokenizer);
    replace_part(d, DECODER, as->decoder);
    d->model->fuse_unk = as->fuse_unk;
    d->model->byte_fallback = as->byte_fallback;
    d->model->ignore_merges = false;
    free(d->model->unk_token);
    d->model->unk_token = NULL;
}

/* The whole file in one piece of memory, sized once. */
static int read_file(const char *path, struct buf *out, struct err *err)
{
    int64_t size;
    int fd = io_open(path, &size, err), ret = -1;

    if (fd < 0)
        return -1;
    if (size > FILE_CAP) {
        err_set(err, ERR_INPUT, "%s: longer than %d bytes", path, FILE_CAP);
    } else {
        buf_reserve(out, (size_t)size);
        ret = io_pread(fd, path, out->data, (size_t)size, 0, err);
        out->len = ret ? 0 : (size_t)size;
    }
    close(fd);
    return ret;
}

int tokenizer_load(struct tokenizer *t, const char *path,
                   const struct rebuild *as, const struct rebuild *against,
                   bool *is_same, struct err *err)
{
    struct draft d = {
        .unk_id = -1, .document = json_object(), .settings = json_object()};
    struct buf file = BUF_INIT;
    int ret = -1;

    d.model = t->model = xcalloc(1, sizeof(*t->model));
    if (read_file(path, &file, err))
        goto out;
    d.file = file.data ? file.data : "";
    json_stream_init(&d.stream, d.file, file.len);
    if (read_document(t, &d, err) == 0) {
        if (against)
            *is_same = is_rebuilt_same(&d, against);
        if (as)
            rebuild_draft(&d, as);
        if (d.has_model)
            json_object_set(d.document, "model", d.settings);
        struct config *config = config_new(path, json_incref(d.document));
        ret = finish(t, &d, config_root(config), err);
        if (t->ledger)
            ledger_put(t->ledger, "tokenizer.json", config);
        else
            config_close(config);
    }
    if (ret)
        err_in(err, "%s", path);
    json_stream_release(&d.stream);
out:
    for (int i = 0; i < 5; i++)
        json_decref(d.parts[i]);
    json_decref(d.document);
    json_decref(d.settings);
    buf_release(&d.decoded);
    free(d.merges);
    free(d.model_type);
    buf_release(&file);
    return ret;
}
