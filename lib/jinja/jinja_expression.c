/* Expressions of a template, from the tightest binding to the loosest. */
#include "jinja/jinja_parse.h"

#include <string.h>

static struct jnode *parse_unary(struct parser *p, bool with_filter);
static struct jnode *parse_postfix(struct parser *p, struct jnode *node);

static struct jnode *binary(struct parser *p, enum jnode_type type,
                            const struct jtoken *t, struct jnode *a,
                            struct jnode *b)
{
    struct jnode *n = parser_node(p, type, t);

    n->a = a;
    n->b = b;
    parser_deepen(p, n, a);
    return parser_deepen(p, n, b);
}

/* name=value */
static void parse_keyword(struct parser *p, struct jnode *n, size_t *cap)
{
    struct jtoken *key = p->t;

    rt_step(p->rt, n->kw_n / 8);
    for (size_t i = 0; i < n->kw_n; i++)
        if (strcmp(n->kw[i].key, key->name) == 0)
            parser_fail(p, key, "keyword argument repeated: '%s'", key->name);
    p->t += 2;
    n->kw = rt_grow(p->rt, n->kw, n->kw_n, cap, sizeof(*n->kw));
    n->kw[n->kw_n].key = key->name;
    n->kw[n->kw_n].value = parse_expression(p);
    parser_deepen(p, n, n->kw[n->kw_n++].value);
}

/* *value or **value */
static struct jnode *parse_star(struct parser *p, struct jnode *n)
{
    parser_next(p);
    struct jnode *value = parse_expression(p);
    parser_deepen(p, n, value);
    return value;
}

static void parse_call_args(struct parser *p, struct jnode *n)
{
    struct jtoken *open = parser_expect(p, JT_LPAREN, "'('");
    size_t cap = 0;

    for (bool is_first = true; p->t->type != JT_RPAREN; is_first = false) {
        if (!is_first) {
            parser_expect(p, JT_COMMA, "','");
            if (p->t->type == JT_RPAREN)
                break;
        }
        bool is_fine;
        if (p->t->type == JT_MUL) {
            is_fine = !n->star && !n->star2;
            n->star = parse_star(p, n);
        } else if (p->t->type == JT_POW) {
            is_fine = !n->star2;
            n->star2 = parse_star(p, n);
        } else if (p->t->type == JT_NAME && p->t[1].type == JT_ASSIGN) {
            is_fine = !n->star2;
            parse_keyword(p, n, &cap);
        } else {
            is_fine = !n->star && !n->star2 && n->kw_n == 0;
            parser_add(p, n, &n->list, parse_expression(p));
        }
        if (!is_fine)
            parser_fail(p, open, "invalid syntax for function call expression");
    }
    parser_next(p);
}

static char *dotted_name(struct parser *p)
{
    char *name =
        rt_printf(p->rt, "%s", parser_expect(p, JT_NAME, "a name")->name);

    while (parser_skip(p, JT_DOT))
        name = rt_printf(p->rt, "%s.%s", name,
                         parser_expect(p, JT_NAME, "a name")->name);
    return name;
}

struct jnode *parse_filters(struct parser *p, struct jnode *node,
                            bool first_is_bare)
{
    while (p->t->type == JT_PIPE || first_is_bare) {
        if (!first_is_bare)
            parser_next(p);
        struct jnode *n = parser_node(p, JN_FILTER, p->t);
        n->name = dotted_name(p);
        n->a = node;
        parser_deepen(p, n, node);
        if (p->t->type == JT_LPAREN)
            parse_call_args(p, n);
        node = n;
        first_is_bare = false;
    }
    return node;
}

static struct jnode *parse_list(struct parser *p)
{
    struct jnode *n = parser_node(p, JN_LIST, parser_next(p));

    while (p->t->type != JT_RBRACKET) {
        if (n->list.n)
            parser_expect(p, JT_COMMA, "','");
        if (p->t->type == JT_RBRACKET)
            break;
        parser_add(p, n, &n->list, parse_expression(p));
    }
    parser_next(p);
    return n;
}

static struct jnode *parse_dict(struct parser *p)
{
    struct jnode *n = parser_node(p, JN_DICT, parser_next(p));

    while (p->t->type != JT_RBRACE) {
        if (n->list.n)
            parser_expect(p, JT_COMMA, "','");
        if (p->t->type == JT_RBRACE)
            break;
        parser_add(p, n, &n->list, parse_expression(p));
        parser_expect(p, JT_COLON, "':'");
        parser_add(p, n, &n->more, parse_expression(p));
    }
    parser_next(p);
    return n;
}

