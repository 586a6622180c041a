/*
 * Llama and dense Qwen3, decoders of one form:
 *
 *     h = h + attention(norm(h))              grouped queries, whole heads
 *                                             rotated; Qwen3 norms each head
 *                                             of q and k before, and some of
 *                                             its layers may see a window
 *     h = h + down(silu(gate n) * (up n))     n = norm(h)
 */
#include "models/llama.h"

#include "base/mem.h"
#include "models/decoder.h"
#include "models/eager_ops.h"
#include "models/grouped.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS_CAP = 1 << 24 };

struct llama {
    struct decoder decoder;
    struct grouped attn;
    bool has_head_norms, has_attention_bias, has_mlp_bias;
    int64_t window;        /* of keys, in sliding layers; 0: there are none */
    unsigned char *slides; /* [layers]; NULL: none does */
};

struct layer {
    struct decoder_weights common;
    struct param q_norm, k_norm;
    struct grouped_weights attn;
    struct param q_bias, k_bias, v_bias, o_bias;
    struct param gate_bias, up_bias, down_bias;
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

/* Which layers see a window alone: those that layer_types names, else those
 * from max_window_layers on. */
static int read_layer_types(struct llama *m, const struct section *s,
                            int64_t first, struct err *err)
{
    const json_t *list = config_value(s, "layer_types"), *item;
    const int64_t layers = m->decoder.layers;
    size_t i;

    m->slides = mem_array((size_t)layers, 1, LAYERS_CAP, err);
    if (!m->slides)
        return -1;
    for (int64_t k = 0; k < layers; k++)
        m->slides[k] = !list && m->window && k >= first;
    if (!list)
        return 0;
    if (!json_is_array(list) || json_array_size(list) != (size_t)layers)
        return config_refuse(s, "layer_types", err,
                             "is not a list of %lld layers", (long long)layers);
    json_array_foreach(list, i, item)
    {
        const char *type = json_is_string(item) ? json_string_value(item) : "";

        m->slides[i] = strcmp(type, "sliding_attention") == 0;
        if (!m->slides[i] && strcmp(type, "full_attention") != 0)
            return config_refuse(s, "layer_types", err,
                                 "holds something else than 'full_attention' "
                                 "and 'sliding_attention'");
        if (m->slides[i] && !m->window)
            return config_refuse(s, "layer_types", err,
                                 "names sliding layers without a window");
    }
    return 0;
}

static int read_window(struct llama *m, const struct section *s,
                       struct err *err)
{
    bool is_used;
    int64_t first, window;

