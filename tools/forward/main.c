/*
 * assay-forward: a checkpoint and a case's inputs to logits, hidden states,
 * image embeddings and traces.  Arguments and the order of things; each thing's
 * work is in a file of its own.
 */
#include "arithmetic.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "generate.h"
#include "pass.h"
#include "predict.h"
#include "records.h"
#include "reuse.h"
#include "run.h"
#include "states.h"

#include <stdlib.h>

static struct run_options opt = {.chunk = -1, .threads = -1, .generate = -1};

static const struct cli_opt options[] = {
    {'p', "pack", "dir", "the checkpoint", CLI_STR, &opt.pack},
    {0, "model", "dir", "the same", CLI_STR, &opt.pack},
    {'i', "inputs", "dir", "a case's inputs, or a folder of cases", CLI_STR,
     &opt.inputs},
    {0, "prefix", "path", "captures whose continuation_ids are fed", CLI_STR,
     &opt.prefix},
    {0, "files", "names", "which files of a prefix's folder are read", CLI_STR,
     &opt.files},
    {0, "protocol", "file", "the frozen protocol", CLI_STR, &opt.protocol},
    {0, "parity", "file", "hidden states of a parity input's records instead",
     CLI_STR, &opt.parity},
    {0, "precision", "name",
     "f64, f32, f16 or bf16 (the protocol's compute; parity: f32)", CLI_STR,
     &opt.precision},
    {0, "attn", "name", "flash or flash-exact: the fused kernel's exponential",
     CLI_STR, &opt.attention},
    {0, "ledger", NULL, "print which keys and tensors were used", CLI_FLAG,
     &opt.ledger},
    {0, "sums", "name",
     "written, torch, torch-f32 or chain: whose order of sums (the protocol's)",
     CLI_STR, &opt.sums},
    {'t', "trace", "glob", "stages to save as well, e.g. 'layer*.out'", CLI_STR,
     &opt.trace},
    {0, "local", "path", "traces whose values feed every next stage", CLI_STR,
     &opt.local},
    {0, "inject", "file", "values that take the place of stages", CLI_STR,
     &opt.inject},
    {'g', "generate", "n", "greedy tokens instead, at most n", CLI_INT,
     &opt.generate},
    {0, "chunk", "n", "rows worked on at once; changes no bit", CLI_INT,
     &opt.chunk},
    {'j', "threads", "n", "threads (all processors); changes no bit", CLI_INT,
     &opt.threads},
    {0, "kernel", "name", "plain or avx2 (the best there is); changes no bit",
     CLI_STR, &opt.kernel},
    {0, "predict", "file",
     "of assay-export --predict: print what a pass will write and take",
     CLI_STR, &opt.predict},
    {'o', "out", "dir", "where the results go; must not exist", CLI_STR,
     &opt.out},
    STAGE_OPTIONS(opt.stage),
    STAGE_REUSE(opt.stage),
    {0},
};

static const struct cli_command command = {
    .program = "assay-forward",
    .operands = "",
    .about = "Computes what a checkpoint gives for a case's inputs.",
    .options = options,
};

static int check_options(struct err *err)
{
    if (opt.predict &&
        (!opt.pack || opt.inputs || opt.parity || opt.out || opt.generate > 0 ||
         opt.trace || opt.local || opt.inject))
        return err_set(err, ERR_USAGE,
                       "--predict goes with --pack, and with none of --inputs, "
                       "--out, --parity, --generate, --trace and --local");
    if (opt.predict)
        return arithmetic_check(&opt, err);
    if (!opt.pack || (!opt.inputs && !opt.parity) || !opt.out)
        return err_set(err, ERR_USAGE,
                       "--pack, --inputs (or --parity) and --out are needed");
    if (opt.parity && (opt.inputs || opt.prefix || opt.files || opt.local ||
                       opt.generate > 0))
        return err_set(err, ERR_USAGE,
                       "--parity goes with none of --inputs, --prefix, "
                       "--files, --local and --generate");
    if (opt.stage.reuse && (opt.parity || opt.generate > 0))
        return err_set(err, ERR_USAGE,
                       "--reuse goes with neither --parity nor --generate");
    if (opt.generate == 0 || opt.chunk == 0 || opt.threads == 0)
        return err_set(err, ERR_USAGE,
                       "--generate, --chunk and --threads are at least 1");
    if (opt.generate > 0 &&
        (opt.prefix || opt.trace || opt.local || opt.inject))
        return err_set(err, ERR_USAGE,
                       "--generate goes with none of --prefix, "
                       "--trace, --local and --inject");
    if (opt.inject && opt.local)
        return err_set(err, ERR_USAGE, "--inject does not go with --local");
    if (opt.chunk > 1 << 20 || opt.threads > 1024)
        return err_set(err, ERR_USAGE,
                       "--chunk is at most 1048576, --threads at most 1024");
    return arithmetic_check(&opt, err);
}

static int print_ledger(const struct model *m, struct err *err)
{
    json_t *weights = model_weights(m, err), *ledger;

    if (!weights)
        return -1;
    ledger = model_keys(m);
    json_object_set_new(ledger, "weights", weights);
    cli_print_json(ledger);
    json_decref(ledger);
    return cli_flush(err);
}

static int print_prediction(const struct run *r, struct err *err)
{
    json_t *document = predict(r, err);

    if (!document)
        return -1;
    cli_print_json(document);
    json_decref(document);
    return 0;
}

static int compute(struct run *r, struct err *err)
{
    if (publish_begin(&r->out, opt.out, err))
        return -1;
    if (opt.parity         ? states_forward(r, err)
        : opt.generate > 0 ? generate(r, err)
                           : pass_forced(r, err))
        return -1;
    return records_write(r, err) ||
                   (opt.ledger && print_ledger(r->model, err)) ||
                   publish_commit(&r->out, err)
               ? -1
               : 0;
}

static int run_all(struct run *r, struct err *err)
{
    if (run_open(r, err))
        return -1;
    if (opt.predict)
        return print_prediction(r, err);
    int reused = reuse_earlier(r, err);
    if (reused)
        return reused < 0 ? -1 : 0;
    return compute(r, err);
}

int main(int argc, char **argv)
{
    struct err err = ERR_INIT;
    struct cli_list rest = {0};
    int parsed = cli_parse(&command, argc, argv, &rest, &err);

    mem_return_blocks();
    if (parsed == 0 && check_options(&err) == 0) {
        struct run r = {.command = &command,
                        .opt = &opt,
                        .argc = argc,
                        .argv = argv,
                        .out = PUBLISH_INIT};

        run_all(&r, &err);
        run_release(&r);
    }
    free(rest.items);
    free(opt.stage.roles.items);
    free(opt.stage.after.items);
    return cli_finish(&command, &err);
}
