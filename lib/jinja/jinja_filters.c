/* The table of filters. */
#include "jinja/jinja_filters.h"

#include <string.h>

static const struct {
    const char *name;
    jfilter_function *call;
} filters[] = {
    {"abs", jfilter_abs},
    {"attr", jfilter_attr},
    {"batch", jfilter_batch},
    {"capitalize", jfilter_capitalize},
    {"center", jfilter_center},
    {"count", jfilter_length},
    {"d", jfilter_default},
    {"default", jfilter_default},
    {"dictsort", jfilter_dictsort},
    {"e", jfilter_escape},
    {"escape", jfilter_escape},
    {"filesizeformat", jfilter_filesizeformat},
    {"first", jfilter_first},
    {"float", jfilter_float},
    {"forceescape", jfilter_forceescape},
    {"format", jfilter_format},
    {"groupby", jfilter_groupby},
    {"indent", jfilter_indent},
    {"int", jfilter_int},
    {"items", jfilter_items},
    {"join", jfilter_join},
    {"last", jfilter_last},
    {"length", jfilter_length},
    {"list", jfilter_list},
    {"lower", jfilter_lower},
    {"map", jfilter_map},
    {"max", jfilter_max},
    {"min", jfilter_min},
    {"reject", jfilter_reject},
    {"rejectattr", jfilter_rejectattr},
    {"replace", jfilter_replace},
    {"reverse", jfilter_reverse},
    {"round", jfilter_round},
    {"safe", jfilter_safe},
    {"select", jfilter_select},
    {"selectattr", jfilter_selectattr},
    {"slice", jfilter_slice},
    {"sort", jfilter_sort},
    {"string", jfilter_string},
    {"sum", jfilter_sum},
    {"title", jfilter_title},
    {"tojson", jfilter_tojson},
    {"trim", jfilter_trim},
    {"truncate", jfilter_truncate},
    {"unique", jfilter_unique},
    {"upper", jfilter_upper},
    {"wordcount", jfilter_wordcount},
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
