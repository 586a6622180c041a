/* Which methods a value has, and those of lists, dicts and loops. */
#include "jinja/jinja_text.h"

#include <string.h>

static bool in_words(const char *words, const char *name)
{
    size_t n = strlen(name);

    for (const char *p = words; *p;) {
        const char *end = strchr(p, ' ');
        size_t len = end ? (size_t)(end - p) : strlen(p);

        if (len == n && memcmp(p, name, n) == 0)
            return true;
        p += len + (end != NULL);
    }
    return false;
}

static const char object_names[] =
    "__class__ __doc__ __init__ __new__ __repr__ __hash__ __str__ "
    "__getattribute__ __setattr__ __delattr__ __lt__ __le__ __eq__ __ne__ "
    "__gt__ __ge__ __reduce__ __reduce_ex__ __getstate__ __init_subclass__ "
    "__subclasshook__ __format__ __sizeof__ __dir__";
static const char container_names[] =
    "__len__ __getitem__ __contains__ __iter__ __add__ __mul__ __rmul__ "
    "__getnewargs__ __mod__ __rmod__";

bool jmethod_exists(const struct rt *rt, struct jval self, const char *name,
                    bool *is_unsafe)
{
    const char *methods = "", *changing = "";

    *is_unsafe = name[0] == '_';
    if (*is_unsafe) {
        if (self.type == JV_NAMESPACE)
            return strcmp(name, "__class__") == 0;
        if (self.type == JV_UNDEF && in_words("_undefined_hint _undefined_obj "
                                              "_undefined_name "
                                              "_undefined_exception "
                                              "_undefined_message "
                                              "_fail_with_undefined_error",
                                              name))
            return true;
        if (self.type == JV_STR && self.safe && strcmp(name, "__html__") == 0)
            return true;
        if (self.type == JV_UNDEF && in_words("__call__ __getitem__ __iter__ "
                                              "__len__ __bool__ __slots__",
                                              name))
            return true;
        return in_words(object_names, name) ||
               ((self.type == JV_STR || self.type == JV_LIST ||
                 self.type == JV_TUPLE || self.type == JV_DICT) &&
                in_words(container_names, name));
    }
    switch (self.type) {
    case JV_STR:
        return jstr_has_method(name) ||
               (self.safe && in_words("escape striptags unescape", name));
    case JV_LIST:
        methods = "copy count index";
        changing = "append clear extend insert pop remove reverse sort";
        break;
    case JV_TUPLE:
    case JV_RANGE:
        methods = "count index";
        break;
    case JV_DICT:
        methods = "copy fromkeys get items keys values";
        changing = "clear pop popitem setdefault update";
        break;
    case JV_VIEW:
        methods =
            self.view->kind == JVIEW_VALUES ? "mapping" : "isdisjoint mapping";
        break;
    case JV_BOOL:
    case JV_INT:
    case JV_BIG:
        methods = "as_integer_ratio bit_count bit_length conjugate from_bytes "
                  "to_bytes";
        break;
    case JV_FLOAT:
        methods = "as_integer_ratio conjugate fromhex hex is_integer";
        break;
    case JV_CYCLER:
        methods = "next reset items pos";
        break;
    case JV_JOINER:
        methods = "sep used";
        break;
    case JV_ITER:
        methods = "close send throw";
        break;
    case JV_FUNC:
        if (self.func == JF_DICT) /* before 5.24 the class itself */
            methods = rt->t->is_524 ? "fromkeys"
                                    : "clear copy fromkeys get items keys pop "
                                      "popitem setdefault update values";
        if (self.func == JF_CYCLER)
            methods = "next reset current";
        break;
    default:
        break;
    }
    *is_unsafe = in_words(changing, name);
    return *is_unsafe || in_words(methods, name);
}

/* --- calling --- */

static bool is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

/* list.index, tuple.count and the like. */
static struct jval call_sequence(struct rt *rt, struct jval v, const char *name,
                                 struct jargs *args)
{
    struct jval a[3], item;
    int64_t n = 0, i = 0, from = 0, to, len;

