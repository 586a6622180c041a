/*
 * The added tokens that upstream's classes end up with: those of tokenizer.json
 * or of added_tokens_decoder, then each special token that is not among them.
 * Follows transformers' _from_pretrained() (tokenization_utils_base.py) and
 * TokenizersBackend.__init__() (tokenization_utils_tokenizers.py), which see
 * texts (plain) and AddedTokens (with flags) as different things.
 */
#include "tokenizer/class.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_TOKENS = 1 << 20 };

static const char *const named_keys[] = {
    "bos_token", "eos_token", "unk_token",  "sep_token",
    "pad_token", "cls_token", "mask_token",
};
enum { NAMED = sizeof(named_keys) / sizeof(named_keys[0]) };

struct token {
    struct added_wish wish;
    bool is_plain;
    bool is_default; /* the class's own, not the pack's */
    int64_t id;      /* of a decoder's token */
    const char *key; /* of a special token, or NULL */
};

struct tokens {
    struct token *items;
    size_t count, cap;
};

/* What the files say, on its way to lists of tokens. */
struct reading {
    const struct tokenizer *t;
    const struct rebuild *r;
    const json_t *config, *map, *added; /* files; objects, or NULL */
    bool has_decoder;                   /* else map and added count */
    struct tokens decoder, specials, extras;
};

static void add(struct tokens *list, const struct token *token)
{
    if (list->count == list->cap) {
        list->cap = list->cap ? list->cap * 2 : 64;
        list->items = xrealloc(list->items, list->cap * sizeof(*list->items));
    }
    list->items[list->count++] = *token;
}

static bool is_content(const struct token *a, const struct token *b)
{
    return a->wish.len == b->wish.len &&
           memcmp(a->wish.content, b->wish.content, a->wish.len) == 0;
}

static const struct token *find(const struct tokens *list,
                                const struct token *token)
{
    for (size_t i = 0; i < list->count; i++)
        if (is_content(&list->items[i], token))
            return &list->items[i];
    return NULL;
}

/* -- values -- */

static bool get_flag(const json_t *object, const char *key, bool fallback)
{
    const json_t *value = json_object_get(object, key);

    return json_is_boolean(value) ? json_is_true(value) : fallback;
}

/* AddedToken(**object), as special when `is_special` says so. */
static int read_object(const json_t *object, bool is_special, struct token *out,
                       struct err *err)
{
    const json_t *content = json_object_get(object, "content");
    bool special = is_special || get_flag(object, "special", false);

    if (!json_is_string(content))
        return err_set(err, ERR_INPUT, "no 'content'");
    *out = (struct token){
        .wish = {.content = json_string_value(content),
                 .len = json_string_length(content),
                 .single_word = get_flag(object, "single_word", false),
                 .lstrip = get_flag(object, "lstrip", false),
                 .rstrip = get_flag(object, "rstrip", false),
                 .normalized = get_flag(object, "normalized", !special),
                 .special = special}};
    return 0;
}

static void read_plain(const char *text, size_t len, struct token *out)
{
    *out =
        (struct token){.wish = {.content = text, .len = len, .special = true},
                       .is_plain = true};
}

/* A text, or an object: one that says it is an AddedToken, and in
 * special_tokens_map.json any. */
static int read_value(const json_t *value, bool in_map, struct token *out,
                      struct err *err)
{
    if (json_is_string(value)) {
        read_plain(json_string_value(value), json_string_length(value), out);
        return 0;
    }
    if (json_is_object(value) && (in_map || json_object_get(value, "__type")))
        return read_object(value, in_map, out, err);
    return err_set(err, ERR_UNSUPPORTED, "neither a text nor an AddedToken");
}

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

    return x->id < y->id ? -1 : x->id > y->id;
}

/* A later token of the same id takes the place of an earlier one. */
static void put_decoder(struct reading *g, const struct token *token)
{
    for (size_t i = 0; i < g->decoder.count; i++)
        if (g->decoder.items[i].id == token->id) {
            g->decoder.items[i] = *token;
            return;
        }
    add(&g->decoder, token);
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

        if (read_object(value, false, &token, err))
            return err_in(err, "'%s'", key);
        token.id = strtoll(key, &end, 10);
        if (end == key || *end)
            return err_set(err, ERR_INPUT, "'%s' is not an id", key);
        add(&g->decoder, &token);
    }
    return 0;
}

/* Is a token of added_tokens.json one of the special ones? */
static bool is_special(const struct reading *g, const struct token *token)
{
    return find(&g->specials, token) || find(&g->extras, token);
}

