/* Python's values: making, printing, comparing, arithmetic, iteration. */
#include "jinja/jinja_internal.h"

#include "base/bug.h"
#include "json/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct jval jval_none = {.type = JV_NONE};
const struct jval jval_true = {.type = JV_BOOL, .b = true};
const struct jval jval_false = {.type = JV_BOOL, .b = false};
const struct jval jval_missing = {.type = JV_MISSING};

struct jval jval_bool(bool b)
{
    return b ? jval_true : jval_false;
}

struct jval jval_int(int64_t i)
{
    return (struct jval){.type = JV_INT, .i = i};
}

struct jval jval_float(double f)
{
    return (struct jval){.type = JV_FLOAT, .f = f};
}

struct jval jval_str(struct rt *rt, const char *data, size_t len)
{
    struct jstr *s = rt_alloc(rt, sizeof(*s));

    s->data = data;
    s->len = len;
    s->chars = SIZE_MAX;
    return (struct jval){.type = JV_STR, .s = s};
}

struct jval jval_cstr(struct rt *rt, const char *text)
{
    return jval_str(rt, text, strlen(text));
}

struct jval jval_list(struct rt *rt, enum jval_type type, size_t cap)
{
    struct jlist *l = rt_alloc(rt, sizeof(*l));

    if (cap) {
        l->v = rt_alloc(rt, cap * sizeof(l->v[0]));
        l->cap = cap;
    }
    return (struct jval){.type = (uint8_t)type, .list = l};
}

struct jval jval_dict(struct rt *rt)
{
    return (struct jval){.type = JV_DICT,
                         .dict = rt_alloc(rt, sizeof(struct jdict))};
}

struct jval jval_undef(struct rt *rt, const char *hint)
{
    struct jundef *u = rt_alloc(rt, sizeof(*u));

    u->hint = hint;
    return (struct jval){.type = JV_UNDEF, .undef = u};
}

struct jval jval_undef_name(struct rt *rt, struct jval obj, struct jval name)
{
    struct jval v = jval_undef(rt, NULL);

    v.undef->obj = obj;
    v.undef->name = name;
    return v;
}

void jval_undef_fail(struct rt *rt, struct jval v)
{
    const struct jundef *u = v.undef;

    if (u->hint)
        rt_fail(rt, ERR_INPUT, "%s", u->hint);
    struct jsb b = {.rt = rt};
    if (u->obj.type == JV_MISSING) {
        jval_print_repr(rt, &b, u->name);
        jsb_addstr(&b, " is undefined");
    } else {
        const char *of =
            u->obj.type == JV_NONE ? "None" : jval_typename(u->obj);

        jsb_addstr(
            &b, rt_printf(rt, u->obj.type == JV_NONE ? "%s" : "%s object", of));
        jsb_addstr(&b, u->name.type == JV_STR ? " has no attribute "
                                              : " has no element ");
        jval_print_repr(rt, &b, u->name);
    }
    rt_fail(rt, ERR_INPUT, "%.*s", (int)(b.len < 300 ? b.len : 300), b.data);
}

void jlist_add(struct rt *rt, struct jlist *l, struct jval v)
{
    if (l->n == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 4;
        struct jval *more = rt_alloc(rt, cap * sizeof(*more));

        if (l->n)
            memcpy(more, l->v, l->n * sizeof(*more));
        l->v = more;
        l->cap = cap;
    }
    l->v[l->n++] = v;
}

/* --- dict --- */

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9e3779b97f4a7c15U;
    return h ^ h >> 29;
}

static uint64_t hash(struct rt *rt, struct jval v)
{
    double f;
    uint64_t h = v.type, bits;

    switch (v.type) {
    case JV_NONE:
    case JV_UNDEF:
        return mix(1, h);
    case JV_BOOL:
        return mix(2, v.b);
    case JV_INT:
        return mix(2, (uint64_t)v.i);
    case JV_BIG:
        f = jbig_to_double(rt, v);
        memcpy(&bits, &f, sizeof(bits));
        return mix(3, bits);
    case JV_FLOAT:
        f = v.f;
        if (f == floor(f) && f >= -0x1p63 && f < 0x1p63)
            return mix(2, (uint64_t)(int64_t)f);
        memcpy(&bits, &f, sizeof(bits));
        return mix(3, bits);
    case JV_STR:
        rt_step(rt, v.s->len / 64);
        h = 4;
        for (size_t i = 0; i < v.s->len; i++)
            h = (h ^ (unsigned char)v.s->data[i]) * 0x100000001b3U;
        return mix(h, v.s->len);
    case JV_TUPLE:
        rt_step(rt, 1 + v.list->n); /* shared parts are walked each time */
        rt_enter(rt);
        for (size_t i = 0; i < v.list->n; i++)
            h = mix(h, hash(rt, v.list->v[i]));
        rt_leave(rt);
        return h;
    case JV_LIST:
    case JV_DICT:
    case JV_VIEW:
        if (v.type != JV_VIEW || v.view->kind != JVIEW_VALUES)
            rt_fail(rt, ERR_INPUT, "unhashable type: '%s'", jval_typename(v));
        return mix(5, (uint64_t)(uintptr_t)v.p);
    case JV_RANGE:
        return mix(mix(6, (uint64_t)v.range->n), (uint64_t)v.range->start);
    case JV_FUNC:
        return mix(7, (uint64_t)v.func);
    default:
        return mix(5, (uint64_t)(uintptr_t)v.p);
    }
}

