/*
 * From tokens to the tree, by upstream's grammar: the parser's own steps, and
 * a run of data, expressions (jinja_expression.c) and statements
 * (jinja_statement.c).
 */
#include "jinja/jinja_parse.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *token_text(const struct jtoken *t)
{
    switch (t->type) {
    case JT_EOF:
        return "end of template";
    case JT_VAR_BEGIN:
        return "begin of print statement";
    case JT_VAR_END:
        return "end of print statement";
    case JT_BLOCK_BEGIN:
        return "begin of statement block";
    case JT_BLOCK_END:
        return "end of statement block";
    case JT_DATA:
        return "template data";
    case JT_STR:
        return "string";
    case JT_NUMBER:
        return "float";
    case JT_INTEGER:
        return "integer";
    case JT_NAME:
        return t->name;
    default:
        return NULL;
    }
}

void parser_fail(struct parser *p, const struct jtoken *t, const char *format,
                 ...)
{
    va_list ap;
    char text[300];

    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    p->rt->at = t->at;
    rt_fail(p->rt, ERR_INPUT, "%s", text);
}

void parser_unexpected(struct parser *p, const char *wanted)
{
    const char *text = token_text(p->t);

    if (text)
        parser_fail(p, p->t, "expected %s, got '%.100s'", wanted, text);
    parser_fail(p, p->t, "expected %s, got '%.*s'", wanted, (int)p->t->len,
                p->rt->t->source + p->t->at);
}

void parser_enter(struct parser *p)
{
    rt_step(p->rt, 1);
    if (++p->depth > 3 * JINJA_MAX_NESTING) /* three steps a bracket */
        parser_fail(p, p->t, "nested deeper than %d", JINJA_MAX_NESTING);
}

void parser_leave(struct parser *p)
{
    p->depth--;
}

struct jtoken *parser_next(struct parser *p)
{
    struct jtoken *t = p->t;

    if (t->type != JT_EOF)
        p->t++;
    return t;
}

bool token_is(const struct jtoken *t, const char *name)
{
    return t->type == JT_NAME && strcmp(t->name, name) == 0;
}

bool parser_skip_name(struct parser *p, const char *name)
{
    if (!token_is(p->t, name))
        return false;
    parser_next(p);
    return true;
}

bool parser_skip(struct parser *p, enum jtok type)
{
    if (p->t->type != type)
        return false;
    parser_next(p);
    return true;
}

struct jtoken *parser_expect(struct parser *p, enum jtok type,
                             const char *wanted)
{
    if (p->t->type != type)
        parser_unexpected(p, wanted);
    return parser_next(p);
}

struct jnode *parser_node(struct parser *p, enum jnode_type type,
                          const struct jtoken *t)
{
    struct jnode *n = rt_alloc(p->rt, sizeof(*n));

    n->type = type;
    n->at = t->at;
    n->depth = 1;
    return n;
}

struct jnode *parser_deepen(struct parser *p, struct jnode *n,
                            const struct jnode *child)
{
    if (child && child->depth >= n->depth)
        n->depth = child->depth + 1;
    if (n->depth > 4 * JINJA_MAX_NESTING)
        parser_fail(p, p->t, "an expression is nested deeper than %d",
                    4 * JINJA_MAX_NESTING);
    return n;
}

void parser_add(struct parser *p, struct jnode *parent, struct jnodes *list,
                struct jnode *n)
{
    list->v = rt_grow(p->rt, list->v, list->n, &list->cap, sizeof(*list->v));
    list->v[list->n++] = n;
    parser_deepen(p, parent, n);
}

/* --- a run of statements --- */

struct jnode *parse_block(struct parser *p, const char *const *ends)
{
    struct jnode *body = parser_node(p, JN_BLOCK, p->t), *n;

    parser_enter(p);
    while (p->t->type != JT_EOF) {
        struct jtoken *t = p->t;

        if (t->type == JT_DATA) {
            n = parser_node(p, JN_DATA, parser_next(p));
            n->value = t->value;
        } else if (t->type == JT_VAR_BEGIN) {
            parser_next(p);
            n = parser_node(p, JN_PRINT, p->t);
            parser_add(p, n, &n->list, parse_tuple(p, 0));
            parser_expect(p, JT_VAR_END, "'end of print statement'");
        } else {
            parser_next(p);
            for (size_t i = 0; ends && ends[i]; i++)
                if (token_is(p->t, ends[i])) {
                    parser_leave(p);
                    return body;
                }
            n = parse_statement(p);
            parser_expect(p, JT_BLOCK_END, "'end of statement block'");
        }
        parser_add(p, body, &body->list, n);
    }
    parser_leave(p);
    return body;
}

struct jnode *jinja_parse(struct rt *rt, struct jtoken *tokens)
{
    struct parser p = {.rt = rt, .t = tokens};

    return parse_block(&p, NULL);
}
