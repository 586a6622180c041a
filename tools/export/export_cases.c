/*
 * assay-export --cases --out: what goes into the model for a frozen case.
 *
 *     messages -> template -> prompt.txt -> image pads written out -> ids
 *     images   -> pixels -> grid, patches;  ids and grids -> positions
 */
#include "export.h"

#include "base/buf.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/publish.h"
#include "base/room.h"
#include "image/image.h"
#include "image/processor.h"
#include "models/model.h"
#include "models/positions.h"
#include "prompt/prompt.h"
#include "safetensors/safetensors.h"
#include "tokenizer/tokenizer.h"

#include <stdlib.h>
#include <string.h>

static const char image_pad[] = "<|image_pad|>";
static const char vision_family[] = "prism_hadamard_qwen35";

/* Everything that the cases of one run share. */
struct job {
    const struct cli_command *command;
    const struct export_options *opt;
    const struct protocol *protocol;
    struct case_list list;
    const struct model_family *family;
    int64_t vocab;
    /* of families that take images */
    struct image_tokens tokens;
    enum image_passes passes;
    struct image_processor processor;
    struct tokenizer *tokenizer;
    struct ledger *ledger;
    struct stage *stage; /* what every record holds */
    char *cases_dir;
};

/* What one case comes to. */
struct inputs {
    struct buf prompt;
    struct image *images; /* upright */
    size_t image_count;
    int64_t *sizes; /* of the image files */
    int64_t *grids;
    int64_t patch_rows;
    struct token_ids ids;
    int64_t *positions;
    int64_t count, delta; /* of tokens; of positions after them */
};

static int get_token(const struct section *root, const char *key, int64_t *out,
                     struct err *err)
{
    if (config_get_int(root, key, out, err))
        return -1;
    if (*out < 0)
        return err_set(err, ERR_INPUT, "'%s' is negative", key);
    return 0;
}

/* The vision tower and the processor must cut images alike. */
static int check_vision(const struct section *root,
                        const struct image_processor *p, struct err *err)
{
    const struct {
        const char *key;
        int64_t want;
    } rows[] = {{"patch_size", p->patch},
                {"temporal_patch_size", p->temporal},
                {"spatial_merge_size", p->merge}};
    const struct section *vision;
    int64_t value;

    if (config_get_section(root, "vision_config", &vision, err))
        return -1;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (config_get_int(vision, rows[i].key, &value, err))
            return err_in(err, "vision_config");
        if (value != rows[i].want)
            return err_set(err, ERR_INPUT,
                           "vision_config: '%s' is %lld, the preprocessor's "
                           "%lld",
                           rows[i].key, (long long)value,
                           (long long)rows[i].want);
    }
    return 0;
}

static int read_family(struct job *job, const struct section *root,
                       struct err *err)
{
    const char *model_type;

    if (config_get_text(root, "model_type", &model_type, NULL, err))
        return -1;
    job->family = model_family_find(model_type);
    if (!job->family ||
        (!job->family->is_text_only && strcmp(model_type, vision_family) != 0))
        return err_set(err, ERR_UNSUPPORTED,
                       "model_type '%s' is not supported for cases",
                       model_type);
    return 0;
}

static int read_vocab(struct job *job, const struct section *root,
                      struct err *err)
{
    const struct section *text;

    if (job->family->is_text_only && config_has(root, "vocab_size"))
        return config_get_int(root, "vocab_size", &job->vocab, err);
    if (config_get_section(root, "text_config", &text, err))
        return -1;
    if (config_get_int(text, "vocab_size", &job->vocab, err))
        return err_in(err, "text_config");
    return 0;
}

static int read_vision(struct job *job, const struct section *root,
                       struct err *err)
{
    if (get_token(root, "image_token_id", &job->tokens.image, err) ||
        get_token(root, "video_token_id", &job->tokens.video, err) ||
        get_token(root, "vision_start_token_id", &job->tokens.vision_start,
                  err))
        return -1;
    job->tokens.merge = job->processor.merge;
    return check_vision(root, &job->processor, err);
}