static size_t find(struct rt *rt, struct jdict *d, struct jval key, uint64_t h)
{
    if (!d->slots) {
        for (size_t i = 0; i < d->n; i++)
            if (d->v[i].hash == h && jval_equal(rt, d->v[i].key, key))
                return i;
        return SIZE_MAX;
    }
    for (size_t s = h & (d->slot_count - 1);;
         s = (s + 1) & (d->slot_count - 1)) {
        rt_step(rt, 1);
        if (d->slots[s] == 0)
            return SIZE_MAX;
        struct jentry *e = &d->v[d->slots[s] - 1];
        if (e->hash == h && jval_equal(rt, e->key, key))
            return d->slots[s] - 1;
    }
}

struct jval *jdict_get(struct rt *rt, struct jdict *d, struct jval key)
{
    size_t i = find(rt, d, key, hash(rt, key));

    return i == SIZE_MAX ? NULL : &d->v[i].value;
}

struct jval *jdict_find(struct rt *rt, struct jdict *d, const char *key)
{
    struct jstr s = {key, strlen(key), SIZE_MAX};

    return jdict_get(rt, d, (struct jval){.type = JV_STR, .s = &s});
}

static void index_entry(struct jdict *d, size_t i)
{
    size_t s = d->v[i].hash & (d->slot_count - 1);

    while (d->slots[s])
        s = (s + 1) & (d->slot_count - 1);
    d->slots[s] = (uint32_t)i + 1;
}

void jdict_put(struct rt *rt, struct jdict *d, struct jval key, struct jval v)
{
    uint64_t h = hash(rt, key);
    size_t i = find(rt, d, key, h);

    if (i != SIZE_MAX) {
        d->v[i].value = v;
        return;
    }
    if (d->n == d->cap) {
        size_t cap = d->cap ? d->cap * 2 : 4;
        struct jentry *more = rt_alloc(rt, cap * sizeof(*more));

        if (d->n)
            memcpy(more, d->v, d->n * sizeof(*more));
        d->v = more;
        d->cap = cap;
    }
    d->v[d->n++] = (struct jentry){key, v, h};
    if (d->n * 2 > d->slot_count && d->n > 8) {
        d->slot_count = d->slot_count ? d->slot_count * 2 : 32;
        d->slots = rt_alloc(rt, d->slot_count * sizeof(d->slots[0]));
        for (size_t k = 0; k < d->n; k++)
            index_entry(d, k);
    } else if (d->slots) {
        index_entry(d, d->n - 1);
    }
}

struct jdict *jdict_copy(struct rt *rt, const struct jdict *d)
{
    struct jdict *copy = rt_alloc(rt, sizeof(*copy));

    for (size_t i = 0; i < d->n; i++)
        jdict_put(rt, copy, d->v[i].key, d->v[i].value);
    return copy;
}

/* --- what a value is --- */

const char *jval_typename(struct jval v)
{
    static const char *const names[] = {
        [JV_MISSING] = "missing",  [JV_UNDEF] = "Undefined",
        [JV_NONE] = "NoneType",    [JV_BOOL] = "bool",
        [JV_INT] = "int",          [JV_BIG] = "int",
        [JV_FLOAT] = "float",      [JV_STR] = "str",
        [JV_LIST] = "list",        [JV_TUPLE] = "tuple",
        [JV_DICT] = "dict",        [JV_VIEW] = "dict view",
        [JV_RANGE] = "range",      [JV_NAMESPACE] = "Namespace",
        [JV_ITER] = "generator",   [JV_MACRO] = "Macro",
        [JV_METHOD] = "method",    [JV_FUNC] = "function",
        [JV_LOOP] = "LoopContext", [JV_CYCLER] = "Cycler",
        [JV_JOINER] = "Joiner",
    };

    return v.type == JV_STR && v.safe ? "Markup" : names[v.type];
}

bool jval_is_int(struct jval v)
{
    return v.type == JV_INT || v.type == JV_BIG || v.type == JV_BOOL;
}

bool jval_is_number(struct jval v)
{
    return jval_is_int(v) || v.type == JV_FLOAT;
}

bool jval_is_iterable(struct jval v)
{
    switch (v.type) {
    case JV_UNDEF:
    case JV_STR:
    case JV_LIST:
    case JV_TUPLE:
    case JV_DICT:
    case JV_VIEW:
    case JV_RANGE:
    case JV_ITER:
    case JV_LOOP:
        return true;
    default:
        return false;
    }
}

bool jstr_is(struct jval v, const char *text)
{
    return v.type == JV_STR && v.s->len == strlen(text) &&
           memcmp(v.s->data, text, v.s->len) == 0;
}

/* len(v), when it has one. */
bool jval_len(struct rt *rt, struct jval v, int64_t *out)
{
    switch (v.type) {
    case JV_UNDEF:
        *out = 0;
        return true;
    case JV_STR:
        *out = (int64_t)jstr_chars(v.s);
        return true;
    case JV_LIST:
    case JV_TUPLE:
        *out = (int64_t)v.list->n;
        return true;
    case JV_DICT:
        *out = (int64_t)v.dict->n;
        return true;
    case JV_VIEW:
        *out = (int64_t)v.view->dict->n;
        return true;
    case JV_RANGE:
        *out = v.range->n;
        return true;
    case JV_LOOP:
        *out = jinja_loop_length(rt, v.loop).i;
        return true;
    default:
        return false;
    }
}

bool jval_truth(struct rt *rt, struct jval v)
{
    int64_t n;

    switch (v.type) {
    case JV_MISSING:
    case JV_UNDEF:
    case JV_NONE:
        return false;
    case JV_BOOL:
        return v.b;
    case JV_INT:
        return v.i != 0;
    case JV_FLOAT:
        return v.f != 0;
    case JV_STR:
        return v.s->len != 0;
    default:
        return jval_len(rt, v, &n) ? n != 0 : true;
    }
}

