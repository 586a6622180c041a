/* Where one case's tensors go. */
#include "sink.h"

#include "base/bug.h"
#include "base/mem.h"
#include "base/path.h"
#include "kernels/round.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

struct sink_tensor {
    char *name;
    struct safetensors_writer *writer; /* NULL: not saved */
    int handle;
    int64_t rows, cols;
    enum dtype dtype; /* as stored */
    bool is_local;    /* the local trace replaces it */
    bool is_injected;
    struct tensor_source source;
};

static const char trace_prefix[] = "trace.";

enum dtype sink_dtype(enum dtype dtype)
{
    return dtype == DTYPE_F64 ? DTYPE_F32 : dtype;
}

static bool is_trace(const char *name)
{
    return strncmp(name, trace_prefix, strlen(trace_prefix)) == 0;
}

/* ---- opening ---- */

static int check_source(const struct sink_tensor *t, const char *option,
                        struct err *err)
{
    struct tensor_shape want = SHAPE(t->rows, t->cols);
    char got[128], wanted[128];

    if (dtype_is_float(t->source.dtype) && shape_equal(&t->source.shape, &want))
        return 0;
    shape_format(&t->source.shape, got, sizeof(got));
    shape_format(&want, wanted, sizeof(wanted));
    return err_set(err, ERR_INPUT, "%s: tensor '%s' is %s %s, not floats of %s",
                   option, t->name, dtype_name(t->source.dtype), got, wanted);
}

static int find_local(struct sink *sink, struct sink_tensor *t, struct err *err)
{
    if (!sink->local || !capture_find(sink->local, t->name, &t->source))
        return 0;
    t->is_local = true;
    sink->fed += is_trace(t->name);
    return check_source(t, "--local", err);
}

static int read_injected(const struct tensor_source *s, int64_t offset,
                         size_t len, void *dst, struct err *err)
{
    return safetensors_read(s->context, s->detail, offset, len, dst, err);
}

static int find_injected(struct sink *sink, struct sink_tensor *t,
                         struct err *err)
{
    const struct tensor_info *info =
        sink->inject ? safetensors_find(sink->inject, t->name) : NULL;

    if (!info)
        return 0;
    t->source = (struct tensor_source){.dtype = info->dtype,
                                       .shape = info->shape,
                                       .read = read_injected,
                                       .context = sink->inject,
                                       .detail = info};
    t->is_injected = true;
    return check_source(t, "--inject", err);
}

/* Is every tensor of the file a stage? */
static int check_injected(const struct sink *sink, const char *name,
                          struct err *err)
{
    size_t count = sink->inject ? safetensors_count(sink->inject) : 0;

    for (size_t i = 0; i < count; i++) {
        const struct tensor_info *info = safetensors_at(sink->inject, i);
        bool is_used = false;

        for (size_t k = 0; k < sink->count; k++)
            is_used |= strcmp(sink->tensors[k].name, info->name) == 0;
        if (!is_used)
            return err_set(err, ERR_INPUT,
                           "--inject: tensor '%.100s' is no stage of case '%s'",
                           info->name, name);
    }
    if (sink->inject && count == 0)
        return err_set(err, ERR_INPUT, "--inject: the file holds no tensor");
    return 0;
}

static int add_stage(void *ctx, const struct stage_shape *shape,
                     struct err *err)
{
    struct sink *sink = ctx;
    const char *stage = shape->name + strlen(trace_prefix);

    sink->tensors =
        xrealloc(sink->tensors, (sink->count + 1) * sizeof(*sink->tensors));
    struct sink_tensor *t = &sink->tensors[sink->count++];
    *t = (struct sink_tensor){.name = xstrdup(shape->name),
                              .rows = shape->rows,
                              .cols = shape->cols,
                              .dtype = sink_dtype(shape->dtype)};
    if (!is_trace(shape->name))
        t->writer =
            sink->is_states_only && strcmp(shape->name, "hidden_states") != 0
                ? NULL
                : sink->outputs;
    else if (sink->pattern && fnmatch(sink->pattern, stage, 0) == 0)
        t->writer = sink->trace;
    sink->traced += t->writer && t->writer == sink->trace;
    if (t->writer) {
        t->handle = safetensors_declare(t->writer, t->name, t->dtype,
                                        SHAPE(t->rows, t->cols), err);
        if (t->handle < 0)
            return -1;
    }
    return find_local(sink, t, err) || find_injected(sink, t, err) ? -1 : 0;
}

static int write_continuation(struct sink *sink, const int64_t *ids,
                              int64_t count, struct err *err)
{
    if (!ids)
        return 0;
    int handle = safetensors_declare(sink->outputs, "continuation_ids",
                                     DTYPE_I64, SHAPE(count), err);
    return handle < 0 ? -1
                      : safetensors_write(sink->outputs, handle, 0, ids,
                                          (size_t)count * sizeof(*ids), err);
}

static struct safetensors_writer *create(const char *dir, const char *name,
                                         struct err *err)
{
    char *path = path_join(dir, name);
    struct safetensors_writer *w = safetensors_create(path, err);

    free(path);
    return w;
}

