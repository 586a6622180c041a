/* Filters on text. */
#include "jinja/jinja_filters.h"
#include "jinja/jinja_text.h"

#include <string.h>

struct jval jfilter_string(struct rt *rt, struct jval v, struct jargs *args)
{
    jargs_bind(rt, args, "string", "", 0, true, NULL);
    return jval_soft_str(rt, v);
}

static struct jval cased(struct rt *rt, struct jval v, struct jargs *args,
                         const char *how)
{
    jargs_bind(rt, args, how, "", 0, true, NULL);
    return jstr_case(rt, jval_soft_str(rt, v), how);
}

struct jval jfilter_upper(struct rt *rt, struct jval v, struct jargs *args)
{
    return cased(rt, v, args, "upper");
}

struct jval jfilter_lower(struct rt *rt, struct jval v, struct jargs *args)
{
    return cased(rt, v, args, "lower");
}

struct jval jfilter_capitalize(struct rt *rt, struct jval v, struct jargs *args)
{
    return cased(rt, v, args, "capitalize");
}

/* Words start behind runs of white space and of - ( { [ <; the pieces of a
 * Markup join to a plain string. */
struct jval jfilter_title(struct rt *rt, struct jval v, struct jargs *args)
{
    struct jsb b = {.rt = rt};

    jargs_bind(rt, args, "title", "", 0, true, NULL);
    v = jval_soft_str(rt, v);
    for (size_t i = 0; i < v.s->len;) {
        size_t from = i, next = i;
        bool is_gap = false;

        for (; i < v.s->len; i = next) {
            uint32_t c = juni_next(v.s->data, &next);
            bool is = juni_is(c, JUNI_SPACE) ||
                      (c < 0x80 && c && strchr("-({[<", (int)c));

            if (i == from)
                is_gap = is;
            else if (is != is_gap)
                break;
        }
        next = from;
        juni_next(v.s->data, &next);
        struct jval first = jval_str(rt, v.s->data + from, next - from);
        struct jval rest = jval_str(rt, v.s->data + next, i - next);
        first = jstr_case(rt, first, "upper");
        rest = jstr_case(rt, rest, "lower");
        jsb_add(&b, first.s->data, first.s->len);
        jsb_add(&b, rest.s->data, rest.s->len);
    }
    return jsb_val(&b);
}

struct jval jfilter_trim(struct rt *rt, struct jval v, struct jargs *args)
{
    struct jval chars;

    jargs_bind(rt, args, "trim", "chars", 0, false, &chars);
    return jstr_strip(rt, jval_soft_str(rt, v), chars, 3);
}

struct jval jfilter_replace(struct rt *rt, struct jval v, struct jargs *args)
{
    struct jval a[3];

    jargs_bind(rt, args, "replace", "old,new,count", 2, false, a);
    return jstr_replace(
        rt, jval_to_str(rt, v), jval_to_str(rt, a[0]), jval_to_str(rt, a[1]),
        a[2].type == JV_MISSING || a[2].type == JV_NONE ? -1
                                                        : jval_index(rt, a[2]));
}

/* Markup in front of plain lines escapes those it stands before; between all
 * lines, blank ones too, it joins them to Markup. */
struct jval jfilter_indent(struct rt *rt, struct jval v, struct jargs *args)
{
    struct jval a[3], by, newline = jval_cstr(rt, "\n");
    struct jsb b = {.rt = rt};

    jargs_bind(rt, args, "indent", "width,first,blank", 0, false, a);
    if (a[0].type == JV_STR)
        by = a[0];
    else
        by = jval_arith(rt, JN_MUL, jval_cstr(rt, " "),
                        a[0].type == JV_MISSING ? jval_int(4) : a[0]);
    if (v.type != JV_STR && v.type != JV_UNDEF)
        rt_fail(rt, ERR_INPUT, "indent: '%s' object is not a string",
                jval_typename(v));
    bool is_safe = v.type == JV_STR && v.safe;
    bool is_mixed = by.safe && !is_safe;
    bool with_blank = jargs_flag(rt, a[2], false);
    by.safe |= is_safe;
    newline.safe = is_safe;
    struct jval lines = jstr_splitlines(rt, jval_add(rt, v, newline), false);
    for (size_t i = 0; i < lines.list->n; i++) {
        struct jval line = lines.list->v[i];
        bool is_indented = i > 0 && (line.s->len || with_blank);

        if (i > 0)
            jsb_addch(&b, '\n');
        if (is_indented)
            jsb_add(&b, by.s->data, by.s->len);
        if (is_mixed && (is_indented || with_blank))
            line = jval_escape(rt, line);
        jsb_add(&b, line.s->data, line.s->len);
    }
    struct jval out = jsb_val(&b);
    out.safe = is_safe || (is_mixed && with_blank);
    return jargs_flag(rt, a[1], false) ? jval_add(rt, by, out) : out;
}

