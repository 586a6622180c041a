/* Iteration over Python's values, and the lazy filters. */
#include "jinja/jinja_text.h"

struct jiter *jiter_new(struct rt *rt, struct jval v)
{
    if (v.type == JV_ITER)
        return v.iter;
    if (!jval_is_iterable(v) || v.type == JV_LOOP)
        rt_fail(rt, v.type == JV_LOOP ? ERR_UNSUPPORTED : ERR_INPUT,
                "'%s' object is not iterable", jval_typename(v));
    struct jiter *it = rt_alloc(rt, sizeof(*it));
    it->source = v;
    switch (v.type) {
    case JV_LIST:
    case JV_TUPLE:
        it->kind = JI_LIST;
        break;
    case JV_STR:
        it->kind = JI_STR;
        break;
    case JV_DICT:
        it->kind = JI_DICT;
        it->view = JVIEW_KEYS;
        break;
    case JV_VIEW:
        it->kind = JI_DICT;
        it->view = v.view->kind;
        it->source = (struct jval){.type = JV_DICT, .dict = v.view->dict};
        break;
    case JV_RANGE:
        it->kind = JI_RANGE;
        break;
    default:
        it->kind = JI_EMPTY;
    }
    return it;
}

struct jval jiter_lazy(struct rt *rt, enum jiter_kind kind, struct jval v)
{
    struct jiter *it = rt_alloc(rt, sizeof(*it));

    it->kind = kind;
    it->source = v;
    return (struct jval){.type = JV_ITER, .iter = it};
}

struct jval jval_to_list(struct rt *rt, struct jval v)
{
    int64_t n = 0;

    if (v.type != JV_LOOP)
        jval_len(rt, v, &n);
    struct jval out = jval_list(rt, JV_LIST, (size_t)n), item;
    struct jiter *it = jiter_new(rt, v);
    while (jiter_next(rt, it, &item))
        jlist_add(rt, out.list, item);
    return out;
}

static struct jval pair(struct rt *rt, struct jval a, struct jval b)
{
    struct jval t = jval_list(rt, JV_TUPLE, 2);

    jlist_add(rt, t.list, a);
    jlist_add(rt, t.list, b);
    return t;
}

static bool next_entry(struct rt *rt, const struct jdict *d, size_t i,
                       enum jview_kind view, struct jval *out)
{
    if (i >= d->n)
        return false;
    *out = view == JVIEW_KEYS     ? d->v[i].key
           : view == JVIEW_VALUES ? d->v[i].value
                                  : pair(rt, d->v[i].key, d->v[i].value);
    return true;
}

/* The number of the filter that map names. */
static int named_filter(struct rt *rt, struct jval name)
{
    int filter =
        name.type == JV_STR ? jfilter_find(name.s->data, name.s->len) : -1;

    if (filter >= 0)
        return filter;
    name = jval_to_str(rt, name);
    char *text = rt_printf(rt, "%.*s", (int)name.s->len, name.s->data);
    rt_fail(rt, jfilter_is_known(text) ? ERR_UNSUPPORTED : ERR_INPUT,
            "no filter named '%s'", text);
}

static bool next_mapped(struct rt *rt, struct jiter *it, struct jval *out)
{
    struct jargs args = it->args;
    struct jval v;

    if (!it->by_attr && args.n == 0)
        rt_fail(rt, ERR_INPUT, "map requires a filter argument");
    if (!jiter_next(rt, it->from, &v))
        return false;
    if (it->by_attr) {
        *out = jfilter_getter(rt, v, it->attr, it->fallback);
        return true;
    }
    int filter = named_filter(rt, args.v[0]);
    args.v++;
    args.n--;
    *out = jfilter_call(rt, filter, v, &args);
    return true;
}

static int named_test(struct rt *rt, struct jval name)
{
    int test = name.type == JV_STR ? jtest_find(name.s->data, name.s->len) : -1;

    if (test >= 0)
        return test;
    name = jval_to_str(rt, name);
    rt_fail(rt, ERR_INPUT, "no test named '%.*s'",
            (int)(name.s->len < 100 ? name.s->len : 100), name.s->data);
}

/* select, reject and the same by an attribute: a test with its arguments. */
static bool next_selected(struct rt *rt, struct jiter *it, struct jval *out)
{
    size_t off = it->by_attr ? 1 : 0;
    int test = -1;
    struct jval v;

    if (it->by_attr && it->args.n == 0)
        rt_fail(rt, ERR_INPUT, "missing parameter for attribute name");
    while (jiter_next(rt, it->from, &v)) {
        struct jval asked =
            it->by_attr ? jfilter_getter(rt, v, it->args.v[0], jval_missing)
                        : v;
        bool is;

        if (it->args.n > off) {
            struct jargs args = it->args;

            if (test < 0)
                test = named_test(rt, args.v[off]);
            args.v += off + 1;
            args.n -= off + 1;
            is = jtest_call(rt, test, asked, &args);
        } else {
            is = jval_truth(rt, asked);
        }
        if (is != it->negate) {
            *out = v;
            return true;
        }
    }
    return false;
}