struct jnode *parse_name(struct parser *p, bool with_ns)
{
    struct jtoken *t = parser_next(p);
    struct jnode *n = parser_node(p, JN_CONST, t);

    if (strcmp(t->name, "true") == 0 || strcmp(t->name, "True") == 0) {
        n->value = jval_true;
    } else if (strcmp(t->name, "false") == 0 || strcmp(t->name, "False") == 0) {
        n->value = jval_false;
    } else if (strcmp(t->name, "none") == 0 || strcmp(t->name, "None") == 0) {
        n->value = jval_none;
    } else if (with_ns && p->t->type == JT_DOT) {
        parser_next(p);
        n->type = JN_NSREF;
        n->name = t->name;
        n->value = jval_cstr(p->rt, parser_expect(p, JT_NAME, "a name")->name);
    } else {
        n->type = JN_NAME;
        n->name = t->name;
    }
    return n;
}

static struct jnode *parse_primary(struct parser *p, bool with_ns)
{
    struct jtoken *t = p->t;
    struct jnode *n;

    switch (t->type) {
    case JT_NAME:
        return parse_name(p, with_ns);
    case JT_STR: {
        n = parser_node(p, JN_CONST, parser_next(p));
        n->value = t->value;
        struct jsb b = {.rt = p->rt};
        if (p->t->type == JT_STR) {
            jsb_add(&b, t->value.s->data, t->value.s->len);
            while (p->t->type == JT_STR) {
                t = parser_next(p);
                jsb_add(&b, t->value.s->data, t->value.s->len);
            }
            n->value = jsb_val(&b);
        }
        return n;
    }
    case JT_INTEGER:
    case JT_NUMBER:
        n = parser_node(p, JN_CONST, parser_next(p));
        n->value = t->value;
        return n;
    case JT_LPAREN:
        parser_next(p);
        parser_enter(p);
        n = parse_tuple(p, TUPLE_BRACKETED);
        parser_leave(p);
        parser_expect(p, JT_RPAREN, "')'");
        return n;
    case JT_LBRACKET:
    case JT_LBRACE:
        parser_enter(p);
        n = t->type == JT_LBRACE ? parse_dict(p) : parse_list(p);
        parser_leave(p);
        return n;
    default:
        parser_unexpected(p, "an expression");
    }
}

static struct jnode *parse_slice(struct parser *p)
{
    struct jtoken *t = p->t;
    struct jnode *start = NULL;

    if (t->type != JT_COLON) {
        start = parse_expression(p);
        if (p->t->type != JT_COLON)
            return start;
    }
    parser_next(p);
    struct jnode *n = parser_node(p, JN_SLICE, t);
    n->a = start;
    if (p->t->type != JT_COLON && p->t->type != JT_RBRACKET &&
        p->t->type != JT_COMMA)
        n->b = parse_expression(p);
    if (parser_skip(p, JT_COLON) && p->t->type != JT_RBRACKET &&
        p->t->type != JT_COMMA)
        n->c = parse_expression(p);
    parser_deepen(p, n, n->a);
    parser_deepen(p, n, n->b);
    return parser_deepen(p, n, n->c);
}

static struct jnode *parse_subscript(struct parser *p, struct jnode *node)
{
    struct jtoken *t = parser_next(p);
    struct jnode *n = parser_node(p, JN_GETITEM, t);

    n->a = node;
    parser_deepen(p, n, node);
    if (t->type == JT_DOT) {
        struct jtoken *attr = parser_next(p);

        if (attr->type == JT_NAME) {
            n->type = JN_GETATTR;
            n->value = jval_cstr(p->rt, attr->name);
            return n;
        }
        if (attr->type != JT_INTEGER)
            parser_fail(p, attr, "expected name or number");
        n->b = parser_node(p, JN_CONST, attr);
        n->b->value = attr->value;
        return n;
    }
    struct jnode *items = parser_node(p, JN_TUPLE, t);
    parser_enter(p);
    while (p->t->type != JT_RBRACKET) {
        if (items->list.n)
            parser_expect(p, JT_COMMA, "','");
        parser_add(p, items, &items->list, parse_slice(p));
    }
    parser_leave(p);
    parser_next(p);
    n->b = items;
    if (items->list.n == 1) {
        n->b = items->list.v[0];
    } else {
        for (size_t i = 0; i < items->list.n; i++)
            if (items->list.v[i]->type == JN_SLICE)
                parser_fail(p, t, "a slice beside other indices");
    }
    return parser_deepen(p, n, n->b);
}

