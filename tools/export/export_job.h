#ifndef EXPORT_EXPORT_JOB_H
#define EXPORT_EXPORT_JOB_H

#include "base/buf.h"
#include "export.h"
#include "image/image.h"
#include "image/processor.h"
#include "models/model.h"
#include "models/positions.h"
#include "tokenizer/tokenizer.h"

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

/* The pack's tokenizer, vocabulary and image processor, every other key of
 * config.json left to forward.  opt and protocol are set; job_release() also
 * after a failure. */
int job_open(struct job *job, struct err *err);
void job_release(struct job *job);

void inputs_init(struct inputs *in);
void inputs_release(struct inputs *in);

/* Renders, decodes, tokenizes; the images' patches are not made yet. */
int inputs_make(struct inputs *in, const struct job *job,
                const struct test_case *c, struct err *err);

/* inputs.safetensors, with patches made an image at a time. */
int inputs_write(const struct inputs *in, const struct job *job,
                 const char *path, struct err *err);
#endif