/* An int argument; big ones are cut to 64 bits. */
int64_t jval_clamp(struct rt *rt, struct jval v)
{
    if (v.type == JV_BIG)
        return v.big->negative ? INT64_MIN : INT64_MAX;
    return jval_index(rt, v);
}

int64_t jval_index(struct rt *rt, struct jval v)
{
    if (v.type == JV_BOOL)
        return v.b;
    if (v.type == JV_BIG)
        rt_fail(rt, ERR_INPUT, "an integer is too large here");
    if (v.type != JV_INT)
        rt_fail(rt, ERR_INPUT,
                "'%s' object cannot be interpreted as an integer",
                jval_typename(v));
    return v.i;
}

double jval_number(struct rt *rt, struct jval v)
{
    if (v.type == JV_FLOAT)
        return v.f;
    double f = v.type == JV_BIG ? jbig_to_double(rt, v)
                                : (double)(v.type == JV_BOOL ? v.b : v.i);
    if (isinf(f))
        rt_fail(rt, ERR_INPUT, "int too large to convert to float");
    return f;
}

struct jval jval_from_double(struct rt *rt, double f)
{
    f = trunc(f);
    if (f >= -0x1p63 && f < 0x1p63)
        return jval_int((int64_t)f);
    return jbig_from_double(rt, f);
}

/* --- str --- */

size_t jstr_chars(struct jstr *s)
{
    if (s->chars == SIZE_MAX)
        s->chars = juni_count(s->data, s->len);
    return s->chars;
}

bool jstr_is_ascii(struct jstr *s)
{
    return jstr_chars(s) == s->len;
}

size_t jstr_offset(struct jstr *s, size_t chars)
{
    if (jstr_is_ascii(s))
        return chars < s->len ? chars : s->len;
    size_t at = 0;
    while (chars > 0 && at < s->len) {
        juni_next(s->data, &at);
        chars--;
    }
    return at;
}

static struct jval substring(struct rt *rt, struct jval v, size_t from,
                             size_t to)
{
    struct jval part = jval_str(rt, v.s->data + from, to - from);

    if (jstr_is_ascii(v.s))
        part.s->chars = to - from;
    part.safe = v.safe;
    return part;
}

struct jval jval_escape(struct rt *rt, struct jval v)
{
    if (v.type == JV_STR && v.safe)
        return v;
    v = jval_to_str(rt, v);
    struct jsb b = {.rt = rt};
    size_t from = 0;

    for (size_t i = 0; i < v.s->len; i++) {
        const char *with = v.s->data[i] == '&'    ? "&amp;"
                           : v.s->data[i] == '<'  ? "&lt;"
                           : v.s->data[i] == '>'  ? "&gt;"
                           : v.s->data[i] == '"'  ? "&#34;"
                           : v.s->data[i] == '\'' ? "&#39;"
                                                  : NULL;
        if (!with)
            continue;
        jsb_add(&b, v.s->data + from, i - from);
        jsb_addstr(&b, with);
        from = i + 1;
    }
    jsb_add(&b, v.s->data + from, v.s->len - from);
    struct jval out = jsb_val(&b);
    out.safe = true;
    return out;
}

/* --- printing --- */

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

/* --- comparing --- */

/* -1, 0, 1, or 2 when one of them is not a number. */
static int compare_numbers(struct rt *rt, struct jval a, struct jval b)
{
    if (a.type == JV_FLOAT && b.type == JV_FLOAT)
        return a.f < b.f ? -1 : a.f > b.f ? 1 : a.f == b.f ? 0 : 2;
    if (a.type == JV_FLOAT) {
        int by = compare_numbers(rt, b, a);

        return by == 2 ? 2 : -by;
    }
    if (b.type == JV_FLOAT) { /* an int against a float, exactly */
        if (isnan(b.f))
            return 2;
        if (isinf(b.f))
            return b.f > 0 ? -1 : 1;
        double whole = floor(b.f);
        struct jval w = jval_from_double(rt, whole);
        int by = compare_numbers(rt, a, w);

        return by != 0 ? by : b.f > whole ? -1 : 0;
    }
    if (a.type == JV_BIG || b.type == JV_BIG)
        return jbig_compare(rt, a, b);
    int64_t x = a.type == JV_BOOL ? a.b : a.i;
    int64_t y = b.type == JV_BOOL ? b.b : b.i;
    return x < y ? -1 : x > y;
}

static int compare_str(const struct jstr *a, const struct jstr *b)
{
    size_t n = a->len < b->len ? a->len : b->len;
    int by = n ? memcmp(a->data, b->data, n) : 0;

    return by ? by : a->len < b->len ? -1 : a->len > b->len;
}

static bool equal_dicts(struct rt *rt, struct jdict *a, struct jdict *b)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++) {
        size_t at = find(rt, b, a->v[i].key, a->v[i].hash);

        if (at == SIZE_MAX || !jval_equal(rt, a->v[i].value, b->v[at].value))
            return false;
    }
    return true;
}

static bool equal_nested(struct rt *rt, struct jval a, struct jval b)
{
    switch (a.type) {
    case JV_LIST:
    case JV_TUPLE:
        if (a.list->n != b.list->n)
            return false;
        for (size_t i = 0; i < a.list->n; i++)
            if (!jval_equal(rt, a.list->v[i], b.list->v[i]))
                return false;
        return true;
    case JV_DICT:
        return equal_dicts(rt, a.dict, b.dict);
    case JV_VIEW:
        if (a.view->kind != b.view->kind || a.view->kind == JVIEW_VALUES)
            return a.p == b.p;
        if (a.view->kind == JVIEW_ITEMS)
            return equal_dicts(rt, a.view->dict, b.view->dict);
        if (a.view->dict->n != b.view->dict->n)
            return false;
        for (size_t i = 0; i < a.view->dict->n; i++)
            if (!jdict_get(rt, b.view->dict, a.view->dict->v[i].key))
                return false;
        return true;
    default:
        return a.p == b.p;
    }
}