    if (config_flag(s, "use_sliding_window", false, &is_used, err) ||
        config_amount(s, "max_window_layers", 28, &first, err) ||
        config_amount(s, "sliding_window",
                      config_is_null(s, "sliding_window") ? 0 : 4096, &window,
                      err))
        return -1;
    m->window = is_used ? window : 0;
    return read_layer_types(m, s, first, err);
}

static int read_rotary(struct llama *m, const struct section *s,
                       double positions, struct err *err)
{
    struct rotary *r = &m->attn.rotary;

    if (config_real(s, "max_position_embeddings", positions, &positions, err) ||
        rotary_read(r, s, 10000, positions, err))
        return -1;
    r->dims = m->attn.head_dim;
    if (!isnan(r->partial) && r->partial != 1)
        return config_refuse(s, "partial_rotary_factor", err,
                             "is %g, only 1 is supported", r->partial);
    if (r->dims % 2)
        return config_refuse(s, "head_dim", err, "is odd");
    if (r->type == ROTARY_DYNAMIC && r->dims < 4)
        return config_refuse(s, "head_dim", err,
                             "is too small for dynamic frequencies");
    return 0;
}

static int read_heads(struct llama *m, const struct section *s,
                      const struct defaults *by, struct err *err)
{
    struct decoder *d = &m->decoder;
    int64_t fallback = by->head_dim;

    if (config_count(s, "num_attention_heads", by->heads, &m->attn.heads, err))
        return -1;
    if (fallback == 0) { /* Llama's default follows the heads */
        fallback = d->hidden / m->attn.heads;
        if (!config_has(s, "head_dim") && d->hidden % m->attn.heads)
            return config_refuse(s, "num_attention_heads", err,
                                 "does not divide the hidden size");
    }
    if (config_count(s, "num_key_value_heads",
                     by->kv_heads ? by->kv_heads : m->attn.heads,
                     &m->attn.kv_heads, err) ||
        config_count(s, "head_dim", fallback, &m->attn.head_dim, err))
        return -1;
    if (m->attn.heads % m->attn.kv_heads)
        return config_refuse(s, "num_key_value_heads", err,
                             "does not divide the heads");
    return 0;
}

static int read_as(struct llama *m, const struct defaults *by, struct err *err)
{
    static const char *const unused[] = {"is_llama_config", "pretraining_tp",
                                         "transformers.js_config", NULL};
    struct decoder *d = &m->decoder;
    const struct section *s = config_root(d->config);

    if (config_count(s, "vocab_size", by->vocab, &d->vocab, err) ||
        config_count(s, "hidden_size", by->hidden, &d->hidden, err) ||
        config_count(s, "intermediate_size", by->width, &d->dense_width, err) ||
        config_count(s, "num_hidden_layers", by->layers, &d->layers, err) ||
        config_real(s, "rms_norm_eps", 1e-6, &m->decoder.eps, err) ||
        config_flag(s, "tie_word_embeddings", false, &d->is_tied, err) ||
        config_expect_text(s, "hidden_act", "silu", err) ||
        config_flag(s, "attention_bias", false, &m->has_attention_bias, err) ||
        config_expect_flag(s, "rope_interleaved", false, err) ||
        read_window(m, s, err) || read_heads(m, s, by, err) ||
        read_rotary(m, s, by->positions, err))
        return -1;
    config_ignore_common(s);
    config_ignore(s, unused);
    return config_finish(d->config, err);
}

static int read_llama(struct decoder *d, struct err *err)
{
    static const struct defaults by = {.vocab = 32000,
                                       .hidden = 4096,
                                       .width = 11008,
                                       .layers = 32,
                                       .heads = 32,
                                       .positions = 2048};

    struct llama *m = (struct llama *)d;

    return config_flag(config_root(d->config), "mlp_bias", false,
                       &m->has_mlp_bias, err) ||
                   config_expect_flag(config_root(d->config),
                                      "use_sliding_window", false, err) ||
                   read_as(m, &by, err)
               ? -1
               : 0;
}

static int read_qwen3(struct decoder *d, struct err *err)
{
    static const struct defaults by = {.vocab = 151936,
                                       .hidden = 4096,
                                       .width = 22016,
                                       .layers = 32,
                                       .heads = 32,
                                       .kv_heads = 32,
                                       .head_dim = 128,
                                       .positions = 32768};
    struct llama *m = (struct llama *)d;

    m->has_head_norms = true;
    return read_as(m, &by, err);
}

/* ---- tensors ---- */

/* Old checkpoints hold the rotary frequencies that config.json gives. */
static const char *const ignored[] = {"*.rotary_emb.inv_freq", NULL};

static void layer_part(const struct decoder *d, int64_t i,
                       struct decoder_weights *w, struct part *p,
                       const char *at)
{
    const struct llama *m = llama_of(d);
    struct layer *l = (struct layer *)w;
    int64_t hidden = d->hidden;
    int64_t queries = grouped_queries(&m->attn), keys = grouped_keys(&m->attn);
    char in[96];

    (void)i;
    snprintf(in, sizeof(in), "%s.self_attn", at);
    grouped_part(&m->attn, &l->attn, hidden, queries, p, in);
    if (m->has_attention_bias) {
        part_param(p, &l->q_bias, queries, "%s.q_proj.bias", in);
        part_param(p, &l->k_bias, keys, "%s.k_proj.bias", in);
        part_param(p, &l->v_bias, keys, "%s.v_proj.bias", in);
        part_param(p, &l->o_bias, hidden, "%s.o_proj.bias", in);
    }
    if (m->has_head_norms) {
        part_param(p, &l->q_norm, m->attn.head_dim, "%s.q_norm.weight", in);
        part_param(p, &l->k_norm, m->attn.head_dim, "%s.k_norm.weight", in);
    }
    decoder_dense_part(d, w, p, at);
    if (m->has_mlp_bias) {
        part_param(p, &l->gate_bias, d->dense_width, "%s.mlp.gate_proj.bias",
                   at);
        part_param(p, &l->up_bias, d->dense_width, "%s.mlp.up_proj.bias", at);
        part_param(p, &l->down_bias, hidden, "%s.mlp.down_proj.bias", at);
    }
}

/* ---- attention ---- */

static const struct param *bias_of(const struct llama *m,
                                   const struct param *bias)
{
    return m->has_attention_bias ? bias : NULL;
}

/* A window over the keys; of one new row upstream keeps no others. */
static void slide(const struct llama *m, int64_t rows, struct sdpa *how,
                  struct act *k, struct act *v)
{
    int64_t past = k->rows - m->window;