static struct jnode *parse_call(struct parser *p, struct jnode *node)
{
    struct jnode *n = parser_node(p, JN_CALL, p->t);

    n->a = node;
    parser_deepen(p, n, node);
    parser_enter(p);
    parse_call_args(p, n);
    parser_leave(p);
    return n;
}

static struct jnode *parse_postfix(struct parser *p, struct jnode *node)
{
    for (;;) {
        if (p->t->type == JT_DOT || p->t->type == JT_LBRACKET)
            node = parse_subscript(p, node);
        else if (p->t->type == JT_LPAREN)
            node = parse_call(p, node);
        else
            return node;
    }
}

static struct jnode *parse_test(struct parser *p, struct jnode *node)
{
    struct jtoken *t = parser_next(p);
    bool is_negated = parser_skip_name(p, "not");
    struct jnode *n = parser_node(p, JN_TEST, t);

    n->name = dotted_name(p);
    n->a = node;
    parser_deepen(p, n, node);
    if (p->t->type == JT_LPAREN) {
        parse_call_args(p, n);
    } else if ((p->t->type == JT_NAME && !token_is(p->t, "else") &&
                !token_is(p->t, "or") && !token_is(p->t, "and")) ||
               p->t->type == JT_STR || p->t->type == JT_INTEGER ||
               p->t->type == JT_NUMBER || p->t->type == JT_LBRACKET ||
               p->t->type == JT_LBRACE) {
        if (token_is(p->t, "is"))
            parser_fail(p, p->t, "tests cannot be chained with is");
        struct jnode *arg = parse_primary(p, false);
        parser_add(p, n, &n->list, parse_postfix(p, arg));
    }
    if (is_negated) {
        struct jnode *not = parser_node(p, JN_NOT, t);

        not ->a = n;
        return parser_deepen(p, not, n);
    }
    return n;
}

static struct jnode *parse_filter_expr(struct parser *p, struct jnode *node)
{
    for (;;) {
        if (p->t->type == JT_PIPE)
            node = parse_filters(p, node, false);
        else if (token_is(p->t, "is"))
            node = parse_test(p, node);
        else if (p->t->type == JT_LPAREN)
            node = parse_call(p, node);
        else
            return node;
    }
}

static struct jnode *parse_unary(struct parser *p, bool with_filter)
{
    struct jtoken *t = p->t;
    struct jnode *n;

    parser_enter(p);
    if (t->type == JT_SUB || t->type == JT_ADD) {
        parser_next(p);
        n = parser_node(p, t->type == JT_SUB ? JN_NEG : JN_POS, t);
        n->a = parse_unary(p, false);
        parser_deepen(p, n, n->a);
    } else {
        n = parse_primary(p, false);
    }
    n = parse_postfix(p, n);
    parser_leave(p);
    return with_filter ? parse_filter_expr(p, n) : n;
}

static struct jnode *parse_pow(struct parser *p)
{
    struct jnode *left = parse_unary(p, true);

    while (p->t->type == JT_POW) {
        struct jtoken *t = parser_next(p);

        left = binary(p, JN_POW, t, left, parse_unary(p, true));
    }
    return left;
}

static struct jnode *parse_product(struct parser *p)
{
    struct jnode *left = parse_pow(p);

    for (;;) {
        enum jtok op = p->t->type;
        enum jnode_type type = op == JT_MUL        ? JN_MUL
                               : op == JT_DIV      ? JN_DIV
                               : op == JT_FLOORDIV ? JN_FLOORDIV
                                                   : JN_MOD;

        if (type == JN_MOD && op != JT_MOD)
            return left;
        struct jtoken *t = parser_next(p);
        left = binary(p, type, t, left, parse_pow(p));
    }
}

static struct jnode *parse_concat(struct parser *p)
{
    struct jnode *left = parse_product(p);

    if (p->t->type != JT_TILDE)
        return left;
    struct jnode *n = parser_node(p, JN_CONCAT, p->t);
    parser_add(p, n, &n->list, left);
    while (parser_skip(p, JT_TILDE))
        parser_add(p, n, &n->list, parse_product(p));
    return n;
}

static struct jnode *parse_sum(struct parser *p)
{
    struct jnode *left = parse_concat(p);

