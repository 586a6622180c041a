/* Runs the tree. */
#include "jinja/jinja_internal.h"

#include "base/bug.h"

#include <math.h>
#include <string.h>

enum flow { FLOW_NEXT, FLOW_BREAK, FLOW_CONTINUE };

static struct jval eval(struct rt *rt, struct jact *act, const struct jnode *n);
static enum flow exec_all(struct rt *rt, struct jact *act,
                          const struct jnodes *list);
static struct jval run_loop(struct rt *rt, const struct jnode *n,
                            struct jact *act, struct jval source,
                            int64_t depth0, enum flow *flow);

/* --- variables --- */

static struct jval *place(struct jact *act, struct jref ref)
{
    for (unsigned i = 0; i < ref.hops; i++)
        act = act->outer;
    return &act->slots[ref.slot];
}

static struct jact *new_act(struct rt *rt, struct jact *outer, uint16_t slots)
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

static void enter_frame(struct rt *rt, struct jact *act,
                        const struct jframe *frame)
{
    for (size_t i = 0; i < frame->n; i++) {
        const struct jload *l = &frame->loads[i];

        act->slots[l->to.slot] = l->action == JL_RESOLVE ? resolve(rt, l->name)
                                 : l->action == JL_ALIAS ? *place(act, l->from)
                                                         : jval_missing;
    }
}

static void leave_frame(struct jact *act, const struct jframe *frame)
{
    for (size_t i = 0; i < frame->leave_n; i++)
        act->slots[frame->leave[i]] = jval_missing;
}

static struct jval load_name(struct rt *rt, struct jact *act,
                             const struct jnode *n)
{
    struct jval v = *place(act, n->ref);

    return v.type == JV_MISSING
               ? jval_undef_name(rt, jval_missing, jval_cstr(rt, n->name))
               : v;
}

static void set_member(struct rt *rt, struct jval obj, struct jval name,
                       struct jval v)
{
    if (obj.type == JV_NAMESPACE && rt->t->is_524 && name.s->len &&
        name.s->data[0] == '_')
        rt_fail(rt, ERR_INPUT, "a namespace attribute may not start with '_'");
    jdict_put(rt, obj.dict, name, v);
}

static void check_namespaces(struct rt *rt, struct jact *act,
                             const struct jnode *n)
{
    if (n->type == JN_TUPLE)
        for (size_t i = 0; i < n->list.n; i++)
            check_namespaces(rt, act, n->list.v[i]);
    if (n->type == JN_NSREF && place(act, n->ref)->type != JV_NAMESPACE)
        rt_fail(rt, ERR_INPUT,
                "cannot assign attribute on non-namespace object");
}

static void assign(struct rt *rt, struct jact *act, const struct jnode *n,
                   struct jval v)
{
    if (n->type == JN_NAME) {
        *place(act, n->ref) = v;
        return;
    }
    if (n->type == JN_NSREF) {
        struct jval obj = *place(act, n->ref);

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
        assign(rt, act, n->list.v[i], items.list->v[i]);
}

/* --- output --- */

static void write_out(struct rt *rt, uint32_t at, const char *data, size_t len)
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
    if (rt->results && rt->results->want_origins &&
        (o->origin_n == 0 || o->origins[o->origin_n - 1].at != at)) {
        o->origins = rt_grow(rt, o->origins, o->origin_n, &o->origin_cap,
                             sizeof(*o->origins));
        o->origins[o->origin_n++] = (struct jorigin_run){o->len, at};
    }
    memcpy(o->data + o->len, data, len);
    o->len += len;
}

static void begin_capture(struct rt *rt, struct joutput *o)
{
    *o = (struct joutput){.up = rt->out};
    rt->out = o;
}

static struct jval end_capture(struct rt *rt, const struct joutput *o)
{
    rt->out = o->up;
    return jval_str(rt, o->data ? o->data : "", o->len);
}

/* --- calls --- */

