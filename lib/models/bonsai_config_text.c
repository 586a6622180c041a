/* config.json: text_config of a Bonsai 2 pack. */
#include "models/bonsai_config_internal.h"

#include <string.h>

enum { MAX_VOCAB = 1 << 24 };

bool bonsai_layer_is_full(const struct bonsai_config *config, int64_t layer)
{
    return (layer + 1) % config->text.interval == 0;
}

/* How many pairs of columns follow time, height and width: all there are. */
static int read_mrope(struct bonsai_text_config *t, const json_t *list,
                      struct err *err)
{
    int64_t sum = 0;

    if (json_array_size(list) != 3)
        return err_set(err, ERR_INPUT, "'mrope_section' has not 3 entries");
    for (size_t i = 0; i < 3; i++) {
        const json_t *entry = json_array_get(list, i);

        t->sections[i] = json_integer_value(entry);
        if (!json_is_integer(entry) || t->sections[i] < 0 ||
            t->sections[i] > BONSAI_MAX_DIM)
            return err_set(err, ERR_INPUT, "'mrope_section'[%zu] is no count",
                           i);
        sum += t->sections[i];
    }
    if (sum != t->rotary_dims / 2)
        return err_set(err, ERR_INPUT,
                       "'mrope_section' adds up to %lld, not to half of %lld "
                       "rotary dimensions",
                       (long long)sum, (long long)t->rotary_dims);
    return 0;
}

static int read_rope(struct bonsai_text_config *t, const struct section *rope,
                     struct err *err)
{
    json_t *sections;
    double factor;

    if (config_want_text(rope, "rope_type", "default", err) ||
        config_want_flag(rope, "mrope_interleaved", true, err) ||
        config_get_real(rope, "rope_theta", &t->rope_theta, err) ||
        config_get_real(rope, "partial_rotary_factor", &factor, err) ||
        config_get_list(rope, "mrope_section", &sections, err))
        return -1;
    if (!(t->rope_theta > 0) || !(factor > 0 && factor <= 1))
        return err_set(err, ERR_INPUT, "theta or partial factor out of range");
    double dims = (double)t->head_dim * factor;
    t->rotary_dims = (int64_t)dims;
    if ((double)t->rotary_dims != dims || t->rotary_dims % 2 != 0)
        return err_set(
            err, ERR_INPUT,
            "head_dim * partial_rotary_factor is not an even number");
    return read_mrope(t, sections, err);
}

/* layer_types is ignored upstream; ours must agree with the interval. */
static int check_layer_types(const struct bonsai_config *c,
                             const struct section *text, struct err *err)
{
    json_t *types;

    if (!config_has(text, "layer_types"))
        return 0;
    if (config_get_list(text, "layer_types", &types, err))
        return -1;
    if ((int64_t)json_array_size(types) != c->text.layers)
        return err_set(err, ERR_INPUT,
                       "'layer_types' has %zu entries for %lld layers",
                       json_array_size(types), (long long)c->text.layers);
    for (int64_t i = 0; i < c->text.layers; i++) {
        const char *want =
            bonsai_layer_is_full(c, i) ? "full_attention" : "linear_attention";
        const char *got = json_string_value(json_array_get(types, (size_t)i));

        if (!got || strcmp(got, want) != 0)
            return err_set(err, ERR_INPUT,
                           "'layer_types'[%lld] is not '%s', as "
                           "full_attention_interval makes it (upstream "
                           "ignores the list; we refuse a contradiction)",
                           (long long)i, want);
    }
    return 0;
}

static int check_text(const struct bonsai_text_config *t, struct err *err)
{
    if (t->heads % t->kv_heads != 0)
        return err_set(err, ERR_INPUT,
                       "num_attention_heads is no multiple of "
                       "num_key_value_heads");
    if (t->value_heads % t->key_heads != 0)
        return err_set(err, ERR_INPUT,
                       "linear_num_value_heads is no multiple of "
                       "linear_num_key_heads");
    if (t->hidden % BONSAI_GROUP || t->intermediate % BONSAI_GROUP ||
        t->heads * t->head_dim % BONSAI_GROUP ||
        t->value_heads * t->value_dim % BONSAI_GROUP)
        return err_set(err, ERR_INPUT,
                       "a packed input width is no multiple of %d",
                       BONSAI_GROUP);
    if (t->head_dim % 8 || t->key_dim % 8 || t->value_dim % 8)
        return err_set(err, ERR_UNSUPPORTED,
                       "a head dimension is no multiple of 8");
    if (t->key_dim != t->value_dim)
        return err_set(err, ERR_UNSUPPORTED,
                       "linear_key_head_dim and linear_value_head_dim differ");
    return 0;
}

