#ifndef JINJA_JINJA_SYMBOLS_H
#define JINJA_JINJA_SYMBOLS_H

#include "jinja/jinja_internal.h"

/*
 * The names of each scope.  Upstream compiles a template to Python functions
 * whose local variables are the template's: each scope has a table of names,
 * read from the context when the scope is entered, or copied from an outer
 * scope when the scope stores into it.
 */

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

struct function *function_new(struct rt *rt, struct function *outer);
struct table *table_new(struct rt *rt, struct table *parent,
                        struct function *f);

/* A parameter: the scope's own, set when it is entered. */
void table_declare(struct rt *rt, struct table *t, const char *name);
void table_declare_target(struct rt *rt, struct table *t, struct jnode *n);

/* Every name that stands in it and belongs to this scope, in upstream's order:
 * what a name means follows from what was collected before it. */
void table_collect(struct rt *rt, struct table *t, struct jnode *n);
void table_collect_all(struct rt *rt, struct table *t,
                       const struct jnodes *list);

/* Where a name lives as scope t sees it; fails, at `at`, when nowhere. */
struct jref table_ref(struct rt *rt, struct table *t, const char *name,
                      uint32_t at);
/* What entering and leaving the scope do. */
struct jframe table_frame(struct rt *rt, const struct table *t);

/* Calls back for each operand and argument of a node, in upstream's order. */
typedef void node_visitor(struct rt *rt, void *context, struct jnode *n);
void each_operand(struct rt *rt, const struct jnode *n, node_visitor *visit,
                  void *context);
#endif
