/* What each part of the model is in the pack's files. */
#include "models/bonsai_slots.h"

#include "base/bug.h"

#include <stdarg.h>
#include <stdio.h>

static struct slot *add_slot(struct slots *s, enum slot_kind kind, void *target,
                             struct tensor_shape shape)
{
    BUG_ON(s->count == BONSAI_MAX_SLOTS);
    struct slot *slot = &s->at[s->count++];

    *slot = (struct slot){.kind = kind, .shape = shape, .target = target};
    return slot;
}

__attribute__((format(printf, 6, 7))) static void
add_packed(struct slots *s, struct linear *target, int64_t out, int64_t in,
           int64_t layer, const char *format, ...)
{
    struct slot *slot = add_slot(s, SLOT_PACKED, target, SHAPE(out, in));
    int n = snprintf(slot->name, BONSAI_NAME_SIZE, "model.layers.%lld.",
                     (long long)layer);
    va_list ap;

    va_start(ap, format);
    vsnprintf(slot->name + n, BONSAI_NAME_SIZE - (size_t)n, format, ap);
    va_end(ap);
}

static void add_tensor(struct slots *s, enum slot_kind kind, void *target,
                       struct tensor_shape shape, const char *prefix,
                       const char *name)
{
    struct slot *slot = add_slot(s, kind, target, shape);

    snprintf(slot->name, BONSAI_NAME_SIZE, "%s%s", prefix, name);
}

void bonsai_layer_slots(const struct bonsai_config *c, int64_t i,
                        struct bonsai_layer *l, struct slots *s)
{
    const struct bonsai_text_config *t = &c->text;
    int64_t hidden = t->hidden, head = t->head_dim;
    int64_t keys = t->key_heads * t->key_dim;
    int64_t values = t->value_heads * t->value_dim;
    int64_t channels = 2 * keys + values;
    char at[64], gdn[80], attn[80];

    snprintf(at, sizeof(at), "language_model.model.layers.%lld.", (long long)i);
    snprintf(gdn, sizeof(gdn), "%slinear_attn.", at);
    snprintf(attn, sizeof(attn), "%sself_attn.", at);
    s->count = 0;
    l->is_full = bonsai_layer_is_full(c, i);
    add_tensor(s, SLOT_PARAM, &l->input_norm, SHAPE(hidden), at,
               "input_layernorm.weight");
    add_tensor(s, SLOT_PARAM, &l->post_norm, SHAPE(hidden), at,
               "post_attention_layernorm.weight");
    add_packed(s, &l->gate, t->intermediate, hidden, i, "mlp.gate_proj");
    add_packed(s, &l->up, t->intermediate, hidden, i, "mlp.up_proj");
    add_packed(s, &l->down, hidden, t->intermediate, i, "mlp.down_proj");
    if (l->is_full) {
        add_packed(s, &l->q, t->heads * head * 2, hidden, i,
                   "self_attn.q_proj");
        add_packed(s, &l->k, t->kv_heads * head, hidden, i, "self_attn.k_proj");
        add_packed(s, &l->v, t->kv_heads * head, hidden, i, "self_attn.v_proj");
        add_packed(s, &l->o, hidden, t->heads * head, i, "self_attn.o_proj");
        add_tensor(s, SLOT_PARAM, &l->q_norm, SHAPE(head), attn,
                   "q_norm.weight");
        add_tensor(s, SLOT_PARAM, &l->k_norm, SHAPE(head), attn,
                   "k_norm.weight");
        return;
    }
    add_packed(s, &l->qkv, channels, hidden, i, "linear_attn.in_proj_qkv");
    add_packed(s, &l->z, values, hidden, i, "linear_attn.in_proj_z");
    add_packed(s, &l->out, hidden, values, i, "linear_attn.out_proj");
    add_tensor(s, SLOT_DENSE, &l->a, SHAPE(t->value_heads, hidden), gdn,
               "in_proj_a.weight");
    add_tensor(s, SLOT_DENSE, &l->b, SHAPE(t->value_heads, hidden), gdn,
               "in_proj_b.weight");
    add_tensor(s, SLOT_PARAM, &l->conv, SHAPE(channels, t->conv_kernel, 1), gdn,
               "conv1d.weight");
    add_tensor(s, SLOT_PARAM, &l->a_log, SHAPE(t->value_heads), gdn, "A_log");
    add_tensor(s, SLOT_PARAM, &l->dt_bias, SHAPE(t->value_heads), gdn,
               "dt_bias");
    add_tensor(s, SLOT_PARAM, &l->gdn_norm, SHAPE(t->value_dim), gdn,
               "norm.weight");
}

