/* assay-export --cases --out: every case's inputs and record into a folder. */
#include "export_job.h"

#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/publish.h"
#include "cli/earlier.h"
#include "prompt/prompt.h"

#include <stdlib.h>

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
    if (inputs_make(&in, job, c, err)) {
        err_in(err, "case '%s'", c->name);
        goto out;
    }
    stage = record_of(job, c, &in);
    if (io_write_file(prompt, in.prompt.data, in.prompt.len, err) ||
        inputs_write(&in, job, tensors, err) ||
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
        ret = inputs_make(&in, job, c, err);
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
        earlier_decline(job->command, from, why);
        return 0;
    }
    return earlier_adopt(job->command, from, job->opt->out, err) ? -1 : 1;
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
    if (io_check_new(job->opt->out, err) || check_all(job, one, &why, err))
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

int export_cases(int argc, char **argv, const struct cli_command *command,
                 const struct export_options *opt,
                 const struct protocol *protocol, struct err *err)
{
    struct job job = {.command = command, .opt = opt, .protocol = protocol};
    int ret = -1;

    if (case_list_read(opt->cases, &job.list, err))
        return -1;
    job.cases_dir = path_dir(opt->cases);
    if (job_open(&job, err) || begin_record(&job, argc, argv, err) ||
        export_all(&job, err))
        goto out;
    ret = 0;
out:
    job_release(&job);
    return ret;
}
