/* The methods of str: their arguments, and who does the work. */
#include "jinja/jinja_text.h"

#include <string.h>

typedef struct jval str_method(struct rt *rt, struct jval v, const char *name,
                               struct jargs *args);

static struct jval change_case(struct rt *rt, struct jval v, const char *name,
                               struct jargs *args)
{
    jargs_bind(rt, args, name, "", 0, true, NULL);
    return jstr_case(rt, v, name);
}

/* strip, lstrip, rstrip */
static struct jval strip(struct rt *rt, struct jval v, const char *name,
                         struct jargs *args)
{
    struct jval chars;
    int sides = name[0] == 's' ? 3 : name[0] == 'l' ? 1 : 2;

    jargs_bind(rt, args, name, "chars", 0, !v.safe, &chars);
    return jstr_strip(rt, v, chars, sides);
}

/* split, rsplit */
static struct jval split(struct rt *rt, struct jval v, const char *name,
                         struct jargs *args)
{
    struct jval a[2];

    jargs_bind(rt, args, name, "sep,maxsplit", 0, false, a);
    return jstr_split(rt, v, a[0], a[1], name[0] == 'r');
}

static struct jval splitlines(struct rt *rt, struct jval v, const char *name,
                              struct jargs *args)
{
    struct jval keep;

    jargs_bind(rt, args, name, "keepends", 0, false, &keep);
    return jstr_splitlines(rt, v,
                           keep.type != JV_MISSING && jval_index(rt, keep));
}

/* partition, rpartition */
static struct jval partition(struct rt *rt, struct jval v, const char *name,
                             struct jargs *args)
{
    struct jval sep;

    jargs_bind(rt, args, name, "sep", 1, true, &sep);
    return jstr_partition(rt, v, sep, name[0] == 'r');
}

/* startswith, endswith */
static struct jval has_affix(struct rt *rt, struct jval v, const char *name,
                             struct jargs *args)
{
    struct jval range[3];

    jargs_bind(rt, args, name, "prefix,start,end", 1, true, range);
    return jval_bool(jstr_has_affix(rt, v, range, name[0] == 'e'));
}

/* removeprefix, removesuffix */
static struct jval remove_affix(struct rt *rt, struct jval v, const char *name,
                                struct jargs *args)
{
    struct jval range[3] = {jval_missing, jval_missing, jval_missing};
    bool at_end = strcmp(name, "removesuffix") == 0;

    jargs_bind(rt, args, name, "affix", 1, true, range);
    if (range[0].type != JV_STR)
        rt_fail(rt, ERR_INPUT, "%s() argument must be str, not %s", name,
                jval_typename(range[0]));
    size_t len = range[0].s->len;
    if (!jstr_has_affix(rt, v, range, at_end))
        return v;
    return at_end ? jstr_part(rt, v, 0, v.s->len - len)
                  : jstr_part(rt, v, len, v.s->len);
}

/* find, rfind, index, rindex */
static struct jval find(struct rt *rt, struct jval v, const char *name,
                        struct jargs *args)
{
    struct jval range[3];

    jargs_bind(rt, args, name, "sub,start,end", 1, true, range);
    int64_t at = jstr_find(rt, v, range, name[0] == 'r');

    if (at < 0 && strstr(name, "index"))
        rt_fail(rt, ERR_INPUT, "substring not found");
    return jval_int(at);
}

static struct jval count(struct rt *rt, struct jval v, const char *name,
                         struct jargs *args)
{
    struct jval range[3];

    jargs_bind(rt, args, name, "sub,start,end", 1, true, range);
    return jval_int(jstr_count(rt, v, range));
}

static struct jval replace(struct rt *rt, struct jval v, const char *name,
                           struct jargs *args)
{
    struct jval a[3];

    jargs_bind(rt, args, name, "old,new,count", 2, true, a);
    if (v.safe)
        a[1] = jval_escape(rt, a[1]);
    if (a[0].type != JV_STR || a[1].type != JV_STR)
        rt_fail(rt, ERR_INPUT, "replace() arguments must be str");
    int64_t times = a[2].type == JV_MISSING ? -1 : jval_index(rt, a[2]);
    return jstr_replace(rt, v, a[0], a[1], times);
}

static struct jval join(struct rt *rt, struct jval v, const char *name,
                        struct jargs *args)
{
    struct jval items;

    jargs_bind(rt, args, name, "iterable", 1, true, &items);
    return jstr_join(rt, v, items, true);
}

static struct jval format(struct rt *rt, struct jval v, const char *name,
                          struct jargs *args)
{
    (void)name;
    return jformat_method(rt, v, args);
}

static uint32_t fill_char(struct rt *rt, struct jval v)
{
    size_t at = 0;

    if (v.type == JV_MISSING)
        return ' ';
    if (v.type != JV_STR || jstr_chars(rt, v.s) != 1)
        rt_fail(rt, ERR_INPUT,
                "the fill character must be exactly one character long");
    return juni_next(v.s->data, &at);
}