static void add_affine(struct slots *s, struct affine *a, int64_t out,
                       int64_t in, const char *prefix, const char *name)
{
    char text[BONSAI_NAME_SIZE];

    snprintf(text, sizeof(text), "%s.weight", name);
    add_tensor(s, SLOT_DENSE, &a->weight, SHAPE(out, in), prefix, text);
    snprintf(text, sizeof(text), "%s.bias", name);
    add_tensor(s, SLOT_PARAM, &a->bias, SHAPE(out), prefix, text);
}

static void add_norm(struct slots *s, struct scale_shift *n, int64_t width,
                     const char *prefix, const char *name)
{
    char text[BONSAI_NAME_SIZE];

    snprintf(text, sizeof(text), "%s.weight", name);
    add_tensor(s, SLOT_PARAM, &n->weight, SHAPE(width), prefix, text);
    snprintf(text, sizeof(text), "%s.bias", name);
    add_tensor(s, SLOT_PARAM, &n->bias, SHAPE(width), prefix, text);
}

void bonsai_stem_slots(const struct bonsai_config *c,
                       struct bonsai_vision_stem *stem, struct slots *s)
{
    const struct bonsai_vision_config *v = &c->vision;
    static const char at[] = "vision_tower.";

    s->count = 0;
    add_tensor(s, SLOT_DENSE, &stem->patch_embed.weight,
               SHAPE(v->hidden, v->temporal, v->patch, v->patch, v->channels),
               at, "patch_embed.proj.weight");
    add_tensor(s, SLOT_PARAM, &stem->patch_embed.bias, SHAPE(v->hidden), at,
               "patch_embed.proj.bias");
    add_tensor(s, SLOT_PARAM, &stem->pos_embed, SHAPE(v->positions, v->hidden),
               at, "pos_embed.weight");
}

void bonsai_vision_block_slots(const struct bonsai_config *c, int64_t i,
                               struct bonsai_vision_block *b, struct slots *s)
{
    const struct bonsai_vision_config *v = &c->vision;
    char at[64];

    snprintf(at, sizeof(at), "vision_tower.blocks.%lld.", (long long)i);
    s->count = 0;
    add_norm(s, &b->norm1, v->hidden, at, "norm1");
    add_norm(s, &b->norm2, v->hidden, at, "norm2");
    add_affine(s, &b->qkv, 3 * v->hidden, v->hidden, at, "attn.qkv");
    add_affine(s, &b->proj, v->hidden, v->hidden, at, "attn.proj");
    add_affine(s, &b->fc1, v->intermediate, v->hidden, at, "mlp.linear_fc1");
    add_affine(s, &b->fc2, v->hidden, v->intermediate, at, "mlp.linear_fc2");
}

void bonsai_merger_slots(const struct bonsai_config *c,
                         struct bonsai_vision_merger *m, struct slots *s)
{
    const struct bonsai_vision_config *v = &c->vision;
    int64_t wide = v->hidden * v->merge * v->merge;
    static const char at[] = "vision_tower.merger.";

    s->count = 0;
    add_norm(s, &m->norm, v->hidden, at, "norm");
    add_affine(s, &m->fc1, wide, wide, at, "linear_fc1");
    add_affine(s, &m->fc2, v->out_hidden, wide, at, "linear_fc2");
}

void bonsai_final_norm_slots(const struct bonsai_config *c, struct param *p,
                             struct slots *s)
{
    s->count = 0;
    add_tensor(s, SLOT_PARAM, p, SHAPE(c->text.hidden), "language_model.model.",
               "norm.weight");
}
