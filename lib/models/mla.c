/* Multi-head latent attention, expanded. */
#include "models/mla.h"

#include "base/bug.h"
#include "models/eager_ops.h"

#include <math.h>

static int64_t key_dim(const struct mla *m)
{
    return m->nope + m->rope;
}

int mla_read(struct mla *m, const struct section *s, struct err *err)
{
    int64_t kv_heads;

    if (config_count(s, "num_attention_heads", m->heads, &m->heads, err) ||
        config_count(s, "num_key_value_heads", m->heads, &kv_heads, err) ||
        config_count(s, "q_lora_rank", m->q_rank, &m->q_rank, err) ||
        config_count(s, "kv_lora_rank", m->kv_rank, &m->kv_rank, err) ||
        config_count(s, "qk_nope_head_dim", m->nope, &m->nope, err) ||
        config_amount(s, "qk_rope_head_dim", m->rope, &m->rope, err) ||
        config_count(s, "v_head_dim", m->value, &m->value, err))
        return -1;
    if (kv_heads != m->heads)
        return config_refuse(s, "num_key_value_heads", err,
                             "is not the number of heads");
    m->latent_eps = 1e-6; /* the class default, whatever rms_norm_eps is */
    m->scale = 1 / sqrt((double)key_dim(m));
    return 0;
}

void mla_part(const struct mla *m, struct mla_weights *w, struct part *p,
              const char *prefix)
{
    int64_t queries = m->heads * key_dim(m), values = m->heads * m->value;

    if (m->q_rank) {
        part_dense(p, &w->q_a, m->q_rank, m->hidden, "%s.q_a_proj.weight",
                   prefix);
        part_param(p, &w->q_norm, m->q_rank, "%s.q_a_layernorm.weight", prefix);
        part_dense(p, &w->q_b, queries, m->q_rank, "%s.q_b_proj.weight",
                   prefix);
    } else {
        part_dense(p, &w->q_b, queries, m->hidden, "%s.q_proj.weight", prefix);
    }
    part_dense(p, &w->kv_a, m->kv_rank + m->rope, m->hidden,
               "%s.kv_a_proj_with_mqa.weight", prefix);
    part_param(p, &w->kv_norm, m->kv_rank, "%s.kv_a_layernorm.weight", prefix);
    part_dense(p, &w->kv_b, m->heads * (m->nope + m->value), m->kv_rank,
               "%s.kv_b_proj.weight", prefix);
    part_dense(p, &w->o, m->hidden, values, "%s.o_proj.weight", prefix);
    if (m->is_gated)
        part_dense(p, &w->gate, values, m->hidden, "%s.g_proj.weight", prefix);
    if (!m->has_bias)
        return;
    if (m->q_rank)
        part_param(p, &w->q_a_bias, m->q_rank, "%s.q_a_proj.bias", prefix);
    part_param(p, &w->kv_a_bias, m->kv_rank + m->rope,
               "%s.kv_a_proj_with_mqa.bias", prefix);
    part_param(p, &w->o_bias, m->hidden, "%s.o_proj.bias", prefix);
}

/* ---- the heads ---- */

/* Columns [from, from + count) of each of `heads` parts of x's rows to columns
 * from `to` of each of y's; x may have one part for all heads. */
static void copy_columns(const struct act *y, int64_t to, const struct act *x,
                         int64_t from, int64_t count, int64_t heads,
                         bool is_shared)
{
    int64_t width = y->cols / heads;
    int64_t step = is_shared ? 0 : x->cols / heads;

    for (int64_t h = 0; h < heads; h++)
        act_put(y, h * width + to, x, h * step + from, count);
}

static const struct param *bias_of(const struct mla *m, const struct param *b)
{
    return m->has_bias ? b : NULL;
}

