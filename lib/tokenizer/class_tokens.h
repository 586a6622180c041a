#ifndef TOKENIZER_CLASS_TOKENS_H
#define TOKENIZER_CLASS_TOKENS_H

#include "tokenizer/class.h"

/*
 * The tokens that a pack's files ask for, as upstream reads them.  It sees a
 * text (plain) and an AddedToken (with flags) as different things.
 */
struct token {
    struct added_wish wish;
    bool is_plain;
    bool is_default; /* the class's own, not the pack's */
    int64_t id;      /* of a decoder's token */
    const char *key; /* of a special token, or NULL */
    size_t order;    /* of coming into its list */
    size_t next;     /* 1 + the place of another of this content, or 0 */
};

/* A list; contents are the files' (the ledger keeps these). */
struct tokens {
    struct token *items;
    size_t count, cap;
    bool is_indexed;
    struct text_map first; /* of a content */
};

void tokens_add(struct tokens *list, const struct token *token);
/* From now on contents are found, those added later too. */
void tokens_index(struct tokens *list);
void tokens_release(struct tokens *list);
/* The first of that content in a list that is indexed, or NULL. */
const struct token *tokens_find(const struct tokens *list,
                                const struct token *token);

/* A text: special where it has to be added. */
struct token token_plain(const char *text, size_t len);
/* AddedToken(**object), special at least where `is_special` says so. */
int token_read_object(const json_t *object, bool is_special, struct token *out,
                      struct err *err);
/* A text, or an object: one that says it is an AddedToken, and in
 * special_tokens_map.json any. */
int token_read(const json_t *value, bool in_map, struct token *out,
               struct err *err);

/* What they ask for. */
struct class_files {
    struct tokens decoder;  /* by id, rising, each once */
    struct tokens specials; /* by key, in upstream's order */
    struct tokens extras;   /* special ones without a name */
};
int class_files_read(const struct tokenizer *t, const struct rebuild *r,
                     struct class_files *out, struct err *err);
void class_files_release(struct class_files *f);
#endif
