/*
 * Gives every name its place.  Upstream compiles a template to Python
 * functions whose local variables are the template's: each scope has a table
 * of names, read from the context when the scope is entered, or copied from an
 * outer scope when the scope stores into it.  What a name means follows from
 * those tables, so they are built here by the same rules: first the names of
 * a scope are collected (collect), then each use is resolved (visit).
 */
#include "jinja/jinja_internal.h"

#include "base/bug.h"

#include <stdint.h>
#include <string.h>

/* A function of upstream's: the template, a macro, a call block, a loop
 * filter, a recursive loop. */
struct function {
    struct function *outer;
    struct place {
        const char *name;
        unsigned level;
    } * places;
    size_t n, cap;
};

struct symbol {
    const char *name;
    uint16_t slot;
    bool is_stored;
    enum { NO_LOAD, PARAMETER, RESOLVE, ALIAS, UNDEFINED } load;
    struct function *from; /* ALIAS */
    uint16_t from_slot;
};
struct table {
    struct table *parent;
    struct function *f;
    unsigned level;
    struct symbol *v;
    size_t n, cap;
};

/* Where a statement stands. */
struct place_in {
    struct table *table;
    bool is_soft; /* in an if: unknown filters fail only when reached */
    bool in_loop;
    bool in_operator; /* part of an expression that upstream folds */
};

static void collect(struct rt *rt, struct table *t, struct jnode *n);
static void visit(struct rt *rt, struct place_in in, struct jnode *n);
static void visit_all(struct rt *rt, struct place_in in,
                      const struct jnodes *list);

static uint16_t place_of(struct rt *rt, struct function *f, const char *name,
                         unsigned level)
{
    rt_step(rt, f->n / 8);
    for (size_t i = 0; i < f->n; i++)
        if (f->places[i].level == level && strcmp(f->places[i].name, name) == 0)
            return (uint16_t)i;
    f->places = rt_grow(rt, f->places, f->n, &f->cap, sizeof(*f->places));
    if (f->n == UINT16_MAX)
        rt_fail(rt, ERR_UNSUPPORTED, "more than %d variables", UINT16_MAX);
    f->places[f->n] = (struct place){name, level};
    return (uint16_t)f->n++;
}

static struct function *new_function(struct rt *rt, struct function *outer)
{
    struct function *f = rt_alloc(rt, sizeof(*f));

    f->outer = outer;
    return f;
}

static struct table *new_table(struct rt *rt, struct table *parent,
                               struct function *f)
{
    struct table *t = rt_alloc(rt, sizeof(*t));

    t->parent = parent;
    t->f = f;
    t->level = parent ? parent->level + 1 : 0;
    return t;
}

static struct symbol *own(struct rt *rt, struct table *t, const char *name)
{
    rt_step(rt, t->n / 8);
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->v[i].name, name) == 0)
            return &t->v[i];
    return NULL;
}

static struct symbol *find(struct rt *rt, struct table *t, const char *name,
                           struct table **where)
{
    for (; t; t = t->parent) {
        struct symbol *s = own(rt, t, name);

        if (s) {
            *where = t;
            return s;
        }
    }
    return NULL;
}

static struct symbol *define(struct rt *rt, struct table *t, const char *name)
{
    struct symbol *s = own(rt, t, name);

    if (s)
        return s;
    t->v = rt_grow(rt, t->v, t->n, &t->cap, sizeof(*t->v));
    s = &t->v[t->n++];
    *s = (struct symbol){.name = name,
                         .slot = place_of(rt, t->f, name, t->level)};
    return s;
}

static void declare(struct rt *rt, struct table *t, const char *name)
{
    struct symbol *s = define(rt, t, name);

    s->is_stored = true;
    s->load = PARAMETER;
}

static void set_alias(struct rt *rt, struct table *t, struct symbol *s,
                      int otherwise)
{
    struct table *where;
    struct symbol *outer = find(rt, t->parent, s->name, &where);

    s->load = outer ? ALIAS : (unsigned)otherwise;
    if (outer) {
        s->from = where->f;
        s->from_slot = outer->slot;
    }
}

