/*
 * DeepSeek-V4 (deepseek-v4.md), a residual of N streams:
 *
 *     u = collapse(X); X = mix(attention(norm(u)), X)     hyper-connections
 *     u = collapse(X); X = mix(moe(norm(u)), X)
 *     states = norm(head(X))
 *
 * Keys and values are one head of D columns.  A sliding layer sees a window of
 * them; the others also see entries compressed from windows of m tokens: HCA
 * all that have ended, CSA those that an indexer picks.
 */
#include "models/deepseek_v4.h"

#include "base/mem.h"
#include "kernels/elementary.h"
#include "kernels/round.h"
#include "models/deepseek_v4_internal.h"
#include "models/eager_ops.h"
#include "models/hyper_layer.h"
#include "models/moe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- attention (6) ---- */

/* What the indexer lets each row see of `entries` (6.3): latent is the normed
 * query latent. */
static const int64_t *
pick(struct decoder_pass *p, const struct deepseek_layer *l,
     const struct sequence *s, const struct rotary_tables *tables,
     const struct act *x, const struct act *latent, int64_t most)
{
    const struct deepseek *m = deepseek_of(p->decoder);
    struct ops *o = &p->ops;
    struct windows windows = deepseek_index_windows(m);
    struct picking how = {.heads = m->index_heads,
                          .width = m->index_dim,
                          .rate = windows.rate,
                          .most = most};
    struct act keys = op_compress(o, &l->indexer, &windows, &m->compress,
                                  s->positions, x, m->decoder.eps);
    struct act q = op_dense(o, latent, &l->index_q, NULL);
    struct act weight = op_dense(o, x, &l->index_weights, NULL);

    op_turn(&q, tables, m->index_dim, false);
    return op_pick(o, &q, &keys, &weight, &how);
}

/* Its keys, and below them the layer's compressed entries. */
static struct act all_keys(struct ops *o, const struct act *kv,
                           const struct act *entries)
{
    struct act y = ops_new(o, kv->rows + entries->rows, kv->cols, kv->dtype);
    struct act near = act_rows(&y, 0, kv->rows);
    struct act far = act_rows(&y, kv->rows, entries->rows);

    act_copy(&near, kv);
    act_copy(&far, entries);
    return y;
}

static struct act attention(struct decoder_pass *p,
                            const struct decoder_weights *w, int64_t layer,
                            const struct sequence *s, const struct act *x)
{
    const struct deepseek *m = deepseek_of(p->decoder);
    const struct deepseek_layer *l = (const struct deepseek_layer *)w;
    const enum attention kind = m->attention[layer];
    struct ops *o = &p->ops;
    struct windows windows = deepseek_windows(m, layer);
    struct seeing how = {.heads = m->heads,
                         .dim = m->dim,
                         .window = m->window,
                         .scale = 1 / sqrt((double)m->dim)};
    struct rotary_tables tables = rotary_tables(
        o, kind == SLIDING ? &m->main : &m->compress, s->positions, s->rows);
    struct act latent = op_dense(o, x, &l->q_a, NULL);
    struct act kv = op_dense(o, x, &l->kv, NULL);

    latent = op_kept_norm(o, &latent, &l->q_norm, m->decoder.eps);
    struct act q = op_dense(o, &latent, &l->q_b, NULL);
    op_head_norm(&q, m->dim, m->decoder.eps);
    op_turn(&q, &tables, m->dim, false);
    kv = op_kept_norm(o, &kv, &l->kv_norm, m->decoder.eps);
    op_turn(&kv, &tables, m->dim, false);
    if (kind != SLIDING && s->rows >= windows.rate) {
        struct act entries =
            op_compress(o, &l->compressor, &windows, &m->compress, s->positions,
                        x, m->decoder.eps);

        kv = all_keys(o, &kv, &entries);
        how.rate = windows.rate;
        how.entries = entries.rows;
        how.most = m->index_most < entries.rows ? m->index_most : entries.rows;
        if (kind == CSA)
            how.picked = pick(p, l, s, &tables, x, &latent, how.most);
    }
    struct act seen = op_attend(o, &q, &kv, &l->sinks, &how);
    op_turn(&seen, &tables, m->dim, true);
    struct act y = op_grouped(o, &seen, &l->o_a, m->groups);
    return op_dense(o, &y, &l->o_b, NULL);
}

/* ---- experts (7) ---- */

struct act deepseek_swiglu(struct ops *o, const struct act *gate,
                           const struct act *up, const void *ctx)
{
    double limit = *(const double *)ctx;
    float narrow = act_is_wide(gate) ? 0 : round_from_f64(gate->dtype, limit);

    for (int64_t i = 0; i < gate->rows * gate->cols; i++) {
        if (act_is_wide(gate)) {
            double *g = act_d(gate) + i, *u = act_d(up) + i;

            *g = *g > limit ? limit : *g;
            *u = *u > limit ? limit : *u < -limit ? -limit : *u;
        } else {
            float *g = act_f(gate) + i, *u = act_f(up) + i;

            *g = *g > narrow ? narrow : *g;
            *u = *u > narrow ? narrow : *u < -narrow ? -narrow : *u;
        }
    }
    return op_swiglu(o, gate, up);
}

