/* Python's values: making them, what they are, str and slices. */
#include "jinja/jinja_internal.h"

#include <math.h>
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
    l->v = rt_grow(rt, l->v, l->n, &l->cap, sizeof(*l->v));
    l->v[l->n++] = v;
}

void jlist_reverse(struct jlist *l)
{
    for (size_t i = 0; i < l->n / 2; i++) {
        struct jval t = l->v[i];

        l->v[i] = l->v[l->n - 1 - i];
        l->v[l->n - 1 - i] = t;
    }
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

bool jval_is_sequence(struct jval v)
{
    return v.type == JV_STR || v.type == JV_LIST || v.type == JV_TUPLE;
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
        *out = (int64_t)jstr_chars(rt, v.s);
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

size_t jstr_chars(struct rt *rt, struct jstr *s)
{
    if (s->chars == SIZE_MAX) {
        rt_step(rt, s->len / 64);
        s->chars = juni_count(s->data, s->len);
    }
    return s->chars;
}

bool jstr_is_ascii(struct rt *rt, struct jstr *s)
{
    return jstr_chars(rt, s) == s->len;
}

size_t jstr_offset(struct rt *rt, struct jstr *s, size_t chars)
{
    if (jstr_is_ascii(rt, s))
        return chars < s->len ? chars : s->len;
    size_t at = 0;
    rt_step(rt, chars / 16);
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

    if (jstr_is_ascii(rt, v.s))
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

    rt_step(rt, v.s->len / 16);
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
    if (!jval_is_sequence(v) && v.type != JV_RANGE)
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
        size_t at = jstr_offset(rt, v.s, (size_t)from), end = at;

        if (jstr_is_ascii(rt, v.s))
            end = at + (size_t)count;
        else
            for (int64_t i = 0; i < count; i++)
                juni_next(v.s->data, &end);
        return substring(rt, v, at, end);
    }
    struct jsb b = {.rt = rt};
    size_t at = jstr_offset(rt, v.s, (size_t)from);
    rt_step(rt, (size_t)n / 8); /* what is stepped over is walked too */
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