static void store(struct rt *rt, struct table *t, const char *name)
{
    struct symbol *s = own(rt, t, name);

    if (!s) {
        s = define(rt, t, name);
        set_alias(rt, t, s, UNDEFINED);
    }
    s->is_stored = true;
}

static void load(struct rt *rt, struct table *t, const char *name)
{
    struct table *where;

    if (!find(rt, t, name, &where))
        define(rt, t, name)->load = RESOLVE;
}

static struct table *copy_table(struct rt *rt, const struct table *t)
{
    struct table *copy = rt_alloc(rt, sizeof(*copy));

    *copy = *t;
    copy->v = rt_alloc(rt, t->cap * sizeof(t->v[0]) + 1);
    if (t->n)
        memcpy(copy->v, t->v, t->n * sizeof(t->v[0]));
    rt_step(rt, t->n / 8);
    return copy;
}

/* What branches of an if define: a name stored in one of them only is read
 * from outside first. */
static void merge_branches(struct rt *rt, struct table *t,
                           struct table *const *branches, size_t n)
{
    size_t before = t->n;
    bool *was_stored = rt_alloc(rt, before + 1);

    for (size_t i = 0; i < before; i++)
        was_stored[i] = t->v[i].is_stored;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < branches[i]->n; k++) {
            const struct symbol *from = &branches[i]->v[k];
            struct symbol *s = define(rt, t, from->name);

            if (from->load != NO_LOAD) {
                s->load = from->load;
                s->from = from->from;
                s->from_slot = from->from_slot;
            }
            s->is_stored |= from->is_stored;
        }
    for (size_t i = 0; i < t->n; i++)
        if (t->v[i].is_stored && (i >= before || !was_stored[i]))
            set_alias(rt, t, &t->v[i], RESOLVE);
}

/* --- collecting the names of one scope --- */

static void collect_all(struct rt *rt, struct table *t,
                        const struct jnodes *list)
{
    for (size_t i = 0; i < list->n; i++)
        collect(rt, t, list->v[i]);
}

static void collect_target(struct rt *rt, struct table *t, struct jnode *n)
{
    if (n->type == JN_NAME)
        declare(rt, t, n->name);
    else if (n->type == JN_TUPLE)
        for (size_t i = 0; i < n->list.n; i++)
            collect_target(rt, t, n->list.v[i]);
}

static void collect_if(struct rt *rt, struct table *t, struct jnode *n)
{
    struct table *branches[3];

    /* tests of elifs belong to their branch, and these see one another */
    collect(rt, t, n->list.v[0]);
    branches[0] = copy_table(rt, t);
    collect(rt, branches[0], n->more.v[0]);
    branches[1] = copy_table(rt, t);
    for (size_t i = 1; i < n->list.n; i++) {
        struct table *inner[3];

        collect(rt, branches[1], n->list.v[i]);
        inner[0] = copy_table(rt, branches[1]);
        collect(rt, inner[0], n->more.v[i]);
        inner[1] = inner[2] = copy_table(rt, branches[1]);
        merge_branches(rt, branches[1], inner, 3);
    }
    branches[2] = copy_table(rt, t);
    if (n->a)
        collect(rt, branches[2], n->a);
    merge_branches(rt, t, branches, 3);
}

