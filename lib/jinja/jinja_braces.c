/* str.format: fields in braces. */
#include "jinja/jinja_spec.h"

#include <stdint.h>
#include <string.h>

struct braces {
    struct rt *rt;
    struct jargs *args;
    int64_t automatic; /* next index; -1 once fields are numbered by hand */
    bool by_hand, escapes;
};

static struct jval run_format(struct braces *f, const char *p, const char *end,
                              int depth);

/* The field's value: a first name or index, then .attr and [item]. */
static struct jval get_field(struct braces *f, const char *p, const char *end)
{
    struct rt *rt = f->rt;
    const char *from = p;
    struct jval v, key;

    while (p < end && *p != '.' && *p != '[')
        p++;
    key = jval_str(rt, from, (size_t)(p - from));
    bool is_index = key.s->len > 0;
    for (size_t i = 0; i < key.s->len; i++)
        is_index &= from[i] >= '0' && from[i] <= '9';
    if (key.s->len == 0) {
        if (f->by_hand)
            rt_fail(rt, ERR_INPUT,
                    "cannot switch from manual field "
                    "specification to automatic field numbering");
        key = jval_int(f->automatic++);
        is_index = true;
    } else if (is_index) {
        if (f->automatic > 0)
            rt_fail(rt, ERR_INPUT,
                    "cannot switch from automatic field "
                    "numbering to manual field specification");
        f->by_hand = true;
        if (!jstr_to_int(rt, key, 10, &key))
            rt_fail(rt, ERR_INPUT, "too many decimal digits in format string");
    }
    if (is_index) {
        if (key.type != JV_INT || (uint64_t)key.i >= f->args->n)
            rt_fail(rt, ERR_INPUT, "format: replacement index out of range");
        v = f->args->v[key.i];
    } else {
        struct jval *named =
            f->args->kw ? jdict_get(rt, f->args->kw, key) : NULL;

        if (!named)
            rt_fail(rt, ERR_INPUT, "format: no argument '%.*s'",
                    (int)(key.s->len < 100 ? key.s->len : 100), key.s->data);
        v = *named;
    }
    while (p < end) {
        bool is_attr = *p++ == '.';

        from = p;
        while (p < end && (is_attr ? *p != '.' && *p != '[' : *p != ']'))
            p++;
        key = jval_str(rt, from, (size_t)(p - from));
        if (key.s->len == 0)
            rt_fail(rt, ERR_INPUT, "empty attribute in format string");
        if (is_attr) {
            v = jinja_getattr(rt, v, key);
            continue;
        }
        if (p == end)
            rt_fail(rt, ERR_INPUT, "missing ']' in format string");
        p++;
        if (p < end && *p != '.' && *p != '[')
            rt_fail(rt, ERR_INPUT,
                    "only '.' or '[' may follow ']' in format field specifier");
        bool digits = true;
        for (size_t i = 0; i < key.s->len; i++)
            digits &= key.s->data[i] >= '0' && key.s->data[i] <= '9';
        if (digits)
            jstr_to_int(rt, key, 10, &key);
        v = jinja_getitem(rt, v, key);
    }
    return v;
}

static struct spec parse_spec(struct rt *rt, struct jval text)
{
    struct spec s = {.width = -1, .precision = -1};
    const char *p = text.s->data, *end = p + text.s->len;
    size_t next = 0;

    if (p < end) {
        uint32_t fill = juni_next(p, &next);

        if (p + next < end && p[next] && strchr("<>=^", p[next])) {
            s.fill = fill;
            s.align = p[next];
            p += next + 1;
        } else if (strchr("<>=^", *p) && *p) {
            s.align = *p++;
        }
    }
    if (p < end && *p && strchr("+- ", *p))
        s.sign = *p++;
    if (p < end && *p == 'z')
        rt_fail(rt, ERR_UNSUPPORTED, "'z' in a format");
    if (p < end && *p == '#') {
        s.alternate = true;
        p++;
    }
    if (p < end && *p == '0') {
        s.zero = true;
        p++;
    }
    if (p < end && *p >= '0' && *p <= '9')
        s.width = spec_number(rt, &p, end);
    if (p < end && (*p == ',' || *p == '_'))
        s.group = *p++;
    if (p < end && *p == '.') {
        p++;
        if (p >= end || *p < '0' || *p > '9')
            rt_fail(rt, ERR_INPUT, "format specifier missing precision");
        s.precision = spec_number(rt, &p, end);
    }
    if (p < end)
        s.type = *p++;
    if (p < end)
        rt_fail(rt, ERR_INPUT, "invalid format specifier");
    return s;
}

static void format_value(struct braces *f, struct jsb *out, struct jval v,
                         struct jval text)
{
    struct rt *rt = f->rt;
    struct jsb b = {.rt = rt};

