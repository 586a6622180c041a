#ifndef TOKENIZER_TOKENIZER_INTERNAL_H
#define TOKENIZER_TOKENIZER_INTERNAL_H

#include "tokenizer/added.h"
#include "tokenizer/tokenizer.h"

/* A tokenizer, put together: components, model and added tokens. */

struct scratch {
    struct pattern_scratch *match;
    struct made normal[2];
    struct made *stage; /* one a pre-tokenizer step */
    size_t stage_count;
    struct growth growth;
    struct model_work work;
};

struct tokenizer {
    struct model *model;
    struct chain chain;
    struct added added;
    struct frames frames;
    struct tokenizer *other; /* what the class makes of it, if not the same */
    enum tokenizer_rule rule;
    char *class_name; /* as the pack names it, or NULL */
    char *made_by;    /* the class that upstream takes, or NULL */
    bool cleans_up;   /* the class, when it decodes */
    bool is_cut;      /* tiktoken: long texts are cut before all else */
    char **warnings;
    size_t warning_count;
    const char *transformers;         /* while it is opened, as is ... */
    struct ledger *ledger;            /* ... this; NULL for a file by name */
    _Atomic(struct scratch *) *spare; /* one scratch kept between calls */
};

struct tokenizer *tokenizer_new(void);
/* The one whose ids and texts count: t itself, or what the class makes of it.
 */
static inline const struct tokenizer *tokenizer_meant(const struct tokenizer *t)
{
    return t->other && t->rule == TOKENIZER_CLASS ? t->other : t;
}
/* The added token of an id, or NULL. */
const struct added_token *tokenizer_added(const struct tokenizer *t,
                                          int64_t id);
/*
 * Loads a tokenizer.json.  With a pack's ledger and a rule that asks for it,
 * t->other becomes what the pack's class makes of it, where that is not the
 * same.
 */
int tokenizer_load(struct tokenizer *t, const char *path, struct err *err);
/* Kimi's own cuts of a text before anything else looks at it. */
typedef int tiktoken_each(void *arg, size_t start, size_t end, struct err *err);
int tiktoken_cut(const char *text, size_t len, tiktoken_each *each, void *arg,
                 struct err *err);
int tokenizer_load_tiktoken(struct tokenizer *t, const char *model_path,
                            struct err *err);
void tokenizer_warn(struct tokenizer *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
#endif
