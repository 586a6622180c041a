/* Statements of a template: what stands in {% and %}. */
#include "jinja/jinja_parse.h"

#include <string.h>

static void set_ctx(struct parser *p, struct jnode *n, enum jname_ctx ctx)
{
    static const char *const names[] = {
        [JN_CONST] = "const",   [JN_LIST] = "list",       [JN_DICT] = "dict",
        [JN_CALL] = "call",     [JN_GETATTR] = "getattr", [JN_TEST] = "test",
        [JN_FILTER] = "filter", [JN_GETITEM] = "getitem",
    };

    if (n->type == JN_NAME) {
        n->op = (int)ctx;
    } else if (n->type == JN_TUPLE) {
        for (size_t i = 0; i < n->list.n; i++)
            set_ctx(p, n->list.v[i], ctx);
    } else if (n->type != JN_NSREF) {
        const char *what = (size_t)n->type < sizeof(names) / sizeof(names[0])
                               ? names[n->type]
                               : NULL;

        p->rt->at = n->at;
        rt_fail(p->rt, ERR_INPUT, "can't assign to '%s'",
                what ? what : "expression");
    }
}

static struct jnode *parse_target(struct parser *p, enum jname_ctx ctx,
                                  bool with_ns)
{
    struct jnode *n =
        parse_tuple(p, TUPLE_TARGETS | (with_ns ? TUPLE_NAMESPACES : 0));

    set_ctx(p, n, ctx);
    return n;
}

static struct jnode *parse_plain_name(struct parser *p, enum jname_ctx ctx)
{
    if (p->t->type != JT_NAME)
        parser_unexpected(p, "a name");
    struct jnode *n = parse_name(p, false);
    set_ctx(p, n, ctx);
    return n;
}

/* The body of a statement up to one of `ends`, which stays the next token. */
static struct jnode *parse_body(struct parser *p, const char *const *ends)
{
    parser_skip(p, JT_COLON);
    parser_expect(p, JT_BLOCK_END, "'end of statement block'");
    struct jnode *body = parse_block(p, ends);
    if (p->t->type == JT_EOF) {
        struct jsb b = {.rt = p->rt};

        for (size_t i = 0; ends[i]; i++)
            jsb_addstr(&b,
                       rt_printf(p->rt, "%s'%s'", i ? " or " : "", ends[i]));
        parser_fail(p, p->t, "unexpected end of template, looking for %.*s",
                    (int)b.len, b.data);
    }
    return body;
}

static struct jnodes parse_closed(struct parser *p, struct jnode *n,
                                  const char *end)
{
    const char *const ends[] = {end, NULL};
    struct jnode *body = parse_body(p, ends);

    parser_next(p);
    parser_deepen(p, n, body);
    return body->list;
}

static struct jnode *parse_for(struct parser *p)
{
    static const char *const ends[] = {"endfor", "else", NULL};
    struct jnode *n = parser_node(p, JN_FOR, parser_next(p));

    n->a = parse_target(p, JX_STORE, false);
    if (!parser_skip_name(p, "in"))
        parser_unexpected(p, "'in'");
    n->b = parse_tuple(p, TUPLE_NO_COND);
    if (parser_skip_name(p, "if"))
        n->c = parse_expression(p);
    n->flag = parser_skip_name(p, "recursive");
    struct jnode *body = parse_body(p, ends);
    n->list = body->list;
    parser_deepen(p, n, body);
    if (token_is(parser_next(p), "else"))
        n->more = parse_closed(p, n, "endfor");
    parser_deepen(p, n, n->b);
    return parser_deepen(p, n, n->c);
}

static struct jnode *parse_if(struct parser *p)
{
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    struct jnode *n = parser_node(p, JN_IF, parser_next(p));

    for (;;) {
        parser_add(p, n, &n->list, parse_tuple(p, TUPLE_NO_COND));
        parser_add(p, n, &n->more, parse_body(p, ends));
        struct jtoken *t = parser_next(p);
        if (token_is(t, "elif"))
            continue;
        if (token_is(t, "else")) {
            n->a = parser_node(p, JN_BLOCK, t);
            n->a->list = parse_closed(p, n, "endif");
        }
        return n;
    }
}

static struct jnode *parse_set(struct parser *p)
{
    struct jnode *n = parser_node(p, JN_SET, parser_next(p));

    n->a = parse_target(p, JX_STORE, true);
    if (parser_skip(p, JT_ASSIGN)) {
        n->b = parse_tuple(p, 0);
        return parser_deepen(p, n, n->b);
    }
    n->type = JN_SET_BLOCK;
    n->b = parse_filters(p, NULL, false);
    n->list = parse_closed(p, n, "endset");
    return n;
}

static struct jnode *parse_with(struct parser *p)
{
    struct jnode *n = parser_node(p, JN_WITH, parser_next(p));

