/* Expressions without names and calls, which upstream works out as it compiles:
 * where they fail, and what their values may be, differs for these. */
#include "jinja/jinja_internal.h"

#include <string.h>

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

void jinja_constant(struct rt *rt, struct jnode *n, bool in_operator)
{
    if (n->type == JN_DICT && in_operator)
        check_keys(rt, n);
    n->is_const = judge(rt, n);
    if (!n->is_const)
        fold_parts(n);
}
