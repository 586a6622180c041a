/*
 * The added tokens that upstream's classes end up with: those of the decoder,
 * then each special token that is not among them.  Follows transformers'
 * TokenizersBackend.__init__() (tokenization_utils_tokenizers.py).
 */
#include "tokenizer/class_tokens.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* Is it among those on their way?  A text is only equal to a text. */
static bool is_waiting(const struct tokens *list, const struct token *token)
{
    const struct token *other = tokens_find(list, token);

    for (; other; other = other->next ? &list->items[other->next - 1] : NULL)
        if (other->is_plain == token->is_plain &&
            (token->is_plain ||
             (other->wish.single_word == token->wish.single_word &&
              other->wish.lstrip == token->wish.lstrip &&
              other->wish.rstrip == token->wish.rstrip &&
              other->wish.normalized == token->wish.normalized)))
            return true;
    return false;
}

static void put_batch(const struct tokenizer *t, const struct tokens *list,
                      struct added *out)
{
    struct added_wish *wishes = xcalloc(list->count, sizeof(*wishes));

    for (size_t i = 0; i < list->count; i++)
        wishes[i] = list->items[i].wish;
    added_batch(out, t->model, wishes, list->count);
    free(wishes);
}

/* The decoder's, then the special ones that neither it nor the class has. */
static void put_first(const struct tokenizer *t, const struct class_files *f,
                      struct added *out)
{
    const struct tokens *lists[] = {&f->specials, &f->extras};
    struct tokens all = {0};

    tokens_index(&all);
    for (size_t i = 0; i < f->decoder.count; i++) {
        struct token token = f->decoder.items[i];

        if (tokens_find(&f->specials, &token))
            token.wish.special = true;
        tokens_add(&all, &token);
    }
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < lists[k]->count; i++) {
            struct token token = lists[k]->items[i];

            if (tokens_find(&f->decoder, &token) ||
                added_find(out, token.wish.content, token.wish.len) ||
                is_waiting(&all, &token))
                continue;
            if (k == 0 || tokens_find(&f->specials, &token))
                token.wish.special = true;
            tokens_add(&all, &token);
        }
    put_batch(t, &all, out);
    tokens_release(&all);
}

/* Once more, as the class does. */
static void put_again(const struct tokenizer *t, const struct class_files *f,
                      bool as_text, struct added *out)
{
    const struct tokens *lists[] = {&f->specials, &f->extras};
    struct tokens all = {0};

    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < lists[k]->count; i++) {
            struct token token = lists[k]->items[i];

            if (as_text)
                token = token_plain(token.wish.content, token.wish.len);
            token.wish.special = true;
            tokens_add(&all, &token);
        }
    put_batch(t, &all, out);
    tokens_release(&all);
}

static const struct added_wish *find_special(const struct class_files *f,
                                             const char *key)
{
    for (size_t i = 0; i < f->specials.count; i++)
        if (strcmp(f->specials.items[i].key, key) == 0)
            return &f->specials.items[i].wish;
    return NULL;
}

/* As str() spells what there is under unk_token. */
static char *spell_unk(const struct class_files *f)
{
    const struct added_wish *unk = find_special(f, "unk_token");

    return unk ? xstrndup(unk->content, unk->len) : xstrdup("None");
}

/* bos_token before a text, where there is one. */
static json_t *frame_bos(const struct class_files *f, const struct added *added)
{
    const struct added_wish *bos = find_special(f, "bos_token");
    const struct added_token *token =
        bos ? added_find(added, bos->content, bos->len) : NULL;

    if (!token)
        return NULL;
    return json_pack(
        "{s:s, s:[{s:{s:s, s:i}}, {s:{s:s, s:i}}], s:[], s:{s:{s:s, s:[I], "
        "s:[]}}}",
        "type", "TemplateProcessing", "single", "SpecialToken", "id", "bos",
        "type_id", 0, "Sequence", "id", "A", "type_id", 0, "pair",
        "special_tokens", "bos", "id", "bos", "ids", (json_int_t)token->id,
        "tokens");
}

int class_added(const struct tokenizer *t, struct rebuild *r, struct added *out,
                struct err *err)
{
    struct class_files files = {0};
    int ret = class_files_read(t, r, &files, err);

    out->is_0_23 = r->version == CLASS_5_24;
    if (ret == 0) {
        if (!r->kind)
            added_copy(out, &t->added);
        put_first(t, &files, out);
        if (r->kind && r->kind->again != AGAIN_NOT)
            put_again(t, &files, r->kind->again == AGAIN_AS_TEXT, out);
        if (r->kind && r->kind->has_unk)
            r->unk_token = spell_unk(&files);
        if (r->kind && r->kind->puts_bos)
            r->post_processor = frame_bos(&files, out);
    }
    class_files_release(&files);
    return ret;
}