static bool next_unique(struct rt *rt, struct jiter *it, struct jval *out)
{
    while (jiter_next(rt, it->from, out)) {
        struct jval key = jfilter_getter(rt, *out, it->attr, jval_missing);

        if (!it->by_attr && key.type == JV_STR)
            key = jstr_case(rt, key, "lower");
        if (jdict_get(rt, it->seen, key))
            continue;
        jdict_put(rt, it->seen, key, jval_none);
        return true;
    }
    return false;
}

/* A row of a length; the last one is filled up. */
static bool next_batch(struct rt *rt, struct jiter *it, struct jval *out)
{
    struct jval row = it->attr; /* a value read ahead */
    struct jval length = it->args.v[0], v;

    if (row.type == JV_MISSING)
        row = jval_list(rt, JV_LIST, 0);
    it->attr = jval_missing;
    while (jiter_next(rt, it->from, &v)) {
        if (jval_equal(rt, jval_int((int64_t)row.list->n), length)) {
            it->attr = jval_list(rt, JV_LIST, 1);
            jlist_add(rt, it->attr.list, v);
            *out = row;
            return true;
        }
        jlist_add(rt, row.list, v);
    }
    it->is_done = true;
    if (row.list->n == 0)
        return false;
    if (it->fallback.type != JV_NONE)
        while (jval_order(rt, JC_LT, jval_int((int64_t)row.list->n), length)) {
            jval_index(rt, length);
            jlist_add(rt, row.list, it->fallback);
        }
    *out = row;
    return true;
}

/* One of so many rows; the longer ones come first. */
static bool next_slice(struct rt *rt, struct jiter *it, struct jval *out)
{
    int64_t n = (int64_t)it->source.list->n, slices = it->number;
    int64_t i = (int64_t)it->at;

    if (slices == 0)
        rt_fail(rt, ERR_INPUT, "integer division or modulo by zero");
    if (i >= slices)
        return false;
    int64_t each = n / slices, extra = n % slices;
    *out = jval_list(rt, JV_LIST, 0);
    for (int64_t k = 0; k < each + (i < extra); k++)
        jlist_add(rt, out->list, it->source.list->v[it->number2++]);
    if (it->fallback.type != JV_NONE && i >= extra)
        jlist_add(rt, out->list, it->fallback);
    it->at++;
    return true;
}

/* Like a generator, a lazy filter looks at what it was given only when its
 * first value is asked for. */
static void make_ready(struct rt *rt, struct jiter *it)
{
    bool is_undefined = it->source.type == JV_UNDEF;

    it->is_ready = true;
    if (it->kind == JI_MAP || it->kind == JI_SELECT)
        it->is_done = !jval_truth(rt, it->source);
    if (it->kind == JI_ITEMS) {
        it->is_done = is_undefined;
        if (!is_undefined && it->source.type != JV_DICT)
            rt_fail(rt, ERR_INPUT, "can only get item pairs from a mapping");
    }
    if (it->kind == JI_SLICE) {
        it->source = jval_to_list(rt, it->source);
        it->number = jval_index(rt, it->args.v[0]);
    }
    if (!it->is_done)
        it->from = jiter_new(rt, it->source);
}

static bool next_lazy(struct rt *rt, struct jiter *it, struct jval *out)
{
    bool has = false;

    if (!it->is_ready)
        make_ready(rt, it);
    if (it->is_done)
        return false;
    switch (it->kind) {
    case JI_MAP:
        has = next_mapped(rt, it, out);
        break;
    case JI_SELECT:
        has = next_selected(rt, it, out);
        break;
    case JI_UNIQUE:
        has = next_unique(rt, it, out);
        break;
    case JI_BATCH:
        return next_batch(rt, it, out);
    case JI_SLICE:
        has = next_slice(rt, it, out);
        break;
    default: /* JI_ITEMS */
        has = next_entry(rt, it->source.dict, it->at++, JVIEW_ITEMS, out);
    }
    it->is_done = !has;
    return has;
}

bool jiter_next(struct rt *rt, struct jiter *it, struct jval *out)
{
    size_t from = it->at;
    bool is;

    rt_step(rt, 1);
    switch (it->kind) {
    case JI_EMPTY:
        return false;
    case JI_LIST:
        if (it->at >= it->source.list->n)
            return false;
        *out = it->source.list->v[it->at++];
        return true;
    case JI_REVERSED:
        if (it->at >= it->source.list->n)
            return false;
        *out = it->source.list->v[it->source.list->n - ++it->at];
        return true;
    case JI_STR:
        if (it->at >= it->source.s->len)
            return false;
        juni_next(it->source.s->data, &it->at);
        *out = jval_str(rt, it->source.s->data + from, it->at - from);
        out->s->chars = 1;
        return true;
    case JI_DICT:
        if (!next_entry(rt, it->source.dict, it->at, it->view, out))
            return false;
        it->at++;
        return true;
    case JI_RANGE:
        if ((int64_t)it->at >= it->source.range->n)
            return false;
        *out = jval_int(it->source.range->start +
                        (int64_t)it->at++ * it->source.range->step);
        return true;
    case JI_LOOP_FILTER:
        rt_enter(rt);
        is = jinja_loop_filter(rt, it, out);
        rt_leave(rt);
        return is;
    default:
        rt_enter(rt);
        is = next_lazy(rt, it, out);
        rt_leave(rt);
        return is;
    }
}