bool jval_equal(struct rt *rt, struct jval a, struct jval b)
{
    rt_step(rt, 1);
    if (jval_is_number(a) && jval_is_number(b))
        return compare_numbers(rt, a, b) == 0;
    if (a.type != b.type)
        return false;
    switch (a.type) {
    case JV_NONE:
    case JV_UNDEF:
        return true;
    case JV_STR:
        rt_step(rt, a.s->len / 64);
        return a.s->len == b.s->len &&
               memcmp(a.s->data, b.s->data, a.s->len) == 0;
    case JV_RANGE:
        return a.range->n == b.range->n &&
               (a.range->n == 0 || a.range->start == b.range->start) &&
               (a.range->n < 2 || a.range->step == b.range->step);
    case JV_FUNC:
        return a.func == b.func;
    case JV_METHOD:
        return strcmp(a.method->name, b.method->name) == 0 &&
               jval_is_same(rt, a.method->self, b.method->self);
    default:
        break;
    }
    rt_enter(rt);
    bool same = equal_nested(rt, a, b);
    rt_leave(rt);
    return same;
}

static bool holds(enum jcompare op, int by)
{
    return by != 2 && (op == JC_LT   ? by < 0
                       : op == JC_LE ? by <= 0
                       : op == JC_GT ? by > 0
                                     : by >= 0);
}

bool jval_order(struct rt *rt, enum jcompare op, struct jval a, struct jval b)
{
    static const char *const signs[] = {
        [JC_LT] = "<", [JC_LE] = "<=", [JC_GT] = ">", [JC_GE] = ">="};

    rt_step(rt, 1);
    if (jval_is_number(a) && jval_is_number(b))
        return holds(op, compare_numbers(rt, a, b));
    if (a.type == JV_STR && b.type == JV_STR) {
        rt_step(rt, a.s->len / 64);
        return holds(op, compare_str(a.s, b.s));
    }
    if (a.type == JV_UNDEF)
        jval_undef_fail(rt, a);
    if (b.type == JV_UNDEF)
        jval_undef_fail(rt, b);
    if (a.type == b.type && (a.type == JV_LIST || a.type == JV_TUPLE)) {
        size_t i = 0, n = a.list->n < b.list->n ? a.list->n : b.list->n;
        bool is;

        rt_enter(rt);
        while (i < n && jval_equal(rt, a.list->v[i], b.list->v[i]))
            i++;
        is = i < n ? jval_order(rt, op, a.list->v[i], b.list->v[i])
                   : holds(op,
                           a.list->n < b.list->n ? -1 : a.list->n > b.list->n);
        rt_leave(rt);
        return is;
    }
    if (a.type == JV_VIEW && b.type == JV_VIEW)
        rt_fail(rt, ERR_UNSUPPORTED, "ordering the views of dicts");
    rt_fail(rt, ERR_INPUT, "'%s' not supported between '%s' and '%s'",
            signs[op], jval_typename(a), jval_typename(b));
}

static bool contains(const struct jstr *s, const struct jstr *part)
{
    return part->len == 0 ||
           (s->len && memmem(s->data, s->len, part->data, part->len));
}

bool jval_in(struct rt *rt, struct jval item, struct jval box)
{
    struct jval v;

    switch (box.type) {
    case JV_STR:
        if (item.type != JV_STR)
            rt_fail(rt, ERR_INPUT,
                    "'in <string>' requires a string on its left, not %s",
                    jval_typename(item));
        rt_step(rt, box.s->len / 16);
        return contains(box.s, item.s);
    case JV_DICT:
        return jdict_get(rt, box.dict, item) != NULL;
    case JV_RANGE:
        if (jval_is_int(item) && item.type != JV_BIG) {
            int64_t i = jval_index(rt, item) - box.range->start;

            return i % box.range->step == 0 && i / box.range->step >= 0 &&
                   i / box.range->step < box.range->n;
        }
        break;
    case JV_VIEW:
        if (box.view->kind == JVIEW_KEYS)
            return jdict_get(rt, box.view->dict, item) != NULL;
        if (box.view->kind == JVIEW_ITEMS) {
            if (item.type != JV_TUPLE || item.list->n != 2)
                return false;
            struct jval *has = jdict_get(rt, box.view->dict, item.list->v[0]);
            return has && jval_equal(rt, *has, item.list->v[1]);
        }
        break;
    default:
        if (!jval_is_iterable(box))
            rt_fail(rt, ERR_INPUT, "argument of type '%s' is not iterable",
                    jval_typename(box));
    }
    struct jiter *it = jiter_new(rt, box);
    while (jiter_next(rt, it, &v))
        if (jval_equal(rt, v, item))
            return true;
    return false;
}

/* a is b.  Where CPython's answer depends on how it came by two equal values,
 * there is none to give. */
bool jval_is_same(struct rt *rt, struct jval a, struct jval b)
{
    if (a.type != b.type)
        return false;
    switch (a.type) {
    case JV_NONE:
        return true;
    case JV_BOOL:
        return a.b == b.b;
    case JV_INT:
        if (a.i != b.i || (a.i >= -5 && a.i <= 256))
            return a.i == b.i;
        break;
    case JV_FUNC:
        return a.func == b.func;
    case JV_STR:
        if (a.p == b.p || a.s->len == 0)
            return a.safe == b.safe && a.s->len == b.s->len;
        if (!jval_equal(rt, a, b))
            return false;
        break;
    case JV_TUPLE:
        if (a.list->n == 0 && b.list->n == 0)
            return true;
        return a.p == b.p;
    case JV_FLOAT:
    case JV_BIG:
        if (!jval_equal(rt, a, b))
            return false;
        break;
    default:
        return a.p == b.p;
    }
    rt_fail(rt, ERR_UNSUPPORTED,
            "'sameas' of two equal values of type %s, which is chance",
            jval_typename(a));
}

