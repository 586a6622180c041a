/* Attention of grouped queries: tensors, rotary, and how scores are made. */
#include "models/grouped.h"

#include <math.h>

void grouped_part(const struct grouped *g, struct grouped_weights *w,
                  int64_t hidden, int64_t q_cols, struct part *p,
                  const char *prefix)
{
    const int64_t keys = grouped_keys(g);

    part_dense(p, &w->q, q_cols, hidden, "%s.q_proj.weight", prefix);
    part_dense(p, &w->k, keys, hidden, "%s.k_proj.weight", prefix);
    part_dense(p, &w->v, keys, hidden, "%s.v_proj.weight", prefix);
    part_dense(p, &w->o, hidden, grouped_queries(g), "%s.o_proj.weight",
               prefix);
}

int64_t grouped_row_values(const struct grouped *g, int64_t hidden)
{
    return hidden + 3 * grouped_queries(g) + 3 * grouped_keys(g) +
           2 * g->head_dim;
}

struct sdpa grouped_turn(struct decoder_pass *p, const struct grouped *g,
                         const struct sequence *s, struct act *q, struct act *k)
{
    struct rotary_shape turned = {.pairs = ROTARY_HALVES,
                                  .heads = g->heads,
                                  .width = g->head_dim,
                                  .dims = g->rotary.dims};
    struct rotary_tables tables =
        rotary_tables(&p->ops, &g->rotary, s->positions, s->rows);

    op_rotary(q, &tables, &turned);
    turned.heads = g->kv_heads;
    op_rotary(k, &tables, &turned);
    return (struct sdpa){.kind = p->options->is_flash_exact ? SDPA_FLASH_EXACT
                                                            : SDPA_FLASH,
                         .heads = g->heads,
                         .kv_heads = g->kv_heads,
                         .key_dim = g->head_dim,
                         .value_dim = g->head_dim,
                         .scale = 1 / sqrt((double)g->head_dim)};
}
