/*
 * The vision tower (bonsai2.md 3): patch embedding plus interpolated position
 * embedding, blocks of full attention within each image, and the merger that
 * joins 2 x 2 patches into one row of the text model's width.
 *
 * All patches of all sequences lie one after another, in the processor's block
 * order; a block's weights are read once for all of them.
 */
#include "models/bonsai_internal.h"

#include "base/bug.h"
#include "kernels/attention.h"
#include "kernels/posembed.h"
#include "kernels/rope.h"

#include <math.h>
#include <stdio.h>

static const double layer_norm_eps = 1e-6;
static const double rope_theta = 10000.0;

enum { ROWS = 256 }; /* patches worked on at once outside attention */

/* ---- shape of the work ---- */

static int64_t patch_columns(const struct bonsai_vision_config *v)
{
    return v->channels * v->temporal * v->patch * v->patch;
}

size_t bonsai_vision_values(const struct bonsai_config *config, int64_t patches,
                            int64_t largest)
{
    const struct bonsai_vision_config *v = &config->vision;
    int64_t merge = v->merge * v->merge;
    int64_t rows = largest < ROWS * merge ? largest : ROWS * merge;
    int64_t head = v->hidden / v->heads;

    return (size_t)(patches * (v->hidden + head / 2) + /* residual, angles */
                    largest * 8 * v->hidden +          /* qkv, q, k, v, out */
                    rows * (2 * patch_columns(v) + 4 * v->intermediate +
                            12 * v->hidden) +
                    rows / merge * 4 * v->out_hidden);
}

/* One image of one sequence, as rows of the whole. */
struct picture {
    int64_t sequence;
    int64_t first, row; /* among all patches; within its sequence */
    int64_t frames, height, width;
};

typedef int picture_visitor(struct bonsai_pass *pass, const struct picture *p,
                            void *ctx, struct err *err);

static int each_picture(struct bonsai_pass *pass, picture_visitor *visit,
                        void *ctx, struct err *err)
{
    struct picture p = {.first = 0};

    for (p.sequence = 0; p.sequence < pass->count; p.sequence++) {
        const struct sequence *s = &pass->sequences[p.sequence];

        p.row = 0;
        for (int64_t i = 0; i < s->images; i++) {
            p.frames = s->grids[3 * i];
            p.height = s->grids[3 * i + 1];
            p.width = s->grids[3 * i + 2];
            if (visit(pass, &p, ctx, err))
                return -1;
            int64_t patches = p.frames * p.height * p.width;
            p.row += patches;
            p.first += patches;
        }
    }
    return 0;
}

/* ---- patch and position embedding (3.1, 3.2, 3.3) ---- */

struct stem {
    struct bonsai_vision_stem weights;
    const struct act *hidden, *angles;
};

/* [channel, time, y, x] of the processor to [time, y, x, channel] of the
 * convolution's weight; rounded to the weight's dtype as upstream casts. */
static struct act permuted_patches(struct bonsai_pass *pass,
                                   const float *patches, int64_t rows,
                                   enum dtype stored)
{
    const struct bonsai_vision_config *v = &pass->config->vision;
    int64_t pixels = v->temporal * v->patch * v->patch;
    struct act y = ops_new(&pass->ops, rows, patch_columns(v),
                           ops_dtype(pass->ops.precision, stored));

    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < v->channels; c++)
            for (int64_t i = 0; i < pixels; i++) {
                float value = patches[r * y.cols + c * pixels + i];
                int64_t at = r * y.cols + i * v->channels + c;

                if (act_is_wide(&y))
                    act_d(&y)[at] = (double)value;
                else
                    act_f(&y)[at] = value;
            }
    op_round(&y);
    return y;
}

static struct act positions_of(struct bonsai_pass *pass,
                               const struct picture *p,
                               const struct param *table, int64_t row,
                               int64_t rows)
{
    const struct bonsai_vision_config *v = &pass->config->vision;
    struct ops *o = &pass->ops;
    struct act y =
        ops_new(o, rows, v->hidden, ops_dtype(o->precision, table->dtype));
    struct posembed_grid grid = {.height = p->height,
                                 .width = p->width,
                                 .side = v->side,
                                 .merge = v->merge};

    if (act_is_wide(&y))
        posembed_rows_f64(act_d(&y), table->d, v->hidden, &grid, row, rows);
    else
        posembed_rows(act_f(&y), table->f, v->hidden, &grid, row, rows,
                      y.dtype);
    return y;
}

