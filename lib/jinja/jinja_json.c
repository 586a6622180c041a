/* JSON as Python's json module has it: tojson, and contexts from text. */
#include "jinja/jinja_internal.h"

#include "base/hex.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- writing --- */

struct dump {
    struct rt *rt;
    struct jsb *out;
    bool is_ascii, is_sorted, is_indented;
    struct jval indent, item, key; /* texts */
};

static void dump_str(struct dump *d, struct jval v)
{
    const char *data = v.s->data;

    rt_step(d->rt, v.s->len / 16);
    jsb_addch(d->out, '"');
    for (size_t i = 0; i < v.s->len;) {
        size_t from = i;
        uint32_t c = juni_next(data, &i);
        const char *simple = c == '"'    ? "\\\""
                             : c == '\\' ? "\\\\"
                             : c == '\n' ? "\\n"
                             : c == '\r' ? "\\r"
                             : c == '\t' ? "\\t"
                             : c == '\f' ? "\\f"
                             : c == '\b' ? "\\b"
                                         : NULL;
        char text[16];

        if (simple) {
            jsb_addstr(d->out, simple);
        } else if (c < 0x20 || (d->is_ascii && c > 0x7e)) {
            if (c >= 0x10000)
                snprintf(text, sizeof(text), "\\u%04x\\u%04x",
                         0xd800 + ((c - 0x10000) >> 10),
                         0xdc00 + ((c - 0x10000) & 0x3ff));
            else
                snprintf(text, sizeof(text), "\\u%04x", c);
            jsb_addstr(d->out, text);
        } else {
            jsb_add(d->out, data + from, i - from);
        }
    }
    jsb_addch(d->out, '"');
}

static void dump_float(struct dump *d, double f)
{
    char text[64];

    jfloat_repr(f, text);
    jsb_addstr(d->out, isnan(f)   ? "NaN"
                       : isinf(f) ? f > 0 ? "Infinity" : "-Infinity"
                                  : text);
}

static void newline(struct dump *d, unsigned level)
{
    jsb_addch(d->out, '\n');
    for (unsigned i = 0; i < level; i++)
        jsb_add(d->out, d->indent.s->data, d->indent.s->len);
}

static void dump(struct dump *d, struct jval v, unsigned level);

static void dump_key(struct dump *d, struct jval key)
{
    switch (key.type) {
    case JV_STR:
        dump_str(d, key);
        return;
    case JV_NONE:
    case JV_BOOL:
    case JV_INT:
    case JV_BIG:
    case JV_FLOAT:
        jsb_addch(d->out, '"');
        dump(d, key, 0);
        jsb_addch(d->out, '"');
        return;
    default:
        rt_fail(d->rt, ERR_INPUT,
                "keys must be str, int, float, bool or None, not %s",
                jval_typename(key));
    }
}

/* The items in the order of their keys. */
static struct jdict *sorted(struct rt *rt, struct jdict *dict)
{
    struct jval keys = jval_list(rt, JV_LIST, dict->n), args = jval_missing;
    struct jdict *out = rt_alloc(rt, sizeof(*out));
    struct jargs sort = {&args, 0, rt_alloc(rt, sizeof(struct jdict))};

    for (size_t i = 0; i < dict->n; i++)
        jlist_add(rt, keys.list, dict->v[i].key);
    jdict_put(rt, sort.kw, jval_cstr(rt, "case_sensitive"), jval_true);
    keys = jfilter_call(rt, jfilter_find("sort", 4), keys, &sort);
    for (size_t i = 0; i < keys.list->n; i++)
        jdict_put(rt, out, keys.list->v[i],
                  *jdict_get(rt, dict, keys.list->v[i]));
    return out;
}

static void dump_items(struct dump *d, struct jval v, unsigned level)
{
    bool is_dict = v.type == JV_DICT;
    struct jdict *dict = is_dict ? v.dict : NULL;
    size_t n = is_dict ? v.dict->n : v.list->n;

    if (n == 0) {
        jsb_addstr(d->out, is_dict ? "{}" : "[]");
        return;
    }
    if (is_dict && d->is_sorted)
        dict = sorted(d->rt, dict);
    jsb_addch(d->out, is_dict ? '{' : '[');
    for (size_t i = 0; i < n; i++) {
        if (i)
            jsb_add(d->out, d->item.s->data, d->item.s->len);
        if (d->is_indented)
            newline(d, level + 1);
        if (is_dict) {
            dump_key(d, dict->v[i].key);
            jsb_add(d->out, d->key.s->data, d->key.s->len);
        }
        dump(d, is_dict ? dict->v[i].value : v.list->v[i], level + 1);
    }
    if (d->is_indented)
        newline(d, level);
    jsb_addch(d->out, is_dict ? '}' : ']');
}

