/* Tables of names, by the rules of upstream's compiler. */
#include "jinja/jinja_symbols.h"

#include "base/bug.h"

#include <string.h>

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

struct function *function_new(struct rt *rt, struct function *outer)
{
    struct function *f = rt_alloc(rt, sizeof(*f));

    f->outer = outer;
    return f;
}

struct table *table_new(struct rt *rt, struct table *parent, struct function *f)
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

void table_declare(struct rt *rt, struct table *t, const char *name)
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

void each_operand(struct rt *rt, const struct jnode *n, node_visitor *visit,
                  void *context)
{
    visit(rt, context, n->a);
    visit(rt, context, n->b);
    visit(rt, context, n->c);
    for (size_t i = 0; i < n->list.n; i++)
        visit(rt, context, n->list.v[i]);
    for (size_t i = 0; i < n->more.n; i++)
        visit(rt, context, n->more.v[i]);
    for (size_t i = 0; i < n->kw_n; i++)
        visit(rt, context, n->kw[i].value);
    visit(rt, context, n->star);
    visit(rt, context, n->star2);
}

void table_collect_all(struct rt *rt, struct table *t,
                       const struct jnodes *list)
{
    for (size_t i = 0; i < list->n; i++)
        table_collect(rt, t, list->v[i]);
}

void table_declare_target(struct rt *rt, struct table *t, struct jnode *n)
{
    if (n->type == JN_NAME)
        table_declare(rt, t, n->name);
    else if (n->type == JN_TUPLE)
        for (size_t i = 0; i < n->list.n; i++)
            table_declare_target(rt, t, n->list.v[i]);
}

static void collect_if(struct rt *rt, struct table *t, struct jnode *n)
{
    struct table *branches[3];

    /* tests of elifs belong to their branch, and these see one another */
    table_collect(rt, t, n->list.v[0]);
    branches[0] = copy_table(rt, t);
    table_collect(rt, branches[0], n->more.v[0]);
    branches[1] = copy_table(rt, t);
    for (size_t i = 1; i < n->list.n; i++) {
        struct table *inner[3];

        table_collect(rt, branches[1], n->list.v[i]);
        inner[0] = copy_table(rt, branches[1]);
        table_collect(rt, inner[0], n->more.v[i]);
        inner[1] = inner[2] = copy_table(rt, branches[1]);
        merge_branches(rt, branches[1], inner, 3);
    }
    branches[2] = copy_table(rt, t);
    if (n->a)
        table_collect(rt, branches[2], n->a);
    merge_branches(rt, t, branches, 3);
}

static void collect_operand(struct rt *rt, void *table, struct jnode *n)
{
    table_collect(rt, table, n);
}

void table_collect(struct rt *rt, struct table *t, struct jnode *n)
{
    if (!n)
        return;
    rt_step(rt, 1);
    rt_enter(rt);
    switch (n->type) {
    case JN_NAME:
        if (n->op == JX_PARAM)
            table_declare(rt, t, n->name);
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
        table_collect(rt, t, n->b);
        table_collect(rt, t, n->a);
        break;
    case JN_FOR:
        table_collect(rt, t, n->b);
        break;
    case JN_CALL_BLOCK:
    case JN_FILTER_BLOCK:
    case JN_SET_BLOCK:
        table_collect(rt, t, n->a);
        break;
    case JN_WITH:
        table_collect_all(rt, t, &n->other);
        break;
    case JN_GENERATION:
        break;
    default:
        each_operand(rt, n, collect_operand, t);
    }
    rt_leave(rt);
}

/* --- what came of it --- */

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

struct jref table_ref(struct rt *rt, struct table *t, const char *name,
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

struct jframe table_frame(struct rt *rt, const struct table *t)
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
