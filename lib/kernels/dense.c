/* Products with f16, bf16 and f32 weights in the written order chain128. */
#include "kernels/dense.h"

#include "base/bug.h"
#include "kernels/kernels_internal.h"
#include "kernels/threads.h"

#include <math.h>

static const void *dense_at(const struct dense_weight *w, int64_t row,
                            int64_t column)
{
    int64_t size = dtype_bits(w->dtype) / 8;

    return (const char *)w->data + (row * w->in + column) * size;
}

#include "kernels/real_f32.inc"

#include "kernels/dense_plain.inc"

#include "kernels/real_f64.inc"

#include "kernels/dense_plain.inc"

struct dense_weight dense_rows(const struct dense_weight *w, int64_t first,
                               int64_t count)
{
    struct dense_weight part = *w;

    BUG_ON(first < 0 || count < 0 || first > w->out - count);
    part.data = dense_at(w, first, 0);
    part.out = count;
    return part;
}

static void check(const struct dense_weight *w, int64_t rows)
{
    BUG_ON(w->out < 0 || w->in < 0 || rows < 0);
    BUG_ON(w->dtype != DTYPE_F16 && w->dtype != DTYPE_BF16 &&
           w->dtype != DTYPE_F32);
}

void dense_matmul(float *y, const float *x, const struct dense_weight *w,
                  const float *bias, int64_t rows)
{
    dense_matmul_order(y, x, w, bias, DENSE_CHAIN128, rows);
}

void dense_matmul_order(float *y, const float *x, const struct dense_weight *w,
                        const float *bias, enum dense_order order, int64_t rows)
{
    check(w, rows);
    kernels_table()->dense_matmul(y, x, w, bias, order, rows);
}

void dense_matmul_f64(double *y, const double *x, const struct dense_weight *w,
                      const double *bias, int64_t rows)
{
    check(w, rows);
    kernels_table()->dense_matmul_f64(y, x, w, bias, DENSE_CHAIN128, rows);
}
