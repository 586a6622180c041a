/* An open pack against what its configuration asks for. */
#include "base/mem.h"
#include "models/bonsai_slots.h"
#include "safetensors/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t SIGNS_CAP = (size_t)1 << 24;

struct check {
    const struct bonsai_config *config;
    const struct safetensors *st;
    bool *is_used; /* a flag a tensor of the file */
    size_t tensor_count;
    size_t modules_used;
};

static size_t index_of(const struct safetensors *st,
                       const struct tensor_info *info)
{
    size_t low = 0, high = safetensors_count(st);

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;

        if (strcmp(safetensors_at(st, middle)->name, info->name) <= 0)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static const struct tensor_info *want(const struct safetensors *st,
                                      const char *name, struct err *err)
{
    const struct tensor_info *info = safetensors_find(st, name);

    if (!info)
        err_set(err, ERR_INPUT, "the pack holds no tensor '%s'", name);
    return info;
}

static int check_shape(const struct tensor_info *info,
                       const struct tensor_shape *shape, struct err *err)
{
    char got[128], wanted[128];

    if (shape_equal(&info->shape, shape))
        return 0;
    shape_format(&info->shape, got, sizeof(got));
    shape_format(shape, wanted, sizeof(wanted));
    return err_set(err, ERR_INPUT, "tensor '%s' is %s, not %s", info->name, got,
                   wanted);
}

static int check_tensor(struct check *c, const char *name, enum dtype dtype,
                        struct tensor_shape shape, struct err *err)
{
    const struct tensor_info *info = want(c->st, name, err);

    if (!info || check_shape(info, &shape, err))
        return -1;
    if (info->dtype != dtype)
        return err_set(err, ERR_INPUT, "tensor '%s' is %s, not %s", name,
                       dtype_name(info->dtype), dtype_name(dtype));
    c->is_used[index_of(c->st, info)] = true;
    return 0;
}

static int check_float(struct check *c, const struct slot *slot,
                       struct err *err)
{
    const struct tensor_info *info = want(c->st, slot->name, err);

    if (!info || check_shape(info, &slot->shape, err))
        return -1;
    bool is_vision = strncmp(slot->name, "vision_tower.", 13) == 0;
    bool is_known =
        info->dtype == DTYPE_F16 ||
        (!is_vision && (info->dtype == DTYPE_BF16 || info->dtype == DTYPE_F32));
    if (!is_known)
        return err_set(err, ERR_INPUT, "tensor '%s' is %s, not F16%s",
                       slot->name, dtype_name(info->dtype),
                       is_vision ? "" : ", BF16 or F32");
    c->is_used[index_of(c->st, info)] = true;
    return 0;
}

static int check_signs(struct check *c, const char *path, int64_t width,
                       struct err *err)
{
    const struct bonsai_signs *manifest = bonsai_signs(c->config, width);
    char name[BONSAI_NAME_SIZE + 32];
    struct tensor stored = {0};
    int ret = -1;

    snprintf(name, sizeof(name), "language_model.%s.signs", path);
    if (check_tensor(c, name, DTYPE_F32, SHAPE(width), err))
        return -1;
    if (!manifest)
        return err_set(err, ERR_INPUT,
                       "hadamard.json has no sign vector of width %lld, which "
                       "'%s' needs",
                       (long long)width, path);
    if (safetensors_load(c->st, name, SIGNS_CAP, &stored, err))
        return -1;
    const float *got = stored.data;
    for (int64_t i = 0; i < width; i++) {
        if (got[i] != 1.0f && got[i] != -1.0f) {
            err_set(err, ERR_INPUT,
                    "tensor '%s': element %lld is neither +1 nor -1", name,
                    (long long)i);
            goto out;
        }
        if (got[i] != manifest->values[i]) {
            err_set(err, ERR_INPUT,
                    "tensor '%s': element %lld differs from hadamard.json's "
                    "vector of width %lld",
                    name, (long long)i, (long long)width);
            goto out;
        }
    }
    ret = 0;
out:
    tensor_release(&stored);
    return ret;
}

static int check_packed(struct check *c, const char *path, int64_t out,
                        int64_t in, struct err *err)
{
    const struct bonsai_module *m = bonsai_module(c->config, path);
    struct tensor_shape groups = SHAPE(out, in / BONSAI_GROUP);
    char name[BONSAI_NAME_SIZE + 32];

    if (!m)
        return err_set(err, ERR_INPUT, "config.json lists no module '%s'",
                       path);
    c->modules_used++;
    if (m->block && in % m->block)
        return err_set(err, ERR_INPUT,
                       "module '%s': width %lld is no multiple of its block "
                       "%lld",
                       path, (long long)in, (long long)m->block);
    snprintf(name, sizeof(name), "language_model.%s.weight", path);
    if (check_tensor(c, name, DTYPE_U32, SHAPE(out, in / BONSAI_WORD), err))
        return -1;
    snprintf(name, sizeof(name), "language_model.%s.scales", path);
    if (check_tensor(c, name, DTYPE_F16, groups, err))
        return -1;
    snprintf(name, sizeof(name), "language_model.%s.biases", path);
    if (check_tensor(c, name, DTYPE_F16, groups, err))
        return -1;
    return m->block ? check_signs(c, path, in, err) : 0;
}

static int check_slots(struct check *c, const struct slots *s, struct err *err)
{
    for (size_t i = 0; i < s->count; i++) {
        const struct slot *slot = &s->at[i];

        if (slot->kind == SLOT_PACKED
                ? check_packed(c, slot->name, slot->shape.size[0],
                               slot->shape.size[1], err)
                : check_float(c, slot, err))
            return -1;
    }
    return 0;
}

static int check_leftovers(const struct check *c, struct err *err)
{
    const struct bonsai_config *config = c->config;

    for (size_t i = 0; i < c->tensor_count; i++)
        if (!c->is_used[i])
            return err_set(err, ERR_INPUT,
                           "tensor '%s' has no place in the model",
                           safetensors_at(c->st, i)->name);
    if ((int64_t)c->modules_used != config->module_count)
        return err_set(err, ERR_INPUT,
                       "config.json lists %lld modules, the model has %zu",
                       (long long)config->module_count, c->modules_used);
    return 0;
}

static int check_parts(struct check *c, struct err *err)
{
    const struct bonsai_text_config *t = &c->config->text;
    union {
        struct bonsai_layer layer;
        struct bonsai_vision_stem stem;
        struct bonsai_vision_block block;
        struct bonsai_vision_merger merger;
        struct param norm;
    } part;
    struct slots s;

    if (check_packed(c, "model.embed_tokens", t->vocab, t->hidden, err) ||
        (!t->is_tied && check_packed(c, "lm_head", t->vocab, t->hidden, err)))
        return -1;
    for (int64_t i = 0; i < t->layers; i++) {
        bonsai_layer_slots(c->config, i, &part.layer, &s);
        if (check_slots(c, &s, err))
            return -1;
    }
    bonsai_final_norm_slots(c->config, &part.norm, &s);
    if (check_slots(c, &s, err))
        return -1;
    bonsai_stem_slots(c->config, &part.stem, &s);
    if (check_slots(c, &s, err))
        return -1;
    for (int64_t i = 0; i < c->config->vision.depth; i++) {
        bonsai_vision_block_slots(c->config, i, &part.block, &s);
        if (check_slots(c, &s, err))
            return -1;
    }
    bonsai_merger_slots(c->config, &part.merger, &s);
    return check_slots(c, &s, err);
}

int bonsai_check_pack(const struct bonsai_config *config,
                      const struct safetensors *st, struct err *err)
{
    const char *format = safetensors_metadata(st, "format");
    struct check c = {
        .config = config, .st = st, .tensor_count = safetensors_count(st)};

    if (!format || strcmp(format, "mlx") != 0)
        return err_set(err, ERR_UNSUPPORTED,
                       "the tensors' metadata does not say format 'mlx'");
    c.is_used = xcalloc(c.tensor_count, sizeof(bool));
    int ret = check_parts(&c, err) || check_leftovers(&c, err) ? -1 : 0;
    free(c.is_used);
    return ret;
}