int sink_open(struct sink *sink, const struct sink_options *o,
              const struct model *m, const struct forward_options *f,
              const struct sequence *s, const int64_t *continuation,
              int64_t length, struct err *err)
{
    *sink = (struct sink){.pattern = o->pattern,
                          .is_states_only = o->is_states_only};
    if (o->local) {
        sink->local = capture_open(o->local, s->name, err);
        if (!sink->local)
            return err_in(err, "--local");
        if (capture_trouble(sink->local)[0])
            return err_set(err, ERR_INPUT, "--local: case '%s': %s", s->name,
                           capture_trouble(sink->local));
    }
    if (o->inject) {
        sink->inject = safetensors_open(o->inject, err);
        if (!sink->inject)
            return err_in(err, "--inject");
    }
    sink->outputs =
        create(o->dir, o->outputs ? o->outputs : "outputs.safetensors", err);
    if (!sink->outputs)
        return -1;
    if (o->pattern) {
        sink->trace =
            create(o->dir, o->trace ? o->trace : "trace.safetensors", err);
        if (!sink->trace)
            return -1;
    }
    if (model_stages(m, f, s, add_stage, sink, err) ||
        check_injected(sink, s->name, err) ||
        write_continuation(sink, continuation, length, err))
        return -1;
    if (sink->local && sink->fed == 0)
        return err_set(err, ERR_INPUT,
                       "--local: no trace of a stage of case '%s'", s->name);
    return 0;
}

/* ---- pieces ---- */

static struct sink_tensor *find_tensor(struct sink *sink, const char *name)
{
    for (size_t i = 0; i < sink->count; i++)
        if (strcmp(sink->tensors[i].name, name) == 0)
            return &sink->tensors[i];
    BUG("a stage that was not announced");
}

static void *scratch(struct sink *sink, size_t bytes)
{
    if (bytes > sink->scratch_size) {
        sink->scratch = xrealloc(sink->scratch, bytes);
        sink->scratch_size = bytes;
    }
    return sink->scratch;
}

static size_t dtype_size(enum dtype dtype)
{
    return dtype_bits(dtype) / 8;
}

/* One row of values as stored bytes. */
static void convert_row(const struct act *values, int64_t row, enum dtype dtype,
                        void *out)
{
    size_t n = (size_t)values->cols;

    if (!act_is_wide(values)) {
        dtype_from_f32(dtype, act_f(values) + row * values->cols, n, out);
        return;
    }
    BUG_ON(dtype != DTYPE_F32);
    dtype_to_f32(DTYPE_F64, act_d(values) + row * values->cols, n, out);
}

static int save(struct sink *sink, const struct sink_tensor *t,
                const struct tap_piece *piece, struct err *err)
{
    const struct act *v = &piece->values;
    size_t size = dtype_size(t->dtype), len = (size_t)v->cols * size;
    void *row = scratch(sink, len);

    BUG_ON(piece->row + v->rows > t->rows ||
           piece->column + v->cols > t->cols ||
           sink_dtype(v->dtype) != t->dtype);
    for (int64_t r = 0; r < v->rows; r++) {
        int64_t at = (piece->row + r) * t->cols + piece->column;

        convert_row(v, r, t->dtype, row);
        if (safetensors_write(t->writer, t->handle, at * (int64_t)size, row,
                              len, err))
            return -1;
    }
    return 0;
}

static int replace(struct sink *sink, const struct sink_tensor *t,
                   const struct tap_piece *piece, struct err *err)
{
    const struct act *v = &piece->values;
    size_t size = dtype_size(t->source.dtype), len = (size_t)v->cols * size;
    void *row = scratch(sink, len);

    for (int64_t r = 0; r < v->rows; r++) {
        int64_t at = (piece->row + r) * t->cols + piece->column;

        if (t->source.read(&t->source, at * (int64_t)size, len, row, err))
            return -1;
        if (act_is_wide(v))
            dtype_to_f64(t->source.dtype, row, (size_t)v->cols,
                         act_d(v) + r * v->cols);
        else
            dtype_to_f32(t->source.dtype, row, (size_t)v->cols,
                         act_f(v) + r * v->cols);
        if (t->is_injected && !act_is_wide(v))
            round_row(v->dtype, act_f(v) + r * v->cols, v->cols);
    }
    return 0;
}

int sink_piece(struct sink *sink, const struct tap_piece *piece,
               struct err *err)
{
    struct sink_tensor *t = find_tensor(sink, piece->name);

    if (t->is_injected && replace(sink, t, piece, err))
        return -1;
    if (t->writer && save(sink, t, piece, err))
        return -1;
    return t->is_local ? replace(sink, t, piece, err) : 0;
}

/* ---- the end ---- */

int sink_finish(struct sink *sink, struct err *err)
{
    struct safetensors_writer *outputs = sink->outputs, *trace = sink->trace;
    int ret = 0;

    sink->outputs = sink->trace = NULL; /* finish takes them over */
    if (safetensors_finish(outputs, err))
        ret = -1;
    if (trace && ret == 0)
        ret = safetensors_finish(trace, err);
    else
        safetensors_abort(trace);
    return ret;
}

void sink_release(struct sink *sink)
{
    safetensors_abort(sink->outputs);
    safetensors_abort(sink->trace);
    for (size_t i = 0; i < sink->count; i++)
        free(sink->tensors[i].name);
    free(sink->tensors);
    free(sink->scratch);
    capture_close(sink->local);
    safetensors_close(sink->inject);
    *sink = (struct sink){.outputs = NULL};
}