static void collect(struct rt *rt, struct table *t, struct jnode *n)
{
    if (!n)
        return;
    rt_step(rt, 1);
    rt_enter(rt);
    switch (n->type) {
    case JN_NAME:
        if (n->op == JX_PARAM)
            declare(rt, t, n->name);
        else if (n->op == JX_STORE)
            store(rt, t, n->name);
        else
            load(rt, t, n->name);
        break;
    case JN_NSREF:
        load(rt, t, n->name);
        break;
    case JN_IF:
        collect_if(rt, t, n);
        break;
    case JN_MACRO:
        store(rt, t, n->name);
        break;
    case JN_SET:
        collect(rt, t, n->b);
        collect(rt, t, n->a);
        break;
    case JN_FOR:
        collect(rt, t, n->b);
        break;
    case JN_CALL_BLOCK:
    case JN_FILTER_BLOCK:
    case JN_SET_BLOCK:
        collect(rt, t, n->a);
        break;
    case JN_WITH:
        collect_all(rt, t, &n->other);
        break;
    case JN_GENERATION:
        break;
    default:
        collect(rt, t, n->a);
        collect(rt, t, n->b);
        collect(rt, t, n->c);
        collect_all(rt, t, &n->list);
        collect_all(rt, t, &n->more);
        for (size_t i = 0; i < n->kw_n; i++)
            collect(rt, t, n->kw[i].value);
        collect(rt, t, n->star);
        collect(rt, t, n->star2);
    }
    rt_leave(rt);
}

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
        look(rt, u, n->a);
        look(rt, u, n->b);
        look(rt, u, n->c);
        look_all(rt, u, &n->list);
        look_all(rt, u, &n->more);
        for (size_t i = 0; i < n->kw_n; i++)
            look(rt, u, n->kw[i].value);
        look(rt, u, n->star);
        look(rt, u, n->star2);
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

static struct jref make_ref(struct rt *rt, const struct function *at,
                            const struct function *to, uint16_t slot)
{
    struct jref ref = {0, slot};

    for (; at != to; at = at->outer) {
        BUG_ON(!at);
        if (ref.hops == UINT16_MAX)
            rt_fail(rt, ERR_UNSUPPORTED, "functions nested too deeply");
        ref.hops++;
    }
    return ref;
}

static struct jref ref_to(struct rt *rt, struct table *t, const char *name,
                          uint32_t at)
{
    struct table *where;
    struct symbol *s = find(rt, t, name, &where);

    if (!s) {
        rt->at = at;
        rt_fail(rt, ERR_INPUT, "'%.100s' is not known to this scope", name);
    }
    return make_ref(rt, t->f, where->f, s->slot);
}

/* What entering and leaving the scope do. */
static struct jframe make_frame(struct rt *rt, const struct table *t)
{
    struct jframe frame = {0};

    frame.loads = rt_alloc(rt, t->n * sizeof(frame.loads[0]) + 1);
    frame.leave = rt_alloc(rt, t->n * sizeof(frame.leave[0]) + 1);
    for (size_t i = 0; i < t->n; i++) {
        const struct symbol *s = &t->v[i];
        struct jload *l = &frame.loads[frame.n];

        if (s->load != NO_LOAD)
            frame.leave[frame.leave_n++] = s->slot;
        if (s->load == NO_LOAD || s->load == PARAMETER)
            continue;
        l->to = (struct jref){0, s->slot};
        l->name = s->name;
        l->action = s->load == RESOLVE ? JL_RESOLVE
                    : s->load == ALIAS ? JL_ALIAS
                                       : JL_UNDEFINED;
        if (s->load == ALIAS)
            l->from = make_ref(rt, t->f, s->from, s->from_slot);
        frame.n++;
    }
    return frame;
}

static void visit_target(struct rt *rt, struct table *t, struct jnode *n)
{
    if (n->type == JN_TUPLE)
        for (size_t i = 0; i < n->list.n; i++)
            visit_target(rt, t, n->list.v[i]);
    else if (n->type == JN_NAME || n->type == JN_NSREF)
        n->ref = ref_to(rt, t, n->name, n->at);
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
        f = new_function(rt, outer->f);
    struct place_in body = {new_table(rt, outer, f), false, true, false};
    n->has_caller = n->flag || is_used(rt, &n->list, "loop"); /* extended */
    if (n->has_caller)
        declare(rt, body.table, "loop");
    collect_target(rt, body.table, n->a);
    collect_all(rt, body.table, &n->list);
    if (n->c) {
        struct function *filter = new_function(rt, outer->f);
        struct place_in test = {new_table(rt, outer, filter), false, false,
                                false};

        n->target2 = copy_target(rt, n->a);
        collect_target(rt, test.table, n->a);
        collect(rt, test.table, n->c);
        visit_target(rt, test.table, n->target2);
        visit(rt, test, n->c);
        n->frame2 = make_frame(rt, test.table);
        n->slots2 = (uint16_t)filter->n;
    }
    if (n->has_caller)
        n->loop_ref = ref_to(rt, body.table, "loop", n->at);
    visit_target(rt, body.table, n->a);
    visit_all(rt, body, &n->list);
    n->frame = make_frame(rt, body.table);
    if (n->more.n) {
        /* in a recursive loop's function a break would leave nothing */
        struct place_in other = {new_table(rt, outer, f), false,
                                 in.in_loop && !n->flag, false};

        collect_all(rt, other.table, &n->more);
        visit_all(rt, other, &n->more);
        n->frame3 = make_frame(rt, other.table);
    }
    if (n->flag)
        n->slots = (uint16_t)f->n;
}

