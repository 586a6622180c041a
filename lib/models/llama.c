/*
 * Llama and dense Qwen3, decoders of one form:
 *
 *     h = h + attention(norm(h))              grouped queries, whole heads
 *                                             rotated; Qwen3 norms each head
 *                                             of q and k before
 *     h = h + down(silu(gate n) * (up n))     n = norm(h)
 */
#include "models/llama.h"

#include "base/mem.h"
#include "base/path.h"
#include "models/decoder.h"
#include "models/eager_ops.h"
#include "models/rotary.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct llama {
    struct decoder decoder;
    int64_t heads, kv_heads, head_dim, width;
    bool has_head_norms;
    double eps;
    struct rotary rotary;
    struct checkpoint_names names;
};

struct layer {
    struct param input_norm, post_norm, q_norm, k_norm;
    struct dense_weight q, k, v, o, gate, up, down;
};

/* What an absent key stands for. */
struct defaults {
    int64_t vocab, hidden, width, layers, heads, kv_heads, head_dim;
    double positions;
};

static const struct llama *llama_of(const struct decoder *d)
{
    return (const struct llama *)d;
}

/* ---- config.json ---- */

/* Every layer attends to all that came before it. */
static int check_layer_types(const struct section *s, struct err *err)
{
    const json_t *list = config_value(s, "layer_types"), *item;
    size_t i;

    if (!list)
        return 0;
    if (!json_is_array(list))
        return config_refuse(s, "layer_types", err, "is not a list");
    json_array_foreach(
        list, i, item) if (!json_is_string(item) ||
                           strcmp(json_string_value(item), "full_attention") !=
                               0) return config_refuse(s, "layer_types", err,
                                                       "holds something else "
                                                       "than 'full_attention'");
    return 0;
}

static int read_rotary(struct llama *m, const struct section *s,
                       double positions, struct err *err)
{
    struct rotary *r = &m->rotary;

    if (config_real(s, "max_position_embeddings", positions, &positions, err) ||
        rotary_read(r, s, 10000, positions, err))
        return -1;
    r->dims = m->head_dim;
    if (!isnan(r->partial) && r->partial != 1)
        return config_refuse(s, "partial_rotary_factor", err,
                             "is %g, only 1 is supported", r->partial);
    if (r->dims % 2)
        return config_refuse(s, "head_dim", err, "is odd");
    return 0;
}

static int read_heads(struct llama *m, const struct section *s,
                      const struct defaults *by, struct err *err)
{
    struct decoder *d = &m->decoder;
    int64_t fallback = by->head_dim;

    if (config_count(s, "num_attention_heads", by->heads, &m->heads, err))
        return -1;
    if (fallback == 0) { /* Llama's default follows the heads */
        fallback = d->hidden / m->heads;
        if (!config_has(s, "head_dim") && d->hidden % m->heads)
            return config_refuse(s, "num_attention_heads", err,
                                 "does not divide the hidden size");
    }
    if (config_count(s, "num_key_value_heads",
                     by->kv_heads ? by->kv_heads : m->heads, &m->kv_heads,
                     err) ||
        config_count(s, "head_dim", fallback, &m->head_dim, err))
        return -1;
    if (m->heads % m->kv_heads)
        return config_refuse(s, "num_key_value_heads", err,
                             "does not divide the heads");
    return 0;
}

static int read_config(struct llama *m, const struct defaults *by,
                       struct err *err)
{
    static const char *const unused[] = {
        "is_llama_config", "max_window_layers",      "pretraining_tp",
        "sliding_window",  "transformers.js_config", NULL};
    struct decoder *d = &m->decoder;
    const struct section *s = config_root(d->config);

    if (config_count(s, "vocab_size", by->vocab, &d->vocab, err) ||
        config_count(s, "hidden_size", by->hidden, &d->hidden, err) ||
        config_count(s, "intermediate_size", by->width, &m->width, err) ||
        config_count(s, "num_hidden_layers", by->layers, &d->layers, err) ||
        config_real(s, "rms_norm_eps", 1e-6, &m->eps, err) ||
        config_flag(s, "tie_word_embeddings", false, &d->is_tied, err) ||
        config_expect_text(s, "hidden_act", "silu", err) ||
        config_expect_flag(s, "attention_bias", false, err) ||
        config_expect_flag(s, "mlp_bias", false, err) ||
        config_expect_flag(s, "rope_interleaved", false, err) ||
        config_expect_flag(s, "use_sliding_window", false, err) ||
        check_layer_types(s, err) || read_heads(m, s, by, err) ||
        read_rotary(m, s, by->positions, err))
        return -1;
    config_ignore_common(s);
    config_ignore(s, unused);
    d->width = d->hidden;
    return config_finish(d->config, err);
}

/* ---- tensors ---- */

