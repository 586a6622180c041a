/* Python's formatting: %, str.format, strftime. */
#include "jinja/jinja_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_WIDTH = 1 << 20, MAX_PLACES = 1000 };

/* How one value is laid out, from either syntax. */
struct spec {
    uint32_t fill; /* 0: not given */
    char align;    /* < > = ^, 0: not given */
    char sign;     /* + - space, 0 */
    bool alternate, zero;
    char group;               /* , or _ */
    int64_t width, precision; /* -1: not given */
    char type;                /* 0: not given */
};

static void lay_out(struct jsb *out, const struct spec *s, const char *sign,
                    const char *body, size_t len, char align)
{
    size_t have = strlen(sign) + juni_count(body, len), more;
    uint32_t fill = s->fill ? s->fill : ' ';

    if (s->align)
        align = s->align;
    more =
        s->width > 0 && (size_t)s->width > have ? (size_t)s->width - have : 0;
    size_t left = align == '>' ? more : align == '^' ? more / 2 : 0;
    if (align == '=') {
        jsb_addstr(out, sign);
        jsb_fill(out, fill, more);
        jsb_add(out, body, len);
        return;
    }
    jsb_fill(out, fill, left);
    jsb_addstr(out, sign);
    jsb_add(out, body, len);
    jsb_fill(out, fill, more - left);
}

static const char *sign_of(const struct spec *s, bool is_negative)
{
    return is_negative ? "-" : s->sign == '+' ? "+" : s->sign == ' ' ? " " : "";
}

/* Digits with separators between groups; `rest` is what follows them. */
static struct jval grouped(struct rt *rt, const struct spec *s,
                           const char *digits, size_t n, size_t each)
{
    struct jsb b = {.rt = rt};
    size_t whole = 0, pad = 0;

    while (whole < n && !(each == 3 && strchr(".eE%", digits[whole])))
        whole++; /* of a float; among 16 digits an e is one of them */
    if (!s->group) {
        jsb_add(&b, digits, n);
        return jsb_val(&b);
    }
    if (s->fill == '0' && s->align == '=') {
        /* zeros in front take separators too, to at least the width */
        while (s->width > 0 &&
               whole + pad + (whole + pad - 1) / each + (n - whole) <
                   (size_t)s->width)
            pad++;
    }
    for (size_t i = 0; i < whole + pad; i++) {
        size_t left = whole + pad - i;

        if (i && left % each == 0)
            jsb_addch(&b, s->group);
        jsb_addch(&b, i < pad ? '0' : digits[i - pad]);
    }
    jsb_add(&b, digits + whole, n - whole);
    return jsb_val(&b);
}

static void format_int(struct rt *rt, struct jsb *out, struct spec *s,
                       struct jval v)
{
    int base = s->type == 'x' || s->type == 'X' ? 16
               : s->type == 'o'                 ? 8
               : s->type == 'b'                 ? 2
                                                : 10;
    struct jsb b = {.rt = rt};
    char sign[8];

    if (v.type == JV_BOOL)
        v = jval_int(v.b);
    bool is_negative = jval_order(rt, JC_LT, v, jval_int(0));
    if (is_negative)
        v = jval_negate(rt, v);
    jbig_print(rt, &b, v, base);
    for (size_t i = 0; s->type == 'X' && i < b.len; i++)
        if (b.data[i] >= 'a')
            b.data[i] = (char)(b.data[i] - 0x20);
    snprintf(sign, sizeof(sign), "%s%s%c", sign_of(s, is_negative),
             s->alternate && base != 10 ? "0" : "",
             s->alternate && base != 10 ? s->type : '\0');
    struct spec inner = *s;
    inner.width -= (int64_t)strlen(sign);
    struct jval digits = grouped(rt, &inner, b.data, b.len, base == 10 ? 3 : 4);
    lay_out(out, s, sign, digits.s->data, digits.s->len, '>');
}

/* What '#' asks for: a point, before the exponent if there is one. */
static struct jsb with_point(struct rt *rt, const struct jsb *b)
{
    struct jsb more = {.rt = rt};
    size_t at = 0;

