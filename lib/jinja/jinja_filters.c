/* Filters, tests and global functions. */
#include "jinja/jinja_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- arguments --- */

void jargs_bind(struct rt *rt, struct jargs *args, const char *what,
                const char *names, size_t need, bool positional,
                struct jval *out)
{
    size_t n = 0, used = 0;

    for (const char *p = names; *p; n++) {
        const char *end = strchr(p, ',');
        size_t len = end ? (size_t)(end - p) : strlen(p);
        struct jval *kw = NULL;

        if (args->kw && !positional) {
            struct jstr s = {p, len, SIZE_MAX};

            kw =
                jdict_get(rt, args->kw, (struct jval){.type = JV_STR, .s = &s});
        }
        out[n] = jval_missing;
        if (n < args->n)
            out[n] = args->v[n];
        else if (kw)
            out[n] = *kw;
        else if (n < need)
            rt_fail(rt, ERR_INPUT, "%s: missing argument '%.*s'", what,
                    (int)len, p);
        used += kw != NULL && n >= args->n;
        p += len + (end != NULL);
    }
    if (args->n > n)
        rt_fail(rt, ERR_INPUT, "%s: %zu arguments, takes at most %zu", what,
                args->n, n);
    if (args->kw && args->kw->n > used)
        rt_fail(rt, ERR_INPUT, "%s: unexpected keyword argument", what);
}

/* sorted() wants an int for its reverse. */
static bool is_reverse(struct rt *rt, struct jval v)
{
    if (v.type == JV_MISSING)
        return false;
    if (!jval_is_int(v))
        jval_index(rt, v);
    return jval_truth(rt, v);
}

static bool flag(struct rt *rt, struct jval v, bool otherwise)
{
    return v.type == JV_MISSING ? otherwise : jval_truth(rt, v);
}

static struct jval lower(struct rt *rt, struct jval v)
{
    return v.type == JV_STR ? jstr_case(rt, v, "lower") : v;
}

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

/* --- sorting --- */

struct sorting {
    struct rt *rt;
    bool is_plain; /* keys compare as they are, not as lists of one */
};

static bool less(struct sorting *s, struct jval a, struct jval b)
{
    if (s->is_plain)
        return jval_order(s->rt, JC_LT, a, b);
    for (size_t i = 0; i < a.list->n; i++)
        if (!jval_equal(s->rt, a.list->v[i], b.list->v[i]))
            return jval_order(s->rt, JC_LT, a.list->v[i], b.list->v[i]);
    return false;
}

struct keyed {
    struct jval key, value;
};

/* Stable, by merging. */
static void merge_sort(struct sorting *s, struct keyed *v, struct keyed *spare,
                       size_t n)
{
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t at = 0; at < n; at += 2 * width) {
            size_t a = at, a_end = at + width < n ? at + width : n;
            size_t b = a_end, b_end = a_end + width < n ? a_end + width : n;

            for (size_t k = at; k < b_end; k++) {
                bool from_b =
                    a >= a_end || (b < b_end && less(s, v[b].key, v[a].key));

                rt_step(s->rt, 1);
                spare[k] = from_b ? v[b++] : v[a++];
            }
        }
        memcpy(v, spare, n * sizeof(*v));
    }
}

static struct jval sort_keyed(struct rt *rt, struct keyed *v, size_t n,
                              bool reverse, bool is_plain)
{
    struct sorting s = {rt, is_plain};
    struct keyed *spare = rt_alloc(rt, (n + 1) * sizeof(*spare));
    struct jval out = jval_list(rt, JV_LIST, n);

    for (size_t i = 0; reverse && i < n / 2; i++) {
        struct keyed t = v[i];

        v[i] = v[n - 1 - i];
        v[n - 1 - i] = t;
    }
    merge_sort(&s, v, spare, n);
    for (size_t i = 0; i < n; i++)
        jlist_add(rt, out.list, v[reverse ? n - 1 - i : i].value);
    return out;
}

/* The keys of an item: one for each comma separated path. */
static struct jval sort_key(struct rt *rt, struct jval v, struct jval attribute,
                            bool is_sensitive)
{
    struct jval keys = jval_list(rt, JV_LIST, 1), key;

    if (attribute.type != JV_STR) {
        key = jfilter_getter(rt, v, attribute, jval_missing);
        jlist_add(rt, keys.list, is_sensitive ? key : lower(rt, key));
        return keys;
    }
    const char *p = attribute.s->data, *end = p + attribute.s->len;
    for (;;) {
        const char *comma = end > p ? memchr(p, ',', (size_t)(end - p)) : NULL;
        size_t len = (size_t)((comma ? comma : end) - p);

        key = jfilter_getter(rt, v, jval_str(rt, p, len), jval_missing);
        jlist_add(rt, keys.list, is_sensitive ? key : lower(rt, key));
        if (!comma)
            return keys;
        p = comma + 1;
    }
}

static struct jval f_sort(struct rt *rt, struct jval v, struct jargs *args)
{
    struct jval a[3];

    jargs_bind(rt, args, "sort", "reverse,case_sensitive,attribute", 0, false,
               a);
    struct jval list = jval_to_list(rt, v);
    size_t n = list.list->n;
    struct keyed *keyed = rt_alloc(rt, (n + 1) * sizeof(*keyed));
    for (size_t i = 0; i < n; i++)
        keyed[i] = (struct keyed){
            sort_key(rt, list.list->v[i], a[2], flag(rt, a[1], false)),
            list.list->v[i]};
    return sort_keyed(rt, keyed, n, is_reverse(rt, a[0]), false);
}

static struct jval f_dictsort(struct rt *rt, struct jval v, struct jargs *args)
{
    struct jval a[3];
    size_t by = 0;

