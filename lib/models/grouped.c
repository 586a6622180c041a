/* Attention of grouped queries: rotary, and how scores are made. */
#include "models/grouped.h"

#include <math.h>

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
