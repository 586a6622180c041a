#ifndef JINJA_JINJA_FILTERS_H
#define JINJA_JINJA_FILTERS_H

#include "jinja/jinja_internal.h"

/* What a filter gives for v; each checks its own arguments. */
typedef struct jval jfilter_function(struct rt *rt, struct jval v,
                                     struct jargs *args);

/* jinja_list_filters.c */
jfilter_function jfilter_attr, jfilter_length, jfilter_list, jfilter_first,
    jfilter_last, jfilter_reverse, jfilter_join, jfilter_sum, jfilter_map,
    jfilter_select, jfilter_reject, jfilter_selectattr, jfilter_rejectattr,
    jfilter_unique, jfilter_items, jfilter_batch, jfilter_slice;
/* jinja_text_filters.c */
jfilter_function jfilter_string, jfilter_upper, jfilter_lower,
    jfilter_capitalize, jfilter_title, jfilter_trim, jfilter_replace,
    jfilter_indent, jfilter_format, jfilter_escape, jfilter_forceescape,
    jfilter_safe, jfilter_center, jfilter_wordcount, jfilter_truncate,
    jfilter_tojson;
/* jinja_sort.c */
jfilter_function jfilter_sort, jfilter_dictsort, jfilter_min, jfilter_max,
    jfilter_groupby;
/* jinja_number_filters.c */
jfilter_function jfilter_default, jfilter_abs, jfilter_int, jfilter_float,
    jfilter_round, jfilter_filesizeformat;
#endif
