/*
 * The description of a Bonsai 2 pack: config.json, hadamard.json and
 * generation_config.json, read strictly and checked against each other.
 */
#include "models/bonsai_config.h"

#include "ledger/ledger.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_DIM = 1 << 20, /* any width, head count or depth */
    MAX_VOCAB = 1 << 24,
    GROUP = 128,
};

/* An integer of `object` within [low, high]. */
static int get_range(const struct section *object, const char *key, int64_t low,
                     int64_t high, int64_t *out, struct err *err)
{
    if (config_get_int(object, key, out, err))
        return -1;
    if (*out < low || *out > high)
        return err_set(err, ERR_INPUT, "'%s' is %lld, not within %lld and %lld",
                       key, (long long)*out, (long long)low, (long long)high);
    return 0;
}

static int get_dim(const struct section *object, const char *key, int64_t *out,
                   struct err *err)
{
    return get_range(object, key, 1, MAX_DIM, out, err);
}

/* A key whose only supported value is `want`. */
static int want_str(const struct section *object, const char *key,
                    const char *want, struct err *err)
{
    const char *text;

    if (config_get_text(object, key, &text, NULL, err))
        return -1;
    if (strcmp(text, want) != 0)
        return err_set(err, ERR_UNSUPPORTED,
                       "'%s' is '%s'; only '%s' is "
                       "supported",
                       key, text, want);
    return 0;
}

static int want_int(const struct section *object, const char *key, int64_t want,
                    struct err *err)
{
    int64_t value;

    if (config_get_int(object, key, &value, err))
        return -1;
    if (value != want)
        return err_set(err, ERR_UNSUPPORTED,
                       "'%s' is %lld; only %lld is "
                       "supported",
                       key, (long long)value, (long long)want);
    return 0;
}

static int want_bool(const struct section *object, const char *key, bool want,
                     struct err *err)
{
    bool value;

    if (config_get_flag(object, key, &value, err))
        return -1;
    if (value != want)
        return err_set(err, ERR_UNSUPPORTED, "'%s' is %s; only %s is supported",
                       key, value ? "true" : "false", want ? "true" : "false");
    return 0;
}

/* ---- config.json: the pack ---- */

static int read_identity(const struct section *root, struct err *err)
{
    const struct section *quantization, *components;

    if (want_str(root, "model_type", "prism_hadamard_qwen35", err) ||
        want_int(root, "schema_version", 2, err) ||
        want_str(root, "base_model_type", "qwen3_5", err) ||
        want_str(root, "hadamard_config", "hadamard.json", err) ||
        want_str(root, "tensor_namespace", "mlx-vlm-qwen3_5", err) ||
        want_str(root, "gdn_activation_layout", "grouped", err) ||
        config_get_section(root, "quantization", &quantization, err) ||
        config_get_section(root, "components", &components, err))
        return -1;
    if (want_int(quantization, "bits", 2, err) ||
        want_int(quantization, "group_size", GROUP, err) ||
        want_str(quantization, "mode", "affine", err))
        return err_in(err, "quantization");
    if (json_object_size(config_object(quantization)) != 3)
        return err_set(err, ERR_UNSUPPORTED,
                       "quantization: holds more than bits, group_size and "
                       "mode");
    const json_t *copy = config_value(root, "quantization_config");
    if (copy &&
        !json_equal((json_t *)copy, (json_t *)config_object(quantization)))
        return err_set(err, ERR_UNSUPPORTED,
                       "'quantization_config' is not what 'quantization' is");
    if (want_bool(components, "text", true, err) ||
        want_bool(components, "vision", true, err) ||
        want_bool(components, "mtp", false, err))
        return err_in(err, "components");
    return 0;
}

static int read_tokens(struct bonsai_config *c, const struct section *root,
                       struct err *err)
{
    int64_t last = c->text.vocab - 1;