static int embed_picture(struct bonsai_pass *pass, const struct picture *p,
                         void *ctx, struct err *err)
{
    const struct bonsai_vision_config *v = &pass->config->vision;
    const struct sequence *s = &pass->sequences[p->sequence];
    struct stem *stem = ctx;
    struct affine *proj = &stem->weights.patch_embed;
    struct ops *o = &pass->ops;
    int64_t patches = p->frames * p->height * p->width;
    struct posembed_grid grid = {.height = p->height,
                                 .width = p->width,
                                 .side = v->side,
                                 .merge = v->merge};

    for (int64_t at = 0, rows; at < patches; at += rows) {
        size_t mark = ops_mark(o);
        int64_t first = p->first + at, row = p->row + at;

        rows = patches - at < ROWS ? patches - at : ROWS;
        struct act x =
            permuted_patches(pass, s->patches + row * patch_columns(v), rows,
                             proj->weight.dtype);
        struct act embedded =
            op_dense_then_bias(o, &x, &proj->weight, &proj->bias);
        struct act position =
            positions_of(pass, p, &stem->weights.pos_embed, at, rows);
        struct act angles = act_rows(stem->angles, first, rows);
        if (act_is_wide(&angles))
            rope_vision_angles_f64(act_d(&angles), angles.cols, rope_theta,
                                   &grid, at, rows);
        else
            rope_vision_angles(act_f(&angles), angles.cols, rope_theta, &grid,
                               at, rows);
        if (bonsai_tap(pass, p->sequence, "trace.vision.patch_embed", row, 0,
                       &embedded, err) ||
            bonsai_tap(pass, p->sequence, "trace.vision.pos_embed", row, 0,
                       &position, err) ||
            bonsai_tap(pass, p->sequence, "trace.vision.rotary_angles", row, 0,
                       &angles, err))
            return -1;
        struct act sum = op_add(o, &embedded, &position);
        struct act h = act_rows(stem->hidden, first, rows);
        act_copy(&h, &sum);
        ops_release(o, mark);
    }
    return 0;
}

/* ---- a block (3.4) ---- */

struct block {
    struct bonsai_vision_block weights;
    int64_t index;
    const struct act *hidden, *angles;
};

/* q, k and v of an image out of its normed rows, q and k rotated; `patches`
 * of all images were one call upstream. */
static void project(struct bonsai_pass *pass, const struct block *b,
                    const struct act *hidden, const struct act *angles,
                    int64_t patches, struct act qkv[3])
{
    const struct bonsai_vision_config *v = &pass->config->vision;
    struct ops *o = &pass->ops;

    for (int64_t at = 0, rows; at < hidden->rows; at += rows) {
        size_t mark = ops_mark(o);

        rows = hidden->rows - at < ROWS ? hidden->rows - at : ROWS;
        struct act x = act_rows(hidden, at, rows);
        struct act normed =
            op_layer_norm(o, &x, &b->weights.norm1, layer_norm_eps);
        struct act all = op_affine(o, &normed, &b->weights.qkv, patches);
        for (int i = 0; i < 3; i++) {
            struct act part = op_columns(o, &all, i * v->hidden, v->hidden);
            struct act place = act_rows(&qkv[i], at, rows);

            act_copy(&place, &part);
            qkv[i].dtype = part.dtype;
        }
        ops_release(o, mark);
    }
    for (int i = 0; i < 2; i++) {
        if (act_is_wide(&qkv[i]))
            rope_vision_rows_f64(act_d(&qkv[i]), act_d(angles), hidden->rows,
                                 v->heads, v->hidden / v->heads);
        else
            rope_vision_rows(act_f(&qkv[i]), act_f(angles), hidden->rows,
                             v->heads, v->hidden / v->heads, qkv[i].dtype);
    }
}

/* Every temporal slice of an image attends to itself. */
static struct act attend(struct bonsai_pass *pass, const struct picture *p,
                         const struct act qkv[3])
{
    const struct bonsai_vision_config *v = &pass->config->vision;
    int64_t head = v->hidden / v->heads, slice = p->height * p->width;
    struct attention how = {.kind = ATTENTION_FULL,
                            .dtype = DTYPE_F32,
                            .heads = v->heads,
                            .kv_heads = v->heads,
                            .head_dim = head,
                            .scale = 1.0 / sqrt((double)head)};
    struct act y = ops_new(&pass->ops, qkv[0].rows, qkv[0].cols, qkv[0].dtype);

    for (int64_t i = 0; i < p->frames; i++) {
        struct act out = act_rows(&y, i * slice, slice);
        struct act q = act_rows(&qkv[0], i * slice, slice);
        struct act k = act_rows(&qkv[1], i * slice, slice);
        struct act value = act_rows(&qkv[2], i * slice, slice);

        if (act_is_wide(&q))
            attention_f64(act_d(&out), act_d(&q), act_d(&k), act_d(&value),
                          &how, slice, slice);
        else
            attention(act_f(&out), act_f(&q), act_f(&k), act_f(&value), &how,
                      slice, slice);
    }
    op_round(&y);
    return y;
}

static struct act vision_mlp(struct bonsai_pass *pass, const struct block *b,
                             const struct act *h, int64_t patches)
{
    struct ops *o = &pass->ops;
    struct act normed = op_layer_norm(o, h, &b->weights.norm2, layer_norm_eps);
    struct act m = op_affine(o, &normed, &b->weights.fc1, patches);

    op_gelu_tanh(&m);
    return op_affine(o, &m, &b->weights.fc2, patches);
}