/* The function of a macro, call block or generation block. */
static void visit_macro_body(struct rt *rt, struct place_in in, struct jnode *n)
{
    struct function *f = new_function(rt, in.table->f);
    struct place_in body = {new_table(rt, in.table, f), false, false, false};
    bool has_kwargs = false, has_varargs = false;
    size_t caller = SIZE_MAX;

    collect_all(rt, body.table, &n->more);
    collect_all(rt, body.table, &n->other);
    collect_all(rt, body.table, &n->list);
    for (size_t i = 0; i < n->more.n; i++) {
        const char *name = n->more.v[i]->name;

        n->more.v[i]->ref = ref_to(rt, body.table, name, n->at);
        if (strcmp(name, "caller") == 0)
            caller = i;
        has_kwargs |= strcmp(name, "kwargs") == 0;
        has_varargs |= strcmp(name, "varargs") == 0;
    }
    if (is_used(rt, &n->list, "caller")) {
        if (caller == SIZE_MAX) {
            declare(rt, body.table, "caller");
            n->caller_ref = ref_to(rt, body.table, "caller", n->at);
        } else if (n->more.n - caller > n->other.n) {
            rt->at = n->at;
            rt_fail(rt, ERR_INPUT,
                    "the special argument 'caller' must be "
                    "omitted or be given a default");
        }
        n->has_caller = true;
    }
    if (!has_kwargs && is_used(rt, &n->list, "kwargs")) {
        declare(rt, body.table, "kwargs");
        n->kwargs_ref = ref_to(rt, body.table, "kwargs", n->at);
        n->has_kwargs = true;
    }
    if (!has_varargs && is_used(rt, &n->list, "varargs")) {
        declare(rt, body.table, "varargs");
        n->varargs_ref = ref_to(rt, body.table, "varargs", n->at);
        n->has_varargs = true;
    }
    visit_all(rt, body, &n->other);
    visit_all(rt, body, &n->list);
    n->frame = make_frame(rt, body.table);
    n->slots = (uint16_t)f->n;
}

/* A scope within the function: with, set block, filter block. */
static struct place_in inner(struct rt *rt, struct place_in in)
{
    in.table = new_table(rt, in.table, in.table->f);
    in.is_soft = false;
    return in;
}

static void visit_scoped(struct rt *rt, struct place_in in, struct jnode *n)
{
    struct place_in scope = inner(rt, in);

    if (n->type == JN_WITH)
        collect_all(rt, scope.table, &n->more);
    collect_all(rt, scope.table, &n->list);
    if (n->type == JN_FILTER_BLOCK)
        collect(rt, scope.table, n->a);
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
    n->frame = make_frame(rt, scope.table);
}

/* --- constants --- */

static bool all_const(const struct jnodes *list)
{
    for (size_t i = 0; i < list->n; i++)
        if (!list->v[i]->is_const)
            return false;
    return true;
}

static bool is_const_or_null(const struct jnode *n)
{
    return !n || n->is_const;
}

