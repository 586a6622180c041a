/* Filters that compare: sort, dictsort, groupby, min and max. */
#include "jinja/jinja_filters.h"
#include "jinja/jinja_text.h"

#include <string.h>

/* sorted() wants an int for its reverse. */
static bool is_reverse(struct rt *rt, struct jval v)
{
    if (v.type == JV_MISSING)
        return false;
    if (!jval_is_int(v))
        jval_index(rt, v);
    return jval_truth(rt, v);
}

static struct jval lower(struct rt *rt, struct jval v)
{
    return v.type == JV_STR ? jstr_case(rt, v, "lower") : v;
}

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

struct jval jfilter_sort(struct rt *rt, struct jval v, struct jargs *args)
{
    struct jval a[3];

    jargs_bind(rt, args, "sort", "reverse,case_sensitive,attribute", 0, false,
               a);
    struct jval list = jval_to_list(rt, v);
    size_t n = list.list->n;
    struct keyed *keyed = rt_alloc(rt, (n + 1) * sizeof(*keyed));
    for (size_t i = 0; i < n; i++)
        keyed[i] = (struct keyed){
            sort_key(rt, list.list->v[i], a[2], jargs_flag(rt, a[1], false)),
            list.list->v[i]};
    return sort_keyed(rt, keyed, n, is_reverse(rt, a[0]), false);
}

struct jval jfilter_dictsort(struct rt *rt, struct jval v, struct jargs *args)
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

        keyed[i] =
            (struct keyed){jargs_flag(rt, a[0], false) ? key : lower(rt, key),
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

        if (!jargs_flag(rt, a[0], false))
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

struct jval jfilter_min(struct rt *rt, struct jval v, struct jargs *args)
{
    return min_max(rt, v, args, "min", JC_LT);
}

struct jval jfilter_max(struct rt *rt, struct jval v, struct jargs *args)
{
    return min_max(rt, v, args, "max", JC_GT);
}

struct jval jfilter_groupby(struct rt *rt, struct jval v, struct jargs *args)
{
    struct jval a[3], out = jval_list(rt, JV_LIST, 0), last = jval_missing;

    jargs_bind(rt, args, "groupby", "attribute,default,case_sensitive", 1,
               false, a);
    bool is_sensitive = jargs_flag(rt, a[2], false);
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