static int read_shape(struct bonsai_text_config *t, const struct section *text,
                      struct err *err)
{
    return bonsai_get_dim(text, "hidden_size", &t->hidden, err) ||
                   bonsai_get_dim(text, "num_hidden_layers", &t->layers, err) ||
                   bonsai_get_dim(text, "intermediate_size", &t->intermediate,
                                  err) ||
                   config_get_within(text, "vocab_size", 1, MAX_VOCAB,
                                     &t->vocab, err) ||
                   bonsai_get_dim(text, "num_attention_heads", &t->heads,
                                  err) ||
                   bonsai_get_dim(text, "num_key_value_heads", &t->kv_heads,
                                  err) ||
                   bonsai_get_dim(text, "head_dim", &t->head_dim, err) ||
                   bonsai_get_dim(text, "linear_num_key_heads", &t->key_heads,
                                  err) ||
                   bonsai_get_dim(text, "linear_num_value_heads",
                                  &t->value_heads, err) ||
                   bonsai_get_dim(text, "linear_key_head_dim", &t->key_dim,
                                  err) ||
                   bonsai_get_dim(text, "linear_value_head_dim", &t->value_dim,
                                  err) ||
                   config_want_int(text, "linear_conv_kernel_dim", 4, err) ||
                   bonsai_get_dim(text, "full_attention_interval", &t->interval,
                                  err)
               ? -1
               : 0;
}

/* text_config itself; errors name the key alone. */
static int read_section(struct bonsai_config *c, const struct section *text,
                        struct err *err)
{
    /* Upstream's gates are sigmoid and silu whatever the file says; it carries
     * no multi-token head, and knows no positions past those it is asked for.
     */
    static const char *const unused[] = {"attn_output_gate",
                                         "mamba_ssm_dtype",
                                         "max_position_embeddings",
                                         "mlp_only_layers",
                                         "mtp_num_hidden_layers",
                                         "mtp_use_dedicated_embeddings",
                                         "output_gate_type",
                                         "partial_rotary_factor",
                                         NULL};
    struct bonsai_text_config *t = &c->text;
    const struct section *rope;

    if (read_shape(t, text, err) ||
        config_get_real(text, "rms_norm_eps", &t->eps, err) ||
        config_get_flag(text, "tie_word_embeddings", &t->is_tied, err) ||
        config_want_flag(text, "attention_bias", false, err) ||
        (config_value(text, "hidden_act") &&
         config_want_text(text, "hidden_act", "silu", err)) ||
        config_get_section(text, "rope_parameters", &rope, err))
        return -1;
    if (read_rope(t, rope, err))
        return err_in(err, "rope_parameters");
    if (check_text(t, err) || check_layer_types(c, text, err))
        return -1;
    config_ignore(text, unused);
    config_ignore_common(text);
    t->conv_kernel = 4;
    /* upstream stops at this one too */
    if (config_has(text, "eos_token_id") &&
        stops_add(&c->stops, config_value(text, "eos_token_id"), err))
        return -1;
    if (t->eps != 1e-6)
        return err_set(err, ERR_UNSUPPORTED,
                       "'rms_norm_eps' is %g; upstream's weightless norms use "
                       "1e-06, so only that is supported",
                       t->eps);
    return 0;
}

static int check_tied(const struct bonsai_text_config *t,
                      const struct section *root, struct err *err)
{
    bool is_tied;

    if (!config_has(root, "tie_word_embeddings"))
        return 0;
    if (config_get_flag(root, "tie_word_embeddings", &is_tied, err))
        return -1;
    if (is_tied != t->is_tied)
        return err_set(err, ERR_INPUT,
                       "'tie_word_embeddings' contradicts text_config's "
                       "(upstream reads only that one; we refuse)");
    return 0;
}

int bonsai_read_text(struct bonsai_config *c, const struct section *root,
                     struct err *err)
{
    const struct section *text;

    if (config_get_section(root, "text_config", &text, err))
        return -1;
    if (read_section(c, text, err))
        return err_in(err, "text_config");
    return check_tied(&c->text, root, err);
}
