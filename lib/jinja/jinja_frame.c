/* What a running template holds: its variables, and its output. */
#include "jinja/jinja_run.h"

#include <string.h>

struct jval *act_place(struct jact *act, struct jref ref)
{
    for (unsigned i = 0; i < ref.hops; i++)
        act = act->outer;
    return &act->slots[ref.slot];
}

struct jact *act_new(struct rt *rt, struct jact *outer, uint16_t slots)
{
    struct jact *act = rt_alloc(rt, sizeof(*act));

    act->outer = outer;
    act->slots = rt_alloc(rt, (slots + 1U) * sizeof(act->slots[0]));
    return act;
}

/* A variable of the context, or a global. */
static struct jval resolve(struct rt *rt, const char *name)
{
    struct jval *v = jdict_find(rt, rt->vars, name);
    enum jfunc func;

    if (v)
        return *v;
    if (jfunc_find(name, &func))
        return (struct jval){.type = JV_FUNC, .func = (int)func};
    return jval_missing;
}

void frame_enter(struct rt *rt, struct jact *act, const struct jframe *frame)
{
    for (size_t i = 0; i < frame->n; i++) {
        const struct jload *l = &frame->loads[i];

        act->slots[l->to.slot] = l->action == JL_RESOLVE ? resolve(rt, l->name)
                                 : l->action == JL_ALIAS
                                     ? *act_place(act, l->from)
                                     : jval_missing;
    }
}

void frame_leave(struct jact *act, const struct jframe *frame)
{
    for (size_t i = 0; i < frame->leave_n; i++)
        act->slots[frame->leave[i]] = jval_missing;
}

static void set_member(struct rt *rt, struct jval obj, struct jval name,
                       struct jval v)
{
    if (obj.type == JV_NAMESPACE && rt->t->is_524 && name.s->len &&
        name.s->data[0] == '_')
        rt_fail(rt, ERR_INPUT, "a namespace attribute may not start with '_'");
    jdict_put(rt, obj.dict, name, v);
}

void act_assign(struct rt *rt, struct jact *act, const struct jnode *n,
                struct jval v)
{
    if (n->type == JN_NAME) {
        *act_place(act, n->ref) = v;
        return;
    }
    if (n->type == JN_NSREF) {
        struct jval obj = *act_place(act, n->ref);

        if (obj.type != JV_NAMESPACE && obj.type != JV_DICT)
            rt_fail(rt, ERR_INPUT, "cannot assign attribute on '%s' object",
                    jval_typename(obj));
        set_member(rt, obj, n->value, v);
        return;
    }
    struct jiter *it = jiter_new(rt, v);
    struct jval items = jval_list(rt, JV_LIST, n->list.n), item;
    while (jiter_next(rt, it, &item)) {
        if (items.list->n == n->list.n)
            rt_fail(rt, ERR_INPUT, "too many values to unpack (expected %zu)",
                    n->list.n);
        jlist_add(rt, items.list, item);
    }
    if (items.list->n < n->list.n)
        rt_fail(rt, ERR_INPUT,
                "not enough values to unpack (expected %zu, got %zu)",
                n->list.n, items.list->n);
    for (size_t i = 0; i < n->list.n; i++)
        act_assign(rt, act, n->list.v[i], items.list->v[i]);
}

/* --- output --- */

/* A new run of origins, unless the last one's place goes on. */
static void note_origin(struct rt *rt, struct joutput *o, uint32_t at,
                        bool is_text)
{
    if (!rt->results || !rt->results->want_origins ||
        (!is_text && o->origin_n && o->origins[o->origin_n - 1].at == at))
        return;
    o->origins = rt_grow(rt, o->origins, o->origin_n, &o->origin_cap,
                         sizeof(*o->origins));
    o->origins[o->origin_n++] = (struct jorigin_run){o->len, at, is_text};
}

static void add(struct rt *rt, uint32_t at, bool is_text, const char *data,
                size_t len)
{
    struct joutput *o = rt->out;

    if (len == 0)
        return;
    if (len > JINJA_MAX_OUTPUT - o->len)
        rt_fail(rt, ERR_INPUT, "output of more than %d bytes",
                JINJA_MAX_OUTPUT);
    rt_step(rt, len / 64);
    if (o->len + len > o->cap) {
        size_t cap = o->cap ? o->cap * 2 : 256;

        while (cap < o->len + len)
            cap *= 2;
        char *more = rt_alloc(rt, cap);
        if (o->len)
            memcpy(more, o->data, o->len);
        o->data = more;
        o->cap = cap;
    }
    note_origin(rt, o, at, is_text);
    memcpy(o->data + o->len, data, len);
    o->len += len;
}

void output_add(struct rt *rt, uint32_t at, const char *data, size_t len)
{
    add(rt, at, false, data, len);
}

void output_text(struct rt *rt, uint32_t at, const char *data, size_t len)
{
    add(rt, at, true, data, len);
}

void output_begin(struct rt *rt, struct joutput *o)
{
    *o = (struct joutput){.up = rt->out};
    rt->out = o;
}

struct jval output_end(struct rt *rt, const struct joutput *o)
{
    rt->out = o->up;
    return jval_str(rt, o->data ? o->data : "", o->len);
}