/* --- arithmetic --- */

__attribute__((noreturn)) static void
no_operator(struct rt *rt, const char *sign, struct jval a, struct jval b)
{
    if (a.type == JV_UNDEF)
        jval_undef_fail(rt, a);
    if (b.type == JV_UNDEF)
        jval_undef_fail(rt, b);
    rt_fail(rt, ERR_INPUT, "unsupported operand types for %s: '%s' and '%s'",
            sign, jval_typename(a), jval_typename(b));
}

static struct jval concat_str(struct rt *rt, struct jval a, struct jval b)
{
    if (a.safe || b.safe) {
        a = jval_escape(rt, a);
        b = jval_escape(rt, b);
    }
    struct jsb sb = {.rt = rt};
    jsb_add(&sb, a.s->data, a.s->len);
    jsb_add(&sb, b.s->data, b.s->len);
    struct jval v = jsb_val(&sb);
    v.safe = a.safe;
    return v;
}

struct jval jval_add(struct rt *rt, struct jval a, struct jval b)
{
    int64_t sum;

    if (jval_is_int(a) && jval_is_int(b)) {
        if (a.type == JV_BIG || b.type == JV_BIG ||
            __builtin_add_overflow(jval_index(rt, a), jval_index(rt, b), &sum))
            return jbig_add(rt, a, b, false);
        return jval_int(sum);
    }
    if (jval_is_number(a) && jval_is_number(b))
        return jval_float(jval_number(rt, a) + jval_number(rt, b));
    if (a.type == JV_STR && b.type == JV_STR)
        return concat_str(rt, a, b);
    if (a.type == b.type && (a.type == JV_LIST || a.type == JV_TUPLE)) {
        struct jval v = jval_list(rt, a.type, a.list->n + b.list->n);

        rt_step(rt, (a.list->n + b.list->n) / 8);
        for (size_t i = 0; i < a.list->n; i++)
            jlist_add(rt, v.list, a.list->v[i]);
        for (size_t i = 0; i < b.list->n; i++)
            jlist_add(rt, v.list, b.list->v[i]);
        return v;
    }
    no_operator(rt, "+", a, b);
}

static struct jval repeat(struct rt *rt, struct jval v, struct jval times)
{
    if (times.type == JV_BIG)
        rt_fail(rt, ERR_INPUT, "cannot fit 'int' into an index-sized integer");
    int64_t n = jval_index(rt, times);

    n = n < 0 ? 0 : n;
    if (v.type == JV_STR) {
        if (v.s->len && n > JINJA_MAX_MEMORY / (int64_t)v.s->len)
            rt_fail(rt, ERR_INPUT, "a string of more than %d bytes",
                    JINJA_MAX_MEMORY);
        struct jsb b = {.rt = rt};
        for (int64_t i = 0; i < n && v.s->len; i++)
            jsb_add(&b, v.s->data, v.s->len);
        struct jval out = jsb_val(&b);
        out.safe = v.safe;
        return out;
    }
    if (v.list->n &&
        n > JINJA_MAX_MEMORY / (int64_t)(v.list->n * sizeof(struct jval)))
        rt_fail(rt, ERR_INPUT, "a list of more than %d bytes",
                JINJA_MAX_MEMORY);
    struct jval out = jval_list(rt, v.type, v.list->n * (size_t)n);
    for (int64_t i = 0; i < n && v.list->n; i++)
        for (size_t k = 0; k < v.list->n; k++)
            jlist_add(rt, out.list, v.list->v[k]);
    return out;
}

static bool is_sequence(struct jval v)
{
    return v.type == JV_STR || v.type == JV_LIST || v.type == JV_TUPLE;
}

static struct jval power(struct rt *rt, struct jval a, struct jval b)
{
    if (jval_is_int(a) && jval_is_int(b)) {
        bool is_negative =
            b.type == JV_BIG ? b.big->negative : jval_index(rt, b) < 0;

        if (!is_negative) {
            if (b.type == JV_BIG) {
                if (a.type == JV_BIG || jval_index(rt, a) < -1 ||
                    jval_index(rt, a) > 1)
                    rt_fail(rt, ERR_UNSUPPORTED,
                            "an integer of more than %d bits",
                            JINJA_MAX_INTEGER_BITS);
                return jbig_pow(rt, a, b.big->d[0] & 1 ? 1 : 2);
            }
            return jbig_pow(rt, a, (uint64_t)jval_index(rt, b));
        }
    }
    double x = jval_number(rt, a), y = jval_number(rt, b);
    if (x == 0 && y < 0)
        rt_fail(rt, ERR_INPUT, "0.0 cannot be raised to a negative power");
    if (x < 0 && isfinite(x) && isfinite(y) && y != floor(y))
        rt_fail(rt, ERR_UNSUPPORTED, "a complex number");
    double z = pow(x, y);
    if (isinf(z) && isfinite(x) && isfinite(y))
        rt_fail(rt, ERR_INPUT, "'**' is too large for a float");
    return jval_float(z);
}

static double float_mod(double x, double y)
{
    double r = fmod(x, y);

    if (r != 0 ? (y < 0) != (r < 0) : false)
        r += y;
    return r != 0 ? r : copysign(0.0, y);
}

