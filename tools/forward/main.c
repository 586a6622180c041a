/*
 * assay-forward: a checkpoint and a case's inputs to logits, hidden states,
 * image embeddings and traces.
 */
#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/publish.h"
#include "cases/protocol.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "evidence/stage.h"
#include "generate.h"
#include "job.h"
#include "kernels/kernels.h"
#include "kernels/threads.h"
#include "predict.h"
#include "sink.h"
#include "states.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_CHUNK = 256 };

static struct {
    const char *pack, *inputs, *prefix, *files, *protocol, *precision, *sums,
        *trace, *local, *inject, *kernel, *out, *parity, *attention, *predict;
    int64_t chunk, threads, generate;
    bool ledger;
    struct stage_options stage;
} opt = {.chunk = -1, .threads = -1, .generate = -1}; /* -1: not given */

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

/* ---- what the options and the protocol ask for ---- */

static int check_options(struct err *err)
{
    if (opt.predict &&
        (!opt.pack || opt.inputs || opt.parity || opt.out || opt.generate > 0 ||
         opt.trace || opt.local || opt.inject))
        return err_set(err, ERR_USAGE,
                       "--predict goes with --pack, and with none of --inputs, "
                       "--out, --parity, --generate, --trace and --local");
    if (opt.predict)
        return 0;
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
    if (opt.attention && strcmp(opt.attention, "flash") != 0 &&
        strcmp(opt.attention, "flash-exact") != 0)
        return err_set(err, ERR_USAGE,
                       "--attn '%s' is neither flash nor flash-exact",
                       opt.attention);
    if (opt.sums && strcmp(opt.sums, "written") != 0 &&
        strcmp(opt.sums, "torch") != 0 && strcmp(opt.sums, "torch-f32") != 0 &&
        strcmp(opt.sums, "chain") != 0)
        return err_set(err, ERR_USAGE,
                       "--sums is written, torch, torch-f32 or chain, not '%s'",
                       opt.sums);
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
    return 0;
}

static int set_forward(struct forward_options *f, const struct protocol *p,
                       struct err *err)
{
    const char *precision = opt.precision ? opt.precision
                            : opt.parity  ? "f32"
                            : p->compute  ? p->compute
                                          : "f16";

    if (!precision_parse(precision, &f->precision))
        return err_set(err, ERR_USAGE,
                       "precision '%s' is none of f64, f32, "
                       "f16, bf16",
                       precision);
    f->chunk = opt.chunk > 0 ? opt.chunk : DEFAULT_CHUNK;
    f->regime.prefill_chunk = p->prefill_chunk;
    f->regime.is_tail_one = p->tail == PROTOCOL_TAIL_ONE;
    f->is_states_only = opt.parity != NULL;
    f->is_flash_exact =
        opt.attention && strcmp(opt.attention, "flash-exact") == 0;
    return 0;
}

/* By the option, else the protocol, else as the family's references add up. */
static int choose_sums(const struct protocol *p, const struct model *m,
                       enum sums *out, struct err *err)
{
    const char *name = opt.sums ? opt.sums : p->sums;

    *out = !name                            ? model_sums(m)
           : strcmp(name, "chain") == 0     ? SUMS_CHAIN
           : strcmp(name, "torch") == 0     ? SUMS_TORCH
           : strcmp(name, "torch-f32") == 0 ? SUMS_TORCH_F32
                                            : SUMS_WRITTEN;
    if (name && strncmp(name, "torch", 5) == 0 && !m->family->is_text_only)
        return err_set(err, ERR_UNSUPPORTED,
                       "--sums %s is not supported with model_type '%s'", name,
                       m->family->model_type);
    return 0;
}

static int set_kernels(struct err *err)
{
    int n = opt.threads > 0 ? (int)opt.threads : threads_online();

    return kernels_select(opt.kernel, err) || threads_set(n, err) ? -1 : 0;
}

/* ---- one pass ---- */

struct run {
    struct protocol protocol;
    struct job job;
    struct parity_input parity;
    char *parity_dir; /* its folder, on which its paths are relative */
    struct capture_set *local;
    struct forward_options forward;
    struct model *model;
    struct publish out;
    struct sink *sinks; /* one a case */
    struct progress progress;
    int64_t done; /* rows of stages, each counted at its first column */
};

static char *case_dir(const struct run *r, size_t i)
{
    return r->job.is_single ? xstrdup(r->out.part)
                            : path_join(r->out.part, r->job.sequences[i].name);
}