    return get_range(root, "image_token_id", 0, last, &c->image_token, err) ||
                   get_range(root, "video_token_id", 0, last, &c->video_token,
                             err) ||
                   get_range(root, "vision_start_token_id", 0, last,
                             &c->vision_start_token, err) ||
                   get_range(root, "vision_end_token_id", 0, last,
                             &c->vision_end_token, err)
               ? -1
               : 0;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct bonsai_module *)a)->path,
                  ((const struct bonsai_module *)b)->path);
}

static int read_module(struct bonsai_config *c, const json_t *record,
                       struct bonsai_module *out, struct err *err)
{
    const char *path, *dtype;

    if (!json_is_object(record))
        return err_set(err, ERR_INPUT, "is not an object");
    if (json_get_str(record, "path", &path, err) ||
        json_get_int(record, "block", &out->block, err) ||
        json_get_bool(record, "embedding", &out->is_embedding, err) ||
        json_get_str(record, "dtype", &dtype, err))
        return -1;
    if (strcmp(dtype, "float16") != 0)
        return err_set(err, ERR_UNSUPPORTED,
                       "'dtype' is '%s'; only 'float16' is supported", dtype);
    if (json_object_size(record) != 4)
        return err_set(err, ERR_UNSUPPORTED,
                       "holds more than path, block, embedding and dtype");
    out->path = arena_strdup(&c->arena, path);
    int64_t b = out->block;
    if (b != 0 && b != 512 && b != 1024 && b != 2048 && b != 4096)
        return err_set(err, ERR_INPUT,
                       "'%s': block %lld is none of 0, 512, 1024, 2048, 4096",
                       path, (long long)b);
    if (out->is_embedding != (strcmp(path, "model.embed_tokens") == 0))
        return err_set(err, ERR_INPUT,
                       "'%s': only model.embed_tokens is an embedding", path);
    return 0;
}

static int read_modules(struct bonsai_config *c, const struct section *root,
                        struct err *err)
{
    json_t *list;

    if (config_get_list(root, "modules", &list, err))
        return -1;
    size_t n = json_array_size(list);
    c->modules = arena_alloc(&c->arena, n * sizeof(*c->modules));
    c->module_count = (int64_t)n;
    for (size_t i = 0; i < n; i++)
        if (read_module(c, json_array_get(list, i), &c->modules[i], err))
            return err_in(err, "modules[%zu]", i);
    qsort(c->modules, n, sizeof(*c->modules), by_path);
    for (size_t i = 1; i < n; i++)
        if (by_path(&c->modules[i - 1], &c->modules[i]) == 0)
            return err_set(err, ERR_INPUT, "modules: '%s' stands twice",
                           c->modules[i].path);
    return 0;
}

/* ---- config.json: text_config ---- */

static int read_rope(struct bonsai_text_config *t, const struct section *text,
                     struct err *err)
{
    const struct section *rope;
    json_t *sections;
    double factor;

