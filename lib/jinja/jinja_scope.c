/*
 * Gives every name its place.  The names of a scope are collected first
 * (jinja_symbols.h), then each use is resolved (visit).
 */
#include "jinja/jinja_symbols.h"

#include <string.h>

/* Where a statement stands. */
struct place_in {
    struct table *table;
    bool is_soft; /* in an if: unknown filters fail only when reached */
    bool in_loop;
    bool in_operator; /* part of an expression that upstream folds */
};

static void visit(struct rt *rt, struct place_in in, struct jnode *n);
static void visit_all(struct rt *rt, struct place_in in,
                      const struct jnodes *list);

/* --- is a special name used before it is stored? --- */

struct use {
    const char *name;
    bool is_used, is_hidden, is_stored;
};

static void look(struct rt *rt, struct use *u, struct jnode *n);

static void look_all(struct rt *rt, struct use *u, const struct jnodes *list)
{
    for (size_t i = 0; i < list->n; i++)
        look(rt, u, list->v[i]);
}

static void look_operand(struct rt *rt, void *use, struct jnode *n)
{
    look(rt, use, n);
}

static void look(struct rt *rt, struct use *u, struct jnode *n)
{
    if (!n)
        return;
    rt_step(rt, 1);
    rt_enter(rt);
    switch (n->type) {
    case JN_NAME:
        if (strcmp(n->name, u->name) != 0)
            break;
        if (n->op == JX_LOAD)
            u->is_used |= !u->is_hidden;
        else
            u->is_hidden = true;
        u->is_stored |= n->op == JX_STORE;
        break;
    case JN_FOR:
        look(rt, u, n->a);
        look(rt, u, n->b);
        look_all(rt, u, &n->list);
        look_all(rt, u, &n->more);
        look(rt, u, n->c);
        break;
    case JN_IF:
        for (size_t i = 0; i < n->list.n; i++) {
            look(rt, u, n->list.v[i]);
            look(rt, u, n->more.v[i]);
        }
        look(rt, u, n->a);
        break;
    case JN_MACRO:
    case JN_CALL_BLOCK:
        if (n->type == JN_CALL_BLOCK)
            look(rt, u, n->a);
        look_all(rt, u, &n->more);
        look_all(rt, u, &n->other);
        look_all(rt, u, &n->list);
        break;
    case JN_FILTER_BLOCK:
        look_all(rt, u, &n->list);
        look(rt, u, n->a);
        break;
    case JN_WITH:
        look_all(rt, u, &n->more);
        look_all(rt, u, &n->other);
        look_all(rt, u, &n->list);
        break;
    default:
        each_operand(rt, n, look_operand, u);
    }
    rt_leave(rt);
}

static bool is_used(struct rt *rt, const struct jnodes *body, const char *name)
{
    struct use u = {.name = name};

    look_all(rt, &u, body);
    return u.is_used;
}

/* --- resolving --- */

static void visit_target(struct rt *rt, struct table *t, struct jnode *n)
{
    if (n->type == JN_TUPLE)
        for (size_t i = 0; i < n->list.n; i++)
            visit_target(rt, t, n->list.v[i]);
    else if (n->type == JN_NAME || n->type == JN_NSREF)
        n->ref = table_ref(rt, t, n->name, n->at);
}

static struct jnode *copy_target(struct rt *rt, const struct jnode *n)
{
    struct jnode *copy = rt_alloc(rt, sizeof(*copy));

    *copy = *n;
    if (n->type == JN_TUPLE) {
        copy->list.v = rt_alloc(rt, n->list.n * sizeof(n->list.v[0]) + 1);
        for (size_t i = 0; i < n->list.n; i++)
            copy->list.v[i] = copy_target(rt, n->list.v[i]);
    }
    return copy;
}

static void visit_builtin(struct rt *rt, struct place_in in, struct jnode *n)
{
    size_t len = strlen(n->name);
    bool is_filter = n->type == JN_FILTER;

    n->op = is_filter ? jfilter_find(n->name, len) : jtest_find(n->name, len);
    if (n->op < 0 && !in.is_soft) {
        rt->at = n->at;
        rt_fail(rt,
                is_filter && jfilter_is_known(n->name) ? ERR_UNSUPPORTED
                                                       : ERR_INPUT,
                "no %s named '%.100s'", is_filter ? "filter" : "test", n->name);
    }
}