/* Old checkpoints hold the rotary frequencies that config.json gives. */
static const char *const ignored[] = {"*.rotary_emb.inv_freq", NULL};

static void layer_part(const struct llama *m, int64_t i, struct layer *l,
                       struct part *p)
{
    int64_t hidden = m->decoder.hidden;
    int64_t queries = m->heads * m->head_dim, keys = m->kv_heads * m->head_dim;
    char at[64];

    snprintf(at, sizeof(at), "model.layers.%lld", (long long)i);
    part_clear(p);
    part_param(p, &l->input_norm, hidden, "%s.input_layernorm.weight", at);
    part_param(p, &l->post_norm, hidden, "%s.post_attention_layernorm.weight",
               at);
    part_dense(p, &l->q, queries, hidden, "%s.self_attn.q_proj.weight", at);
    part_dense(p, &l->k, keys, hidden, "%s.self_attn.k_proj.weight", at);
    part_dense(p, &l->v, keys, hidden, "%s.self_attn.v_proj.weight", at);
    part_dense(p, &l->o, hidden, queries, "%s.self_attn.o_proj.weight", at);
    if (m->has_head_norms) {
        part_param(p, &l->q_norm, m->head_dim, "%s.self_attn.q_norm.weight",
                   at);
        part_param(p, &l->k_norm, m->head_dim, "%s.self_attn.k_norm.weight",
                   at);
    }
    part_dense(p, &l->gate, m->width, hidden, "%s.mlp.gate_proj.weight", at);
    part_dense(p, &l->up, m->width, hidden, "%s.mlp.up_proj.weight", at);
    part_dense(p, &l->down, hidden, m->width, "%s.mlp.down_proj.weight", at);
}

static void norm_part(const struct llama *m, struct param *norm, struct part *p)
{
    part_clear(p);
    part_param(p, norm, m->decoder.hidden, "model.norm.weight");
}

static int expect_all(struct llama *m, struct err *err)
{
    struct decoder *d = &m->decoder;
    struct part p = PART_INIT;
    struct layer layer;
    struct param norm;
    int ret;

    norm_part(m, &norm, &p);
    ret = checkpoint_expect(d->weights, &p, err);
    for (int64_t i = 0; i < d->layers && ret == 0; i++) {
        layer_part(m, i, &layer, &p);
        ret = checkpoint_expect(d->weights, &p, err);
    }
    part_release(&p);
    return ret ? -1 : decoder_expect(d, err);
}

/* ---- the layer ---- */

static struct act attention(struct decoder_pass *p, const struct layer *l,
                            const struct sequence *s, const struct act *x)
{
    const struct llama *m = llama_of(p->decoder);
    struct ops *o = &p->ops;
    struct rotary_shape turned = {.pairs = ROTARY_HALVES,
                                  .heads = m->heads,
                                  .width = m->head_dim,
                                  .dims = m->rotary.dims};
    struct sdpa how = {.kind = p->options->is_flash_exact ? SDPA_FLASH_EXACT
                                                          : SDPA_FLASH,
                       .heads = m->heads,
                       .kv_heads = m->kv_heads,
                       .key_dim = m->head_dim,
                       .value_dim = m->head_dim,
                       .scale = 1 / sqrt((double)m->head_dim)};
    struct rotary_tables tables =
        rotary_tables(o, &m->rotary, s->positions, s->rows);
    struct act q = op_dense(o, x, &l->q, NULL);
    struct act k = op_dense(o, x, &l->k, NULL);
    struct act v = op_dense(o, x, &l->v, NULL);

    if (m->has_head_norms) {
        q = op_eager_rms_norm(o, &q, &l->q_norm, m->head_dim, m->eps);
        k = op_eager_rms_norm(o, &k, &l->k_norm, m->head_dim, m->eps);
    }
    op_rotary(&q, &tables, &turned);
    turned.heads = m->kv_heads;
    op_rotary(&k, &tables, &turned);
    struct act seen = op_sdpa(o, &q, &k, &v, &how);
    return op_dense(o, &seen, &l->o, NULL);
}

static struct act mlp(struct decoder_pass *p, const struct layer *l,
                      const struct act *x)
{
    struct ops *o = &p->ops;
    struct act gate = op_dense(o, x, &l->gate, NULL);
    struct act up = op_dense(o, x, &l->up, NULL);
    struct act y = op_swiglu(o, &gate, &up);

    return op_dense(o, &y, &l->down, NULL);
}

static int run_layer(struct decoder_pass *p, int64_t i, struct act *x,
                     struct err *err)
{
    const struct llama *m = llama_of(p->decoder);
    struct ops *o = &p->ops;
    struct part part = PART_INIT;
    struct layer l;