    jargs_bind(rt, args, "dictsort", "case_sensitive,by,reverse", 0, false, a);
    if (a[1].type != JV_MISSING) {
        if (!jstr_is(a[1], "key") && !jstr_is(a[1], "value"))
            rt_fail(rt, ERR_INPUT,
                    "dictsort: by must be either \"key\" or \"value\"");
        by = jstr_is(a[1], "value");
    }
    if (v.type == JV_UNDEF)
        jval_undef_fail(rt, v);
    if (v.type != JV_DICT)
        rt_fail(rt, ERR_INPUT, "dictsort: '%s' object has no items",
                jval_typename(v));
    struct jview view = {v.dict, JVIEW_ITEMS};
    struct jval items =
        jval_to_list(rt, (struct jval){.type = JV_VIEW, .view = &view});
    size_t n = items.list->n;
    struct keyed *keyed = rt_alloc(rt, (n + 1) * sizeof(*keyed));
    for (size_t i = 0; i < n; i++) {
        struct jval key = items.list->v[i].list->v[by];

        keyed[i] = (struct keyed){flag(rt, a[0], false) ? key : lower(rt, key),
                                  items.list->v[i]};
    }
    return sort_keyed(rt, keyed, n, is_reverse(rt, a[2]), true);
}

static struct jval min_max(struct rt *rt, struct jval v, struct jargs *args,
                           const char *what, enum jcompare op)
{
    struct jval a[2], item, best = jval_missing, best_key = jval_missing;

    jargs_bind(rt, args, what, "case_sensitive,attribute", 0, false, a);
    struct jiter *it = jiter_new(rt, v);
    while (jiter_next(rt, it, &item)) {
        struct jval key = jfilter_getter(rt, item, a[1], jval_missing);

        if (!flag(rt, a[0], false))
            key = lower(rt, key);
        if (best.type == JV_MISSING || jval_order(rt, op, key, best_key)) {
            best = item;
            best_key = key;
        }
    }
    return best.type == JV_MISSING
               ? jval_undef(rt, "no aggregated item, sequence was empty")
               : best;
}

static struct jval f_min(struct rt *rt, struct jval v, struct jargs *args)
{
    return min_max(rt, v, args, "min", JC_LT);
}

static struct jval f_max(struct rt *rt, struct jval v, struct jargs *args)
{
    return min_max(rt, v, args, "max", JC_GT);
}

static struct jval f_groupby(struct rt *rt, struct jval v, struct jargs *args)
{
    struct jval a[3], out = jval_list(rt, JV_LIST, 0), last = jval_missing;

    jargs_bind(rt, args, "groupby", "attribute,default,case_sensitive", 1,
               false, a);
    bool is_sensitive = flag(rt, a[2], false);
    struct jval list = jval_to_list(rt, v);
    size_t n = list.list->n;
    struct keyed *keyed = rt_alloc(rt, (n + 1) * sizeof(*keyed));
    for (size_t i = 0; i < n; i++) {
        struct jval pair = jval_list(rt, JV_TUPLE, 2);
        struct jval key = jfilter_getter(rt, list.list->v[i], a[0], a[1]);

        jlist_add(rt, pair.list, key);
        jlist_add(rt, pair.list, list.list->v[i]);
        keyed[i] = (struct keyed){is_sensitive ? key : lower(rt, key), pair};
    }
    list = sort_keyed(rt, keyed, n, false, true);
    for (size_t i = 0; i < n; i++) {
        struct jval key = list.list->v[i].list->v[0];
        struct jval folded = is_sensitive ? key : lower(rt, key);

        if (last.type == JV_MISSING || !jval_equal(rt, folded, last)) {
            struct jval group = jval_list(rt, JV_TUPLE, 2);

            group.list->is_group = true;
            jlist_add(rt, group.list, key);
            jlist_add(rt, group.list, jval_list(rt, JV_LIST, 0));
            jlist_add(rt, out.list, group);
            last = folded;
        }
        jlist_add(rt, out.list->v[out.list->n - 1].list->v[1].list,
                  list.list->v[i].list->v[1]);
    }
    return out;
}

/* --- lists --- */

static struct jval f_length(struct rt *rt, struct jval v, struct jargs *args)
{
    int64_t n;

    jargs_bind(rt, args, "length", "", 0, true, NULL);
    if (!jval_len(rt, v, &n))
        rt_fail(rt, ERR_INPUT, "object of type '%s' has no len()",
                jval_typename(v));
    return jval_int(n);
}

static struct jval f_list(struct rt *rt, struct jval v, struct jargs *args)
{
    jargs_bind(rt, args, "list", "", 0, true, NULL);
    return jval_to_list(rt, v);
}

static struct jval f_first(struct rt *rt, struct jval v, struct jargs *args)
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

static struct jval f_last(struct rt *rt, struct jval v, struct jargs *args)
{
    jargs_bind(rt, args, "last", "", 0, true, NULL);
    if (!is_reversible(v) && v.type != JV_UNDEF)
        rt_fail(rt, ERR_INPUT, "'%s' object is not reversible",
                jval_typename(v));
    struct jval list = jval_to_list(rt, v);
    return list.list->n ? list.list->v[list.list->n - 1]
                        : jval_undef(rt, "no last item, sequence was empty");
}

static struct jval f_reverse(struct rt *rt, struct jval v, struct jargs *args)
{
    jargs_bind(rt, args, "reverse", "", 0, true, NULL);
    if (v.type == JV_STR)
        return jval_slice(rt, v, jval_missing, jval_missing, jval_int(-1));
    if (!jval_is_iterable(v))
        rt_fail(rt, ERR_INPUT, "reverse: argument must be iterable");
    if (is_reversible(v) || v.type == JV_UNDEF)
        return jiter_lazy(rt, JI_REVERSED, jval_to_list(rt, v));
    struct jval list = jval_to_list(rt, v);
    for (size_t i = 0; i < list.list->n / 2; i++) {
        struct jval t = list.list->v[i];

        list.list->v[i] = list.list->v[list.list->n - 1 - i];
        list.list->v[list.list->n - 1 - i] = t;
    }
    return list;
}

