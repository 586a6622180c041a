/*
 * From tokens to the tree, by upstream's grammar.  How nodes use their fields:
 *
 *   BLOCK list          DATA value            PRINT list (one expression each)
 *   IF list tests, more bodies, a else-body   BREAK CONTINUE
 *   FOR a target, b iterable, c test, list body, more else, flag recursive
 *   SET a target, b value                     SET_BLOCK a target, b filter,
 * list MACRO name, more parameters, other defaults, list body CALL_BLOCK a
 * call, and as MACRO           GENERATION list body FILTER_BLOCK a filter, list
 * body          WITH more targets, other values, list CONST value         NAME
 * name, op ctx     NSREF name, value attribute TUPLE LIST list     DICT list
 * keys, more values COND a test, b then, c else (may be NULL) OR AND ADD ... a,
 * b   NOT NEG POS a COMPARE a, list, ops                      CONCAT list
 *   GETATTR a, value    GETITEM a, b          SLICE a, b, c (each may be NULL)
 *   CALL a, list, kw, star, star2             FILTER TEST the same, name, op
 */
#include "jinja/jinja_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct parser {
    struct rt *rt;
    struct jtoken *t; /* the current one */
    unsigned depth;
};

static struct jnode *parse_expression(struct parser *p, bool with_cond);
static struct jnode *parse_tuple(struct parser *p, bool simplified,
                                 bool with_cond, bool is_bracketed,
                                 bool with_ns);
static struct jnode *parse_unary(struct parser *p, bool with_filter);
static struct jnode *parse_postfix(struct parser *p, struct jnode *node);
static struct jnode *subparse(struct parser *p, const char *const *ends);

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

__attribute__((noreturn, format(printf, 3, 4))) static void
fail(struct parser *p, const struct jtoken *t, const char *format, ...)
{
    va_list ap;
    char text[300];

    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    p->rt->at = t->at;
    rt_fail(p->rt, ERR_INPUT, "%s", text);
}

__attribute__((noreturn)) static void unexpected(struct parser *p,
                                                 const char *wanted)
{
    const char *text = token_text(p->t);

    if (text)
        fail(p, p->t, "expected %s, got '%.100s'", wanted, text);
    fail(p, p->t, "expected %s, got '%.*s'", wanted, (int)p->t->len,
         p->rt->t->source + p->t->at);
}

static void enter(struct parser *p)
{
    rt_step(p->rt, 1);
    if (++p->depth > 3 * JINJA_MAX_NESTING) /* three steps a bracket */
        fail(p, p->t, "nested deeper than %d", JINJA_MAX_NESTING);
}

static struct jtoken *next(struct parser *p)
{
    struct jtoken *t = p->t;

    if (t->type != JT_EOF)
        p->t++;
    return t;
}

static bool is_name(const struct jtoken *t, const char *name)
{
    return t->type == JT_NAME && strcmp(t->name, name) == 0;
}

static bool skip_name(struct parser *p, const char *name)
{
    if (!is_name(p->t, name))
        return false;
    next(p);
    return true;
}

static bool skip(struct parser *p, enum jtok type)
{
    if (p->t->type != type)
        return false;
    next(p);
    return true;
}

static struct jtoken *expect(struct parser *p, enum jtok type,
                             const char *wanted)
{
    if (p->t->type != type)
        unexpected(p, wanted);
    return next(p);
}

static struct jnode *new_node(struct parser *p, enum jnode_type type,
                              const struct jtoken *t)
{
    struct jnode *n = rt_alloc(p->rt, sizeof(*n));

    n->type = type;
    n->at = t->at;
    n->depth = 1;
    return n;
}

/* A parent is deeper than its child; chains of operators are bounded too. */
static struct jnode *deepen(struct parser *p, struct jnode *n,
                            const struct jnode *child)
{
    if (child && child->depth >= n->depth)
        n->depth = child->depth + 1;
    if (n->depth > 4 * JINJA_MAX_NESTING)
        fail(p, p->t, "an expression is nested deeper than %d",
             4 * JINJA_MAX_NESTING);
    return n;
}