static int read_added_file(struct reading *g, struct err *err)
{
    const json_t *value;
    const char *key;

    json_object_foreach((json_t *)(uintptr_t)g->added, key, value)
    {
        struct token token;

        if (!json_is_integer(value) || json_object_size(g->added) > 10000)
            return err_set(err, ERR_INPUT, "'%s' has no id, or too many", key);
        read_plain(key, strlen(key), &token);
        token.is_plain = false;
        token.wish.special = is_special(g, &token);
        token.wish.normalized = !token.wish.special;
        token.id = json_integer_value(value);
        put_decoder(g, &token);
    }
    return 0;
}

/* Those of tokenizer.json, as they stand there. */
static void read_file_tokens(struct reading *g)
{
    const struct added *a = &g->t->added;
    bool is_alone = g->decoder.count == 0;

    for (size_t i = 0; i < a->count; i++) {
        const struct added_token *item = &a->items[i];
        struct token token = {.wish = {.content = item->content,
                                       .len = item->len,
                                       .single_word = item->single_word,
                                       .lstrip = item->lstrip,
                                       .rstrip = item->rstrip,
                                       .normalized = item->is_normalized,
                                       .special = item->special},
                              .id = item->id};

        if (is_alone)
            add(&g->decoder, &token);
        else
            put_decoder(g, &token);
    }
}

/* -- special tokens -- */

static void put_special(struct reading *g, const char *key,
                        const struct token *token)
{
    struct token keyed = *token;

    keyed.key = key;
    for (size_t i = 0; i < g->specials.count; i++)
        if (strcmp(g->specials.items[i].key, key) == 0) {
            g->specials.items[i] = keyed;
            return;
        }
    add(&g->specials, &keyed);
}

/* The seven that every class has, in upstream's order. */
static int read_named(struct reading *g, struct err *err)
{
    for (int i = 0; i < NAMED; i++) {
        const char *key = named_keys[i];
        const json_t *value = json_object_get(g->config, key);
        const json_t *mapped = json_object_get(g->map, key);
        struct token token;

        if (mapped && !g->has_decoder)
            value = mapped;
        if (!value) {
            const char *const *p = g->r->kind ? g->r->kind->specials : NULL;

            for (; p && *p; p += 2)
                if (strcmp(*p, key) == 0) {
                    read_plain(p[1], strlen(p[1]), &token);
                    token.is_default = true;
                    put_special(g, key, &token);
                }
            continue;
        }
        if (json_is_null(value))
            continue;
        if (read_value(value, value == mapped, &token, err))
            return err_in(err, "%s", key);
        put_special(g, key, &token);
    }
    return 0;
}

/* Those with a key of the class's own; as extra ones too, where the pack has
 * none. */
static void read_class_specific(struct reading *g, bool as_extra)
{
    const char *const *p = g->r->kind ? g->r->kind->specials : NULL;

    for (; p && *p; p += 2) {
        struct token token;

        if (!is_token_key(*p))
            continue;
        read_plain(p[1], strlen(p[1]), &token);
        if (as_extra)
            add(&g->extras, &token);
        else
            put_special(g, *p, &token);
    }
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
        if (read_value(value, in_map, &token, err))
            return err_in(err, "%s", key);
        put_special(g, key, &token);
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

        if (read_value(value, false, &token, err))
            return err_in(err, "%s", key);
        put_special(g, key, &token);
    }
    return 0;
}

static int read_extra_list(struct reading *g, const json_t *list, bool in_map,
                           struct err *err)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        struct token token;

        if (read_value(json_array_get(list, i), in_map, &token, err))
            return err_in(err, "[%zu]", i);
        if (in_map && find(&g->extras, &token))
            continue;
        add(&g->extras, &token);
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

    if (mapped && !g->has_decoder)
        list = mapped;
    if (read_extra_list(g, list, false, err))
        return -1;
    read_class_specific(g, true);
    return 0;
}

