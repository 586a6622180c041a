/* The % operator of a str. */
#include "jinja/jinja_spec.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct percent {
    struct rt *rt;
    struct jval values;
    size_t used;
    bool is_tuple, is_mapping, has_key;
    bool escapes; /* the format is Markup */
};

static struct jval take(struct percent *f)
{
    if (f->is_tuple) {
        if (f->used >= f->values.list->n)
            rt_fail(f->rt, ERR_INPUT, "not enough arguments for format string");
        return f->values.list->v[f->used++];
    }
    if (f->used++)
        rt_fail(f->rt, ERR_INPUT, "not enough arguments for format string");
    return f->values;
}

static struct jval take_key(struct percent *f, const char **p, const char *end)
{
    const char *from = ++*p;
    int depth = 1;

    if (!f->is_mapping)
        rt_fail(f->rt, ERR_INPUT, "format requires a mapping");
    for (; *p < end; ++*p) {
        depth += **p == '(' ? 1 : **p == ')' ? -1 : 0;
        if (depth == 0)
            break;
    }
    if (depth)
        rt_fail(f->rt, ERR_INPUT, "incomplete format key");
    struct jval key = jval_str(f->rt, from, (size_t)(*p - from));
    ++*p;
    f->has_key = true;
    if (f->values.type == JV_UNDEF)
        jval_undef_fail(f->rt, f->values);
    if (f->values.type != JV_DICT) /* a sequence: a str is no index */
        rt_fail(f->rt, ERR_INPUT, "indices must be integers, not str");
    struct jval *v = jdict_get(f->rt, f->values.dict, key);
    if (!v)
        rt_fail(f->rt, ERR_INPUT, "format: no key '%.*s'",
                (int)(key.s->len < 100 ? key.s->len : 100), key.s->data);
    return *v;
}

static void percent_number(struct percent *f, struct jsb *out, struct spec *s,
                           struct jval v)
{
    struct rt *rt = f->rt;
    bool is_float = strchr("eEfFgG", s->type) != NULL;
    double d;

    if (v.type == JV_UNDEF)
        jval_undef_fail(rt, v);
    if (f->escapes && v.type == JV_STR) { /* the wrapper has int and float */
        if (is_float && jstr_to_float(rt, v, &d))
            v = jval_float(d);
        else if (is_float || !jstr_to_int(rt, v, 10, &v))
            rt_fail(rt, ERR_INPUT, "format: not a number");
    }
    if (!jval_is_number(v))
        rt_fail(rt, ERR_INPUT, "%%%c format: a number is required, not %s",
                s->type, jval_typename(v));
    if (!s->align)
        s->align = s->zero ? '=' : '>';
    if (s->zero && s->align == '=')
        s->fill = '0';
    if (is_float) {
        if (s->precision > SPEC_MAX_PLACES)
            rt_fail(rt, ERR_UNSUPPORTED, "a format's precision above %d",
                    SPEC_MAX_PLACES);
        if (s->precision < 0)
            s->precision = 6;
        spec_put_float(rt, out, s, jval_number(rt, v));
        return;
    }
    if (v.type == JV_FLOAT) {
        if (strchr("xXo", s->type) && !f->escapes)
            rt_fail(rt, ERR_INPUT,
                    "%%%c format: an integer is required, not "
                    "float",
                    s->type);
        if (!isfinite(v.f))
            rt_fail(rt, ERR_INPUT, "cannot convert float to integer");
        v = jval_from_double(rt, v.f);
    }
    if (s->precision >= 0) { /* digits at least */
        struct spec digits = {.fill = '0',
                              .align = '=',
                              .width = s->precision,
                              .precision = -1,
                              .type = s->type};
        struct jsb b = {.rt = rt};
        bool is_negative = jval_order(rt, JC_LT, v, jval_int(0));

        spec_put_int(rt, &b, &digits, is_negative ? jval_negate(rt, v) : v);
        char sign[8];
        bool is_based = s->alternate && strchr("xXo", s->type);
        snprintf(sign, sizeof(sign), "%s%s%c", spec_sign(s, is_negative),
                 is_based ? "0" : "", is_based ? s->type : '\0');
        spec_lay_out(out, s, sign, b.data, b.len, '>');
        return;
    }
    spec_put_int(rt, out, s, v);
}