static void dump(struct dump *d, struct jval v, unsigned level)
{
    rt_step(d->rt, 1);
    switch (v.type) {
    case JV_NONE:
        jsb_addstr(d->out, "null");
        return;
    case JV_BOOL:
        jsb_addstr(d->out, v.b ? "true" : "false");
        return;
    case JV_INT:
    case JV_BIG:
        jval_print_repr(d->rt, d->out, v);
        return;
    case JV_FLOAT:
        dump_float(d, v.f);
        return;
    case JV_STR:
        dump_str(d, v);
        return;
    case JV_LIST:
    case JV_TUPLE:
    case JV_DICT:
        rt_enter(d->rt);
        dump_items(d, v, level);
        rt_leave(d->rt);
        return;
    default:
        rt_fail(d->rt, ERR_INPUT, "object of type %s is not JSON serializable",
                jval_typename(v));
    }
}

struct jval jjson_dump(struct rt *rt, struct jargs *args, struct jval v)
{
    struct jval a[4];
    struct jsb out = {.rt = rt};
    struct dump d = {.rt = rt, .out = &out};

    jargs_bind(rt, args, "tojson", "ensure_ascii,indent,separators,sort_keys",
               0, false, a);
    d.is_ascii = a[0].type != JV_MISSING && jval_truth(rt, a[0]);
    d.is_sorted = a[3].type != JV_MISSING && jval_truth(rt, a[3]);
    d.is_indented = a[1].type != JV_MISSING && a[1].type != JV_NONE;
    if (d.is_indented)
        d.indent = a[1].type == JV_STR
                       ? a[1]
                       : jval_arith(rt, JN_MUL, jval_cstr(rt, " "), a[1]);
    d.item = jval_cstr(rt, d.is_indented ? "," : ", ");
    d.key = jval_cstr(rt, ": ");
    if (a[2].type != JV_MISSING && a[2].type != JV_NONE) {
        struct jval two = jval_to_list(rt, a[2]);

        if (two.list->n != 2 || two.list->v[0].type != JV_STR ||
            two.list->v[1].type != JV_STR)
            rt_fail(rt, ERR_INPUT, "tojson: separators must be two strings");
        d.item = two.list->v[0];
        d.key = two.list->v[1];
    }
    if (d.is_indented && d.indent.type != JV_STR)
        rt_fail(rt, ERR_INPUT, "tojson: indent must be an int or a str");
    dump(&d, v, 0);
    return jsb_val(&out);
}

/* --- reading --- */

struct reader {
    struct rt *rt;
    const char *p, *begin, *end;
    unsigned depth;
};

__attribute__((noreturn)) static void bad(struct reader *r, const char *what)
{
    const char *start = r->begin;
    size_t line = 1;

    for (const char *p = r->begin; p < r->p; p++)
        if (*p == '\n') {
            line++;
            start = p + 1;
        }
    rt_fail(r->rt, ERR_INPUT, "line %zu, column %zu: %s", line,
            juni_count(start, (size_t)(r->p - start)) + 1, what);
}

static void skip_space(struct reader *r)
{
    while (r->p < r->end &&
           (*r->p == ' ' || *r->p == '\n' || *r->p == '\r' || *r->p == '\t'))
        r->p++;
}

static uint32_t read_hex(struct reader *r)
{
    uint32_t c = 0;

    for (int i = 0; i < 4; i++, r->p++) {
        int digit = r->p < r->end ? hex_digit(*r->p) : -1;

        if (digit < 0)
            bad(r, "a \\u escape is malformed");
        c = c << 4 | (uint32_t)digit;
    }
    return c;
}

static struct jval read_str(struct reader *r)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    struct jsb b = {.rt = r->rt};

    r->p++;
    for (;;) {
        const char *from = r->p;

        while (r->p < r->end && *r->p != '"' && *r->p != '\\' &&
               (unsigned char)*r->p >= 0x20)
            r->p++;
        jsb_add(&b, from, (size_t)(r->p - from));
        if (r->p >= r->end || (unsigned char)*r->p < 0x20)
            bad(r, "a string has no end");
        if (*r->p++ == '"')
            return jsb_val(&b);
        char c = r->p < r->end ? *r->p++ : 0;
        const char *simple = c ? strchr(names, c) : NULL;
        if (simple) {
            jsb_addch(&b, values[simple - names]);
        } else if (c == 'u') {
            uint32_t u = read_hex(r);

            if (u >= 0xd800 && u < 0xdc00 && r->end - r->p >= 6 &&
                r->p[0] == '\\' && r->p[1] == 'u') {
                const char *again = r->p;

                r->p += 2;
                uint32_t low = read_hex(r);
                if (low >= 0xdc00 && low < 0xe000)
                    u = 0x10000 + ((u - 0xd800) << 10) + (low - 0xdc00);
                else
                    r->p = again;
            }
            jsb_putcp(&b, u);
        } else {
            bad(r, "an escape is unknown");
        }
    }
}

static size_t count_digits(const struct reader *r, const char *p)
{
    size_t n = 0;

    while (p + n < r->end && p[n] >= '0' && p[n] <= '9')
        n++;
    return n;
}

static struct jval read_number(struct reader *r)
{
    const char *from = r->p, *p = from + (*from == '-');
    size_t n = count_digits(r, p), k;
    bool is_float = false;

