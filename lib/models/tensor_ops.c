/* The operations of which model graphs are made. */
#include "models/tensor_ops.h"

#include "base/bug.h"
#include "base/mem.h"
#include "kernels/act.h"
#include "kernels/blocks32.h"
#include "kernels/hadamard.h"
#include "kernels/linear.h"
#include "kernels/norm.h"
#include "kernels/round.h"
#include "kernels/torch_dense.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64 };
static const size_t WORKSPACE_CAP = (size_t)1 << 40;

static const char *const names[] = {"f64", "f32", "f16", "bf16"};

bool precision_parse(const char *name, enum precision *out)
{
    for (int i = 0; i < 4; i++)
        if (strcmp(names[i], name) == 0) {
            *out = (enum precision)i;
            return true;
        }
    return false;
}

const char *precision_name(enum precision p)
{
    return names[p];
}

/* ---- the workspace ---- */

static size_t round_up(size_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static size_t value_size(enum precision precision)
{
    return precision == PRECISION_F64 ? sizeof(double) : sizeof(float);
}

size_t ops_bytes(enum precision precision, size_t values, size_t pieces)
{
    return values * value_size(precision) + pieces * ALIGN;
}

int ops_init(struct ops *o, enum precision precision, enum sums sums,
             size_t bytes, struct err *err)
{
    o->precision = precision;
    o->sums = sums;
    o->used = 0;
    o->size = round_up(bytes);
    o->base = mem_array(o->size, 1, WORKSPACE_CAP, err);
    return o->base ? 0 : -1;
}

void ops_release_all(struct ops *o)
{
    free(o->base);
    o->base = NULL;
}

struct act ops_new(struct ops *o, int64_t rows, int64_t cols, enum dtype dtype)
{
    size_t bytes =
        round_up((size_t)rows * (size_t)cols * value_size(o->precision));
    struct act a = {o->base + o->used, rows, cols, dtype};

    BUG_ON((dtype == DTYPE_F64) != (o->precision == PRECISION_F64));
    o->used += bytes;
    BUG_ON(o->used > o->size);
    return a;
}

struct act ops_zeros(struct ops *o, int64_t rows, int64_t cols)
{
    struct act a = ops_new(o, rows, cols, ops_dtype(o->precision, DTYPE_F32));

    memset(a.data, 0, (size_t)(rows * cols) * value_size(o->precision));
    return a;
}

struct act act_rows(const struct act *a, int64_t first, int64_t count)
{
    size_t row = (size_t)a->cols * act_value_size(a);

    BUG_ON(first < 0 || count < 0 || first + count > a->rows);
    return (struct act){(char *)a->data + (size_t)first * row, count, a->cols,
                        a->dtype};
}

void act_copy(const struct act *dst, const struct act *src)
{
    BUG_ON(dst->rows != src->rows || dst->cols != src->cols ||
           act_is_wide(dst) != act_is_wide(src));
    memcpy(dst->data, src->data,
           (size_t)(src->rows * src->cols) * act_value_size(src));
}

void act_put(const struct act *dst, int64_t to, const struct act *src,
             int64_t from, int64_t count)
{
    size_t size = act_value_size(src);

    BUG_ON(dst->rows != src->rows || act_is_wide(dst) != act_is_wide(src) ||
           count < 0 || to < 0 || to + count > dst->cols || from < 0 ||
           from + count > src->cols);
    for (int64_t r = 0; r < src->rows; r++)
        memcpy((char *)dst->data + (size_t)(r * dst->cols + to) * size,
               (const char *)src->data + (size_t)(r * src->cols + from) * size,
               (size_t)count * size);
}

/* ---- dtypes ---- */

enum dtype ops_dtype(enum precision precision, enum dtype stored)
{
    switch (precision) {
    case PRECISION_F64:
        return DTYPE_F64;
    case PRECISION_F32:
        return DTYPE_F32;
    default:
        return stored;
    }
}

enum dtype ops_promote(enum dtype a, enum dtype b)
{
    if (a == b)
        return a;
    return a == DTYPE_F64 || b == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32;
}

static enum dtype with_param(const struct ops *o, const struct act *x,
                             enum dtype stored)
{
    return ops_promote(x->dtype, ops_dtype(o->precision, stored));
}

void op_round(const struct act *a)
{
    if (!act_is_wide(a))
        round_row(a->dtype, act_f(a), a->rows * a->cols);
}

/* ---- products ---- */

struct act op_rotate(struct ops *o, const struct act *x, const struct linear *l)
{
    if (l->block == 0)
        return *x;
    struct act y = ops_new(o, x->rows, x->cols, x->dtype);
    act_copy(&y, x);
    if (act_is_wide(&y))
        hadamard_rotate_f64(act_d(&y), l->wide_signs, y.cols, l->block, y.rows);
    else
        hadamard_rotate(act_f(&y), l->signs, y.cols, l->block, y.rows);
    op_round(&y);
    return y;
}

void op_unrotate(const struct act *x, const struct linear *l)
{
    if (l->block == 0)
        return;
    if (act_is_wide(x))
        hadamard_inverse_f64(act_d(x), l->wide_signs, x->cols, l->block,
                             x->rows);
    else
        hadamard_inverse(act_f(x), l->signs, x->cols, l->block, x->rows);
    op_round(x);
}

static enum packed_grid grid_of(const struct ops *o, const struct act *x,
                                const struct linear *l)
{
    if (o->sums == SUMS_CHAIN)
        return PACKED_CHAIN;
    return l->block == 0 && x->dtype == DTYPE_F32 ? PACKED_GRID32
                                                  : PACKED_GRID24;
}

struct act op_packed(struct ops *o, const struct act *rotated,
                     const struct linear *l)
{
    /* scales are F16 */
    struct act y = ops_new(o, rotated->rows, l->weight.out,
                           with_param(o, rotated, DTYPE_F16));

    BUG_ON(rotated->cols != l->weight.in);
    if (act_is_wide(&y)) {
        packed_matmul_f64(act_d(&y), act_d(rotated), &l->weight, y.rows);
        return y;
    }
    packed_matmul(act_f(&y), act_f(rotated), &l->weight, grid_of(o, rotated, l),
                  y.rows);
    op_round(&y);
    return y;
}

struct act op_dense(struct ops *o, const struct act *x,
                    const struct dense_weight *w, const struct param *bias)
{
    return op_dense_part(o, x, w, bias, x->rows, w->out);
}

struct act op_dense_part(struct ops *o, const struct act *x,
                         const struct dense_weight *w, const struct param *bias,
                         int64_t call_rows, int64_t call_out)
{
    struct act y = ops_new(o, x->rows, w->out, with_param(o, x, w->dtype));

    BUG_ON(x->cols != w->in);
    if (act_is_wide(&y)) {
        dense_matmul_f64(act_d(&y), act_d(x), w, bias ? bias->d : NULL, y.rows);
        return y;
    }
    bool is_bf16 = x->dtype == DTYPE_BF16 && w->dtype == DTYPE_BF16;
    if (o->sums == SUMS_TORCH_F32)
        linear_torch(act_f(&y), act_f(x), w, bias ? bias->f : NULL, y.rows,
                     call_rows);
    else if (o->sums == SUMS_TORCH && is_bf16)
        torch_dense(act_f(&y), act_f(x), w, bias ? bias->f : NULL, y.rows,
                    call_rows, call_out);
    else if (o->sums == SUMS_WRITTEN && is_bf16)
        blocks32_matmul(act_f(&y), act_f(x), w, bias ? bias->f : NULL, y.rows,
                        0);
    else
        dense_matmul_order(act_f(&y), act_f(x), w, bias ? bias->f : NULL,
                           o->sums == SUMS_CHAIN ? DENSE_CHAIN : DENSE_CHAIN128,
                           y.rows);
    op_round(&y);
    return y;
}

struct act op_dense_then_bias(struct ops *o, const struct act *x,
                              const struct dense_weight *w,
                              const struct param *bias)
{
    struct act y = op_dense(o, x, w, NULL);

    for (int64_t r = 0; r < y.rows; r++)
        for (int64_t i = 0; i < y.cols; i++) {
            if (act_is_wide(&y))
                act_d(&y)[r * y.cols + i] += bias->d[i];
            else
                act_f(&y)[r * y.cols + i] += bias->f[i];
        }
    y.dtype = with_param(o, &y, bias->dtype);
    op_round(&y);
    return y;
}

struct act op_affine(struct ops *o, const struct act *x, const struct affine *a,
                     int64_t call_rows)
{
    return call_rows == 1 ? op_dense_then_bias(o, x, &a->weight, &a->bias)
                          : op_dense(o, x, &a->weight, &a->bias);
}

/* ---- rows ---- */

struct act op_rms_norm(struct ops *o, const struct act *x,
                       const struct param *weight, int64_t width, double eps)
{
    enum dtype t = weight ? with_param(o, x, weight->dtype) : x->dtype;
    struct act y = ops_new(o, x->rows, x->cols, t);
    int64_t rows = x->rows * (x->cols / width);

    BUG_ON(x->cols % width || (weight && weight->count != width));
    if (act_is_wide(x))
        rms_norm_f64(act_d(&y), act_d(x), weight ? weight->d : NULL, rows,
                     width, eps);
    else
        rms_norm(act_f(&y), act_f(x), weight ? weight->f : NULL, rows, width,
                 eps, t);
    return y;
}

struct act op_layer_norm(struct ops *o, const struct act *x,
                         const struct scale_shift *w, double eps)
{
    enum dtype t = ops_promote(with_param(o, x, w->weight.dtype),
                               ops_dtype(o->precision, w->bias.dtype));
    struct act y = ops_new(o, x->rows, x->cols, t);

    if (act_is_wide(x))
        layer_norm_f64(act_d(&y), act_d(x), w->weight.d, w->bias.d, x->rows,
                       x->cols, eps);
    else
        layer_norm(act_f(&y), act_f(x), w->weight.f, w->bias.f, x->rows,
                   x->cols, eps, t);
    return y;
}

static inline struct act pairwise(struct ops *o, const struct act *a,
                                  const struct act *b, const bool is_product)
{
    struct act y =
        ops_new(o, a->rows, a->cols, ops_promote(a->dtype, b->dtype));
    int64_t n = a->rows * a->cols;

    BUG_ON(b->rows != a->rows || b->cols != a->cols);
    for (int64_t i = 0; i < n; i++) {
        if (act_is_wide(&y))
            act_d(&y)[i] = is_product ? act_d(a)[i] * act_d(b)[i]
                                      : act_d(a)[i] + act_d(b)[i];
        else
            act_f(&y)[i] = is_product ? act_f(a)[i] * act_f(b)[i]
                                      : act_f(a)[i] + act_f(b)[i];
    }
    op_round(&y);
    return y;
}

struct act op_add(struct ops *o, const struct act *a, const struct act *b)
{
    return pairwise(o, a, b, false);
}

struct act op_mul(struct ops *o, const struct act *a, const struct act *b)
{
    return pairwise(o, a, b, true);
}

void op_scale(const struct act *x, double factor)
{
    int64_t n = x->rows * x->cols;
    float rounded = act_is_wide(x) ? 0 : round_from_f64(x->dtype, factor);

    for (int64_t i = 0; i < n; i++) {
        if (act_is_wide(x))
            act_d(x)[i] *= factor;
        else
            act_f(x)[i] *= rounded;
    }
    op_round(x);
}

struct act op_columns(struct ops *o, const struct act *x, int64_t first,
                      int64_t count)
{
    struct act y = ops_new(o, x->rows, count, x->dtype);

    act_put(&y, 0, x, first, count);
    return y;
}

/* ---- activations and gates ---- */

/* A row kernel of both widths, over all values in place. */
#define IN_PLACE(kernel, x)                                               \
    do {                                                                  \
        if (act_is_wide(x))                                               \
            kernel##_f64(act_d(x), act_d(x), (x)->rows *(x)->cols);       \
        else                                                              \
            kernel(act_f(x), act_f(x), (x)->rows *(x)->cols, (x)->dtype); \
    } while (0)

void op_silu(const struct act *x)
{
    IN_PLACE(silu_row, x);
}

void op_sigmoid(const struct act *x)
{
    IN_PLACE(sigmoid_row, x);
}

void op_gelu_tanh(const struct act *x)
{
    IN_PLACE(gelu_tanh_row, x);
}

void op_gelu_erf(const struct act *x)
{
    IN_PLACE(gelu_erf_row, x);
}

/* Two operands of one shape into a new activation of dtype t. */
#define OF_TWO(kernel, y, a, b, t)                                            \
    do {                                                                      \
        BUG_ON((a)->rows != (b)->rows || (a)->cols != (b)->cols);             \
        if (act_is_wide(&(y)))                                                \
            kernel##_f64(act_d(&(y)), act_d(a), act_d(b),                     \
                         (a)->rows *(a)->cols);                               \
        else                                                                  \
            kernel(act_f(&(y)), act_f(a), act_f(b), (a)->rows *(a)->cols, t); \
    } while (0)

