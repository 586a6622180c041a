/* Operations of graphs whose upstream is PyTorch on a CPU. */
#include "models/eager_ops.h"

#include "base/bug.h"
#include "kernels/cascade.h"
#include "kernels/eager.h"
#include "kernels/linear.h"
#include "kernels/moments.h"
#include "kernels/softmax.h"

enum dtype ops_compute(enum precision p)
{
    static const enum dtype of[] = {DTYPE_F64, DTYPE_F32, DTYPE_F16,
                                    DTYPE_BF16};

    return of[p];
}

struct act op_eager_rms_norm(struct ops *o, const struct act *x,
                             const struct param *weight, int64_t width,
                             double eps)
{
    if (act_is_wide(x))
        return op_rms_norm(o, x, weight, width, eps);
    enum dtype stored =
        weight ? ops_dtype(o->precision, weight->dtype) : x->dtype;
    struct act y = ops_new(o, x->rows, x->cols, ops_promote(x->dtype, stored));

    BUG_ON(x->cols % width || (weight && weight->count != width));
    cascade_rms_norm(act_f(&y), act_f(x), weight ? weight->f : NULL,
                     x->rows * (x->cols / width), width, eps, y.dtype);
    return y;
}

struct act op_eager_layer_norm(struct ops *o, const struct act *x,
                               const struct scale_shift *w, double eps)
{
    if (act_is_wide(x))
        return op_layer_norm(o, x, w, eps);
    struct act y = ops_new(o, x->rows, x->cols, x->dtype);

    BUG_ON(w->weight.count != x->cols || w->bias.count != x->cols);
    moments_layer_norm(act_f(&y), act_f(x), w->weight.f, w->bias.f, x->rows,
                       x->cols, eps, y.dtype);
    return y;
}

struct act op_eager_linear(struct ops *o, const struct act *x,
                           const struct dense_weight *w)
{
    if (x->dtype != DTYPE_F32 ||
        (o->sums != SUMS_TORCH && o->sums != SUMS_TORCH_F32))
        return op_dense(o, x, w, NULL);
    struct act y = ops_new(o, x->rows, w->out, DTYPE_F32);

    BUG_ON(x->cols != w->in);
    linear_torch(act_f(&y), act_f(x), w, NULL, x->rows, x->rows);
    return y;
}

struct act op_swiglu(struct ops *o, const struct act *gate,
                     const struct act *up)
{
    enum dtype t = ops_promote(gate->dtype, up->dtype);
    struct act y = ops_new(o, gate->rows, gate->cols, t);
    int64_t n = gate->rows * gate->cols;

    BUG_ON(up->rows != gate->rows || up->cols != gate->cols);
    if (act_is_wide(&y))
        eager_silu_mul_f64(act_d(&y), act_d(gate), act_d(up), n);
    else
        eager_silu_mul(act_f(&y), act_f(gate), act_f(up), n, t);
    return y;
}

struct act op_centred_norm(struct ops *o, const struct act *x,
                           const struct param *weight, int64_t width,
                           double eps)
{
    enum dtype wide = ops_dtype(o->precision, DTYPE_F32);
    struct act one = ops_new(o, 1, width, wide), z = *x;
    struct param centred = {.dtype = wide, .count = width};

    BUG_ON(weight->count != width);
    for (int64_t i = 0; i < width; i++) {
        if (act_is_wide(&one))
            act_d(&one)[i] = 1 + weight->d[i];
        else
            act_f(&one)[i] = 1 + weight->f[i];
    }
    centred.f = one.data;
    centred.d = one.data;
    z.dtype = wide;
    z = op_eager_rms_norm(o, &z, &centred, width, eps);
    z.dtype = x->dtype;
    op_round(&z);
    return z;
}

/* PyTorch runs along the tokens of a channel: those after the last 32 of them
 * take the exact exponential, which eager_silu() takes for fewer than 32. */
enum { SILU_TOKENS = 32, SILU_EXACT = 16 };
void op_silu_by_channel(const struct act *x)
{
    int64_t whole = x->rows / SILU_TOKENS * SILU_TOKENS * x->cols;
    int64_t n = x->rows * x->cols;

    eager_silu(act_f(x), act_f(x), whole, x->dtype);
    for (int64_t at = whole; at < n; at += SILU_EXACT)
        eager_silu(act_f(x) + at, act_f(x) + at,
                   n - at < SILU_EXACT ? n - at : SILU_EXACT, x->dtype);
}

void op_eager_sigmoid(const struct act *x)
{
    int64_t n = x->rows * x->cols;

    if (act_is_wide(x))
        eager_sigmoid_f64(act_d(x), act_d(x), n);
    else
        eager_sigmoid(act_f(x), act_f(x), n, x->dtype);
}

void op_eager_softmax(const struct act *x)
{
    for (int64_t r = 0; r < x->rows; r++) {
        struct act row = act_rows(x, r, 1);

        if (act_is_wide(x))
            softmax_row_f64(act_d(&row), act_d(&row), x->cols);
        else
            softmax_vec_row(act_f(&row), act_f(&row), x->cols);
    }
    op_round(x);
}

struct act op_sdpa(struct ops *o, const struct act *q, const struct act *k,
                   const struct act *v, const struct sdpa *how)
{
    struct act y = ops_new(o, q->rows, how->heads * how->value_dim, q->dtype);
    struct sdpa math = *how;

    BUG_ON(q->cols != how->heads * how->key_dim ||
           k->cols != how->kv_heads * how->key_dim ||
           v->cols != how->kv_heads * how->value_dim || k->rows != v->rows);
    if (act_is_wide(q) || (q->dtype != DTYPE_BF16 && how->kind != SDPA_BATCH))
        math.kind = SDPA_MATH;
    if (act_is_wide(q))
        sdpa_f64(act_d(&y), act_d(q), act_d(k), act_d(v), &math, q->rows,
                 k->rows);
    else
        sdpa(act_f(&y), act_f(q), act_f(k), act_f(v), &math, q->rows, k->rows);
    op_round(&y);
    return y;
}
