/* A str's characters: their case, what is cut off or set around them. */
#include "jinja/jinja_text.h"

#include <string.h>

struct jval jstr_part(struct rt *rt, struct jval v, size_t from, size_t to)
{
    struct jval s = jval_str(rt, v.s->data + from, to - from);

    s.safe = v.safe;
    return s;
}

struct jval jstr_like(struct jval out, struct jval v)
{
    out.safe = v.safe;
    return out;
}

/* Is the capital sigma at [from, next) the last letter of its word? */
static bool is_final_sigma(struct jstr *s, size_t from, size_t next)
{
    uint32_t c;

    for (;;) {
        if (from == 0)
            return false;
        c = juni_before(s->data, &from);
        if (!juni_is(c, JUNI_CASE_IGNORABLE))
            break;
    }
    if (!juni_is(c, JUNI_CASED))
        return false;
    while (next < s->len) {
        c = juni_next(s->data, &next);
        if (!juni_is(c, JUNI_CASE_IGNORABLE))
            return !juni_is(c, JUNI_CASED);
    }
    return true;
}

struct jval jstr_case(struct rt *rt, struct jval v, const char *how)
{
    struct jsb b = {.rt = rt};
    bool was_cased = false, is_title = strcmp(how, "title") == 0;
    bool is_upper = strcmp(how, "upper") == 0;
    bool is_capitalize = strcmp(how, "capitalize") == 0;
    bool is_swap = strcmp(how, "swapcase") == 0;

    rt_step(rt, v.s->len / 16);
    for (size_t i = 0; i < v.s->len;) {
        size_t from = i;
        uint32_t c = juni_next(v.s->data, &i), out[3];
        enum juni_case to = is_upper ? JUNI_TO_UPPER : JUNI_TO_LOWER;

        if (is_swap && juni_is(c, JUNI_LOWER))
            to = JUNI_TO_UPPER;
        if ((is_title && !was_cased) || (is_capitalize && from == 0))
            to = JUNI_TO_TITLE;
        was_cased = juni_is(c, JUNI_CASED);
        if (is_swap && !juni_is(c, JUNI_LOWER | JUNI_UPPER)) {
            jsb_putcp(&b, c);
            continue;
        }
        if (to == JUNI_TO_LOWER && c == 0x3a3) {
            jsb_putcp(&b, is_final_sigma(v.s, from, i) ? 0x3c2 : 0x3c3);
            continue;
        }
        size_t n = juni_map(c, to, out);
        for (size_t k = 0; k < n; k++)
            jsb_putcp(&b, out[k]);
    }
    return jstr_like(jsb_val(&b), v);
}

/* Is c one of `chars`, which may be missing: white space? */
static bool is_stripped(struct rt *rt, uint32_t c, struct jval chars)
{
    if (chars.type != JV_STR)
        return juni_is(c, JUNI_SPACE);
    rt_step(rt, 1 + chars.s->len / 16);
    for (size_t i = 0; i < chars.s->len;)
        if (juni_next(chars.s->data, &i) == c)
            return true;
    return false;
}

struct jval jstr_strip(struct rt *rt, struct jval v, struct jval chars,
                       int sides)
{
    size_t from = 0, to = v.s->len, at;

    if (chars.type != JV_MISSING && chars.type != JV_NONE &&
        chars.type != JV_STR)
        rt_fail(rt, ERR_INPUT, "strip arg must be None or str");
    while ((sides & 1) && from < to) {
        at = from;
        if (!is_stripped(rt, juni_next(v.s->data, &at), chars))
            break;
        from = at;
    }
    while ((sides & 2) && from < to) {
        at = to;
        if (!is_stripped(rt, juni_before(v.s->data, &at), chars))
            break;
        to = at;
    }
    rt_step(rt, (from + v.s->len - to) / 16);
    return jstr_part(rt, v, from, to);
}