struct act op_silu_mul(struct ops *o, const struct act *gate,
                       const struct act *up)
{
    enum dtype t = ops_promote(gate->dtype, up->dtype);
    struct act y = ops_new(o, gate->rows, gate->cols, t);

    OF_TWO(silu_mul_row, y, gate, up, t);
    return y;
}

struct act op_mul_sigmoid(struct ops *o, const struct act *x,
                          const struct act *gate)
{
    enum dtype t = ops_promote(x->dtype, gate->dtype);
    struct act y = ops_new(o, x->rows, x->cols, t), g = y;

    if (gate->dtype == t) {
        OF_TWO(mul_sigmoid_row, y, x, gate, t);
        return y;
    }
    /* the sigmoid rounds to the gate's own dtype */
    act_copy(&g, gate);
    g.dtype = gate->dtype;
    op_sigmoid(&g);
    for (int64_t i = 0; i < y.rows * y.cols; i++)
        act_f(&y)[i] = act_f(x)[i] * act_f(&g)[i];
    op_round(&y);
    return y;
}

struct act op_silu_gate(struct ops *o, const struct act *x, const struct act *z,
                        enum dtype t)
{
    struct act y = ops_new(o, x->rows, x->cols, t);

    OF_TWO(silu_gate_row, y, z, x, t);
    return y;
}

struct act op_decay(struct ops *o, const struct act *a,
                    const struct param *dt_bias, const struct param *a_log)
{
    struct act y =
        ops_new(o, a->rows, a->cols, ops_dtype(o->precision, DTYPE_F32));

    BUG_ON(dt_bias->count != a->cols || a_log->count != a->cols);
    if (act_is_wide(a))
        decay_rows_f64(act_d(&y), act_d(a), dt_bias->d, a_log->d, a->rows,
                       a->cols);
    else
        decay_rows(act_f(&y), act_f(a), dt_bias->f, a_log->f, a->rows, a->cols,
                   with_param(o, a, dt_bias->dtype));
    return y;
}