static void turn(struct ops *o, const struct mla *m, const struct act *q,
                 const struct act *kr, const int64_t *positions)
{
    struct rotary_tables tables =
        rotary_tables(o, m->rotary, positions, q->rows);
    struct rotary_shape shape = {.pairs = m->pairs,
                                 .heads = m->heads,
                                 .width = key_dim(m),
                                 .first = m->nope,
                                 .dims = m->rope};

    op_rotary(q, &tables, &shape);
    shape.heads = 1;
    shape.width = m->rope;
    shape.first = 0;
    op_rotary(kr, &tables, &shape);
}

struct mla_heads op_mla_heads(struct ops *o, const struct mla *m,
                              const struct mla_weights *w, const struct act *x,
                              const int64_t *positions)
{
    struct mla_heads y = {.latent = *x};

    if (m->q_rank) {
        y.latent = op_dense(o, x, &w->q_a, bias_of(m, &w->q_a_bias));
        y.latent = op_eager_rms_norm(o, &y.latent, &w->q_norm, m->q_rank,
                                     m->latent_eps);
    }
    y.q = op_dense(o, &y.latent, &w->q_b, NULL);
    struct act down = op_dense(o, x, &w->kv_a, bias_of(m, &w->kv_a_bias));
    struct act c = op_columns(o, &down, 0, m->kv_rank);
    struct act kr = op_columns(o, &down, m->kv_rank, m->rope);
    c = op_eager_rms_norm(o, &c, &w->kv_norm, m->kv_rank, m->latent_eps);
    struct act kv = op_dense(o, &c, &w->kv_b, NULL);
    if (m->rotary)
        turn(o, m, &y.q, &kr, positions);
    y.k = ops_new(o, x->rows, m->heads * key_dim(m), kv.dtype);
    y.v = ops_new(o, x->rows, m->heads * m->value, kv.dtype);
    copy_columns(&y.k, 0, &kv, 0, m->nope, m->heads, false);
    copy_columns(&y.k, m->nope, &kr, 0, m->rope, m->heads, true);
    copy_columns(&y.v, 0, &kv, m->nope, m->value, m->heads, false);
    return y;
}

/* ---- attention ---- */

enum sdpa_kind mla_sdpa(const struct mla *m, bool is_flash_exact)
{
    if (key_dim(m) != m->value)
        return is_flash_exact ? SDPA_MATH : SDPA_MATH_VEC;
    return is_flash_exact ? SDPA_FLASH_EXACT : SDPA_FLASH;
}

struct act op_mla_attend(struct ops *o, const struct mla *m,
                         const struct mla_weights *w, const struct act *x,
                         const struct mla_heads *heads,
                         const unsigned char *visible, enum sdpa_kind kind)
{
    struct sdpa how = {.kind = kind,
                       .heads = m->heads,
                       .kv_heads = m->heads,
                       .key_dim = key_dim(m),
                       .value_dim = m->value,
                       .scale = m->scale,
                       .visible = visible};
    struct act seen = op_sdpa(o, &heads->q, &heads->k, &heads->v, &how);

    if (m->is_gated) {
        struct act gate = op_dense(o, x, &w->gate, NULL);

        op_eager_sigmoid(&gate);
        seen = op_mul(o, &seen, &gate);
    }
    return op_dense(o, &seen, &w->o, bias_of(m, &w->o_bias));
}

struct act op_mla(struct ops *o, const struct mla *m,
                  const struct mla_weights *w, const struct act *x,
                  const int64_t *positions, enum sdpa_kind kind)
{
    struct mla_heads heads = op_mla_heads(o, m, w, x, positions);

    return op_mla_attend(o, m, w, x, &heads, NULL, kind);
}

int64_t mla_row_values(const struct mla *m)
{
    int64_t keys = m->heads * key_dim(m), values = m->heads * m->value;

    return 2 * m->q_rank + 2 * keys + 3 * m->kv_rank + 3 * m->rope +
           m->heads * (m->nope + m->value) + 4 * values + m->hidden;
}
