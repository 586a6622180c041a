/* A text in a text: where it is, how often, and another one in its place. */
#include "jinja/jinja_text.h"

#include <string.h>

/* The first place of `what`, NULL when there is none. */
const char *jstr_search(struct rt *rt, const char *data, size_t len,
                        const struct jstr *what)
{
    if (what->len == 0)
        return data;
    const char *at = len ? memmem(data, len, what->data, what->len) : NULL;
    rt_step(rt, 1 + (at ? (size_t)(at - data) : len) / 16);
    return at;
}

/* The last place of `what`, NULL when there is none. */
const char *jstr_search_back(struct rt *rt, const char *data, size_t len,
                             const struct jstr *what)
{
    if (what->len > len)
        return NULL;
    if (what->len == 0)
        return data + len;
    for (size_t room = len - what->len + 1; room > 0;) {
        const char *at = memrchr(data, what->data[0], room);
        size_t left = at ? (size_t)(at - data) : 0;

        rt_step(rt, 1 + (room - left) / 64 + what->len / 64);
        if (!at || memcmp(at, what->data, what->len) == 0)
            return at;
        room = left;
    }
    return NULL;
}

/* The range [start, end) of a method, as bytes; false when it is empty in a
 * way that finds nothing. */
static bool clip(struct rt *rt, struct jval v, struct jval start,
                 struct jval end, size_t *from, size_t *to)
{
    int64_t n = (int64_t)jstr_chars(rt, v.s);
    int64_t a = start.type == JV_MISSING || start.type == JV_NONE
                    ? 0
                    : jval_clamp(rt, start);
    int64_t b =
        end.type == JV_MISSING || end.type == JV_NONE ? n : jval_clamp(rt, end);

    b = b > n ? n : b < 0 ? (b < -n ? 0 : b + n) : b;
    a = a < 0 ? (a < -n ? 0 : a + n) : a;
    if (a > b)
        return false;
    *from = jstr_offset(rt, v.s, (size_t)a);
    *to = jstr_offset(rt, v.s, (size_t)b);
    return true;
}

int64_t jstr_find(struct rt *rt, struct jval v, const struct jval a[3],
                  bool from_right)
{
    size_t from, to;

    if (a[0].type != JV_STR)
        rt_fail(rt, ERR_INPUT, "must be str, not %s", jval_typename(a[0]));
    if (!clip(rt, v, a[1], a[2], &from, &to))
        return -1;
    const char *at =
        from_right ? jstr_search_back(rt, v.s->data + from, to - from, a[0].s)
                   : jstr_search(rt, v.s->data + from, to - from, a[0].s);
    if (!at)
        return -1;
    size_t before = (size_t)(at - v.s->data);
    rt_step(rt, before / 64);
    return (int64_t)juni_count(v.s->data, before);
}

int64_t jstr_count(struct rt *rt, struct jval v, const struct jval a[3])
{
    size_t from, to;
    int64_t n = 0;

    if (a[0].type != JV_STR)
        rt_fail(rt, ERR_INPUT, "must be str, not %s", jval_typename(a[0]));
    if (!clip(rt, v, a[1], a[2], &from, &to))
        return 0;
    rt_step(rt, v.s->len / 64);
    if (a[0].s->len == 0)
        return (int64_t)juni_count(v.s->data + from, to - from) + 1;
    for (;;) {
        const char *at = jstr_search(rt, v.s->data + from, to - from, a[0].s);

        if (!at)
            return n;
        n++;
        from = (size_t)(at - v.s->data) + a[0].s->len;
    }
}

bool jstr_has_affix(struct rt *rt, struct jval v, const struct jval a[3],
                    bool at_end)
{
    size_t from, to;
    bool is_tuple = a[0].type == JV_TUPLE;
    size_t n = is_tuple ? a[0].list->n : 1;
    bool is_clipped = clip(rt, v, a[1], a[2], &from, &to);

    if (!is_tuple && a[0].type != JV_STR)
        rt_fail(rt, ERR_INPUT,
                "%s first arg must be str or a tuple of str, not %s",
                at_end ? "endswith" : "startswith", jval_typename(a[0]));
    for (size_t i = 0; i < n; i++) {
        struct jval what = is_tuple ? a[0].list->v[i] : a[0];

        if (what.type != JV_STR)
            rt_fail(rt, ERR_INPUT,
                    "a tuple for %s must only contain str, "
                    "not %s",
                    at_end ? "endswith" : "startswith", jval_typename(what));
        rt_step(rt, 1 + what.s->len / 64);
        if (is_clipped && what.s->len <= to - from &&
            memcmp(v.s->data + (at_end ? to - what.s->len : from), what.s->data,
                   what.s->len) == 0)
            return true;
    }
    return false;
}

struct jval jstr_replace(struct rt *rt, struct jval v, struct jval from,
                         struct jval to, int64_t count)
{
    struct jsb b = {.rt = rt};
    const char *p = v.s->data, *end = p + v.s->len;

    rt_step(rt, v.s->len / 16);
    if (from.s->len == 0) { /* between all characters */
        size_t i = 0;

        while (count != 0) {
            jsb_add(&b, to.s->data, to.s->len);
            count--;
            if (i == v.s->len)
                break;
            size_t at = i;
            juni_next(v.s->data, &i);
            jsb_add(&b, p + at, i - at);
            rt_step(rt, 1);
        }
        jsb_add(&b, p + i, v.s->len - i);
        return jstr_like(jsb_val(&b), v);
    }
    while (count != 0) {
        const char *at = jstr_search(rt, p, (size_t)(end - p), from.s);

        if (!at)
            break;
        jsb_add(&b, p, (size_t)(at - p));
        jsb_add(&b, to.s->data, to.s->len);
        p = at + from.s->len;
        count--;
    }
    if (p == v.s->data)
        return v;
    jsb_add(&b, p, (size_t)(end - p));
    return jstr_like(jsb_val(&b), v);
}