/* Does upstream work it out when it compiles?  Its parts are judged. */
static bool judge(struct rt *rt, const struct jnode *n)
{
    static const char *const of_context[] = {"map", "select", "reject",
                                             "selectattr", "rejectattr"};

    if (n->type < JN_CONST || n->type == JN_NAME || n->type == JN_NSREF ||
        n->type == JN_CALL)
        return false;
    if ((n->type == JN_OR || n->type == JN_AND) && n->a->type == JN_CONST &&
        jval_truth(rt, n->a->value) == (n->type == JN_OR))
        return true;
    if (n->type == JN_COND && !n->c)
        return false;
    if (n->type == JN_FILTER || n->type == JN_TEST) {
        if (!n->a || n->op < 0)
            return false;
        for (size_t i = 0; i < sizeof(of_context) / sizeof(of_context[0]); i++)
            if (n->type == JN_FILTER && strcmp(n->name, of_context[i]) == 0)
                return false;
    }
    for (size_t i = 0; i < n->kw_n; i++)
        if (!n->kw[i].value->is_const)
            return false;
    return is_const_or_null(n->a) && is_const_or_null(n->b) &&
           is_const_or_null(n->c) && is_const_or_null(n->star) &&
           is_const_or_null(n->star2) && all_const(&n->list) &&
           all_const(&n->more);
}

static void fold(struct jnode *part, bool is_printed)
{
    if (!part || !part->is_const)
        return;
    part->is_folded = true;
    part->is_printed = is_printed;
}

static void fold_all(const struct jnodes *list, bool is_printed)
{
    for (size_t i = 0; i < list->n; i++)
        fold(list->v[i], is_printed);
}

/* The parts of something that is not constant stand for themselves. */
static void fold_parts(struct jnode *n)
{
    bool is_printed = n->type == JN_PRINT;

    fold(n->a, false);
    fold(n->b, false);
    fold(n->c, false);
    fold(n->star, false);
    fold(n->star2, false);
    fold_all(&n->list, is_printed);
    fold_all(&n->more, false);
    fold_all(&n->other, false);
    for (size_t i = 0; i < n->kw_n; i++)
        fold(n->kw[i].value, false);
}

static const char *unhashable(const struct jnode *n)
{
    const char *found = n->type == JN_LIST   ? "list"
                        : n->type == JN_DICT ? "dict"
                                             : NULL;

    for (size_t i = 0; n->type == JN_TUPLE && !found && i < n->list.n; i++)
        found = unhashable(n->list.v[i]);
    return found;
}

/* Upstream makes a dict of constants when it compiles, item by item until one
 * is no constant, and does not catch what Python says of a key. */
static void check_keys(struct rt *rt, const struct jnode *n)
{
    for (size_t i = 0; i < n->list.n; i++) {
        const char *type = unhashable(n->list.v[i]);

        if (!n->list.v[i]->is_const || !n->more.v[i]->is_const)
            return;
        if (type) {
            rt->at = n->list.v[i]->at;
            rt_fail(rt, ERR_INPUT, "unhashable type: '%s'", type);
        }
    }
}

static void visit_all(struct rt *rt, struct place_in in,
                      const struct jnodes *list)
{
    for (size_t i = 0; i < list->n; i++)
        visit(rt, in, list->v[i]);
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
        n->ref = ref_to(rt, in.table, n->name, n->at);
        break;
    case JN_FOR:
        visit_for(rt, in, n);
        break;
    case JN_MACRO:
        visit_macro_body(rt, in, n);
        n->a->ref = ref_to(rt, in.table, n->name, n->at);
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
        visit(rt, in, n->a);
        visit(rt, in, n->b);
        visit(rt, in, n->c);
        visit_all(rt, in, &n->list);
        visit_all(rt, in, &n->more);
        for (size_t i = 0; i < n->kw_n; i++)
            visit(rt, in, n->kw[i].value);
        visit(rt, in, n->star);
        visit(rt, in, n->star2);
    }
    if (n->type == JN_DICT && in.in_operator)
        check_keys(rt, n);
    n->is_const = judge(rt, n);
    if (!n->is_const)
        fold_parts(n);
    rt_leave(rt);
}

void jinja_scope(struct rt *rt, struct jinja_template *t)
{
    struct function *f = new_function(rt, NULL);
    struct place_in in = {new_table(rt, NULL, f), false, false, false};

    if (is_used(rt, &t->root->list, "self"))
        rt_fail(rt, ERR_UNSUPPORTED, "the variable 'self'");
    collect_all(rt, in.table, &t->root->list);
    visit_all(rt, in, &t->root->list);
    t->frame = make_frame(rt, in.table);
    t->slots = (uint16_t)f->n;
}