static int open_local(struct run *r, struct err *err)
{
    const char *const paths[] = {opt.local};
    struct capture_paths from = {.role = opt.local,
                                 .paths = paths,
                                 .count = 1,
                                 .files = "trace-f16,trace",
                                 .may_fail = true}; /* cases not run here */

    if (!opt.local)
        return 0;
    r->local = capture_set_open(&from, err);
    if (!r->local)
        return -1;
    if (r->job.is_single && capture_set_is_single(r->local))
        capture_set_rename(r->local, r->job.sequences[0].name);
    return 0;
}

static int open_sinks(struct run *r, struct err *err)
{
    size_t traced = 0;

    if (opt.inject && r->job.count != 1)
        return err_set(err, ERR_USAGE, "--inject takes one case, not %zu",
                       r->job.count);
    r->sinks = xcalloc(r->job.count, sizeof(*r->sinks));
    for (size_t i = 0; i < r->job.count; i++) {
        char *dir = case_dir(r, i);
        struct sink_options o = {.dir = dir,
                                 .pattern = opt.trace,
                                 .local = r->local,
                                 .inject = opt.inject};
        int ret = io_make_dirs(dir, err);

        if (ret == 0)
            ret = sink_open(&r->sinks[i], &o, r->model, &r->forward,
                            &r->job.sequences[i], r->job.continuations[i],
                            r->job.lengths[i], err);
        free(dir);
        if (ret)
            return -1;
        traced += r->sinks[i].traced;
    }
    if (opt.trace && traced == 0)
        return err_set(err, ERR_USAGE, "--trace '%s' matches no stage",
                       opt.trace);
    return 0;
}

static int tap_piece(void *ctx, const struct tap_piece *piece, struct err *err)
{
    struct run *r = ctx;

    if (piece->column == 0)
        progress_at(&r->progress, r->done += piece->values.rows);
    return sink_piece(&r->sinks[piece->sequence], piece, err);
}

static int forced_pass(struct run *r, struct err *err)
{
    struct model_tap tap = {r, tap_piece};
    int64_t rows = 0;

    if (open_local(r, err) || open_sinks(r, err))
        return -1;
    for (size_t i = 0; i < r->job.count; i++)
        rows += r->sinks[i].rows;
    progress_begin(&r->progress, "forward", rows);
    int ret = model_forward(r->model, &r->forward, r->job.sequences,
                            (int64_t)r->job.count, &tap, err);
    progress_end(&r->progress);
    if (ret)
        return -1;
    for (size_t i = 0; i < r->job.count; i++)
        if (sink_finish(&r->sinks[i], err))
            return -1;
    return 0;
}

static int generated(struct run *r, struct err *err)
{
    if (r->job.count != 1)
        return err_set(err, ERR_USAGE, "--generate takes one case, not %zu",
                       r->job.count);
    char *dir = case_dir(r, 0);
    int ret = io_make_dirs(dir, err);
    if (ret == 0)
        ret = generate(r->model, &r->forward, &r->job.sequences[0],
                       opt.generate, dir, err);
    free(dir);
    return ret;
}

static int states(struct run *r, struct err *err)
{
    struct states_options so = {
        .pattern = opt.trace, .inject = opt.inject, .dir = r->out.part};

    if (opt.inject && r->parity.count != 1)
        return err_set(err, ERR_USAGE, "--inject takes one record, not %zu",
                       r->parity.count);

    return states_forward(&so, r->model, &r->forward, &r->parity, err);
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

/* ---- the stage records ---- */

static json_t *orders(const struct forward_options *f)
{
    if (f->precision == PRECISION_F64)
        return json_pack("{s:s}", "all", "chain128 v1 and lanes16 v1 in f64");
    if (f->sums == SUMS_CHAIN)
        return json_pack("{s:s, s:s, s:s}", "linear layers", "chain v1",
                         "attention and recurrences", "chain128 v1", "rows",
                         "lanes16 v1");
    return json_pack(
        "{s:s, s:s, s:s, s:s}", "packed", "grid24 v1",
        "packed without rotation", "grid32 v1 (f32), grid24 v1", "products",
        f->sums == SUMS_TORCH_F32        ? "torch-mkl v1"
        : f->precision != PRECISION_BF16 ? "chain128 v1"
        : f->sums == SUMS_TORCH ? "torch-amx v1 (bf16 by bf16), chain128 v1"
                                : "blocks32 v1 (bf16 by bf16), chain128 v1",
        "rows", "lanes16 v1; of PyTorch's graphs cascade8 v1");
}

static int add_pack(struct stage *s, struct err *err)
{
    static const char *const names[] = {"config.json", "hadamard.json",
                                        "generation_config.json"};
    struct safetensors *st;
    int ret = 0;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && ret == 0; i++) {
        char *path = path_join(opt.pack, names[i]);

        if (io_exists(path))
            ret = stage_input(s, path, err);
        free(path);
    }
    if (ret)
        return -1;
    st = safetensors_open_pack(opt.pack, err);
    if (!st)
        return -1;
    for (size_t i = 0; i < safetensors_count(st) && ret == 0; i++)
        ret = stage_input(s, safetensors_path(st, safetensors_at(st, i)), err);
    safetensors_close(st);
    return ret;
}

