#ifndef TOKENIZER_ADDED_H
#define TOKENIZER_ADDED_H

#include "tokenizer/chain.h"
#include "tokenizer/model.h"
#include "tokenizer/text_map.h"
#include "json/json.h"

/*
 * Added tokens: texts that are ids whatever the model makes of them.  They are
 * listed first, indexed once, then looked for.
 */

struct added_token {
    char *content;
    size_t len;
    int64_t id;
    bool single_word, lstrip, rstrip;
    bool special;               /* given so at least once */
    bool is_raw, is_normalized; /* where it is looked for, maybe in both */
    char *shown; /* how it is decoded where that is not its content, or NULL */
    size_t shown_len;
    bool is_shown_normalized;
};

struct added {
    struct added_token *items;
    size_t count, cap;
    struct text_map all;           /* a content's place in items */
    struct trie *raw, *normalized; /* the same, to be looked for in texts */
    uint32_t *by_id;               /* places, by rising id */
    /*
     * tokenizers 0.23 looks for a token only as it was given last, and decodes
     * one that was ever to be normalized as its normalized form (which is then
     * special only by that name).  0.22, beside transformers 5.5: content.
     */
    bool is_0_23;
};

/* A token that is to be added. */
struct added_wish {
    const char *content;
    size_t len;
    bool single_word, lstrip, rstrip, normalized, special;
};

void added_release(struct added *a);
/* The tokens of another list, into an empty one. */
void added_copy(struct added *a, const struct added *from);
/* The token of that content, or NULL. */
struct added_token *added_find(const struct added *a, const char *text,
                               size_t len);
/* Its text when decoded; *is_special: is it left out with the special ones? */
const char *added_shown(const struct added *a, const struct added_token *token,
                        size_t *len, bool *is_special);
/*
 * Adds them at once, as upstream's add_tokens() does: a token's id is its
 * vocabulary id, else the next above all that are there.  One that was added
 * before takes the new flags, but stays special, and (0.22) stays where it was
 * looked for.
 */
void added_batch(struct added *a, const struct model *m,
                 const struct added_wish *wishes, size_t count);
/* The item of a content, made where there is none, without an id as yet; valid
 * until the next is made. */
struct added_token *added_take(struct added *a, const char *text, size_t len);
/* Reads the list of a tokenizer.json (NULL: none). */
int added_read(struct added *a, const struct model *m, const json_t *list,
               struct err *err);
/* Fills by_id and the tries that texts are searched with. */
int added_index(struct added *a, const struct steps *normalizer,
                struct err *err);
/* The same tokens, found alike? */
bool added_is_equal(const struct added *a, const struct added *b);

typedef int added_each(void *arg, const struct added_token *token, size_t start,
                       size_t end, struct err *err);
/*
 * Calls `each` for every token of the trie found in text and (token NULL) for
 * what lies between.
 */
int added_cut(const struct added *a, const struct trie *t, const char *text,
              size_t len, added_each *each, void *arg, struct err *err);
#endif
