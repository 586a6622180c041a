/*
 * One layer of the text model over some rows of a sequence (bonsai2.md 2):
 *
 *     mixer = attention or gated delta net of norm(x)
 *     h     = x + mixer
 *     out   = h + mlp(norm(h))
 *
 * The rows of a layer come in order; what later rows need of earlier ones lies
 * in the layer's cache, so that any division into chunks gives the same bits.
 */
#include "models/bonsai_internal.h"

#include "base/bug.h"
#include "kernels/act.h"
#include "kernels/attention.h"
#include "kernels/conv.h"
#include "kernels/gated_delta.h"
#include "kernels/rope.h"

#include <math.h>
#include <stdio.h>

static int64_t key_width(const struct bonsai_text_config *t)
{
    return t->key_heads * t->key_dim;
}

static int64_t value_width(const struct bonsai_text_config *t)
{
    return t->value_heads * t->value_dim;
}

static int64_t channels(const struct bonsai_text_config *t)
{
    return 2 * key_width(t) + value_width(t);
}

static size_t state_values(const struct bonsai_text_config *t)
{
    return (size_t)(value_width(t) * t->key_dim);
}

/* ---- the cache ---- */

size_t bonsai_cache_values(const struct bonsai_config *config, int64_t layer,
                           int64_t capacity)
{
    const struct bonsai_text_config *t = &config->text;

    if (bonsai_layer_is_full(config, layer))
        return (size_t)(2 * capacity * t->kv_heads * t->head_dim);
    return (size_t)(3 * channels(t)) + state_values(t);
}

/* The dtype is set by the first row that comes in. */
void bonsai_cache_init(struct bonsai_pass *pass, struct bonsai_cache *cache,
                       int64_t layer, int64_t capacity)
{
    const struct bonsai_text_config *t = &pass->config->text;
    enum dtype dtype = ops_dtype(pass->ops.precision, DTYPE_F16);
    int64_t width = t->kv_heads * t->head_dim;

    *cache = (struct bonsai_cache){.length = 0};
    if (bonsai_layer_is_full(pass->config, layer)) {
        cache->keys = ops_new(&pass->ops, capacity, width, dtype);
        cache->values = ops_new(&pass->ops, capacity, width, dtype);
        return;
    }
    cache->conv = ops_zeros(&pass->ops, 3, channels(t));
    cache->state = ops_zeros(&pass->ops, 1, (int64_t)state_values(t)).data;
}

/* ---- full attention (2.3) ---- */

/* Columns of one kind out of [query | gate] a head. */
static struct act split_heads(struct ops *o, const struct act *qg,
                              int64_t heads, int64_t dim, int64_t part)
{
    struct act y = ops_new(o, qg->rows, heads * dim, qg->dtype);

    for (int64_t i = 0; i < qg->rows * heads; i++) {
        struct act from = {qg->data, 2 * qg->rows * heads, dim, qg->dtype};
        struct act to = {y.data, qg->rows * heads, dim, y.dtype};
        struct act source = act_rows(&from, 2 * i + part, 1);
        struct act target = act_rows(&to, i, 1);

        act_copy(&target, &source);
    }
    return y;
}

static void rotate_positions(const struct bonsai_pass *pass,
                             const struct sequence *s, int64_t row,
                             int64_t heads, const struct act *x)
{
    const struct bonsai_text_config *t = &pass->config->text;
    struct rope_text rope = {
        .dims = t->rotary_dims,
        .theta = t->rope_theta,
        .sections = {t->sections[0], t->sections[1], t->sections[2]}};
    const int64_t *positions[3];

    for (int axis = 0; axis < 3; axis++)
        positions[axis] = s->positions + axis * s->position_stride + row;
    if (act_is_wide(x))
        rope_text_rows_f64(act_d(x), &rope, positions, x->rows, heads,
                           t->head_dim);
    else
        rope_text_rows(act_f(x), &rope, positions, x->rows, heads, t->head_dim,
                       x->dtype);
}

static void remember(struct act *cache, int64_t at, const struct act *rows)
{
    cache->dtype = rows->dtype;
    struct act place = act_rows(cache, at, rows->rows);

    act_copy(&place, rows);
}

/* Upstream's fused kernel serves calls of few rows, separate operations the
 * others. */
static enum attention_kind route(const struct bonsai_pass *pass,
                                 const struct sequence *s, int64_t row)
{
    const struct bonsai_text_config *t = &pass->config->text;
    int64_t rows = regime_call_rows(&pass->options->regime, s, row);

    return rows <= 8 && rows * (t->heads / t->kv_heads) <= 32
               ? ATTENTION_VECTOR
               : ATTENTION_UNFUSED;
}