static void add_node(struct parser *p, struct jnode *parent,
                     struct jnodes *list, struct jnode *n)
{
    if (list->n == list->cap) {
        size_t cap = list->cap ? list->cap * 2 : 4;
        struct jnode **more = rt_alloc(p->rt, cap * sizeof(struct jnode *));

        if (list->n)
            memcpy(more, list->v, list->n * sizeof(struct jnode *));
        list->v = more;
        list->cap = cap;
    }
    list->v[list->n++] = n;
    deepen(p, parent, n);
}

static struct jnode *binary(struct parser *p, enum jnode_type type,
                            const struct jtoken *t, struct jnode *a,
                            struct jnode *b)
{
    struct jnode *n = new_node(p, type, t);

    n->a = a;
    n->b = b;
    deepen(p, n, a);
    return deepen(p, n, b);
}

/* --- expressions --- */

static void parse_call_args(struct parser *p, struct jnode *n)
{
    struct jtoken *open = expect(p, JT_LPAREN, "'('");
    bool needs_comma = false;
    size_t cap = 0;

    while (p->t->type != JT_RPAREN) {
        if (needs_comma) {
            expect(p, JT_COMMA, "','");
            if (p->t->type == JT_RPAREN)
                break;
        }
        bool is_fine;
        if (p->t->type == JT_MUL) {
            is_fine = !n->star && !n->star2;
            next(p);
            n->star = parse_expression(p, true);
            deepen(p, n, n->star);
        } else if (p->t->type == JT_POW) {
            is_fine = !n->star2;
            next(p);
            n->star2 = parse_expression(p, true);
            deepen(p, n, n->star2);
        } else if (p->t->type == JT_NAME && p->t[1].type == JT_ASSIGN) {
            struct jtoken *key = p->t;

            is_fine = !n->star2;
            if (n->kw_n == cap) {
                struct jkwarg *more;

                cap = cap ? cap * 2 : 4;
                more = rt_alloc(p->rt, cap * sizeof(*more));
                if (n->kw_n)
                    memcpy(more, n->kw, n->kw_n * sizeof(*more));
                n->kw = more;
            }
            rt_step(p->rt, n->kw_n / 8);
            for (size_t i = 0; i < n->kw_n; i++)
                if (strcmp(n->kw[i].key, key->name) == 0)
                    fail(p, key, "keyword argument repeated: '%s'", key->name);
            p->t += 2;
            n->kw[n->kw_n].key = key->name;
            n->kw[n->kw_n].value = parse_expression(p, true);
            deepen(p, n, n->kw[n->kw_n++].value);
        } else {
            is_fine = !n->star && !n->star2 && n->kw_n == 0;
            add_node(p, n, &n->list, parse_expression(p, true));
        }
        if (!is_fine)
            fail(p, open, "invalid syntax for function call expression");
        needs_comma = true;
    }
    next(p);
}

static char *dotted_name(struct parser *p)
{
    char *name = rt_printf(p->rt, "%s", expect(p, JT_NAME, "a name")->name);

    while (skip(p, JT_DOT))
        name =
            rt_printf(p->rt, "%s.%s", name, expect(p, JT_NAME, "a name")->name);
    return name;
}

/* One or more filters behind `node`, which may be NULL. */
static struct jnode *parse_filter(struct parser *p, struct jnode *node,
                                  bool is_inline)
{
    while (p->t->type == JT_PIPE || is_inline) {
        if (!is_inline)
            next(p);
        struct jnode *n = new_node(p, JN_FILTER, p->t);
        n->name = dotted_name(p);
        n->a = node;
        deepen(p, n, node);
        if (p->t->type == JT_LPAREN)
            parse_call_args(p, n);
        node = n;
        is_inline = false;
    }
    return node;
}