    if (config_get_section(text, "rope_parameters", &rope, err))
        return -1;
    if (want_str(rope, "rope_type", "default", err) ||
        want_bool(rope, "mrope_interleaved", true, err) ||
        config_get_real(rope, "rope_theta", &t->rope_theta, err) ||
        config_get_real(rope, "partial_rotary_factor", &factor, err) ||
        config_get_list(rope, "mrope_section", &sections, err))
        return err_in(err, "rope_parameters");
    if (!(t->rope_theta > 0) || !(factor > 0 && factor <= 1))
        return err_set(err, ERR_INPUT,
                       "rope_parameters: theta or partial factor out of range");
    double dims = (double)t->head_dim * factor;
    t->rotary_dims = (int64_t)dims;
    if ((double)t->rotary_dims != dims || t->rotary_dims % 2 != 0)
        return err_set(err, ERR_INPUT,
                       "rope_parameters: head_dim * partial_rotary_factor is "
                       "not an even number");
    if (json_array_size(sections) != 3)
        return err_set(err, ERR_INPUT,
                       "rope_parameters: 'mrope_section' has not 3 entries");
    int64_t sum = 0;
    for (size_t i = 0; i < 3; i++) {
        json_t *entry = json_array_get(sections, i);

        t->sections[i] = json_integer_value(entry);
        if (!json_is_integer(entry) || t->sections[i] < 0 ||
            t->sections[i] > MAX_DIM)
            return err_set(err, ERR_INPUT,
                           "rope_parameters: 'mrope_section'[%zu] is no count",
                           i);
        sum += t->sections[i];
    }
    if (sum != t->rotary_dims / 2)
        return err_set(err, ERR_INPUT,
                       "rope_parameters: 'mrope_section' adds up to %lld, not "
                       "to half of %lld rotary dimensions",
                       (long long)sum, (long long)t->rotary_dims);
    return 0;
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
    if (t->hidden % GROUP || t->intermediate % GROUP ||
        t->heads * t->head_dim % GROUP || t->value_heads * t->value_dim % GROUP)
        return err_set(err, ERR_INPUT,
                       "a packed input width is no multiple of %d", GROUP);
    if (t->head_dim % 8 || t->key_dim % 8 || t->value_dim % 8)
        return err_set(err, ERR_UNSUPPORTED,
                       "a head dimension is no multiple of 8");
    if (t->key_dim != t->value_dim)
        return err_set(err, ERR_UNSUPPORTED,
                       "linear_key_head_dim and linear_value_head_dim differ");
    return 0;
}

/* Upstream's gates are sigmoid and silu whatever the file says; it carries no
 * multi-token head, and knows no positions past those it is asked for. */
static const char *const text_unused[] = {
    "attn_output_gate", "mamba_ssm_dtype",       "max_position_embeddings",
    "mlp_only_layers",  "mtp_num_hidden_layers", "mtp_use_dedicated_embeddings",
    "output_gate_type", "partial_rotary_factor", NULL};

static int read_text(struct bonsai_config *c, const struct section *root,
                     struct err *err)
{
    struct bonsai_text_config *t = &c->text;
    const struct section *text;
    bool top_tied;

    if (config_get_section(root, "text_config", &text, err))
        return -1;
    if (get_dim(text, "hidden_size", &t->hidden, err) ||
        get_dim(text, "num_hidden_layers", &t->layers, err) ||
        get_dim(text, "intermediate_size", &t->intermediate, err) ||
        get_range(text, "vocab_size", 1, MAX_VOCAB, &t->vocab, err) ||
        get_dim(text, "num_attention_heads", &t->heads, err) ||
        get_dim(text, "num_key_value_heads", &t->kv_heads, err) ||
        get_dim(text, "head_dim", &t->head_dim, err) ||
        get_dim(text, "linear_num_key_heads", &t->key_heads, err) ||
        get_dim(text, "linear_num_value_heads", &t->value_heads, err) ||
        get_dim(text, "linear_key_head_dim", &t->key_dim, err) ||
        get_dim(text, "linear_value_head_dim", &t->value_dim, err) ||
        want_int(text, "linear_conv_kernel_dim", 4, err) ||
        get_dim(text, "full_attention_interval", &t->interval, err) ||
        config_get_real(text, "rms_norm_eps", &t->eps, err) ||
        config_get_flag(text, "tie_word_embeddings", &t->is_tied, err) ||
        want_bool(text, "attention_bias", false, err) ||
        (config_value(text, "hidden_act") &&
         want_str(text, "hidden_act", "silu", err)) ||
        read_rope(t, text, err) || check_text(t, err) ||
        check_layer_types(c, text, err))
        return err_in(err, "text_config");
    config_ignore(text, text_unused);
    config_ignore_common(text);
    t->conv_kernel = 4;
    /* upstream stops at this one too */
    if (config_has(text, "eos_token_id") &&
        stops_add(&c->stops, config_value(text, "eos_token_id"), err))
        return err_in(err, "text_config");
    if (t->eps != 1e-6)
        return err_set(err, ERR_UNSUPPORTED,
                       "text_config: 'rms_norm_eps' is %g; upstream's "
                       "weightless norms use 1e-06, so only that is supported",
                       t->eps);
    if (config_has(root, "tie_word_embeddings")) {
        if (config_get_flag(root, "tie_word_embeddings", &top_tied, err))
            return -1;
        if (top_tied != t->is_tied)
            return err_set(err, ERR_INPUT,
                           "'tie_word_embeddings' contradicts text_config's "
                           "(upstream reads only that one; we refuse)");
    }
    return 0;
}