    while (p->t->type == JT_ADD || p->t->type == JT_SUB) {
        struct jtoken *t = parser_next(p);

        left = binary(p, t->type == JT_ADD ? JN_ADD : JN_SUB, t, left,
                      parse_concat(p));
    }
    return left;
}

static bool compare_operator(struct parser *p, enum jcompare *op)
{
    switch (p->t->type) {
    case JT_EQ:
        *op = JC_EQ;
        break;
    case JT_NE:
        *op = JC_NE;
        break;
    case JT_LT:
        *op = JC_LT;
        break;
    case JT_LE:
        *op = JC_LE;
        break;
    case JT_GT:
        *op = JC_GT;
        break;
    case JT_GE:
        *op = JC_GE;
        break;
    default:
        if (token_is(p->t, "in")) {
            *op = JC_IN;
            break;
        }
        if (!token_is(p->t, "not") || !token_is(p->t + 1, "in"))
            return false;
        *op = JC_NOT_IN;
        parser_next(p);
    }
    parser_next(p);
    return true;
}

static struct jnode *parse_compare(struct parser *p)
{
    struct jtoken *t = p->t;
    struct jnode *left = parse_sum(p), *n = NULL;
    enum jcompare op;
    struct jsb ops = {.rt = p->rt};

    while (compare_operator(p, &op)) {
        if (!n) {
            n = parser_node(p, JN_COMPARE, t);
            n->a = left;
            parser_deepen(p, n, left);
        }
        jsb_addch(&ops, (char)op);
        parser_add(p, n, &n->list, parse_sum(p));
    }
    if (!n)
        return left;
    n->ops = (uint8_t *)ops.data;
    return n;
}

static struct jnode *parse_not(struct parser *p)
{
    if (!token_is(p->t, "not"))
        return parse_compare(p);
    parser_enter(p);
    struct jnode *n = parser_node(p, JN_NOT, parser_next(p));
    n->a = parse_not(p);
    parser_leave(p);
    return parser_deepen(p, n, n->a);
}

static struct jnode *parse_and(struct parser *p)
{
    struct jnode *left = parse_not(p);

    while (token_is(p->t, "and")) {
        struct jtoken *t = parser_next(p);

        left = binary(p, JN_AND, t, left, parse_not(p));
    }
    return left;
}

static struct jnode *parse_or(struct parser *p)
{
    struct jnode *left = parse_and(p);

    while (token_is(p->t, "or")) {
        struct jtoken *t = parser_next(p);

        left = binary(p, JN_OR, t, left, parse_and(p));
    }
    return left;
}

/* With a condition behind it, or several. */
struct jnode *parse_expression(struct parser *p)
{
    parser_enter(p);
    struct jnode *n = parse_or(p);
    while (token_is(p->t, "if")) {
        struct jnode *cond = parser_node(p, JN_COND, parser_next(p));

        cond->b = n;
        cond->a = parse_or(p);
        if (parser_skip_name(p, "else"))
            cond->c = parse_expression(p);
        parser_deepen(p, cond, cond->a);
        parser_deepen(p, cond, cond->b);
        n = parser_deepen(p, cond, cond->c);
    }
    parser_leave(p);
    return n;
}

static struct jnode *parse_no_cond(struct parser *p)
{
    parser_enter(p);
    struct jnode *n = parse_or(p);
    parser_leave(p);
    return n;
}

static struct jnode *parse_item(struct parser *p, unsigned flags)
{
    if (flags & TUPLE_TARGETS)
        return parse_primary(p, flags & TUPLE_NAMESPACES);
    return flags & TUPLE_NO_COND ? parse_no_cond(p) : parse_expression(p);
}

struct jnode *parse_tuple(struct parser *p, unsigned flags)
{
    struct jnode *n = parser_node(p, JN_TUPLE, p->t);
    bool is_tuple = false;

    for (;;) {
        if (n->list.n)
            parser_expect(p, JT_COMMA, "','");
        if (p->t->type == JT_VAR_END || p->t->type == JT_BLOCK_END ||
            p->t->type == JT_RPAREN)
            break;
        parser_add(p, n, &n->list, parse_item(p, flags));
        if (p->t->type != JT_COMMA)
            break;
        is_tuple = true;
    }
    if (is_tuple)
        return n;
    if (n->list.n)
        return n->list.v[0];
    if (!(flags & TUPLE_BRACKETED))
        parser_unexpected(p, "an expression");
    return n;
}