    layer_part(m, i, &l, &part);
    int ret =
        checkpoint_load(p->decoder->weights, &part, CHECKPOINT_LAYER, err);
    part_release(&part);
    if (ret)
        return -1;
    struct act mixer = ops_new(o, x->rows, x->cols, x->dtype);
    struct act f = ops_new(o, x->rows, x->cols, x->dtype);
    for (int64_t k = 0; k < p->count; k++) {
        size_t mark = ops_mark(o);
        struct act rows = decoder_rows(p, x, k);
        struct act to = decoder_rows(p, &mixer, k);
        struct act normed =
            op_eager_rms_norm(o, &rows, &l.input_norm, x->cols, m->eps);
        struct act y = attention(p, &l, &p->sequences[k], &normed);

        act_copy(&to, &y);
        ops_release(o, mark);
    }
    if (decoder_tap(p, i, "mixer", &mixer, err))
        return -1;
    struct act h = op_add(o, x, &mixer);
    for (int64_t k = 0; k < p->count; k++) {
        size_t mark = ops_mark(o);
        struct act rows = decoder_rows(p, &h, k);
        struct act to = decoder_rows(p, &f, k);
        struct act normed =
            op_eager_rms_norm(o, &rows, &l.post_norm, x->cols, m->eps);
        struct act y = mlp(p, &l, &normed);

        act_copy(&to, &y);
        ops_release(o, mark);
    }
    if (decoder_tap(p, i, "mlp", &f, err))
        return -1;
    struct act out = op_add(o, &h, &f);
    act_copy(x, &out);
    return decoder_tap(p, i, "out", x, err);
}

static int finish(struct decoder_pass *p, const struct act *x, struct act *out,
                  struct err *err)
{
    const struct llama *m = llama_of(p->decoder);
    struct part part = PART_INIT;
    struct param norm;

    norm_part(m, &norm, &part);
    return decoder_final_norm(p, x, &part, &norm, m->eps, out, err);
}

static size_t values(const struct decoder *d, int64_t rows, int64_t longest)
{
    const struct llama *m = llama_of(d);
    int64_t queries = m->heads * m->head_dim, keys = m->kv_heads * m->head_dim;
    int64_t attention_row =
        2 * d->hidden + 3 * queries + 3 * keys + 2 * m->head_dim;
    int64_t mlp_row = 2 * d->hidden + 3 * m->width;

    return (size_t)(rows * 4 * d->hidden) +
           (size_t)(longest *
                    (attention_row > mlp_row ? attention_row : mlp_row));
}

static size_t stages(const struct decoder *d, int64_t layer,
                     struct decoder_stage *out)
{
    (void)layer;
    out[0] = (struct decoder_stage){"mixer", d->hidden, false};
    out[1] = (struct decoder_stage){"mlp", d->hidden, false};
    out[2] = (struct decoder_stage){"out", d->hidden, false};
    return 3;
}

static const struct decoder_hooks hooks = {
    .values = values, .layer = run_layer, .finish = finish, .stages = stages};

/* ---- the two families ---- */

static struct model *open_as(const char *pack,
                             const struct model_family *family,
                             const struct defaults *by, struct err *err)
{
    struct llama *m = xcalloc(1, sizeof(*m));
    struct decoder *d = &m->decoder;
    char *path = path_join(pack, "config.json");

    d->model.family = family;
    d->hooks = &hooks;
    m->has_head_norms = family == &qwen3_family;
    d->config = config_open(path, err);
    free(path);
    if (d->config && read_config(m, by, err) == 0) {
        m->names = (struct checkpoint_names){NULL, ignored, d->layers};
        d->weights = checkpoint_open(pack, &m->names, err);
        if (d->weights && expect_all(m, err) == 0)
            return &d->model;
    }
    decoder_close(&d->model);
    return NULL;
}

static struct model *open_llama(const char *pack, bool is_kept, struct err *err)
{
    static const struct defaults by = {.vocab = 32000,
                                       .hidden = 4096,
                                       .width = 11008,
                                       .layers = 32,
                                       .heads = 32,
                                       .positions = 2048};

    (void)is_kept; /* generation is not offered */
    return open_as(pack, &llama_family, &by, err);
}

static struct model *open_qwen3(const char *pack, bool is_kept, struct err *err)
{
    static const struct defaults by = {.vocab = 151936,
                                       .hidden = 4096,
                                       .width = 22016,
                                       .layers = 32,
                                       .heads = 32,
                                       .kv_heads = 32,
                                       .head_dim = 128,
                                       .positions = 32768};

    (void)is_kept; /* generation is not offered */
    return open_as(pack, &qwen3_family, &by, err);
}

const struct model_family llama_family = DECODER_FAMILY("llama", open_llama);
const struct model_family qwen3_family = DECODER_FAMILY("qwen3", open_qwen3);