static void visit_for(struct rt *rt, struct place_in in, struct jnode *n)
{
    struct table *outer = in.table;
    struct function *f = outer->f;
    struct use u = {.name = "loop"};

    look(rt, &u, n);
    if (u.is_stored) {
        rt->at = n->at;
        rt_fail(rt, ERR_INPUT,
                "can't assign to special loop variable in "
                "for-loop target");
    }
    visit(rt, in, n->b);
    if (n->flag)
        f = function_new(rt, outer->f);
    struct place_in body = {table_new(rt, outer, f), false, true, false};
    n->has_caller = n->flag || is_used(rt, &n->list, "loop"); /* extended */
    if (n->has_caller)
        table_declare(rt, body.table, "loop");
    table_declare_target(rt, body.table, n->a);
    table_collect_all(rt, body.table, &n->list);
    if (n->c) {
        struct function *filter = function_new(rt, outer->f);
        struct place_in test = {table_new(rt, outer, filter), false, false,
                                false};

        n->target2 = copy_target(rt, n->a);
        table_declare_target(rt, test.table, n->a);
        table_collect(rt, test.table, n->c);
        visit_target(rt, test.table, n->target2);
        visit(rt, test, n->c);
        n->frame2 = table_frame(rt, test.table);
        n->slots2 = (uint16_t)filter->n;
    }
    if (n->has_caller)
        n->loop_ref = table_ref(rt, body.table, "loop", n->at);
    visit_target(rt, body.table, n->a);
    visit_all(rt, body, &n->list);
    n->frame = table_frame(rt, body.table);
    if (n->more.n) {
        /* in a recursive loop's function a break would leave nothing */
        struct place_in other = {table_new(rt, outer, f), false,
                                 in.in_loop && !n->flag, false};

        table_collect_all(rt, other.table, &n->more);
        visit_all(rt, other, &n->more);
        n->frame3 = table_frame(rt, other.table);
    }
    if (n->flag)
        n->slots = (uint16_t)f->n;
}

/* The function of a macro, call block or generation block. */
static void visit_macro_body(struct rt *rt, struct place_in in, struct jnode *n)
{
    struct function *f = function_new(rt, in.table->f);
    struct place_in body = {table_new(rt, in.table, f), false, false, false};
    bool has_kwargs = false, has_varargs = false;
    size_t caller = SIZE_MAX;

    table_collect_all(rt, body.table, &n->more);
    table_collect_all(rt, body.table, &n->other);
    table_collect_all(rt, body.table, &n->list);
    for (size_t i = 0; i < n->more.n; i++) {
        const char *name = n->more.v[i]->name;

        n->more.v[i]->ref = table_ref(rt, body.table, name, n->at);
        if (strcmp(name, "caller") == 0)
            caller = i;
        has_kwargs |= strcmp(name, "kwargs") == 0;
        has_varargs |= strcmp(name, "varargs") == 0;
    }
    if (is_used(rt, &n->list, "caller")) {
        if (caller == SIZE_MAX) {
            table_declare(rt, body.table, "caller");
            n->caller_ref = table_ref(rt, body.table, "caller", n->at);
        } else if (n->more.n - caller > n->other.n) {
            rt->at = n->at;
            rt_fail(rt, ERR_INPUT,
                    "the special argument 'caller' must be "
                    "omitted or be given a default");
        }
        n->has_caller = true;
    }
    if (!has_kwargs && is_used(rt, &n->list, "kwargs")) {
        table_declare(rt, body.table, "kwargs");
        n->kwargs_ref = table_ref(rt, body.table, "kwargs", n->at);
        n->has_kwargs = true;
    }
    if (!has_varargs && is_used(rt, &n->list, "varargs")) {
        table_declare(rt, body.table, "varargs");
        n->varargs_ref = table_ref(rt, body.table, "varargs", n->at);
        n->has_varargs = true;
    }
    visit_all(rt, body, &n->other);
    visit_all(rt, body, &n->list);
    n->frame = table_frame(rt, body.table);
    n->slots = (uint16_t)f->n;
}