    if (memchr(b->data, '.', b->len))
        return *b;
    while (at < b->len && b->data[at] != 'e' && b->data[at] != 'E')
        at++;
    jsb_add(&more, b->data, at);
    jsb_addch(&more, '.');
    jsb_add(&more, b->data + at, b->len - at);
    return more;
}

/* The body of a finite float's magnitude. */
static struct jval float_body(struct rt *rt, const struct spec *s, double f)
{
    char small[64];
    int places = s->precision < 0 ? 6 : (int)s->precision;
    struct jsb b = {.rt = rt};
    char form[8] = "%.*e";

    if (s->type == 0 && s->precision < 0) {
        jfloat_repr(f, small);
        jsb_addstr(&b, small);
        if (s->alternate)
            b = with_point(rt, &b);
        return jsb_val(&b);
    }
    char type = s->type == 0 || s->type == 'n' ? 'g'
                : s->type == '%'               ? 'f'
                                               : s->type;
    if (s->type == '%')
        f *= 100;
    if ((type == 'g' || type == 'G') && places == 0)
        places = 1;
    snprintf(form, sizeof(form), "%%%s.*%c", s->alternate ? "#" : "", type);
    char *text;
    int n = -1;
    switch (type) { /* a literal each: the compiler checks them */
    case 'e':
        n = snprintf(NULL, 0, "%.*e", places, f);
        break;
    case 'E':
        n = snprintf(NULL, 0, "%.*E", places, f);
        break;
    case 'f':
    case 'F':
        n = snprintf(NULL, 0, "%.*f", places, f);
        break;
    default:
        n = snprintf(NULL, 0, "%#.*g", places, f);
    }
    text = rt_alloc(rt, (size_t)n + 2);
    switch (type) {
    case 'e':
        snprintf(text, (size_t)n + 1, "%.*e", places, f);
        break;
    case 'E':
        snprintf(text, (size_t)n + 1, "%.*E", places, f);
        break;
    case 'f':
    case 'F':
        snprintf(text, (size_t)n + 1, "%.*f", places, f);
        break;
    case 'G':
        snprintf(text, (size_t)n + 1, s->alternate ? "%#.*G" : "%.*G", places,
                 f);
        break;
    default:
        snprintf(text, (size_t)n + 1, s->alternate ? "%#.*g" : "%.*g", places,
                 f);
    }
    jsb_addstr(&b, text);
    if (s->type == 0) { /* like g, but a digit stands behind the point */
        n = snprintf(NULL, 0, "%.*e", places - 1, f);
        char *other = rt_alloc(rt, (size_t)n + 1);
        snprintf(other, (size_t)n + 1, "%.*e", places - 1, f);
        char *exponent = strchr(other, 'e'), *end = exponent;
        int power = atoi(exponent + 1);

        if (power == places - 1) { /* g would print all digits as an int */
            bool has_point = memchr(other, '.', (size_t)(end - other)) != NULL;

            while (!s->alternate && has_point && end[-1] == '0')
                end--;
            end -= has_point && end[-1] == '.';
            b.len = 0;
            jsb_add(&b, other, (size_t)(end - other));
            jsb_addstr(&b, exponent);
        } else if (!strchr(text, 'e') && !strchr(text, '.')) {
            jsb_addstr(&b, ".0");
        }
    }
    if (s->alternate && (s->type == 0 || (type != 'g' && type != 'G')))
        b = with_point(rt, &b);
    if (s->type == '%')
        jsb_addch(&b, '%');
    return jsb_val(&b);
}

static void format_float(struct rt *rt, struct jsb *out, struct spec *s,
                         double f)
{
    bool is_negative = signbit(f) && !isnan(f);
    const char *sign = sign_of(s, is_negative);
    struct jval body;

    if (isfinite(f)) {
        body = float_body(rt, s, fabs(f));
    } else {
        bool is_upper = s->type == 'E' || s->type == 'F' || s->type == 'G';

        body = jval_cstr(rt, isnan(f)   ? is_upper ? "NAN" : "nan"
                             : is_upper ? "INF"
                                        : "inf");
        if (s->type == '%')
            body = jval_add(rt, body, jval_cstr(rt, "%"));
    }
    struct spec inner = *s;
    inner.width -= (int64_t)strlen(sign);
    if (isfinite(f))
        body = grouped(rt, &inner, body.s->data, body.s->len, 3);
    lay_out(out, s, sign, body.s->data, body.s->len, '>');
}

