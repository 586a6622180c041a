/* The cases of a run: inputs and continuations, read into sequences. */
#include "job.h"

#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"

#include <stdlib.h>
#include <string.h>

static const size_t TENSOR_CAP = (size_t)1 << 34;

/* ---- tensors of a capture ---- */

static bool has_dims(const struct capture *c, const char *name, int dims)
{
    struct tensor_source source;

    return capture_find(c, name, &source) && source.shape.dims == dims;
}

/* A whole tensor into the arena, or NULL with err set. */
static void *read_tensor(struct job *job, const struct capture *c,
                         const char *name, enum dtype dtype, int dims,
                         struct tensor_source *source, struct err *err)
{
    if (!capture_find(c, name, source)) {
        err_set(err, ERR_INPUT, "holds no tensor '%s'%s%s", name,
                capture_trouble(c)[0] ? ": " : "", capture_trouble(c));
        return NULL;
    }
    char shape[128];
    shape_format(&source->shape, shape, sizeof(shape));
    if (source->dtype != dtype || source->shape.dims != dims) {
        err_set(err, ERR_INPUT, "tensor '%s' is %s %s, not %s with %d %s", name,
                dtype_name(source->dtype), shape, dtype_name(dtype), dims,
                dims == 1 ? "dimension" : "dimensions");
        return NULL;
    }
    int64_t bytes = shape_bytes(&source->shape, dtype);
    if (bytes < 0 || (size_t)bytes > TENSOR_CAP) {
        err_set(err, ERR_INPUT, "tensor '%s' is too large: %s", name, shape);
        return NULL;
    }
    void *data = arena_alloc(&job->arena, (size_t)bytes + 1);
    if (source->read(source, 0, (size_t)bytes, data, err)) {
        err_in(err, "tensor '%s'", name);
        return NULL;
    }
    return data;
}

static int read_images(struct job *job, const struct capture *c,
                       struct sequence *s, struct err *err)
{
    struct tensor_source grid, patches;

    s->grids = read_tensor(job, c, "image_grid_thw", DTYPE_I64, 2, &grid, err);
    if (!s->grids)
        return -1;
    s->images = grid.shape.size[0];
    if (grid.shape.size[1] != 3)
        return err_set(err, ERR_INPUT,
                       "tensor 'image_grid_thw' has rows of %lld, not of 3",
                       (long long)grid.shape.size[1]);
    if (s->images == 0)
        return 0;
    s->patches = read_tensor(job, c, "patches", DTYPE_F32, 2, &patches, err);
    if (!s->patches)
        return -1;
    s->patch_rows = patches.shape.size[0];
    s->patch_cols = patches.shape.size[1];
    return 0;
}

/* Positions [3, rows]; of text alone [rows], which stand for all three. */
static int64_t *read_positions(struct job *job, const struct capture *c,
                               int64_t rows, struct err *err)
{
    static const char name[] = "position_ids";
    int dims = has_dims(c, name, 1) ? 1 : 2;
    struct tensor_source source;
    int64_t *from = read_tensor(job, c, name, DTYPE_I64, dims, &source, err);

    if (!from)
        return NULL;
    if (source.shape.size[dims - 1] != rows ||
        (dims == 2 && source.shape.size[0] != 3)) {
        err_set(err, ERR_INPUT, "tensor '%s' is not [3, %lld] or [%lld]", name,
                (long long)rows, (long long)rows);
        return NULL;
    }
    if (dims == 2)
        return from;
    int64_t *all =
        arena_alloc(&job->arena, (size_t)rows * 3 * sizeof(*all) + 1);
    for (int axis = 0; axis < 3; axis++)
        memcpy(all + axis * rows, from, (size_t)rows * sizeof(*all));
    return all;
}

/* Prompt and continuation as one run of ids; positions go on one by one. */
static void join(struct job *job, struct sequence *s, const int64_t *prompt,
                 const int64_t *positions, const int64_t *continuation,
                 int64_t length)
{
    int64_t n = s->prompt, extra = length > 0 ? length - 1 : 0, next = 0;
    int64_t *ids, *all;

    s->rows = n + extra;
    s->position_stride = s->rows;
    ids = arena_alloc(&job->arena, (size_t)s->rows * sizeof(*ids));
    all = arena_alloc(&job->arena, (size_t)s->rows * 3 * sizeof(*all));
    memcpy(ids, prompt, (size_t)n * sizeof(*ids));
    for (int64_t i = 0; i < extra; i++)
        ids[n + i] = continuation[i];
    for (int64_t i = 0; i < 3 * n; i++) {
        all[i / n * s->rows + i % n] = positions[i];
        if (positions[i] >= next && positions[i] < INT32_MAX)
            next = positions[i] + 1;
    }
    for (int axis = 0; axis < 3; axis++)
        for (int64_t i = 0; i < extra; i++)
            all[axis * s->rows + n + i] = next + i;
    s->ids = ids;
    s->positions = all;
}

static int read_continuation(struct job *job, const struct job_options *o,
                             size_t i, struct err *err)
{
    struct tensor_source source;

    if (!job->prefix)
        return 0;
    struct capture *c = capture_open(job->prefix, job->sequences[i].name, err);
    if (!c)
        return -1;
    job->continuations[i] =
        read_tensor(job, c, "continuation_ids", DTYPE_I64, 1, &source, err);
    if (job->continuations[i]) {
        job->lengths[i] = source.shape.size[0];
        if (job->lengths[i] == 0)
            err_set(err, ERR_INPUT, "tensor 'continuation_ids' is empty");
    }
    capture_close(c);
    if (err->code != ERR_NONE)
        return err_in(err, "%s: case '%s'", o->prefix, job->sequences[i].name);
    return 0;
}