static int add_file(const char *path, void *stage, struct err *err)
{
    return stage_input(stage, path, err);
}

static int add_captures(struct stage *s, const struct capture_set *set,
                        const char *name, struct err *err)
{
    return set ? capture_set_files(set, name, add_file, s, err) : 0;
}

/* What the record of a case adds to the common one: all but its outputs. */
static struct stage *case_record(const struct run *r,
                                 const struct stage *common, size_t i,
                                 struct err *err)
{
    struct stage *s = stage_copy(common);
    const char *name = r->job.sequences[i].name, *from = r->job.inputs_dirs[i];

    if ((io_is_dir(from) ? stage_input_dir(s, from, err)
                         : stage_input(s, from, err)) == 0 &&
        add_captures(s, r->job.prefix, name, err) == 0 &&
        add_captures(s, r->local, name, err) == 0)
        return s;
    stage_free(s);
    return NULL;
}

static int record_case(const struct run *r, const struct stage *common,
                       size_t i, struct err *err)
{
    struct stage *s = case_record(r, common, i, err);
    char *dir = case_dir(r, i);
    int ret = s ? stage_output(s, dir, "outputs.safetensors", err) : -1;

    if (ret == 0 && opt.trace)
        ret = stage_output(s, dir, "trace.safetensors", err);
    if (ret == 0)
        ret = stage_write(s, dir, err);
    free(dir);
    stage_free(s);
    return ret;
}

static int record_states(const struct run *r, struct stage *s, struct err *err)
{
    struct states_options so = {.pattern = opt.trace, .dir = r->out.part};

    return states_record(&so, &r->parity, s, err) ||
                   stage_write(s, r->out.part, err)
               ? -1
               : 0;
}

/* What the records of all cases have in common. */
static struct stage *common_record(const struct run *r, int argc, char **argv,
                                   struct err *err)
{
    struct stage *s = stage_new("assay-forward", argc, argv, &opt.stage, err);

    if (!s)
        return NULL;
    stage_role(s, "PACK", opt.pack);
    stage_role(s, "INPUTS", opt.inputs);
    stage_role(s, "PREFIX", opt.prefix);
    stage_role(s, "LOCAL", opt.local);
    stage_role(s, "INJECT", opt.inject);
    stage_role(s, "PARITY", r->parity_dir);
    stage_role(s, "OUT", opt.out);
    if (add_pack(s, err) || (opt.inject && stage_input(s, opt.inject, err)) ||
        (opt.protocol && stage_input(s, opt.protocol, err))) {
        stage_free(s);
        return NULL;
    }
    stage_set(s, "precision",
              json_string(precision_name(r->forward.precision)));
    stage_set(s, "orders", orders(&r->forward));
    stage_set(s, "ledger", model_keys(r->model));
    return s;
}

static int record(const struct run *r, int argc, char **argv, struct err *err)
{
    struct stage *s = common_record(r, argc, argv, err);
    int ret = -1;

    if (!s || (opt.parity && record_states(r, s, err)))
        goto out;
    for (size_t i = 0; i < r->job.count; i++)
        if (record_case(r, s, i, err))
            goto out;
    ret = 0;
out:
    stage_free(s);
    return ret;
}

/* ---- an earlier result ---- */

/* Nothing but a folder for each case. */
static int check_folders(const struct run *r, struct err *why)
{
    struct io_list list;

    if (r->job.is_single)
        return 0;
    if (io_list(opt.stage.reuse, &list, why))
        return -1;
    if (list.count != r->job.count)
        err_set(why, ERR_INPUT, "it holds %zu cases, not %zu", list.count,
                r->job.count);
    io_list_release(&list);
    return why->code ? -1 : 0;
}

static int check_records(const struct run *r, const struct stage *common,
                         struct err *why)
{
    if (check_folders(r, why))
        return -1;
    for (size_t i = 0; i < r->job.count; i++) {
        const char *name = r->job.sequences[i].name;
        struct stage *s = case_record(r, common, i, why);
        char *dir = r->job.is_single ? xstrdup(opt.stage.reuse)
                                     : path_join(opt.stage.reuse, name);
        int ret = s ? stage_holds(s, dir, why) : -1;

        free(dir);
        stage_free(s);
        if (ret)
            return r->job.is_single ? -1 : err_in(why, "case '%s'", name);
    }
    return 0;
}

