/* Text to ids: the order of work and its scratch memory; opening and asking. */
#include "tokenizer/tokenizer.h"

#include "base/bug.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/utf8.h"
#include "tokenizer/tokenizer_internal.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_CAP = 1 << 30 };

void token_ids_init(struct token_ids *ids)
{
    *ids = (struct token_ids){0};
}

void token_ids_release(struct token_ids *ids)
{
    free(ids->ids);
    free(ids->starts);
    free(ids->ends);
    *ids = (struct token_ids){.want_places = ids->want_places};
}

static void put_id(struct token_ids *out, int64_t id, struct span from)
{
    if (out->count == out->cap) {
        out->cap = out->cap ? out->cap * 2 : 64;
        out->ids = xrealloc(out->ids, out->cap * sizeof(*out->ids));
        if (out->want_places) {
            out->starts =
                xrealloc(out->starts, out->cap * sizeof(*out->starts));
            out->ends = xrealloc(out->ends, out->cap * sizeof(*out->ends));
        }
    }
    if (out->want_places) {
        out->starts[out->count] = from.start;
        out->ends[out->count] = from.end;
    }
    out->ids[out->count++] = id;
}

/* -- scratch -- */

static struct scratch *scratch_new(const struct tokenizer *t)
{
    struct scratch *s = xcalloc(1, sizeof(*s));

    s->match = pattern_scratch_new();
    s->stage_count = 2 * t->chain.pre_tokenizer.count;
    s->stage = xcalloc(s->stage_count, sizeof(*s->stage));
    return s;
}

static void scratch_free(struct scratch *s)
{
    if (!s)
        return;
    pattern_scratch_free(s->match);
    made_release(&s->normal[0]);
    made_release(&s->normal[1]);
    for (size_t i = 0; i < s->stage_count; i++)
        made_release(&s->stage[i]);
    free(s->stage);
    model_work_release(&s->work);
    free(s);
}

static struct scratch *take_scratch(const struct tokenizer *t)
{
    struct scratch *s = atomic_exchange(t->spare, NULL);

    return s ? s : scratch_new(t);
}

static void give_back(const struct tokenizer *t, struct scratch *s)
{
    scratch_free(atomic_exchange(t->spare, s));
}

/* -- the order of work for one text -- */

struct work {
    const struct tokenizer *t;
    struct scratch *scratch;
    struct piece now; /* what is being cut */
    struct token_ids *out;
};

static int each_piece(void *arg, const struct piece *p, struct err *err)
{
    struct work *w = arg;
    struct model_work *tokens = &w->scratch->work;
    size_t at = 0;

    if (model_encode(w->t->model, tokens, p->text, p->len, err))
        return -1;
    for (size_t i = 0; i < tokens->token_count; i++) {
        size_t end = at + tokens->tokens[i].len;
        struct span from = {0, 0};

        if (end > p->len)
            end = p->len; /* a fallback for a prefixed symbol */
        if (w->out->want_places)
            from = piece_span(p, at < end ? at : end, end);
        put_id(w->out, tokens->tokens[i].id, from);
        at = end;
    }
    return 0;
}

static int each_normalized(void *arg, const struct added_token *token,
                           size_t start, size_t end, struct err *err)
{
    struct work *w = arg;
    struct piece part = piece_part(&w->now, start, end);

    if (!token)
        return pre_tokenize(&w->t->chain, &part, w->scratch, each_piece, w,
                            err);
    put_id(w->out, token->id, piece_span(&w->now, start, end));
    return 0;
}

static int each_raw(void *arg, const struct added_token *token, size_t start,
                    size_t end, struct err *err)
{
    struct work *outer = arg, w = *outer;
    struct piece part = piece_part(&outer->now, start, end);

    if (token) {
        put_id(w.out, token->id, piece_span(&outer->now, start, end));
        return 0;
    }
    if (normalize(&w.t->chain.normalizer, &part, w.scratch->normal,
                  w.scratch->match, &w.scratch->growth, &w.now, err))
        return -1;
    return added_cut(&w.t->added, w.t->added.normalized, w.now.text, w.now.len,
                     each_normalized, &w, err);
}

