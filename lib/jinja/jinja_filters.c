/* Filters on lists and text, and the table of all. */
#include "jinja/jinja_text.h"

#include <math.h>
#include <string.h>

void jargs_bind(struct rt *rt, struct jargs *args, const char *what,
                const char *names, size_t need, bool positional,
                struct jval *out)
{
    size_t n = 0, used = 0;

    for (const char *p = names; *p; n++) {
        const char *end = strchr(p, ',');
        size_t len = end ? (size_t)(end - p) : strlen(p);
        struct jval *kw = NULL;

        if (args->kw && !positional) {
            struct jstr s = {p, len, SIZE_MAX};

            kw =
                jdict_get(rt, args->kw, (struct jval){.type = JV_STR, .s = &s});
        }
        out[n] = jval_missing;
        if (n < args->n)
            out[n] = args->v[n];
        else if (kw)
            out[n] = *kw;
        else if (n < need)
            rt_fail(rt, ERR_INPUT, "%s: missing argument '%.*s'", what,
                    (int)len, p);
        used += kw != NULL && n >= args->n;
        p += len + (end != NULL);
    }
    if (args->n > n)
        rt_fail(rt, ERR_INPUT, "%s: %zu arguments, takes at most %zu", what,
                args->n, n);
    if (args->kw && args->kw->n > used)
        rt_fail(rt, ERR_INPUT, "%s: unexpected keyword argument", what);
}

void jargs_no_self(struct rt *rt, const struct jargs *args)
{
    if (args->kw && jdict_find(rt, args->kw, "self"))
        rt_fail(rt, ERR_INPUT, "multiple values for argument 'self'");
}

bool jargs_flag(struct rt *rt, struct jval v, bool otherwise)
{
    return v.type == JV_MISSING ? otherwise : jval_truth(rt, v);
}

/* --- attribute paths --- */

static bool all_digits(const char *data, size_t len)
{
    size_t i = 0;

    while (i < len)
        if (!juni_is(juni_next(data, &i), JUNI_DIGIT))
            return false;
    return len > 0;
}

/* One step of a path; numbers are indices. */
static struct jval step_path(struct rt *rt, struct jval v, const char *data,
                             size_t len, struct jval fallback)
{
    struct jval key = jval_str(rt, data, len);

    if (all_digits(data, len) && !jstr_to_int(rt, key, 10, &key))
        rt_fail(rt, ERR_INPUT,
                "invalid literal for int() in an attribute path");
    v = jinja_getitem(rt, v, key);
    return v.type == JV_UNDEF && fallback.type != JV_MISSING &&
                   fallback.type != JV_NONE
               ? fallback
               : v;
}

struct jval jfilter_getter(struct rt *rt, struct jval v, struct jval path,
                           struct jval fallback)
{
    if (path.type == JV_MISSING || path.type == JV_NONE)
        return v;
    if (path.type != JV_STR) {
        v = jinja_getitem(rt, v, path);
        return v.type == JV_UNDEF && fallback.type != JV_MISSING &&
                       fallback.type != JV_NONE
                   ? fallback
                   : v;
    }
    const char *p = path.s->data, *end = p + path.s->len;
    for (;;) {
        const char *dot = end > p ? memchr(p, '.', (size_t)(end - p)) : NULL;
        size_t len = (size_t)((dot ? dot : end) - p);

        v = step_path(rt, v, p, len, fallback);
        if (!dot)
            return v;
        p = dot + 1;
    }
}

/* --- lists --- */

static struct jval f_length(struct rt *rt, struct jval v, struct jargs *args)
{
    int64_t n;

    jargs_bind(rt, args, "length", "", 0, true, NULL);
    if (!jval_len(rt, v, &n))
        rt_fail(rt, ERR_INPUT, "object of type '%s' has no len()",
                jval_typename(v));
    return jval_int(n);
}

static struct jval f_list(struct rt *rt, struct jval v, struct jargs *args)
{
    jargs_bind(rt, args, "list", "", 0, true, NULL);
    return jval_to_list(rt, v);
}

static struct jval f_first(struct rt *rt, struct jval v, struct jargs *args)
{
    struct jval out;

    jargs_bind(rt, args, "first", "", 0, true, NULL);
    if (jiter_next(rt, jiter_new(rt, v), &out))
        return out;
    return jval_undef(rt, "no first item, sequence was empty");
}

