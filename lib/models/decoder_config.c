/* What decoder families read of config.json alike. */
#include "models/decoder.h"

#include <string.h>

int decoder_check_groups(const struct decoder *d, const struct section *s,
                         const char *groups_key, const char *chosen_key,
                         struct err *err)
{
    const struct routing *r = &d->routing;
    int64_t of_group = d->experts.count / r->groups;

    if (r->groups_kept > r->groups || d->experts.count % r->groups ||
        (r->groups > 1 && of_group < 2))
        return config_refuse(s, groups_key, err,
                             "does not divide the experts into groups of two "
                             "or more, or is less than topk_group");
    if (r->chosen > of_group * r->groups_kept)
        return config_refuse(s, chosen_key, err,
                             "is more than the experts of the groups kept");
    return 0;
}

int decoder_read_routing(struct decoder *d, const struct section *s,
                         struct err *err)
{
    struct experts *e = &d->experts;
    struct routing *r = &d->routing;
    int64_t shared;

    r->eps = 1e-20;
    if (config_count(s, "n_routed_experts|num_local_experts", e->count,
                     &e->count, err) ||
        config_count(s, "moe_intermediate_size", 2048, &e->width, err) ||
        config_count(s, "n_shared_experts", 1, &shared, err) ||
        config_count(s, "num_experts_per_tok", 8, &r->chosen, err) ||
        config_count(s, "n_group", r->groups, &r->groups, err) ||
        config_count(s, "topk_group", r->groups_kept, &r->groups_kept, err) ||
        config_flag(s, "norm_topk_prob", true, &r->is_normalised, err) ||
        config_real(s, "routed_scaling_factor", 2.5, &r->scale, err) ||
        config_expect_text(s, "scoring_func", "sigmoid", err) ||
        config_expect_text(s, "topk_method", "noaux_tc", err))
        return -1;
    d->shared_width = shared * e->width;
    return decoder_check_groups(d, s, "n_group", "num_experts_per_tok", err);
}

static bool is_one_of(const char *word, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(word, *words) == 0)
            return true;
    return false;
}

/* The tensors' own types and shapes say how they are decoded. */
static const char *const quantization_unused[] = {
    "activation_scheme",
    "config_groups",
    "dequantize",
    "global_compression_ratio",
    "ignore",
    "ignored_layers",
    "modules_to_convert",
    "modules_to_not_convert",
    "packed_modules_mapping",
    "quantization_status",
    "scale_fmt",
    "version",
    "weight_block_size",
    NULL,
};

/* Of one section: the method, and the form of its codes. */
static int check_quantization(const struct section *s, struct err *err)
{
    static const char key[] = "quantization_config";
    static const char *const packed[] = {"pack-quantized",
                                         "mxfp4-pack-quantized", NULL};
    static const char *const fp8[] = {"e4m3", "float8_e4m3fn", NULL};
    static const char *const empty[] = {"sparsity_config", "transform_config"};
    const struct section *q;
    const char *method, *form;

    if (!config_has(s, key))
        return 0;
    if (config_section(s, key, &q, err) ||
        config_text(q, "quant_method", NULL, &method, err))
        return -1;
    if (!method)
        return 0;
    bool is_packed = strcmp(method, "compressed-tensors") == 0;
    if (!is_packed && strcmp(method, "fp8") != 0)
        return config_refuse(s, key, err,
                             "names the method '%.40s', only fp8 and "
                             "compressed-tensors are supported",
                             method);
    if (config_text(q, is_packed ? "format" : "fmt", NULL, &form, err))
        return -1;
    if (form && !is_one_of(form, is_packed ? packed : fp8))
        return config_refuse(
            s, key, err, "names the form '%.40s', only %s are supported", form,
            is_packed ? "pack-quantized and mxfp4-pack-quantized"
                      : "e4m3 and float8_e4m3fn");
    for (int i = 0; i < 2; i++)
        if (json_object_size(config_value(q, empty[i])) != 0)
            return config_refuse(q, empty[i], err, "is not supported");
    config_ignore(q, quantization_unused);
    return 0;
}

int decoder_check_quantization(const struct section *root, struct err *err)
{
    const struct section *text = NULL;

    if ((config_has(root, "text_config") &&
         config_section(root, "text_config", &text, err)) ||
        check_quantization(root, err))
        return -1;
    return text ? check_quantization(text, err) : 0;
}

int decoder_text_section(const struct section *root,
                         const struct section **text, struct err *err)
{
    if (config_section(root, "text_config", text, err))
        return -1;
    return *text ? 0 : config_refuse(root, "text_config", err, "is missing");
}

int decoder_finish_wrapper(struct decoder *d, const char *const *unused,
                           struct err *err)
{
    const struct section *root = config_root(d->config);

    if (config_flag(root, "tie_word_embeddings", d->is_tied, &d->is_tied, err))
        return -1;
    config_ignore_common(root);
    config_ignore(root, unused);
    return config_finish(d->config, err);
}
