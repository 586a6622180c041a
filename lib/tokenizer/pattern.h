#ifndef TOKENIZER_PATTERN_H
#define TOKENIZER_PATTERN_H

#include "base/buf.h"
#include "base/err.h"
#include "tokenizer/unicode.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * What splits or replaces text: a literal, a set of characters, or a pattern of
 * upstream's engine.  A pattern is translated to PCRE2 construct by construct,
 * its sets written out from our own tables; what cannot be shown to mean the
 * same there is refused by name (ERR_UNSUPPORTED).
 */
enum pattern_engine {
    PATTERN_RUBY, /* tokenizer.json: Oniguruma, Ruby syntax */
    PATTERN_RUST, /* tiktoken: X{n,m}+ is possessive, ^ and $ mean the text */
};

struct pattern;
struct pattern_scratch;

struct pattern *pattern_new(const char *source, size_t len,
                            enum pattern_engine engine, struct err *err);
struct pattern *pattern_new_literal(const char *text, size_t len);
struct pattern *pattern_new_set(const struct unicode_range *ranges,
                                size_t count); /* ranges outlive it */
void pattern_free(struct pattern *p);          /* NULL is fine */

/* The PCRE2 text that a pattern of the engine becomes. */
int pattern_translate(const char *source, size_t len,
                      enum pattern_engine engine, struct buf *out,
                      struct err *err);

/* Memory of one thread at a time for pattern_find(). */
struct pattern_scratch *pattern_scratch_new(void);
void pattern_scratch_free(struct pattern_scratch *s);

/*
 * The leftmost match at or after `from` in text (valid UTF-8): 1 with start and
 * end, 0 when there is none, -1 with err set (a match limit).
 */
int pattern_find(const struct pattern *p, struct pattern_scratch *s,
                 const char *text, size_t len, size_t from, size_t *start,
                 size_t *end, struct err *err);

/*
 * Calls `each` for the whole text cut into matches and what lies between, in
 * order, as upstream does: an empty match counts unless it touches the last
 * match.  Stops with what `each` returns when that is not 0.
 */
typedef int pattern_each(void *arg, size_t start, size_t end, bool is_match,
                         struct err *err);
int pattern_cut(const struct pattern *p, struct pattern_scratch *s,
                const char *text, size_t len, pattern_each *each, void *arg,
                struct err *err);

/* "10.42 2022-12-11" */
const char *pattern_pcre2_version(void);
#endif