/* ---- config.json: vision_config ---- */

/* Of upstream's class, and used nowhere in this tower. */
static const char *const vision_unused[] = {
    "fullatt_block_indexes", "image_size",
    "layer_norm_eps",        "mlp_ratio",
    "rope_parameters",       "spatial_patch_size",
    "tokens_per_second",     "vocab_size",
    "window_size",           NULL};

static int read_vision(struct bonsai_config *c, const struct section *root,
                       struct err *err)
{
    struct bonsai_vision_config *v = &c->vision;
    const struct section *vision;
    json_t *deepstack;

    if (config_get_section(root, "vision_config", &vision, err))
        return -1;
    if (get_dim(vision, "depth", &v->depth, err) ||
        get_dim(vision, "hidden_size", &v->hidden, err) ||
        get_dim(vision, "num_heads", &v->heads, err) ||
        get_dim(vision, "intermediate_size", &v->intermediate, err) ||
        get_dim(vision, "out_hidden_size", &v->out_hidden, err) ||
        get_range(vision, "patch_size", 1, 256, &v->patch, err) ||
        get_range(vision, "temporal_patch_size", 1, 16, &v->temporal, err) ||
        want_int(vision, "spatial_merge_size", 2, err) ||
        want_int(vision, "in_channels", 3, err) ||
        get_dim(vision, "num_position_embeddings", &v->positions, err) ||
        want_str(vision, "hidden_act", "gelu_pytorch_tanh", err) ||
        config_get_list(vision, "deepstack_visual_indexes", &deepstack, err))
        return err_in(err, "vision_config");
    config_ignore(vision, vision_unused);
    config_ignore_common(vision);
    v->merge = 2;
    v->channels = 3;
    v->side = (int64_t)sqrt((double)v->positions);
    if (json_array_size(deepstack) != 0)
        return err_set(err, ERR_UNSUPPORTED,
                       "vision_config: 'deepstack_visual_indexes' is not "
                       "empty");
    if (v->side * v->side != v->positions)
        return err_set(err, ERR_INPUT,
                       "vision_config: 'num_position_embeddings' is no square");
    if (v->hidden % v->heads || v->hidden / v->heads % 8)
        return err_set(err, ERR_UNSUPPORTED,
                       "vision_config: the head dimension is no multiple of "
                       "8");
    if (v->out_hidden != c->text.hidden)
        return err_set(err, ERR_INPUT,
                       "vision_config: 'out_hidden_size' is %lld, the text "
                       "model's hidden_size %lld",
                       (long long)v->out_hidden, (long long)c->text.hidden);
    return 0;
}

/* ---- hadamard.json ---- */

#define PREFIX "prism.hadamard."

