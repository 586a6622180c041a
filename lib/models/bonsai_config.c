/*
 * The description of a Bonsai 2 pack: config.json, hadamard.json and
 * generation_config.json, read strictly and checked against each other.
 */
#include "models/bonsai_config_internal.h"

#include "ledger/ledger.h"

int bonsai_get_dim(const struct section *s, const char *key, int64_t *out,
                   struct err *err)
{
    return config_get_within(s, key, 1, BONSAI_MAX_DIM, out, err);
}

/* ---- config.json ---- */

/* Two bits in groups, which `quantization_config` may say again. */
static int check_quantization(const struct section *root,
                              const struct section *quantization,
                              struct err *err)
{
    if (config_want_int(quantization, "bits", 2, err) ||
        config_want_int(quantization, "group_size", BONSAI_GROUP, err) ||
        config_want_text(quantization, "mode", "affine", err))
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
    return 0;
}

static int check_identity(const struct section *root, struct err *err)
{
    const struct section *quantization, *components;

    if (config_want_text(root, "model_type", "prism_hadamard_qwen35", err) ||
        config_want_int(root, "schema_version", 2, err) ||
        config_want_text(root, "base_model_type", "qwen3_5", err) ||
        config_want_text(root, "hadamard_config", "hadamard.json", err) ||
        config_want_text(root, "tensor_namespace", "mlx-vlm-qwen3_5", err) ||
        config_want_text(root, "gdn_activation_layout", "grouped", err) ||
        config_get_section(root, "quantization", &quantization, err) ||
        config_get_section(root, "components", &components, err) ||
        check_quantization(root, quantization, err))
        return -1;
    if (config_want_flag(components, "text", true, err) ||
        config_want_flag(components, "vision", true, err) ||
        config_want_flag(components, "mtp", false, err))
        return err_in(err, "components");
    return 0;
}

static int read_tokens(struct bonsai_config *c, const struct section *root,
                       struct err *err)
{
    int64_t last = c->text.vocab - 1;

    return config_get_within(root, "image_token_id", 0, last, &c->image_token,
                             err) ||
                   config_get_within(root, "video_token_id", 0, last,
                                     &c->video_token, err) ||
                   config_get_within(root, "vision_start_token_id", 0, last,
                                     &c->vision_start_token, err) ||
                   config_get_within(root, "vision_end_token_id", 0, last,
                                     &c->vision_end_token, err)
               ? -1
               : 0;
}

static int read_config(struct bonsai_config *c, const struct section *root,
                       struct err *err)
{
    /* tokens that upstream takes from elsewhere, and what describes the pack */
    static const char *const unused[] = {"ignore_index",
                                         "image_token_index",
                                         "language_model_only",
                                         "requires_runtime",
                                         "video_token_index",
                                         "vocab_size",
                                         NULL};

    if (check_identity(root, err) || bonsai_read_text(c, root, err) ||
        bonsai_read_vision(c, root, err) || read_tokens(c, root, err) ||
        bonsai_read_modules(c, root, err))
        return -1;
    config_ignore(root, unused);
    config_ignore_common(root);
    return 0;
}

/* ---- the files ---- */

static int read_file(struct bonsai_config *c, const char *name,
                     int (*read)(struct bonsai_config *c,
                                 const struct section *root, struct err *err),
                     struct err *err)
{
    const struct section *root;

    if (ledger_need(c->ledger, name, &root, err))
        return -1;
    return read(c, root, err) ? err_in(err, "%s", config_path(root)) : 0;
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
        read_file(config, "hadamard.json", bonsai_read_hadamard, err) ||
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
