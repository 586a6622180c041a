/* Statements. */
#include "jinja/jinja_run.h"

#include "base/bug.h"

static void check_namespaces(struct rt *rt, struct jact *act,
                             const struct jnode *n)
{
    if (n->type == JN_TUPLE)
        for (size_t i = 0; i < n->list.n; i++)
            check_namespaces(rt, act, n->list.v[i]);
    if (n->type == JN_NSREF && act_place(act, n->ref)->type != JV_NAMESPACE)
        rt_fail(rt, ERR_INPUT,
                "cannot assign attribute on non-namespace object");
}

static struct jval make_macro(struct rt *rt, struct jact *act,
                              const struct jnode *n, const char *name)
{
    struct jmacro *m = rt_alloc(rt, sizeof(*m));

    m->node = n;
    m->outer = act;
    m->name = name;
    return (struct jval){.type = JV_MACRO, .macro = m};
}

static void print(struct rt *rt, uint32_t at, struct jval v)
{
    v = jval_to_str(rt, v);
    output_add(rt, at, v.s->data, v.s->len);
}

/* What a call or filter block gives is joined as it is: only text will do. */
static void write_text(struct rt *rt, uint32_t at, struct jval v)
{
    rt->at = at;
    if (v.type != JV_STR)
        rt_fail(rt, ERR_INPUT, "the block's value is no string but %s",
                jval_typename(v));
    output_add(rt, at, v.s->data, v.s->len);
}

static void exec_call_block(struct rt *rt, struct jact *act,
                            const struct jnode *n)
{
    struct jval caller = make_macro(rt, act, n, NULL);
    struct jval callee = jinja_eval(rt, act, n->a->a);
    struct jargs args = call_args(rt, act, n->a, caller);

    rt->at = n->at;
    write_text(rt, n->at, jinja_call(rt, callee, &args));
}

static void exec_generation(struct rt *rt, struct jact *act,
                            const struct jnode *n)
{
    struct jinja_results *r = rt->results;
    struct jact *inner = act_new(rt, act, n->slots);
    struct joutput capture;

    if (r && r->want_spans && rt->out->up)
        rt_fail(rt, ERR_UNSUPPORTED,
                "the span of a generation block inside another block's text");
    if (n->has_caller)
        inner->slots[n->caller_ref.slot] = jval_undef(rt, "no caller defined");
    if (n->has_kwargs)
        inner->slots[n->kwargs_ref.slot] = jval_dict(rt);
    if (n->has_varargs)
        inner->slots[n->varargs_ref.slot] = jval_list(rt, JV_TUPLE, 0);
    call_enter(rt);
    output_begin(rt, &capture);
    frame_enter(rt, inner, &n->frame);
    jinja_exec(rt, inner, &n->list);
    output_end(rt, &capture);
    call_leave(rt);
    if (r && r->want_spans) {
        r->spans = rt_grow(rt, r->spans, r->span_count, &rt->span_cap,
                           sizeof(*r->spans));
        /* in bytes here; made code points at the end */
        r->spans[r->span_count++] =
            (struct jinja_span){rt->out->len, rt->out->len + capture.len};
    }
    for (size_t i = 0; i < capture.origin_n; i++) {
        size_t end = i + 1 < capture.origin_n ? capture.origins[i + 1].begin
                                              : capture.len;

        (capture.origins[i].is_text ? output_text : output_add)(
            rt, capture.origins[i].at, capture.data + capture.origins[i].begin,
            end - capture.origins[i].begin);
    }
    if (capture.origin_n == 0)
        output_add(rt, n->at, capture.data, capture.len);
}

static enum flow exec_if(struct rt *rt, struct jact *act, const struct jnode *n)
{
    for (size_t i = 0; i < n->list.n; i++)
        if (jval_truth(rt, jinja_eval(rt, act, n->list.v[i])))
            return jinja_exec(rt, act, &n->more.v[i]->list);
    return n->a ? jinja_exec(rt, act, &n->a->list) : FLOW_NEXT;
}

/* with, set and filter blocks: a scope, and text for the last two. */
static enum flow exec_scoped(struct rt *rt, struct jact *act,
                             const struct jnode *n)
{
    struct joutput capture;
    struct jval text;
    enum flow flow;

    frame_enter(rt, act, &n->frame);
    for (size_t i = 0; n->type == JN_WITH && i < n->more.n; i++)
        act_assign(rt, act, n->more.v[i], jinja_eval(rt, act, n->other.v[i]));
    if (n->type != JN_WITH)
        output_begin(rt, &capture);
    flow = jinja_exec(rt, act, &n->list);
    if (n->type != JN_WITH) {
        text = output_end(rt, &capture);
        if (flow != FLOW_NEXT)
            return flow; /* a break drops the text */
        if (n->type == JN_SET_BLOCK)
            act_assign(rt, act, n->a,
                       n->b ? jinja_eval_filters(rt, act, n->b, text) : text);
        else
            write_text(rt, n->at, jinja_eval_filters(rt, act, n->a, text));
    }
    if (flow == FLOW_NEXT)
        frame_leave(act, &n->frame);
    return flow;
}

static enum flow exec(struct rt *rt, struct jact *act, const struct jnode *n)
{
    enum flow flow = FLOW_NEXT;
    struct jval v;

    switch (n->type) {
    case JN_DATA:
        output_text(rt, n->at, n->value.s->data, n->value.s->len);
        break;
    case JN_PRINT:
        for (size_t i = 0; i < n->list.n; i++) {
            v = jinja_eval(rt, act, n->list.v[i]);
            rt->at = n->at;
            print(rt, n->at, v);
        }
        break;
    case JN_IF:
        return exec_if(rt, act, n);
    case JN_FOR:
        v = jinja_eval(rt, act, n->b);
        rt->at = n->at;
        v = loop_run(rt, n, act, v, 0, &flow);
        if (n->flag)
            print(rt, n->at, v);
        break;
    case JN_SET:
        check_namespaces(rt, act, n->a);
        v = jinja_eval(rt, act, n->b);
        rt->at = n->at;
        act_assign(rt, act, n->a, v);
        break;
    case JN_MACRO:
        *act_place(act, n->a->ref) = make_macro(rt, act, n, n->name);
        break;
    case JN_CALL_BLOCK:
        exec_call_block(rt, act, n);
        break;
    case JN_GENERATION:
        exec_generation(rt, act, n);
        break;
    case JN_SET_BLOCK:
    case JN_FILTER_BLOCK:
    case JN_WITH:
        return exec_scoped(rt, act, n);
    case JN_BREAK:
        return FLOW_BREAK;
    case JN_CONTINUE:
        return FLOW_CONTINUE;
    case JN_LOADER:
        rt_fail(rt, ERR_INPUT, "'%s': there is no loader for other templates",
                n->name);
    default:
        BUG("not a statement");
    }
    return flow;
}

enum flow jinja_exec(struct rt *rt, struct jact *act, const struct jnodes *list)
{
    enum flow flow = FLOW_NEXT;

    rt_enter(rt);
    for (size_t i = 0; i < list->n && flow == FLOW_NEXT; i++) {
        rt_step(rt, 1);
        rt->at = list->v[i]->at;
        flow = exec(rt, act, list->v[i]);
    }
    rt_leave(rt);
    return flow;
}

void jinja_run(struct rt *rt, const struct jinja_template *t)
{
    struct jact *act = act_new(rt, NULL, t->slots);

    frame_enter(rt, act, &t->frame);
    jinja_exec(rt, act, &t->root->list);
}