static struct jnode *parse_list(struct parser *p)
{
    struct jnode *n = new_node(p, JN_LIST, next(p));

    while (p->t->type != JT_RBRACKET) {
        if (n->list.n)
            expect(p, JT_COMMA, "','");
        if (p->t->type == JT_RBRACKET)
            break;
        add_node(p, n, &n->list, parse_expression(p, true));
    }
    next(p);
    return n;
}

static struct jnode *parse_dict(struct parser *p)
{
    struct jnode *n = new_node(p, JN_DICT, next(p));

    while (p->t->type != JT_RBRACE) {
        if (n->list.n)
            expect(p, JT_COMMA, "','");
        if (p->t->type == JT_RBRACE)
            break;
        add_node(p, n, &n->list, parse_expression(p, true));
        expect(p, JT_COLON, "':'");
        add_node(p, n, &n->more, parse_expression(p, true));
    }
    next(p);
    return n;
}

static struct jnode *parse_name(struct parser *p, bool with_ns)
{
    struct jtoken *t = next(p);
    struct jnode *n = new_node(p, JN_CONST, t);

    if (strcmp(t->name, "true") == 0 || strcmp(t->name, "True") == 0) {
        n->value = jval_true;
    } else if (strcmp(t->name, "false") == 0 || strcmp(t->name, "False") == 0) {
        n->value = jval_false;
    } else if (strcmp(t->name, "none") == 0 || strcmp(t->name, "None") == 0) {
        n->value = jval_none;
    } else if (with_ns && p->t->type == JT_DOT) {
        next(p);
        n->type = JN_NSREF;
        n->name = t->name;
        n->value = jval_cstr(p->rt, expect(p, JT_NAME, "a name")->name);
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
        n = new_node(p, JN_CONST, next(p));
        n->value = t->value;
        struct jsb b = {.rt = p->rt};
        if (p->t->type == JT_STR) {
            jsb_add(&b, t->value.s->data, t->value.s->len);
            while (p->t->type == JT_STR) {
                t = next(p);
                jsb_add(&b, t->value.s->data, t->value.s->len);
            }
            n->value = jsb_val(&b);
        }
        return n;
    }
    case JT_INTEGER:
    case JT_NUMBER:
        n = new_node(p, JN_CONST, next(p));
        n->value = t->value;
        return n;
    case JT_LPAREN:
        next(p);
        enter(p);
        n = parse_tuple(p, false, true, true, false);
        p->depth--;
        expect(p, JT_RPAREN, "')'");
        return n;
    case JT_LBRACKET:
    case JT_LBRACE:
        enter(p);
        n = t->type == JT_LBRACE ? parse_dict(p) : parse_list(p);
        p->depth--;
        return n;
    default:
        unexpected(p, "an expression");
    }
}

static struct jnode *parse_slice(struct parser *p)
{
    struct jtoken *t = p->t;
    struct jnode *start = NULL;

    if (t->type != JT_COLON) {
        start = parse_expression(p, true);
        if (p->t->type != JT_COLON)
            return start;
    }
    next(p);
    struct jnode *n = new_node(p, JN_SLICE, t);
    n->a = start;
    if (p->t->type != JT_COLON && p->t->type != JT_RBRACKET &&
        p->t->type != JT_COMMA)
        n->b = parse_expression(p, true);
    if (skip(p, JT_COLON) && p->t->type != JT_RBRACKET &&
        p->t->type != JT_COMMA)
        n->c = parse_expression(p, true);
    deepen(p, n, n->a);
    deepen(p, n, n->b);
    return deepen(p, n, n->c);
}

static struct jnode *parse_subscript(struct parser *p, struct jnode *node)
{
    struct jtoken *t = next(p);
    struct jnode *n = new_node(p, JN_GETITEM, t);

