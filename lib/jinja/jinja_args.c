/* The arguments of a call by name. */
#include "jinja/jinja_internal.h"

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
