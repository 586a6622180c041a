/* Tokens on their way: a token's two forms, and lists of them. */
#include "tokenizer/class_tokens.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_LEN = 1024 };

static void note_content(struct tokens *list, size_t at)
{
    const struct added_wish *wish = &list->items[at].wish;
    const struct token *found = tokens_find(list, &list->items[at]);

    if (!found) {
        text_map_put(&list->first, wish->content, wish->len, (uint32_t)at);
        return;
    }
    size_t first = (size_t)(found - list->items);
    list->items[at].next = list->items[first].next;
    list->items[first].next = at + 1;
}

void tokens_add(struct tokens *list, const struct token *token)
{
    if (list->count == list->cap) {
        list->cap = list->cap ? list->cap * 2 : 64;
        list->items = xrealloc(list->items, list->cap * sizeof(*list->items));
    }
    list->items[list->count] = *token;
    list->items[list->count].next = 0;
    list->items[list->count].order = list->count;
    list->count++;
    if (list->is_indexed)
        note_content(list, list->count - 1);
}

void tokens_index(struct tokens *list)
{
    list->is_indexed = true;
    for (size_t i = 0; i < list->count; i++)
        note_content(list, i);
}

void tokens_release(struct tokens *list)
{
    free(list->items);
    text_map_release(&list->first);
    *list = (struct tokens){0};
}

const struct token *tokens_find(const struct tokens *list,
                                const struct token *token)
{
    const struct added_wish *wish = &token->wish;
    uint32_t at = text_map_find(&list->first, wish->content, wish->len);

    return at == TEXT_MAP_NONE ? NULL : &list->items[at];
}

static int check_len(const struct token *token, struct err *err)
{
    if (token->wish.len <= MAX_LEN)
        return 0;
    return err_set(err, ERR_INPUT, "'content' is longer than %d bytes",
                   MAX_LEN);
}

static bool get_flag(const json_t *object, const char *key, bool fallback)
{
    const json_t *value = json_object_get(object, key);

    return json_is_boolean(value) ? json_is_true(value) : fallback;
}

int token_read_object(const json_t *object, bool is_special, struct token *out,
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
    return check_len(out, err);
}

struct token token_plain(const char *text, size_t len)
{
    return (struct token){
        .wish = {.content = text, .len = len, .special = true},
        .is_plain = true};
}

int token_read(const json_t *value, bool in_map, struct token *out,
               struct err *err)
{
    if (json_is_string(value)) {
        *out = token_plain(json_string_value(value), json_string_length(value));
        return check_len(out, err);
    }
    if (json_is_object(value) && (in_map || json_object_get(value, "__type")))
        return token_read_object(value, in_map, out, err);
    return err_set(err, ERR_UNSUPPORTED, "neither a text nor an AddedToken");
}