    n->a = node;
    deepen(p, n, node);
    if (t->type == JT_DOT) {
        struct jtoken *attr = next(p);

        if (attr->type == JT_NAME) {
            n->type = JN_GETATTR;
            n->value = jval_cstr(p->rt, attr->name);
            return n;
        }
        if (attr->type != JT_INTEGER)
            fail(p, attr, "expected name or number");
        n->b = new_node(p, JN_CONST, attr);
        n->b->value = attr->value;
        return n;
    }
    struct jnode *items = new_node(p, JN_TUPLE, t);
    enter(p);
    while (p->t->type != JT_RBRACKET) {
        if (items->list.n)
            expect(p, JT_COMMA, "','");
        add_node(p, items, &items->list, parse_slice(p));
    }
    p->depth--;
    next(p);
    n->b = items;
    if (items->list.n == 1) {
        n->b = items->list.v[0];
    } else {
        for (size_t i = 0; i < items->list.n; i++)
            if (items->list.v[i]->type == JN_SLICE)
                fail(p, t, "a slice beside other indices");
    }
    return deepen(p, n, n->b);
}

static struct jnode *parse_call(struct parser *p, struct jnode *node)
{
    struct jnode *n = new_node(p, JN_CALL, p->t);

    n->a = node;
    deepen(p, n, node);
    enter(p);
    parse_call_args(p, n);
    p->depth--;
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
    struct jtoken *t = next(p);
    bool is_negated = skip_name(p, "not");
    struct jnode *n = new_node(p, JN_TEST, t);

    n->name = dotted_name(p);
    n->a = node;
    deepen(p, n, node);
    if (p->t->type == JT_LPAREN) {
        parse_call_args(p, n);
    } else if ((p->t->type == JT_NAME && !is_name(p->t, "else") &&
                !is_name(p->t, "or") && !is_name(p->t, "and")) ||
               p->t->type == JT_STR || p->t->type == JT_INTEGER ||
               p->t->type == JT_NUMBER || p->t->type == JT_LBRACKET ||
               p->t->type == JT_LBRACE) {
        if (is_name(p->t, "is"))
            fail(p, p->t, "tests cannot be chained with is");
        struct jnode *arg = parse_primary(p, false);
        add_node(p, n, &n->list, parse_postfix(p, arg));
    }
    if (is_negated) {
        struct jnode *not = new_node(p, JN_NOT, t);

        not ->a = n;
        return deepen(p, not, n);
    }
    return n;
}

static struct jnode *parse_filter_expr(struct parser *p, struct jnode *node)
{
    for (;;) {
        if (p->t->type == JT_PIPE)
            node = parse_filter(p, node, false);
        else if (is_name(p->t, "is"))
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

    enter(p);
    if (t->type == JT_SUB || t->type == JT_ADD) {
        next(p);
        n = new_node(p, t->type == JT_SUB ? JN_NEG : JN_POS, t);
        n->a = parse_unary(p, false);
        deepen(p, n, n->a);
    } else {
        n = parse_primary(p, false);
    }
    n = parse_postfix(p, n);
    p->depth--;
    return with_filter ? parse_filter_expr(p, n) : n;
}

static struct jnode *parse_pow(struct parser *p)
{
    struct jnode *left = parse_unary(p, true);

    while (p->t->type == JT_POW) {
        struct jtoken *t = next(p);

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
        struct jtoken *t = next(p);
        left = binary(p, type, t, left, parse_pow(p));
    }
}

static struct jnode *parse_concat(struct parser *p)
{
    struct jnode *left = parse_product(p);

    if (p->t->type != JT_TILDE)
        return left;
    struct jnode *n = new_node(p, JN_CONCAT, p->t);
    add_node(p, n, &n->list, left);
    while (skip(p, JT_TILDE))
        add_node(p, n, &n->list, parse_product(p));
    return n;
}

static struct jnode *parse_sum(struct parser *p)
{
    struct jnode *left = parse_concat(p);