/* sqrt(softplus(x)), each of the two rounded; in place. */
static void sqrt_softplus(const struct act *x)
{
    const int64_t n = x->rows * x->cols;

    if (act_is_wide(x))
        eager_softplus_f64(act_d(x), act_d(x), n);
    else
        eager_softplus(act_f(x), act_f(x), n);
    op_round(x);
    for (int64_t i = 0; i < n; i++) {
        if (act_is_wide(x))
            act_d(x)[i] = sqrt(act_d(x)[i]);
        else
            act_f(x)[i] = sqrtf(act_f(x)[i]);
    }
    op_round(x);
}

static void score(const struct decoder *d, const struct act *logits)
{
    enum scoring scoring = deepseek_of(d)->scoring;

    if (scoring == SQRTSOFTPLUS)
        sqrt_softplus(logits);
    else if (scoring == SIGMOID)
        op_eager_sigmoid(logits);
    else
        op_eager_softmax(logits);
}

/* The experts that the layer's table gives to every row's id. */
static struct routed route_by_id(struct decoder_pass *p,
                                 const struct deepseek_layer *l,
                                 const struct act *scores)
{
    const struct deepseek *m = deepseek_of(p->decoder);
    const int64_t k = m->decoder.routing.chosen;
    int64_t *given = xcalloc((size_t)(p->rows * k) + 1, sizeof(*given));
    int64_t *to = given;

    for (int64_t i = 0; i < p->count; i++)
        for (int64_t r = 0; r < p->sequences[i].rows; r++, to += k)
            memcpy(to, l->experts_of_id + p->sequences[i].ids[r] * k,
                   (size_t)k * sizeof(*to));
    struct routed routed =
        op_route_given(&p->ops, scores, given, &m->decoder.routing);
    free(given);
    return routed;
}

static int check_experts_of_id(const struct deepseek *m,
                               const struct deepseek_layer *l, struct err *err)
{
    for (int64_t i = 0; i < m->decoder.vocab * m->decoder.routing.chosen; i++)
        if (l->experts_of_id[i] < 0 ||
            l->experts_of_id[i] >= m->decoder.experts.count)
            return err_set(err, ERR_INPUT,
                           "tid2eid gives token %lld expert %lld, past the "
                           "model's %lld",
                           (long long)(i / m->decoder.routing.chosen),
                           (long long)l->experts_of_id[i],
                           (long long)m->decoder.experts.count);
    return 0;
}

static int ffn(struct decoder_pass *p, const struct decoder_weights *w,
               int64_t layer, const struct act *x, struct act *y,
               struct err *err)
{
    const struct deepseek *m = deepseek_of(p->decoder);
    const struct deepseek_layer *l = (const struct deepseek_layer *)w;
    struct act scores;

    if (!m->is_hash[layer])
        return decoder_ffn(p, w, layer, x, y, err);
    if (check_experts_of_id(m, l, err) ||
        decoder_scores(p, w, layer, x, &scores, err))
        return -1;
    struct routed routed = route_by_id(p, l, &scores);
    return decoder_moe(p, w, layer, x, &routed, y, err);
}

/* ---- the layer (5) ---- */

static int run_layer(struct decoder_pass *p, const struct decoder_weights *w,
                     int64_t layer, struct act *x, struct err *err)
{
    const struct deepseek_layer *l = (const struct deepseek_layer *)w;
    const struct hyper_sites sites = {&deepseek_of(p->decoder)->hyper,
                                      &l->attention_hyper, &l->ffn_hyper};

    return hyper_layer(p, &sites, w, layer, x, err);
}

static void spread(struct decoder_pass *p, const struct act *embedded,
                   const struct act *x)
{
    op_hyper_spread(&deepseek_of(p->decoder)->hyper, embedded, x);
}

static struct act gather(struct decoder_pass *p, const struct act *x)
{
    const struct deepseek *m = deepseek_of(p->decoder);
    struct act h = ops_new(&p->ops, x->rows, p->decoder->hidden, x->dtype);

    for (int64_t k = 0; k < p->count; k++) {
        struct act rows = decoder_rows(p, x, k), to = decoder_rows(p, &h, k);

        op_hyper_head(&p->ops, &m->hyper, &m->head, &rows, &to);
    }
    return h;
}

/* ---- the family ---- */

static size_t values(const struct decoder *d, int64_t rows, int64_t longest)
{
    const struct deepseek *m = deepseek_of(d);
    int64_t queries = m->heads * m->dim, index = m->index_heads * m->index_dim;
    int64_t compressed = 7 * (m->dim + m->index_dim);
    int64_t attention_row =
        2 * d->hidden + 2 * m->q_rank + 3 * queries + 4 * m->dim + compressed +
        index + m->index_heads + 2 * m->index_most + 2 * m->main.dims +
        3 * m->compress.dims + 2 * m->groups * m->group_rank;

    return (size_t)(rows * (2 * d->hidden + hyper_site_values(&m->hyper)) +
                    longest * (attention_row + hyper_work_values(&m->hyper)));
}

static const struct decoder_hooks hooks = {
    .size = sizeof(struct deepseek),
    .weights_size = sizeof(struct deepseek_layer),
    .renames = deepseek_renames,
    .ignored = deepseek_ignored,
    .read = deepseek_read,
    .release = deepseek_release,
    .layer_part = deepseek_layer_part,
    .end_part = deepseek_end_part,
    .values = values,
    .spread = spread,
    .gather = gather,
    .norm = op_kept_norm,
    .is_norm_kept = true,
    .layer = run_layer,
    .attention = attention,
    .ffn = ffn,
    .score = score,
};

const struct model_family deepseek_v4_family =
    DECODER_FAMILY("deepseek_v4", &hooks);