/* Everything else in config.json is about the model, not about its input. */
static int read_config(struct job *job, struct err *err)
{
    const struct section *root;

    if (ledger_need(job->ledger, "config.json", &root, err))
        return -1;
    if (read_family(job, root, err) || read_vocab(job, root, err))
        return err_in(err, "%s", config_path(root));
    if (!job->family->is_text_only) {
        if (image_passes_parse(job->protocol->image_library, &job->passes,
                               err) ||
            image_processor_load(job->ledger, &job->processor, err))
            return -1;
        if (read_vision(job, root, err))
            return err_in(err, "%s", config_path(root));
    }
    config_ignore_rest(root);
    return 0;
}

static int open_pack(struct job *job, struct err *err)
{
    const char *pack = job->opt->pack;

    job->ledger = ledger_new(pack);
    if (read_config(job, err))
        return -1;
    job->tokenizer = prompt_tokenizer(pack, job->ledger, job->protocol, err);
    return job->tokenizer ? 0 : -1;
}

static void inputs_init(struct inputs *in)
{
    *in = (struct inputs){.prompt = BUF_INIT};
    token_ids_init(&in->ids);
}

static void inputs_release(struct inputs *in)
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

static int make_inputs(const struct job *job, const struct test_case *c,
                       struct inputs *in, struct err *err)
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