/* The last token of a continuation is never fed, but it is an id too. */
static int check_last(const struct job *job, size_t i, const struct model *m,
                      struct err *err)
{
    int64_t n = job->lengths[i];

    if (n == 0)
        return 0;
    int64_t last = job->continuations[i][n - 1];
    if (last < 0 || last >= model_vocab(m))
        return err_set(err, ERR_INPUT,
                       "continuation_ids: token %lld is %lld, past the "
                       "vocabulary of %lld",
                       (long long)(n - 1), (long long)last,
                       (long long)model_vocab(m));
    return 0;
}

static int read_sequence(struct job *job, const struct job_options *o, size_t i,
                         const struct capture *c, const struct model *m,
                         struct err *err)
{
    struct sequence *s = &job->sequences[i];
    struct tensor_source ids;
    const int64_t *prompt =
        read_tensor(job, c, "prompt_ids", DTYPE_I64, 1, &ids, err);

    if (!prompt || read_images(job, c, s, err))
        return -1;
    s->prompt = ids.shape.size[0];
    if (s->prompt == 0)
        return err_set(err, ERR_INPUT, "tensor 'prompt_ids' is empty");
    const int64_t *at = read_positions(job, c, s->prompt, err);
    if (!at)
        return -1;
    join(job, s, prompt, at, job->continuations[i], job->lengths[i]);
    int64_t after = o->generate > 0 ? o->generate : job->lengths[i];
    if (o->context &&
        (s->prompt > o->context || after > o->context - s->prompt))
        return err_set(err, ERR_INPUT,
                       "%lld tokens and %lld after them pass the context of "
                       "%lld",
                       (long long)s->prompt, (long long)after,
                       (long long)o->context);
    return check_last(job, i, m, err) || model_check(m, s, err) ? -1 : 0;
}

static int read_case(struct job *job, const struct job_options *o, size_t i,
                     const struct capture_set *set, const struct model *m,
                     struct err *err)
{
    const char *name = capture_set_name(set, i);

    job->sequences[i].name = arena_strdup(&job->arena, name);
    job->inputs_dirs[i] =
        job->is_single ? xstrdup(o->inputs) : path_join(o->inputs, name);
    if (read_continuation(job, o, i, err))
        return -1;
    struct capture *c = capture_open(set, name, err);
    if (!c)
        return -1;
    int ret = read_sequence(job, o, i, c, m, err);
    capture_close(c);
    if (ret)
        err_in(err, "%s: case '%s'", o->inputs, name);
    return ret;
}

static struct capture_set *open_set(const char *role, const char *path,
                                    const char *files, struct err *err)
{
    const char *const paths[] = {path};
    struct capture_paths from = {
        .role = role, .paths = paths, .count = 1, .files = files};

    return capture_set_open(&from, err);
}

/* A trace may hold other cases than those that are run. */
static struct capture_set *open_local(const char *path, struct err *err)
{
    struct capture_paths from = {.role = path,
                                 .paths = &path,
                                 .count = 1,
                                 .files = "trace-f16,trace",
                                 .may_fail = true};

    return capture_set_open(&from, err);
}

/* A single capture beside a single case is of that case, whatever its name. */
static void name_single(struct capture_set *set, const struct capture_set *of)
{
    if (set && capture_set_is_single(set) && capture_set_is_single(of))
        capture_set_rename(set, capture_set_name(of, 0));
}

int job_read(struct job *job, const struct job_options *o,
             const struct model *m, struct err *err)
{
    int ret = -1;

    *job = (struct job){.arena = ARENA_INIT};
    struct capture_set *set = open_set("INPUTS", o->inputs, "inputs", err);
    if (!set)
        return -1;
    if (o->prefix) {
        job->prefix = open_set("PREFIX", o->prefix, o->files, err);
        if (!job->prefix)
            goto out;
    }
    if (o->local) {
        job->local = open_local(o->local, err);
        if (!job->local)
            goto out;
    }
    name_single(job->prefix, set);
    name_single(job->local, set);
    job->is_single = capture_set_is_single(set);
    job->count = capture_set_count(set);
    job->sequences = xcalloc(job->count, sizeof(*job->sequences));
    job->continuations = xcalloc(job->count, sizeof(*job->continuations));
    job->lengths = xcalloc(job->count, sizeof(*job->lengths));
    job->inputs_dirs = xcalloc(job->count, sizeof(*job->inputs_dirs));
    for (size_t i = 0; i < job->count; i++)
        if (read_case(job, o, i, set, m, err))
            goto out;
    ret = 0;
out:
    capture_set_close(set);
    if (ret)
        job_release(job);
    return ret;
}

void job_release(struct job *job)
{
    for (size_t i = 0; job->inputs_dirs && i < job->count; i++)
        free(job->inputs_dirs[i]);
    free(job->inputs_dirs);
    free(job->sequences);
    free(job->continuations);
    free(job->lengths);
    capture_set_close(job->prefix);
    capture_set_close(job->local);
    arena_release(&job->arena);
    *job = (struct job){.arena = ARENA_INIT};
}