/* 1: the earlier result is the output now; 0: it has to be computed. */
static int reuse(struct run *r, int argc, char **argv, struct err *err)
{
    struct err why = ERR_INIT;
    struct stage *common;
    int ret;

    if (!opt.stage.reuse)
        return 0;
    if (io_exists(opt.out))
        return err_set(err, ERR_EXISTS, "%s: is there already", opt.out);
    common = common_record(r, argc, argv, err);
    if (!common || open_local(r, err)) {
        stage_free(common);
        return -1;
    }
    ret = check_records(r, common, &why);
    stage_free(common);
    capture_set_close(r->local);
    r->local = NULL;
    if (ret) {
        cli_note(&command, "%s: not used again: %s", opt.stage.reuse, why.text);
        return 0;
    }
    if (publish_adopt(opt.stage.reuse, opt.out, err))
        return -1;
    cli_note(&command, "%s: used again, its record holds", opt.stage.reuse);
    return 1;
}

/* ---- before it ---- */

static int count_shards(int64_t *out, struct err *err)
{
    struct safetensors *st = safetensors_open_pack(opt.pack, err);
    const char *last = "";

    if (!st)
        return -1;
    for (size_t i = 0; i < safetensors_count(st); i++) {
        const char *path = safetensors_path(st, safetensors_at(st, i));

        *out += strcmp(path, last) != 0;
        last = path;
    }
    safetensors_close(st);
    return 0;
}

static int print_prediction(struct run *r, struct err *err)
{
    struct predict_options o = {
        .plan = opt.predict, .prefix = opt.prefix, .files = opt.files};

    if (count_shards(&o.shards, err))
        return -1;
    json_t *document = predict(&o, r->model, &r->forward, err);
    if (!document)
        return -1;
    cli_print_json(document);
    json_decref(document);
    return 0;
}

/* ---- all of it ---- */

static int run_all(struct run *r, int argc, char **argv, struct err *err)
{
    struct protocol *p = &r->protocol;

    if (protocol_read(opt.protocol, p, err))
        return -1;
    struct job_options jo = {.inputs = opt.inputs,
                             .prefix = opt.prefix,
                             .files = opt.files,
                             .context = p->context,
                             .generate = opt.generate};
    if (set_forward(&r->forward, p, err) || set_kernels(err))
        return -1;
    if (opt.parity) {
        r->parity_dir = path_dir(opt.parity);
        if (parity_read(opt.parity, &r->parity, err))
            return -1;
    }
    r->model = model_open(opt.pack, opt.generate > 0, err);
    if (!r->model)
        return -1;
    if (choose_sums(p, r->model, &r->forward.sums, err))
        return -1;
    if (opt.predict)
        return print_prediction(r, err);
    if ((opt.inputs && job_read(&r->job, &jo, r->model, err)))
        return -1;
    int reused = reuse(r, argc, argv, err);
    if (reused)
        return reused < 0 ? -1 : 0;
    if (publish_begin(&r->out, opt.out, err))
        return -1;
    if (opt.parity         ? states(r, err)
        : opt.generate > 0 ? generated(r, err)
                           : forced_pass(r, err))
        return -1;
    return record(r, argc, argv, err) ||
                   (opt.ledger && print_ledger(r->model, err)) ||
                   publish_commit(&r->out, err)
               ? -1
               : 0;
}

static void release(struct run *r)
{
    struct err ignored = ERR_INIT;

    for (size_t i = 0; r->sinks && i < r->job.count; i++)
        sink_release(&r->sinks[i]);
    free(r->sinks);
    publish_abort(&r->out);
    capture_set_close(r->local);
    job_release(&r->job);
    parity_release(&r->parity);
    free(r->parity_dir);
    model_close(r->model);
    protocol_release(&r->protocol);
    threads_set(1, &ignored);
}

int main(int argc, char **argv)
{
    struct err err = ERR_INIT;
    struct cli_list rest = {0};
    int parsed = cli_parse(&command, argc, argv, &rest, &err);

    mem_return_blocks();
    if (parsed == 0 && check_options(&err) == 0) {
        struct run r = {.out = PUBLISH_INIT};

        run_all(&r, argc, argv, &err);
        release(&r);
    }
    free(rest.items);
    free(opt.stage.roles.items);
    free(opt.stage.after.items);
    return cli_finish(&command, &err);
}