static int block_picture(struct bonsai_pass *pass, const struct picture *p,
                         void *ctx, struct err *err)
{
    const struct bonsai_vision_config *v = &pass->config->vision;
    struct block *b = ctx;
    struct ops *o = &pass->ops;
    int64_t patches = p->frames * p->height * p->width;
    int64_t in_call = pass->sequences[p->sequence].patch_rows;
    struct act hidden = act_rows(b->hidden, p->first, patches);
    struct act angles = act_rows(b->angles, p->first, patches);
    size_t outer = ops_mark(o);
    struct act qkv[3];
    char attn_stage[64], out_stage[64];

    snprintf(attn_stage, sizeof(attn_stage), "trace.vision.block%lld.attn",
             (long long)b->index);
    snprintf(out_stage, sizeof(out_stage), "trace.vision.block%lld.out",
             (long long)b->index);
    for (int i = 0; i < 3; i++)
        qkv[i] = ops_new(o, patches, v->hidden, hidden.dtype);
    project(pass, b, &hidden, &angles, in_call, qkv);
    struct act seen = attend(pass, p, qkv);
    for (int64_t at = 0, rows; at < patches; at += rows) {
        size_t mark = ops_mark(o);
        int64_t row = p->row + at;

        rows = patches - at < ROWS ? patches - at : ROWS;
        struct act x = act_rows(&hidden, at, rows);
        struct act part = act_rows(&seen, at, rows);
        struct act attn = op_affine(o, &part, &b->weights.proj, in_call);
        if (bonsai_tap(pass, p->sequence, attn_stage, row, 0, &attn, err))
            return -1;
        struct act h = op_add(o, &x, &attn);
        struct act f = vision_mlp(pass, b, &h, in_call);
        struct act out = op_add(o, &h, &f);
        if (bonsai_tap(pass, p->sequence, out_stage, row, 0, &out, err))
            return -1;
        act_copy(&x, &out);
        ops_release(o, mark);
    }
    ops_release(o, outer);
    return 0;
}

/* ---- the merger (3.5) ---- */

struct merge {
    struct bonsai_vision_merger weights;
    const struct act *hidden, *embeds;
};

static int merge_picture(struct bonsai_pass *pass, const struct picture *p,
                         void *ctx, struct err *err)
{
    const struct bonsai_vision_config *v = &pass->config->vision;
    struct merge *m = ctx;
    struct ops *o = &pass->ops;
    int64_t group = v->merge * v->merge;
    int64_t merged = p->frames * p->height * p->width / group;
    int64_t in_call = pass->sequences[p->sequence].patch_rows / group;

    for (int64_t at = 0, rows; at < merged; at += rows) {
        size_t mark = ops_mark(o);
        int64_t row = p->row / group + at;

        rows = merged - at < ROWS ? merged - at : ROWS;
        struct act x = act_rows(m->hidden, p->first + at * group, rows * group);
        struct act normed =
            op_layer_norm(o, &x, &m->weights.norm, layer_norm_eps);
        struct act joined = {normed.data, rows, v->hidden * group,
                             normed.dtype};
        struct act f = op_affine(o, &joined, &m->weights.fc1, in_call);
        op_gelu_erf(&f);
        struct act out = op_affine(o, &f, &m->weights.fc2, in_call);
        if (bonsai_tap(pass, p->sequence, "image_embeds", row, 0, &out, err) ||
            bonsai_tap(pass, p->sequence, "trace.vision.merger", row, 0, &out,
                       err))
            return -1;
        struct act place = act_rows(m->embeds, p->first / group + at, rows);
        act_copy(&place, &out);
        ops_release(o, mark);
    }
    return 0;
}

/* ---- the tower ---- */

static int run_blocks(struct bonsai_pass *pass, struct act *hidden,
                      const struct act *angles, struct err *err)
{
    struct block block = {.hidden = hidden, .angles = angles};

    for (block.index = 0; block.index < pass->config->vision.depth;
         block.index++)
        if (bonsai_load_vision_block(pass->weights, block.index, &block.weights,
                                     err) ||
            each_picture(pass, block_picture, &block, err))
            return -1;
    return 0;
}

int bonsai_vision(struct bonsai_pass *pass, const struct act *embeds,
                  struct err *err)
{
    const struct bonsai_vision_config *v = &pass->config->vision;
    int64_t patches = embeds->rows * v->merge * v->merge;
    struct ops *o = &pass->ops;
    size_t mark = ops_mark(o);
    struct act hidden = ops_new(o, patches, v->hidden, embeds->dtype);
    struct act angles = ops_new(o, patches, v->hidden / v->heads / 2,
                                ops_dtype(o->precision, DTYPE_F32));
    struct stem stem = {.hidden = &hidden, .angles = &angles};
    struct merge merge = {.hidden = &hidden, .embeds = embeds};

    if (bonsai_load_stem(pass->weights, &stem.weights, err) ||
        each_picture(pass, embed_picture, &stem, err) ||
        run_blocks(pass, &hidden, &angles, err) ||
        bonsai_load_merger(pass->weights, &merge.weights, err) ||
        each_picture(pass, merge_picture, &merge, err))
        return -1;
    ops_release(o, mark);
    return 0;
}
