/* A str in parts: at white space, at a separator, at the ends of lines. */
#include "jinja/jinja_text.h"

#include <string.h>

static struct jval split_space(struct rt *rt, struct jval v, int64_t max,
                               bool from_right)
{
    struct jval out = jval_list(rt, JV_LIST, 0);
    size_t from = 0, to = v.s->len, at;

    rt_step(rt, v.s->len / 16);
    for (;;) {
        v = jstr_part(rt, v, from, to);
        v = jstr_strip(rt, v, jval_missing, from_right ? 2 : 1);
        from = 0;
        to = v.s->len;
        if (to == 0)
            break;
        if (max-- == 0) {
            jlist_add(rt, out.list, v); /* space at its outer end stays */
            break;
        }
        at = from_right ? to : 0;
        while (from_right ? at > 0 : at < to) {
            size_t next = at;
            uint32_t c = from_right ? juni_before(v.s->data, &next)
                                    : juni_next(v.s->data, &next);

            if (juni_is(c, JUNI_SPACE))
                break;
            at = next;
        }
        jlist_add(rt, out.list,
                  from_right ? jstr_part(rt, v, at, to)
                             : jstr_part(rt, v, 0, at));
        if (from_right)
            to = at;
        else
            from = at;
    }
    return out;
}

struct jval jstr_split(struct rt *rt, struct jval v, struct jval sep,
                       struct jval max_value, bool from_right)
{
    int64_t max = max_value.type == JV_MISSING ? -1 : jval_index(rt, max_value);
    struct jval out;

    if (sep.type == JV_MISSING || sep.type == JV_NONE) {
        out = split_space(rt, v, max, from_right);
        if (from_right)
            jlist_reverse(out.list);
        return out;
    }
    if (sep.type != JV_STR)
        rt_fail(rt, ERR_INPUT, "must be str or None, not %s",
                jval_typename(sep));
    if (sep.s->len == 0)
        rt_fail(rt, ERR_INPUT, "empty separator");
    out = jval_list(rt, JV_LIST, 0);
    size_t from = 0, to = v.s->len;
    while (max != 0) {
        const char *at =
            from_right ? jstr_search_back(rt, v.s->data, to, sep.s)
                       : jstr_search(rt, v.s->data + from, to - from, sep.s);

        if (!at)
            break;
        size_t i = (size_t)(at - v.s->data);
        jlist_add(rt, out.list,
                  from_right ? jstr_part(rt, v, i + sep.s->len, to)
                             : jstr_part(rt, v, from, i));
        if (from_right)
            to = i;
        else
            from = i + sep.s->len;
        max--;
    }
    jlist_add(rt, out.list, jstr_part(rt, v, from, to));
    if (from_right)
        jlist_reverse(out.list);
    return out;
}

struct jval jstr_partition(struct rt *rt, struct jval v, struct jval sep,
                           bool from_right)
{
    struct jval out = jval_list(rt, JV_TUPLE, 3);

    if (sep.type != JV_STR)
        rt_fail(rt, ERR_INPUT, "must be str, not %s", jval_typename(sep));
    if (sep.s->len == 0)
        rt_fail(rt, ERR_INPUT, "empty separator");
    const char *at = from_right
                         ? jstr_search_back(rt, v.s->data, v.s->len, sep.s)
                         : jstr_search(rt, v.s->data, v.s->len, sep.s);
    size_t i = at ? (size_t)(at - v.s->data) : from_right ? 0 : v.s->len;
    jlist_add(rt, out.list, jstr_part(rt, v, 0, i));
    jlist_add(rt, out.list,
              at ? jstr_like(sep, v) : jstr_like(jval_cstr(rt, ""), v));
    jlist_add(rt, out.list,
              jstr_part(rt, v,
                        at           ? i + sep.s->len
                        : from_right ? 0
                                     : i,
                        v.s->len));
    return out;
}

struct jval jstr_splitlines(struct rt *rt, struct jval v, bool keep)
{
    struct jval out = jval_list(rt, JV_LIST, 0);

    rt_step(rt, v.s->len / 16);
    for (size_t i = 0; i < v.s->len;) {
        size_t from = i, end = i;

        while (i < v.s->len) {
            uint32_t c = juni_next(v.s->data, &i);

            if ((c >= 0x0a && c <= 0x0d) || (c >= 0x1c && c <= 0x1e) ||
                c == 0x85 || c == 0x2028 || c == 0x2029) {
                if (c == '\r' && i < v.s->len && v.s->data[i] == '\n')
                    i++;
                break;
            }
            end = i;
        }
        jlist_add(rt, out.list, jstr_part(rt, v, from, keep ? i : end));
    }
    return out;
}
