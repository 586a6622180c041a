#ifndef MODELS_EAGER_OPS_H
#define MODELS_EAGER_OPS_H

#include "kernels/sdpa.h"
#include "models/tensor_ops.h"

/*
 * Operations of graphs whose upstream is PyTorch on a CPU: in f16 and bf16 each
 * is computed in f32 and rounded once.  (tensor_ops.h rounds activations as MLX
 * does, step by step.)
 */

/* The dtype of a precision: BF16 for bf16 and so on. */
enum dtype ops_compute(enum precision p);

/* RMS norm as op_rms_norm() does it, its mean in PyTorch's order
 * (kernels/cascade.h). */
struct act op_eager_rms_norm(struct ops *o, const struct act *x,
                             const struct param *weight, int64_t width,
                             double eps);

/* LayerNorm as PyTorch computes it (kernels/moments.h), rounded once. */
struct act op_eager_layer_norm(struct ops *o, const struct act *x,
                               const struct scale_shift *w, double eps);

/* x W^T of one of upstream's calls, the rows of one record; in f32 in
 * PyTorch's order there (kernels/linear.h). */
struct act op_eager_linear(struct ops *o, const struct act *x,
                           const struct dense_weight *w);

/* silu(gate) * up, both results rounded. */
struct act op_swiglu(struct ops *o, const struct act *gate,
                     const struct act *up);

/* x * rsqrt(mean + eps) * (1 + weight) in f32 over `width` columns each,
 * rounded once to x's dtype: norms whose weights lie around 0. */
struct act op_centred_norm(struct ops *o, const struct act *x,
                           const struct param *weight, int64_t width,
                           double eps);

/* silu in place, not of f64, of a tensor that upstream holds channel by
 * channel. */
void op_silu_by_channel(const struct act *x);

/* In place.  x is one of upstream's calls, the rows of one record: PyTorch
 * takes the last few values of a tensor by another exp (kernels/eager.h). */
void op_eager_sigmoid(const struct act *x);

/* Softmax of each row as PyTorch's vectorised one computes it
 * (kernels/softmax.h), rounded once; in place. */
void op_eager_softmax(const struct act *x);

/*
 * Attention of all rows of one sequence over its own rows.  The kind is that of
 * the rounding precisions; f32 and f64 always take SDPA_MATH.  One rounding to
 * q's dtype.
 */
struct act op_sdpa(struct ops *o, const struct act *q, const struct act *k,
                   const struct act *v, const struct sdpa *how);
#endif