static int each_chunk(void *arg, size_t start, size_t end, struct err *err)
{
    struct work *whole = arg, w = *whole;

    w.now = piece_part(&whole->now, start, end);
    return added_cut(&w.t->added, w.t->added.raw, w.now.text, w.now.len,
                     each_raw, &w, err);
}

/* Puts the post-processor's tokens around what is there. */
static void put_frames(const struct tokenizer *t, size_t len,
                       struct token_ids *ids)
{
    for (size_t f = 0; f < t->frames.count; f++) {
        const struct frame *frame = &t->frames.items[f];
        struct token_ids out = {.want_places = ids->want_places};

        for (size_t i = 0; i < frame->count; i++) {
            bool is_first = i == 0;
            struct span none = {is_first ? 0 : (uint32_t)len,
                                is_first ? 0 : (uint32_t)len};

            if (frame->ids[i] >= 0) {
                put_id(&out, frame->ids[i], none);
                continue;
            }
            for (size_t k = 0; k < ids->count; k++)
                put_id(&out, ids->ids[k],
                       ids->want_places
                           ? (struct span){(uint32_t)ids->starts[k],
                                           (uint32_t)ids->ends[k]}
                           : none);
        }
        token_ids_release(ids);
        *ids = out;
    }
}

static int encode_one(const struct tokenizer *t, const char *text, size_t len,
                      bool add_special, struct token_ids *out, struct err *err)
{
    struct work w = {t, take_scratch(t), {text, len, NULL, 0}, out};

    w.scratch->growth = growth_of(len);
    int ret;

    out->count = 0;
    if (t->is_cut)
        ret = tiktoken_cut(text, len, each_chunk, &w, err);
    else
        ret = added_cut(&t->added, t->added.raw, text, len, each_raw, &w, err);
    if (ret == 0 && add_special)
        put_frames(t, len, out);
    give_back(t, w.scratch);
    return ret;
}

static int refuse_difference(const struct tokenizer *t,
                             const struct token_ids *file,
                             const struct token_ids *made, struct err *err)
{
    size_t at = 0;

    while (at < file->count && at < made->count &&
           file->ids[at] == made->ids[at])
        at++;
    long long a = at < file->count ? file->ids[at] : -1;
    long long b = at < made->count ? made->ids[at] : -1;
    return err_set(err, ERR_UNSUPPORTED,
                   "tokenizer.json gives %zu ids, tokenizer_class '%s' gives "
                   "%zu; first difference at token %zu: %lld against %lld; the "
                   "protocol must say 'tokenizer': 'file' or 'class'",
                   file->count, t->made_by, made->count, at, a, b);
}

int tokenizer_encode(const struct tokenizer *t, const char *text, size_t len,
                     bool add_special, struct token_ids *out, struct err *err)
{
    struct token_ids other = {0};
    int ret = -1;

    if (len > TEXT_CAP)
        return err_set(err, ERR_INPUT, "text is longer than %d bytes",
                       TEXT_CAP);
    if (!utf8_is_valid(text, len)) {
        size_t at = 0, n;

        while ((n = utf8_len(text + at, len - at)) > 0)
            at += n;
        return err_set(err, ERR_INPUT, "text is not UTF-8 at byte %zu", at);
    }
    if (t->other && t->rule == TOKENIZER_CLASS)
        return encode_one(t->other, text, len, add_special, out, err);
    if (encode_one(t, text, len, add_special, out, err))
        return -1;
    if (!t->other || t->rule == TOKENIZER_FILE)
        return 0;
    if (encode_one(t->other, text, len, add_special, &other, err))
        goto out;
    if (other.count != out->count ||
        (out->count &&
         memcmp(other.ids, out->ids, out->count * sizeof(*out->ids)) != 0))
        refuse_difference(t, out, &other, err);
    else
        ret = 0;
out:
    token_ids_release(&other);
    return ret;
}

/* -- opening and asking -- */

