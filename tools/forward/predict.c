/* --predict: what a pass will write and take, before it is begun. */
#include "predict.h"

#include "base/mem.h"
#include "base/room.h"
#include "gates/capture.h"
#include "safetensors/safetensors.h"
#include "sink.h"

#include <stdlib.h>
#include <string.h>

enum {
    BLOCK = 4096,        /* of storage, to which files are rounded up */
    RECORD = 24 << 10,   /* a stage record without its list of shards */
    SHARD = 256,         /* a shard in that list */
    HEADER = 4096,       /* of a .safetensors file, and its padding */
    MOST_ROWS = 1 << 30, /* of a sequence: nothing below overflows */
    RUNNING = 8 << 20,   /* threads' stacks, writers, the record */
};

/* ---- the plan ---- */

struct plan {
    struct sequence *sequences;
    size_t count;
    struct capture_set *prefix;
};

static void plan_release(struct plan *p)
{
    for (size_t i = 0; i < p->count; i++)
        free((int64_t *)p->sequences[i].grids);
    free(p->sequences);
    capture_set_close(p->prefix);
}

/* A count that a tensor's shape could have. */
static int get_count(const json_t *object, const char *key, int64_t *out,
                     struct err *err)
{
    if (json_get_int(object, key, out, err))
        return -1;
    return *out >= 0 && *out <= MOST_ROWS
               ? 0
               : err_set(err, ERR_INPUT, "'%s' is %lld", key, (long long)*out);
}

static int read_grids(const json_t *item, struct sequence *s, struct err *err)
{
    json_t *list, *grid;
    size_t i;

    if (json_get_array(item, "grids", &list, err) ||
        get_count(item, "patch_cols", &s->patch_cols, err))
        return -1;
    int64_t *grids = mem_array(json_array_size(list) + 1, 3 * sizeof(*grids),
                               SIZE_MAX / 2, err);
    if (!grids)
        return -1;
    s->grids = grids;
    s->images = (int64_t)json_array_size(list);
    json_array_foreach(list, i, grid)
    {
        int64_t *at = grids + 3 * i;

        for (size_t k = 0; k < 3; k++) {
            json_t *n = json_array_get(grid, k);

            at[k] = json_is_integer(n) ? json_integer_value(n) : -1;
            if (at[k] < 1 || at[k] > 1 << 15)
                return err_set(err, ERR_INPUT, "grid %zu is none", i);
        }
        s->patch_rows += at[0] * at[1] * at[2];
        if (s->patch_rows > MOST_ROWS)
            return err_set(err, ERR_INPUT, "its images are too many");
    }
    return 0;
}

/* Rows of the continuation that is fed: all of it but its last token. */
static int read_length(struct plan *p, struct sequence *s, struct err *err)
{
    struct tensor_source ids;

    s->rows = s->prompt;
    if (!p->prefix)
        return 0;
    struct capture *c = capture_open(p->prefix, s->name, err);
    if (!c)
        return -1;
    if (!capture_find(c, "continuation_ids", &ids) || ids.shape.dims != 1 ||
        ids.shape.size[0] < 1 || ids.shape.size[0] > MOST_ROWS)
        err_set(err, ERR_INPUT, "holds no tensor 'continuation_ids'%s%s",
                capture_trouble(c)[0] ? ": " : "", capture_trouble(c));
    else
        s->rows += ids.shape.size[0] - 1;
    capture_close(c);
    return err->code == ERR_NONE ? 0 : -1;
}

static int read_case(struct plan *p, const json_t *item, struct err *err)
{
    struct sequence *s = &p->sequences[p->count];

    if (json_get_str(item, "name", &s->name, err))
        return -1;
    p->count++;
    if (get_count(item, "tokens", &s->prompt, err) ||
        read_grids(item, s, err) || read_length(p, s, err))
        return err_in(err, "case '%s'", s->name);
    return s->prompt ? 0
                     : err_set(err, ERR_INPUT, "case '%s': no tokens", s->name);
}