    if (n == 0 || (n > 1 && *p == '0'))
        bad(r, "a number is malformed");
    const char *digits = p;
    p += n;
    if (p < r->end && *p == '.' && (k = count_digits(r, p + 1)) > 0) {
        is_float = true;
        p += 1 + k;
    }
    if (p < r->end && (*p | 0x20) == 'e') {
        const char *e =
            p + 1 + (p + 1 < r->end && (p[1] == '+' || p[1] == '-'));

        k = count_digits(r, e);
        if (k > 0) {
            is_float = true;
            p = e + k;
        }
    }
    r->p = p;
    if (is_float)
        return jval_float(
            strtod(rt_printf(r->rt, "%.*s", (int)(p - from), from), NULL));
    if (n > 4300)
        bad(r, "an integer of more than 4300 digits");
    struct jval v = jbig_parse(r->rt, digits, n, 10);
    return *from == '-' ? jval_negate(r->rt, v) : v;
}

static bool take_word(struct reader *r, const char *word)
{
    size_t n = strlen(word);

    if ((size_t)(r->end - r->p) < n || memcmp(r->p, word, n) != 0)
        return false;
    r->p += n;
    return true;
}

static struct jval read_value(struct reader *r)
{
    struct jval v, key;

    skip_space(r);
    if (r->p >= r->end)
        bad(r, "the text ends too early");
    rt_step(r->rt, 1);
    switch (*r->p) {
    case '"':
        return read_str(r);
    case '[':
    case '{': {
        bool is_dict = *r->p++ == '{';
        char close = is_dict ? '}' : ']';

        if (++r->depth > JINJA_MAX_NESTING)
            bad(r, "nested too deeply");
        v = is_dict ? jval_dict(r->rt) : jval_list(r->rt, JV_LIST, 0);
        skip_space(r);
        if (r->p < r->end && *r->p == close) {
            r->p++;
            r->depth--;
            return v;
        }
        for (;;) {
            if (is_dict) {
                skip_space(r);
                if (r->p >= r->end || *r->p != '"')
                    bad(r, "a key is not a string");
                key = read_str(r);
                skip_space(r);
                if (r->p >= r->end || *r->p++ != ':')
                    bad(r, "':' is missing");
                if (jdict_get(r->rt, v.dict, key))
                    bad(r, "a key stands twice");
                struct jval value = read_value(r);
                jdict_put(r->rt, v.dict, key, value);
            } else {
                jlist_add(r->rt, v.list, read_value(r));
            }
            skip_space(r);
            char c = r->p < r->end ? *r->p++ : 0;
            if (c == close) {
                r->depth--;
                return v;
            }
            if (c != ',')
                bad(r, "',' is missing");
        }
    }
    default:
        if (take_word(r, "null"))
            return jval_none;
        if (take_word(r, "true"))
            return jval_true;
        if (take_word(r, "false"))
            return jval_false;
        if (take_word(r, "NaN"))
            return jval_float(NAN);
        if (take_word(r, "Infinity"))
            return jval_float(INFINITY);
        if (take_word(r, "-Infinity"))
            return jval_float(-INFINITY);
        if (*r->p == '-' || (*r->p >= '0' && *r->p <= '9'))
            return read_number(r);
        bad(r, "not a value");
    }
}

struct jval jjson_parse(struct rt *rt, const char *text, size_t len)
{
    struct reader r = {.rt = rt, .p = text, .begin = text, .end = text + len};
    size_t at;

    if (!juni_is_utf8(text, len, &at)) {
        r.p = text + at;
        bad(&r, "not UTF-8");
    }
    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        bad(&r, "starts with a byte order mark");
    struct jval v = read_value(&r);
    skip_space(&r);
    if (r.p < r.end)
        bad(&r, "something follows the value");
    return v;
}

struct jval jjson_value(struct rt *rt, const json_t *json)
{
    struct jval v;
    const char *key;
    json_t *item;
    size_t i;

    rt_step(rt, 1);
    switch (json_typeof(json)) {
    case JSON_NULL:
        return jval_none;
    case JSON_TRUE:
        return jval_true;
    case JSON_FALSE:
        return jval_false;
    case JSON_INTEGER:
        return jval_int(json_integer_value(json));
    case JSON_REAL:
        return jval_float(json_real_value(json));
    case JSON_STRING:
        return jval_str(rt, json_string_value(json), json_string_length(json));
    default:
        break;
    }
    rt_enter(rt);
    if (json_is_array(json)) {
        v = jval_list(rt, JV_LIST, json_array_size(json));
        for (i = 0; i < json_array_size(json); i++)
            jlist_add(rt, v.list, jjson_value(rt, json_array_get(json, i)));
    } else {
        v = jval_dict(rt);
        json_object_foreach((json_t *)json, key, item)
        {
            struct jval value = jjson_value(rt, item);

            jdict_put(rt, v.dict, jval_cstr(rt, key), value);
        }
    }
    rt_leave(rt);
    return v;
}
