#ifndef KERNELS_ATTENTION_H
#define KERNELS_ATTENTION_H

#include "tensor/dtype.h"

#include <stdint.h>

/*
 * Attention of consecutive rows over keys 0, 1, 2 ...  Query head h reads
 * key/value head h / (heads / kv_heads).  Every sum is chain128: over the
 * head's elements for a score, over the keys from key 0 for a value.  Keys
 * that a row does not attend take no part, so a row's result does not depend
 * on the rows it is computed with, nor on later keys.
 *
 * ATTENTION_UNFUSED, causal, as separate operations in the compute dtype T:
 *     q' = rT(scale * q); s = rT(q' . k); p = rT(softmax(s)); y = sum of p * v
 * ATTENTION_VECTOR, causal, as one kernel in f32:
 *     q' = scale * q; s = q' . k; e = exp(s - max s); y = (sum of e * v) / sum
 * e ATTENTION_FULL, every row sees every key (vision), in f32: s = scale * (q .
 * k); then as ATTENTION_VECTOR softmax, exp, max and the sum of e (lanes16) are
 * kernels/softmax.h's.  In double nothing is rounded to T.
 */
enum attention_kind { ATTENTION_UNFUSED, ATTENTION_VECTOR, ATTENTION_FULL };

struct attention {
    enum attention_kind kind;
    enum dtype dtype;        /* T of ATTENTION_UNFUSED: F16, BF16 or F32 */
    int64_t heads, kv_heads; /* heads is a multiple of kv_heads */
    int64_t head_dim;
    double scale; /* the f32 kernel uses it rounded to f32 */
};

/*
 * y and q [rows, heads, head_dim]; k and v [key, kv_heads, head_dim].  Row t
 * attends to the first keys + t keys (causal: `keys` is row 0's position + 1),
 * with ATTENTION_FULL to the first `keys`.  keys is at least 1.  y is not
 * rounded and overlaps nothing.
 */
void attention(float *y, const float *q, const float *k, const float *v,
               const struct attention *a, int64_t rows, int64_t keys);
void attention_f64(double *y, const double *q, const double *k, const double *v,
                   const struct attention *a, int64_t rows, int64_t keys);
#endif