static void enter_call(struct rt *rt)
{
    if (++rt->calls > JINJA_MAX_CALLS)
        rt_fail(rt, ERR_INPUT, "calls nested deeper than %d", JINJA_MAX_CALLS);
}

static struct jval call_macro(struct rt *rt, const struct jmacro *m,
                              const struct jargs *args)
{
    const struct jnode *n = m->node;
    struct jact *act = new_act(rt, m->outer, n->slots);
    struct jdict *rest = rt_alloc(rt, sizeof(*rest));
    const char *name = m->name ? m->name : "anonymous";
    bool has_own_caller = false;
    struct joutput capture;
    size_t i;

    jargs_no_self(rt, args);
    enter_call(rt);
    for (i = 0; i < n->more.n; i++) {
        has_own_caller |= strcmp(n->more.v[i]->name, "caller") == 0;
        if (i < args->n)
            act->slots[n->more.v[i]->ref.slot] = args->v[i];
    }
    struct jval caller = jval_none;
    for (i = 0; args->kw && i < args->kw->n; i++) {
        struct jentry *e = &args->kw->v[i];
        size_t k = args->n < n->more.n ? args->n : n->more.n;

        rt_step(rt, (n->more.n - k) / 8);
        while (k < n->more.n && !jstr_is(e->key, n->more.v[k]->name))
            k++;
        if (k < n->more.n)
            act->slots[n->more.v[k]->ref.slot] = e->value;
        else if (n->has_caller && !has_own_caller && jstr_is(e->key, "caller"))
            caller = e->value;
        else
            jdict_put(rt, rest, e->key, e->value);
    }
    if (n->has_caller && !has_own_caller)
        act->slots[n->caller_ref.slot] =
            caller.type == JV_NONE ? jval_undef(rt, "no caller defined")
                                   : caller;
    if (n->has_kwargs)
        act->slots[n->kwargs_ref.slot] =
            (struct jval){.type = JV_DICT, .dict = rest};
    else if (rest->n)
        rt_fail(rt, ERR_INPUT, "macro '%s' takes no keyword argument '%.*s'",
                name, (int)rest->v[0].key.s->len, rest->v[0].key.s->data);
    if (n->has_varargs) {
        struct jval more = jval_list(rt, JV_TUPLE, 0);

        for (i = n->more.n; i < args->n; i++)
            jlist_add(rt, more.list, args->v[i]);
        act->slots[n->varargs_ref.slot] = more;
    } else if (args->n > n->more.n) {
        rt_fail(rt, ERR_INPUT, "macro '%s' takes not more than %zu argument(s)",
                name, n->more.n);
    }
    begin_capture(rt, &capture);
    enter_frame(rt, act, &n->frame);
    for (i = 0; i < n->more.n; i++) {
        struct jval *v = &act->slots[n->more.v[i]->ref.slot];
        size_t without = n->more.n - n->other.n;

        if (v->type != JV_MISSING)
            continue;
        struct jval def =
            i < without
                ? jval_undef(rt,
                             rt_printf(rt, "parameter '%s' was not provided",
                                       n->more.v[i]->name))
                : eval(rt, act, n->other.v[i - without]);
        act->slots[n->more.v[i]->ref.slot] = def;
    }
    exec_all(rt, act, &n->list);
    rt->calls--;
    return end_capture(rt, &capture);
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
    return run_loop(rt, loop->node, loop->outer, source, loop->depth0 + 1,
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

/* The arguments of a call, filter or test; a call block's `caller` stands
 * before what ** adds. */
static struct jargs eval_args(struct rt *rt, struct jact *act,
                              const struct jnode *n, struct jval caller)
{
    struct jval list = jval_list(rt, JV_LIST, n->list.n), v;
    struct jargs args = {0};

    for (size_t i = 0; i < n->list.n; i++)
        jlist_add(rt, list.list, eval(rt, act, n->list.v[i]));
    if (n->star) {
        struct jiter *it = jiter_new(rt, eval(rt, act, n->star));

        while (jiter_next(rt, it, &v))
            jlist_add(rt, list.list, v);
    }
    args.v = list.list->v;
    args.n = list.list->n;
    if (n->kw_n || n->star2 || caller.type != JV_MISSING)
        args.kw = rt_alloc(rt, sizeof(*args.kw));
    for (size_t i = 0; i < n->kw_n; i++)
        jdict_put(rt, args.kw, jval_cstr(rt, n->kw[i].key),
                  eval(rt, act, n->kw[i].value));
    if (caller.type != JV_MISSING)
        put_keyword(rt, args.kw, jval_cstr(rt, "caller"), caller);
    if (n->star2) {
        v = eval(rt, act, n->star2);
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

/* --- expressions --- */

static bool compare(struct rt *rt, enum jcompare op, struct jval a,
                    struct jval b)
{
    switch (op) {
    case JC_EQ:
        return jval_equal(rt, a, b);
    case JC_NE:
        return !jval_equal(rt, a, b);
    case JC_IN:
        return jval_in(rt, a, b);
    case JC_NOT_IN:
        return !jval_in(rt, a, b);
    default:
        return jval_order(rt, op, a, b);
    }
}

static struct jval eval_compare(struct rt *rt, struct jact *act,
                                const struct jnode *n)
{
    struct jval left = eval(rt, act, n->a);

    for (size_t i = 0; i < n->list.n; i++) {
        struct jval right = eval(rt, act, n->list.v[i]);

        rt->at = n->at;
        if (!compare(rt, (enum jcompare)n->ops[i], left, right))
            return jval_false;
        left = right;
    }
    return jval_true;
}

static struct jval eval_items(struct rt *rt, struct jact *act,
                              const struct jnode *n)
{
    struct jval v;

    if (n->type == JN_DICT) {
        v = jval_dict(rt);
        for (size_t i = 0; i < n->list.n; i++) {
            struct jval key = eval(rt, act, n->list.v[i]);

            jdict_put(rt, v.dict, key, eval(rt, act, n->more.v[i]));
        }
        return v;
    }
    v = jval_list(rt, n->type == JN_LIST ? JV_LIST : JV_TUPLE, n->list.n);
    for (size_t i = 0; i < n->list.n; i++)
        jlist_add(rt, v.list, eval(rt, act, n->list.v[i]));
    return v;
}

static struct jval eval_concat(struct rt *rt, struct jact *act,
                               const struct jnode *n)
{
    struct jsb b = {.rt = rt};

    for (size_t i = 0; i < n->list.n; i++)
        jval_print(rt, &b, eval(rt, act, n->list.v[i]));
    return jsb_val(&b);
}

static struct jval eval_getitem(struct rt *rt, struct jact *act,
                                const struct jnode *n)
{
    struct jval obj = eval(rt, act, n->a), start = jval_missing,
                stop = jval_missing, step = jval_missing;

    if (n->b->type != JN_SLICE) {
        struct jval key = eval(rt, act, n->b);

        rt->at = n->at;
        return jinja_getitem(rt, obj, key);
    }
    if (n->b->a)
        start = eval(rt, act, n->b->a);
    if (n->b->b)
        stop = eval(rt, act, n->b->b);
    if (n->b->c)
        step = eval(rt, act, n->b->c);
    rt->at = n->at;
    /* while upstream compiles, a slice is looked up as any other item */
    if (rt->folding && obj.type != JV_STR && obj.type != JV_LIST &&
        obj.type != JV_TUPLE && obj.type != JV_UNDEF)
        return jval_undef(rt, "a constant cannot be sliced");
    return jval_slice(rt, obj, start, stop, step);
}

static struct jval eval_call(struct rt *rt, struct jact *act,
                             const struct jnode *n)
{
    struct jval callee = eval(rt, act, n->a);
    struct jargs args = eval_args(rt, act, n, jval_missing);

    rt->at = n->at;
    return jinja_call(rt, callee, &args);
}

static struct jval eval_builtin(struct rt *rt, struct jact *act,
                                const struct jnode *n, struct jval v)
{
    if (n->op < 0) {
        rt->at = n->at;
        rt_fail(rt, jfilter_is_known(n->name) ? ERR_UNSUPPORTED : ERR_INPUT,
                "no %s named '%.100s'",
                n->type == JN_FILTER ? "filter" : "test", n->name);
    }
    struct jargs args = eval_args(rt, act, n, jval_missing);
    rt->at = n->at;
    return n->type == JN_FILTER ? jfilter_call(rt, n->op, v, &args)
                                : jval_bool(jtest_call(rt, n->op, v, &args));
}

/* A filter whose innermost value is given: a filter or set block's text. */
static struct jval eval_filters(struct rt *rt, struct jact *act,
                                const struct jnode *n, struct jval text)
{
    rt_enter(rt);
    struct jval v = n->a ? eval_filters(rt, act, n->a, text) : text;
    v = eval_builtin(rt, act, n, v);
    rt_leave(rt);
    return v;
}

static struct jval eval_node(struct rt *rt, struct jact *act,
                             const struct jnode *n)
{
    struct jval a, b;

    switch (n->type) {
    case JN_CONST:
        return n->value;
    case JN_NAME:
        return load_name(rt, act, n);
    case JN_TUPLE:
    case JN_LIST:
    case JN_DICT:
        return eval_items(rt, act, n);
    case JN_COND:
        if (jval_truth(rt, eval(rt, act, n->a)))
            return eval(rt, act, n->b);
        if (n->c)
            return eval(rt, act, n->c);
        return jval_undef(rt, "the inline if-expression was false and has no "
                              "else");
    case JN_OR:
        a = eval(rt, act, n->a);
        return jval_truth(rt, a) ? a : eval(rt, act, n->b);
    case JN_AND:
        a = eval(rt, act, n->a);
        return jval_truth(rt, a) ? eval(rt, act, n->b) : a;
    case JN_NOT:
        return jval_bool(!jval_truth(rt, eval(rt, act, n->a)));
    case JN_COMPARE:
        return eval_compare(rt, act, n);
    case JN_ADD:
    case JN_SUB:
    case JN_MUL:
    case JN_DIV:
    case JN_FLOORDIV:
    case JN_MOD:
    case JN_POW:
        a = eval(rt, act, n->a);
        b = eval(rt, act, n->b);
        rt->at = n->at;
        return jval_arith(rt, n->type, a, b);
    case JN_NEG:
        a = eval(rt, act, n->a);
        rt->at = n->at;
        return jval_negate(rt, a);
    case JN_POS:
        a = eval(rt, act, n->a);
        rt->at = n->at;
        if (a.type == JV_UNDEF)
            jval_undef_fail(rt, a);
        if (!jval_is_number(a))
            rt_fail(rt, ERR_INPUT, "bad operand type for unary +: '%s'",
                    jval_typename(a));
        return a.type == JV_BOOL ? jval_int(a.b) : a;
    case JN_CONCAT:
        return eval_concat(rt, act, n);
    case JN_GETATTR:
        a = eval(rt, act, n->a);
        rt->at = n->at;
        return jinja_getattr(rt, a, n->value);
    case JN_GETITEM:
        return eval_getitem(rt, act, n);
    case JN_CALL:
        return eval_call(rt, act, n);
    case JN_FILTER:
    case JN_TEST:
        return eval_builtin(rt, act, n, eval(rt, act, n->a));
    default:
        BUG("not an expression");
    }
}

static bool is_finite(struct rt *rt, struct jval v)
{
    bool is = v.type != JV_FLOAT || isfinite(v.f);

    rt_step(rt, 1);
    if (v.type == JV_BIG)
        jval_repr(rt, v); /* fails beyond 4,300 digits, as writing it does */
    rt_enter(rt);
    for (size_t i = 0;
         is && (v.type == JV_LIST || v.type == JV_TUPLE) && i < v.list->n; i++)
        is = is_finite(rt, v.list->v[i]);
    for (size_t i = 0; is && v.type == JV_DICT && i < v.dict->n; i++)
        is = is_finite(rt, v.dict->v[i].key) &&
             is_finite(rt, v.dict->v[i].value);
    rt_leave(rt);
    return is;
}

/*
 * A constant expression.  Upstream writes its value into the code it compiles,
 * where an infinity is a name that nothing defines; one that is printed as a
 * whole becomes text at once.
 */
static struct jval eval_folded(struct rt *rt, struct jact *act,
                               const struct jnode *n)
{
    rt->folding++;
    struct jval v = eval_node(rt, act, n);
    rt->folding--;
    if (n->is_printed)
        return v;
    if (v.type == JV_UNDEF) /* no constant: worked out when it is reached */
        return eval_node(rt, act, n);
    if (!is_finite(rt, v)) {
        rt->at = n->at;
        rt_fail(rt, ERR_INPUT,
                "a constant that is not finite: upstream knows "
                "no name 'inf' or 'nan'");
    }
    return v;
}

static struct jval eval(struct rt *rt, struct jact *act, const struct jnode *n)
{
    rt_step(rt, 1);
    rt_enter(rt);
    rt->at = n->at;
    struct jval v =
        n->is_folded ? eval_folded(rt, act, n) : eval_node(rt, act, n);
    rt_leave(rt);
    return v;
}

/* --- statements --- */

static struct jval target_value(struct rt *rt, struct jact *act,
                                const struct jnode *n)
{
    if (n->type != JN_TUPLE)
        return *place(act, n->ref);
    struct jval v = jval_list(rt, JV_TUPLE, n->list.n);
    for (size_t i = 0; i < n->list.n; i++)
        jlist_add(rt, v.list, target_value(rt, act, n->list.v[i]));
    return v;
}

/* The values of a loop that its own condition lets through. */
bool jinja_loop_filter(struct rt *rt, struct jiter *it, struct jval *out)
{
    struct jval v;

    if (!it->is_ready) {
        it->is_ready = true;
        enter_frame(rt, it->act, &it->node->frame2);
        it->from = jiter_new(rt, it->source);
    }
    while (jiter_next(rt, it->from, &v)) {
        assign(rt, it->act, it->node->target2, v);
        if (jval_truth(rt, eval(rt, it->act, it->node->c))) {
            *out = target_value(rt, it->act, it->node->target2);
            return true;
        }
    }
    return false;
}

static bool loop_next(struct rt *rt, struct jloop *loop, struct jval *out)
{
    if (loop->after.type != JV_MISSING) {
        *out = loop->after;
        loop->after = jval_missing;
    } else if (!jiter_next(rt, loop->iter, out)) {
        return false;
    }
    loop->index0++;
    loop->before = loop->current;
    loop->current = *out;
    return true;
}

/* A recursive loop runs as a function and gives its text; another writes into
 * its surroundings, and a break of an outer loop in its else passes on. */
static struct jval run_loop(struct rt *rt, const struct jnode *n,
                            struct jact *outer, struct jval source,
                            int64_t depth0, enum flow *flow)
{
    struct jact *act = n->flag ? new_act(rt, outer, n->slots) : outer;
    struct jloop *loop = NULL;
    struct jiter *it = NULL;
    bool is_empty = true;
    struct joutput capture;
    struct jval v;

    *flow = FLOW_NEXT;
    if (n->flag) {
        enter_call(rt);
        begin_capture(rt, &capture);
    }
    if (n->c) {
        v = jiter_lazy(rt, JI_LOOP_FILTER, source);
        v.iter->node = n;
        v.iter->act = new_act(rt, outer, n->slots2);
        source = v;
    }
    it = jiter_new(rt, source);
    if (n->has_caller) { /* the variable loop is used */
        loop = rt_alloc(rt, sizeof(*loop));
        loop->source = source;
        loop->iter = it;
        loop->index0 = -1;
        loop->length = -1;
        loop->depth0 = depth0;
        loop->node = n->flag ? n : NULL;
        loop->outer = outer;
    }
    while (loop ? loop_next(rt, loop, &v) : jiter_next(rt, it, &v)) {
        assign(rt, act, n->a, v);
        if (loop)
            *place(act, n->loop_ref) =
                (struct jval){.type = JV_LOOP, .loop = loop};
        enter_frame(rt, act, &n->frame);
        enum flow inner = exec_all(rt, act, &n->list);
        if (inner == FLOW_BREAK)
            break;
        /* upstream notes a round at its end: one cut short does not count */
        if (inner == FLOW_NEXT)
            is_empty = false;
    }
    leave_frame(act, &n->frame);
    if (is_empty && n->more.n) {
        enter_frame(rt, act, &n->frame3);
        *flow = exec_all(rt, act, &n->more);
        leave_frame(act, &n->frame3);
    }
    if (!n->flag)
        return jval_none;
    rt->calls--;
    return end_capture(rt, &capture);
}

static struct jval make_macro(struct rt *rt, struct jact *act,
                              const struct jnode *n, const char *name)
{
    struct jmacro *m = rt_alloc(rt, sizeof(*m));

    m->node = n;
    m->outer = act;
    m->name = name;
    return (struct jval){.type = JV_MACRO, .macro = m};
}

static void print(struct rt *rt, uint32_t at, struct jval v)
{
    v = jval_to_str(rt, v);
    write_out(rt, at, v.s->data, v.s->len);
}

/* What a call or filter block gives is joined as it is: only text will do. */
static void write_text(struct rt *rt, uint32_t at, struct jval v)
{
    rt->at = at;
    if (v.type != JV_STR)
        rt_fail(rt, ERR_INPUT, "the block's value is no string but %s",
                jval_typename(v));
    write_out(rt, at, v.s->data, v.s->len);
}

static void exec_call_block(struct rt *rt, struct jact *act,
                            const struct jnode *n)
{
    struct jval caller = make_macro(rt, act, n, NULL);
    struct jval callee = eval(rt, act, n->a->a);
    struct jargs args = eval_args(rt, act, n->a, caller);

    rt->at = n->at;
    write_text(rt, n->at, jinja_call(rt, callee, &args));
}

static void exec_generation(struct rt *rt, struct jact *act,
                            const struct jnode *n)
{
    struct jinja_results *r = rt->results;
    struct jact *inner = new_act(rt, act, n->slots);
    struct joutput capture;

    if (r && r->want_spans && rt->out->up)
        rt_fail(rt, ERR_UNSUPPORTED,
                "the span of a generation block inside another block's text");
    if (n->has_caller)
        inner->slots[n->caller_ref.slot] = jval_undef(rt, "no caller defined");
    if (n->has_kwargs)
        inner->slots[n->kwargs_ref.slot] = jval_dict(rt);
    if (n->has_varargs)
        inner->slots[n->varargs_ref.slot] = jval_list(rt, JV_TUPLE, 0);
    enter_call(rt);
    begin_capture(rt, &capture);
    enter_frame(rt, inner, &n->frame);
    exec_all(rt, inner, &n->list);
    end_capture(rt, &capture);
    rt->calls--;
    if (r && r->want_spans) {
        r->spans = rt_grow(rt, r->spans, r->span_count, &rt->span_cap,
                           sizeof(*r->spans));
        /* in bytes here; made code points at the end */
        r->spans[r->span_count++] =
            (struct jinja_span){rt->out->len, rt->out->len + capture.len};
    }
    for (size_t i = 0; i < capture.origin_n; i++) {
        size_t end = i + 1 < capture.origin_n ? capture.origins[i + 1].begin
                                              : capture.len;

        write_out(rt, capture.origins[i].at,
                  capture.data + capture.origins[i].begin,
                  end - capture.origins[i].begin);
    }
    if (capture.origin_n == 0)
        write_out(rt, n->at, capture.data, capture.len);
}

static enum flow exec_if(struct rt *rt, struct jact *act, const struct jnode *n)
{
    for (size_t i = 0; i < n->list.n; i++)
        if (jval_truth(rt, eval(rt, act, n->list.v[i])))
            return exec_all(rt, act, &n->more.v[i]->list);
    return n->a ? exec_all(rt, act, &n->a->list) : FLOW_NEXT;
}

/* with, set and filter blocks: a scope, and text for the last two. */
static enum flow exec_scoped(struct rt *rt, struct jact *act,
                             const struct jnode *n)
{
    struct joutput capture;
    struct jval text;
    enum flow flow;

    enter_frame(rt, act, &n->frame);
    for (size_t i = 0; n->type == JN_WITH && i < n->more.n; i++)
        assign(rt, act, n->more.v[i], eval(rt, act, n->other.v[i]));
    if (n->type != JN_WITH)
        begin_capture(rt, &capture);
    flow = exec_all(rt, act, &n->list);
    if (n->type != JN_WITH) {
        text = end_capture(rt, &capture);
        if (flow != FLOW_NEXT)
            return flow; /* a break drops the text */
        if (n->type == JN_SET_BLOCK)
            assign(rt, act, n->a,
                   n->b ? eval_filters(rt, act, n->b, text) : text);
        else
            write_text(rt, n->at, eval_filters(rt, act, n->a, text));
    }
    if (flow == FLOW_NEXT)
        leave_frame(act, &n->frame);
    return flow;
}

static enum flow exec(struct rt *rt, struct jact *act, const struct jnode *n)
{
    enum flow flow = FLOW_NEXT;
    struct jval v;

    switch (n->type) {
    case JN_DATA:
        write_out(rt, n->at, n->value.s->data, n->value.s->len);
        break;
    case JN_PRINT:
        for (size_t i = 0; i < n->list.n; i++) {
            v = eval(rt, act, n->list.v[i]);
            rt->at = n->at;
            print(rt, n->at, v);
        }
        break;
    case JN_IF:
        return exec_if(rt, act, n);
    case JN_FOR:
        v = eval(rt, act, n->b);
        rt->at = n->at;
        v = run_loop(rt, n, act, v, 0, &flow);
        if (n->flag)
            print(rt, n->at, v);
        break;
    case JN_SET:
        check_namespaces(rt, act, n->a);
        v = eval(rt, act, n->b);
        rt->at = n->at;
        assign(rt, act, n->a, v);
        break;
    case JN_MACRO:
        *place(act, n->a->ref) = make_macro(rt, act, n, n->name);
        break;
    case JN_CALL_BLOCK:
        exec_call_block(rt, act, n);
        break;
    case JN_GENERATION:
        exec_generation(rt, act, n);
        break;
    case JN_SET_BLOCK:
    case JN_FILTER_BLOCK:
    case JN_WITH:
        return exec_scoped(rt, act, n);
    case JN_BREAK:
        return FLOW_BREAK;
    case JN_CONTINUE:
        return FLOW_CONTINUE;
    case JN_LOADER:
        rt_fail(rt, ERR_INPUT, "'%s': there is no loader for other templates",
                n->name);
    default:
        BUG("not a statement");
    }
    return flow;
}

static enum flow exec_all(struct rt *rt, struct jact *act,
                          const struct jnodes *list)
{
    enum flow flow = FLOW_NEXT;

    rt_enter(rt);
    for (size_t i = 0; i < list->n && flow == FLOW_NEXT; i++) {
        rt_step(rt, 1);
        rt->at = list->v[i]->at;
        flow = exec(rt, act, list->v[i]);
    }
    rt_leave(rt);
    return flow;
}

void jinja_run(struct rt *rt, const struct jinja_template *t)
{
    struct jact *act = new_act(rt, NULL, t->slots);

    enter_frame(rt, act, &t->frame);
    exec_all(rt, act, &t->root->list);
}