static void percent_one(struct percent *f, struct jsb *out, const char **p,
                        const char *end)
{
    struct rt *rt = f->rt;
    struct spec s = {.width = -1, .precision = -1};
    struct jval v = jval_missing;

    if (*p < end && **p == '(')
        v = take_key(f, p, end);
    for (; *p < end && strchr("-+ #0", **p) && **p; ++*p) {
        if (**p == '-')
            s.align = '<';
        else if (**p == '+')
            s.sign = '+';
        else if (**p == ' ')
            s.sign = s.sign ? s.sign : ' ';
        else if (**p == '#')
            s.alternate = true;
        else
            s.zero = true;
    }
    if (*p < end && **p == '*') {
        ++*p;
        s.width = jval_index(rt, take(f));
        if (s.width < 0) {
            s.align = '<';
            s.width = s.width < -SPEC_MAX_WIDTH ? SPEC_MAX_WIDTH + 1 : -s.width;
        }
        if (s.width > SPEC_MAX_WIDTH)
            rt_fail(rt, ERR_INPUT, "a format's width is too large");
    } else {
        s.width = spec_number(rt, p, end);
    }
    if (*p < end && **p == '.') {
        ++*p;
        if (*p < end && **p == '*') {
            ++*p;
            s.precision = jval_index(rt, take(f));
            s.precision = s.precision < 0 ? 0 : s.precision;
            if (s.precision > SPEC_MAX_WIDTH)
                rt_fail(rt, ERR_INPUT, "a format's precision is too large");
        } else {
            s.precision = spec_number(rt, p, end);
        }
    }
    if (*p < end && strchr("hlL", **p) && **p)
        ++*p;
    if (*p >= end)
        rt_fail(rt, ERR_INPUT, "incomplete format");
    s.type = *(*p)++;
    if (s.type == '%') {
        jsb_addch(out, '%');
        return;
    }
    if (!s.type || !strchr("sradiuoxXeEfFgGc", s.type))
        rt_fail(rt, ERR_INPUT,
                "unsupported format character in a format "
                "string");
    if (v.type == JV_MISSING)
        v = take(f);
    switch (s.type) {
    case 's':
    case 'r':
    case 'a':
        v = s.type == 's' ? jval_to_str(rt, f->escapes ? jval_escape(rt, v) : v)
            : s.type == 'r' ? jval_repr(rt, v)
                            : jval_ascii(rt, v);
        if (f->escapes && s.type != 's')
            v = jval_to_str(rt, jval_escape(rt, v));
        s.align = s.align ? s.align : '>';
        spec_put_str(rt, out, &s, v);
        return;
    case 'c':
        if (f->escapes)
            rt_fail(rt, ERR_UNSUPPORTED, "%%c in a safe string");
        if (v.type == JV_STR && jstr_chars(rt, v.s) == 1) {
            v.safe = false;
        } else {
            int64_t c = jval_is_int(v) ? jval_index(rt, v) : -1;
            struct jsb b = {.rt = rt};

            if (c < 0 || c > 0x10ffff)
                rt_fail(rt, ERR_INPUT, "%%c requires int or char");
            jsb_putcp(&b, (uint32_t)c);
            v = jsb_val(&b);
        }
        s.precision = -1;
        s.align = s.align ? s.align : '>';
        spec_put_str(rt, out, &s, v);
        return;
    case 'i':
    case 'u':
        s.type = 'd';
        /* fall through */
    default:
        percent_number(f, out, &s, v);
    }
}

struct jval jformat_percent(struct rt *rt, struct jval format, struct jval args)
{
    struct percent f = {.rt = rt, .values = args};
    struct jsb out = {.rt = rt};
    const char *p = format.s->data, *end = p + format.s->len;

    f.is_tuple = args.type == JV_TUPLE;
    /* what has an item operator; undefined's fails when it is used */
    f.is_mapping = args.type == JV_DICT || args.type == JV_LIST ||
                   args.type == JV_RANGE || args.type == JV_UNDEF;
    f.escapes = format.safe;
    while (p < end) {
        const char *at = memchr(p, '%', (size_t)(end - p));

        jsb_add(&out, p, (size_t)((at ? at : end) - p));
        if (!at)
            break;
        p = at + 1;
        percent_one(&f, &out, &p, end);
        rt_step(rt, 1);
    }
    if (f.is_tuple ? f.used < args.list->n : f.used == 0 && !f.is_mapping)
        rt_fail(rt, ERR_INPUT,
                "not all arguments converted during string formatting");
    struct jval v = jsb_val(&out);
    v.safe = format.safe;
    return v;
}