static struct act attend(struct bonsai_pass *pass,
                         const struct bonsai_cache *cache,
                         const struct sequence *s, int64_t row,
                         const struct act *q)
{
    const struct bonsai_text_config *t = &pass->config->text;
    enum dtype dtype = ops_promote(q->dtype, cache->keys.dtype);
    struct act y = ops_new(&pass->ops, q->rows, q->cols, dtype);
    struct attention how = {.dtype = dtype,
                            .heads = t->heads,
                            .kv_heads = t->kv_heads,
                            .head_dim = t->head_dim,
                            .scale = 1.0 / sqrt((double)t->head_dim)};

    /* runs of rows that upstream computed by the same route */
    for (int64_t from = 0, end; from < q->rows; from = end) {
        how.kind = route(pass, s, row + from);
        for (end = from + 1; end < q->rows; end++)
            if (route(pass, s, row + end) != how.kind)
                break;
        struct act queries = act_rows(q, from, end - from);
        struct act out = act_rows(&y, from, end - from);
        int64_t keys = row + from + 1; /* that the first of them sees */

        if (act_is_wide(q))
            attention_f64(act_d(&out), act_d(&queries), act_d(&cache->keys),
                          act_d(&cache->values), &how, out.rows, keys);
        else
            attention(act_f(&out), act_f(&queries), act_f(&cache->keys),
                      act_f(&cache->values), &how, out.rows, keys);
    }
    op_round(&y);
    return y;
}

static struct act full_attention(struct bonsai_pass *pass,
                                 const struct bonsai_layer *l,
                                 struct bonsai_cache *cache,
                                 const struct sequence *s, int64_t row,
                                 const struct act *x)
{
    const struct bonsai_text_config *t = &pass->config->text;
    struct ops *o = &pass->ops;
    struct act rotated = op_rotate(o, x, &l->q);
    struct act qg = op_packed(o, &rotated, &l->q);
    struct act k = op_packed(o, &rotated, &l->k);
    struct act v = op_packed(o, &rotated, &l->v);
    struct act query = split_heads(o, &qg, t->heads, t->head_dim, 0);
    struct act gate = split_heads(o, &qg, t->heads, t->head_dim, 1);

    query = op_rms_norm(o, &query, &l->q_norm, t->head_dim, t->eps);
    k = op_rms_norm(o, &k, &l->k_norm, t->head_dim, t->eps);
    rotate_positions(pass, s, row, t->heads, &query);
    rotate_positions(pass, s, row, t->kv_heads, &k);
    remember(&cache->keys, row, &k);
    remember(&cache->values, row, &v);
    struct act seen = attend(pass, cache, s, row, &query);
    struct act gated = op_mul_sigmoid(o, &seen, &gate);
    rotated = op_rotate(o, &gated, &l->o);
    return op_packed(o, &rotated, &l->o);
}

/* ---- gated delta net (2.4) ---- */

/* The depthwise convolution over the remembered and the new rows. */
static struct act convolve(struct bonsai_pass *pass,
                           const struct bonsai_layer *l,
                           struct bonsai_cache *cache, const struct act *mixed)
{
    struct ops *o = &pass->ops;
    enum dtype weight = ops_dtype(o->precision, l->conv.dtype);
    int64_t taps = pass->config->text.conv_kernel;
    struct act y =
        ops_new(o, mixed->rows, mixed->cols, ops_promote(mixed->dtype, weight));

    if (act_is_wide(mixed)) {
        conv_causal_f64(act_d(&y), act_d(&cache->conv), act_d(mixed), l->conv.d,
                        mixed->cols, taps, mixed->rows);
        conv_advance_f64(act_d(&cache->conv), act_d(mixed), mixed->cols, taps,
                         mixed->rows);
    } else {
        conv_causal(act_f(&y), act_f(&cache->conv), act_f(mixed), l->conv.f,
                    mixed->cols, taps, mixed->rows);
        conv_advance(act_f(&cache->conv), act_f(mixed), mixed->cols, taps,
                     mixed->rows);
    }
    op_round(&y);
    op_silu(&y);
    return y;
}

static struct act recur(struct bonsai_pass *pass, const struct bonsai_layer *l,
                        struct bonsai_cache *cache, const struct act *q,
                        const struct act *k, const struct act *v,
                        const struct act *a, const struct act *b)
{
    const struct bonsai_text_config *t = &pass->config->text;
    struct ops *o = &pass->ops;
    struct gated_delta shape = {.key_heads = t->key_heads,
                                .value_heads = t->value_heads,
                                .key_dim = t->key_dim,
                                .value_dim = t->value_dim,
                                .qk_stride = q->cols,
                                .v_stride = v->cols};
    struct act y = ops_new(o, v->rows, v->cols, q->dtype);
    struct act decay = op_decay(o, a, &l->dt_bias, &l->a_log);

    op_sigmoid(b);
    if (act_is_wide(q))
        gated_delta_f64(act_d(&y), cache->state, act_d(q), act_d(k), act_d(v),
                        act_d(&decay), act_d(b), &shape, y.rows);
    else
        gated_delta(act_f(&y), cache->state, act_f(q), act_f(k), act_f(v),
                    act_f(&decay), act_f(b), &shape, y.rows);
    op_round(&y);
    return y;
}

