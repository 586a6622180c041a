/*
 * The model's section of a tokenizer.json.  Merges are looked up as they stream
 * by when vocabulary and prefix stand before them, as upstream writes them;
 * else once the document has ended.
 */
#include "base/mem.h"
#include "tokenizer/draft.h"
#include "tokenizer/score.h"

#include <stdlib.h>

/* Gives a text that was kept its id. */
static int put_token(struct draft *d, size_t id, size_t at, size_t len,
                     struct err *err)
{
    return vocab_put(&d->model->vocab, id, at, len, err)
               ? json_stream_in(&d->stream, err)
               : 0;
}

static int parse_id(const struct draft *d, size_t *out, struct err *err)
{
    const struct json_stream *s = &d->stream;

    *out = 0;
    for (size_t i = 0; i < s->len; i++) {
        if (s->text[i] < '0' || s->text[i] > '9' || i > 9)
            return draft_wrong(d, "an id is not a small whole number", err);
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
        size_t at, len = s->len, id;

        if (event == STREAM_OBJECT_END)
            return 0;
        if (event != STREAM_KEY)
            return -1;
        at = vocab_add_text(v, s->text, len);
        event = json_stream_next(s, err);
        if (event == STREAM_BAD)
            return -1;
        if (event != STREAM_NUMBER)
            return draft_wrong(d, "an id is not a number", err);
        if (parse_id(d, &id, err) || put_token(d, id, at, len, err))
            return -1;
    }
}

/* [["token", score], ...] */
static int read_vocab_list(struct draft *d, struct err *err)
{
    struct json_stream *s = &d->stream;
    struct vocab *v = &d->model->vocab;

    d->vocab_is_list = true;
    for (size_t id = 0;; id++) {
        enum json_event event = json_stream_next(s, err);
        size_t at, len;
        double score;

        if (event == STREAM_LIST_END)
            return 0;
        if (event == STREAM_LIST)
            event = json_stream_next(s, err);
        else if (event != STREAM_BAD)
            return draft_wrong(d, "an item is not a token and its score", err);
        if (event != STREAM_TEXT)
            return event == STREAM_BAD
                       ? -1
                       : draft_wrong(d, "a token is not a string", err);
        len = s->len;
        at = vocab_add_text(v, s->text, len);
        event = json_stream_next(s, err);
        if (event != STREAM_NUMBER)
            return event == STREAM_BAD
                       ? -1
                       : draft_wrong(d, "a score is not a number", err);
        if (!score_read(s->text, s->len, &score))
            return draft_wrong(d, "a score is out of range", err);
        if (put_token(d, id, at, len, err))
            return -1;
        if (id >= d->score_cap) {
            d->score_cap = d->score_cap ? d->score_cap * 2 : 1024;
            d->model->scores = xrealloc(
                d->model->scores, d->score_cap * sizeof(*d->model->scores));
        }
        d->model->scores[id] = score;
        event = json_stream_next(s, err);
        if (event != STREAM_LIST_END)
            return event == STREAM_BAD
                       ? -1
                       : draft_wrong(d, "more than a token and its score", err);
    }
}

/* One merge: "a b", or ["a", "b"]. */
static int read_merge(struct draft *d, enum json_event event, struct merges *m,
                      struct err *err)
{
    struct json_stream *s = &d->stream;

