/* Keys selected by pools. */
#include "kernels/pools.h"

#include "base/bug.h"
#include "kernels/elementary.h"
#include "kernels/kernels_internal.h"
#include "kernels/linear.h"
#include "kernels/round.h"
#include "kernels/softmax.h"
#include "kernels/threads.h"
#include "kernels/topk.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { KEY_GRAIN = 8 };

/* ---- the scores of a row's pools ---- */

/* score [n], and room for [heads, n] behind it; those from `past` on are not
 * wanted.  PyTorch takes two products of a batch, each row one of its own. */
static void pool_scores(float *score, const float *q, const float *k,
                        const float *weight, const struct pools *shape,
                        int64_t past, int64_t n)
{
    const int64_t heads = shape->heads, dim = shape->dim;
    const enum linear_order order = linear_batch_order(heads, dim, n);
    const float scale = (float)shape->scale;
    float *each = score + n;

    memset(each, 0, (size_t)(heads * n) * sizeof(*each));
    for (int64_t h = 0; h < heads; h++)
        for (int64_t p = 0; p < past; p++) {
            float s = linear_dot(q + h * dim, k + p * dim, dim, order) * scale;

            each[h * n + p] = s > 0 ? s : 0;
        }
    linear_mix(score, weight, each, heads, n);
}

static double dot_f64(const double *a, const double *b, int64_t n)
{
    double y = 0;

    for (int64_t at = 0; at < n; at += CHAIN) {
        int64_t end = n - at < CHAIN ? n : at + CHAIN;
        double c = 0;

        for (int64_t i = at; i < end; i++)
            c = fma(a[i], b[i], c);
        y += c;
    }
    return y;
}

static void pool_scores_f64(double *score, const double *q, const double *k,
                            const double *weight, const struct pools *shape,
                            int64_t past, int64_t n)
{
    (void)n;
    for (int64_t p = 0; p < past; p++) {
        score[p] = 0;
        for (int64_t h = 0; h < shape->heads; h++) {
            double s =
                dot_f64(q + h * shape->dim, k + p * shape->dim, shape->dim) *
                shape->scale;

            score[p] += weight[h] * (s > 0 ? s : 0);
        }
    }
}

/* ---- both widths ---- */

#define EXP vec_exp /* PyTorch's, of columns */
#include "kernels/real_f32.inc"

#include "kernels/pools_plain.inc"

#undef EXP
#define EXP elem_exp
#include "kernels/real_f64.inc"

#include "kernels/pools_plain.inc"
