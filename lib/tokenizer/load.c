/*
 * Loads a tokenizer.json: reads the document, then puts together what depends
 * on several of its parts.
 */
#include "base/mem.h"
#include "tokenizer/batching.h"
#include "tokenizer/class.h"
#include "tokenizer/draft.h"

#include <stdarg.h>
#include <stdlib.h>

const char *const draft_part_names[PARTS] = {
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

static int read_part(struct draft *d, enum part part, struct err *err)
{
    if (draft_keep(d, d->document, draft_part_names[part], err))
        return -1;
    json_t *value = json_object_get(d->document, draft_part_names[part]);
    if (part == ADDED && json_is_null(value))
        return err_set(err, ERR_INPUT, "not a list");
    if (!json_is_null(value))
        d->parts[part] = json_incref(value);
    return 0;
}

static int read_version(struct draft *d, struct err *err)
{
    enum json_event event = json_stream_next(&d->stream, err);

    d->has_version = true;
    if (event == STREAM_BAD)
        return -1;
    if (event != STREAM_TEXT || d->stream.len != 3 ||
        memcmp(d->stream.text, "1.0", 3) != 0)
        return json_stream_fail(&d->stream, ERR_UNSUPPORTED, err,
                                "not \"1.0\"");
    json_object_set_new(d->document, "version", json_string("1.0"));
    return 0;
}

static int read_batching(struct tokenizer *t, struct draft *d, const char *key,
                         int (*check)(const json_t *value, struct err *err),
                         struct err *err)
{
    if (draft_keep(d, d->document, key, err))
        return -1;
    if (!json_has(d->document, key))
        return 0;
    tokenizer_warn(t, "'%s' does not apply here", key);
    return check(json_object_get(d->document, key), err);
}

static int read_top_value(struct tokenizer *t, struct draft *d, const char *key,
                          struct err *err)
{
    if (strcmp(key, "version") == 0)
        return read_version(d, err);
    if (strcmp(key, "model") == 0)
        return draft_read_model(t, d, err);
    for (enum part part = ADDED; part < PARTS; part++)
        if (strcmp(key, draft_part_names[part]) == 0)
            return read_part(d, part, err);
    if (strcmp(key, "truncation") == 0)
        return read_batching(t, d, key, truncation_check, err);
    if (strcmp(key, "padding") == 0)
        return read_batching(t, d, key, padding_check, err);
    tokenizer_warn(t, "unknown key '%s'", key);
    return draft_keep(d, d->document, key, err);
}

static int read_document(struct tokenizer *t, struct draft *d, struct err *err)
{
    struct seen_keys seen = {0};
    const char *key;
    int ret;

    while ((ret = draft_next_key(d, &seen, &key, err)) == 0 && key) {
        ret = read_top_value(t, d, key, err);
        if (ret) {
            err_in(err, "%s", key);
            break;
        }
    }
    draft_forget_keys(&seen);
    if (ret == 0 && json_stream_next(&d->stream, err) != STREAM_DONE)
        ret = -1;
    return ret ? -1 : draft_read_merges(d, err);
}

/* -- putting it together -- */

static bool chain_is_byte_level(const struct chain *c, const struct model *m)
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
    const json_t *value = config_value(root, draft_part_names[part]);

    *out = NULL;
    if (!value)
        return 0;
    if (!json_is_object(value))
        return err_set(err, ERR_INPUT, "not an object");
    return config_get_section(root, draft_part_names[part], out, err);
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
    config_value(root, draft_part_names[ADDED]);
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

/* Components, and what the model and the added tokens (NULL: the file's) are
 * with them. */
static int put_together(struct tokenizer *t, const struct draft *d,
                        const struct section *root, struct added *added,
                        struct err *err)
{
    struct model *m = t->model;

    note_streamed(root, m->kind);
    if (read_chain(t, root, err))
        return -1;
    m->is_byte_level = t->chain.is_byte_level =
        chain_is_byte_level(&t->chain, m);
    if (m->kind == MODEL_BPE)
        model_finish_bpe(m);
    else if (unigram_finish(m, d->unk_id, err))
        return err_in(err, "model");
    if (added) {
        t->added = *added;
        *added = (struct added){0};
    } else if (added_read(&t->added, m, d->parts[ADDED], err)) {
        return err_in(err, "added_tokens");
    }
    return added_index(&t->added, &t->chain.normalizer, err);
}

int draft_finish(struct tokenizer *t, const struct draft *d, const char *path,
                 struct added *added, struct err *err)
{
    struct config *config = config_new(path, json_incref(d->document));
    int ret = put_together(t, d, config_root(config), added, err);

    if (t->ledger)
        ledger_put(t->ledger, "tokenizer.json", config);
    else
        config_close(config);
    return ret;
}

/* For the ledger: of what is large, how many there are. */
static void keep_counts(struct draft *d)
{
    if (d->has_vocab)
        json_object_set_new(d->settings, "vocab",
                            json_sprintf("%zu tokens", d->model->vocab.count));
    if (d->merges_are_read)
        json_object_set_new(d->settings, "merges",
                            json_sprintf("%zu merges", d->merge_count));
}

static int check_draft(struct draft *d, struct err *err)
{
    if (!d->has_version)
        return err_set(err, ERR_INPUT, "no 'version'");
    if (!d->has_model)
        return err_set(err, ERR_INPUT, "no 'model'");
    json_object_set(d->document, "model", d->settings);
    keep_counts(d);
    return check_model(d, err) ? err_in(err, "model") : 0;
}

/* The document, once, and what the file means by itself. */
static int load_file(struct tokenizer *t, struct draft *d, const char *path,
                     struct err *err)
{
    int ret = read_document(t, d, err);

    if (ret == 0)
        ret = check_draft(d, err);
    if (ret == 0)
        ret = draft_finish(t, d, path, NULL, err);
    return ret ? err_in(err, "%s", path) : 0;
}

int tokenizer_load(struct tokenizer *t, const char *path, struct err *err)
{
    struct draft d = {
        .unk_id = -1, .document = json_object(), .settings = json_object()};
    struct rebuild by = {0};
    bool is_known = false;
    int ret = -1;

    t->added.is_0_23 = class_version(t->transformers) == CLASS_5_24;
    d.model = t->model = xcalloc(1, sizeof(*t->model));
    if (json_stream_open(&d.stream, path, JSON_WINDOW, err) ||
        class_read(t, path, &by, &is_known, err) || load_file(t, &d, path, err))
        goto out;
    t->cleans_up = is_known && (t->model->kind == MODEL_BPE ? by.cleans_up_bpe
                                                            : by.cleans_up);
    ret = is_known && t->rule != TOKENIZER_FILE
              ? draft_follow_class(t, &d, &by, path, err)
              : 0;
out:
    for (int i = 0; i < PARTS; i++)
        json_decref(d.parts[i]);
    json_decref(d.document);
    json_decref(d.settings);
    free(d.model_type);
    rebuild_release(&by);
    json_stream_release(&d.stream);
    return ret;
}