    if (is(name, "copy")) {
        jargs_bind(rt, args, name, "", 0, true, NULL);
        return jval_to_list(rt, v);
    }
    jval_len(rt, v, &len);
    to = len;
    jargs_bind(rt, args, name, is(name, "count") ? "value" : "value,start,stop",
               1, true, a);
    if (!is(name, "count")) {
        if (a[1].type != JV_MISSING)
            from = jval_clamp(rt, a[1]);
        if (a[2].type != JV_MISSING)
            to = jval_clamp(rt, a[2]);
        from = from < 0 ? (from < -len ? 0 : from + len) : from;
        to = to < 0 ? (to < -len ? 0 : to + len) : to;
    }
    struct jiter *it = jiter_new(rt, v);
    for (; jiter_next(rt, it, &item); i++) {
        if (i < from || i >= to || !jval_equal(rt, item, a[0]))
            continue;
        if (is(name, "index"))
            return jval_int(i);
        n++;
    }
    if (is(name, "index"))
        rt_fail(rt, ERR_INPUT, "a value is not in the %s", jval_typename(v));
    return jval_int(n);
}

static struct jval call_dict(struct rt *rt, struct jval v, const char *name,
                             struct jargs *args)
{
    struct jval a[2], out, key;

    if (is(name, "get")) {
        jargs_bind(rt, args, name, "key,default", 1, true, a);
        struct jval *has = jdict_get(rt, v.dict, a[0]);
        return has ? *has : a[1].type == JV_MISSING ? jval_none : a[1];
    }
    if (is(name, "fromkeys")) {
        jargs_bind(rt, args, name, "iterable,value", 1, true, a);
        out = jval_dict(rt);
        struct jiter *it = jiter_new(rt, a[0]);
        while (jiter_next(rt, it, &key))
            jdict_put(rt, out.dict, key,
                      a[1].type == JV_MISSING ? jval_none : a[1]);
        return out;
    }
    jargs_bind(rt, args, name, "", 0, true, NULL);
    if (is(name, "copy"))
        return (struct jval){.type = JV_DICT, .dict = jdict_copy(rt, v.dict)};
    struct jview *view = rt_alloc(rt, sizeof(*view));
    view->dict = v.dict;
    view->kind = is(name, "keys")     ? JVIEW_KEYS
                 : is(name, "values") ? JVIEW_VALUES
                                      : JVIEW_ITEMS;
    return (struct jval){.type = JV_VIEW, .view = view};
}

static struct jval call_loop(struct rt *rt, struct jloop *loop,
                             const char *name, struct jargs *args)
{
    struct jval now = jval_list(rt, JV_TUPLE, args->n);

    if (args->kw)
        rt_fail(rt, ERR_INPUT, "%s: unexpected keyword argument", name);
    if (is(name, "cycle")) {
        if (args->n == 0)
            rt_fail(rt, ERR_INPUT, "no items for cycling given");
        return args->v[loop->index0 % (int64_t)args->n];
    }
    for (size_t i = 0; i < args->n; i++)
        jlist_add(rt, now.list, args->v[i]);
    if (loop->changed.type != JV_MISSING && jval_equal(rt, loop->changed, now))
        return jval_false;
    loop->changed = now;
    return jval_true;
}

static struct jval call_cycler(struct rt *rt, struct jcycler *c,
                               const char *name, struct jargs *args)
{
    struct jval now = c->items.v[c->pos];
    bool is_reset = is(name, "reset");

    jargs_bind(rt, args, name, "", 0, true, NULL);
    c->pos = is_reset ? 0 : (c->pos + 1) % c->items.n;
    return is_reset ? jval_none : now;
}

struct jval jmethod_call(struct rt *rt, struct jmethod *m, struct jargs *args)
{
    struct jval v = m->self;

    if (v.type == JV_STR)
        return jstr_call(rt, v, m->name, args);
    if (v.type == JV_DICT || (v.type == JV_FUNC && is(m->name, "fromkeys")))
        return call_dict(rt, v, m->name, args);
    if (v.type == JV_LIST || v.type == JV_TUPLE)
        return call_sequence(rt, v, m->name, args);
    if (v.type == JV_LOOP)
        return call_loop(rt, v.loop, m->name, args);
    if (v.type == JV_CYCLER && (is(m->name, "next") || is(m->name, "reset")))
        return call_cycler(rt, v.cycler, m->name, args);
    rt_fail(rt, ERR_UNSUPPORTED, "the attribute '%s' of a %s", m->name,
            jval_typename(v));
}