/* A scope within the function: with, set block, filter block. */
static struct place_in inner(struct rt *rt, struct place_in in)
{
    in.table = table_new(rt, in.table, in.table->f);
    in.is_soft = false;
    return in;
}

static void visit_scoped(struct rt *rt, struct place_in in, struct jnode *n)
{
    struct place_in scope = inner(rt, in);

    if (n->type == JN_WITH)
        table_collect_all(rt, scope.table, &n->more);
    table_collect_all(rt, scope.table, &n->list);
    if (n->type == JN_FILTER_BLOCK)
        table_collect(rt, scope.table, n->a);
    if (n->type == JN_WITH) {
        for (size_t i = 0; i < n->more.n; i++)
            visit_target(rt, scope.table, n->more.v[i]);
        visit_all(rt, in, &n->other);
    }
    visit_all(rt, scope, &n->list);
    if (n->type == JN_FILTER_BLOCK)
        visit(rt, scope, n->a);
    if (n->type == JN_SET_BLOCK) {
        visit_target(rt, in.table, n->a);
        visit(rt, scope, n->b);
    }
    n->frame = table_frame(rt, scope.table);
}

static void visit_all(struct rt *rt, struct place_in in,
                      const struct jnodes *list)
{
    for (size_t i = 0; i < list->n; i++)
        visit(rt, in, list->v[i]);
}

static void visit_operand(struct rt *rt, void *in, struct jnode *n)
{
    visit(rt, *(struct place_in *)in, n);
}

static void visit(struct rt *rt, struct place_in in, struct jnode *n)
{
    if (!n)
        return;
    rt_step(rt, 1);
    rt_enter(rt);
    in.in_operator = in.in_operator || n->type > JN_DICT;
    switch (n->type) {
    case JN_NAME:
    case JN_NSREF:
        n->ref = table_ref(rt, in.table, n->name, n->at);
        break;
    case JN_FOR:
        visit_for(rt, in, n);
        break;
    case JN_MACRO:
        visit_macro_body(rt, in, n);
        n->a->ref = table_ref(rt, in.table, n->name, n->at);
        break;
    case JN_CALL_BLOCK:
        visit_macro_body(rt, in, n);
        visit(rt, in, n->a);
        break;
    case JN_GENERATION:
        visit_macro_body(rt, in, n);
        break;
    case JN_SET_BLOCK:
    case JN_FILTER_BLOCK:
    case JN_WITH:
        visit_scoped(rt, in, n);
        break;
    case JN_BREAK:
    case JN_CONTINUE:
        if (!in.in_loop) {
            rt->at = n->at;
            rt_fail(rt, ERR_INPUT, "'%s' outside of a loop",
                    n->type == JN_BREAK ? "break" : "continue");
        }
        break;
    case JN_OR:
    case JN_AND:
        /* folded when upstream compiles: what a constant decides is not
         * looked at further */
        visit(rt, in, n->a);
        if (n->a->type != JN_CONST ||
            jval_truth(rt, n->a->value) != (n->type == JN_OR))
            visit(rt, in, n->b);
        break;
    case JN_IF:
    case JN_COND:
        in.is_soft = true;
        /* fall through */
    default:
        if (n->type == JN_FILTER || n->type == JN_TEST)
            visit_builtin(rt, in, n);
        each_operand(rt, n, visit_operand, &in);
    }
    jinja_constant(rt, n, in.in_operator);
    rt_leave(rt);
}

void jinja_scope(struct rt *rt, struct jinja_template *t)
{
    struct function *f = function_new(rt, NULL);
    struct place_in in = {table_new(rt, NULL, f), false, false, false};

    if (is_used(rt, &t->root->list, "self"))
        rt_fail(rt, ERR_UNSUPPORTED, "the variable 'self'");
    table_collect_all(rt, in.table, &t->root->list);
    visit_all(rt, in, &t->root->list);
    t->frame = table_frame(rt, in.table);
    t->slots = (uint16_t)f->n;
}
