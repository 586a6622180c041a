/* Equality, order and membership of Python's values. */
#include "jinja/jinja_internal.h"

#include <math.h>
#include <string.h>

/* -1, 0, 1, or 2 when one of them is not a number. */
static int compare_numbers(struct rt *rt, struct jval a, struct jval b)
{
    if (a.type == JV_FLOAT && b.type == JV_FLOAT)
        return a.f < b.f ? -1 : a.f > b.f ? 1 : a.f == b.f ? 0 : 2;
    if (a.type == JV_FLOAT) {
        int by = compare_numbers(rt, b, a);

        return by == 2 ? 2 : -by;
    }
    if (b.type == JV_FLOAT) { /* an int against a float, exactly */
        if (isnan(b.f))
            return 2;
        if (isinf(b.f))
            return b.f > 0 ? -1 : 1;
        double whole = floor(b.f);
        struct jval w = jval_from_double(rt, whole);
        int by = compare_numbers(rt, a, w);

        return by != 0 ? by : b.f > whole ? -1 : 0;
    }
    if (a.type == JV_BIG || b.type == JV_BIG)
        return jbig_compare(rt, a, b);
    int64_t x = a.type == JV_BOOL ? a.b : a.i;
    int64_t y = b.type == JV_BOOL ? b.b : b.i;
    return x < y ? -1 : x > y;
}

/* -1, 0 or 1. */
static int compare_str(const struct jstr *a, const struct jstr *b)
{
    size_t n = a->len < b->len ? a->len : b->len;
    int by = n ? memcmp(a->data, b->data, n) : 0; /* any size */

    if (by == 0)
        return a->len < b->len ? -1 : a->len > b->len;
    return by < 0 ? -1 : 1;
}

static bool equal_dicts(struct rt *rt, struct jdict *a, struct jdict *b)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++) {
        size_t at = jdict_place(rt, b, a->v[i].key, a->v[i].hash);

        if (at == SIZE_MAX || !jval_equal(rt, a->v[i].value, b->v[at].value))
            return false;
    }
    return true;
}

static bool equal_nested(struct rt *rt, struct jval a, struct jval b)
{
    switch (a.type) {
    case JV_LIST:
    case JV_TUPLE:
        if (a.list->n != b.list->n)
            return false;
        for (size_t i = 0; i < a.list->n; i++)
            if (!jval_equal(rt, a.list->v[i], b.list->v[i]))
                return false;
        return true;
    case JV_DICT:
        return equal_dicts(rt, a.dict, b.dict);
    case JV_VIEW:
        if (a.view->kind != b.view->kind || a.view->kind == JVIEW_VALUES)
            return a.p == b.p;
        if (a.view->kind == JVIEW_ITEMS)
            return equal_dicts(rt, a.view->dict, b.view->dict);
        if (a.view->dict->n != b.view->dict->n)
            return false;
        for (size_t i = 0; i < a.view->dict->n; i++)
            if (!jdict_get(rt, b.view->dict, a.view->dict->v[i].key))
                return false;
        return true;
    default:
        return a.p == b.p;
    }
}

bool jval_equal(struct rt *rt, struct jval a, struct jval b)
{
    rt_step(rt, 1);
    if (jval_is_number(a) && jval_is_number(b))
        return compare_numbers(rt, a, b) == 0;
    if (a.type != b.type)
        return false;
    switch (a.type) {
    case JV_NONE:
    case JV_UNDEF:
        return true;
    case JV_STR:
        rt_step(rt, a.s->len / 64);
        return a.s->len == b.s->len &&
               memcmp(a.s->data, b.s->data, a.s->len) == 0;
    case JV_RANGE:
        return a.range->n == b.range->n &&
               (a.range->n == 0 || a.range->start == b.range->start) &&
               (a.range->n < 2 || a.range->step == b.range->step);
    case JV_FUNC:
        return a.func == b.func;
    case JV_METHOD:
        return strcmp(a.method->name, b.method->name) == 0 &&
               jval_is_same(rt, a.method->self, b.method->self);
    default:
        break;
    }
    rt_enter(rt);
    bool same = equal_nested(rt, a, b);
    rt_leave(rt);
    return same;
}

static bool holds(enum jcompare op, int by)
{
    return by != 2 && (op == JC_LT   ? by < 0
                       : op == JC_LE ? by <= 0
                       : op == JC_GT ? by > 0
                                     : by >= 0);
}