static struct jval f_join(struct rt *rt, struct jval v, struct jargs *args)
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

static struct jval f_sum(struct rt *rt, struct jval v, struct jargs *args)
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

static struct jval f_map(struct rt *rt, struct jval v, struct jargs *args)
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

static struct jval f_select(struct rt *rt, struct jval v, struct jargs *args)
{
    return selecting(rt, v, args, false, false);
}

static struct jval f_reject(struct rt *rt, struct jval v, struct jargs *args)
{
    return selecting(rt, v, args, true, false);
}

static struct jval f_selectattr(struct rt *rt, struct jval v,
                                struct jargs *args)
{
    return selecting(rt, v, args, false, true);
}

static struct jval f_rejectattr(struct rt *rt, struct jval v,
                                struct jargs *args)
{
    return selecting(rt, v, args, true, true);
}

static struct jval f_unique(struct rt *rt, struct jval v, struct jargs *args)
{
    struct jval a[2], out = jiter_lazy(rt, JI_UNIQUE, v);

    jargs_bind(rt, args, "unique", "case_sensitive,attribute", 0, false, a);
    out.iter->by_attr = flag(rt, a[0], false);
    out.iter->attr = a[1];
    out.iter->seen = rt_alloc(rt, sizeof(struct jdict));
    return out;
}

static struct jval f_items(struct rt *rt, struct jval v, struct jargs *args)
{
    jargs_bind(rt, args, "items", "", 0, true, NULL);
    return jiter_lazy(rt, JI_ITEMS, v);
}

static struct jval f_batch(struct rt *rt, struct jval v, struct jargs *args)
{
    struct jval a[2], out = jiter_lazy(rt, JI_BATCH, v);

    jargs_bind(rt, args, "batch", "linecount,fill_with", 1, false, a);
    out.iter->args.v = rt_alloc(rt, sizeof(a[0]));
    out.iter->args.v[0] = a[0];
    out.iter->fallback = a[1].type == JV_MISSING ? jval_none : a[1];
    return out;
}

static struct jval f_slice(struct rt *rt, struct jval v, struct jargs *args)
{
    struct jval a[2], out = jiter_lazy(rt, JI_SLICE, v);

    jargs_bind(rt, args, "slice", "slices,fill_with", 1, false, a);
    out.iter->args.v = rt_alloc(rt, sizeof(a[0]));
    out.iter->args.v[0] = a[0];
    out.iter->fallback = a[1].type == JV_MISSING ? jval_none : a[1];
    return out;
}

/* --- text --- */

static struct jval f_string(struct rt *rt, struct jval v, struct jargs *args)
{
    jargs_bind(rt, args, "string", "", 0, true, NULL);
    return jval_soft_str(rt, v);
}

static struct jval cased(struct rt *rt, struct jval v, struct jargs *args,
                         const char *how)
{
    jargs_bind(rt, args, how, "", 0, true, NULL);
    return jstr_case(rt, jval_soft_str(rt, v), how);
}

static struct jval f_upper(struct rt *rt, struct jval v, struct jargs *args)
{
    return cased(rt, v, args, "upper");
}

static struct jval f_lower(struct rt *rt, struct jval v, struct jargs *args)
{
    return cased(rt, v, args, "lower");
}

static struct jval f_capitalize(struct rt *rt, struct jval v,
                                struct jargs *args)
{
    return cased(rt, v, args, "capitalize");
}

/* Words start behind runs of white space and of - ( { [ <; the pieces of a
 * Markup join to a plain string. */
static struct jval f_title(struct rt *rt, struct jval v, struct jargs *args)
{
    struct jsb b = {.rt = rt};

    jargs_bind(rt, args, "title", "", 0, true, NULL);
    v = jval_soft_str(rt, v);
    for (size_t i = 0; i < v.s->len;) {
        size_t from = i, next = i;
        bool is_gap = false;

        for (; i < v.s->len; i = next) {
            uint32_t c = juni_next(v.s->data, &next);
            bool is = juni_is(c, JUNI_SPACE) ||
                      (c < 0x80 && c && strchr("-({[<", (int)c));

            if (i == from)
                is_gap = is;
            else if (is != is_gap)
                break;
        }
        next = from;
        juni_next(v.s->data, &next);
        struct jval first = jval_str(rt, v.s->data + from, next - from);
        struct jval rest = jval_str(rt, v.s->data + next, i - next);
        first = jstr_case(rt, first, "upper");
        rest = jstr_case(rt, rest, "lower");
        jsb_add(&b, first.s->data, first.s->len);
        jsb_add(&b, rest.s->data, rest.s->len);
    }
    return jsb_val(&b);
}

static struct jval f_trim(struct rt *rt, struct jval v, struct jargs *args)
{
    struct jval chars;

    jargs_bind(rt, args, "trim", "chars", 0, false, &chars);
    return jstr_strip(rt, jval_soft_str(rt, v), chars, 3);
}

static struct jval f_replace(struct rt *rt, struct jval v, struct jargs *args)
{
    struct jval a[3];

    jargs_bind(rt, args, "replace", "old,new,count", 2, false, a);
    return jstr_replace(
        rt, jval_to_str(rt, v), jval_to_str(rt, a[0]), jval_to_str(rt, a[1]),
        a[2].type == JV_MISSING || a[2].type == JV_NONE ? -1
                                                        : jval_index(rt, a[2]));
}

