/* What a.b and a['b'] give, in the sandbox. */
#include "jinja/jinja_internal.h"

#include <string.h>

static struct jval unsafe_undef(struct rt *rt, struct jval obj,
                                struct jval name)
{
    struct jval v = jval_undef(
        rt, rt_printf(rt, "access to attribute '%.*s' of '%s' object is unsafe",
                      (int)(name.s->len < 100 ? name.s->len : 100),
                      name.s->data, jval_typename(obj)));

    v.undef->is_security = true;
    return v;
}

static bool peek_next(struct rt *rt, struct jloop *loop)
{
    struct jval v;

    if (loop->after.type == JV_MISSING && jiter_next(rt, loop->iter, &v))
        loop->after = v;
    return loop->after.type != JV_MISSING;
}

int64_t jinja_loop_index(const struct jloop *loop)
{
    return loop->index0 + 1;
}

struct jval jinja_loop_length(struct rt *rt, struct jloop *loop)
{
    if (loop->length < 0 && !jval_len(rt, loop->source, &loop->length)) {
        struct jval rest = jval_list(rt, JV_LIST, 0), v;

        while (jiter_next(rt, loop->iter, &v))
            jlist_add(rt, rest.list, v);
        loop->iter = jiter_new(rt, rest);
        loop->length = (int64_t)rest.list->n + loop->index0 + 1 +
                       (loop->after.type != JV_MISSING);
    }
    return jval_int(loop->length);
}

static struct jval method(struct rt *rt, struct jval self, struct jval name)
{
    struct jmethod *m = rt_alloc(rt, sizeof(*m));

    m->self = self;
    m->name = rt_printf(rt, "%.*s", (int)name.s->len, name.s->data);
    return (struct jval){.type = JV_METHOD, .method = m};
}

static bool loop_attr(struct rt *rt, struct jval obj, struct jval name,
                      struct jval *out)
{
    struct jloop *l = obj.loop;
    int64_t index = l->index0 + 1;

    if (jstr_is(name, "index"))
        *out = jval_int(index);
    else if (jstr_is(name, "index0"))
        *out = jval_int(l->index0);
    else if (jstr_is(name, "revindex"))
        *out = jval_int(jinja_loop_length(rt, l).i - l->index0);
    else if (jstr_is(name, "revindex0"))
        *out = jval_int(jinja_loop_length(rt, l).i - index);
    else if (jstr_is(name, "first"))
        *out = jval_bool(l->index0 == 0);
    else if (jstr_is(name, "last"))
        *out = jval_bool(!peek_next(rt, l));
    else if (jstr_is(name, "length"))
        *out = jinja_loop_length(rt, l);
    else if (jstr_is(name, "depth"))
        *out = jval_int(l->depth0 + 1);
    else if (jstr_is(name, "depth0"))
        *out = jval_int(l->depth0);
    else if (jstr_is(name, "previtem"))
        *out = l->index0 == 0 ? jval_undef(rt, "there is no previous item")
                              : l->before;
    else if (jstr_is(name, "nextitem"))
        *out = peek_next(rt, l) ? l->after
                                : jval_undef(rt, "there is no next item");
    else if (jstr_is(name, "cycle") || jstr_is(name, "changed"))
        *out = method(rt, obj, name);
    else
        return false;
    return true;
}

static bool macro_attr(struct rt *rt, struct jval obj, struct jval name,
                       struct jval *out)
{
    const struct jmacro *m = obj.macro;

    if (jstr_is(name, "name")) {
        *out = m->name ? jval_cstr(rt, m->name) : jval_none;
    } else if (jstr_is(name, "arguments")) {
        *out = jval_list(rt, JV_TUPLE, m->node->more.n);
        for (size_t i = 0; i < m->node->more.n; i++)
            jlist_add(rt, out->list, jval_cstr(rt, m->node->more.v[i]->name));
    } else if (jstr_is(name, "catch_kwargs")) {
        *out = jval_bool(m->node->has_kwargs);
    } else if (jstr_is(name, "catch_varargs")) {
        *out = jval_bool(m->node->has_varargs);
    } else if (jstr_is(name, "caller")) {
        *out = jval_bool(m->node->has_caller);
    } else {
        return false;
    }
    return true;
}