bool jval_order(struct rt *rt, enum jcompare op, struct jval a, struct jval b)
{
    static const char *const signs[] = {
        [JC_LT] = "<", [JC_LE] = "<=", [JC_GT] = ">", [JC_GE] = ">="};

    rt_step(rt, 1);
    if (jval_is_number(a) && jval_is_number(b))
        return holds(op, compare_numbers(rt, a, b));
    if (a.type == JV_STR && b.type == JV_STR) {
        rt_step(rt, a.s->len / 64);
        return holds(op, compare_str(a.s, b.s));
    }
    if (a.type == JV_UNDEF)
        jval_undef_fail(rt, a);
    if (b.type == JV_UNDEF)
        jval_undef_fail(rt, b);
    if (a.type == b.type && (a.type == JV_LIST || a.type == JV_TUPLE)) {
        size_t i = 0, n = a.list->n < b.list->n ? a.list->n : b.list->n;
        bool is;

        rt_enter(rt);
        while (i < n && jval_equal(rt, a.list->v[i], b.list->v[i]))
            i++;
        is = i < n ? jval_order(rt, op, a.list->v[i], b.list->v[i])
                   : holds(op,
                           a.list->n < b.list->n ? -1 : a.list->n > b.list->n);
        rt_leave(rt);
        return is;
    }
    if (a.type == JV_VIEW && b.type == JV_VIEW)
        rt_fail(rt, ERR_UNSUPPORTED, "ordering the views of dicts");
    rt_fail(rt, ERR_INPUT, "'%s' not supported between '%s' and '%s'",
            signs[op], jval_typename(a), jval_typename(b));
}

static bool contains(const struct jstr *s, const struct jstr *part)
{
    return part->len == 0 ||
           (s->len && memmem(s->data, s->len, part->data, part->len));
}

bool jval_in(struct rt *rt, struct jval item, struct jval box)
{
    struct jval v;

    switch (box.type) {
    case JV_STR:
        if (item.type != JV_STR)
            rt_fail(rt, ERR_INPUT,
                    "'in <string>' requires a string on its left, not %s",
                    jval_typename(item));
        rt_step(rt, box.s->len / 16);
        return contains(box.s, item.s);
    case JV_DICT:
        return jdict_get(rt, box.dict, item) != NULL;
    case JV_RANGE:
        if (jval_is_int(item) && item.type != JV_BIG) {
            int64_t i = jval_index(rt, item) - box.range->start;

            return i % box.range->step == 0 && i / box.range->step >= 0 &&
                   i / box.range->step < box.range->n;
        }
        break;
    case JV_VIEW:
        if (box.view->kind == JVIEW_KEYS)
            return jdict_get(rt, box.view->dict, item) != NULL;
        if (box.view->kind == JVIEW_ITEMS) {
            if (item.type != JV_TUPLE || item.list->n != 2)
                return false;
            struct jval *has = jdict_get(rt, box.view->dict, item.list->v[0]);
            return has && jval_equal(rt, *has, item.list->v[1]);
        }
        break;
    default:
        if (!jval_is_iterable(box))
            rt_fail(rt, ERR_INPUT, "argument of type '%s' is not iterable",
                    jval_typename(box));
    }
    struct jiter *it = jiter_new(rt, box);
    while (jiter_next(rt, it, &v))
        if (jval_equal(rt, v, item))
            return true;
    return false;
}

/* a is b.  Where CPython's answer depends on how it came by two equal values,
 * there is none to give. */
bool jval_is_same(struct rt *rt, struct jval a, struct jval b)
{
    if (a.type != b.type)
        return false;
    switch (a.type) {
    case JV_NONE:
        return true;
    case JV_BOOL:
        return a.b == b.b;
    case JV_INT:
        if (a.i != b.i || (a.i >= -5 && a.i <= 256))
            return a.i == b.i;
        break;
    case JV_FUNC:
        return a.func == b.func;
    case JV_STR:
        if (a.p == b.p || a.s->len == 0)
            return a.safe == b.safe && a.s->len == b.s->len;
        if (!jval_equal(rt, a, b))
            return false;
        break;
    case JV_TUPLE:
        if (a.list->n == 0 && b.list->n == 0)
            return true;
        return a.p == b.p;
    case JV_FLOAT:
    case JV_BIG:
        if (!jval_equal(rt, a, b))
            return false;
        break;
    default:
        return a.p == b.p;
    }
    rt_fail(rt, ERR_UNSUPPORTED,
            "'sameas' of two equal values of type %s, which is chance",
            jval_typename(a));
}
