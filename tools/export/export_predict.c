/* --predict: what --out would write, and the memory it would take. */
#include "export_job.h"

#include "base/room.h"

enum {
    BLOCK = 4096,      /* of storage, to which files are rounded up */
    RECORD = 32 << 10, /* a stage record */
    HEADER = 4096,     /* of a .safetensors file, and its padding */
    RUNNING = 4 << 20, /* writers, the record */
};

static size_t blocks(size_t bytes)
{
    return (bytes + BLOCK - 1) / BLOCK * BLOCK;
}

/* The bytes of one image's patches. */
static size_t patches_bytes(const struct job *job, const int64_t *grid)
{
    return (size_t)(grid[0] * grid[1] * grid[2] *
                    image_processor_features(&job->processor)) *
           sizeof(float);
}

/* A case's line; *largest is raised to the patches of its largest image. */
static json_t *predict_case(const struct job *job, const struct test_case *c,
                            const struct inputs *in, size_t *largest)
{
    json_t *grids = json_array();
    size_t axes = job->family->is_text_only ? 1 : 3, patches = 0, images = 0;
    int64_t cols =
        in->image_count ? image_processor_features(&job->processor) : 0;

    for (size_t i = 0; i < in->image_count; i++) {
        const int64_t *grid = in->grids + 3 * i;
        size_t bytes = patches_bytes(job, grid);

        json_array_append_new(grids, json_pack("[I, I, I]", (json_int_t)grid[0],
                                               (json_int_t)grid[1],
                                               (json_int_t)grid[2]));
        patches += bytes;
        images += blocks((size_t)in->sizes[i]) + BLOCK; /* frozen beside */
        *largest = bytes > *largest ? bytes : *largest;
    }
    size_t tensors = (size_t)in->count * (1 + axes) * sizeof(int64_t) +
                     in->image_count * 3 * sizeof(int64_t) + patches + HEADER;
    size_t bytes =
        blocks(in->prompt.len) + blocks(tensors) + images + RECORD + 2 * BLOCK;
    return json_pack("{s:s, s:I, s:o, s:I, s:I}", "name", c->name, "tokens",
                     (json_int_t)in->count, "grids", grids, "patch_cols",
                     (json_int_t)cols, "bytes", (json_int_t)bytes);
}

static json_t *predict_all(const struct job *job, struct err *err)
{
    json_t *root = json_object(), *cases = json_array();
    size_t largest = 0;
    int64_t all = 0;

    json_object_set_new(root, "cases", cases);
    for (size_t i = 0; i < job->list.count; i++) {
        const struct test_case *c = &job->list.cases[i];
        struct inputs in;

        inputs_init(&in);
        if (inputs_make(&in, job, c, err)) {
            err_in(err, "case '%s'", c->name);
            inputs_release(&in);
            json_decref(root);
            return NULL;
        }
        json_t *line = predict_case(job, c, &in, &largest);
        all += json_integer_value(json_object_get(line, "bytes"));
        json_array_append_new(cases, line);
        inputs_release(&in);
    }
    json_object_set_new(root, "bytes", json_integer(all));
    json_object_set_new(
        root, "memory",
        json_integer((json_int_t)largest + room_peak() + RUNNING));
    return root;
}

int export_predict(const struct export_options *opt,
                   const struct protocol *protocol, struct err *err)
{
    struct job job = {.opt = opt, .protocol = protocol};
    json_t *root = NULL;

    if (case_list_read(opt->cases, &job.list, err))
        return -1;
    if (job_open(&job, err) == 0)
        root = predict_all(&job, err);
    if (root)
        cli_print_json(root);
    job_release(&job);
    int ret = root ? 0 : -1;
    json_decref(root);
    return ret;
}