/* center, ljust, rjust */
static struct jval pad(struct rt *rt, struct jval v, const char *name,
                       struct jargs *args)
{
    struct jval a[2];

    jargs_bind(rt, args, name, "width,fillchar", 1, true, a);
    if (v.safe && a[1].type == JV_STR)
        a[1] = jval_escape(rt, a[1]);
    return jstr_pad(rt, v, jval_index(rt, a[0]), fill_char(rt, a[1]), name[0]);
}

static struct jval zfill(struct rt *rt, struct jval v, const char *name,
                         struct jargs *args)
{
    struct jval width;

    jargs_bind(rt, args, name, "width", 1, true, &width);
    return jstr_zfill(rt, v, jval_index(rt, width));
}

static struct jval expandtabs(struct rt *rt, struct jval v, const char *name,
                              struct jargs *args)
{
    struct jval size;

    jargs_bind(rt, args, name, "tabsize", 0, false, &size);
    return jstr_expandtabs(rt, v,
                           size.type == JV_MISSING ? 8 : jval_index(rt, size));
}

/* isalpha and the like: every character is of a kind */
static struct jval is_all(struct rt *rt, struct jval v, const char *name,
                          struct jargs *args)
{
    static const struct {
        const char *name;
        unsigned flags;
    } kinds[] = {
        {"isalnum", JUNI_ALNUM},     {"isalpha", JUNI_ALPHA},
        {"isdecimal", JUNI_DECIMAL}, {"isdigit", JUNI_DIGIT},
        {"isspace", JUNI_SPACE},
    };
    size_t i = 0;

    jargs_bind(rt, args, name, "", 0, true, NULL);
    while (strcmp(kinds[i].name, name) != 0)
        i++;
    return jval_bool(jstr_is_all(rt, v, kinds[i].flags));
}

static struct jval is_other(struct rt *rt, struct jval v, const char *name,
                            struct jargs *args)
{
    bool is;

    jargs_bind(rt, args, name, "", 0, true, NULL);
    if (strcmp(name, "islower") == 0)
        is = jstr_is_cased(rt, v, JUNI_LOWER, JUNI_UPPER);
    else if (strcmp(name, "isupper") == 0)
        is = jstr_is_cased(rt, v, JUNI_UPPER, JUNI_LOWER);
    else if (strcmp(name, "istitle") == 0)
        is = jstr_is_title(rt, v);
    else if (strcmp(name, "isascii") == 0)
        is = jstr_is_ascii(rt, v.s);
    else if (strcmp(name, "isidentifier") == 0)
        is = jstr_is_identifier(rt, v);
    else /* isprintable */
        is = v.s->len == 0 || jstr_is_all(rt, v, JUNI_PRINTABLE);
    return jval_bool(is);
}

/* Those without a function we do not have: they fail when they are called. */
static const struct {
    const char *name;
    str_method *call;
} methods[] = {
    {"capitalize", change_case},
    {"casefold", NULL},
    {"center", pad},
    {"count", count},
    {"encode", NULL},
    {"endswith", has_affix},
    {"expandtabs", expandtabs},
    {"find", find},
    {"format", format},
    {"format_map", NULL},
    {"index", find},
    {"isalnum", is_all},
    {"isalpha", is_all},
    {"isascii", is_other},
    {"isdecimal", is_all},
    {"isdigit", is_all},
    {"isidentifier", is_other},
    {"islower", is_other},
    {"isnumeric", NULL},
    {"isprintable", is_other},
    {"isspace", is_all},
    {"istitle", is_other},
    {"isupper", is_other},
    {"join", join},
    {"ljust", pad},
    {"lower", change_case},
    {"lstrip", strip},
    {"maketrans", NULL},
    {"partition", partition},
    {"removeprefix", remove_affix},
    {"removesuffix", remove_affix},
    {"replace", replace},
    {"rfind", find},
    {"rindex", find},
    {"rjust", pad},
    {"rpartition", partition},
    {"rsplit", split},
    {"rstrip", strip},
    {"split", split},
    {"splitlines", splitlines},
    {"startswith", has_affix},
    {"strip", strip},
    {"swapcase", change_case},
    {"title", change_case},
    {"translate", NULL},
    {"upper", change_case},
    {"zfill", zfill},
};
enum { METHODS = sizeof(methods) / sizeof(methods[0]) };

static size_t place_of(const char *name)
{
    size_t i = 0;

    while (i < METHODS && strcmp(methods[i].name, name) != 0)
        i++;
    return i;
}

bool jstr_has_method(const char *name)
{
    return place_of(name) < METHODS;
}

struct jval jstr_call(struct rt *rt, struct jval v, const char *name,
                      struct jargs *args)
{
    size_t i = place_of(name);

    if (i == METHODS || !methods[i].call)
        rt_fail(rt, ERR_UNSUPPORTED, "the method '%s' of str", name);
    return methods[i].call(rt, v, name, args);
}
