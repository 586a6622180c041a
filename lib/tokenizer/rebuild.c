/*
 * A tokenizer.json as a pack's class means it: the same vocabulary and merges
 * with other components, flags and added tokens, where that is not the same.
 */
#include "base/mem.h"
#include "tokenizer/class.h"
#include "tokenizer/draft.h"

#include <stdlib.h>
#include <string.h>

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

    return !r->kind ||
           (is_equal_part(d->parts[NORMALIZER], r->normalizer) &&
            is_equal_part(d->parts[PRE_TOKENIZER], r->pre_tokenizer) &&
            is_decoder_of(d->parts[DECODER], r->decoder) &&
            m->fuse_unk == r->fuse_unk &&
            m->byte_fallback == r->byte_fallback && !m->ignore_merges &&
            !m->prefix && !m->suffix && !m->unk_token == !r->unk_token &&
            (!m->unk_token || strcmp(m->unk_token, r->unk_token) == 0) &&
            !r->has_own_frames);
}

static void replace_part(struct draft *d, enum part part, json_t *by)
{
    json_decref(d->parts[part]);
    d->parts[part] = by ? json_incref(by) : NULL;
    json_object_set(d->document, draft_part_names[part], by ? by : json_null());
}

static void take_text(char **to, const char *text)
{
    free(*to);
    *to = text ? xstrdup(text) : NULL;
}

/* The class's own components around the same vocabulary and merges. */
static void replace_parts(struct tokenizer *t, struct draft *d,
                          const struct rebuild *by)
{
    struct model *m = t->model;

    replace_part(d, NORMALIZER, by->normalizer);
    replace_part(d, PRE_TOKENIZER, by->pre_tokenizer);
    replace_part(d, DECODER, by->decoder);
    if (by->has_own_frames)
        replace_part(d, POST_PROCESSOR, by->post_processor);
    m->fuse_unk = by->fuse_unk;
    m->byte_fallback = by->byte_fallback;
    m->ignore_merges = false;
    m->has_unk = by->unk_token != NULL;
    take_text(&m->unk_token, by->unk_token);
    take_text(&m->prefix, NULL);
    take_text(&m->suffix, NULL);
}

static struct tokenizer *rebuild(struct tokenizer *t, struct draft *d,
                                 const struct rebuild *by, struct added *added,
                                 const char *path, struct err *err)
{
    struct tokenizer *other = tokenizer_new();
    json_t *as_read = d->document;

    other->model = model_borrow(t->model);
    d->document = json_copy(as_read); /* the ledger has that one */
    json_decref(as_read);
    if (by->kind)
        replace_parts(other, d, by);
    if (draft_finish(other, d, path, added, err) == 0)
        return other;
    err_in(err, "%s: as '%s' makes it", path, t->made_by);
    tokenizer_free(other);
    return NULL;
}

int draft_follow_class(struct tokenizer *t, struct draft *d, struct rebuild *by,
                       const char *path, struct err *err)
{
    struct added added = {0};
    int ret;

    if (by->kind && t->model->kind != MODEL_BPE)
        ret = err_set(err, ERR_UNSUPPORTED,
                      "tokenizer_config.json: what tokenizer_class '%s' makes "
                      "of another model than BPE is not known here",
                      t->made_by);
    else
        ret = class_added(t, by, &added, err);
    if (ret && err->code == ERR_UNSUPPORTED && t->rule == TOKENIZER_UNSAID) {
        tokenizer_warn(t, "tokenizer.json is taken as it is: %s", err->text);
        err_clear(err);
        ret = 0;
    } else if (ret == 0 && (!is_rebuilt_same(d, by) ||
                            !added_is_equal(&added, &t->added))) {
        t->other = rebuild(t, d, by, &added, path, err);
        ret = t->other ? 0 : -1;
    }
    added_release(&added);
    return ret;
}