    while (p->t->type == JT_ADD || p->t->type == JT_SUB) {
        struct jtoken *t = next(p);

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
        if (is_name(p->t, "in")) {
            *op = JC_IN;
            break;
        }
        if (!is_name(p->t, "not") || !is_name(p->t + 1, "in"))
            return false;
        *op = JC_NOT_IN;
        next(p);
    }
    next(p);
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
            n = new_node(p, JN_COMPARE, t);
            n->a = left;
            deepen(p, n, left);
        }
        jsb_addch(&ops, (char)op);
        add_node(p, n, &n->list, parse_sum(p));
    }
    if (!n)
        return left;
    n->ops = (uint8_t *)ops.data;
    return n;
}

static struct jnode *parse_not(struct parser *p)
{
    if (!is_name(p->t, "not"))
        return parse_compare(p);
    enter(p);
    struct jnode *n = new_node(p, JN_NOT, next(p));
    n->a = parse_not(p);
    p->depth--;
    return deepen(p, n, n->a);
}

static struct jnode *parse_and(struct parser *p)
{
    struct jnode *left = parse_not(p);

    while (is_name(p->t, "and")) {
        struct jtoken *t = next(p);

        left = binary(p, JN_AND, t, left, parse_not(p));
    }
    return left;
}

static struct jnode *parse_or(struct parser *p)
{
    struct jnode *left = parse_and(p);

    while (is_name(p->t, "or")) {
        struct jtoken *t = next(p);

        left = binary(p, JN_OR, t, left, parse_and(p));
    }
    return left;
}

static struct jnode *parse_expression(struct parser *p, bool with_cond)
{
    enter(p);
    struct jnode *n = parse_or(p);
    while (with_cond && is_name(p->t, "if")) {
        struct jnode *cond = new_node(p, JN_COND, next(p));

        cond->b = n;
        cond->a = parse_or(p);
        if (skip_name(p, "else"))
            cond->c = parse_expression(p, true);
        deepen(p, cond, cond->a);
        deepen(p, cond, cond->b);
        n = deepen(p, cond, cond->c);
    }
    p->depth--;
    return n;
}

static struct jnode *parse_tuple(struct parser *p, bool simplified,
                                 bool with_cond, bool is_bracketed,
                                 bool with_ns)
{
    struct jnode *n = new_node(p, JN_TUPLE, p->t);
    bool is_tuple = false;

    for (;;) {
        if (n->list.n)
            expect(p, JT_COMMA, "','");
        if (p->t->type == JT_VAR_END || p->t->type == JT_BLOCK_END ||
            p->t->type == JT_RPAREN)
            break;
        add_node(p, n, &n->list,
                 simplified ? parse_primary(p, with_ns)
                            : parse_expression(p, with_cond));
        if (p->t->type != JT_COMMA)
            break;
        is_tuple = true;
    }
    if (is_tuple)
        return n;
    if (n->list.n)
        return n->list.v[0];
    if (!is_bracketed)
        unexpected(p, "an expression");
    return n;
}

/* --- statements --- */

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
    struct jnode *n = parse_tuple(p, true, true, false, with_ns);

    set_ctx(p, n, ctx);
    return n;
}

static struct jnode *parse_plain_name(struct parser *p, enum jname_ctx ctx)
{
    if (p->t->type != JT_NAME)
        unexpected(p, "a name");
    struct jnode *n = parse_name(p, false);
    set_ctx(p, n, ctx);
    return n;
}

/* The body of a statement up to one of `ends`, which stays the next token. */
static struct jnode *parse_body(struct parser *p, const char *const *ends)
{
    skip(p, JT_COLON);
    expect(p, JT_BLOCK_END, "'end of statement block'");
    struct jnode *body = subparse(p, ends);
    if (p->t->type == JT_EOF) {
        struct jsb b = {.rt = p->rt};

        for (size_t i = 0; ends[i]; i++)
            jsb_addstr(&b,
                       rt_printf(p->rt, "%s'%s'", i ? " or " : "", ends[i]));
        fail(p, p->t, "unexpected end of template, looking for %.*s",
             (int)b.len, b.data);
    }
    return body;
}

