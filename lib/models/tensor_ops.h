#ifndef MODELS_TENSOR_OPS_H
#define MODELS_TENSOR_OPS_H

#include "base/err.h"
#include "models/weights.h"
#include "tensor/dtype.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * The operations of which model graphs are made.  A graph is written once; the
 * precision says what its operations compute:
 *
 *     f16, bf16  rounding-faithful: sums in f32, every operation's result
 * rounded to the promoted dtype of its operands, as upstream does f32
 * everything in f32 f64        everything in double
 *
 * Values lie as float, or as double for f64; `dtype` is what they are rounded
 * to.  All memory comes from one workspace, sized before the first layer and
 * handed out as a stack: ops_mark(), work, ops_release().
 */
enum precision { PRECISION_F64, PRECISION_F32, PRECISION_F16, PRECISION_BF16 };

bool precision_parse(const char *name, enum precision *out);
const char *precision_name(enum precision p);

/* An activation [rows, cols], rows contiguous. */
struct act {
    void *data; /* double when dtype is DTYPE_F64, else float */
    int64_t rows, cols;
    enum dtype dtype;
};

static inline float *act_f(const struct act *a)
{
    return (float *)a->data;
}
static inline double *act_d(const struct act *a)
{
    return (double *)a->data;
}
static inline bool act_is_wide(const struct act *a)
{
    return a->dtype == DTYPE_F64;
}

/* Bytes of one of its values. */
static inline size_t act_value_size(const struct act *a)
{
    return act_is_wide(a) ? sizeof(double) : sizeof(float);
}

/* Rows [first, first + count), in place. */
struct act act_rows(const struct act *a, int64_t first, int64_t count);

/* Copies values; the shapes agree, dst's dtype is promoted from src's. */
void act_copy(const struct act *dst, const struct act *src);

/* Copies columns [from, from + count) of src's rows to those of dst's from
 * `to`; both have as many rows. */
void act_put(const struct act *dst, int64_t to, const struct act *src,
             int64_t from, int64_t count);

/*
 * The order in which linear layers add up, by name in stage records.  written:
 * grid24 or grid32, of bf16 with bf16 blocks32, else chain128.  torch: of bf16
 * with bf16 as PyTorch's calls do (kernels/torch_dense.h).  torch-f32: all of
 * them as PyTorch adds up products of f32 (kernels/linear.h), for graphs whose
 * operations are computed in f32 before they are rounded.  chain: one chain
 * each, as MLX's CPU backend does, for passes whose references were recorded
 * there.  f64 always sums as written.
 */
enum sums { SUMS_WRITTEN, SUMS_TORCH, SUMS_TORCH_F32, SUMS_CHAIN };

struct ops {
    enum precision precision;
    enum sums sums;
    char *base;
    size_t size, used;
};

int ops_init(struct ops *o, enum precision precision, enum sums sums,
             size_t bytes, struct err *err);
void ops_release_all(struct ops *o);

/* The workspace bytes of `values` numbers in `pieces` allocations. */
size_t ops_bytes(enum precision precision, size_t values, size_t pieces);

static inline size_t ops_mark(const struct ops *o)
{
    return o->used;
}
static inline void ops_release(struct ops *o, size_t mark)
{
    o->used = mark;
}
struct act ops_new(struct ops *o, int64_t rows, int64_t cols, enum dtype dtype);
/* Zeros of F32, in f64 of F64: what a recurrence or convolution begins with. */
struct act ops_zeros(struct ops *o, int64_t rows, int64_t cols);

/* The dtype that an operand stored as `stored` has in this precision, and that
 * of an operation on two operands (f16 with f32 or bf16 is f32). */
enum dtype ops_dtype(enum precision precision, enum dtype stored);
enum dtype ops_promote(enum dtype a, enum dtype b);

/* ---- all return a new activation unless they say `in place` ---- */

/* The input of packed layers: rotated by block and signs, rounded to x's dtype;
 * x itself when the layer is not rotated. */
struct act op_rotate(struct ops *o, const struct act *x,
                     const struct linear *l);

/* The way back, in place: rows of an embedding table after their lookup. */
void op_unrotate(const struct act *x, const struct linear *l);

/* W x of a packed layer whose input is rotated already. */
struct act op_packed(struct ops *o, const struct act *rotated,
                     const struct linear *l);

/* W x (+ bias, added before the one rounding): in the
 * order that the sums name. */
struct act op_dense(struct ops *o, const struct act *x,
                    const struct dense_weight *w, const struct param *bias);

/* The same of x as part of a call of upstream's that has so many rows, and of w
 * as part of so many outputs. */
struct act op_dense_part(struct ops *o, const struct act *x,
                         const struct dense_weight *w, const struct param *bias,
                         int64_t call_rows, int64_t call_out);

/* W x rounded, then bias added and rounded again (a convolution's way). */
struct act op_dense_then_bias(struct ops *o, const struct act *x,
                              const struct dense_weight *w,
                              const struct param *bias);

/* W x + bias of a linear layer, by upstream's rule: a call of one row rounds
 * before the bias, any other after it.  call_rows: rows of upstream's call. */
struct act op_affine(struct ops *o, const struct act *x, const struct affine *a,
                     int64_t call_rows);

/* Row-wise over `width` columns each (cols is a multiple of it). */
struct act op_rms_norm(struct ops *o, const struct act *x,
                       const struct param *weight, int64_t width, double eps);
struct act op_layer_norm(struct ops *o, const struct act *x,
                         const struct scale_shift *w, double eps);

struct act op_add(struct ops *o, const struct act *a, const struct act *b);
struct act op_mul(struct ops *o, const struct act *a, const struct act *b);

/* Rounds every value to x's dtype; in place. */
void op_round(const struct act *x);

/* x times a factor that is rounded to x's dtype first; in place. */
void op_scale(const struct act *x, double factor);

/* silu(gate) * up; silu, x sigmoid: per-operation rounding. */
struct act op_silu_mul(struct ops *o, const struct act *gate,
                       const struct act *up);
void op_silu(const struct act *x); /* in place */
struct act op_mul_sigmoid(struct ops *o, const struct act *x,
                          const struct act *gate);
void op_sigmoid(const struct act *x);   /* in place */
void op_gelu_tanh(const struct act *x); /* in place */
void op_gelu_erf(const struct act *x);  /* in place */

/* silu(z) * x in f32, rounded once to t: the gated delta net's output gate. */
struct act op_silu_gate(struct ops *o, const struct act *x, const struct act *z,
                        enum dtype t);

/* exp(-exp(a_log) * softplus(a + dt_bias)), f32 in every rounding precision. */
struct act op_decay(struct ops *o, const struct act *a,
                    const struct param *dt_bias, const struct param *a_log);

/* Columns [first, first + count) as a new activation. */
struct act op_columns(struct ops *o, const struct act *x, int64_t first,
                      int64_t count);
#endif