static double float_floordiv(double x, double y)
{
    double r = fmod(x, y), q = (x - r) / y;

    if (r != 0 && (y < 0) != (r < 0))
        q -= 1.0;
    if (q == 0)
        return copysign(0.0, x / y);
    double whole = floor(q);
    return q - whole > 0.5 ? whole + 1.0 : whole;
}

static struct jval divide(struct rt *rt, enum jnode_type op, struct jval a,
                          struct jval b)
{
    if (!jval_truth(rt, b))
        rt_fail(rt, ERR_INPUT, "division by zero");
    if (!jval_is_int(a) || !jval_is_int(b)) {
        double x = jval_number(rt, a), y = jval_number(rt, b);

        return jval_float(op == JN_DIV        ? x / y
                          : op == JN_FLOORDIV ? float_floordiv(x, y)
                                              : float_mod(x, y));
    }
    bool is_small = a.type != JV_BIG && b.type != JV_BIG;
    int64_t x = is_small ? jval_index(rt, a) : 0;
    int64_t y = is_small ? jval_index(rt, b) : 0;
    if (op == JN_DIV) {
        const int64_t exact = (int64_t)1 << 53;

        if (is_small && x >= -exact && x <= exact && y >= -exact && y <= exact)
            return jval_float((double)x / (double)y);
        double f = jbig_divide(rt, a, b);
        if (isinf(f))
            rt_fail(rt, ERR_INPUT, "division result too large for a float");
        return jval_float(f);
    }
    if (!is_small || (x == INT64_MIN && y == -1)) {
        struct jval q, r;

        jbig_divmod(rt, a, b, &q, &r);
        return op == JN_FLOORDIV ? q : r;
    }
    int64_t q = x / y, r = x % y;
    if (r != 0 && (r < 0) != (y < 0)) {
        q--;
        r += y;
    }
    return jval_int(op == JN_FLOORDIV ? q : r);
}

struct jval jval_arith(struct rt *rt, enum jnode_type op, struct jval a,
                       struct jval b)
{
    static const char *const signs[] = {
        [JN_ADD] = "+", [JN_SUB] = "-",       [JN_MUL] = "*", [JN_DIV] = "/",
        [JN_MOD] = "%", [JN_FLOORDIV] = "//", [JN_POW] = "**"};
    bool are_numbers = jval_is_number(a) && jval_is_number(b);
    int64_t r;

    if (op == JN_ADD)
        return jval_add(rt, a, b);
    if (op == JN_MOD && a.type == JV_STR)
        return jformat_percent(rt, a, b);
    if (op == JN_MUL && is_sequence(a) && jval_is_int(b))
        return repeat(rt, a, b);
    if (op == JN_MUL && is_sequence(b) && jval_is_int(a))
        return repeat(rt, b, a);
    if (!are_numbers)
        no_operator(rt, signs[op], a, b);
    if (op == JN_POW)
        return power(rt, a, b);
    if (op == JN_DIV || op == JN_FLOORDIV || op == JN_MOD)
        return divide(rt, op, a, b);
    if (jval_is_int(a) && jval_is_int(b)) {
        bool is_big = a.type == JV_BIG || b.type == JV_BIG;

        if (op == JN_SUB) {
            if (is_big || __builtin_sub_overflow(jval_index(rt, a),
                                                 jval_index(rt, b), &r))
                return jbig_add(rt, a, b, true);
            return jval_int(r);
        }
        if (is_big ||
            __builtin_mul_overflow(jval_index(rt, a), jval_index(rt, b), &r))
            return jbig_mul(rt, a, b);
        return jval_int(r);
    }
    double x = jval_number(rt, a), y = jval_number(rt, b);
    return jval_float(op == JN_SUB ? x - y : x * y);
}

struct jval jval_negate(struct rt *rt, struct jval v)
{
    if (v.type == JV_FLOAT)
        return jval_float(-v.f);
    if (jval_is_int(v))
        return jval_arith(rt, JN_SUB, jval_int(0), v);
    if (v.type == JV_UNDEF)
        jval_undef_fail(rt, v);
    rt_fail(rt, ERR_INPUT, "bad operand type for unary -: '%s'",
            jval_typename(v));
}

/* --- slices --- */

static int64_t slice_end(struct rt *rt, struct jval v, int64_t n, int64_t step,
                         int64_t otherwise)
{
    if (v.type == JV_MISSING || v.type == JV_NONE)
        return otherwise;
    if (!jval_is_int(v))
        rt_fail(rt, ERR_INPUT, "slice indices must be integers or None");
    int64_t i = jval_clamp(rt, v);
    if (i < 0) {
        i = i < -n ? -1 : i + n;
        return i < 0 ? step < 0 ? -1 : 0 : i;
    }
    return i >= n ? step < 0 ? n - 1 : n : i;
}

struct jval jval_slice(struct rt *rt, struct jval v, struct jval start,
                       struct jval stop, struct jval step)
{
    int64_t n, by = 1;

    if (v.type == JV_UNDEF)
        jval_undef_fail(rt, v);
    if (!is_sequence(v) && v.type != JV_RANGE)
        rt_fail(rt, ERR_INPUT, "'%s' object cannot be sliced",
                jval_typename(v));
    jval_len(rt, v, &n);
    if (step.type != JV_MISSING && step.type != JV_NONE) {
        if (!jval_is_int(step))
            rt_fail(rt, ERR_INPUT, "slice indices must be integers or None");
        by = jval_clamp(rt, step);
        by = by < -INT64_MAX ? -INT64_MAX : by;
    }
    if (by == 0)
        rt_fail(rt, ERR_INPUT, "slice step cannot be zero");
    int64_t from = slice_end(rt, start, n, by, by < 0 ? n - 1 : 0);
    int64_t to = slice_end(rt, stop, n, by, by < 0 ? -1 : n);
    int64_t count = by > 0 ? (to > from ? (to - from - 1) / by + 1 : 0)
                           : (from > to ? (from - to - 1) / -by + 1 : 0);