static struct jnodes parse_closed(struct parser *p, struct jnode *n,
                                  const char *end)
{
    const char *const ends[] = {end, NULL};
    struct jnode *body = parse_body(p, ends);

    next(p);
    deepen(p, n, body);
    return body->list;
}

static struct jnode *parse_for(struct parser *p)
{
    static const char *const ends[] = {"endfor", "else", NULL};
    struct jnode *n = new_node(p, JN_FOR, next(p));

    n->a = parse_target(p, JX_STORE, false);
    if (!skip_name(p, "in"))
        unexpected(p, "'in'");
    n->b = parse_tuple(p, false, false, false, false);
    if (skip_name(p, "if"))
        n->c = parse_expression(p, true);
    n->flag = skip_name(p, "recursive");
    struct jnode *body = parse_body(p, ends);
    n->list = body->list;
    deepen(p, n, body);
    if (is_name(next(p), "else"))
        n->more = parse_closed(p, n, "endfor");
    deepen(p, n, n->b);
    return deepen(p, n, n->c);
}

static struct jnode *parse_if(struct parser *p)
{
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    struct jnode *n = new_node(p, JN_IF, next(p));

    for (;;) {
        add_node(p, n, &n->list, parse_tuple(p, false, false, false, false));
        add_node(p, n, &n->more, parse_body(p, ends));
        struct jtoken *t = next(p);
        if (is_name(t, "elif"))
            continue;
        if (is_name(t, "else")) {
            n->a = new_node(p, JN_BLOCK, t);
            n->a->list = parse_closed(p, n, "endif");
        }
        return n;
    }
}

static struct jnode *parse_set(struct parser *p)
{
    struct jnode *n = new_node(p, JN_SET, next(p));

    n->a = parse_target(p, JX_STORE, true);
    if (skip(p, JT_ASSIGN)) {
        n->b = parse_tuple(p, false, true, false, false);
        return deepen(p, n, n->b);
    }
    n->type = JN_SET_BLOCK;
    n->b = parse_filter(p, NULL, false);
    n->list = parse_closed(p, n, "endset");
    return n;
}

static struct jnode *parse_with(struct parser *p)
{
    struct jnode *n = new_node(p, JN_WITH, next(p));

    while (p->t->type != JT_BLOCK_END) {
        if (n->more.n)
            expect(p, JT_COMMA, "','");
        add_node(p, n, &n->more, parse_target(p, JX_PARAM, false));
        expect(p, JT_ASSIGN, "'='");
        add_node(p, n, &n->other, parse_expression(p, true));
    }
    n->list = parse_closed(p, n, "endwith");
    return n;
}

static void parse_signature(struct parser *p, struct jnode *n)
{
    expect(p, JT_LPAREN, "'('");
    while (p->t->type != JT_RPAREN) {
        if (n->more.n)
            expect(p, JT_COMMA, "','");
        struct jnode *arg = parse_plain_name(p, JX_PARAM);
        rt_step(p->rt, n->more.n / 8);
        for (size_t i = 0; i < n->more.n; i++)
            if (strcmp(n->more.v[i]->name, arg->name) == 0) {
                p->rt->at = arg->at;
                rt_fail(p->rt, ERR_INPUT, "duplicate argument '%s'", arg->name);
            }
        if (skip(p, JT_ASSIGN))
            add_node(p, n, &n->other, parse_expression(p, true));
        else if (n->other.n)
            fail(p, p->t, "non-default argument follows default argument");
        add_node(p, n, &n->more, arg);
    }
    next(p);
}

static struct jnode *parse_macro(struct parser *p)
{
    struct jnode *n = new_node(p, JN_MACRO, next(p));

