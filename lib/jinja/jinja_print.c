/* Values as text: str() and repr() of Python. */
#include "jinja/jinja_internal.h"

#include "json/json.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

void jfloat_repr(double f, char out[64])
{
    char digits[20];
    int exponent;

    if (isnan(f) || isinf(f)) {
        strcpy(out, isnan(f) ? "nan" : f > 0 ? "inf" : "-inf");
        return;
    }
    const char *sign = signbit(f) ? "-" : "";
    size_t n = json_shortest_digits(f, digits, &exponent);
    if (exponent < -4 || exponent >= 16)
        snprintf(out, 64, "%s%c%s%se%c%02d", sign, digits[0], n > 1 ? "." : "",
                 digits + 1, exponent < 0 ? '-' : '+', abs(exponent));
    else if (exponent < 0)
        snprintf(out, 64, "%s0.%.*s%s", sign, -exponent - 1, "0000", digits);
    else if (n <= (size_t)exponent + 1)
        snprintf(out, 64, "%s%s%.*s.0", sign, digits, exponent + 1 - (int)n,
                 "0000000000000000");
    else
        snprintf(out, 64, "%s%.*s.%s", sign, exponent + 1, digits,
                 digits + exponent + 1);
}

static void print_str_repr(struct jsb *b, struct jval v)
{
    const char *data = v.s->data;
    size_t len = v.s->len;
    char quote =
        memchr(data, '\'', len) && !memchr(data, '"', len) ? '"' : '\'';

    if (v.safe)
        jsb_addstr(b, "Markup(");
    jsb_addch(b, quote);
    for (size_t i = 0; i < len;) {
        size_t from = i;
        uint32_t c = juni_next(data, &i);
        char hex[16];

        if (c == (uint32_t)quote || c == '\\') {
            jsb_addch(b, '\\');
            jsb_addch(b, (char)c);
        } else if (c == '\n' || c == '\r' || c == '\t') {
            jsb_addstr(b, c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t");
        } else if (c < 0x80 ? c >= 0x20 && c < 0x7f
                            : juni_is(c, JUNI_PRINTABLE)) {
            jsb_add(b, data + from, i - from);
        } else {
            snprintf(hex, sizeof(hex),
                     c < 0x100     ? "\\x%02x"
                     : c < 0x10000 ? "\\u%04x"
                                   : "\\U%08x",
                     c);
            jsb_addstr(b, hex);
        }
    }
    jsb_addch(b, quote);
    if (v.safe)
        jsb_addch(b, ')');
}

static void print_items(struct rt *rt, struct jsb *b, const struct jlist *l,
                        char open, char close, bool is_tuple)
{
    jsb_addch(b, open);
    for (size_t i = 0; i < l->n; i++) {
        if (i)
            jsb_addstr(b, ", ");
        jval_print_repr(rt, b, l->v[i]);
    }
    if (is_tuple && l->n == 1)
        jsb_addch(b, ',');
    jsb_addch(b, close);
}

static void print_dict(struct rt *rt, struct jsb *b, const struct jdict *d)
{
    jsb_addch(b, '{');
    for (size_t i = 0; i < d->n; i++) {
        if (i)
            jsb_addstr(b, ", ");
        jval_print_repr(rt, b, d->v[i].key);
        jsb_addstr(b, ": ");
        jval_print_repr(rt, b, d->v[i].value);
    }
    jsb_addch(b, '}');
}

static void print_view(struct rt *rt, struct jsb *b, const struct jview *view)
{
    static const char *const names[] = {"dict_keys([", "dict_values([",
                                        "dict_items(["};

    jsb_addstr(b, names[view->kind]);
    for (size_t i = 0; i < view->dict->n; i++) {
        const struct jentry *e = &view->dict->v[i];

        if (i)
            jsb_addstr(b, ", ");
        if (view->kind == JVIEW_ITEMS)
            jsb_addch(b, '(');
        if (view->kind != JVIEW_VALUES)
            jval_print_repr(rt, b, e->key);
        if (view->kind == JVIEW_ITEMS)
            jsb_addstr(b, ", ");
        if (view->kind != JVIEW_KEYS)
            jval_print_repr(rt, b, e->value);
        if (view->kind == JVIEW_ITEMS)
            jsb_addch(b, ')');
    }
    jsb_addstr(b, "])");
}

void jval_print_repr(struct rt *rt, struct jsb *b, struct jval v)
{
    char text[64];

    rt_step(rt, 1);
    switch (v.type) {
    case JV_UNDEF:
        jsb_addstr(b, "Undefined");
        return;
    case JV_NONE:
        jsb_addstr(b, "None");
        return;
    case JV_BOOL:
        jsb_addstr(b, v.b ? "True" : "False");
        return;
    case JV_INT:
        snprintf(text, sizeof(text), "%" PRId64, v.i);
        jsb_addstr(b, text);
        return;
    case JV_BIG:
        jbig_print(rt, b, v, 10);
        return;
    case JV_FLOAT:
        jfloat_repr(v.f, text);
        jsb_addstr(b, text);
        return;
    case JV_STR:
        rt_step(rt, v.s->len / 16);
        print_str_repr(b, v);
        return;
    case JV_RANGE:
        snprintf(text, sizeof(text), "range(%" PRId64 ", %" PRId64,
                 v.range->start, v.range->stop);
        jsb_addstr(b, text);
        if (v.range->step != 1) {
            snprintf(text, sizeof(text), ", %" PRId64, v.range->step);
            jsb_addstr(b, text);
        }
        jsb_addch(b, ')');
        return;
    default:
        break;
    }
    struct jprinting me = {v.type == JV_NAMESPACE ? NULL : v.p, rt->printing};
    if (v.type == JV_LIST || v.type == JV_TUPLE || v.type == JV_DICT)
        for (struct jprinting *p = me.up; p; p = p->up)
            if (p->p == v.p) {
                jsb_addstr(b, v.type == JV_LIST    ? "[...]"
                              : v.type == JV_TUPLE ? "(...)"
                                                   : "{...}");
                return;
            }
    rt_enter(rt);
    rt->printing = &me;
    switch (v.type) {
    case JV_LIST:
        print_items(rt, b, v.list, '[', ']', false);
        break;
    case JV_TUPLE:
        print_items(rt, b, v.list, '(', ')', true);
        break;
    case JV_DICT:
        print_dict(rt, b, v.dict);
        break;
    case JV_VIEW:
        print_view(rt, b, v.view);
        break;
    case JV_NAMESPACE:
        jsb_addstr(b, "<Namespace ");
        jval_print_repr(rt, b, (struct jval){.type = JV_DICT, .dict = v.dict});
        jsb_addch(b, '>');
        break;
    case JV_MACRO:
        jsb_addstr(b, "<Macro ");
        if (v.macro->name)
            print_str_repr(b, jval_cstr(rt, v.macro->name));
        else
            jsb_addstr(b, "anonymous");
        jsb_addch(b, '>');
        break;
    case JV_LOOP:
        jsb_addstr(b, "<LoopContext ");
        jval_print_repr(rt, b, jval_int(jinja_loop_index(v.loop)));
        jsb_addch(b, '/');
        jval_print_repr(rt, b, jinja_loop_length(rt, v.loop));
        jsb_addch(b, '>');
        break;
    default: {
        /* 5.24 has classes of its own in their places */
        bool is_class = v.type == JV_FUNC && v.func >= JF_DICT &&
                        v.func <= JF_JOINER &&
                        (!rt->t->is_524 || v.func > JF_NAMESPACE);
        if (is_class && v.func == JF_DICT) {
            jsb_addstr(b, "<class 'dict'>");
        } else if (is_class) {
            jsb_addstr(
                b, v.func == JF_NAMESPACE ? "<class 'jinja2.utils.Namespace'>"
                   : v.func == JF_CYCLER  ? "<class 'jinja2.utils.Cycler'>"
                                          : "<class 'jinja2.utils.Joiner'>");
        } else {
            rt_fail(rt, ERR_UNSUPPORTED,
                    "printing a %s, whose text upstream is an address",
                    jval_typename(v));
        }
    }
    }
    rt->printing = me.up;
    rt_leave(rt);
}

void jval_print(struct rt *rt, struct jsb *b, struct jval v)
{
    if (v.type == JV_STR)
        jsb_add(b, v.s->data, v.s->len);
    else if (v.type != JV_UNDEF)
        jval_print_repr(rt, b, v);
}

struct jval jval_to_str(struct rt *rt, struct jval v)
{
    if (v.type == JV_STR) {
        v.safe = false;
        return v;
    }
    struct jsb b = {.rt = rt};
    jval_print(rt, &b, v);
    return jsb_val(&b);
}

struct jval jval_soft_str(struct rt *rt, struct jval v)
{
    return v.type == JV_STR ? v : jval_to_str(rt, v);
}

struct jval jval_repr(struct rt *rt, struct jval v)
{
    struct jsb b = {.rt = rt};

    jval_print_repr(rt, &b, v);
    return jsb_val(&b);
}