static struct act gated_delta_net(struct bonsai_pass *pass,
                                  const struct bonsai_layer *l,
                                  struct bonsai_cache *cache,
                                  const struct act *x)
{
    const struct bonsai_text_config *t = &pass->config->text;
    struct ops *o = &pass->ops;
    int64_t keys = key_width(t);
    double unit = 1.0 / sqrt((double)t->key_dim);
    struct act rotated = op_rotate(o, x, &l->qkv);
    struct act mixed = op_packed(o, &rotated, &l->qkv);
    struct act z = op_packed(o, &rotated, &l->z);
    struct act a = op_dense(o, x, &l->a, NULL);
    struct act b = op_dense(o, x, &l->b, NULL);
    struct act conv = convolve(pass, l, cache, &mixed);
    struct act q = op_columns(o, &conv, 0, keys);
    struct act k = op_columns(o, &conv, keys, keys);
    struct act v = op_columns(o, &conv, 2 * keys, value_width(t));

    q = op_rms_norm(o, &q, NULL, t->key_dim, t->eps);
    k = op_rms_norm(o, &k, NULL, t->key_dim, t->eps);
    op_scale(&q, 1.0 / (double)t->key_dim);
    op_scale(&k, unit);
    struct act y = recur(pass, l, cache, &q, &k, &v, &a, &b);
    struct act normed = op_rms_norm(o, &y, &l->gdn_norm, t->value_dim, t->eps);
    struct act gated = op_silu_gate(o, &normed, &z, y.dtype);
    rotated = op_rotate(o, &gated, &l->out);
    return op_packed(o, &rotated, &l->out);
}

/* ---- the layer ---- */

static struct act mlp(struct bonsai_pass *pass, const struct bonsai_layer *l,
                      const struct act *x)
{
    struct ops *o = &pass->ops;
    struct act rotated = op_rotate(o, x, &l->gate);
    struct act gate = op_packed(o, &rotated, &l->gate);
    struct act up = op_packed(o, &rotated, &l->up);
    struct act p = op_silu_mul(o, &gate, &up);

    rotated = op_rotate(o, &p, &l->down);
    return op_packed(o, &rotated, &l->down);
}

size_t bonsai_layer_values(const struct bonsai_config *config, int64_t rows)
{
    const struct bonsai_text_config *t = &config->text;
    int64_t attention = t->heads * t->head_dim;
    int64_t full = 8 * attention + 4 * t->kv_heads * t->head_dim;
    int64_t gdn = 3 * channels(t) + 3 * key_width(t) + 6 * value_width(t) +
                  3 * t->value_heads;
    int64_t widest = full > gdn ? full : gdn;

    return (size_t)(rows * (widest + 8 * t->hidden + 4 * t->intermediate));
}

int bonsai_layer_rows(struct bonsai_pass *pass, const struct bonsai_layer *l,
                      int64_t layer, struct bonsai_cache *cache,
                      int64_t sequence, int64_t row, struct act *x,
                      struct err *err)
{
    const struct bonsai_text_config *t = &pass->config->text;
    const struct sequence *s = &pass->sequences[sequence];
    struct ops *o = &pass->ops;
    size_t mark = ops_mark(o);
    char stage[64];

    BUG_ON(cache->length != row);
    cache->length += x->rows;
    struct act normed = op_rms_norm(o, x, &l->input_norm, t->hidden, t->eps);
    struct act mixer = l->is_full
                           ? full_attention(pass, l, cache, s, row, &normed)
                           : gated_delta_net(pass, l, cache, &normed);
    if (bonsai_tap(pass, sequence, bonsai_layer_stage(stage, layer, "mixer"),
                   row, 0, &mixer, err))
        return -1;
    struct act h = op_add(o, x, &mixer);
    normed = op_rms_norm(o, &h, &l->post_norm, t->hidden, t->eps);
    struct act f = mlp(pass, l, &normed);
    if (bonsai_tap(pass, sequence, bonsai_layer_stage(stage, layer, "mlp"), row,
                   0, &f, err))
        return -1;
    struct act out = op_add(o, &h, &f);
    if (bonsai_tap(pass, sequence, bonsai_layer_stage(stage, layer, "out"), row,
                   0, &out, err))
        return -1;
    act_copy(x, &out);
    x->dtype = out.dtype;
    ops_release(o, mark);
    return 0;
}
