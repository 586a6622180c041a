/* Which tokens a query of GLM-5-Next's sparse attention sees. */
#include "models/pool_indexer.h"

#include "models/eager_ops.h"

#include <math.h>

int pool_indexer_read(struct pool_indexer *m, const struct section *s,
                      struct err *err)
{
    struct pools *p = &m->pools;
    int64_t tokens;

    if (config_count(s, "index_topk", 2048, &tokens, err) ||
        config_count(s, "index_kpool", 16, &p->size, err) ||
        config_count(s, "index_n_heads", 32, &p->heads, err) ||
        config_count(s, "index_head_dim", 128, &p->dim, err) ||
        config_flag(s, "index_kpool_always_select_tail", true, &p->has_tail,
                    err))
        return -1;
    if (tokens % p->size)
        return config_refuse(s, "index_topk", err,
                             "is not a multiple of index_kpool");
    if (!p->has_tail && p->size > 1)
        return config_refuse(s, "index_kpool_always_select_tail", err,
                             "is false: the first tokens would see nothing");
    p->chosen = tokens / p->size;
    p->scale = 1 / sqrt((double)p->dim);
    return 0;
}

void pool_indexer_part(const struct pool_indexer *m,
                       struct pool_indexer_weights *w, struct part *p,
                       const char *prefix)
{
    const struct pools *of = &m->pools;

    part_dense(p, &w->wq_b, of->heads * of->dim, m->latent, "%s.wq_b.weight",
               prefix);
    part_dense(p, &w->wk, of->dim, m->hidden, "%s.wk.weight", prefix);
    part_param(p, &w->k_norm.weight, of->dim, "%s.k_norm.weight", prefix);
    part_param(p, &w->k_norm.bias, of->dim, "%s.k_norm.bias", prefix);
    part_dense(p, &w->weights, of->heads, m->hidden, "%s.weights_proj.weight",
               prefix);
    part_param(p, &w->place, of->size * of->dim, "%s.index_kpool_compress_ape",
               prefix);
    part_dense(p, &w->gate, of->dim, m->hidden, "%s.index_kpool_compress_gate",
               prefix);
}

static struct act pooled(struct ops *o, const struct pools *pools,
                         const struct act *k, const struct act *gate,
                         const struct param *place)
{
    struct act y = ops_new(o, k->rows / pools->size, pools->dim, k->dtype);

    if (act_is_wide(&y))
        pool_keys_f64(act_d(&y), act_d(k), act_d(gate), place->d, pools,
                      k->rows, y.dtype);
    else
        pool_keys(act_f(&y), act_f(k), act_f(gate), place->f, pools, k->rows,
                  y.dtype);
    return y;
}

/* Values that hold rows * rows bytes. */
static int64_t mask_values(int64_t rows)
{
    return rows * rows / (int64_t)sizeof(float) + 1;
}

const unsigned char *op_pool_indexer(struct ops *o,
                                     const struct pool_indexer *m,
                                     const struct pool_indexer_weights *w,
                                     const struct act *x,
                                     const struct act *latent)
{
    const struct pools *pools = &m->pools;
    enum dtype wide = ops_dtype(o->precision, DTYPE_F32);
    unsigned char *visible = ops_new(o, 1, mask_values(x->rows), wide).data;
    size_t mark = ops_mark(o);
    struct act q = op_dense(o, latent, &w->wq_b, NULL);
    struct act k = op_dense(o, x, &w->wk, NULL);
    struct act gate = op_dense(o, x, &w->gate, NULL);
    struct act weights = op_dense(o, x, &w->weights, NULL);

    k = op_eager_layer_norm(o, &k, &w->k_norm, 1e-6);
    k = pooled(o, pools, &k, &gate, &w->place);
    weights.dtype = wide;
    op_scale(&weights, 1 / sqrt((double)pools->heads));
    if (act_is_wide(x))
        pool_select_f64(visible, act_d(&q), act_d(&k), act_d(&weights), pools,
                        x->rows);
    else
        pool_select(visible, act_f(&q), act_f(&k), act_f(&weights), pools,
                    x->rows);
    ops_release(o, mark);
    return visible;
}

int64_t pool_indexer_values(const struct pool_indexer *m, int64_t rows)
{
    const struct pools *p = &m->pools;

    return mask_values(rows) + rows * (p->heads * (p->dim + 1) + 4 * p->dim);
}