    n->a = parse_plain_name(p, JX_STORE);
    n->name = n->a->name;
    parse_signature(p, n);
    n->list = parse_closed(p, n, "endmacro");
    return n;
}

static struct jnode *parse_call_block(struct parser *p)
{
    struct jtoken *t = next(p);
    struct jnode *n = new_node(p, JN_CALL_BLOCK, t);

    if (p->t->type == JT_LPAREN)
        parse_signature(p, n);
    n->a = parse_expression(p, true);
    if (n->a->type != JN_CALL)
        fail(p, t, "expected call");
    for (size_t i = 0; i < n->a->kw_n; i++)
        if (strcmp(n->a->kw[i].key, "caller") == 0)
            fail(p, t, "keyword argument repeated: 'caller'");
    deepen(p, n, n->a);
    n->list = parse_closed(p, n, "endcall");
    return n;
}

static struct jnode *parse_filter_block(struct parser *p)
{
    struct jnode *n = new_node(p, JN_FILTER_BLOCK, next(p));

    n->a = parse_filter(p, NULL, true);
    deepen(p, n, n->a);
    n->list = parse_closed(p, n, "endfilter");
    return n;
}

static struct jnode *parse_print(struct parser *p)
{
    struct jnode *n = new_node(p, JN_PRINT, next(p));

    while (p->t->type != JT_BLOCK_END) {
        if (n->list.n)
            expect(p, JT_COMMA, "','");
        add_node(p, n, &n->list, parse_expression(p, true));
    }
    return n;
}

/* include, import, from, extends: upstream's environment has no loader, so
 * each fails when it is reached. */
static struct jnode *parse_loader(struct parser *p)
{
    struct jnode *n = new_node(p, JN_LOADER, p->t);

    n->name = next(p)->name;
    n->a = parse_expression(p, true);
    while (p->t->type == JT_NAME || p->t->type == JT_COMMA)
        next(p);
    return n;
}

static struct jnode *parse_statement(struct parser *p)
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
        fail(p, t, "tag name expected");
    for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]); i++)
        if (is_name(t, statements[i].name))
            return statements[i].parse(p);
    if (is_name(t, "break") || is_name(t, "continue"))
        return new_node(p, is_name(next(p), "break") ? JN_BREAK : JN_CONTINUE,
                        t);
    if (is_name(t, "generation")) {
        n = new_node(p, JN_GENERATION, next(p));
        n->list = parse_closed(p, n, "endgeneration");
        return n;
    }
    p->rt->at = t->at;
    if (is_name(t, "block") || is_name(t, "autoescape"))
        rt_fail(p->rt, ERR_UNSUPPORTED, "tag '%s'", t->name);
    rt_fail(p->rt, ERR_INPUT, "unknown tag '%.100s'", t->name);
}

static struct jnode *subparse(struct parser *p, const char *const *ends)
{
    struct jnode *body = new_node(p, JN_BLOCK, p->t), *n;

    enter(p);
    while (p->t->type != JT_EOF) {
        struct jtoken *t = p->t;

        if (t->type == JT_DATA) {
            n = new_node(p, JN_DATA, next(p));
            n->value = t->value;
        } else if (t->type == JT_VAR_BEGIN) {
            next(p);
            n = new_node(p, JN_PRINT, p->t);
            add_node(p, n, &n->list, parse_tuple(p, false, true, false, false));
            expect(p, JT_VAR_END, "'end of print statement'");
        } else {
            next(p);
            for (size_t i = 0; ends && ends[i]; i++)
                if (is_name(p->t, ends[i])) {
                    p->depth--;
                    return body;
                }
            n = parse_statement(p);
            expect(p, JT_BLOCK_END, "'end of statement block'");
        }
        add_node(p, body, &body->list, n);
    }
    p->depth--;
    return body;
}

struct jnode *jinja_parse(struct rt *rt, struct jtoken *tokens)
{
    struct parser p = {.rt = rt, .t = tokens};

    return subparse(&p, NULL);
}