static struct jval f_indent(struct rt *rt, struct jval v, struct jargs *args)
{
    struct jval a[3], by, newline = jval_cstr(rt, "\n");

    jargs_bind(rt, args, "indent", "width,first,blank", 0, false, a);
    if (a[0].type == JV_STR)
        by = a[0];
    else
        by = jval_arith(rt, JN_MUL, jval_cstr(rt, " "),
                        a[0].type == JV_MISSING ? jval_int(4) : a[0]);
    if (v.type != JV_STR && v.type != JV_UNDEF)
        rt_fail(rt, ERR_INPUT, "indent: '%s' object is not a string",
                jval_typename(v));
    by.safe |= v.type == JV_STR && v.safe;
    newline.safe = v.type == JV_STR && v.safe;
    struct jval lines = jstr_splitlines(rt, jval_add(rt, v, newline), false);
    struct jval out = jval_missing;
    bool with_blank = flag(rt, a[2], false);
    for (size_t i = 0; i < lines.list->n; i++) {
        struct jval line = lines.list->v[i];

        if (i == 0) {
            out = line;
            continue;
        }
        out = jval_add(rt, out, newline);
        if (line.s->len || with_blank)
            out = jval_add(rt, out, by);
        out = jval_add(rt, out, line);
    }
    return flag(rt, a[1], false) ? jval_add(rt, by, out) : out;
}

static struct jval f_format(struct rt *rt, struct jval v, struct jargs *args)
{
    bool has_kw = args->kw && args->kw->n;
    struct jval values = jval_list(rt, JV_TUPLE, args->n);

    if (args->n && has_kw)
        rt_fail(rt, ERR_INPUT,
                "format: positional and keyword arguments at "
                "the same time");
    for (size_t i = 0; i < args->n; i++)
        jlist_add(rt, values.list, args->v[i]);
    if (has_kw)
        values = (struct jval){.type = JV_DICT, .dict = args->kw};
    return jformat_percent(rt, jval_soft_str(rt, v), values);
}

static struct jval f_escape(struct rt *rt, struct jval v, struct jargs *args)
{
    jargs_bind(rt, args, "escape", "", 0, true, NULL);
    return jval_escape(rt, v);
}

static struct jval f_forceescape(struct rt *rt, struct jval v,
                                 struct jargs *args)
{
    jargs_bind(rt, args, "forceescape", "", 0, true, NULL);
    return jval_escape(rt, jval_to_str(rt, v));
}

static struct jval f_safe(struct rt *rt, struct jval v, struct jargs *args)
{
    jargs_bind(rt, args, "safe", "", 0, true, NULL);
    v = jval_soft_str(rt, v);
    v.safe = true;
    return v;
}

static struct jval f_center(struct rt *rt, struct jval v, struct jargs *args)
{
    struct jval width;

    jargs_bind(rt, args, "center", "width", 0, false, &width);
    return jstr_pad(rt, jval_soft_str(rt, v),
                    width.type == JV_MISSING ? 80 : jval_index(rt, width), ' ',
                    'c');
}

static struct jval f_attr(struct rt *rt, struct jval v, struct jargs *args)
{
    struct jval name;

    jargs_bind(rt, args, "attr", "name", 1, false, &name);
    if (name.type != JV_STR)
        rt_fail(rt, ERR_INPUT, "attr: the name is not a string");
    if (v.type == JV_DICT) { /* no falling back to keys */
        bool is_unsafe;
        char *text = rt_printf(rt, "%.*s", (int)name.s->len, name.s->data);

        if (!jmethod_exists(v, text, &is_unsafe))
            return jval_undef_name(rt, v, name);
    }
    return jinja_getattr(rt, v, name);
}

static struct jval f_wordcount(struct rt *rt, struct jval v, struct jargs *args)
{
    int64_t n = 0;
    bool in_word = false;

    jargs_bind(rt, args, "wordcount", "", 0, true, NULL);
    v = jval_soft_str(rt, v);
    for (size_t i = 0; i < v.s->len;) {
        uint32_t c = juni_next(v.s->data, &i);
        bool is = c == '_' || juni_is(c, JUNI_ALNUM);

        n += is && !in_word;
        in_word = is;
    }
    return jval_int(n);
}

static struct jval f_truncate(struct rt *rt, struct jval v, struct jargs *args)
{
    struct jval a[4], end;
    int64_t length, leeway, n, end_n;

    jargs_bind(rt, args, "truncate", "length,killwords,end,leeway", 0, false,
               a);
    end = a[2].type == JV_MISSING ? jval_cstr(rt, "...") : a[2];
    length = a[0].type == JV_MISSING ? 255 : jval_clamp(rt, a[0]);
    leeway = a[3].type == JV_MISSING || a[3].type == JV_NONE
                 ? 5
                 : jval_index(rt, a[3]);
    if (end.type != JV_STR || !jval_len(rt, v, &n))
        rt_fail(rt, ERR_INPUT, "truncate: needs strings");
    end_n = (int64_t)jstr_chars(end.s);
    if (length < end_n || leeway < 0)
        rt_fail(rt, ERR_INPUT, "truncate: length or leeway is too small");
    if (n <= length || n - length <= leeway)
        return v;
    if (v.type != JV_STR)
        rt_fail(rt, ERR_UNSUPPORTED, "truncate of a %s", jval_typename(v));
    v = jval_slice(rt, v, jval_missing, jval_int(length - end_n), jval_missing);
    if (!flag(rt, a[1], false))
        for (size_t i = v.s->len; i > 0; i--)
            if (v.s->data[i - 1] == ' ') {
                bool is_safe = v.safe;

                v = jval_str(rt, v.s->data, i - 1);
                v.safe = is_safe;
                break;
            }
    return jval_add(rt, v, end);
}