/* An attribute that is data. */
static bool data_attr(struct rt *rt, struct jval obj, struct jval name,
                      struct jval *out)
{
    switch (obj.type) {
    case JV_LOOP:
        return loop_attr(rt, obj, name, out);
    case JV_MACRO:
        return macro_attr(rt, obj, name, out);
    case JV_NAMESPACE: {
        struct jval *v = jdict_get(rt, obj.dict, name);

        if (v)
            *out = *v;
        return v != NULL;
    }
    case JV_TUPLE:
        if (!obj.list->is_group ||
            (!jstr_is(name, "grouper") && !jstr_is(name, "list")))
            return false;
        *out = obj.list->v[jstr_is(name, "list")];
        return true;
    case JV_CYCLER:
        if (!jstr_is(name, "current"))
            return false;
        *out = obj.cycler->items.v[obj.cycler->pos];
        return true;
    case JV_BOOL:
    case JV_INT:
    case JV_BIG:
        if (!jstr_is(name, "real") && !jstr_is(name, "numerator")) {
            if (!jstr_is(name, "imag") && !jstr_is(name, "denominator"))
                return false;
            *out = jval_int(jstr_is(name, "denominator"));
            return true;
        }
        *out = obj.type == JV_BOOL ? jval_int(obj.b) : obj;
        return true;
    case JV_FLOAT:
        if (!jstr_is(name, "real") && !jstr_is(name, "imag"))
            return false;
        *out = jstr_is(name, "real") ? obj : jval_float(0);
        return true;
    case JV_RANGE:
        if (jstr_is(name, "start"))
            *out = jval_int(obj.range->start);
        else if (jstr_is(name, "stop"))
            *out = jval_int(obj.range->stop);
        else if (jstr_is(name, "step"))
            *out = jval_int(obj.range->step);
        else
            return false;
        return true;
    default:
        return false;
    }
}

/* getattr(obj, name) in the sandbox, when there is such an attribute. */
static bool attribute(struct rt *rt, struct jval obj, struct jval name,
                      struct jval *out)
{
    bool is_unsafe = false;
    const char *text;

    if (name.s->len > 40 && obj.type != JV_NAMESPACE)
        return false;
    if (data_attr(rt, obj, name, out)) {
        if (name.s->len && name.s->data[0] == '_')
            *out = unsafe_undef(rt, obj, name);
        return true;
    }
    text = rt_printf(rt, "%.*s", (int)name.s->len, name.s->data);
    if (strlen(text) != name.s->len ||
        !jmethod_exists(rt, obj, text, &is_unsafe))
        return false;
    *out = is_unsafe ? unsafe_undef(rt, obj, name) : method(rt, obj, name);
    return true;
}

/* obj[key], when it works. */
static bool item(struct rt *rt, struct jval obj, struct jval key,
                 struct jval *out)
{
    int64_t n, i;

    switch (obj.type) {
    case JV_UNDEF:
        jval_undef_fail(rt, obj);
    case JV_DICT: {
        if (!jval_is_hashable(rt, key))
            return false;
        struct jval *v = jdict_get(rt, obj.dict, key);
        if (v)
            *out = *v;
        return v != NULL;
    }
    case JV_LIST:
    case JV_TUPLE:
    case JV_STR:
    case JV_RANGE:
        if (key.type != JV_INT && key.type != JV_BOOL)
            return false;
        jval_len(rt, obj, &n);
        i = jval_index(rt, key);
        i = i < 0 ? i + n : i;
        if (i < 0 || i >= n)
            return false;
        if (obj.type == JV_RANGE)
            *out = jval_int(obj.range->start + i * obj.range->step);
        else if (obj.type == JV_STR)
            *out =
                jval_slice(rt, obj, jval_int(i), jval_int(i + 1), jval_missing);
        else
            *out = obj.list->v[i];
        return true;
    case JV_FUNC:
        if (obj.func == JF_DICT && !rt->t->is_524)
            rt_fail(rt, ERR_UNSUPPORTED, "an item of the class dict");
        return false;
    default:
        return false;
    }
}

struct jval jinja_getattr(struct rt *rt, struct jval obj, struct jval name)
{
    struct jval v;

    if (attribute(rt, obj, name, &v) || item(rt, obj, name, &v))
        return v;
    return jval_undef_name(rt, obj, name);
}

struct jval jinja_getitem(struct rt *rt, struct jval obj, struct jval key)
{
    struct jval v;

    if (item(rt, obj, key, &v) ||
        (key.type == JV_STR && attribute(rt, obj, key, &v)))
        return v;
    return jval_undef_name(rt, obj, key);
}
