/* Values laid out in a width, with signs, zeros and separators. */
#include "jinja/jinja_spec.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void spec_lay_out(struct jsb *out, const struct spec *s, const char *sign,
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

const char *spec_sign(const struct spec *s, bool is_negative)
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

void spec_put_int(struct rt *rt, struct jsb *out, const struct spec *s,
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
    snprintf(sign, sizeof(sign), "%s%s%c", spec_sign(s, is_negative),
             s->alternate && base != 10 ? "0" : "",
             s->alternate && base != 10 ? s->type : '\0');
    struct spec inner = *s;
    inner.width -= (int64_t)strlen(sign);
    struct jval digits = grouped(rt, &inner, b.data, b.len, base == 10 ? 3 : 4);
    spec_lay_out(out, s, sign, digits.s->data, digits.s->len, '>');
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

static char *print_double(struct rt *rt, char type, bool alternate, int places,
                          double f)
{
    switch (type) { /* a literal each: the compiler checks them */
    case 'e':
        return rt_printf(rt, "%.*e", places, f);
    case 'E':
        return rt_printf(rt, "%.*E", places, f);
    case 'f':
    case 'F':
        return rt_printf(rt, "%.*f", places, f);
    case 'G':
        return alternate ? rt_printf(rt, "%#.*G", places, f)
                         : rt_printf(rt, "%.*G", places, f);
    default:
        return alternate ? rt_printf(rt, "%#.*g", places, f)
                         : rt_printf(rt, "%.*g", places, f);
    }
}

/* A precision without a type: like g, but a digit stands behind the point, and
 * what g prints as an int in all its digits has an exponent. */
static struct jsb untyped_body(struct rt *rt, bool alternate, int places,
                               double f)
{
    char *text = print_double(rt, 'g', alternate, places, f);
    char *scientific = print_double(rt, 'e', false, places - 1, f);
    char *exponent = strchr(scientific, 'e'), *end = exponent;
    struct jsb b = {.rt = rt};

    if (atoi(exponent + 1) != places - 1) {
        jsb_addstr(&b, text);
        if (!strchr(text, 'e') && !strchr(text, '.'))
            jsb_addstr(&b, ".0");
        return b;
    }
    bool has_point = memchr(scientific, '.', (size_t)(end - scientific));
    while (!alternate && has_point && end[-1] == '0')
        end--;
    end -= has_point && end[-1] == '.';
    jsb_add(&b, scientific, (size_t)(end - scientific));
    jsb_addstr(&b, exponent);
    return b;
}

/* The body of a finite float's magnitude. */
static struct jval float_body(struct rt *rt, const struct spec *s, double f)
{
    int places = s->precision < 0 ? 6 : (int)s->precision;
    char small[64], type = s->type == '%' ? 'f' : s->type;
    struct jsb b = {.rt = rt};

    if (strchr("gG", type) && places == 0) /* a type of 0 too */
        places = 1;
    if (s->type == 0 && s->precision < 0) {
        jfloat_repr(f, small);
        jsb_addstr(&b, small);
    } else if (s->type == 0) {
        b = untyped_body(rt, s->alternate, places, f);
    } else {
        jsb_addstr(&b, print_double(rt, type, s->alternate, places,
                                    s->type == '%' ? f * 100 : f));
    }
    if (s->alternate && !(s->type && strchr("gG", s->type)))
        b = with_point(rt, &b);
    if (s->type == '%')
        jsb_addch(&b, '%');
    return jsb_val(&b);
}

void spec_put_float(struct rt *rt, struct jsb *out, const struct spec *s,
                    double f)
{
    bool is_negative = signbit(f) && !isnan(f);
    const char *sign = spec_sign(s, is_negative);
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
    spec_lay_out(out, s, sign, body.s->data, body.s->len, '>');
}

void spec_put_str(struct rt *rt, struct jsb *out, const struct spec *s,
                  struct jval v)
{
    if (s->precision >= 0)
        v = jval_slice(rt, v, jval_missing, jval_int(s->precision),
                       jval_missing);
    spec_lay_out(out, s, "", v.s->data, v.s->len, '<');
}

struct jval jval_ascii(struct rt *rt, struct jval v)
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

int64_t spec_number(struct rt *rt, const char **p, const char *end)
{
    int64_t n = 0;

    while (*p < end && **p >= '0' && **p <= '9') {
        n = n * 10 + (*(*p)++ - '0');
        if (n > SPEC_MAX_WIDTH)
            rt_fail(rt, ERR_INPUT,
                    "a format's width or precision is too large");
    }
    return n;
}