    while (p->t->type != JT_BLOCK_END) {
        if (n->more.n)
            parser_expect(p, JT_COMMA, "','");
        parser_add(p, n, &n->more, parse_target(p, JX_PARAM, false));
        parser_expect(p, JT_ASSIGN, "'='");
        parser_add(p, n, &n->other, parse_expression(p));
    }
    n->list = parse_closed(p, n, "endwith");
    return n;
}

static void parse_signature(struct parser *p, struct jnode *n)
{
    parser_expect(p, JT_LPAREN, "'('");
    while (p->t->type != JT_RPAREN) {
        if (n->more.n)
            parser_expect(p, JT_COMMA, "','");
        struct jnode *arg = parse_plain_name(p, JX_PARAM);
        rt_step(p->rt, n->more.n / 8);
        for (size_t i = 0; i < n->more.n; i++)
            if (strcmp(n->more.v[i]->name, arg->name) == 0) {
                p->rt->at = arg->at;
                rt_fail(p->rt, ERR_INPUT, "duplicate argument '%s'", arg->name);
            }
        if (parser_skip(p, JT_ASSIGN))
            parser_add(p, n, &n->other, parse_expression(p));
        else if (n->other.n)
            parser_fail(p, p->t,
                        "non-default argument follows default argument");
        parser_add(p, n, &n->more, arg);
    }
    parser_next(p);
}

static struct jnode *parse_macro(struct parser *p)
{
    struct jnode *n = parser_node(p, JN_MACRO, parser_next(p));

    n->a = parse_plain_name(p, JX_STORE);
    n->name = n->a->name;
    parse_signature(p, n);
    n->list = parse_closed(p, n, "endmacro");
    return n;
}

static struct jnode *parse_call_block(struct parser *p)
{
    struct jtoken *t = parser_next(p);
    struct jnode *n = parser_node(p, JN_CALL_BLOCK, t);

    if (p->t->type == JT_LPAREN)
        parse_signature(p, n);
    n->a = parse_expression(p);
    if (n->a->type != JN_CALL)
        parser_fail(p, t, "expected call");
    for (size_t i = 0; i < n->a->kw_n; i++)
        if (strcmp(n->a->kw[i].key, "caller") == 0)
            parser_fail(p, t, "keyword argument repeated: 'caller'");
    parser_deepen(p, n, n->a);
    n->list = parse_closed(p, n, "endcall");
    return n;
}

static struct jnode *parse_filter_block(struct parser *p)
{
    struct jnode *n = parser_node(p, JN_FILTER_BLOCK, parser_next(p));

    n->a = parse_filters(p, NULL, true);
    parser_deepen(p, n, n->a);
    n->list = parse_closed(p, n, "endfilter");
    return n;
}

static struct jnode *parse_print(struct parser *p)
{
    struct jnode *n = parser_node(p, JN_PRINT, parser_next(p));

    while (p->t->type != JT_BLOCK_END) {
        if (n->list.n)
            parser_expect(p, JT_COMMA, "','");
        parser_add(p, n, &n->list, parse_expression(p));
    }
    return n;
}

/* include, import, from, extends: upstream's environment has no loader, so
 * each fails when it is reached. */
static struct jnode *parse_loader(struct parser *p)
{
    struct jnode *n = parser_node(p, JN_LOADER, p->t);

    n->name = parser_next(p)->name;
    n->a = parse_expression(p);
    while (p->t->type == JT_NAME || p->t->type == JT_COMMA)
        parser_next(p);
    return n;
}

struct jnode *parse_statement(struct parser *p)
{
    static const struct {
        const char *name;
        struct jnode *(*parse)(struct parser *);
    } statements[] = {
        {"if", parse_if},           {"for", parse_for},
        {"set", parse_set},         {"macro", parse_macro},
        {"call", parse_call_block}, {"filter", parse_filter_block},
        {"with", parse_with},       {"print", parse_print},
        {"include", parse_loader},  {"import", parse_loader},
        {"from", parse_loader},     {"extends", parse_loader},
    };
    struct jtoken *t = p->t;
    struct jnode *n;

    if (t->type != JT_NAME)
        parser_fail(p, t, "tag name expected");
    for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]); i++)
        if (token_is(t, statements[i].name))
            return statements[i].parse(p);
    if (token_is(t, "break") || token_is(t, "continue"))
        return parser_node(
            p, token_is(parser_next(p), "break") ? JN_BREAK : JN_CONTINUE, t);
    if (token_is(t, "generation")) {
        n = parser_node(p, JN_GENERATION, parser_next(p));
        n->list = parse_closed(p, n, "endgeneration");
        return n;
    }
    p->rt->at = t->at;
    if (token_is(t, "block") || token_is(t, "autoescape"))
        rt_fail(p->rt, ERR_UNSUPPORTED, "tag '%s'", t->name);
    rt_fail(p->rt, ERR_INPUT, "unknown tag '%.100s'", t->name);
}