static bool is_reversible(struct jval v)
{
    return jval_is_iterable(v) && v.type != JV_ITER && v.type != JV_LOOP &&
           v.type != JV_UNDEF;
}

static struct jval f_last(struct rt *rt, struct jval v, struct jargs *args)
{
    jargs_bind(rt, args, "last", "", 0, true, NULL);
    if (!is_reversible(v) && v.type != JV_UNDEF)
        rt_fail(rt, ERR_INPUT, "'%s' object is not reversible",
                jval_typename(v));
    struct jval list = jval_to_list(rt, v);
    return list.list->n ? list.list->v[list.list->n - 1]
                        : jval_undef(rt, "no last item, sequence was empty");
}

static struct jval f_reverse(struct rt *rt, struct jval v, struct jargs *args)
{
    jargs_bind(rt, args, "reverse", "", 0, true, NULL);
    if (v.type == JV_STR)
        return jval_slice(rt, v, jval_missing, jval_missing, jval_int(-1));
    if (!jval_is_iterable(v))
        rt_fail(rt, ERR_INPUT, "reverse: argument must be iterable");
    if (is_reversible(v) || v.type == JV_UNDEF)
        return jiter_lazy(rt, JI_REVERSED, jval_to_list(rt, v));
    struct jval list = jval_to_list(rt, v);
    jlist_reverse(list.list);
    return list;
}

static struct jval f_join(struct rt *rt, struct jval v, struct jargs *args)
{
    struct jval a[2], item;
    struct jsb b = {.rt = rt};
    bool is_first = true;

    jargs_bind(rt, args, "join", "d,attribute", 0, false, a);
    struct jval sep =
        a[0].type == JV_MISSING ? jval_cstr(rt, "") : jval_to_str(rt, a[0]);
    struct jiter *it = jiter_new(rt, v);
    while (jiter_next(rt, it, &item)) {
        if (!is_first)
            jsb_add(&b, sep.s->data, sep.s->len);
        is_first = false;
        jval_print(rt, &b, jfilter_getter(rt, item, a[1], jval_missing));
    }
    return jsb_val(&b);
}

static struct jval f_sum(struct rt *rt, struct jval v, struct jargs *args)
{
    struct jval a[2], item, sum;

    jargs_bind(rt, args, "sum", "attribute,start", 0, false, a);
    sum = a[1].type == JV_MISSING ? jval_int(0) : a[1];
    if (sum.type == JV_STR)
        rt_fail(rt, ERR_INPUT, "sum: cannot sum strings");
    struct jiter *it = jiter_new(rt, v);
    while (jiter_next(rt, it, &item))
        sum = jval_add(rt, sum, jfilter_getter(rt, item, a[0], jval_missing));
    return sum;
}

static struct jval f_map(struct rt *rt, struct jval v, struct jargs *args)
{
    struct jval out = jiter_lazy(rt, JI_MAP, v);
    struct jval *attribute =
        args->kw ? jdict_find(rt, args->kw, "attribute") : NULL;

    out.iter->args = *args;
    if (args->n == 0 && attribute) {
        struct jval a[2];

        jargs_bind(rt, args, "map", "attribute,default", 0, false, a);
        out.iter->by_attr = true;
        out.iter->attr = a[0];
        out.iter->fallback = a[1];
    }
    return out;
}

static struct jval selecting(struct rt *rt, struct jval v, struct jargs *args,
                             bool negate, bool by_attr)
{
    struct jval out = jiter_lazy(rt, JI_SELECT, v);

    out.iter->args = *args;
    out.iter->negate = negate;
    out.iter->by_attr = by_attr;
    return out;
}

static struct jval f_select(struct rt *rt, struct jval v, struct jargs *args)
{
    return selecting(rt, v, args, false, false);
}

static struct jval f_reject(struct rt *rt, struct jval v, struct jargs *args)
{
    return selecting(rt, v, args, true, false);
}

static struct jval f_selectattr(struct rt *rt, struct jval v,
                                struct jargs *args)
{
    return selecting(rt, v, args, false, true);
}

static struct jval f_rejectattr(struct rt *rt, struct jval v,
                                struct jargs *args)
{
    return selecting(rt, v, args, true, true);
}

