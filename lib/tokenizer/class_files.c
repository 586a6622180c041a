/*
 * What a pack's files ask to be added: tokenizer_config.json and, where that
 * has no added_tokens_decoder, special_tokens_map.json, added_tokens.json and
 * tokenizer.json.  Follows transformers' _from_pretrained()
 * (tokenization_utils_base.py).
 */
#include "tokenizer/class_tokens.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_TOKENS = 1 << 20, MAX_NAMED = 1000 };

static const char *const named_keys[] = {
    "bos_token", "eos_token", "unk_token",  "sep_token",
    "pad_token", "cls_token", "mask_token",
};
enum { NAMED = sizeof(named_keys) / sizeof(named_keys[0]) };

struct reading {
    const struct tokenizer *t;
    const struct rebuild *r;
    const json_t *config, *map, *added; /* files; objects, or NULL */
    struct class_files *out;
};

static bool is_token_key(const char *key)
{
    size_t len = strlen(key);

    for (int i = 0; i < NAMED; i++)
        if (strcmp(key, named_keys[i]) == 0)
            return false;
    return len > 6 && strcmp(key + len - 6, "_token") == 0;
}

/* -- the decoder -- */

static int by_id(const void *a, const void *b)
{
    const struct token *x = a, *y = b;

    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* By id; of one id the last counts. */
static void sort_decoder(struct tokens *list)
{
    size_t kept = 0;

    if (list->count)
        qsort(list->items, list->count, sizeof(*list->items), by_id);
    for (size_t i = 0; i < list->count; i++) {
        if (kept && list->items[kept - 1].id == list->items[i].id)
            kept--;
        list->items[kept++] = list->items[i];
    }
    list->count = kept;
}

static int read_decoder(struct reading *g, const json_t *object,
                        struct err *err)
{
    const json_t *value;
    const char *key;

    if (!json_is_object(object) || json_object_size(object) > MAX_TOKENS)
        return err_set(err, ERR_INPUT, "not an object, or too large");
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        struct token token;
        char *end;

        if (token_read_object(value, false, &token, err))
            return err_in(err, "'%s'", key);
        token.id = strtoll(key, &end, 10);
        if (end == key || *end)
            return err_set(err, ERR_INPUT, "'%s' is not an id", key);
        tokens_add(&g->out->decoder, &token);
    }
    return 0;
}

/* {"token": id, ...} */
static int read_added_file(struct reading *g, struct err *err)
{
    const json_t *value;
    const char *key;

    json_object_foreach((json_t *)(uintptr_t)g->added, key, value)
    {
        struct token token = token_plain(key, strlen(key));
        bool is_special = tokens_find(&g->out->specials, &token) ||
                          tokens_find(&g->out->extras, &token);

        if (!json_is_integer(value))
            return err_set(err, ERR_INPUT, "'%s' has no id", key);
        token.is_plain = false;
        token.wish.special = is_special;
        token.wish.normalized = !is_special;
        token.id = json_integer_value(value);
        tokens_add(&g->out->decoder, &token);
    }
    return 0;
}

/* Those of tokenizer.json, as they stand there. */
static void read_file_tokens(struct reading *g)
{
    const struct added *a = &g->t->added;

    for (size_t i = 0; i < a->count; i++) {
        const struct added_token *item = &a->items[i];
        const struct token token = {.wish = {.content = item->content,
                                             .len = item->len,
                                             .single_word = item->single_word,
                                             .lstrip = item->lstrip,
                                             .rstrip = item->rstrip,
                                             .normalized = item->is_normalized,
                                             .special = item->special},
                                    .id = item->id};

        tokens_add(&g->out->decoder, &token);
    }
}

/* -- special tokens -- */