/* The list under `key` must be exactly the rotated modules of that kind. */
static int check_names(const struct bonsai_config *c, const json_t *list,
                       bool is_inverse, struct err *err)
{
    int64_t listed = 0, expected = 0;

    for (int64_t i = 0; i < c->module_count; i++) {
        const struct bonsai_module *m = &c->modules[i];

        expected += m->block != 0 && m->is_embedding == is_inverse;
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        static const char head[] = "language_model.", tail[] = ".weight";
        size_t n = name ? strlen(name) : 0;

        if (n < sizeof(head) + sizeof(tail) ||
            strncmp(name, head, strlen(head)) != 0 ||
            strcmp(name + n - strlen(tail), tail) != 0)
            return err_set(err, ERR_INPUT, "entry %zu names no packed weight",
                           i);
        char path[256];
        size_t len = n - strlen(head) - strlen(tail);
        if (len >= sizeof(path))
            return err_set(err, ERR_INPUT, "entry %zu is too long", i);
        memcpy(path, name + strlen(head), len);
        path[len] = '\0';
        const struct bonsai_module *m = bonsai_module(c, path);
        if (!m || m->block == 0)
            return err_set(err, ERR_INPUT,
                           "'%s' is no rotated module of config.json", name);
        /* a tied embedding may stand in both lists: it is also the head */
        if (m->is_embedding != is_inverse) {
            if (is_inverse || !c->text.is_tied)
                return err_set(err, ERR_INPUT, "'%s' is of the other kind",
                               name);
            continue;
        }
        listed++;
    }
    if (listed != expected)
        return err_set(err, ERR_INPUT,
                       "names %lld modules; config.json rotates %lld",
                       (long long)listed, (long long)expected);
    return 0;
}

static int read_sign_values(struct bonsai_config *c, const json_t *widths,
                            const json_t *values, struct err *err)
{
    size_t at = 0, total = json_array_size(values);

    c->sign_count = (int64_t)json_array_size(widths);
    c->signs =
        arena_alloc(&c->arena, json_array_size(widths) * sizeof(*c->signs));
    for (int64_t i = 0; i < c->sign_count; i++) {
        json_t *entry = json_array_get(widths, (size_t)i);
        int64_t width = json_integer_value(entry);

        if (!json_is_integer(entry) || width < 1 || width > MAX_DIM ||
            (size_t)width > total - at)
            return err_set(err, ERR_INPUT,
                           "'" PREFIX "sign_widths'[%lld] does not fit the "
                           "sign values",
                           (long long)i);
        for (int64_t j = 0; j < i; j++)
            if (c->signs[j].width == width)
                return err_set(err, ERR_INPUT,
                               "'" PREFIX "sign_widths' names %lld twice",
                               (long long)width);
        float *signs = arena_alloc(&c->arena, (size_t)width * sizeof(*signs));
        double *wide = arena_alloc(&c->arena, (size_t)width * sizeof(*wide));
        for (int64_t k = 0; k < width; k++) {
            double s =
                json_number_value(json_array_get(values, at + (size_t)k));

            if (s != 1.0 && s != -1.0)
                return err_set(err, ERR_INPUT,
                               "'" PREFIX "sign_values'[%zu] is neither +1 "
                               "nor -1",
                               at + (size_t)k);
            signs[k] = (float)s;
            wide[k] = s;
        }
        at += (size_t)width;
        c->signs[i] = (struct bonsai_signs){width, signs, wide};
    }
    if (at != total)
        return err_set(err, ERR_INPUT,
                       "'" PREFIX "sign_values' has %zu entries, the widths "
                       "add up to %zu",
                       total, at);
    return 0;
}

static int read_hadamard(struct bonsai_config *c, const struct section *root,
                         struct err *err)
{
    json_t *forward, *inverse, *widths, *values;
    int64_t block;