static struct jval f_unique(struct rt *rt, struct jval v, struct jargs *args)
{
    struct jval a[2], out = jiter_lazy(rt, JI_UNIQUE, v);

    jargs_bind(rt, args, "unique", "case_sensitive,attribute", 0, false, a);
    out.iter->by_attr = jargs_flag(rt, a[0], false);
    out.iter->attr = a[1];
    out.iter->seen = rt_alloc(rt, sizeof(struct jdict));
    return out;
}

static struct jval f_items(struct rt *rt, struct jval v, struct jargs *args)
{
    jargs_bind(rt, args, "items", "", 0, true, NULL);
    return jiter_lazy(rt, JI_ITEMS, v);
}

/* Rows of a list: so many, or of such a length. */
static struct jval in_rows(struct rt *rt, struct jval v, struct jargs *args,
                           enum jiter_kind kind, const char *what,
                           const char *names)
{
    struct jval a[2], out = jiter_lazy(rt, kind, v);

    jargs_bind(rt, args, what, names, 1, false, a);
    out.iter->args.v = rt_alloc(rt, sizeof(a[0]));
    out.iter->args.v[0] = a[0];
    out.iter->fallback = a[1].type == JV_MISSING ? jval_none : a[1];
    return out;
}

static struct jval f_batch(struct rt *rt, struct jval v, struct jargs *args)
{
    return in_rows(rt, v, args, JI_BATCH, "batch", "linecount,fill_with");
}

static struct jval f_slice(struct rt *rt, struct jval v, struct jargs *args)
{
    return in_rows(rt, v, args, JI_SLICE, "slice", "slices,fill_with");
}

/* --- text --- */

static struct jval f_string(struct rt *rt, struct jval v, struct jargs *args)
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

static struct jval f_upper(struct rt *rt, struct jval v, struct jargs *args)
{
    return cased(rt, v, args, "upper");
}

static struct jval f_lower(struct rt *rt, struct jval v, struct jargs *args)
{
    return cased(rt, v, args, "lower");
}

static struct jval f_capitalize(struct rt *rt, struct jval v,
                                struct jargs *args)
{
    return cased(rt, v, args, "capitalize");
}

/* Words start behind runs of white space and of - ( { [ <; the pieces of a
 * Markup join to a plain string. */
static struct jval f_title(struct rt *rt, struct jval v, struct jargs *args)
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

static struct jval f_trim(struct rt *rt, struct jval v, struct jargs *args)
{
    struct jval chars;

    jargs_bind(rt, args, "trim", "chars", 0, false, &chars);
    return jstr_strip(rt, jval_soft_str(rt, v), chars, 3);
}

static struct jval f_replace(struct rt *rt, struct jval v, struct jargs *args)
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
static struct jval f_indent(struct rt *rt, struct jval v, struct jargs *args)
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

static struct jval f_format(struct rt *rt, struct jval v, struct jargs *args)
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

static struct jval f_escape(struct rt *rt, struct jval v, struct jargs *args)
{
    jargs_bind(rt, args, "escape", "", 0, true, NULL);
    return jval_escape(rt, v);
}

static struct jval f_forceescape(struct rt *rt, struct jval v,
                                 struct jargs *args)
{
    jargs_bind(rt, args, "forceescape", "", 0, true, NULL);
    return jval_escape(rt, jval_to_str(rt, v));
}

static struct jval f_safe(struct rt *rt, struct jval v, struct jargs *args)
{
    jargs_bind(rt, args, "safe", "", 0, true, NULL);
    v = jval_soft_str(rt, v);
    v.safe = true;
    return v;
}

static struct jval f_center(struct rt *rt, struct jval v, struct jargs *args)
{
    struct jval width;

    jargs_bind(rt, args, "center", "width", 0, false, &width);
    return jstr_pad(rt, jval_soft_str(rt, v),
                    width.type == JV_MISSING ? 80 : jval_index(rt, width), ' ',
                    'c');
}

static struct jval f_attr(struct rt *rt, struct jval v, struct jargs *args)
{
    struct jval name;