    rt_step(rt, (size_t)count / 8);
    if (v.type == JV_RANGE) {
        struct jrange *r = rt_alloc(rt, sizeof(*r));

        r->start = v.range->start + from * v.range->step;
        r->stop = v.range->start + to * v.range->step;
        r->step = v.range->step * by;
        r->n = count;
        return (struct jval){.type = JV_RANGE, .range = r};
    }
    if (v.type != JV_STR) {
        struct jval out = jval_list(rt, v.type, (size_t)count);

        for (int64_t i = 0; i < count; i++)
            jlist_add(rt, out.list, v.list->v[from + i * by]);
        return out;
    }
    if (count == 0)
        return substring(rt, v, 0, 0);
    if (by == 1) {
        size_t at = jstr_offset(v.s, (size_t)from), end = at;

        if (jstr_is_ascii(v.s))
            end = at + (size_t)count;
        else
            for (int64_t i = 0; i < count; i++)
                juni_next(v.s->data, &end);
        return substring(rt, v, at, end);
    }
    struct jsb b = {.rt = rt};
    size_t at = jstr_offset(v.s, (size_t)from);
    for (int64_t i = 0; i < count; i++) {
        size_t end = at;

        jsb_putcp(&b, juni_next(v.s->data, &end));
        if (i + 1 == count)
            break;
        for (int64_t k = 0; k < by; k++)
            juni_next(v.s->data, &at);
        for (int64_t k = 0; k > by; k--)
            juni_before(v.s->data, &at);
    }
    struct jval out = jsb_val(&b);
    out.safe = v.safe;
    return out;
}

/* --- iteration --- */

struct jiter *jiter_new(struct rt *rt, struct jval v)
{
    if (v.type == JV_ITER)
        return v.iter;
    if (!jval_is_iterable(v) || v.type == JV_LOOP)
        rt_fail(rt, v.type == JV_LOOP ? ERR_UNSUPPORTED : ERR_INPUT,
                "'%s' object is not iterable", jval_typename(v));
    struct jiter *it = rt_alloc(rt, sizeof(*it));
    it->source = v;
    switch (v.type) {
    case JV_LIST:
    case JV_TUPLE:
        it->kind = JI_LIST;
        break;
    case JV_STR:
        it->kind = JI_STR;
        break;
    case JV_DICT:
        it->kind = JI_DICT;
        it->view = JVIEW_KEYS;
        break;
    case JV_VIEW:
        it->kind = JI_DICT;
        it->view = v.view->kind;
        it->source = (struct jval){.type = JV_DICT, .dict = v.view->dict};
        break;
    case JV_RANGE:
        it->kind = JI_RANGE;
        break;
    default:
        it->kind = JI_EMPTY;
    }
    return it;
}

struct jval jiter_lazy(struct rt *rt, enum jiter_kind kind, struct jval v)
{
    struct jiter *it = rt_alloc(rt, sizeof(*it));

    it->kind = kind;
    it->source = v;
    return (struct jval){.type = JV_ITER, .iter = it};
}

struct jval jval_to_list(struct rt *rt, struct jval v)
{
    int64_t n = 0;

    if (v.type != JV_LOOP)
        jval_len(rt, v, &n);
    struct jval out = jval_list(rt, JV_LIST, (size_t)n), item;
    struct jiter *it = jiter_new(rt, v);
    while (jiter_next(rt, it, &item))
        jlist_add(rt, out.list, item);
    return out;
}

static struct jval pair(struct rt *rt, struct jval a, struct jval b)
{
    struct jval t = jval_list(rt, JV_TUPLE, 2);

    jlist_add(rt, t.list, a);
    jlist_add(rt, t.list, b);
    return t;
}

static bool next_entry(struct rt *rt, const struct jdict *d, size_t i,
                       enum jview_kind view, struct jval *out)
{
    if (i >= d->n)
        return false;
    *out = view == JVIEW_KEYS     ? d->v[i].key
           : view == JVIEW_VALUES ? d->v[i].value
                                  : pair(rt, d->v[i].key, d->v[i].value);
    return true;
}

/* The lazy filters.  Like a generator, one looks at what it was given only
 * when its first value is asked for. */
