/* Attention as three operations on a batch of heads, as PyTorch's CPU backend
 * takes them from a graph that spells attention out. */
#include "kernels/kernels_internal.h"
#include "kernels/linear.h"
#include "kernels/sdpa_internal.h"
#include "kernels/softmax.h"
#include "kernels/threads.h"

#include <math.h>
#include <string.h>

struct job {
    float *y;
    const float *q, *k, *v;
    const struct sdpa *how;
    int64_t rows, keys;
};

/* A head's keys [keys, key_dim], and values [value_dim, keys]. */
static void take_head(const struct job *job, int64_t head, float *k, float *v)
{
    const struct sdpa *how = job->how;
    const int64_t kv = head / (how->heads / how->kv_heads);

    for (int64_t j = 0; j < job->keys; j++) {
        const int64_t at = j * how->kv_heads + kv;

        memcpy(k + j * how->key_dim, job->k + at * how->key_dim,
               (size_t)how->key_dim * sizeof(*k));
        for (int64_t i = 0; i < how->value_dim; i++)
            v[i * job->keys + j] = job->v[at * how->value_dim + i];
    }
}

static void piece(void *ctx, int64_t first, int64_t end)
{
    const struct job *job = ctx;
    const struct sdpa *how = job->how;
    const int64_t keys = job->keys, dim = how->key_dim, wide = how->value_dim;
    const enum linear_order scored = linear_batch_order(job->rows, dim, keys);
    const enum linear_order mixed = linear_batch_order(job->rows, keys, wide);
    float *k = threads_scratch(SCRATCH_PIECE,
                               (size_t)(keys * (dim + wide + 1)) * sizeof(*k));
    float *v = k + keys * dim, *s = v + keys * wide;

    for (int64_t head = first; head < end; head++) {
        take_head(job, head, k, v);
        for (int64_t row = 0; row < job->rows; row++) {
            const unsigned char *visible =
                how->visible ? how->visible + row * keys : NULL;
            const int64_t seen = keys - job->rows + row + 1;
            const int64_t at = row * how->heads + head;

            for (int64_t j = 0; j < keys; j++)
                s[j] = (visible ? visible[j] : j < seen)
                           ? (float)how->scale * linear_dot(job->q + at * dim,
                                                            k + j * dim, dim,
                                                            scored)
                           : -INFINITY;
            softmax_vec_row(s, s, keys);
            for (int64_t i = 0; i < wide; i++)
                job->y[at * wide + i] =
                    canonical_f32(linear_dot(s, v + i * keys, keys, mixed));
        }
    }
}

void sdpa_batch(float *y, const float *q, const float *k, const float *v,
                const struct sdpa *how, int64_t rows, int64_t keys)
{
    struct job job = {y, q, k, v, how, rows, keys};

    threads_for(how->heads, 1, piece, &job);
}
