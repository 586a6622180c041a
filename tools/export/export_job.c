/* What the cases of one run share: the pack's tokenizer and image processor. */
#include "export_job.h"

#include "ledger/config.h"
#include "prompt/prompt.h"

#include <stdlib.h>
#include <string.h>

static const char vision_family[] = "prism_hadamard_qwen35";

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

int job_open(struct job *job, struct err *err)
{
    const char *pack = job->opt->pack;

    job->ledger = ledger_new(pack);
    if (read_config(job, err))
        return -1;
    job->tokenizer = prompt_tokenizer(pack, job->ledger, job->protocol, err);
    return job->tokenizer ? 0 : -1;
}

void job_release(struct job *job)
{
    case_list_release(&job->list);
    tokenizer_free(job->tokenizer);
    ledger_free(job->ledger);
    stage_free(job->stage);
    free(job->cases_dir);
}
