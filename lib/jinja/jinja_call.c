/* Calls: their arguments, macros, and whatever else can be called. */
#include "jinja/jinja_run.h"

#include <string.h>

void call_enter(struct rt *rt)
{
    if (++rt->calls > JINJA_MAX_CALLS)
        rt_fail(rt, ERR_INPUT, "calls nested deeper than %d", JINJA_MAX_CALLS);
}

void call_leave(struct rt *rt)
{
    rt->calls--;
}

/* A macro's variable that is named like its n-th parameter. */
static struct jval *parameter(struct jact *act, const struct jnode *macro,
                              size_t n)
{
    return &act->slots[macro->more.v[n]->ref.slot];
}

/* Keywords that are parameters; the others go to `rest`, but for a caller that
 * the macro asks for and has no parameter for. */
static void bind_keywords(struct rt *rt, struct jact *act,
                          const struct jnode *n, const struct jargs *args,
                          struct jdict *rest)
{
    struct jval caller = jval_none;
    bool wants_caller = n->has_caller;

    for (size_t i = 0; i < n->more.n; i++)
        wants_caller &= strcmp(n->more.v[i]->name, "caller") != 0;
    for (size_t i = 0; args->kw && i < args->kw->n; i++) {
        struct jentry *e = &args->kw->v[i];
        size_t k = args->n < n->more.n ? args->n : n->more.n;

        rt_step(rt, (n->more.n - k) / 8);
        while (k < n->more.n && !jstr_is(e->key, n->more.v[k]->name))
            k++;
        if (k < n->more.n)
            *parameter(act, n, k) = e->value;
        else if (wants_caller && jstr_is(e->key, "caller"))
            caller = e->value;
        else
            jdict_put(rt, rest, e->key, e->value);
    }
    if (wants_caller)
        act->slots[n->caller_ref.slot] =
            caller.type == JV_NONE ? jval_undef(rt, "no caller defined")
                                   : caller;
}

/* kwargs and varargs; what a macro does not use it must not be given. */
static void bind_rest(struct rt *rt, struct jact *act, const struct jmacro *m,
                      const struct jargs *args, struct jdict *rest)
{
    const struct jnode *n = m->node;
    const char *name = m->name ? m->name : "anonymous";

    if (n->has_kwargs)
        act->slots[n->kwargs_ref.slot] =
            (struct jval){.type = JV_DICT, .dict = rest};
    else if (rest->n)
        rt_fail(rt, ERR_INPUT, "macro '%s' takes no keyword argument '%.*s'",
                name, (int)rest->v[0].key.s->len, rest->v[0].key.s->data);
    if (n->has_varargs) {
        struct jval more = jval_list(rt, JV_TUPLE, 0);

        for (size_t i = n->more.n; i < args->n; i++)
            jlist_add(rt, more.list, args->v[i]);
        act->slots[n->varargs_ref.slot] = more;
    } else if (args->n > n->more.n) {
        rt_fail(rt, ERR_INPUT, "macro '%s' takes not more than %zu argument(s)",
                name, n->more.n);
    }
}

/* Parameters that nobody gave; a default sees those before it. */
static void fill_defaults(struct rt *rt, struct jact *act,
                          const struct jnode *n)
{
    size_t without = n->more.n - n->other.n;

    for (size_t i = 0; i < n->more.n; i++) {
        if (parameter(act, n, i)->type != JV_MISSING)
            continue;
        struct jval v =
            i < without
                ? jval_undef(rt,
                             rt_printf(rt, "parameter '%s' was not provided",
                                       n->more.v[i]->name))
                : jinja_eval(rt, act, n->other.v[i - without]);
        *parameter(act, n, i) = v;
    }
}