static int put_special(struct reading *g, const char *key,
                       const struct token *token, struct err *err)
{
    struct tokens *specials = &g->out->specials;
    struct token keyed = *token;

    keyed.key = key;
    for (size_t i = 0; i < specials->count; i++)
        if (strcmp(specials->items[i].key, key) == 0) {
            specials->items[i] = keyed;
            return 0;
        }
    if (specials->count == MAX_NAMED)
        return err_set(err, ERR_UNSUPPORTED,
                       "more than %d special tokens with names", MAX_NAMED);
    tokens_add(specials, &keyed);
    return 0;
}

/* The tokens that a class has where the pack names none: those of `only`, or of
 * keys of its own; these as extra ones too, where the pack has none. */
static int put_defaults(struct reading *g, const char *only, bool as_extra,
                        struct err *err)
{
    const char *const *p = g->r->kind ? g->r->kind->specials : NULL;

    for (; p && *p; p += 2) {
        struct token token = token_plain(p[1], strlen(p[1]));

        if (only ? strcmp(*p, only) != 0 : !is_token_key(*p))
            continue;
        token.is_default = true;
        if (as_extra)
            tokens_add(&g->out->extras, &token);
        else if (put_special(g, *p, &token, err))
            return -1;
    }
    return 0;
}

/* The seven that every class has, in upstream's order. */
static int read_named(struct reading *g, struct err *err)
{
    for (int i = 0; i < NAMED; i++) {
        const char *key = named_keys[i];
        const json_t *value = json_object_get(g->config, key);
        const json_t *mapped = json_object_get(g->map, key);
        struct token token;

        if (mapped)
            value = mapped;
        if (!value && put_defaults(g, key, false, err))
            return -1;
        if (!value || json_is_null(value))
            continue;
        if (token_read(value, value == mapped, &token, err) ||
            put_special(g, key, &token, err))
            return err_in(err, "%s", key);
    }
    return 0;
}

/* Those with a name of the model's own: image_token and the like. */
static int read_model_specific(struct reading *g, const json_t *object,
                               bool in_map, bool plain, struct err *err)
{
    const json_t *value;
    const char *key;

    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        struct token token;

        if (!is_token_key(key) || json_is_string(value) != plain ||
            !(plain || in_map || json_object_get(value, "__type")))
            continue;
        if (token_read(value, in_map, &token, err) ||
            put_special(g, key, &token, err))
            return err_in(err, "%s", key);
    }
    return 0;
}

static int read_extra_object(struct reading *g, const json_t *object,
                             struct err *err)
{
    const json_t *value;
    const char *key;

    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        struct token token;

        if (token_read(value, false, &token, err) ||
            put_special(g, key, &token, err))
            return err_in(err, "%s", key);
    }
    return 0;
}

static int read_extra_list(struct reading *g, const json_t *list, bool in_map,
                           struct err *err)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        struct token token;

        if (token_read(json_array_get(list, i), in_map, &token, err))
            return err_in(err, "[%zu]", i);
        if (in_map && tokens_find(&g->out->extras, &token))
            continue;
        tokens_add(&g->out->extras, &token);
    }
    return 0;
}

static bool is_empty(const json_t *value)
{
    return !value || json_is_null(value) ||
           (json_is_array(value) && json_array_size(value) == 0) ||
           (json_is_object(value) && json_object_size(value) == 0);
}

/* What reaches a class under the old name: with nothing under the new one, or
 * names there. */
static int read_by_old_name(struct reading *g, const json_t *list,
                            struct err *err)
{
    const json_t *mapped = json_object_get(g->map, "additional_special_tokens");

    return read_extra_list(g, mapped ? mapped : list, false, err) ||
                   put_defaults(g, NULL, true, err)
               ? -1
               : 0;
}