struct jval jstr_join(struct rt *rt, struct jval sep, struct jval items,
                      bool must_be_str)
{
    struct jsb b = {.rt = rt};
    struct jval v;
    size_t n = 0;
    struct jiter *it = jiter_new(rt, items);

    while (jiter_next(rt, it, &v)) {
        if (must_be_str && !sep.safe && v.type != JV_STR)
            rt_fail(rt, ERR_INPUT,
                    "sequence item %zu: expected str instance, %s found", n,
                    jval_typename(v));
        if (n++)
            jsb_add(&b, sep.s->data, sep.s->len);
        jval_print(rt, &b, sep.safe ? jval_escape(rt, v) : v);
    }
    return jstr_like(jsb_val(&b), sep);
}

struct jval jstr_pad(struct rt *rt, struct jval v, int64_t width, uint32_t fill,
                     char how)
{
    struct jsb b = {.rt = rt};
    int64_t more = width - (int64_t)jstr_chars(rt, v.s), left = 0;

    if (width < 0 || more <= 0)
        return v;
    if (how == 'r')
        left = more;
    if (how == 'c')
        left = more / 2 + (more & width & 1);
    jsb_fill(&b, fill, (size_t)left);
    jsb_add(&b, v.s->data, v.s->len);
    jsb_fill(&b, fill, (size_t)(more - left));
    return jstr_like(jsb_val(&b), v);
}

struct jval jstr_expandtabs(struct rt *rt, struct jval v, int64_t size)
{
    struct jsb b = {.rt = rt};
    int64_t column = 0;

    for (size_t i = 0; i < v.s->len;) {
        uint32_t c = juni_next(v.s->data, &i);

        if (c != '\t') {
            jsb_putcp(&b, c);
            column = c == '\n' || c == '\r' ? 0 : column + 1;
        } else if (size > 0) {
            int64_t n = size - column % size;

            jsb_fill(&b, ' ', (size_t)n);
            column += n;
        }
    }
    return jstr_like(jsb_val(&b), v);
}

struct jval jstr_zfill(struct rt *rt, struct jval v, int64_t width)
{
    struct jsb b = {.rt = rt};
    int64_t more = width - (int64_t)jstr_chars(rt, v.s);

    if (width < 0 || more <= 0)
        return v;
    bool has_sign = v.s->len && (v.s->data[0] == '+' || v.s->data[0] == '-');
    jsb_add(&b, v.s->data, has_sign);
    jsb_fill(&b, '0', (size_t)more);
    jsb_add(&b, v.s->data + has_sign, v.s->len - has_sign);
    return jstr_like(jsb_val(&b), v);
}

/* --- what it consists of --- */

bool jstr_is_all(struct rt *rt, struct jval v, unsigned flags)
{
    rt_step(rt, v.s->len / 16);
    for (size_t i = 0; i < v.s->len;)
        if (!juni_is(juni_next(v.s->data, &i), flags))
            return false;
    return v.s->len > 0;
}

bool jstr_is_cased(struct rt *rt, struct jval v, unsigned want, unsigned other)
{
    bool has = false;

    rt_step(rt, v.s->len / 16);
    for (size_t i = 0; i < v.s->len;) {
        uint32_t c = juni_next(v.s->data, &i);

        if (juni_is(c, other | JUNI_TITLE))
            return false;
        has |= juni_is(c, want);
    }
    return has;
}

bool jstr_is_title(struct rt *rt, struct jval v)
{
    bool has = false, was_cased = false;

    rt_step(rt, v.s->len / 16);
    for (size_t i = 0; i < v.s->len;) {
        uint32_t c = juni_next(v.s->data, &i);

        if (juni_is(c, JUNI_UPPER | JUNI_TITLE)) {
            if (was_cased)
                return false;
            was_cased = has = true;
        } else if (juni_is(c, JUNI_LOWER)) {
            if (!was_cased)
                return false;
            has = true;
        } else {
            was_cased = false;
        }
    }
    return has;
}

bool jstr_is_identifier(struct rt *rt, struct jval v)
{
    rt_step(rt, v.s->len / 16);
    for (size_t i = 0, from; i < v.s->len;) {
        from = i;
        if (!juni_is(juni_next(v.s->data, &i),
                     from == 0 ? JUNI_ID_START : JUNI_ID_CONTINUE))
            return false;
    }
    return v.s->len > 0;
}