static struct jval f_filesizeformat(struct rt *rt, struct jval v,
                                    struct jargs *args)
{
    static const char letters[] = "kMGTPEZY";
    struct jval a;
    double bytes, unit;

    jargs_bind(rt, args, "filesizeformat", "binary", 0, false, &a);
    bool is_binary = flag(rt, a, false);
    double base = is_binary ? 1024 : 1000;
    if (v.type == JV_STR) {
        if (!jstr_to_float(rt, v, &bytes))
            rt_fail(rt, ERR_INPUT, "filesizeformat: not a number");
    } else if (jval_is_number(v)) {
        bytes = jval_number(rt, v);
    } else {
        rt_fail(rt, ERR_INPUT, "filesizeformat: not a number");
    }
    if (bytes == 1)
        return jval_cstr(rt, "1 Byte");
    if (bytes < base)
        return jval_cstr(rt, rt_printf(rt, "%.0f Bytes", trunc(bytes)));
    unit = base * base;
    for (size_t i = 0;; i++, unit *= base)
        if (bytes < unit || i == 7)
            return jval_cstr(rt,
                             rt_printf(rt, "%.1f %c%sB", base * bytes / unit,
                                       is_binary && i == 0 ? 'K' : letters[i],
                                       is_binary ? "i" : ""));
}

static struct jval f_tojson(struct rt *rt, struct jval v, struct jargs *args)
{
    return jjson_dump(rt, args, v);
}

/* --- numbers and defaults --- */

static struct jval f_default(struct rt *rt, struct jval v, struct jargs *args)
{
    struct jval a[2];

    jargs_bind(rt, args, "default", "default_value,boolean", 0, false, a);
    if (v.type == JV_UNDEF || (flag(rt, a[1], false) && !jval_truth(rt, v)))
        return a[0].type == JV_MISSING ? jval_cstr(rt, "") : a[0];
    return v;
}

static struct jval f_abs(struct rt *rt, struct jval v, struct jargs *args)
{
    jargs_bind(rt, args, "abs", "", 0, true, NULL);
    if (v.type == JV_FLOAT)
        return jval_float(fabs(v.f));
    if (!jval_is_int(v))
        rt_fail(rt, ERR_INPUT, "bad operand type for abs(): '%s'",
                jval_typename(v));
    bool is_negative =
        v.type == JV_BIG ? v.big->negative : jval_index(rt, v) < 0;
    return is_negative         ? jval_negate(rt, v)
           : v.type == JV_BOOL ? jval_int(v.b)
                               : v;
}

static struct jval f_int(struct rt *rt, struct jval v, struct jargs *args)
{
    struct jval a[2], out;
    double f;

    jargs_bind(rt, args, "int", "default,base", 0, false, a);
    struct jval otherwise = a[0].type == JV_MISSING ? jval_int(0) : a[0];
    if (v.type == JV_UNDEF)
        jval_undef_fail(rt, v);
    if (v.type == JV_BOOL)
        return jval_int(v.b);
    if (jval_is_int(v))
        return v;
    if (v.type == JV_FLOAT) {
        if (isinf(v.f))
            rt_fail(rt, ERR_INPUT, "cannot convert float infinity to integer");
        return isnan(v.f) ? otherwise : jval_from_double(rt, v.f);
    }
    if (v.type != JV_STR)
        return otherwise;
    int64_t base = 10;
    if (a[1].type != JV_MISSING) {
        /* int() of a base that is no int is caught; then float() is tried */
        base = jval_is_int(a[1]) ? jval_clamp(rt, a[1]) : -1;
    }
    if (jstr_to_int(rt, v, base, &out))
        return out;
    if (!jstr_to_float(rt, v, &f) || !isfinite(f))
        return otherwise;
    return jval_from_double(rt, f);
}

static struct jval f_float(struct rt *rt, struct jval v, struct jargs *args)
{
    struct jval a;
    double f;

    jargs_bind(rt, args, "float", "default", 0, false, &a);
    if (v.type == JV_UNDEF)
        jval_undef_fail(rt, v);
    if (jval_is_number(v))
        return jval_float(jval_number(rt, v));
    if (v.type == JV_STR && jstr_to_float(rt, v, &f))
        return jval_float(f);
    return a.type == JV_MISSING ? jval_float(0) : a;
}

/* A float to a multiple of 10^places, places < 0, half to even: on the exact
 * decimal digits. */
static double round_tens(double f, int64_t places)
{
    char text[400], *p;
    int digits;

    if (places < -400)
        return copysign(0.0, f);
    /* the exact whole part; what is behind the point only breaks ties */
    snprintf(text, sizeof(text), "%.0f", trunc(fabs(f)));
    digits = (int)strlen(text);
    bool has_rest = fabs(f) != trunc(fabs(f));
    int keep = digits + (int)places;
    if (keep < 0)
        return copysign(0.0, f);
    p = text + keep;
    bool is_above = *p > '5', is_half = *p == '5';
    for (char *q = p + 1; is_half && *q; q++)
        has_rest |= *q != '0';
    if (is_half)
        is_above = has_rest || (keep > 0 && (p[-1] - '0') % 2 == 1);
    memset(p, '0', (size_t)(digits - keep));
    double whole = strtod(text, NULL);
    if (is_above) {
        char more[sizeof(text) + 1];

        /* one up in the last kept place, with the carry */
        snprintf(more, sizeof(more), "0%s", text);
        int i = keep;
        while (more[i] == '9')
            more[i--] = '0';
        more[i]++;
        whole = strtod(more, NULL);
    }
    return copysign(whole, f);
}

static struct jval round_int(struct rt *rt, struct jval v, int64_t places)
{
    struct jval unit, q, r, twice;

