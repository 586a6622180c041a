/* Expressions. */
#include "jinja/jinja_run.h"

#include "base/bug.h"

#include <math.h>

static struct jval load_name(struct rt *rt, struct jact *act,
                             const struct jnode *n)
{
    struct jval v = *act_place(act, n->ref);

    return v.type == JV_MISSING
               ? jval_undef_name(rt, jval_missing, jval_cstr(rt, n->name))
               : v;
}

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
    struct jval left = jinja_eval(rt, act, n->a);

    for (size_t i = 0; i < n->list.n; i++) {
        struct jval right = jinja_eval(rt, act, n->list.v[i]);

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
            struct jval key = jinja_eval(rt, act, n->list.v[i]);

            jdict_put(rt, v.dict, key, jinja_eval(rt, act, n->more.v[i]));
        }
        return v;
    }
    v = jval_list(rt, n->type == JN_LIST ? JV_LIST : JV_TUPLE, n->list.n);
    for (size_t i = 0; i < n->list.n; i++)
        jlist_add(rt, v.list, jinja_eval(rt, act, n->list.v[i]));
    return v;
}

static struct jval eval_concat(struct rt *rt, struct jact *act,
                               const struct jnode *n)
{
    struct jsb b = {.rt = rt};

    for (size_t i = 0; i < n->list.n; i++)
        jval_print(rt, &b, jinja_eval(rt, act, n->list.v[i]));
    return jsb_val(&b);
}

static struct jval eval_getitem(struct rt *rt, struct jact *act,
                                const struct jnode *n)
{
    struct jval obj = jinja_eval(rt, act, n->a), start = jval_missing,
                stop = jval_missing, step = jval_missing;

    if (n->b->type != JN_SLICE) {
        struct jval key = jinja_eval(rt, act, n->b);

        rt->at = n->at;
        return jinja_getitem(rt, obj, key);
    }
    if (n->b->a)
        start = jinja_eval(rt, act, n->b->a);
    if (n->b->b)
        stop = jinja_eval(rt, act, n->b->b);
    if (n->b->c)
        step = jinja_eval(rt, act, n->b->c);
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
    struct jval callee = jinja_eval(rt, act, n->a);
    struct jargs args = call_args(rt, act, n, jval_missing);

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
    struct jargs args = call_args(rt, act, n, jval_missing);
    rt->at = n->at;
    return n->type == JN_FILTER ? jfilter_call(rt, n->op, v, &args)
                                : jval_bool(jtest_call(rt, n->op, v, &args));
}

struct jval jinja_eval_filters(struct rt *rt, struct jact *act,
                               const struct jnode *n, struct jval text)
{
    rt_enter(rt);
    struct jval v = n->a ? jinja_eval_filters(rt, act, n->a, text) : text;
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
        if (jval_truth(rt, jinja_eval(rt, act, n->a)))
            return jinja_eval(rt, act, n->b);
        if (n->c)
            return jinja_eval(rt, act, n->c);
        return jval_undef(rt, "the inline if-expression was false and has no "
                              "else");
    case JN_OR:
        a = jinja_eval(rt, act, n->a);
        return jval_truth(rt, a) ? a : jinja_eval(rt, act, n->b);
    case JN_AND:
        a = jinja_eval(rt, act, n->a);
        return jval_truth(rt, a) ? jinja_eval(rt, act, n->b) : a;
    case JN_NOT:
        return jval_bool(!jval_truth(rt, jinja_eval(rt, act, n->a)));
    case JN_COMPARE:
        return eval_compare(rt, act, n);
    case JN_ADD:
    case JN_SUB:
    case JN_MUL:
    case JN_DIV:
    case JN_FLOORDIV:
    case JN_MOD:
    case JN_POW:
        a = jinja_eval(rt, act, n->a);
        b = jinja_eval(rt, act, n->b);
        rt->at = n->at;
        return jval_arith(rt, n->type, a, b);
    case JN_NEG:
        a = jinja_eval(rt, act, n->a);
        rt->at = n->at;
        return jval_negate(rt, a);
    case JN_POS:
        a = jinja_eval(rt, act, n->a);
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
        a = jinja_eval(rt, act, n->a);
        rt->at = n->at;
        return jinja_getattr(rt, a, n->value);
    case JN_GETITEM:
        return eval_getitem(rt, act, n);
    case JN_CALL:
        return eval_call(rt, act, n);
    case JN_FILTER:
    case JN_TEST:
        return eval_builtin(rt, act, n, jinja_eval(rt, act, n->a));
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

struct jval jinja_eval(struct rt *rt, struct jact *act, const struct jnode *n)
{
    rt_step(rt, 1);
    rt_enter(rt);
    rt->at = n->at;
    struct jval v =
        n->is_folded ? eval_folded(rt, act, n) : eval_node(rt, act, n);
    rt_leave(rt);
    return v;
}
