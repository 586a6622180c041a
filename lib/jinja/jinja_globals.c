/* Global functions of a template. */
#include "jinja/jinja_internal.h"

#include <string.h>

bool jfunc_find(const char *name, enum jfunc *out)
{
    static const char *const names[] = {
        [JF_RANGE] = "range",           [JF_DICT] = "dict",
        [JF_NAMESPACE] = "namespace",   [JF_CYCLER] = "cycler",
        [JF_JOINER] = "joiner",         [JF_RAISE] = "raise_exception",
        [JF_STRFTIME] = "strftime_now", [JF_LIPSUM] = "lipsum",
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(names[i], name) == 0) {
            *out = (enum jfunc)i;
            return true;
        }
    return false;
}

static struct jval call_range(struct rt *rt, struct jargs *args)
{
    struct jval a[3];
    struct jrange *r = rt_alloc(rt, sizeof(*r));
    int64_t stop;

    jargs_bind(rt, args, "range", "start,stop,step", 1, true, a);
    for (int i = 0; i < 3; i++)
        if (a[i].type == JV_BIG)
            rt_fail(rt, ERR_UNSUPPORTED, "range of integers beyond 64 bits");
    if (a[1].type == JV_MISSING) {
        stop = jval_index(rt, a[0]);
    } else {
        r->start = jval_index(rt, a[0]);
        stop = jval_index(rt, a[1]);
    }
    r->step = a[2].type == JV_MISSING ? 1 : jval_index(rt, a[2]);
    if (r->step == 0)
        rt_fail(rt, ERR_INPUT, "range: step must not be zero");
    uint64_t span = 0, by = (uint64_t)r->step;
    if (r->step > 0 ? stop > r->start : stop < r->start)
        span = r->step > 0 ? (uint64_t)stop - (uint64_t)r->start
                           : (uint64_t)r->start - (uint64_t)stop;
    by = r->step > 0 ? by : 0 - by;
    uint64_t n = span ? (span - 1) / by + 1 : 0;
    if (n > 100000)
        rt_fail(rt, ERR_INPUT, "range of more than 100000 values");
    r->stop = stop;
    r->n = (int64_t)n;
    return (struct jval){.type = JV_RANGE, .range = r};
}

/* dict(...) and namespace(...): a mapping or pairs, then keywords. */
static struct jval call_dict(struct rt *rt, struct jargs *args, bool is_ns)
{
    struct jval out = jval_dict(rt), pair;

    if (args->n > 1)
        rt_fail(rt, ERR_INPUT, "dict expected at most 1 argument, got %zu",
                args->n);
    if (args->n && args->v[0].type == JV_UNDEF)
        jval_undef_fail(rt, args->v[0]); /* it is asked for its keys */
    if (args->n && args->v[0].type == JV_DICT) {
        out.dict = jdict_copy(rt, args->v[0].dict);
    } else if (args->n) {
        struct jiter *it = jiter_new(rt, args->v[0]);

        while (jiter_next(rt, it, &pair)) {
            pair = jval_to_list(rt, pair);
            if (pair.list->n != 2)
                rt_fail(rt, ERR_INPUT,
                        "dict: an element has length %zu; 2 is "
                        "required",
                        pair.list->n);
            jdict_put(rt, out.dict, pair.list->v[0], pair.list->v[1]);
        }
    }
    if (!is_ns && rt->t->is_524)
        jargs_no_self(rt, args);
    for (size_t i = 0; args->kw && i < args->kw->n; i++)
        jdict_put(rt, out.dict, args->kw->v[i].key, args->kw->v[i].value);
    if (is_ns) {
        out.type = JV_NAMESPACE;
        for (size_t i = 0; rt->t->is_524 && i < out.dict->n; i++) {
            struct jval key = out.dict->v[i].key;

            if (key.type == JV_STR && key.s->len && key.s->data[0] == '_')
                rt_fail(rt, ERR_INPUT,
                        "a namespace attribute may not start with '_'");
        }
    }
    return out;
}

__attribute__((noreturn)) static void raise(struct rt *rt, struct jargs *args)
{
    struct jval text;

    jargs_bind(rt, args, "raise_exception", "message", 1, false, &text);
    text = jval_to_str(rt, text);
    if (rt->results) {
        rt->results->raised = true;
        buf_clear(&rt->results->why);
        buf_add(&rt->results->why, text.s->data, text.s->len);
    }
    size_t len = text.s->len;
    while (len > 400 || (len > 0 && len < text.s->len &&
                         ((unsigned char)text.s->data[len] & 0xc0) == 0x80))
        len--;
    char *line = rt_printf(rt, "%.*s", (int)len, text.s->data);
    for (char *p = line; *p; p++)
        if (*p == '\n' || *p == '\r')
            *p = ' '; /* a message is one line */
    rt_fail(rt, ERR_INPUT, "%s", line);
}

struct jval jfunc_call(struct rt *rt, enum jfunc func, struct jargs *args)
{
    struct jval v = jval_none;

    switch (func) {
    case JF_RANGE:
        return call_range(rt, args);
    case JF_DICT:
    case JF_NAMESPACE:
        return call_dict(rt, args, func == JF_NAMESPACE);
    case JF_CYCLER:
        if (args->n == 0 || args->kw)
            rt_fail(rt, ERR_INPUT, "cycler: at least one item is needed");
        v = (struct jval){.type = JV_CYCLER,
                          .cycler = rt_alloc(rt, sizeof(struct jcycler))};
        for (size_t i = 0; i < args->n; i++)
            jlist_add(rt, &v.cycler->items, args->v[i]);
        return v;
    case JF_JOINER:
        v = (struct jval){.type = JV_JOINER,
                          .joiner = rt_alloc(rt, sizeof(struct jjoiner))};
        jargs_bind(rt, args, "joiner", "sep", 0, false, &v.joiner->sep);
        if (v.joiner->sep.type == JV_MISSING)
            v.joiner->sep = jval_cstr(rt, ", ");
        return v;
    case JF_RAISE:
        raise(rt, args);
    case JF_STRFTIME:
        jargs_bind(rt, args, "strftime_now", "format", 1, false, &v);
        return jformat_time(rt, v);
    default:
        rt_fail(rt, ERR_UNSUPPORTED, "the function 'lipsum'");
    }
}
