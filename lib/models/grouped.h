#ifndef MODELS_GROUPED_H
#define MODELS_GROUPED_H

#include "kernels/sdpa.h"
#include "models/decoder.h"
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

/*
 * Turns q [rows, heads, head_dim] and k [rows, kv_heads, head_dim] of sequence
 * s, and says how op_sdpa() attends: causal, the scores by 1 / sqrt(head_dim),
 * with the exponential that the options name.
 */
struct sdpa grouped_turn(struct decoder_pass *p, const struct grouped *g,
                         const struct sequence *s, struct act *q,
                         struct act *k);
#endif