    if (v.type == JV_BOOL)
        v = jval_int(v.b);
    if (places >= 0)
        return v;
    if (places < -5000)
        return jval_int(0);
    unit = jbig_pow(rt, jval_int(10), (uint64_t)-places);
    jbig_divmod(rt, v, unit, &q, &r);
    twice = jval_arith(rt, JN_MUL, r, jval_int(2));
    bool is_odd = jval_truth(rt, jval_arith(rt, JN_MOD, q, jval_int(2)));
    if (jval_order(rt, JC_GT, twice, unit) ||
        (is_odd && jval_equal(rt, twice, unit)))
        q = jval_add(rt, q, jval_int(1));
    return jval_arith(rt, JN_MUL, q, unit);
}

static struct jval f_round(struct rt *rt, struct jval v, struct jargs *args)
{
    struct jval a[2];
    char text[512];

    jargs_bind(rt, args, "round", "precision,method", 0, false, a);
    bool is_common = a[1].type == JV_MISSING || jstr_is(a[1], "common");
    bool is_ceil = jstr_is(a[1], "ceil");
    if (!is_common && !is_ceil && !jstr_is(a[1], "floor"))
        rt_fail(rt, ERR_INPUT, "round: method must be common, ceil or floor");
    struct jval precision = a[0].type == JV_MISSING ? jval_int(0) : a[0];
    if (v.type == JV_UNDEF)
        jval_undef_fail(rt, v);
    if (!jval_is_number(v))
        rt_fail(rt, ERR_INPUT, "round: '%s' object is not a number",
                jval_typename(v));
    if (!is_common) {
        struct jval ten = jval_arith(rt, JN_POW, jval_int(10), precision);
        struct jval scaled = jval_arith(rt, JN_MUL, v, ten);

        if (scaled.type == JV_FLOAT) {
            if (!isfinite(scaled.f))
                rt_fail(rt, ERR_INPUT, "cannot convert float to integer");
            scaled = jval_from_double(rt, is_ceil ? ceil(scaled.f)
                                                  : floor(scaled.f));
        }
        return jval_arith(rt, JN_DIV, scaled, ten);
    }
    if (precision.type == JV_NONE) {
        if (v.type != JV_FLOAT)
            return round_int(rt, v, 0);
        if (!isfinite(v.f))
            rt_fail(rt, ERR_INPUT, "cannot convert float to integer");
        return jval_from_double(rt, rint(v.f));
    }
    int64_t places = jval_index(rt, precision);
    if (v.type != JV_FLOAT)
        return round_int(rt, v, places);
    if (!isfinite(v.f) || places > 323)
        return v;
    if (places < 0) {
        double f = round_tens(v.f, places);

        if (isinf(f))
            rt_fail(rt, ERR_INPUT, "rounded value too large to represent");
        return jval_float(f);
    }
    /* libc prints the exact value, half to even, as Python does; the places
     * above are more than any double has in front of and behind the point */
    int n = snprintf(NULL, 0, "%.*f", (int)places, v.f);
    char *exact = n < (int)sizeof(text) ? text : rt_alloc(rt, (size_t)n + 1);
    snprintf(exact, (size_t)n + 1, "%.*f", (int)places, v.f);
    return jval_float(strtod(exact, NULL));
}

typedef struct jval filter_function(struct rt *, struct jval, struct jargs *);
static const struct {
    const char *name;
    filter_function *call;
} filters[] = {
    {"abs", f_abs},
    {"attr", f_attr},
    {"batch", f_batch},
    {"capitalize", f_capitalize},
    {"center", f_center},
    {"count", f_length},
    {"d", f_default},
    {"default", f_default},
    {"dictsort", f_dictsort},
    {"e", f_escape},
    {"escape", f_escape},
    {"filesizeformat", f_filesizeformat},
    {"first", f_first},
    {"float", f_float},
    {"forceescape", f_forceescape},
    {"format", f_format},
    {"groupby", f_groupby},
    {"indent", f_indent},
    {"int", f_int},
    {"items", f_items},
    {"join", f_join},
    {"last", f_last},
    {"length", f_length},
    {"list", f_list},
    {"lower", f_lower},
    {"map", f_map},
    {"max", f_max},
    {"min", f_min},
    {"reject", f_reject},
    {"rejectattr", f_rejectattr},
    {"replace", f_replace},
    {"reverse", f_reverse},
    {"round", f_round},
    {"safe", f_safe},
    {"select", f_select},
    {"selectattr", f_selectattr},
    {"slice", f_slice},
    {"sort", f_sort},
    {"string", f_string},
    {"sum", f_sum},
    {"title", f_title},
    {"tojson", f_tojson},
    {"trim", f_trim},
    {"truncate", f_truncate},
    {"unique", f_unique},
    {"upper", f_upper},
    {"wordcount", f_wordcount},
};

int jfilter_find(const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++)
        if (strlen(filters[i].name) == len &&
            memcmp(filters[i].name, name, len) == 0)
            return (int)i;
    return -1;
}

bool jfilter_is_known(const char *name)
{
    static const char *const known[] = {"pprint",    "random", "striptags",
                                        "urlencode", "urlize", "wordwrap",
                                        "xmlattr"};

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(known[i], name) == 0)
            return true;
    return false;
}

struct jval jfilter_call(struct rt *rt, int filter, struct jval v,
                         struct jargs *args)
{
    rt_enter(rt);
    v = filters[filter].call(rt, v, args);
    rt_leave(rt);
    return v;
}

/* --- tests --- */