struct jval jfilter_format(struct rt *rt, struct jval v, struct jargs *args)
{
    bool has_kw = args->kw && args->kw->n;
    struct jval values = jval_list(rt, JV_TUPLE, args->n);

    if (args->n && has_kw)
        rt_fail(rt, ERR_INPUT,
                "format: positional and keyword arguments at "
                "the same time");
    for (size_t i = 0; i < args->n; i++)
        jlist_add(rt, values.list, args->v[i]);
    if (has_kw)
        values = (struct jval){.type = JV_DICT, .dict = args->kw};
    return jformat_percent(rt, jval_soft_str(rt, v), values);
}

struct jval jfilter_escape(struct rt *rt, struct jval v, struct jargs *args)
{
    jargs_bind(rt, args, "escape", "", 0, true, NULL);
    return jval_escape(rt, v);
}

struct jval jfilter_forceescape(struct rt *rt, struct jval v,
                                struct jargs *args)
{
    jargs_bind(rt, args, "forceescape", "", 0, true, NULL);
    return jval_escape(rt, jval_to_str(rt, v));
}

struct jval jfilter_safe(struct rt *rt, struct jval v, struct jargs *args)
{
    jargs_bind(rt, args, "safe", "", 0, true, NULL);
    v = jval_soft_str(rt, v);
    v.safe = true;
    return v;
}

struct jval jfilter_center(struct rt *rt, struct jval v, struct jargs *args)
{
    struct jval width;

    jargs_bind(rt, args, "center", "width", 0, false, &width);
    return jstr_pad(rt, jval_soft_str(rt, v),
                    width.type == JV_MISSING ? 80 : jval_index(rt, width), ' ',
                    'c');
}

struct jval jfilter_wordcount(struct rt *rt, struct jval v, struct jargs *args)
{
    int64_t n = 0;
    bool in_word = false;

    jargs_bind(rt, args, "wordcount", "", 0, true, NULL);
    v = jval_soft_str(rt, v);
    rt_step(rt, v.s->len / 16);
    for (size_t i = 0; i < v.s->len;) {
        uint32_t c = juni_next(v.s->data, &i);
        bool is = c == '_' || juni_is(c, JUNI_ALNUM);

        n += is && !in_word;
        in_word = is;
    }
    return jval_int(n);
}

struct jval jfilter_truncate(struct rt *rt, struct jval v, struct jargs *args)
{
    struct jval a[4], end;
    int64_t length, leeway, n, end_n;

    jargs_bind(rt, args, "truncate", "length,killwords,end,leeway", 0, false,
               a);
    end = a[2].type == JV_MISSING ? jval_cstr(rt, "...") : a[2];
    length = a[0].type == JV_MISSING ? 255 : jval_clamp(rt, a[0]);
    leeway = a[3].type == JV_MISSING || a[3].type == JV_NONE
                 ? 5
                 : jval_index(rt, a[3]);
    if (end.type != JV_STR || !jval_len(rt, v, &n))
        rt_fail(rt, ERR_INPUT, "truncate: needs strings");
    end_n = (int64_t)jstr_chars(rt, end.s);
    if (length < end_n || leeway < 0)
        rt_fail(rt, ERR_INPUT, "truncate: length or leeway is too small");
    if (n <= length || n - length <= leeway)
        return v;
    if (v.type != JV_STR)
        rt_fail(rt, ERR_UNSUPPORTED, "truncate of a %s", jval_typename(v));
    v = jval_slice(rt, v, jval_missing, jval_int(length - end_n), jval_missing);
    if (!jargs_flag(rt, a[1], false))
        for (size_t i = v.s->len; i > 0; i--)
            if (v.s->data[i - 1] == ' ') {
                bool is_safe = v.safe;

                v = jval_str(rt, v.s->data, i - 1);
                v.safe = is_safe;
                break;
            }
    return jval_add(rt, v, end);
}

struct jval jfilter_tojson(struct rt *rt, struct jval v, struct jargs *args)
{
    return jjson_dump(rt, args, v);
}