static int read_plan(const struct run_options *opt, const json_t *root,
                     struct plan *p, struct err *err)
{
    struct capture_paths from = {.role = "PREFIX",
                                 .paths = &opt->prefix,
                                 .count = 1,
                                 .files = opt->files};
    json_t *cases, *item;
    size_t i;

    if (json_get_array(root, "cases", &cases, err))
        return -1;
    if (opt->prefix) {
        p->prefix = capture_set_open(&from, err);
        if (!p->prefix)
            return -1;
    }
    p->sequences = xcalloc(json_array_size(cases) + 1, sizeof(*p->sequences));
    json_array_foreach(cases, i, item)
    {
        if (read_case(p, item, err))
            return -1;
    }
    return 0;
}

/* ---- what the pass comes to ---- */

/* Files of the pack, which every record lists. */
static int count_shards(const char *pack, size_t *out, struct err *err)
{
    struct safetensors *st = safetensors_open_pack(pack, err);
    const char *last = "";

    if (!st)
        return -1;
    *out = 0;
    for (size_t i = 0; i < safetensors_count(st); i++) {
        const char *path = safetensors_path(st, safetensors_at(st, i));

        *out += strcmp(path, last) != 0;
        last = path;
    }
    safetensors_close(st);
    return 0;
}

/* A tensor that every pass saves. */
static int add_stage(void *ctx, const struct stage_shape *shape,
                     struct err *err)
{
    size_t *bytes = ctx;

    (void)err;
    if (strncmp(shape->name, "trace.", 6) != 0)
        *bytes += (size_t)shape->rows * (size_t)shape->cols *
                  dtype_bits(sink_dtype(shape->dtype)) / 8;
    return 0;
}

static size_t blocks(size_t bytes)
{
    return (bytes + BLOCK - 1) / BLOCK * BLOCK;
}

/* Inputs of a case as they are held: ids, positions of three axes as read and
 * joined, patches. */
static size_t held(const struct sequence *s)
{
    return (size_t)s->rows * 8 * sizeof(int64_t) +
           (size_t)s->patch_rows * (size_t)s->patch_cols * sizeof(float);
}

static json_t *document(const struct run *r, const struct plan *p,
                        size_t shards, struct err *err)
{
    json_t *root = json_object(), *cases = json_array();
    size_t all = 0, memory = model_memory(r->model, &r->forward, p->sequences,
                                          (int64_t)p->count);

    json_object_set_new(root, "cases", cases);
    for (size_t i = 0; i < p->count; i++) {
        const struct sequence *s = &p->sequences[i];
        size_t bytes = HEADER + (size_t)sequence_exported(s) * sizeof(int64_t);

        if (model_stages(r->model, &r->forward, s, add_stage, &bytes, err)) {
            json_decref(root);
            return NULL;
        }
        bytes = blocks(bytes) + blocks(RECORD + shards * SHARD) + 2 * BLOCK;
        json_array_append_new(cases, json_pack("{s:s, s:I}", "name", s->name,
                                               "bytes", (json_int_t)bytes));
        all += bytes;
        memory += held(s);
    }
    json_object_set_new(root, "bytes", json_integer((json_int_t)all));
    json_object_set_new(
        root, "memory",
        json_integer((json_int_t)memory + room_peak() + RUNNING));
    return root;
}

json_t *predict(const struct run *r, struct err *err)
{
    struct plan p = {0};
    size_t shards;

    if (count_shards(r->opt->pack, &shards, err))
        return NULL;
    json_t *plan = json_read_file(r->opt->predict, err), *out = NULL;
    if (plan && read_plan(r->opt, plan, &p, err) == 0)
        out = document(r, &p, shards, err);
    if (!out)
        err_in(err, "%s", r->opt->predict);
    plan_release(&p);
    json_decref(plan);
    return out;
}