enum test {
    T_ODD,
    T_EVEN,
    T_DIVISIBLEBY,
    T_DEFINED,
    T_UNDEFINED,
    T_FILTER,
    T_TEST,
    T_NONE,
    T_BOOLEAN,
    T_FALSE,
    T_TRUE,
    T_INTEGER,
    T_FLOAT,
    T_LOWER,
    T_UPPER,
    T_STRING,
    T_MAPPING,
    T_NUMBER,
    T_SEQUENCE,
    T_ITERABLE,
    T_CALLABLE,
    T_SAMEAS,
    T_ESCAPED,
    T_IN,
    T_EQ,
    T_NE,
    T_GT,
    T_GE,
    T_LT,
    T_LE,
};
static const struct {
    const char *name;
    enum test test;
} tests[] = {
    {"odd", T_ODD},
    {"even", T_EVEN},
    {"divisibleby", T_DIVISIBLEBY},
    {"defined", T_DEFINED},
    {"undefined", T_UNDEFINED},
    {"filter", T_FILTER},
    {"test", T_TEST},
    {"none", T_NONE},
    {"boolean", T_BOOLEAN},
    {"false", T_FALSE},
    {"true", T_TRUE},
    {"integer", T_INTEGER},
    {"float", T_FLOAT},
    {"lower", T_LOWER},
    {"upper", T_UPPER},
    {"string", T_STRING},
    {"mapping", T_MAPPING},
    {"number", T_NUMBER},
    {"sequence", T_SEQUENCE},
    {"iterable", T_ITERABLE},
    {"callable", T_CALLABLE},
    {"sameas", T_SAMEAS},
    {"escaped", T_ESCAPED},
    {"in", T_IN},
    {"==", T_EQ},
    {"eq", T_EQ},
    {"equalto", T_EQ},
    {"!=", T_NE},
    {"ne", T_NE},
    {">", T_GT},
    {"gt", T_GT},
    {"greaterthan", T_GT},
    {"ge", T_GE},
    {">=", T_GE},
    {"<", T_LT},
    {"lt", T_LT},
    {"lessthan", T_LT},
    {"<=", T_LE},
    {"le", T_LE},
};

int jtest_find(const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
        if (strlen(tests[i].name) == len &&
            memcmp(tests[i].name, name, len) == 0)
            return (int)i;
    return -1;
}

static bool is_cased(struct rt *rt, struct jval v, unsigned want,
                     unsigned other)
{
    bool has = false;

    v = jval_to_str(rt, v);
    rt_step(rt, v.s->len / 16);
    for (size_t i = 0; i < v.s->len;) {
        uint32_t c = juni_next(v.s->data, &i);

        if (juni_is(c, other | JUNI_TITLE))
            return false;
        has |= juni_is(c, want);
    }
    return has;
}

static bool is_callable(struct jval v)
{
    switch (v.type) {
    case JV_UNDEF:
    case JV_MACRO:
    case JV_METHOD:
    case JV_FUNC:
    case JV_LOOP:
    case JV_JOINER:
        return true;
    default:
        return false;
    }
}

bool jtest_call(struct rt *rt, int test, struct jval v, struct jargs *args)
{
    static const enum jcompare orders[] = {[T_GT - T_GT] = JC_GT,
                                           [T_GE - T_GT] = JC_GE,
                                           [T_LT - T_GT] = JC_LT,
                                           [T_LE - T_GT] = JC_LE};
    enum test t = tests[test].test;
    struct jval other;
    bool takes_one = t == T_DIVISIBLEBY || t == T_SAMEAS || t >= T_IN;

    jargs_bind(rt, args, tests[test].name, takes_one ? "other" : "",
               takes_one ? 1 : 0, t >= T_EQ, takes_one ? &other : NULL);
    switch (t) {
    case T_ODD:
    case T_EVEN:
    case T_DIVISIBLEBY:
        v = jval_arith(rt, JN_MOD, v, t == T_DIVISIBLEBY ? other : jval_int(2));
        return jval_equal(rt, v, jval_int(t == T_ODD));
    case T_DEFINED:
        return v.type != JV_UNDEF;
    case T_UNDEFINED:
        return v.type == JV_UNDEF;
    case T_FILTER:
    case T_TEST: {
        if (v.type != JV_STR)
            return false;
        if (t == T_TEST)
            return jtest_find(v.s->data, v.s->len) >= 0;
        char *name = rt_printf(rt, "%.*s", (int)v.s->len, v.s->data);
        return jfilter_find(v.s->data, v.s->len) >= 0 || jfilter_is_known(name);
    }
    case T_NONE:
        return v.type == JV_NONE;
    case T_BOOLEAN:
        return v.type == JV_BOOL;
    case T_FALSE:
    case T_TRUE:
        return v.type == JV_BOOL && v.b == (t == T_TRUE);
    case T_INTEGER:
        return v.type == JV_INT || v.type == JV_BIG;
    case T_FLOAT:
        return v.type == JV_FLOAT;
    case T_LOWER:
        return is_cased(rt, v, JUNI_LOWER, JUNI_UPPER);
    case T_UPPER:
        return is_cased(rt, v, JUNI_UPPER, JUNI_LOWER);
    case T_STRING:
        return v.type == JV_STR;
    case T_MAPPING:
        return v.type == JV_DICT;
    case T_NUMBER:
        return jval_is_number(v);
    case T_SEQUENCE:
        return jval_is_iterable(v) && v.type != JV_VIEW && v.type != JV_ITER &&
               v.type != JV_LOOP;
    case T_ITERABLE:
        return jval_is_iterable(v);
    case T_CALLABLE:
        return is_callable(v);
    case T_SAMEAS:
        return jval_is_same(rt, v, other);
    case T_ESCAPED:
        return v.type == JV_STR && v.safe;
    case T_IN:
        return jval_in(rt, v, other);
    case T_EQ:
        return jval_equal(rt, v, other);
    case T_NE:
        return !jval_equal(rt, v, other);
    default:
        return jval_order(rt, orders[t - T_GT], v, other);
    }
}

/* --- global functions --- */

