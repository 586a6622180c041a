/*
 * Every stage that a pass will hand out, its shape and dtype, before anything
 * is computed: dtypes follow from those stored, by upstream's promotion
 * (bonsai2.md 1.8).
 */
#include "models/bonsai_internal.h"

#include <stdio.h>

struct flow {
    enum precision precision;
    const struct bonsai_weights *weights;
    enum dtype residual;
};

static enum dtype stored(const struct flow *f, int64_t layer, const char *name)
{
    char full[160];

    snprintf(full, sizeof(full), "language_model.model.layers.%lld.%s",
             (long long)layer, name);
    return ops_dtype(f->precision, bonsai_weights_dtype(f->weights, full));
}

/* The dtype of a layer's mixer, from that of its input. */
static enum dtype mixer_dtype(const struct flow *f, int64_t layer, bool is_full)
{
    enum dtype x =
        ops_promote(f->residual, stored(f, layer, "input_layernorm.weight"));

    if (!is_full)
        return ops_promote(x, stored(f, layer, "linear_attn.conv1d.weight"));
    enum dtype q = ops_promote(x, stored(f, layer, "self_attn.q_norm.weight"));
    enum dtype k = ops_promote(x, stored(f, layer, "self_attn.k_norm.weight"));
    return ops_promote(q, k);
}

struct layer_flow {
    enum dtype mixer, mlp, out;
};

static struct layer_flow
layer_flow(struct flow *f, const struct bonsai_config *c, int64_t layer)
{
    struct layer_flow l;

    l.mixer = mixer_dtype(f, layer, bonsai_layer_is_full(c, layer));
    enum dtype h = ops_promote(f->residual, l.mixer);
    l.mlp = ops_promote(h, stored(f, layer, "post_attention_layernorm.weight"));
    l.out = ops_promote(h, l.mlp);
    f->residual = l.out;
    return l;
}

static struct flow flow_begin(const struct bonsai *b, enum precision precision)
{
    return (struct flow){precision, b->weights,
                         ops_dtype(precision, DTYPE_F16)};
}

static enum dtype final_dtype(const struct flow *f)
{
    return ops_promote(
        f->residual,
        ops_dtype(f->precision,
                  bonsai_weights_dtype(f->weights,
                                       "language_model.model.norm.weight")));
}

static int visit_vision(const struct bonsai *b, enum precision precision,
                        const struct sequence *s, stage_visitor *visit,
                        void *ctx, struct err *err)
{
    const struct bonsai_vision_config *v = &b->config.vision;
    enum dtype dtype = ops_dtype(precision, DTYPE_F16);
    int64_t merged = s->patch_rows / (v->merge * v->merge);
    char attn[64], out[64];
    struct stage_shape stem[] = {
        {"trace.vision.patch_embed", s->patch_rows, v->hidden, dtype},
        {"trace.vision.pos_embed", s->patch_rows, v->hidden, dtype},
        {"trace.vision.rotary_angles", s->patch_rows, v->hidden / v->heads / 2,
         ops_dtype(precision, DTYPE_F32)},
    };
    struct stage_shape ends[] = {
        {"image_embeds", merged, v->out_hidden, dtype},
        {"trace.vision.merger", merged, v->out_hidden, dtype},
    };

    for (size_t i = 0; i < sizeof(stem) / sizeof(stem[0]); i++)
        if (visit(ctx, &stem[i], err))
            return -1;
    for (int64_t i = 0; i < v->depth; i++) {
        struct stage_shape block[] = {
            {attn, s->patch_rows, v->hidden, dtype},
            {out, s->patch_rows, v->hidden, dtype},
        };

        snprintf(attn, sizeof(attn), "trace.vision.block%lld.attn",
                 (long long)i);
        snprintf(out, sizeof(out), "trace.vision.block%lld.out", (long long)i);
        if (visit(ctx, &block[0], err) || visit(ctx, &block[1], err))
            return -1;
    }
    return visit(ctx, &ends[0], err) || visit(ctx, &ends[1], err) ? -1 : 0;
}

int bonsai_stages(const struct model *m, const struct forward_options *o,
                  const struct sequence *s, stage_visitor *visit, void *ctx,
                  struct err *err)
{
    const struct bonsai *b = (const struct bonsai *)m;
    const struct bonsai_text_config *t = &b->config.text;
    struct flow flow = flow_begin(b, o->precision);
    struct stage_shape embeds = {"trace.input_embeds", s->prompt, t->hidden,
                                 flow.residual};
    char name[64];

    if (s->images && visit_vision(b, o->precision, s, visit, ctx, err))
        return -1;
    if (visit(ctx, &embeds, err))
        return -1;
    for (int64_t i = 0; i < t->layers; i++) {
        struct layer_flow l = layer_flow(&flow, &b->config, i);
        const struct {
            const char *part;
            enum dtype dtype;
        } parts[] = {{"mixer", l.mixer}, {"mlp", l.mlp}, {"out", l.out}};

        for (int part = 0; part < 3; part++) {
            struct stage_shape shape = {
                bonsai_layer_stage(name, i, parts[part].part), s->rows,
                t->hidden, parts[part].dtype};

            if (visit(ctx, &shape, err))
                return -1;
        }
    }
    enum dtype last = final_dtype(&flow);
    struct stage_shape ends[] = {
        {"hidden_states", sequence_exported(s), t->hidden, last},
        {"trace.final_norm", s->rows, t->hidden, last},
        {"logits", sequence_exported(s), t->vocab, last},
    };
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        if (visit(ctx, &ends[i], err))
            return -1;
    return 0;
}