    jargs_bind(rt, args, "attr", "name", 1, false, &name);
    if (name.type != JV_STR)
        rt_fail(rt, ERR_INPUT, "attr: the name is not a string");
    if (v.type == JV_DICT) { /* no falling back to keys */
        bool is_unsafe;
        char *text = rt_printf(rt, "%.*s", (int)name.s->len, name.s->data);

        if (!jmethod_exists(rt, v, text, &is_unsafe))
            return jval_undef_name(rt, v, name);
    }
    return jinja_getattr(rt, v, name);
}

static struct jval f_wordcount(struct rt *rt, struct jval v, struct jargs *args)
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

static struct jval f_truncate(struct rt *rt, struct jval v, struct jargs *args)
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

static struct jval f_filesizeformat(struct rt *rt, struct jval v,
                                    struct jargs *args)
{
    static const char letters[] = "kMGTPEZY";
    struct jval a;
    double bytes, unit;

    jargs_bind(rt, args, "filesizeformat", "binary", 0, false, &a);
    bool is_binary = jargs_flag(rt, a, false);
    double base = is_binary ? 1024 : 1000;
    if (v.type == JV_STR) {
        if (!jstr_to_float(rt, v, &bytes))
            rt_fail(rt, ERR_INPUT, "filesizeformat: not a number");
    } else if (jval_is_number(v)) {
        bytes = jval_number(rt, v);
    } else {
        rt_fail(rt, ERR_INPUT, "filesizeformat: not a number");
    }
    if (bytes == 1)
        return jval_cstr(rt, "1 Byte");
    if (bytes < base)
        return jval_cstr(rt, rt_printf(rt, "%.0f Bytes", trunc(bytes)));
    unit = base * base;
    for (size_t i = 0;; i++, unit *= base)
        if (bytes < unit || i == 7)
            return jval_cstr(rt,
                             rt_printf(rt, "%.1f %c%sB", base * bytes / unit,
                                       is_binary && i == 0 ? 'K' : letters[i],
                                       is_binary ? "i" : ""));
}

static struct jval f_tojson(struct rt *rt, struct jval v, struct jargs *args)
{
    return jjson_dump(rt, args, v);
}

/* --- the table --- */

static const struct {
    const char *name;
    jfilter_function *call;
} filters[] = {
    {"abs", jfilter_abs},
    {"attr", f_attr},
    {"batch", f_batch},
    {"capitalize", f_capitalize},
    {"center", f_center},
    {"count", f_length},
    {"d", jfilter_default},
    {"default", jfilter_default},
    {"dictsort", jfilter_dictsort},
    {"e", f_escape},
    {"escape", f_escape},
    {"filesizeformat", f_filesizeformat},
    {"first", f_first},
    {"float", jfilter_float},
    {"forceescape", f_forceescape},
    {"format", f_format},
    {"groupby", jfilter_groupby},
    {"indent", f_indent},
    {"int", jfilter_int},
    {"items", f_items},
    {"join", f_join},
    {"last", f_last},
    {"length", f_length},
    {"list", f_list},
    {"lower", f_lower},
    {"map", f_map},
    {"max", jfilter_max},
    {"min", jfilter_min},
    {"reject", f_reject},
    {"rejectattr", f_rejectattr},
    {"replace", f_replace},
    {"reverse", f_reverse},
    {"round", jfilter_round},
    {"safe", f_safe},
    {"select", f_select},
    {"selectattr", f_selectattr},
    {"slice", f_slice},
    {"sort", jfilter_sort},
    {"string", f_string},
    {"sum", f_sum},
    {"title", f_title},
    {"tojson", f_tojson},
    {"trim", f_trim},
    {"truncate", f_truncate},
    {"unique", f_unique},
    {"upper", f_upper},
    {"wordcount", f_wordcount},
};

int jfilter_find(const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++)
        if (strlen(filters[i].name) == len &&
            memcmp(filters[i].name, name, len) == 0)
            return (int)i;
    return -1;
}

bool jfilter_is_known(const char *name)
{
    static const char *const known[] = {"pprint",    "random", "striptags",
                                        "urlencode", "urlize", "wordwrap",
                                        "xmlattr"};

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(known[i], name) == 0)
            return true;
    return false;
}

struct jval jfilter_call(struct rt *rt, int filter, struct jval v,
                         struct jargs *args)
{
    rt_enter(rt);
    v = filters[filter].call(rt, v, args);
    rt_leave(rt);
    return v;
}