bool jfunc_find(const char *name, enum jfunc *out)
{
    static const char *const names[] = {
        [JF_RANGE] = "range",           [JF_DICT] = "dict",
        [JF_NAMESPACE] = "namespace",   [JF_CYCLER] = "cycler",
        [JF_JOINER] = "joiner",         [JF_RAISE] = "raise_exception",
        [JF_STRFTIME] = "strftime_now", [JF_LIPSUM] = "lipsum",
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(names[i], name) == 0) {
            *out = (enum jfunc)i;
            return true;
        }
    return false;
}

static struct jval call_range(struct rt *rt, struct jargs *args)
{
    struct jval a[3];
    struct jrange *r = rt_alloc(rt, sizeof(*r));
    int64_t stop;

    jargs_bind(rt, args, "range", "start,stop,step", 1, true, a);
    if (a[1].type == JV_MISSING) {
        stop = jval_index(rt, a[0]);
    } else {
        r->start = jval_index(rt, a[0]);
        stop = jval_index(rt, a[1]);
    }
    r->step = a[2].type == JV_MISSING ? 1 : jval_index(rt, a[2]);
    if (r->step == 0)
        rt_fail(rt, ERR_INPUT, "range: step must not be zero");
    uint64_t span = 0, by = (uint64_t)r->step;
    if (r->step > 0 ? stop > r->start : stop < r->start)
        span = r->step > 0 ? (uint64_t)stop - (uint64_t)r->start
                           : (uint64_t)r->start - (uint64_t)stop;
    by = r->step > 0 ? by : 0 - by;
    uint64_t n = span ? (span - 1) / by + 1 : 0;
    if (n > 100000)
        rt_fail(rt, ERR_INPUT, "range of more than 100000 values");
    r->stop = stop;
    r->n = (int64_t)n;
    return (struct jval){.type = JV_RANGE, .range = r};
}

/* dict(...) and namespace(...): a mapping or pairs, then keywords. */
static struct jval call_dict(struct rt *rt, struct jargs *args, bool is_ns)
{
    struct jval out = jval_dict(rt), pair;

    if (args->n > 1)
        rt_fail(rt, ERR_INPUT, "dict expected at most 1 argument, got %zu",
                args->n);
    if (args->n && args->v[0].type == JV_UNDEF)
        jval_undef_fail(rt, args->v[0]); /* it is asked for its keys */
    if (args->n && args->v[0].type == JV_DICT) {
        out.dict = jdict_copy(rt, args->v[0].dict);
    } else if (args->n) {
        struct jiter *it = jiter_new(rt, args->v[0]);

        while (jiter_next(rt, it, &pair)) {
            pair = jval_to_list(rt, pair);
            if (pair.list->n != 2)
                rt_fail(rt, ERR_INPUT,
                        "dict: an element has length %zu; 2 is "
                        "required",
                        pair.list->n);
            jdict_put(rt, out.dict, pair.list->v[0], pair.list->v[1]);
        }
    }
    for (size_t i = 0; args->kw && i < args->kw->n; i++)
        jdict_put(rt, out.dict, args->kw->v[i].key, args->kw->v[i].value);
    if (is_ns) {
        out.type = JV_NAMESPACE;
        for (size_t i = 0; rt->t->is_524 && i < out.dict->n; i++) {
            struct jval key = out.dict->v[i].key;

            if (key.type == JV_STR && key.s->len && key.s->data[0] == '_')
                rt_fail(rt, ERR_INPUT,
                        "a namespace attribute may not start with '_'");
        }
    }
    return out;
}

__attribute__((noreturn)) static void raise(struct rt *rt, struct jargs *args)
{
    struct jval text;

    jargs_bind(rt, args, "raise_exception", "message", 1, false, &text);
    text = jval_to_str(rt, text);
    if (rt->results) {
        rt->results->raised = true;
        buf_clear(&rt->results->why);
        buf_add(&rt->results->why, text.s->data, text.s->len);
    }
    size_t len = text.s->len;
    while (len > 400 || (len > 0 && len < text.s->len &&
                         ((unsigned char)text.s->data[len] & 0xc0) == 0x80))
        len--;
    char *line = rt_printf(rt, "%.*s", (int)len, text.s->data);
    for (char *p = line; *p; p++)
        if (*p == '\n' || *p == '\r')
            *p = ' '; /* a message is one line */
    rt_fail(rt, ERR_INPUT, "%s", line);
}

struct jval jfunc_call(struct rt *rt, enum jfunc func, struct jargs *args)
{
    struct jval v = jval_none;

    switch (func) {
    case JF_RANGE:
        return call_range(rt, args);
    case JF_DICT:
    case JF_NAMESPACE:
        return call_dict(rt, args, func == JF_NAMESPACE);
    case JF_CYCLER:
        if (args->n == 0 || args->kw)
            rt_fail(rt, ERR_INPUT, "cycler: at least one item is needed");
        v = (struct jval){.type = JV_CYCLER,
                          .cycler = rt_alloc(rt, sizeof(struct jcycler))};
        for (size_t i = 0; i < args->n; i++)
            jlist_add(rt, &v.cycler->items, args->v[i]);
        return v;
    case JF_JOINER:
        v = (struct jval){.type = JV_JOINER,
                          .joiner = rt_alloc(rt, sizeof(struct jjoiner))};
        jargs_bind(rt, args, "joiner", "sep", 0, false, &v.joiner->sep);
        if (v.joiner->sep.type == JV_MISSING)
            v.joiner->sep = jval_cstr(rt, ", ");
        return v;
    case JF_RAISE:
        raise(rt, args);
    case JF_STRFTIME:
        jargs_bind(rt, args, "strftime_now", "format", 1, false, &v);
        return jformat_time(rt, v);
    default:
        rt_fail(rt, ERR_UNSUPPORTED, "the function 'lipsum'");
    }
}