    how->window = m->window;
    if (rows == 1 && past > 0) {
        *k = act_rows(k, past, m->window);
        *v = act_rows(v, past, m->window);
    }
}

static struct act attention(struct decoder_pass *p,
                            const struct decoder_weights *w, int64_t layer,
                            const struct sequence *s, const struct act *x)
{
    const struct llama *m = llama_of(p->decoder);
    const struct layer *l = (const struct layer *)w;
    struct ops *o = &p->ops;
    struct act q = op_dense(o, x, &l->attn.q, bias_of(m, &l->q_bias));
    struct act k = op_dense(o, x, &l->attn.k, bias_of(m, &l->k_bias));
    struct act v = op_dense(o, x, &l->attn.v, bias_of(m, &l->v_bias));

    if (m->has_head_norms) {
        q = op_eager_rms_norm(o, &q, &l->q_norm, m->attn.head_dim,
                              m->decoder.eps);
        k = op_eager_rms_norm(o, &k, &l->k_norm, m->attn.head_dim,
                              m->decoder.eps);
    }
    struct sdpa how = grouped_turn(p, &m->attn, s, &q, &k);
    decoder_keep(p, layer, &k, &v);
    if (m->slides[layer])
        slide(m, s->rows, &how, &k, &v);
    struct act seen = op_sdpa(o, &q, &k, &v, &how);
    return op_dense(o, &seen, &l->attn.o, bias_of(m, &l->o_bias));
}

/* ---- feed forward ---- */

static int ffn(struct decoder_pass *p, const struct decoder_weights *w,
               int64_t layer, const struct act *x, struct act *y,
               struct err *err)
{
    const struct layer *l = (const struct layer *)w;
    struct ops *o = &p->ops;

    if (!llama_of(p->decoder)->has_mlp_bias)
        return decoder_ffn(p, w, layer, x, y, err);
    *y = ops_new(o, x->rows, x->cols, x->dtype);
    for (int64_t i = 0; i < p->count; i++) {
        size_t mark = ops_mark(o);
        struct act rows = decoder_rows(p, x, i), to = decoder_rows(p, y, i);
        struct act gate = op_dense(o, &rows, &w->ffn.gate, &l->gate_bias);
        struct act up = op_dense(o, &rows, &w->ffn.up, &l->up_bias);
        struct act unit = op_swiglu(o, &gate, &up);
        struct act down = op_dense(o, &unit, &w->ffn.down, &l->down_bias);

        act_copy(&to, &down);
        ops_release(o, mark);
    }
    return 0;
}

/* ---- the two families ---- */

static size_t values(const struct decoder *d, int64_t rows, int64_t longest)
{
    (void)rows;
    return (size_t)(longest *
                    grouped_row_values(&llama_of(d)->attn, d->hidden));
}

static void kept(const struct decoder *d, int64_t *keys, int64_t *values)
{
    *keys = *values = grouped_keys(&llama_of(d)->attn);
}

static void release(struct decoder *d)
{
    free(((struct llama *)d)->slides);
}

#define LLAMA_HOOKS(read_function)                                           \
    {                                                                        \
        .size = sizeof(struct llama), .weights_size = sizeof(struct layer),  \
        .ignored = ignored, .read = read_function, .layer_part = layer_part, \
        .values = values, .attention = attention, .ffn = ffn, .kept = kept,  \
        .release = release                                                   \
    }
static const struct decoder_hooks llama_hooks = LLAMA_HOOKS(read_llama);
static const struct decoder_hooks qwen3_hooks = LLAMA_HOOKS(read_qwen3);

const struct model_family llama_family = DECODER_FAMILY("llama", &llama_hooks);
const struct model_family qwen3_family = DECODER_FAMILY("qwen3", &qwen3_hooks);
