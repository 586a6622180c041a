#ifndef MODELS_MOE_H
#define MODELS_MOE_H

#include "base/err.h"
#include "models/checkpoint.h"
#include "models/tensor_ops.h"
#include "models/weights.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Mixture of experts: which experts a row takes, and what they give it.  Each
 * row's result depends on that row alone.
 *
 *     scores = the family's function of the router's logits
 *     r = op_route(o, &scores, bias, &routing)
 *     y = op_experts(o, &x, &r, &experts, err)
 */
struct routing {
    int64_t chosen;              /* experts a row takes */
    int64_t groups, groups_kept; /* of consecutive experts; 1, 1: no limit */
    bool is_normalised;          /* weights divided by (their sum + eps) */
    double eps;
    double scale; /* then multiplied, unless it is 1 */
};

/* Slot s of row t took expert[t * chosen + s] with weight [t, s]. */
struct routed {
    int64_t chosen;
    const int64_t *expert; /* in the workspace */
    struct act weight;     /* [rows, chosen], of the scores' dtype */
    struct act chosen_ids; /* [rows, chosen], the same as numbers */
    struct act margin;     /* [rows, 1]: from the last chosen score (with bias)
                              to the first left out; infinite when given or all
                              are chosen; f32 in every rounding precision */
};

/*
 * The `chosen` largest of score + bias (bias may be NULL) in kernels/topk.h's
 * order; with groups, only those of the groups whose two best scores sum
 * highest.  The weights are the scores without bias; each step rounds to their
 * dtype (F32 for most routers).
 */
struct routed op_route(struct ops *o, const struct act *scores,
                       const struct param *bias, const struct routing *how);

/* The same with the experts given, [rows, chosen]. */
struct routed op_route_given(struct ops *o, const struct act *scores,
                             const int64_t *experts, const struct routing *how);

struct expert {
    struct dense_weight gate, up, down;
};

/* ---- their weights in a checkpoint ---- */

/* Adds PREFIX.gate_proj.weight, .up_proj.weight [width, in] and
 * .down_proj.weight [in, width]. */
void expert_part(struct expert *e, struct part *p, int64_t width, int64_t in,
                 const char *prefix);

/*
 * Canonical spellings under `prefix` ("model.layers.3.mlp.experts"), whichever
 * of them is there:
 *     PREFIX.E.gate_proj.weight, .up_proj.weight [width, in], .down_proj.weight
 *     PREFIX.gate_up_proj [E, 2 width, in], gate rows first, and
 *     PREFIX.down_proj [E, in, width]
 *     PREFIX.gate_proj.weight, .up_proj.weight, .down_proj.weight, stacked
 */
struct experts {
    struct checkpoint *weights;
    char prefix[128];
    int64_t count, in, width;
    /* the unit between the products: op_swiglu(), or the family's own */
    struct act (*unit)(struct ops *o, const struct act *gate,
                       const struct act *up, const void *ctx);
    const void *ctx;
    /* Rows of each of upstream's calls, which the unit may tell apart
     * (kernels/eager.h); NULL: all rows are of one. */
    const int64_t *call_rows;
};

/* Checks every expert's tensors (checkpoint_expect). */
size_t experts_bytes(const struct experts *e); /* of one of them, loaded */
int experts_expect(const struct experts *e, struct err *err);

/*
 * sum over the slots of weight * down(unit(gate x, up x)), in slot order, with
 * SUMS_TORCH as cascade_column_sum() adds them: each product rounds to the
 * promoted dtype of the two, the sum (f32) once to x's.  Experts are read one
 * at a time, each once for every EXPERT_ROWS rows; a call's rows are cut at its
 * own multiples of them, whatever its neighbours.
 */
enum { EXPERT_ROWS = 4096 };
int op_experts(struct ops *o, const struct act *x, const struct routed *r,
               const struct experts *e, struct act *out, struct err *err);

/* Numbers that routing and experts need for `rows` rows. */
size_t moe_values(const struct experts *e, const struct routing *how,
                  int64_t rows);

/* down(unit(gate x, up x)): a dense or a shared expert. */
struct act op_expert(struct ops *o, const struct act *x, const struct expert *w,
                     const struct experts *e);

/* op_swiglu() as a unit. */
struct act expert_swiglu(struct ops *o, const struct act *gate,
                         const struct act *up, const void *ctx);

/* The same of gate at most, and up from minus to plus, the limit: a double that
 * ctx points to, rounded to their dtype; NaN: none.  Both are changed. */
struct act expert_swiglu_limited(struct ops *o, const struct act *gate,
                                 const struct act *up, const void *ctx);
#endif