    if (text.s->len == 0) {
        v = jval_to_str(rt, v);
        jsb_add(out, v.s->data, v.s->len);
        return;
    }
    struct spec s = parse_spec(rt, text);
    if (v.type == JV_STR) {
        if ((s.type && s.type != 's') || s.sign || s.alternate || s.group ||
            s.align == '=')
            rt_fail(rt, ERR_INPUT, "a format that a str does not take");
        if (s.zero) {
            s.fill = s.fill ? s.fill : '0';
            s.align = s.align ? s.align : '<';
        }
        spec_put_str(rt, &b, &s, v);
    } else if (jval_is_number(v)) {
        if (s.zero && !s.align) {
            s.fill = s.fill ? s.fill : '0';
            s.align = '=';
        } else if (s.zero && !s.fill) {
            s.fill = '0';
        }
        if (s.type && !strchr("dbcoxXneEfFgG%", s.type))
            rt_fail(rt, ERR_INPUT, "unknown format code '%c'", s.type);
        if (s.type == 'c')
            rt_fail(rt, ERR_UNSUPPORTED, "format code 'c'");
        if (s.type == 'n' && s.group)
            rt_fail(rt, ERR_INPUT, "cannot specify '%c' with 'n'", s.group);
        if (s.type == 'n') /* in the C locale */
            s.type = v.type == JV_FLOAT ? 'g' : 'd';
        if (v.type != JV_FLOAT && (!s.type || strchr("dboxX", s.type))) {
            if (v.type == JV_BOOL && !s.type && s.width < 0 && !s.sign)
                v = jval_int(v.b);
            if (s.precision >= 0)
                rt_fail(rt, ERR_INPUT,
                        "precision not allowed in integer format specifier");
            if (s.group == ',' && s.type && s.type != 'd')
                rt_fail(rt, ERR_INPUT, "cannot specify ',' with this format");
            spec_put_int(rt, &b, &s, v);
        } else {
            if (s.type && strchr("dboxX", s.type))
                rt_fail(rt, ERR_INPUT, "unknown format code '%c' for float",
                        s.type);
            if (s.precision > SPEC_MAX_PLACES)
                rt_fail(rt, ERR_UNSUPPORTED, "a format's precision above %d",
                        SPEC_MAX_PLACES);
            spec_put_float(rt, &b, &s, jval_number(rt, v));
        }
    } else {
        rt_fail(rt, ERR_INPUT, "unsupported format string for %s",
                jval_typename(v));
    }
    jsb_add(out, b.data, b.len);
}

static void replace_field(struct braces *f, struct jsb *out, const char *p,
                          const char *end, int depth)
{
    struct rt *rt = f->rt;
    const char *name_end = p, *spec;
    char conversion = 0;
    int brackets = 0;

    while (name_end < end &&
           (brackets || (*name_end != '!' && *name_end != ':'))) {
        brackets += *name_end == '[' ? 1 : *name_end == ']' ? -1 : 0;
        name_end++;
    }
    spec = name_end;
    if (spec < end && *spec == '!') {
        if (spec + 1 >= end)
            rt_fail(rt, ERR_INPUT,
                    "end of string while looking for conversion "
                    "specifier");
        conversion = spec[1];
        spec += 2;
        if (spec < end && *spec != ':')
            rt_fail(rt, ERR_INPUT, "expected ':' after conversion specifier");
    }
    struct jval v = get_field(f, p, name_end);
    if (conversion && !strchr("sra", conversion))
        rt_fail(rt, ERR_INPUT, "unknown conversion specifier");
    if (conversion)
        v = conversion == 's'   ? jval_to_str(rt, v)
            : conversion == 'r' ? jval_repr(rt, v)
                                : jval_ascii(rt, v);
    struct jval text = jval_cstr(rt, "");
    if (spec < end)
        text = run_format(f, spec + 1, end, depth + 1);
    if (f->escapes) {
        struct jsb b = {.rt = rt};

        if (v.type == JV_STR && v.safe && text.s->len)
            rt_fail(rt, ERR_INPUT,
                    "unsupported format specification for "
                    "Markup");
        bool is_safe = v.type == JV_STR && v.safe;
        format_value(f, &b, v, text);
        v = jsb_val(&b);
        v.safe = is_safe;
        v = jval_escape(rt, v);
        jsb_add(out, v.s->data, v.s->len);
        return;
    }
    format_value(f, out, v, text);
}

static struct jval run_format(struct braces *f, const char *p, const char *end,
                              int depth)
{
    struct rt *rt = f->rt;
    struct jsb out = {.rt = rt};

    if (depth > 2)
        rt_fail(rt, ERR_INPUT, "max string recursion exceeded");
    while (p < end) {
        char c = *p;

        rt_step(rt, 1);
        if (c != '{' && c != '}') {
            jsb_addch(&out, c);
            p++;
            continue;
        }
        if (p + 1 < end && p[1] == c) {
            jsb_addch(&out, c);
            p += 2;
            continue;
        }
        if (c == '}')
            rt_fail(rt, ERR_INPUT, "single '}' encountered in format string");
        const char *from = ++p;
        int open = 1;
        for (; p < end; p++) {
            open += *p == '{' ? 1 : *p == '}' ? -1 : 0;
            if (open == 0)
                break;
        }
        if (open)
            rt_fail(rt, ERR_INPUT, "expected '}' before end of string");
        replace_field(f, &out, from, p, depth);
        p++;
    }
    return jsb_val(&out);
}

struct jval jformat_method(struct rt *rt, struct jval format,
                           struct jargs *args)
{
    struct braces f = {.rt = rt, .args = args, .escapes = format.safe};
    struct jval v =
        run_format(&f, format.s->data, format.s->data + format.s->len, 1);

    v.safe = format.safe;
    return v;
}
