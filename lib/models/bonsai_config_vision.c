/* config.json: vision_config of a Bonsai 2 pack. */
#include "models/bonsai_config_internal.h"

#include <math.h>

static int read_shape(struct bonsai_vision_config *v,
                      const struct section *vision, struct err *err)
{
    return bonsai_get_dim(vision, "depth", &v->depth, err) ||
                   bonsai_get_dim(vision, "hidden_size", &v->hidden, err) ||
                   bonsai_get_dim(vision, "num_heads", &v->heads, err) ||
                   bonsai_get_dim(vision, "intermediate_size", &v->intermediate,
                                  err) ||
                   bonsai_get_dim(vision, "out_hidden_size", &v->out_hidden,
                                  err) ||
                   config_get_within(vision, "patch_size", 1, 256, &v->patch,
                                     err) ||
                   config_get_within(vision, "temporal_patch_size", 1, 16,
                                     &v->temporal, err) ||
                   config_want_int(vision, "spatial_merge_size", 2, err) ||
                   config_want_int(vision, "in_channels", 3, err) ||
                   bonsai_get_dim(vision, "num_position_embeddings",
                                  &v->positions, err)
               ? -1
               : 0;
}

static int check_vision(const struct bonsai_vision_config *v,
                        const struct bonsai_text_config *t, struct err *err)
{
    if (v->side * v->side != v->positions)
        return err_set(err, ERR_INPUT,
                       "'num_position_embeddings' is no square");
    if (v->hidden % v->heads || v->hidden / v->heads % 8)
        return err_set(err, ERR_UNSUPPORTED,
                       "the head dimension is no multiple of 8");
    if (v->out_hidden != t->hidden)
        return err_set(err, ERR_INPUT,
                       "'out_hidden_size' is %lld, the text model's "
                       "hidden_size %lld",
                       (long long)v->out_hidden, (long long)t->hidden);
    return 0;
}

/* vision_config itself; errors name the key alone. */
static int read_section(struct bonsai_config *c, const struct section *vision,
                        struct err *err)
{
    /* of upstream's class, and used nowhere in this tower */
    static const char *const unused[] = {
        "fullatt_block_indexes", "image_size",
        "layer_norm_eps",        "mlp_ratio",
        "rope_parameters",       "spatial_patch_size",
        "tokens_per_second",     "vocab_size",
        "window_size",           NULL};
    struct bonsai_vision_config *v = &c->vision;
    json_t *deepstack;

    if (read_shape(v, vision, err) ||
        config_want_text(vision, "hidden_act", "gelu_pytorch_tanh", err) ||
        config_get_list(vision, "deepstack_visual_indexes", &deepstack, err))
        return -1;
    config_ignore(vision, unused);
    config_ignore_common(vision);
    v->merge = 2;
    v->channels = 3;
    v->side = (int64_t)sqrt((double)v->positions);
    if (json_array_size(deepstack) != 0)
        return err_set(err, ERR_UNSUPPORTED,
                       "'deepstack_visual_indexes' is not empty");
    return check_vision(v, &c->text, err);
}

int bonsai_read_vision(struct bonsai_config *c, const struct section *root,
                       struct err *err)
{
    const struct section *vision;

    if (config_get_section(root, "vision_config", &vision, err))
        return -1;
    return read_section(c, vision, err) ? err_in(err, "vision_config") : 0;
}
