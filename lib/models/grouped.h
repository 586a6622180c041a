#ifndef MODELS_GROUPED_H
#define MODELS_GROUPED_H

#include "kernels/sdpa.h"
#include "models/decoder.h"
#include "models/part.h"
#include "models/rotary.h"

/*
 * Attention of grouped queries: `heads` queries a token share `kv_heads` keys
 * and values, all head_dim wide, the first rotary.dims numbers of a head turned
 * in halves by the token's position.  heads is a multiple of kv_heads.
 */
struct grouped {
    int64_t heads, kv_heads, head_dim;
    struct rotary rotary;
};

struct grouped_weights {
    struct dense_weight q, k, v, o;
};

/* Columns of all queries, and of all keys or all values, of a row. */
static inline int64_t grouped_queries(const struct grouped *g)
{
    return g->heads * g->head_dim;
}
static inline int64_t grouped_keys(const struct grouped *g)
{
    return g->kv_heads * g->head_dim;
}

/* Adds the tensors PREFIX.q_proj.weight and so on, rows of `hidden` numbers
 * in and out; q_proj gives q_cols columns: the queries, and what a family
 * computes beside them. */
void grouped_part(const struct grouped *g, struct grouped_weights *w,
                  int64_t hidden, int64_t q_cols, struct part *p,
                  const char *prefix);

/* Numbers that plain attention needs for each row: projections, queries and
 * keys normed, what is seen, tables, the result of `hidden` numbers. */
int64_t grouped_row_values(const struct grouped *g, int64_t hidden);

/*
 * Turns q [rows, heads, head_dim] and k [rows, kv_heads, head_dim] of sequence
 * s, and says how op_sdpa() attends: causal, the scores by 1 / sqrt(head_dim),
 * with the exponential that the options name.
 */
struct sdpa grouped_turn(struct decoder_pass *p, const struct grouped *g,
                         const struct sequence *s, struct act *q,
                         struct act *k);
#endif