/* extra_special_tokens, called additional_special_tokens before. */
static int read_extras(struct reading *g, struct err *err)
{
    static const char now[] = "extra_special_tokens";
    const json_t *extra = json_object_get(g->config, now);
    const json_t *old = json_object_get(g->config, "additional_special_tokens");
    const json_t *mapped = json_object_get(g->map, now);
    bool is_5_24 = g->r->version == CLASS_5_24;

    if (old && (is_5_24 ? is_empty(extra) : !extra)) {
        extra = old;
        old = NULL;
    }
    if (extra && !json_is_null(extra) && !json_is_array(extra) &&
        !json_is_object(extra))
        return err_set(err, ERR_INPUT, "neither a list nor an object");
    if ((json_is_object(extra) && read_extra_object(g, extra, err)) ||
        (json_is_array(extra) && read_extra_list(g, extra, false, err)) ||
        (json_is_object(mapped) && read_extra_object(g, mapped, err)) ||
        (json_is_array(mapped) && read_extra_list(g, mapped, true, err)))
        return -1;
    if ((extra && !json_is_object(extra)) || json_is_array(mapped))
        return 0;
    return read_by_old_name(g, is_5_24 ? old : NULL, err);
}

/* A pack's text that the decoder has too stands for the decoder's token. */
static void take_decoder_flags(struct class_files *f)
{
    for (size_t i = 0; i < f->specials.count; i++) {
        struct token *special = &f->specials.items[i];
        const struct token *token = tokens_find(&f->decoder, special);

        if (!token || special->is_default || is_token_key(special->key))
            continue;
        special->wish = token->wish;
        special->is_plain = false;
    }
}

static int read_specials(struct reading *g, struct err *err)
{
    tokens_index(&g->out->extras);
    if (read_named(g, err) || put_defaults(g, NULL, false, err) ||
        read_model_specific(g, g->config, false, false, err) ||
        read_model_specific(g, g->map, true, false, err) ||
        read_model_specific(g, g->map, true, true, err) ||
        read_model_specific(g, g->config, false, true, err))
        return -1;
    tokens_index(&g->out->specials);
    return 0;
}

static int read_all(struct reading *g, struct err *err)
{
    const json_t *decoder = json_object_get(g->config, "added_tokens_decoder");
    struct tokens *list = &g->out->decoder;

    if (read_specials(g, err))
        return -1;
    if (read_extras(g, err))
        return err_in(err, "extra_special_tokens");
    if (decoder) {
        if (read_decoder(g, decoder, err))
            return err_in(err, "added_tokens_decoder");
    } else {
        if (read_added_file(g, err))
            return err_in(err, "added_tokens.json");
        read_file_tokens(g);
    }
    sort_decoder(list);
    tokens_index(list);
    take_decoder_flags(g->out);
    return 0;
}

/* What has been looked at is read, for the ledger. */
static void note(const struct section *config)
{
    const json_t *value;
    const char *key;

    for (int i = 0; i < NAMED; i++)
        config_value(config, named_keys[i]);
    config_value(config, "extra_special_tokens");
    config_value(config, "additional_special_tokens");
    json_object_foreach((json_t *)(uintptr_t)config_object(config), key, value)
    {
        if (is_token_key(key))
            config_value(config, key);
    }
}

static const json_t *object_of(const struct section *s)
{
    return s ? config_object(s) : NULL;
}

int class_files_read(const struct tokenizer *t, const struct rebuild *r,
                     struct class_files *out, struct err *err)
{
    static const char name[] = "tokenizer_config.json";
    const struct section *config, *map = NULL, *added = NULL;
    struct reading g = {.t = t, .r = r, .out = out};

    if (ledger_file(t->ledger, name, &config, err))
        return -1;
    g.config = object_of(config);
    if (!json_object_get(g.config, "added_tokens_decoder") &&
        (ledger_file(t->ledger, "special_tokens_map.json", &map, err) ||
         ledger_file(t->ledger, "added_tokens.json", &added, err)))
        return -1;
    g.map = object_of(map);
    g.added = object_of(added);
    if (config)
        note(config);
    if (read_all(&g, err))
        return err_in(err, "%s", config ? config_path(config) : name);
    return 0;
}

void class_files_release(struct class_files *f)
{
    tokens_release(&f->decoder);
    tokens_release(&f->specials);
    tokens_release(&f->extras);
}
