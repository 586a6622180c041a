#ifndef FORWARD_JOB_H
#define FORWARD_JOB_H

#include "base/arena.h"
#include "base/err.h"
#include "gates/capture.h"
#include "models/model.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * What is to be computed: each case's inputs (prompt_ids, position_ids
 * of three axes or of one, image_grid_thw, patches) and the continuation along
 * which it is forced.
 */
struct job_options {
    const char *inputs; /* one case, or a folder of cases */
    const char *prefix; /* captures with continuation_ids, or NULL */
    const char *files;  /* which files of the prefix's folders are read */
    const char *local;  /* traces whose values feed the next stages, or NULL */
    int64_t context;    /* most rows of prompt and continuation; 0: any */
    int64_t generate;   /* tokens that are to follow instead, or at most 0 */
};

struct job {
    bool is_single; /* one case given as such: no folder of its own */
    size_t count;
    struct sequence *sequences;
    int64_t **continuations;            /* continuation_ids as given, or NULL */
    int64_t *lengths;                   /* of those */
    char **inputs_dirs;                 /* each case's folder of inputs */
    struct capture_set *prefix, *local; /* NULL: not asked for */
    struct arena arena;
};

/* Reads and checks all cases against the model. */
int job_read(struct job *job, const struct job_options *o,
             const struct model *m, struct err *err);
void job_release(struct job *job);
#endif