/* extra_special_tokens, called additional_special_tokens before. */
static int read_extras(struct reading *g, struct err *err)
{
    static const char now[] = "extra_special_tokens";
    const json_t *extra = json_object_get(g->config, now);
    const json_t *old = json_object_get(g->config, "additional_special_tokens");
    const json_t *mapped = g->has_decoder ? NULL : json_object_get(g->map, now);
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
static void take_decoder_flags(struct reading *g)
{
    for (size_t i = 0; i < g->specials.count; i++) {
        struct token *special = &g->specials.items[i];
        const struct token *token = find(&g->decoder, special);

        if (!token || special->is_default || is_token_key(special->key))
            continue;
        special->wish = token->wish;
        special->is_plain = false;
    }
}

static int read_all(struct reading *g, struct err *err)
{
    const json_t *decoder = json_object_get(g->config, "added_tokens_decoder");

    g->has_decoder = decoder != NULL;
    if (decoder && read_decoder(g, decoder, err))
        return err_in(err, "added_tokens_decoder");
    if (read_named(g, err))
        return -1;
    read_class_specific(g, false);
    if (read_model_specific(g, g->config, false, false, err) ||
        (!decoder && (read_model_specific(g, g->map, true, false, err) ||
                      read_model_specific(g, g->map, true, true, err))) ||
        read_model_specific(g, g->config, false, true, err))
        return -1;
    if (read_extras(g, err))
        return err_in(err, "extra_special_tokens");
    if (!decoder) {
        if (read_added_file(g, err))
            return err_in(err, "added_tokens.json");
        read_file_tokens(g);
    }
    if (g->decoder.count)
        qsort(g->decoder.items, g->decoder.count, sizeof(*g->decoder.items),
              by_id);
    take_decoder_flags(g);
    return 0;
}

/* -- putting them in -- */

/* Among those on their way: a text is only equal to a text. */
static bool is_waiting(const struct tokens *list, const struct token *token)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct token *other = &list->items[i];

        if (is_content(other, token) && other->is_plain == token->is_plain &&
            (token->is_plain ||
             (other->wish.single_word == token->wish.single_word &&
              other->wish.lstrip == token->wish.lstrip &&
              other->wish.rstrip == token->wish.rstrip &&
              other->wish.normalized == token->wish.normalized)))
            return true;
    }
    return false;
}

static void put_batch(const struct reading *g, const struct tokens *list,
                      struct added *out)
{
    struct added_wish *wishes = xcalloc(list->count, sizeof(*wishes));

    for (size_t i = 0; i < list->count; i++)
        wishes[i] = list->items[i].wish;
    added_batch(out, g->t->model, wishes, list->count);
    free(wishes);
}

/* The decoder's, then the special ones that neither it nor the class has. */
static void put_first(const struct reading *g, struct added *out)
{
    const struct tokens *lists[] = {&g->specials, &g->extras};
    struct tokens all = {0};

    for (size_t i = 0; i < g->decoder.count; i++) {
        struct token token = g->decoder.items[i];

        if (find(&g->specials, &token))
            token.wish.special = true;
        add(&all, &token);
    }
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < lists[k]->count; i++) {
            struct token token = lists[k]->items[i];

            if (find(&g->decoder, &token) ||
                added_find(out, token.wish.content, token.wish.len) ||
                is_waiting(&all, &token))
                continue;
            if (k == 0 || find(&g->specials, &token))
                token.wish.special = true;
            add(&all, &token);
        }
    put_batch(g, &all, out);
    free(all.items);
}

/* Once more, as the class does. */
static void put_again(const struct reading *g, struct added *out)
{
    const struct tokens *lists[] = {&g->specials, &g->extras};
    struct tokens all = {0};

    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < lists[k]->count; i++) {
            struct token token = lists[k]->items[i];

            if (g->r->kind->again == AGAIN_AS_TEXT)
                read_plain(token.wish.content, token.wish.len, &token);
            token.wish.special = true;
            add(&all, &token);
        }
    put_batch(g, &all, out);
    free(all.items);
}

/* As str() spells what there is under unk_token. */
static char *find_unk(const struct reading *g)
{
    for (size_t i = 0; i < g->specials.count; i++)
        if (strcmp(g->specials.items[i].key, "unk_token") == 0)
            return xstrndup(g->specials.items[i].wish.content,
                            g->specials.items[i].wish.len);
    return xstrdup("None");
}

static const json_t *object_of(const struct section *s)
{
    return s ? config_object(s) : NULL;
}

/* What has been looked at is read, for the ledger. */
static void note(const struct section *config)
{
    const json_t *value;
    const char *key;

    if (!config)
        return;
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

int class_added(const struct tokenizer *t, struct rebuild *r, struct added *out,
                struct err *err)
{
    const struct section *config, *map = NULL, *added = NULL;
    struct reading g = {.t = t, .r = r};
    int ret = -1;

    if (ledger_file(t->ledger, "tokenizer_config.json", &config, err))
        return -1;
    g.config = object_of(config);
    if (!json_object_get(g.config, "added_tokens_decoder") &&
        (ledger_file(t->ledger, "special_tokens_map.json", &map, err) ||
         ledger_file(t->ledger, "added_tokens.json", &added, err)))
        return -1;
    g.map = object_of(map);
    g.added = object_of(added);
    note(config);
    out->is_0_23 = r->version == CLASS_5_24;
    if (read_all(&g, err) == 0) {
        if (!r->kind)
            added_copy(out, &t->added);
        put_first(&g, out);
        if (r->kind && r->kind->again != AGAIN_NOT)
            put_again(&g, out);
        if (r->kind && r->kind->has_unk)
            r->unk_token = find_unk(&g);
        ret = 0;
    } else {
        err_in(err, "%s",
               config ? config_path(config) : "tokenizer_config.json");
    }
    free(g.decoder.items);
    free(g.specials.items);
    free(g.extras.items);
    return ret;
}
