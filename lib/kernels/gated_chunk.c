/* The gated delta rule in chunks, as PyTorch computes it; value heads are
 * independent. */
#include "kernels/gated_chunk.h"

#include "base/bug.h"
#include "kernels/chunk_internal.h"
#include "kernels/elementary.h"
#include "kernels/kernels_internal.h"
#include "kernels/threads.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { SOLVED = 48 }; /* rows of a block of MKL's strsm */

struct job {
    float *y;
    const float *q, *k, *v, *g, *beta;
    const struct gated_delta *shape;
    int64_t chunk, tokens;
};

/* What a head keeps, in its thread's scratch; n tokens of a chunk. */
struct head {
    int64_t keys, values;    /* columns */
    float *state;            /* [keys, values] */
    float *q, *k, *k_beta;   /* [n, keys] */
    float *turned;           /* [keys, n]: k, a column each */
    float *decayed, *w;      /* [n, keys] */
    float *u, *more, *again; /* [n, values] */
    float *a, *decay;        /* [n, n] */
    float *g, *beta;         /* [n]; g summed */
    float *change;           /* [keys, values] */
};

static void copy_in(const struct job *job, const struct head *h, int64_t which,
                    int64_t first, int64_t n)
{
    const struct gated_delta *s = job->shape;
    const int64_t heads = s->value_heads;
    const int64_t key_at = which / (heads / s->key_heads) * h->keys;
    double sum = 0;

    for (int64_t i = 0; i < n; i++) {
        const int64_t t = first + i, from = t * s->qk_stride + key_at;
        const float beta = job->beta[t * heads + which];
        const float *v = job->v + t * s->v_stride + which * h->values;

        sum += (double)job->g[t * heads + which];
        h->g[i] = (float)sum;
        h->beta[i] = beta;
        for (int64_t c = 0; c < h->keys; c++) {
            h->q[i * h->keys + c] = job->q[from + c];
            h->k[i * h->keys + c] = job->k[from + c];
            h->turned[c * n + i] = job->k[from + c];
            h->k_beta[i * h->keys + c] = job->k[from + c] * beta;
        }
        for (int64_t d = 0; d < h->values; d++)
            h->u[i * h->values + d] = v[d] * beta;
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            h->decay[i * n + j] = j <= i ? elem_exp_f32(h->g[i] - h->g[j]) : 0;
}

/* a = (x k^T) D, the tokens' rows of x [n, keys]. */
static void decayed_products(const struct head *h, const float *x, int64_t n)
{
    chunk_product(h->a, x, h->keys, 1, h->turned, n, h->keys, n);
    for (int64_t i = 0; i < n * n; i++)
        h->a[i] *= h->decay[i];
}

/* y = L^-1 y, y [n, cols], L unit lower: a below the diagonal.  What whole
 * blocks of rows before its own give a row is summed apart. */
static void solve(const struct head *h, float *y, int64_t n, int64_t cols,
                  float *sums)
{
    for (int64_t i = 1; i < n; i++) {
        float *row = y + i * cols;
        const float *a = h->a + i * n;

        for (int64_t at = 0; at < i; at += SOLVED) {
            bool is_whole = at + SOLVED <= i / SOLVED * SOLVED;
            int64_t end = is_whole ? at + SOLVED : i;
            float *to = is_whole ? sums : row;

            for (int64_t d = 0; d < cols && is_whole; d++)
                sums[d] = 0;
            for (int64_t j = at; j < end; j++)
                for (int64_t d = 0; d < cols; d++)
                    to[d] =
                        fmaf(is_whole ? a[j] : -a[j], y[j * cols + d], to[d]);
            for (int64_t d = 0; d < cols && is_whole; d++)
                row[d] -= sums[d];
        }
    }
}

/* to = from, every row i times exp(of G_i) */
static void decay_rows(const struct head *h, float *to, const float *from,
                       int64_t n, bool is_to_end)
{
    for (int64_t i = 0; i < n; i++) {
        float by = elem_exp_f32(is_to_end ? h->g[n - 1] - h->g[i] : h->g[i]);

        for (int64_t c = 0; c < h->keys; c++)
            to[i * h->keys + c] = from[i * h->keys + c] * by;
    }
}

static void run_chunk(const struct job *job, const struct head *h,
                      int64_t which, int64_t first, int64_t n)
{
    const int64_t keys = h->keys, values = h->values;

    copy_in(job, h, which, first, n);
    decayed_products(h, h->k_beta, n);
    decay_rows(h, h->w, h->k_beta, n, false);
    solve(h, h->u, n, values, h->more);
    solve(h, h->w, n, keys, h->decayed);
    chunk_product(h->more, h->w, keys, 1, h->state, n, keys, values);
    for (int64_t i = 0; i < n * values; i++)
        h->u[i] -= h->more[i];

    decayed_products(h, h->q, n);
    decay_rows(h, h->decayed, h->q, n, false);
    chunk_product(h->more, h->decayed, keys, 1, h->state, n, keys, values);
    chunk_product(h->again, h->a, n, 1, h->u, n, n, values);
    for (int64_t i = 0; i < n; i++)
        for (int64_t d = 0; d < values; d++) {
            int64_t to = (first + i) * job->shape->value_heads + which;

            job->y[to * values + d] = canonical_f32(h->more[i * values + d] +
                                                    h->again[i * values + d]);
        }

    decay_rows(h, h->decayed, h->k, n, true);
    chunk_product(h->change, h->decayed, 1, keys, h->u, keys, n, values);
    float keep = elem_exp_f32(h->g[n - 1]);
    for (int64_t i = 0; i < keys * values; i++)
        h->state[i] = h->state[i] * keep + h->change[i];
}

static void piece(void *ctx, int64_t begin, int64_t end)
{
    const struct job *job = ctx;
    const int64_t keys = job->shape->key_dim, values = job->shape->value_dim;
    const int64_t n = job->chunk;
    float *at = threads_scratch(SCRATCH_PIECE,
                                (size_t)(2 * keys * values + 6 * n * keys +
                                         3 * n * values + 2 * n * n + 2 * n) *
                                    sizeof(*at));
    struct head h = {.keys = keys, .values = values, .state = at};

    h.change = h.state + keys * values;
    h.q = h.change + keys * values;
    h.k = h.q + n * keys;
    h.k_beta = h.k + n * keys;
    h.turned = h.k_beta + n * keys;
    h.decayed = h.turned + n * keys;
    h.w = h.decayed + n * keys;
    h.u = h.w + n * keys;
    h.more = h.u + n * values;
    h.again = h.more + n * values;
    h.a = h.again + n * values;
    h.decay = h.a + n * n;
    h.g = h.decay + n * n;
    h.beta = h.g + n;
    for (int64_t which = begin; which < end; which++) {
        memset(h.state, 0, (size_t)(keys * values) * sizeof(*h.state));
        for (int64_t first = 0; first < job->tokens; first += n) {
            int64_t left = job->tokens - first;

            run_chunk(job, &h, which, first, left < n ? left : n);
        }
    }
}

void gated_chunk(float *y, const float *q, const float *k, const float *v,
                 const float *g, const float *beta,
                 const struct gated_delta *shape, int64_t chunk, int64_t tokens)
{
    struct job job = {y, q, k, v, g, beta, shape, chunk, tokens};

    BUG_ON(shape->key_heads < 1 || shape->value_heads % shape->key_heads ||
           chunk < 1 || tokens < 0);
    threads_for(shape->value_heads, 1, piece, &job);
}
