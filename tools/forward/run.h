#ifndef FORWARD_RUN_H
#define FORWARD_RUN_H

#include "base/err.h"
#include "base/publish.h"
#include "cases/protocol.h"
#include "cli/cli.h"
#include "evidence/stage.h"
#include "gates/parity.h"
#include "job.h"
#include "models/model.h"

#include <stdbool.h>
#include <stdint.h>

/* What the command line asks for; a number that is not given is -1. */
struct run_options {
    const char *pack, *inputs, *prefix, *files, *protocol, *precision, *sums,
        *trace, *local, *inject, *kernel, *out, *parity, *attention, *predict;
    int64_t chunk, threads, generate;
    bool ledger;
    struct stage_options stage;
};

/*
 * One run of the program: the options, and what is read before anything is
 * computed.  Each of the things a run can do takes it and is a file of this
 * folder: pass.h, generate.h, states.h, predict.h, reuse.h.
 */
struct run {
    const struct cli_command *command;
    const struct run_options *opt;
    int argc; /* as main() got them, for the record */
    char **argv;
    struct protocol protocol;
    struct forward_options forward;
    struct model *model;
    struct job job;             /* of --inputs */
    struct parity_input parity; /* of --parity */
    char *parity_dir; /* its folder, on which its paths are relative */
    struct publish out;
};

/* Reads protocol, model and cases; command, opt and the arguments are set, the
 * rest is 0 or PUBLISH_INIT.  run_release() also after a failure. */
int run_open(struct run *r, struct err *err);
void run_release(struct run *r);

/* The folder of case i below `root`, which it is itself for a single case given
 * as such; freed by the caller. */
char *run_case_dir(const struct run *r, const char *root, size_t i);
#endif
