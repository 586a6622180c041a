#ifndef JINJA_JINJA_TEXT_H
#define JINJA_JINJA_TEXT_H

#include "jinja/jinja_internal.h"

/*
 * What a str can do: the work behind its methods and the filters on text.
 * Whatever looks through a text takes steps by its length.
 */

/* jinja_text.c */
struct jval jstr_like(struct jval out, struct jval v); /* Markup if v is */
struct jval jstr_part(struct rt *rt, struct jval v, size_t from, size_t to);
struct jval jstr_case(struct rt *rt, struct jval v, const char *how);
struct jval jstr_strip(struct rt *rt, struct jval v, struct jval chars,
                       int sides); /* 1 left, 2 right */
struct jval jstr_join(struct rt *rt, struct jval sep, struct jval items,
                      bool must_be_str);
struct jval jstr_pad(struct rt *rt, struct jval v, int64_t width, uint32_t fill,
                     char how); /* l, r, c */
struct jval jstr_zfill(struct rt *rt, struct jval v, int64_t width);
struct jval jstr_expandtabs(struct rt *rt, struct jval v, int64_t size);
/* Is it of such characters only, and not empty? */
bool jstr_is_all(struct rt *rt, struct jval v, unsigned flags);
/* Does it have a `want`, and none of `other` nor a title-cased one? */
bool jstr_is_cased(struct rt *rt, struct jval v, unsigned want, unsigned other);
bool jstr_is_title(struct rt *rt, struct jval v);
bool jstr_is_identifier(struct rt *rt, struct jval v);

/* jinja_search.c: a range is {what, start, end}; the last two may be missing */
int64_t jstr_find(struct rt *rt, struct jval v, const struct jval range[3],
                  bool from_right); /* -1: not there */
int64_t jstr_count(struct rt *rt, struct jval v, const struct jval range[3]);
bool jstr_has_affix(struct rt *rt, struct jval v, const struct jval range[3],
                    bool at_end);
struct jval jstr_replace(struct rt *rt, struct jval v, struct jval from,
                         struct jval to, int64_t count);

/* jinja_split.c */
struct jval jstr_split(struct rt *rt, struct jval v, struct jval sep,
                       struct jval max, bool from_right);
struct jval jstr_partition(struct rt *rt, struct jval v, struct jval sep,
                           bool from_right);
struct jval jstr_splitlines(struct rt *rt, struct jval v, bool keep);

/* jinja_search.c, for the two above: bytes in bytes, NULL when not there */
const char *jstr_search(struct rt *rt, const char *data, size_t len,
                        const struct jstr *what);
const char *jstr_search_back(struct rt *rt, const char *data, size_t len,
                             const struct jstr *what);

/* jinja_text_number.c: int(v, base) and float(v); false when they fail */
bool jstr_to_int(struct rt *rt, struct jval v, int64_t base, struct jval *out);
bool jstr_to_float(struct rt *rt, struct jval v, double *out);

/* jinja_str_methods.c */
bool jstr_has_method(const char *name);
struct jval jstr_call(struct rt *rt, struct jval v, const char *name,
                      struct jargs *args);
#endif