static int write_tensors(const struct job *job, const struct inputs *in,
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

static json_t *describe_processor(const struct job *job,
                                  const struct test_case *c,
                                  const struct inputs *in)
{
    const char *png, *jpeg, *webp;
    json_t *processor = json_object(), *warnings = json_array();

    image_libraries(&png, &jpeg, &webp);
    json_object_set_new(processor, "follows",
                        json_string("mlx-vlm 0.6.3 Qwen3VLImageProcessor"));
    json_object_set_new(processor, "library",
                        json_string(job->protocol->image_library));
    json_object_set_new(processor, "libpng", json_string(png));
    json_object_set_new(processor, "libjpeg-turbo", json_string(jpeg));
    json_object_set_new(processor, "libwebp", json_string(webp));
    for (size_t i = 0; i < in->image_count; i++)
        if (in->images[i].warning[0])
            json_array_append_new(
                warnings, json_pack("{s:s,s:s}", "file", c->images[i].file,
                                    "warning", in->images[i].warning));
    if (json_array_size(warnings))
        json_object_set(processor, "warnings", warnings);
    json_decref(warnings);
    return processor;
}

/* The environment, rule and library versions that can change a bit. */
static void describe_prompt(struct stage *stage,
                            const struct tokenizer *tokenizer,
                            const struct protocol *protocol)
{
    const char *class_name = tokenizer_class(tokenizer);
    json_t *template = json_object(), *record = json_object();
    struct tokenizer_versions v;

    tokenizer_versions(&v);
    json_object_set_new(
        template, "environment",
        json_sprintf("transformers %s, jinja2 3.1.6", protocol->transformers));
    json_object_set_new(template, "unicode",
                        json_string(jinja_unicode_version()));
    stage_set(stage, "template", template);
    json_object_set_new(record, "rule",
                        protocol->tokenizer ? json_string(protocol->tokenizer)
                                            : json_null());
    json_object_set_new(record, "class",
                        class_name ? json_string(class_name) : json_null());
    json_object_set_new(record, "unicode",
                        json_pack("{s:s,s:s,s:s,s:s}", "normalization",
                                  v.normalization, "patterns", v.patterns,
                                  "lower_case", v.lower_case, "punctuation",
                                  v.punctuation));
    json_object_set_new(record, "pcre2", json_string(v.pcre2));
    json_t *warnings = json_array();
    for (size_t i = 0; tokenizer_warning(tokenizer, i); i++)
        json_array_append_new(warnings,
                              json_string(tokenizer_warning(tokenizer, i)));
    json_object_set_new(record, "warnings", warnings);
    stage_set(stage, "tokenizer", record);
}

/* What can change a bit of this case, and whom we follow. */
static void describe(struct stage *stage, const struct job *job,
                     const struct test_case *c, const struct inputs *in)
{
    stage_set(stage, "case", json_string(c->name));
    stage_set(stage, "model_type", json_string(job->family->model_type));
    stage_set(stage, "cases_sha256", json_string(job->list.sha256));
    stage_set(stage, "protocol_sha256",
              job->protocol->sha256[0] ? json_string(job->protocol->sha256)
                                       : json_null());
    stage_set(stage, "prompt_tokens", json_integer(in->count));
    stage_set(stage, "images", json_integer((json_int_t)in->image_count));
    stage_set(stage, "rope_delta", json_integer(in->delta));
    if (!job->family->is_text_only)
        stage_set(stage, "image_processor", describe_processor(job, c, in));
    describe_prompt(stage, job->tokenizer, job->protocol);
    stage_set(stage, "ledger", ledger_json(job->ledger));
}

/* The record of a case, all but its outputs. */
static struct stage *record_of(const struct job *job, const struct test_case *c,
                               const struct inputs *in)
{
    struct stage *stage = stage_copy(job->stage);

    for (size_t i = 0; i < c->image_count; i++)
        stage_input_known(stage, c->images[i].path, c->images[i].sha256,
                          in->sizes[i]);
    describe(stage, job, c, in);
    return stage;
}

/* One case into the folder `dir`, which exists. */
static int export_one(const struct job *job, const struct test_case *c,
                      const char *dir, struct err *err)
{
    struct inputs in;
    struct stage *stage = NULL;
    char *prompt = path_join(dir, "prompt.txt");
    char *tensors = path_join(dir, "inputs.safetensors");
    int ret = -1;

    inputs_init(&in);
    if (make_inputs(job, c, &in, err)) {
        err_in(err, "case '%s'", c->name);
        goto out;
    }
    stage = record_of(job, c, &in);
    if (io_write_file(prompt, in.prompt.data, in.prompt.len, err) ||
        write_tensors(job, &in, tensors, err) ||
        stage_output(stage, dir, "prompt.txt", err) ||
        stage_output(stage, dir, "inputs.safetensors", err))
        goto out;
    ret = stage_write(stage, dir, err);
out:
    inputs_release(&in);
    stage_free(stage);
    free(prompt);
    free(tensors);
    return ret;
}

static int add_input(const char *path, void *stage, struct err *err)
{
    return stage_input(stage, path, err);
}

/* The files that every case of the run is made from. */
static int begin_record(struct job *job, int argc, char **argv, struct err *err)
{
    const struct export_options *opt = job->opt;

    job->stage = stage_new("assay-export", argc, argv, &opt->stage, err);
    if (!job->stage)
        return -1;
    stage_role(job->stage, "PACK", opt->pack);
    stage_role(job->stage, "OUT", opt->out);
    stage_role(job->stage, "CASES", job->cases_dir);
    stage_role(job->stage, "PROTOCOL", opt->protocol);
    stage_input_known(job->stage, opt->cases, job->list.sha256, job->list.size);
    if (opt->protocol)
        stage_input_known(job->stage, opt->protocol, job->protocol->sha256,
                          job->protocol->size);
    return prompt_files(opt->pack, add_input, job->stage, err);
}

/* The folder of a case below `dir`, or `dir` itself for the only one. */
static char *case_dir(const char *dir, const struct test_case *one,
                      const struct test_case *c)
{
    return one ? xstrdup(dir) : path_join(dir, c->name);
}

/* Makes every case's inputs and drops them: a refusal comes before anything is
 * written, missing parents of the output included.  With --reuse: does the
 * earlier result of every case hold (why, if not)? */
static int check_all(const struct job *job, const struct test_case *one,
                     struct err *why, struct err *err)
{
    size_t count = one ? 1 : job->list.count;
    int ret = 0;

    for (size_t i = 0; i < count && ret == 0; i++) {
        const struct test_case *c = one ? one : &job->list.cases[i];
        struct inputs in;

        inputs_init(&in);
        ret = make_inputs(job, c, &in, err);
        if (ret)
            err_in(err, "case '%s'", c->name);
        if (ret == 0 && job->opt->stage.reuse && why->code == ERR_NONE) {
            struct stage *stage = record_of(job, c, &in);
            char *dir = case_dir(job->opt->stage.reuse, one, c);

            stage_holds(stage, dir, why);
            free(dir);
            stage_free(stage);
        }
        inputs_release(&in);
    }
    return ret;
}

/* 1: the earlier result is the output now; 0: it has to be made. */
static int reuse(const struct job *job, const struct err *why, struct err *err)
{
    const char *from = job->opt->stage.reuse;

    if (!from)
        return 0;
    if (why->code) {
        cli_note(job->command, "%s: not used again: %s", from, why->text);
        return 0;
    }
    if (publish_adopt(from, job->opt->out, err))
        return -1;
    cli_note(job->command, "%s: used again, its record holds", from);
    return 1;
}

static int export_all(const struct job *job, struct err *err)
{
    struct publish p = PUBLISH_INIT;
    const struct test_case *one = NULL;
    struct err why = ERR_INIT;
    int ret = 0;

    if (job->opt->one_case) {
        one = case_list_find(&job->list, job->opt->one_case, err);
        if (!one)
            return -1;
    }
    if (io_exists(job->opt->out))
        return err_set(err, ERR_EXISTS, "%s: is there already", job->opt->out);
    if (check_all(job, one, &why, err))
        return -1;
    ret = reuse(job, &why, err);
    if (ret)
        return ret < 0 ? -1 : 0;
    if (publish_begin(&p, job->opt->out, err))
        return -1;
    for (size_t i = 0; i < (one ? 1 : job->list.count) && ret == 0; i++) {
        const struct test_case *c = one ? one : &job->list.cases[i];
        char *dir = case_dir(p.part, one, c);

        ret = io_make_dirs(dir, err) || export_one(job, c, dir, err);
        free(dir);
    }
    if (ret) {
        publish_abort(&p);
        return -1;
    }
    return publish_commit(&p, err);
}

static void job_release(struct job *job)
{
    case_list_release(&job->list);
    tokenizer_free(job->tokenizer);
    ledger_free(job->ledger);
    stage_free(job->stage);
    free(job->cases_dir);
}

int export_cases(int argc, char **argv, const struct cli_command *command,
                 const struct export_options *opt,
                 const struct protocol *protocol, struct err *err)
{
    struct job job = {.command = command, .opt = opt, .protocol = protocol};
    int ret = -1;

    if (case_list_read(opt->cases, &job.list, err))
        return -1;
    job.cases_dir = path_dir(opt->cases);
    if (open_pack(&job, err) || begin_record(&job, argc, argv, err) ||
        export_all(&job, err))
        goto out;
    ret = 0;
out:
    job_release(&job);
    return ret;
}

/* ---- before it ---- */

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
        if (make_inputs(job, c, &in, err)) {
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
    struct buf text = BUF_INIT;
    json_t *root = NULL;

    if (case_list_read(opt->cases, &job.list, err))
        return -1;
    if (open_pack(&job, err) == 0)
        root = predict_all(&job, err);
    if (root) {
        json_write(root, &text);
        fwrite(text.data, 1, text.len, stdout);
    }
    buf_release(&text);
    job_release(&job);
    int ret = root ? 0 : -1;
    json_decref(root);
    return ret;
}