static void format_str(struct rt *rt, struct jsb *out, const struct spec *s,
                       struct jval v)
{
    if (s->precision >= 0)
        v = jval_slice(rt, v, jval_missing, jval_int(s->precision),
                       jval_missing);
    lay_out(out, s, "", v.s->data, v.s->len, '<');
}

static struct jval ascii_repr(struct rt *rt, struct jval v)
{
    struct jsb b = {.rt = rt};

    v = jval_repr(rt, v);
    for (size_t i = 0; i < v.s->len;) {
        uint32_t c = juni_next(v.s->data, &i);

        if (c < 0x80)
            jsb_addch(&b, (char)c);
        else
            jsb_addstr(&b, rt_printf(rt,
                                     c < 0x100     ? "\\x%02x"
                                     : c < 0x10000 ? "\\u%04x"
                                                   : "\\U%08x",
                                     c));
    }
    return jsb_val(&b);
}

static int64_t read_number(struct rt *rt, const char **p, const char *end)
{
    int64_t n = 0;

    while (*p < end && **p >= '0' && **p <= '9') {
        n = n * 10 + (*(*p)++ - '0');
        if (n > MAX_WIDTH)
            rt_fail(rt, ERR_INPUT,
                    "a format's width or precision is too large");
    }
    return n;
}