    if (want_int(root, PREFIX "version", 1, err) ||
        want_str(root, PREFIX "transform",
                 "normalized-sylvester-walsh-hadamard", err) ||
        want_str(root, PREFIX "axis", "input-last-dimension", err) ||
        want_str(root, PREFIX "sign_mode", "explicit", err) ||
        want_bool(root, PREFIX "gdn_v_grouped", true, err) ||
        config_get_int(root, PREFIX "block_size", &block, err) ||
        config_get_list(root, PREFIX "weight_names", &forward, err) ||
        config_get_list(root, PREFIX "inverse_weight_names", &inverse, err) ||
        config_get_list(root, PREFIX "sign_widths", &widths, err) ||
        config_get_list(root, PREFIX "sign_values", &values, err) ||
        read_sign_values(c, widths, values, err))
        return -1;
    if (check_names(c, forward, false, err))
        return err_in(err, "'" PREFIX "weight_names'");
    if (check_names(c, inverse, true, err))
        return err_in(err, "'" PREFIX "inverse_weight_names'");
    bool has_block = false, is_rotated = false;
    for (int64_t i = 0; i < c->module_count; i++) {
        is_rotated |= c->modules[i].block != 0;
        has_block |= c->modules[i].block == block;
    }
    if (is_rotated && !has_block)
        return err_set(err, ERR_INPUT,
                       "'" PREFIX "block_size' is %lld, which no module of "
                       "config.json has",
                       (long long)block);
    return 0;
}

/* ---- all of it ---- */

typedef int section_reader(struct bonsai_config *, const struct section *,
                           struct err *);

/* Tokens that upstream takes from elsewhere, and what describes the pack. */
static const char *const pack_unused[] = {"ignore_index",
                                          "image_token_index",
                                          "language_model_only",
                                          "requires_runtime",
                                          "video_token_index",
                                          "vocab_size",
                                          NULL};

static int read_config(struct bonsai_config *c, const struct section *root,
                       struct err *err)
{
    if (read_identity(root, err) || read_text(c, root, err) ||
        read_vision(c, root, err) || read_tokens(c, root, err) ||
        read_modules(c, root, err))
        return -1;
    config_ignore(root, pack_unused);
    config_ignore_common(root);
    return 0;
}

static int read_file(struct bonsai_config *c, const char *name,
                     section_reader *reader, struct err *err)
{
    const struct section *root;

    if (ledger_need(c->ledger, name, &root, err))
        return -1;
    return reader(c, root, err) ? err_in(err, "%s", config_path(root)) : 0;
}

/* A pack says what ends an answer. */
static int read_generation(struct bonsai_config *c, struct err *err)
{
    const char *name = "generation_config.json";
    const struct section *root;
    bool is_there;

    if (ledger_need(c->ledger, name, &root, err))
        return -1;
    if (!config_has(root, "eos_token_id"))
        return err_set(err, ERR_INPUT, "%s: no 'eos_token_id'",
                       config_path(root));
    return stops_read(&c->stops, c->ledger, &is_there, err);
}

int bonsai_config_read(struct bonsai_config *config, const char *pack,
                       struct err *err)
{
    *config =
        (struct bonsai_config){.arena = ARENA_INIT, .ledger = ledger_new(pack)};
    if (read_file(config, "config.json", read_config, err) ||
        read_file(config, "hadamard.json", read_hadamard, err) ||
        read_generation(config, err) ||
        ledger_finish(config->ledger, "config.json", err)) {
        bonsai_config_release(config);
        return -1;
    }
    return 0;
}

void bonsai_config_release(struct bonsai_config *config)
{
    arena_release(&config->arena);
    ledger_free(config->ledger);
    *config = (struct bonsai_config){.arena = ARENA_INIT};
}

bool bonsai_layer_is_full(const struct bonsai_config *config, int64_t layer)
{
    return (layer + 1) % config->text.interval == 0;
}

const struct bonsai_module *bonsai_module(const struct bonsai_config *config,
                                          const char *path)
{
    struct bonsai_module key = {.path = path};

    return bsearch(&key, config->modules, (size_t)config->module_count,
                   sizeof(key), by_path);
}

const struct bonsai_signs *bonsai_signs(const struct bonsai_config *config,
                                        int64_t width)
{
    for (int64_t i = 0; i < config->sign_count; i++)
        if (config->signs[i].width == width)
            return &config->signs[i];
    return NULL;
}
