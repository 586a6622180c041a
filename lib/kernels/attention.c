/* Attention in written orders: unfused, vector and full. */
#include "kernels/attention.h"

#include "base/bug.h"
#include "kernels/kernels_internal.h"
#include "kernels/round.h"
#include "kernels/softmax.h"
#include "kernels/threads.h"

#include <math.h>

#include "kernels/real_f32.inc"

#include "kernels/attention_plain.inc"

#include "kernels/real_f64.inc"

#include "kernels/attention_plain.inc"

static void check(const struct attention *a, int64_t rows, int64_t keys)
{
    BUG_ON(a->heads < 1 || a->kv_heads < 1 || a->heads % a->kv_heads != 0);
    BUG_ON(a->head_dim < 1 || rows < 0 || keys < 1);
}

void attention(float *y, const float *q, const float *k, const float *v,
               const struct attention *a, int64_t rows, int64_t keys)
{
    check(a, rows, keys);
    kernels_table()->attention(y, q, k, v, a, rows, keys);
}

void attention_f64(double *y, const double *q, const double *k, const double *v,
                   const struct attention *a, int64_t rows, int64_t keys)
{
    check(a, rows, keys);
    kernels_table()->attention_f64(y, q, k, v, a, rows, keys);
}