/* --- the % operator --- */

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
        if (s->precision > MAX_PLACES)
            rt_fail(rt, ERR_UNSUPPORTED, "a format's precision above %d",
                    MAX_PLACES);
        if (s->precision < 0)
            s->precision = 6;
        format_float(rt, out, s, jval_number(rt, v));
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

        format_int(rt, &b, &digits, is_negative ? jval_negate(rt, v) : v);
        char sign[8];
        bool is_based = s->alternate && strchr("xXo", s->type);
        snprintf(sign, sizeof(sign), "%s%s%c", sign_of(s, is_negative),
                 is_based ? "0" : "", is_based ? s->type : '\0');
        lay_out(out, s, sign, b.data, b.len, '>');
        return;
    }
    format_int(rt, out, s, v);
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
            s.width = s.width < -MAX_WIDTH ? MAX_WIDTH + 1 : -s.width;
        }
        if (s.width > MAX_WIDTH)
            rt_fail(rt, ERR_INPUT, "a format's width is too large");
    } else {
        s.width = read_number(rt, p, end);
    }
    if (*p < end && **p == '.') {
        ++*p;
        if (*p < end && **p == '*') {
            ++*p;
            s.precision = jval_index(rt, take(f));
            s.precision = s.precision < 0 ? 0 : s.precision;
            if (s.precision > MAX_WIDTH)
                rt_fail(rt, ERR_INPUT, "a format's precision is too large");
        } else {
            s.precision = read_number(rt, p, end);
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
                            : ascii_repr(rt, v);
        if (f->escapes && s.type != 's')
            v = jval_to_str(rt, jval_escape(rt, v));
        s.align = s.align ? s.align : '>';
        format_str(rt, out, &s, v);
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
        format_str(rt, out, &s, v);
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

/* --- str.format --- */

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
        s.width = read_number(rt, &p, end);
    if (p < end && (*p == ',' || *p == '_'))
        s.group = *p++;
    if (p < end && *p == '.') {
        p++;
        if (p >= end || *p < '0' || *p > '9')
            rt_fail(rt, ERR_INPUT, "format specifier missing precision");
        s.precision = read_number(rt, &p, end);
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
        format_str(rt, &b, &s, v);
    } else if (jval_is_number(v)) {
        if (s.zero && !s.align) {
            s.fill = s.fill ? s.fill : '0';
            s.align = '=';
        } else if (s.zero && !s.fill) {
            s.fill = '0';
        }
        if (s.type && !strchr("dbcoxXneEfFgG%", s.type))
            rt_fail(rt, ERR_INPUT, "unknown format code '%c'", s.type);
        if (s.type == 'c' || s.type == 'n')
            rt_fail(rt, ERR_UNSUPPORTED, "format code '%c'", s.type);
        if (v.type != JV_FLOAT && (!s.type || strchr("dboxX", s.type))) {
            if (v.type == JV_BOOL && !s.type && s.width < 0 && !s.sign)
                v = jval_int(v.b);
            if (s.precision >= 0)
                rt_fail(rt, ERR_INPUT,
                        "precision not allowed in integer format specifier");
            if (s.group == ',' && s.type && s.type != 'd')
                rt_fail(rt, ERR_INPUT, "cannot specify ',' with this format");
            format_int(rt, &b, &s, v);
        } else {
            if (s.type && strchr("dboxX", s.type))
                rt_fail(rt, ERR_INPUT, "unknown format code '%c' for float",
                        s.type);
            if (s.precision > MAX_PLACES)
                rt_fail(rt, ERR_UNSUPPORTED, "a format's precision above %d",
                        MAX_PLACES);
            format_float(rt, &b, &s, jval_number(rt, v));
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
                                : ascii_repr(rt, v);
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

/* --- strftime_now --- */

struct jval jformat_time(struct rt *rt, struct jval format)
{
    const struct jinja_template *t = rt->t;
    struct jsb b = {.rt = rt};
    char text[128];

    if (!t->has_now)
        rt_fail(rt, ERR_INPUT,
                "the template asks for the time, and no clock "
                "is given: set 'now'");
    if (format.type != JV_STR)
        rt_fail(rt, ERR_INPUT, "strftime_now: format must be str, not %s",
                jval_typename(format));
    if (memchr(format.s->data, '\0', format.s->len))
        rt_fail(rt, ERR_INPUT, "strftime_now: embedded null character");
    struct tm tm = {.tm_year = (int)t->now[0] - 1900,
                    .tm_mon = (int)t->now[1] - 1,
                    .tm_mday = (int)t->now[2],
                    .tm_hour = (int)t->now[3],
                    .tm_min = (int)t->now[4],
                    .tm_sec = (int)t->now[5]};
    struct tm day = tm;
    (void)timegm(&day); /* fills the days of the week and of the year */
    tm.tm_wday = day.tm_wday;
    tm.tm_yday = day.tm_yday;
    tm.tm_isdst = -1;
    for (size_t i = 0; i < format.s->len;) {
        size_t from = i;
        char one[16];

        rt_step(rt, 1);
        if (format.s->data[i++] != '%') {
            jsb_addch(&b, format.s->data[from]);
            continue;
        }
        while (i < format.s->len && strchr("-_0^#", format.s->data[i]))
            i++;
        const char *width = format.s->data + i;
        if (read_number(rt, &width, format.s->data + format.s->len) > 99)
            rt_fail(rt, ERR_UNSUPPORTED, "strftime_now: a width above 99");
        i = (size_t)(width - format.s->data);
        while (i < format.s->len && strchr("EO", format.s->data[i]))
            i++;
        if (i < format.s->len)
            juni_next(format.s->data, &i);
        size_t n = i - from;
        char kind = format.s->data[i - 1];
        if (n == 2 && (kind == 'z' || kind == 'Z'))
            continue; /* a time without a zone */
        if (n == 2 && kind == 'f') {
            jsb_addstr(&b, "000000");
            continue;
        }
        if (kind == 's' || kind == 'z' || kind == 'Z')
            rt_fail(rt, ERR_UNSUPPORTED, "strftime_now: '%.*s'", (int)n,
                    format.s->data + from);
        if (n >= sizeof(one) || n < 2 || (unsigned char)kind >= 0x80) {
            jsb_add(&b, format.s->data + from, n);
            continue;
        }
        memcpy(one, format.s->data + from, n);
        one[n] = '\0';
        /* each conversion alone: its text has a bound */
        size_t len = strftime(text, sizeof(text), one, &tm);
        jsb_add(&b, text, len);
    }
    return jsb_val(&b);
}