int tokenizer_rule_parse(const char *text, enum tokenizer_rule *out,
                         struct err *err)
{
    *out = TOKENIZER_UNSAID;
    if (!text)
        return 0;
    if (strcmp(text, "file") == 0)
        *out = TOKENIZER_FILE;
    else if (strcmp(text, "class") == 0)
        *out = TOKENIZER_CLASS;
    else
        return err_set(err, ERR_INPUT,
                       "'tokenizer' is '%s', neither 'file' nor 'class'", text);
    return 0;
}

struct tokenizer *tokenizer_new(void)
{
    struct tokenizer *t = xcalloc(1, sizeof(*t));

    t->spare = xcalloc(1, sizeof(*t->spare));
    atomic_init(t->spare, NULL);
    return t;
}

static int open_folder(struct tokenizer *t, const char *dir, struct err *err)
{
    char *json = path_join(dir, "tokenizer.json");
    char *ranks = path_join(dir, "tiktoken.model");
    int ret;

    if (!io_exists(json) && io_exists(ranks))
        ret = tokenizer_load_tiktoken(t, ranks, err);
    else
        ret = tokenizer_load(t, json, err);
    free(json);
    free(ranks);
    return ret;
}

struct tokenizer *tokenizer_open(const char *path,
                                 const struct tokenizer_options *options,
                                 struct err *err)
{
    struct tokenizer *t = tokenizer_new();
    int ret;

    if (options) {
        t->rule = options->rule;
        t->transformers = options->transformers;
    }
    if (io_is_dir(path)) {
        struct ledger *given = options ? options->ledger : NULL;
        struct ledger *own = given ? NULL : ledger_new(path);

        t->ledger = own ? own : given;
        ret = open_folder(t, path, err);
        ledger_free(own);
    } else {
        ret = tokenizer_load(t, path, err);
    }
    t->transformers = NULL;
    t->ledger = NULL;
    if (ret) {
        tokenizer_free(t);
        return NULL;
    }
    return t;
}

void tokenizer_free(struct tokenizer *t)
{
    if (!t)
        return;
    tokenizer_free(t->other);
    scratch_free(atomic_exchange(t->spare, NULL));
    free(t->spare);
    chain_release(&t->chain);
    added_release(&t->added);
    frames_release(&t->frames);
    model_free(t->model);
    for (size_t i = 0; i < t->warning_count; i++)
        free(t->warnings[i]);
    free(t->warnings);
    free(t->class_name);
    free(t->made_by);
    free(t);
}

int64_t tokenizer_id(const struct tokenizer *t, const char *token)
{
    size_t len = strlen(token);
    const struct added_token *item =
        added_find(&tokenizer_meant(t)->added, token, len);

    if (item)
        return item->id;
    return model_find(t->model, token, len);
}

const struct added_token *tokenizer_added(const struct tokenizer *t, int64_t id)
{
    size_t low = 0, high = t->added.count;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (t->added.items[t->added.by_id[mid]].id < id)
            low = mid + 1;
        else
            high = mid;
    }
    if (low == t->added.count || t->added.items[t->added.by_id[low]].id != id)
        return NULL;
    return &t->added.items[t->added.by_id[low]];
}

const char *tokenizer_piece(const struct tokenizer *t, int64_t id, size_t *len)
{
    const struct added_token *token = tokenizer_added(tokenizer_meant(t), id);

    if (!token)
        return vocab_text(&t->model->vocab, id, len);
    *len = token->len;
    return token->content;
}

size_t tokenizer_size(const struct tokenizer *t)
{
    const struct added *added = &tokenizer_meant(t)->added;
    size_t size = t->model->vocab.limit;

    for (size_t i = 0; i < added->count; i++)
        if ((size_t)added->items[i].id >= size)
            size = (size_t)added->items[i].id + 1;
    return size;
}

const char *tokenizer_class(const struct tokenizer *t)
{
    return t->class_name;
}

/* What make_unicode.py found in the library it asked. */
void tokenizer_versions(struct tokenizer_versions *out)
{
    *out = (struct tokenizer_versions){"9.0", "16.0", "17.0", "8.0",
                                       pattern_pcre2_version()};
}

const char *tokenizer_warning(const struct tokenizer *t, size_t i)
{
    return i < t->warning_count ? t->warnings[i] : NULL;
}
