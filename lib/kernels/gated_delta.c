/* The gated delta rule, token by token; rows of the state are independent. */
#include "kernels/gated_delta.h"

#include "base/bug.h"
#include "kernels/kernels_internal.h"
#include "kernels/threads.h"

#include <math.h>

#include "kernels/real_f32.inc"

#include "kernels/gated_delta_plain.inc"

#include "kernels/real_f64.inc"

#include "kernels/gated_delta_plain.inc"

static void check(const struct gated_delta *shape, int64_t tokens)
{
    BUG_ON(shape->key_heads < 1 || shape->value_heads < 1 || tokens < 0);
    BUG_ON(shape->value_heads % shape->key_heads != 0);
    BUG_ON(shape->key_dim < 1 || shape->value_dim < 1);
}

void gated_delta(float *y, float *state, const float *q, const float *k,
                 const float *v, const float *g, const float *beta,
                 const struct gated_delta *shape, int64_t tokens)
{
    check(shape, tokens);
    kernels_table()->gated_delta(y, state, q, k, v, g, beta, shape, tokens);
}

void gated_delta_f64(double *y, double *state, const double *q, const double *k,
                     const double *v, const double *g, const double *beta,
                     const struct gated_delta *shape, int64_t tokens)
{
    check(shape, tokens);
    kernels_table()->gated_delta_f64(y, state, q, k, v, g, beta, shape, tokens);
}
