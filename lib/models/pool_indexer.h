#ifndef MODELS_POOL_INDEXER_H
#define MODELS_POOL_INDEXER_H

#include "base/err.h"
#include "kernels/pools.h"
#include "ledger/config.h"
#include "models/part.h"
#include "models/tensor_ops.h"

#include <stdint.h>

/*
 * The indexer of GLM-5-Next (glm-5-next.md 7): which tokens a query of sparse
 * attention sees.  Keys of whole pools of tokens compete, heads vote:
 *
 *     k = layer norm(wk x), a pool's key a learned mean of its members
 *     q_h = wq_b latent
 *     score = sum over h of weight_h(x) relu(q_h . k / sqrt(dim))
 *
 * and the tokens of the best pools, with those of the unfinished one, are seen
 * (kernels/pools.h).
 */
struct pool_indexer {
    int64_t hidden, latent;
    struct pools pools;
};

struct pool_indexer_weights {
    struct dense_weight wq_b, wk, weights, gate;
    struct scale_shift k_norm;
    struct param place;
};

/* index_topk, index_kpool, index_n_heads, index_head_dim and the tail's flag;
 * the caller gives hidden and latent. */
int pool_indexer_read(struct pool_indexer *m, const struct section *s,
                      struct err *err);

/* Adds PREFIX.wq_b.weight and so on. */
void pool_indexer_part(const struct pool_indexer *m,
                       struct pool_indexer_weights *w, struct part *p,
                       const char *prefix);

/* What the rows of one sequence see, [rows, rows] bytes in the workspace; x
 * [rows, hidden], latent [rows, latent] of the queries. */
const unsigned char *op_pool_indexer(struct ops *o,
                                     const struct pool_indexer *m,
                                     const struct pool_indexer_weights *w,
                                     const struct act *x,
                                     const struct act *latent);

/* Numbers that it needs for a sequence of `rows` rows. */
int64_t pool_indexer_values(const struct pool_indexer *m, int64_t rows);
#endif
