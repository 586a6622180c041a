/* The for statement. */
#include "jinja/jinja_run.h"

static struct jval target_value(struct rt *rt, struct jact *act,
                                const struct jnode *n)
{
    if (n->type != JN_TUPLE)
        return *act_place(act, n->ref);
    struct jval v = jval_list(rt, JV_TUPLE, n->list.n);
    for (size_t i = 0; i < n->list.n; i++)
        jlist_add(rt, v.list, target_value(rt, act, n->list.v[i]));
    return v;
}

/* The values of a loop that its own condition lets through. */
bool jinja_loop_filter(struct rt *rt, struct jiter *it, struct jval *out)
{
    struct jval v;

    if (!it->is_ready) {
        it->is_ready = true;
        frame_enter(rt, it->act, &it->node->frame2);
        it->from = jiter_new(rt, it->source);
    }
    while (jiter_next(rt, it->from, &v)) {
        act_assign(rt, it->act, it->node->target2, v);
        if (jval_truth(rt, jinja_eval(rt, it->act, it->node->c))) {
            *out = target_value(rt, it->act, it->node->target2);
            return true;
        }
    }
    return false;
}

static bool loop_next(struct rt *rt, struct jloop *loop, struct jval *out)
{
    if (loop->after.type != JV_MISSING) {
        *out = loop->after;
        loop->after = jval_missing;
    } else if (!jiter_next(rt, loop->iter, out)) {
        return false;
    }
    loop->index0++;
    loop->before = loop->current;
    loop->current = *out;
    return true;
}

struct jval loop_run(struct rt *rt, const struct jnode *n, struct jact *outer,
                     struct jval source, int64_t depth0, enum flow *flow)
{
    struct jact *act = n->flag ? act_new(rt, outer, n->slots) : outer;
    struct jloop *loop = NULL;
    struct jiter *it = NULL;
    bool is_empty = true;
    struct joutput capture;
    struct jval v;

    *flow = FLOW_NEXT;
    if (n->flag) {
        call_enter(rt);
        output_begin(rt, &capture);
    }
    if (n->c) {
        v = jiter_lazy(rt, JI_LOOP_FILTER, source);
        v.iter->node = n;
        v.iter->act = act_new(rt, outer, n->slots2);
        source = v;
    }
    it = jiter_new(rt, source);
    if (n->has_caller) { /* the variable loop is used */
        loop = rt_alloc(rt, sizeof(*loop));
        loop->source = source;
        loop->iter = it;
        loop->index0 = -1;
        loop->length = -1;
        loop->depth0 = depth0;
        loop->node = n->flag ? n : NULL;
        loop->outer = outer;
    }
    while (loop ? loop_next(rt, loop, &v) : jiter_next(rt, it, &v)) {
        act_assign(rt, act, n->a, v);
        if (loop)
            *act_place(act, n->loop_ref) =
                (struct jval){.type = JV_LOOP, .loop = loop};
        frame_enter(rt, act, &n->frame);
        enum flow inner = jinja_exec(rt, act, &n->list);
        if (inner == FLOW_BREAK)
            break;
        /* upstream notes a round at its end: one cut short does not count */
        if (inner == FLOW_NEXT)
            is_empty = false;
    }
    frame_leave(act, &n->frame);
    if (is_empty && n->more.n) {
        frame_enter(rt, act, &n->frame3);
        *flow = jinja_exec(rt, act, &n->more);
        frame_leave(act, &n->frame3);
    }
    if (!n->flag)
        return jval_none;
    call_leave(rt);
    return output_end(rt, &capture);
}
