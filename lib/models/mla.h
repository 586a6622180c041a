#ifndef MODELS_MLA_H
#define MODELS_MLA_H

#include "base/err.h"
#include "kernels/eager.h"
#include "kernels/sdpa.h"
#include "ledger/config.h"
#include "models/part.h"
#include "models/rotary.h"
#include "models/tensor_ops.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Multi-head latent attention, in its expanded form (kimi-k2.5.md 4): queries,
 * keys and values grow from latents; a few columns of a query and of one key
 * that all heads share are rotated, or none is.
 *
 *     latent = norm(q_a x)                   x itself without q_rank
 *     q_h = [nope | rope] of q_b latent
 *     [c | kr] = kv_a x
 *     [kn_h | v_h] = kv_b norm(c)            kr is not normed
 *     k_h = [kn_h | rotated kr]
 *     y = o (attention(q, k, v) [* sigmoid(gate x)])
 */
struct mla {
    int64_t hidden, heads;
    int64_t q_rank, kv_rank;   /* q_rank 0: queries are one product */
    int64_t nope, rope, value; /* columns of a head */
    double latent_eps, scale;
    bool has_bias;               /* q_a, kv_a and o */
    bool is_gated;               /* g_proj */
    const struct rotary *rotary; /* NULL: nothing is rotated */
    enum rotary_pairs pairs;
};

struct mla_weights {
    struct dense_weight q_a, q_b, kv_a, kv_b, o, gate; /* q_b: or q_proj */
    struct param q_norm, kv_norm, q_a_bias, kv_a_bias, o_bias;
};

/* hidden, heads and what config.json says of the ranks and columns; the values
 * that are there already are the fallbacks.  rope may be 0.  scale becomes 1 /
 * sqrt(nope + rope) and latent_eps 1e-6. */
int mla_read(struct mla *m, const struct section *s, struct err *err);

/* Adds the tensors PREFIX.q_a_proj.weight and so on. */
void mla_part(const struct mla *m, struct mla_weights *w, struct part *p,
              const char *prefix);

/* Of the rows of one sequence; q and k are [rows, heads * (nope + rope)]. */
struct mla_heads {
    struct act latent, q, k, v;
};
struct mla_heads op_mla_heads(struct ops *o, const struct mla *m,
                              const struct mla_weights *w, const struct act *x,
                              const int64_t *positions);

/* o of attention over what each row sees ([rows, rows] as in kernels/sdpa.h;
 * NULL: causal); x for the gate. */
struct act op_mla_attend(struct ops *o, const struct mla *m,
                         const struct mla_weights *w, const struct act *x,
                         const struct mla_heads *heads,
                         const unsigned char *visible, enum sdpa_kind kind);

/* The whole: causal attention of one sequence. */
struct act op_mla(struct ops *o, const struct mla *m,
                  const struct mla_weights *w, const struct act *x,
                  const int64_t *positions, enum sdpa_kind kind);

/* The kernel that PyTorch takes by itself: its fused one when keys and values
 * are of one width.  `is_flash_exact`: as without AVX2. */
enum sdpa_kind mla_sdpa(const struct mla *m, bool is_flash_exact);

/* Numbers that op_mla() needs for each row of a sequence. */
int64_t mla_row_values(const struct mla *m);
#endif
