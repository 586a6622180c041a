/* The delta rule token by token, as PyTorch computes it. */
#include "kernels/token_delta.h"

#include "base/bug.h"
#include "kernels/chunk_internal.h"
#include "kernels/kernels_internal.h"
#include "kernels/linear.h"
#include "kernels/threads.h"

#include <string.h>

struct job {
    float *y;
    const float *q, *k, *v, *decay, *beta;
    const struct channel_delta *shape;
    int64_t tokens;
};

/* y[d] = sum over i of x[i] state[i][d] */
static void read_state(const struct job *job, float *y, const float *x,
                       const float *state)
{
    const int64_t dim = job->shape->dim;

    if (job->shape->heads == 1 ||
        linear_batch_order(dim, dim, 1) == LINEAR_ONE_BY_ONE)
        linear_mix(y, x, state, dim, dim);
    else
        chunk_product(y, x, dim, 1, state, 1, dim, dim);
}

static void step(const struct job *job, int64_t head, int64_t token,
                 float *state, float *r)
{
    const int64_t heads = job->shape->heads, dim = job->shape->dim;
    const int64_t at = (token * heads + head) * dim;
    const float *k = job->k + at, *v = job->v + at, *decay = job->decay + at;
    const float beta = job->beta[token * heads + head];
    float *y = job->y + at;

    for (int64_t i = 0; i < dim * dim; i++)
        state[i] *= decay[i / dim];
    read_state(job, r, k, state);
    for (int64_t d = 0; d < dim; d++)
        r[d] = beta * (v[d] - r[d]);
    for (int64_t i = 0; i < dim; i++)
        for (int64_t d = 0; d < dim; d++)
            state[i * dim + d] += k[i] * r[d];
    read_state(job, y, job->q + at, state);
    for (int64_t d = 0; d < dim; d++)
        y[d] = canonical_f32(y[d]);
}

static void piece(void *ctx, int64_t first, int64_t end)
{
    const struct job *job = ctx;
    const int64_t dim = job->shape->dim;
    const size_t size = (size_t)(dim * dim) * sizeof(float);
    float *state =
        threads_scratch(SCRATCH_PIECE, size + (size_t)dim * sizeof(*state));

    for (int64_t head = first; head < end; head++) {
        memset(state, 0, size);
        for (int64_t t = 0; t < job->tokens; t++)
            step(job, head, t, state, state + dim * dim);
    }
}

void token_delta(float *y, const float *q, const float *k, const float *v,
                 const float *decay, const float *beta,
                 const struct channel_delta *shape, int64_t tokens)
{
    struct job job = {y, q, k, v, decay, beta, shape, tokens};

    BUG_ON(shape->heads < 1 || shape->dim < 1 || tokens < 0);
    threads_for(shape->heads, 1, piece, &job);
}