static bool next_lazy(struct rt *rt, struct jiter *it, struct jval *out)
{
    struct jval v, name, rest;
    struct jargs args;

    if (!it->is_ready) {
        it->is_ready = true;
        if ((it->kind == JI_MAP || it->kind == JI_SELECT) &&
            !jval_truth(rt, it->source))
            it->is_done = true;
        if (it->kind == JI_ITEMS && it->source.type == JV_UNDEF)
            it->is_done = true;
        if (it->kind == JI_ITEMS && it->source.type != JV_UNDEF &&
            it->source.type != JV_DICT)
            rt_fail(rt, ERR_INPUT, "can only get item pairs from a mapping");
        if (it->kind == JI_SLICE)
            it->source = jval_to_list(rt, it->source);
        if (it->kind == JI_SLICE)
            it->number = jval_index(rt, it->args.v[0]);
        if (!it->is_done)
            it->from = jiter_new(rt, it->source);
    }
    if (it->is_done)
        return false;
    switch (it->kind) {
    case JI_MAP:
        if (it->by_attr) {
            if (!jiter_next(rt, it->from, &v))
                break;
            *out = jfilter_getter(rt, v, it->attr, it->fallback);
            return true;
        }
        if (it->args.n == 0)
            rt_fail(rt, ERR_INPUT, "map requires a filter argument");
        if (!jiter_next(rt, it->from, &v))
            break;
        name = it->args.v[0];
        int filter =
            name.type == JV_STR ? jfilter_find(name.s->data, name.s->len) : -1;
        if (filter < 0) {
            name = jval_to_str(rt, name);
            char *text = rt_printf(rt, "%.*s", (int)name.s->len, name.s->data);
            rt_fail(rt, jfilter_is_known(text) ? ERR_UNSUPPORTED : ERR_INPUT,
                    "no filter named '%s'", text);
        }
        args = it->args;
        args.v++;
        args.n--;
        *out = jfilter_call(rt, filter, v, &args);
        return true;
    case JI_SELECT: {
        size_t off = it->by_attr ? 1 : 0;
        int test = -1;

        if (it->by_attr && it->args.n == 0)
            rt_fail(rt, ERR_INPUT, "missing parameter for attribute name");
        while (jiter_next(rt, it->from, &v)) {
            bool is;

            rest = it->by_attr
                       ? jfilter_getter(rt, v, it->args.v[0], jval_missing)
                       : v;
            if (it->args.n > off) {
                name = it->args.v[off];
                if (test < 0 && name.type == JV_STR)
                    test = jtest_find(name.s->data, name.s->len);
                if (test < 0) {
                    name = jval_to_str(rt, name);
                    rt_fail(rt, ERR_INPUT, "no test named '%.*s'",
                            (int)(name.s->len < 100 ? name.s->len : 100),
                            name.s->data);
                }
                args = it->args;
                args.v += off + 1;
                args.n -= off + 1;
                is = jtest_call(rt, test, rest, &args);
            } else {
                is = jval_truth(rt, rest);
            }
            if (is != it->negate) {
                *out = v;
                return true;
            }
        }
        break;
    }
    case JI_UNIQUE:
        while (jiter_next(rt, it->from, &v)) {
            rest = jfilter_getter(rt, v, it->attr, jval_missing);
            if (!it->by_attr && rest.type == JV_STR)
                rest = jstr_case(rt, rest, "lower");
            if (jdict_get(rt, it->seen, rest))
                continue;
            jdict_put(rt, it->seen, rest, jval_none);
            *out = v;
            return true;
        }
        break;
    case JI_BATCH: {
        struct jval row = it->attr; /* a value read ahead */

        if (row.type == JV_MISSING)
            row = jval_list(rt, JV_LIST, 0);
        it->attr = jval_missing;
        while (jiter_next(rt, it->from, &v)) {
            if (jval_equal(rt, jval_int((int64_t)row.list->n), it->args.v[0])) {
                it->attr = jval_list(rt, JV_LIST, 1);
                jlist_add(rt, it->attr.list, v);
                *out = row;
                return true;
            }
            jlist_add(rt, row.list, v);
        }
        it->is_done = true;
        if (row.list->n == 0)
            return false;
        if (it->fallback.type != JV_NONE)
            while (jval_order(rt, JC_LT, jval_int((int64_t)row.list->n),
                              it->args.v[0])) {
                jval_index(rt, it->args.v[0]);
                jlist_add(rt, row.list, it->fallback);
            }
        *out = row;
        return true;
    }
    case JI_SLICE: {
        int64_t n = (int64_t)it->source.list->n, slices = it->number;
        int64_t each, extra, i = (int64_t)it->at;

        if (slices == 0)
            rt_fail(rt, ERR_INPUT, "integer division or modulo by zero");
        if (slices < 0)
            break;
        each = n / slices;
        extra = n % slices;
        if (i >= slices)
            break;
        struct jval row = jval_list(rt, JV_LIST, 0);
        for (int64_t k = 0; k < each + (i < extra); k++)
            jlist_add(rt, row.list, it->source.list->v[it->number2++]);
        if (it->fallback.type != JV_NONE && i >= extra)
            jlist_add(rt, row.list, it->fallback);
        it->at++;
        *out = row;
        return true;
    }
    default: /* JI_ITEMS */
        if (next_entry(rt, it->source.dict, it->at, JVIEW_ITEMS, out)) {
            it->at++;
            return true;
        }
    }
    it->is_done = true;
    return false;
}

bool jiter_next(struct rt *rt, struct jiter *it, struct jval *out)
{
    size_t from = it->at;
    bool is;

    rt_step(rt, 1);
    switch (it->kind) {
    case JI_EMPTY:
        return false;
    case JI_LIST:
        if (it->at >= it->source.list->n)
            return false;
        *out = it->source.list->v[it->at++];
        return true;
    case JI_REVERSED:
        if (it->at >= it->source.list->n)
            return false;
        *out = it->source.list->v[it->source.list->n - ++it->at];
        return true;
    case JI_STR:
        if (it->at >= it->source.s->len)
            return false;
        juni_next(it->source.s->data, &it->at);
        *out = jval_str(rt, it->source.s->data + from, it->at - from);
        out->s->chars = 1;
        return true;
    case JI_DICT:
        if (!next_entry(rt, it->source.dict, it->at, it->view, out))
            return false;
        it->at++;
        return true;
    case JI_RANGE:
        if ((int64_t)it->at >= it->source.range->n)
            return false;
        *out = jval_int(it->source.range->start +
                        (int64_t)it->at++ * it->source.range->step);
        return true;
    case JI_LOOP_FILTER:
        rt_enter(rt);
        is = jinja_loop_filter(rt, it, out);
        rt_leave(rt);
        return is;
    default:
        rt_enter(rt);
        is = next_lazy(rt, it, out);
        rt_leave(rt);
        return is;
    }
}
