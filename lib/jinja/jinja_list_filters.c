/* Filters on what can be iterated over. */
#include "jinja/jinja_filters.h"
#include "jinja/jinja_text.h"

#include <string.h>

/* --- attribute paths --- */

static bool all_digits(const char *data, size_t len)
{
    size_t i = 0;

    while (i < len)
        if (!juni_is(juni_next(data, &i), JUNI_DIGIT))
            return false;
    return len > 0;
}

/* One step of a path; numbers are indices. */
static struct jval step_path(struct rt *rt, struct jval v, const char *data,
                             size_t len, struct jval fallback)
{
    struct jval key = jval_str(rt, data, len);

    if (all_digits(data, len) && !jstr_to_int(rt, key, 10, &key))
        rt_fail(rt, ERR_INPUT,
                "invalid literal for int() in an attribute path");
    v = jinja_getitem(rt, v, key);
    return v.type == JV_UNDEF && fallback.type != JV_MISSING &&
                   fallback.type != JV_NONE
               ? fallback
               : v;
}

struct jval jfilter_getter(struct rt *rt, struct jval v, struct jval path,
                           struct jval fallback)
{
    if (path.type == JV_MISSING || path.type == JV_NONE)
        return v;
    if (path.type != JV_STR) {
        v = jinja_getitem(rt, v, path);
        return v.type == JV_UNDEF && fallback.type != JV_MISSING &&
                       fallback.type != JV_NONE
                   ? fallback
                   : v;
    }
    const char *p = path.s->data, *end = p + path.s->len;
    for (;;) {
        const char *dot = end > p ? memchr(p, '.', (size_t)(end - p)) : NULL;
        size_t len = (size_t)((dot ? dot : end) - p);

        v = step_path(rt, v, p, len, fallback);
        if (!dot)
            return v;
        p = dot + 1;
    }
}

/* --- filters --- */

struct jval jfilter_attr(struct rt *rt, struct jval v, struct jargs *args)
{
    struct jval name;

    jargs_bind(rt, args, "attr", "name", 1, false, &name);
    if (name.type != JV_STR)
        rt_fail(rt, ERR_INPUT, "attr: the name is not a string");
    if (v.type == JV_DICT) { /* no falling back to keys */
        bool is_unsafe;
        char *text = rt_printf(rt, "%.*s", (int)name.s->len, name.s->data);

        if (!jmethod_exists(rt, v, text, &is_unsafe))
            return jval_undef_name(rt, v, name);
    }
    return jinja_getattr(rt, v, name);
}

struct jval jfilter_length(struct rt *rt, struct jval v, struct jargs *args)
{
    int64_t n;

    jargs_bind(rt, args, "length", "", 0, true, NULL);
    if (!jval_len(rt, v, &n))
        rt_fail(rt, ERR_INPUT, "object of type '%s' has no len()",
                jval_typename(v));
    return jval_int(n);
}

struct jval jfilter_list(struct rt *rt, struct jval v, struct jargs *args)
{
    jargs_bind(rt, args, "list", "", 0, true, NULL);
    return jval_to_list(rt, v);
}

struct jval jfilter_first(struct rt *rt, struct jval v, struct jargs *args)
{
    struct jval out;

    jargs_bind(rt, args, "first", "", 0, true, NULL);
    if (jiter_next(rt, jiter_new(rt, v), &out))
        return out;
    return jval_undef(rt, "no first item, sequence was empty");
}

static bool is_reversible(struct jval v)
{
    return jval_is_iterable(v) && v.type != JV_ITER && v.type != JV_LOOP &&
           v.type != JV_UNDEF;
}

struct jval jfilter_last(struct rt *rt, struct jval v, struct jargs *args)
{
    jargs_bind(rt, args, "last", "", 0, true, NULL);
    if (!is_reversible(v) && v.type != JV_UNDEF)
        rt_fail(rt, ERR_INPUT, "'%s' object is not reversible",
                jval_typename(v));
    struct jval list = jval_to_list(rt, v);
    return list.list->n ? list.list->v[list.list->n - 1]
                        : jval_undef(rt, "no last item, sequence was empty");
}

struct jval jfilter_reverse(struct rt *rt, struct jval v, struct jargs *args)
{
    jargs_bind(rt, args, "reverse", "", 0, true, NULL);
    if (v.type == JV_STR)
        return jval_slice(rt, v, jval_missing, jval_missing, jval_int(-1));
    if (!jval_is_iterable(v))
        rt_fail(rt, ERR_INPUT, "reverse: argument must be iterable");
    if (is_reversible(v) || v.type == JV_UNDEF)
        return jiter_lazy(rt, JI_REVERSED, jval_to_list(rt, v));
    struct jval list = jval_to_list(rt, v);
    jlist_reverse(list.list);
    return list;
}

