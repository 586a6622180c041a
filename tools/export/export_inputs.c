/*
 * What goes into the model for one case.
 *
 *     messages -> template -> prompt.txt -> image pads written out -> ids
 *     images   -> pixels -> grid, patches;  ids and grids -> positions
 */
#include "export_job.h"

#include "base/mem.h"
#include "prompt/prompt.h"
#include "safetensors/safetensors.h"

#include <stdlib.h>

static const char image_pad[] = "<|image_pad|>";

void inputs_init(struct inputs *in)
{
    *in = (struct inputs){.prompt = BUF_INIT};
    token_ids_init(&in->ids);
}

void inputs_release(struct inputs *in)
{
    buf_release(&in->prompt);
    for (size_t i = 0; i < in->image_count; i++)
        image_release(&in->images[i]);
    free(in->images);
    free(in->sizes);
    free(in->grids);
    token_ids_release(&in->ids);
    free(in->positions);
    inputs_init(in);
}

/* Pixels upright, grids, and how many rows of patches. */
static int read_images(const struct job *job, const struct test_case *c,
                       struct inputs *in, struct err *err)
{
    struct buf bytes = BUF_INIT;
    int ret = -1;

    if (job->family->is_text_only && c->image_count)
        return err_set(err, ERR_UNSUPPORTED,
                       "images are not supported with model_type '%s'",
                       job->family->model_type);
    in->images =
        mem_array(c->image_count, sizeof(*in->images), SIZE_MAX / 2, err);
    in->sizes =
        mem_array(c->image_count, sizeof(*in->sizes), SIZE_MAX / 2, err);
    in->grids =
        mem_array(c->image_count, 3 * sizeof(*in->grids), SIZE_MAX / 2, err);
    if (!in->images || !in->sizes || !in->grids)
        goto out;
    for (size_t i = 0; i < c->image_count; i++) {
        const struct case_image *from = &c->images[i];
        struct image *image = &in->images[i];
        int64_t *grid = in->grids + 3 * i;

        buf_clear(&bytes);
        if (case_image_read(from, &bytes, err))
            goto out;
        in->sizes[i] = (int64_t)bytes.len;
        if (image_decode(bytes.data, bytes.len, image, err)) {
            err_in(err, "%s", from->path);
            goto out;
        }
        in->image_count = i + 1;
        if (image_orient(image, err) ||
            image_processor_grid(&job->processor, image->width, image->height,
                                 grid, err)) {
            err_in(err, "%s", from->path);
            goto out;
        }
        in->patch_rows += grid[0] * grid[1] * grid[2];
    }
    ret = 0;
out:
    buf_release(&bytes);
    return ret;
}

static int check_ids(const struct job *job, const struct inputs *in,
                     struct err *err)
{
    if (job->protocol->context && in->count > job->protocol->context)
        return err_set(err, ERR_INPUT,
                       "the prompt has %lld tokens, the protocol's context is "
                       "%lld",
                       (long long)in->count, (long long)job->protocol->context);
    if (in->count == 0)
        return err_set(err, ERR_INPUT, "the prompt has no tokens");
    for (int64_t i = 0; i < in->count; i++)
        if (in->ids.ids[i] >= job->vocab)
            return err_set(
                err, ERR_INPUT, "token %lld has id %lld, the vocabulary %lld",
                (long long)i, (long long)in->ids.ids[i], (long long)job->vocab);
    return 0;
}

/* Three axes of positions in a family with images, else one that counts. */
static int make_positions(const struct job *job, struct inputs *in,
                          struct err *err)
{
    in->positions =
        mem_array((size_t)in->count, 3 * sizeof(int64_t), SIZE_MAX / 2, err);
    if (!in->positions)
        return -1;
    if (!job->family->is_text_only)
        return positions_rope_index(in->ids.ids, in->count, in->grids,
                                    in->image_count, &job->tokens,
                                    in->positions, &in->delta, err);
    for (int64_t i = 0; i < in->count; i++)
        in->positions[i] = i;
    return 0;
}

/* The prompt as it is tokenized: a pad for each patch group of an image. */
static int expand(const struct job *job, const struct inputs *in,
                  struct buf *out, struct err *err)
{
    if (!job->family->is_text_only)
        return positions_expand(in->prompt.data, in->prompt.len, image_pad,
                                in->grids, in->image_count,
                                job->processor.merge, out, err);
    buf_add(out, in->prompt.data, in->prompt.len);
    return 0;
}

int inputs_make(struct inputs *in, const struct job *job,
                const struct test_case *c, struct err *err)
{
    struct buf expanded = BUF_INIT;
    int ret = -1;

    if (prompt_render(job->opt->pack, job->ledger, c, job->protocol, NULL,
                      &in->prompt, err) ||
        read_images(job, c, in, err) || expand(job, in, &expanded, err) ||
        tokenizer_encode(job->tokenizer, expanded.data ? expanded.data : "",
                         expanded.len, false, &in->ids, err))
        goto out;
    in->count = (int64_t)in->ids.count;
    ret = check_ids(job, in, err) || make_positions(job, in, err) ? -1 : 0;
out:
    buf_release(&expanded);
    return ret;
}

static int write_patches(const struct job *job, const struct inputs *in,
                         struct safetensors_writer *w, int handle,
                         struct err *err)
{
    const size_t row =
        (size_t)image_processor_features(&job->processor) * sizeof(float);
    int64_t at = 0;

    for (size_t i = 0; i < in->image_count; i++) {
        const int64_t *grid = in->grids + 3 * i;
        size_t rows = (size_t)(grid[0] * grid[1] * grid[2]);
        float *values = mem_array(rows, row, SIZE_MAX / 2, err);
        int ret = -1;

        if (values &&
            image_patches(&job->processor, &in->images[i], job->passes, values,
                          err) == 0 &&
            safetensors_write(w, handle, at, values, rows * row, err) == 0)
            ret = 0;
        free(values);
        if (ret)
            return -1;
        at += (int64_t)(rows * row);
    }
    return 0;
}

int inputs_write(const struct inputs *in, const struct job *job,
                 const char *path, struct err *err)
{
    const size_t word = sizeof(int64_t);
    int64_t images = (int64_t)in->image_count;
    int64_t axes = job->family->is_text_only ? 1 : 3;
    struct safetensors_writer *w = safetensors_create(path, err);

    if (!w)
        return -1;
    int ids =
        safetensors_declare(w, "prompt_ids", DTYPE_I64, SHAPE(in->count), err);
    int grids = safetensors_declare(w, "image_grid_thw", DTYPE_I64,
                                    SHAPE(images, 3), err);
    int positions = safetensors_declare(
        w, "position_ids", DTYPE_I64,
        axes == 1 ? SHAPE(in->count) : SHAPE(axes, in->count), err);
    int patches = 0;
    if (images)
        patches = safetensors_declare(
            w, "patches", DTYPE_F32,
            SHAPE(in->patch_rows, image_processor_features(&job->processor)),
            err);
    if (ids < 0 || grids < 0 || positions < 0 || patches < 0 ||
        safetensors_write(w, ids, 0, in->ids.ids, (size_t)in->count * word,
                          err) ||
        safetensors_write(w, grids, 0, in->grids, (size_t)images * 3 * word,
                          err) ||
        safetensors_write(w, positions, 0, in->positions,
                          (size_t)(in->count * axes) * word, err) ||
        (images && write_patches(job, in, w, patches, err))) {
        safetensors_abort(w);
        return -1;
    }
    return safetensors_finish(w, err);
}
