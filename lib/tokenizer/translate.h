#ifndef TOKENIZER_TRANSLATE_H
#define TOKENIZER_TRANSLATE_H

/*
 * Inside of pattern_translate(): translate.c reads groups, repeats and
 * anchors, translate_class.c what stands for one character,
 * translate_property.c knows sets by name, translate_set.c writes them.
 */
#include "tokenizer/char_set.h"
#include "tokenizer/pattern.h"

enum { MAX_DEPTH = 100 };

struct reader {
    const char *source;
    size_t len, at;
    enum pattern_engine engine;
    bool is_caseless;
    int depth;
    uint32_t last_letter; /* the literal just written under (?i), or 0 */
    bool may_be_empty;    /* can what was just read match nothing? */
    struct buf *out;
};

int reader_refuse(size_t at, struct err *err, const char *what);
bool reader_next_is(const struct reader *r, const char *text);
/* Skips the text if it is next. */
bool reader_take(struct reader *r, const char *text);

/* A set as PCRE2 text; tidies it. */
void translate_write_set(struct buf *out, struct char_set *s);

/* The categories, a bit each, of a name such as "lu" or "letter" (in lower case
 * without blanks); 0 when it is none. */
uint32_t translate_categories(const char *plain);

/* A character into a set, with what it is alike under (?i). */
int translate_add_caseless(struct reader *r, uint32_t c, struct char_set *out,
                           struct err *err);

/* Each reads on from r->at: behind the '[' of a class, behind the p of \p{..}
 * (is_negated: \P), at the letter of \n, \x41 and the like. */
int translate_read_class(struct reader *r, struct char_set *out,
                         struct err *err);
int translate_read_property(struct reader *r, bool is_negated,
                            struct char_set *out, struct err *err);
int translate_read_escaped_char(struct reader *r, uint32_t *out,
                                struct err *err);

/* \s, \d, \w, \h and their negations, by their letter. */
bool translate_is_class_letter(char c);
int translate_add_class_letter(struct reader *r, char letter, bool is_inside,
                               struct char_set *out, struct err *err);
#endif
