#ifndef JINJA_JINJA_RUN_H
#define JINJA_JINJA_RUN_H

#include "jinja/jinja_internal.h"

/* A template while it runs. */

/* jinja_frame.c: the variables of a function */
struct jact *act_new(struct rt *rt, struct jact *outer, uint16_t slots);
struct jval *act_place(struct jact *act, struct jref ref);
void act_assign(struct rt *rt, struct jact *act, const struct jnode *target,
                struct jval v);
void frame_enter(struct rt *rt, struct jact *act, const struct jframe *frame);
void frame_leave(struct jact *act, const struct jframe *frame);

/* jinja_frame.c: the output, or what captures it; `at`: what wrote it */
void output_add(struct rt *rt, uint32_t at, const char *data, size_t len);
/* The same of the template's own text, which begins at `at` of its source. */
void output_text(struct rt *rt, uint32_t at, const char *data, size_t len);
void output_begin(struct rt *rt, struct joutput *capture);
struct jval output_end(struct rt *rt, const struct joutput *capture);

/* jinja_call.c */
void call_enter(struct rt *rt); /* one deeper; call_leave() ends it */
void call_leave(struct rt *rt);
/* The arguments of a call, filter or test; a call block's `caller`, or
 * missing, stands before what ** adds. */
struct jargs call_args(struct rt *rt, struct jact *act, const struct jnode *n,
                       struct jval caller);

/* jinja_eval.c */
struct jval jinja_eval(struct rt *rt, struct jact *act, const struct jnode *n);
/* Filters whose innermost value is given: a filter or set block's text. */
struct jval jinja_eval_filters(struct rt *rt, struct jact *act,
                               const struct jnode *n, struct jval text);

/* jinja_exec.c: statements, until one of them leaves its loop */
enum flow { FLOW_NEXT, FLOW_BREAK, FLOW_CONTINUE };
enum flow jinja_exec(struct rt *rt, struct jact *act,
                     const struct jnodes *list);

/* jinja_loop.c: a for statement over `source`.  A recursive loop runs as a
 * function and gives its text; another writes into its surroundings, and a
 * break of an outer loop in its else passes on. */
struct jval loop_run(struct rt *rt, const struct jnode *n, struct jact *outer,
                     struct jval source, int64_t depth0, enum flow *flow);
#endif