    if (event == STREAM_TEXT) {
        const char *gap = memchr(s->text, ' ', s->len);
        size_t first = gap ? (size_t)(gap - s->text) : 0;

        if (!gap || memchr(gap + 1, ' ', s->len - first - 1))
            return draft_wrong(d, "a merge has not exactly one space", err);
        merges_part(m, 0, s->text, first);
        merges_part(m, 1, gap + 1, s->len - first - 1);
        return 0;
    }
    if (event != STREAM_LIST)
        return draft_wrong(d, "a merge is neither a string nor a pair", err);
    for (int i = 0; i < 3; i++) {
        event = json_stream_next(s, err);
        if (event == STREAM_BAD)
            return -1;
        if (event != (i < 2 ? STREAM_TEXT : STREAM_LIST_END))
            return draft_wrong(d, "a merge is not two strings", err);
        if (i < 2)
            merges_part(m, i, s->text, s->len);
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

static int read_merge_list(struct draft *d, struct merges *m, struct err *err)
{
    struct json_stream *s = &d->stream;
    enum json_event event = json_stream_next(s, err), kind = STREAM_BAD;

    if (event != STREAM_LIST)
        return event == STREAM_BAD ? -1 : draft_wrong(d, "not a list", err);
    for (;;) {
        event = json_stream_next(s, err);
        if (event == STREAM_BAD)
            return -1;
        if (event == STREAM_LIST_END)
            return merges_end(m, err);
        if (is_heading(s, event))
            continue;
        if (kind != STREAM_BAD && event != kind)
            return draft_wrong(d, "merges are strings or pairs, not both", err);
        kind = event;
        if (read_merge(d, event, m, err) || merges_add(m, err))
            return -1;
    }
}

static int read_merges(struct draft *d, struct err *err)
{
    struct model *model = d->model;
    struct merges *m =
        merges_new(&model->vocab, &model->pairs,
                   model->prefix ? strlen(model->prefix) : 0, err);

    if (!m)
        return -1;
    int ret = read_merge_list(d, m, err);
    d->merge_count = merges_count(m);
    d->merges_are_read = true;
    merges_free(m);
    return ret;
}

/* The list, at once if all is there that it needs. */
static int meet_merges(struct draft *d, struct err *err)
{
    d->has_merges = true;
    d->merges_from = json_stream_offset(&d->stream);
    return d->has_vocab && d->has_prefix && !d->vocab_is_list
               ? read_merges(d, err)
               : json_stream_skip(&d->stream, err);
}

int draft_read_merges(struct draft *d, struct err *err)
{
    bool is_due = d->has_merges && d->has_vocab && !d->vocab_is_list;

    if (!is_due || d->merges_are_read)
        return 0;
    json_stream_seek(&d->stream, d->merges_from);
    return read_merges(d, err) ? err_in(err, "model: merges") : 0;
}

static int read_vocab(struct draft *d, struct err *err)
{
    enum json_event event = json_stream_next(&d->stream, err);
    int ret = -1;

    d->has_vocab = true;
    if (event == STREAM_OBJECT)
        ret = read_vocab_map(d, err);
    else if (event == STREAM_LIST)
        ret = read_vocab_list(d, err);
    else if (event != STREAM_BAD)
        draft_wrong(d, "not a vocabulary", err);
    return ret ? -1 : vocab_index(&d->model->vocab, err);
}

static int read_text(struct draft *d, char **out, struct err *err)
{
    enum json_event event = json_stream_next(&d->stream, err);

    if (event == STREAM_NOTHING)
        return 0;
    if (event != STREAM_TEXT)
        return event == STREAM_BAD ? -1 : draft_wrong(d, "not a string", err);
    if (memchr(d->stream.text, '\0', d->stream.len))
        return draft_wrong(d, "holds a NUL", err);
    *out = xstrndup(d->stream.text, d->stream.len);
    return 0;
}

static int read_type(struct draft *d, struct err *err)
{
    if (read_text(d, &d->model_type, err))
        return -1;
    return d->model_type ? 0 : draft_wrong(d, "is null", err);
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
                                   : draft_wrong(d, "not true or false", err);
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
        return event == STREAM_BAD ? -1 : draft_wrong(d, "not a number", err);
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
        return event == STREAM_BAD ? -1 : draft_wrong(d, "not a number", err);
    if (parse_id(d, &id, err))
        return -1;
    d->unk_id = (int64_t)id;
    return 0;
}

/* For the ledger: a value that was just read.  Of the large ones it gets to
 * know how many there are. */
static void keep_setting(struct draft *d, const char *key)
{
    struct err why = ERR_INIT;

    if (json_object_get(d->settings, key))
        return;
    json_t *value = json_stream_scalar(&d->stream, &why);
    json_object_set_new(d->settings, key, value ? value : json_null());
}

static int read_model_value(struct tokenizer *t, struct draft *d,
                            const char *key, struct err *err)
{
    struct model *m = d->model;

    if (strcmp(key, "type") == 0)
        return read_type(d, err);
    if (strcmp(key, "vocab") == 0)
        return read_vocab(d, err);
    if (strcmp(key, "merges") == 0)
        return meet_merges(d, err);
    if (strcmp(key, "dropout") == 0)
        return read_dropout(d, err);
    if (strcmp(key, "unk_token") == 0)
        return read_text(d, &m->unk_token, err);
    if (strcmp(key, "unk_id") == 0)
        return read_unk_id(d, err);
    if (strcmp(key, "continuing_subword_prefix") == 0) {
        d->has_prefix = true;
        return read_text(d, &m->prefix, err);
    }
    if (strcmp(key, "end_of_word_suffix") == 0)
        return read_text(d, &m->suffix, err);
    if (strcmp(key, "fuse_unk") == 0)
        return read_flag(d, &m->fuse_unk, err);
    if (strcmp(key, "byte_fallback") == 0)
        return read_flag(d, &m->byte_fallback, err);
    if (strcmp(key, "ignore_merges") == 0)
        return read_flag(d, &m->ignore_merges, err);
    tokenizer_warn(t, "model: unknown key '%s'", key);
    return draft_keep(d, d->settings, key, err);
}

int draft_read_model(struct tokenizer *t, struct draft *d, struct err *err)
{
    struct seen_keys seen = {0};
    const char *key;
    int ret;

    d->has_model = true;
    while ((ret = draft_next_key(d, &seen, &key, err)) == 0 && key) {
        ret = read_model_value(t, d, key, err);
        if (ret) {
            err_in(err, "%s", key);
            break;
        }
        keep_setting(d, key);
    }
    draft_forget_keys(&seen);
    return ret;
}