struct jval jfilter_join(struct rt *rt, struct jval v, struct jargs *args)
{
    struct jval a[2], item;
    struct jsb b = {.rt = rt};
    bool is_first = true;

    jargs_bind(rt, args, "join", "d,attribute", 0, false, a);
    struct jval sep =
        a[0].type == JV_MISSING ? jval_cstr(rt, "") : jval_to_str(rt, a[0]);
    struct jiter *it = jiter_new(rt, v);
    while (jiter_next(rt, it, &item)) {
        if (!is_first)
            jsb_add(&b, sep.s->data, sep.s->len);
        is_first = false;
        jval_print(rt, &b, jfilter_getter(rt, item, a[1], jval_missing));
    }
    return jsb_val(&b);
}

struct jval jfilter_sum(struct rt *rt, struct jval v, struct jargs *args)
{
    struct jval a[2], item, sum;

    jargs_bind(rt, args, "sum", "attribute,start", 0, false, a);
    sum = a[1].type == JV_MISSING ? jval_int(0) : a[1];
    if (sum.type == JV_STR)
        rt_fail(rt, ERR_INPUT, "sum: cannot sum strings");
    struct jiter *it = jiter_new(rt, v);
    while (jiter_next(rt, it, &item))
        sum = jval_add(rt, sum, jfilter_getter(rt, item, a[0], jval_missing));
    return sum;
}

struct jval jfilter_map(struct rt *rt, struct jval v, struct jargs *args)
{
    struct jval out = jiter_lazy(rt, JI_MAP, v);
    struct jval *attribute =
        args->kw ? jdict_find(rt, args->kw, "attribute") : NULL;

    out.iter->args = *args;
    if (args->n == 0 && attribute) {
        struct jval a[2];

        jargs_bind(rt, args, "map", "attribute,default", 0, false, a);
        out.iter->by_attr = true;
        out.iter->attr = a[0];
        out.iter->fallback = a[1];
    }
    return out;
}

static struct jval selecting(struct rt *rt, struct jval v, struct jargs *args,
                             bool negate, bool by_attr)
{
    struct jval out = jiter_lazy(rt, JI_SELECT, v);

    out.iter->args = *args;
    out.iter->negate = negate;
    out.iter->by_attr = by_attr;
    return out;
}

struct jval jfilter_select(struct rt *rt, struct jval v, struct jargs *args)
{
    return selecting(rt, v, args, false, false);
}

struct jval jfilter_reject(struct rt *rt, struct jval v, struct jargs *args)
{
    return selecting(rt, v, args, true, false);
}

struct jval jfilter_selectattr(struct rt *rt, struct jval v, struct jargs *args)
{
    return selecting(rt, v, args, false, true);
}

struct jval jfilter_rejectattr(struct rt *rt, struct jval v, struct jargs *args)
{
    return selecting(rt, v, args, true, true);
}

struct jval jfilter_unique(struct rt *rt, struct jval v, struct jargs *args)
{
    struct jval a[2], out = jiter_lazy(rt, JI_UNIQUE, v);

    jargs_bind(rt, args, "unique", "case_sensitive,attribute", 0, false, a);
    out.iter->by_attr = jargs_flag(rt, a[0], false);
    out.iter->attr = a[1];
    out.iter->seen = rt_alloc(rt, sizeof(struct jdict));
    return out;
}

struct jval jfilter_items(struct rt *rt, struct jval v, struct jargs *args)
{
    jargs_bind(rt, args, "items", "", 0, true, NULL);
    return jiter_lazy(rt, JI_ITEMS, v);
}

/* Rows of a list: so many, or of such a length. */
static struct jval in_rows(struct rt *rt, struct jval v, struct jargs *args,
                           enum jiter_kind kind, const char *what,
                           const char *names)
{
    struct jval a[2], out = jiter_lazy(rt, kind, v);

    jargs_bind(rt, args, what, names, 1, false, a);
    out.iter->args.v = rt_alloc(rt, sizeof(a[0]));
    out.iter->args.v[0] = a[0];
    out.iter->fallback = a[1].type == JV_MISSING ? jval_none : a[1];
    return out;
}

struct jval jfilter_batch(struct rt *rt, struct jval v, struct jargs *args)
{
    return in_rows(rt, v, args, JI_BATCH, "batch", "linecount,fill_with");
}

struct jval jfilter_slice(struct rt *rt, struct jval v, struct jargs *args)
{
    return in_rows(rt, v, args, JI_SLICE, "slice", "slices,fill_with");
}
