#ifndef JINJA_JINJA_PARSE_H
#define JINJA_JINJA_PARSE_H

#include "jinja/jinja_internal.h"

/*
 * What the two halves of the grammar share: a place in the tokens, and nodes.
 * A parser fails through rt_fail(), so nothing here returns an error.
 */
struct parser {
    struct rt *rt;
    struct jtoken *t; /* the current one */
    unsigned depth;
};

/* jinja_parse.c: tokens */
bool token_is(const struct jtoken *t, const char *name);
struct jtoken *parser_next(struct parser *p); /* takes the current one */
bool parser_skip(struct parser *p, enum jtok type);
bool parser_skip_name(struct parser *p, const char *name);
struct jtoken *parser_expect(struct parser *p, enum jtok type,
                             const char *wanted);
__attribute__((noreturn, format(printf, 3, 4))) void
parser_fail(struct parser *p, const struct jtoken *t, const char *format, ...);
__attribute__((noreturn)) void parser_unexpected(struct parser *p,
                                                 const char *wanted);
void parser_enter(struct parser *p); /* one deeper; parser_leave() ends it */
void parser_leave(struct parser *p);

/* jinja_parse.c: nodes */
struct jnode *parser_node(struct parser *p, enum jnode_type type,
                          const struct jtoken *t);
/* A parent is deeper than its child, which may be NULL: chains of operators
 * are bounded too.  Returns the parent. */
struct jnode *parser_deepen(struct parser *p, struct jnode *n,
                            const struct jnode *child);
void parser_add(struct parser *p, struct jnode *parent, struct jnodes *list,
                struct jnode *n);

/* jinja_expression.c */
struct jnode *parse_expression(struct parser *p);
/* An expression, or a tuple of those that commas part. */
enum {
    TUPLE_NO_COND = 1,    /* an `if` behind it is the statement's */
    TUPLE_BRACKETED = 2,  /* may be empty */
    TUPLE_TARGETS = 4,    /* what can be assigned to: no operators */
    TUPLE_NAMESPACES = 8, /* ns.name among them */
};
struct jnode *parse_tuple(struct parser *p, unsigned flags);
struct jnode *parse_name(struct parser *p, bool with_ns);
/* The filters behind `node`, which may be NULL: a block's text.  In the tag of
 * a filter block the first stands without its `|`. */
struct jnode *parse_filters(struct parser *p, struct jnode *node,
                            bool first_is_bare);

/* jinja_statement.c: the tag's inside; its end stays the current token */
struct jnode *parse_statement(struct parser *p);

/* jinja_parse.c: data, expressions and statements up to a tag that is among
 * `ends`, which stays the current token; NULL: to the template's end. */
struct jnode *parse_block(struct parser *p, const char *const *ends);
#endif
