/* Python's dict: entries in their order, found by hash. */
#include "jinja/jinja_internal.h"

#include <math.h>
#include <string.h>

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9e3779b97f4a7c15U;
    return h ^ h >> 29;
}

bool jval_is_hashable(struct rt *rt, struct jval v)
{
    bool is_hashable = v.type != JV_LIST && v.type != JV_DICT &&
                       (v.type != JV_VIEW || v.view->kind == JVIEW_VALUES);

    if (v.type != JV_TUPLE)
        return is_hashable;
    rt_step(rt, 1 + v.list->n);
    rt_enter(rt);
    for (size_t i = 0; is_hashable && i < v.list->n; i++)
        is_hashable = jval_is_hashable(rt, v.list->v[i]);
    rt_leave(rt);
    return is_hashable;
}

static uint64_t hash(struct rt *rt, struct jval v)
{
    double f;
    uint64_t h = v.type, bits;

    switch (v.type) {
    case JV_NONE:
    case JV_UNDEF:
        return mix(1, h);
    case JV_BOOL:
        return mix(2, v.b);
    case JV_INT:
        return mix(2, (uint64_t)v.i);
    case JV_BIG:
        f = jbig_to_double(rt, v);
        memcpy(&bits, &f, sizeof(bits));
        return mix(3, bits);
    case JV_FLOAT:
        f = v.f;
        if (f == floor(f) && f >= -0x1p63 && f < 0x1p63)
            return mix(2, (uint64_t)(int64_t)f);
        memcpy(&bits, &f, sizeof(bits));
        return mix(3, bits);
    case JV_STR:
        rt_step(rt, v.s->len / 64);
        h = 4;
        for (size_t i = 0; i < v.s->len; i++)
            h = (h ^ (unsigned char)v.s->data[i]) * 0x100000001b3U;
        return mix(h, v.s->len);
    case JV_TUPLE:
        rt_step(rt, 1 + v.list->n); /* shared parts are walked each time */
        rt_enter(rt);
        for (size_t i = 0; i < v.list->n; i++)
            h = mix(h, hash(rt, v.list->v[i]));
        rt_leave(rt);
        return h;
    case JV_RANGE:
        return mix(mix(6, (uint64_t)v.range->n), (uint64_t)v.range->start);
    case JV_FUNC:
        return mix(7, (uint64_t)v.func);
    default:
        if (!jval_is_hashable(rt, v))
            rt_fail(rt, ERR_INPUT, "unhashable type: '%s'", jval_typename(v));
        return mix(5, (uint64_t)(uintptr_t)v.p);
    }
}

size_t jdict_place(struct rt *rt, struct jdict *d, struct jval key, uint64_t h)
{
    if (!d->slots) {
        for (size_t i = 0; i < d->n; i++)
            if (d->v[i].hash == h && jval_equal(rt, d->v[i].key, key))
                return i;
        return SIZE_MAX;
    }
    for (size_t s = h & (d->slot_count - 1);;
         s = (s + 1) & (d->slot_count - 1)) {
        rt_step(rt, 1);
        if (d->slots[s] == 0)
            return SIZE_MAX;
        struct jentry *e = &d->v[d->slots[s] - 1];
        if (e->hash == h && jval_equal(rt, e->key, key))
            return d->slots[s] - 1;
    }
}

struct jval *jdict_get(struct rt *rt, struct jdict *d, struct jval key)
{
    size_t i = jdict_place(rt, d, key, hash(rt, key));

    return i == SIZE_MAX ? NULL : &d->v[i].value;
}

struct jval *jdict_find(struct rt *rt, struct jdict *d, const char *key)
{
    struct jstr s = {key, strlen(key), SIZE_MAX};

    return jdict_get(rt, d, (struct jval){.type = JV_STR, .s = &s});
}

static void index_entry(struct jdict *d, size_t i)
{
    size_t s = d->v[i].hash & (d->slot_count - 1);

    while (d->slots[s])
        s = (s + 1) & (d->slot_count - 1);
    d->slots[s] = (uint32_t)i + 1;
}

void jdict_put(struct rt *rt, struct jdict *d, struct jval key, struct jval v)
{
    uint64_t h = hash(rt, key);
    size_t i = jdict_place(rt, d, key, h);

    if (i != SIZE_MAX) {
        d->v[i].value = v;
        return;
    }
    d->v = rt_grow(rt, d->v, d->n, &d->cap, sizeof(*d->v));
    d->v[d->n++] = (struct jentry){key, v, h};
    if (d->n * 2 > d->slot_count && d->n > 8) {
        d->slot_count = d->slot_count ? d->slot_count * 2 : 32;
        d->slots = rt_alloc(rt, d->slot_count * sizeof(d->slots[0]));
        for (size_t k = 0; k < d->n; k++)
            index_entry(d, k);
    } else if (d->slots) {
        index_entry(d, d->n - 1);
    }
}

struct jdict *jdict_copy(struct rt *rt, const struct jdict *d)
{
    struct jdict *copy = rt_alloc(rt, sizeof(*copy));

    for (size_t i = 0; i < d->n; i++)
        jdict_put(rt, copy, d->v[i].key, d->v[i].value);
    return copy;
}