static struct jval call_macro(struct rt *rt, const struct jmacro *m,
                              const struct jargs *args)
{
    const struct jnode *n = m->node;
    struct jact *act = act_new(rt, m->outer, n->slots);
    struct jdict *rest = rt_alloc(rt, sizeof(*rest));
    struct joutput capture;

    jargs_no_self(rt, args);
    call_enter(rt);
    for (size_t i = 0; i < n->more.n && i < args->n; i++)
        *parameter(act, n, i) = args->v[i];
    bind_keywords(rt, act, n, args, rest);
    bind_rest(rt, act, m, args, rest);
    output_begin(rt, &capture);
    frame_enter(rt, act, &n->frame);
    fill_defaults(rt, act, n);
    jinja_exec(rt, act, &n->list);
    call_leave(rt);
    return output_end(rt, &capture);
}

static struct jval call_loop(struct rt *rt, struct jloop *loop,
                             struct jargs *args)
{
    enum flow flow;
    struct jval source;

    if (!loop->node)
        rt_fail(rt, ERR_INPUT,
                "the loop must have the 'recursive' marker to "
                "be called recursively");
    jargs_bind(rt, args, "loop", "iterable", 1, false, &source);
    return loop_run(rt, loop->node, loop->outer, source, loop->depth0 + 1,
                    &flow);
}

struct jval jinja_call(struct rt *rt, struct jval callee, struct jargs *args)
{
    struct jval v;

    rt_enter(rt);
    switch (callee.type) {
    case JV_UNDEF:
        jval_undef_fail(rt, callee);
    case JV_MACRO:
        v = call_macro(rt, callee.macro, args);
        break;
    case JV_METHOD:
        v = jmethod_call(rt, callee.method, args);
        break;
    case JV_FUNC:
        v = jfunc_call(rt, (enum jfunc)callee.func, args);
        break;
    case JV_LOOP:
        v = call_loop(rt, callee.loop, args);
        break;
    case JV_JOINER:
        jargs_bind(rt, args, "joiner", "", 0, true, NULL);
        v = callee.joiner->is_used ? callee.joiner->sep : jval_cstr(rt, "");
        callee.joiner->is_used = true;
        break;
    default:
        rt_fail(rt, ERR_INPUT, "'%s' object is not callable",
                jval_typename(callee));
    }
    rt_leave(rt);
    return v;
}

static void put_keyword(struct rt *rt, struct jdict *kw, struct jval key,
                        struct jval v)
{
    if (jdict_get(rt, kw, key))
        rt_fail(rt, ERR_INPUT, "multiple values for keyword argument '%.*s'",
                (int)(key.s->len < 100 ? key.s->len : 100), key.s->data);
    jdict_put(rt, kw, key, v);
}

struct jargs call_args(struct rt *rt, struct jact *act, const struct jnode *n,
                       struct jval caller)
{
    struct jval list = jval_list(rt, JV_LIST, n->list.n), v;
    struct jargs args = {0};

    for (size_t i = 0; i < n->list.n; i++)
        jlist_add(rt, list.list, jinja_eval(rt, act, n->list.v[i]));
    if (n->star) {
        struct jiter *it = jiter_new(rt, jinja_eval(rt, act, n->star));

        while (jiter_next(rt, it, &v))
            jlist_add(rt, list.list, v);
    }
    args.v = list.list->v;
    args.n = list.list->n;
    if (n->kw_n || n->star2 || caller.type != JV_MISSING)
        args.kw = rt_alloc(rt, sizeof(*args.kw));
    for (size_t i = 0; i < n->kw_n; i++)
        jdict_put(rt, args.kw, jval_cstr(rt, n->kw[i].key),
                  jinja_eval(rt, act, n->kw[i].value));
    if (caller.type != JV_MISSING)
        put_keyword(rt, args.kw, jval_cstr(rt, "caller"), caller);
    if (n->star2) {
        v = jinja_eval(rt, act, n->star2);
        if (v.type != JV_DICT)
            rt_fail(rt, ERR_INPUT,
                    "argument after ** must be a mapping, not %s",
                    jval_typename(v));
        for (size_t i = 0; i < v.dict->n; i++) {
            if (v.dict->v[i].key.type != JV_STR)
                rt_fail(rt, ERR_INPUT, "keywords must be strings");
            put_keyword(rt, args.kw, v.dict->v[i].key, v.dict->v[i].value);
        }
    }
    return args;
}
