/* assay-compare: reference and candidate captures -> a verdict a gate. */
#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/publish.h"
#include "cli/cli.h"
#include "cli/earlier.h"
#include "evidence/stage.h"
#include "gates/compare.h"
#include "gates/parity.h"
#include "gates/stages.h"
#include "gates/texts.h"
#include "prompt/prompt.h"
#include "report/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    const char *gates, *files, *candidate_files, *protocol, *cases, *only;
    const char *out, *junit, *parity, *model, *revision;
    const char *pack, *receipt, *candidate_name;
    struct cli_list reference, candidate, adjudicator;
    struct stage_options stage;
    bool stages, json, text;
} opt;

static const struct cli_opt options[] = {
    {'g', "gates", "file", "the frozen limits", CLI_STR, &opt.gates},
    {'r', "reference", "path", "reference captures, laid over one another",
     CLI_LIST, &opt.reference},
    {'c', "candidate", "path", "candidate captures, laid over one another",
     CLI_LIST, &opt.candidate},
    {0, "adjudicator", "path", "f64 captures: how far each side lies from them",
     CLI_LIST, &opt.adjudicator},
    {'f', "files", "names", "read only these files of a folder", CLI_STR,
     &opt.files},
    {0, "candidate-files", "names", "the same, for the candidate alone",
     CLI_STR, &opt.candidate_files},
    {0, "cases", "file", "the cases there must be", CLI_STR, &opt.cases},
    {0, "case", "name", "compare this case alone", CLI_STR, &opt.only},
    {0, "protocol", "file", "the protocol whose digest is recorded", CLI_STR,
     &opt.protocol},
    {'p', "pack", "dir", "the pack, for the pieces of ids that differ", CLI_STR,
     &opt.pack},
    {0, "receipt", "file", "its source receipt, whose names the report gives",
     CLI_STR, &opt.receipt},
    {0, "candidate-name", "text", "what the report calls the candidate",
     CLI_STR, &opt.candidate_name},
    {0, "stages", NULL, "compare traces, stage by stage; no gates", CLI_FLAG,
     &opt.stages},
    {0, "parity", "file", "compare hidden states with a parity input's",
     CLI_STR, &opt.parity},
    {0, "model", "name", "the model's name in the parity document", CLI_STR,
     &opt.model},
    {0, "revision", "name", "its revision", CLI_STR, &opt.revision},
    {0, "text", NULL, "the parity document as 'path: value' lines", CLI_FLAG,
     &opt.text},
    {'j', "json", NULL, "print one JSON document", CLI_FLAG, &opt.json},
    {'o', "out", "dir", "write verdicts, reports and stage.json there", CLI_STR,
     &opt.out},
    {0, "junit", "file", "write JUnit XML there", CLI_STR, &opt.junit},
    STAGE_OPTIONS(opt.stage),
    STAGE_REUSE(opt.stage),
    {0},
};

static const struct cli_command command = {
    .program = "assay-compare",
    .operands = "[REFERENCE CANDIDATE | STATES]",
    .about = "Judges a candidate's captures by frozen gates.",
    .options = options,
    .max_operands = 2,
};

/* What asks for a judgement has no meaning without gates. */
static int check_options(struct err *err)
{
    if (opt.stage.reuse && !opt.out)
        return err_set(err, ERR_USAGE, "--reuse goes with --out");
    if (opt.text || opt.model || opt.revision)
        return err_set(err, ERR_USAGE,
                       "--text, --model and --revision go with --parity");
    if (!opt.stages)
        return opt.gates ? 0 : err_set(err, ERR_USAGE, "--gates is missing");
    if (opt.gates || opt.out || opt.junit || opt.cases || opt.protocol ||
        opt.adjudicator.count || opt.pack || opt.receipt || opt.candidate_name)
        return err_set(err, ERR_USAGE,
                       "--stages lists differences: it takes no gates, cases, "
                       "protocol, adjudicator, pack, receipt or output "
                       "folder");
    return 0;
}

/* Where the captures come from: two operands, or the two options. */
static int fill_request(const struct cli_list *rest,
                        struct compare_request *out, struct err *err)
{
    bool has_options = opt.reference.count || opt.candidate.count;

    if (check_options(err))
        return -1;
    if (has_options && rest->count)
        return err_set(err, ERR_USAGE,
                       "captures are given twice: as operands "
                       "and by --reference or --candidate");
    if (has_options && !opt.reference.count)
        return err_set(err, ERR_USAGE, "--reference is missing");
    if (has_options && !opt.candidate.count)
        return err_set(err, ERR_USAGE, "--candidate is missing");
    if (!has_options && rest->count != 2)
        return err_set(err, ERR_USAGE, "missing operand: REFERENCE CANDIDATE");
    *out = (struct compare_request){
        .gates = opt.gates,
        .reference = {.role = "REFERENCE", .files = opt.files},
        .candidate = {.role = "CANDIDATE",
                      .files =
                          opt.candidate_files ? opt.candidate_files : opt.files,
                      .may_fail = true},
        .adjudicator = {.role = "ADJUDICATOR",
                        .paths = opt.adjudicator.items,
                        .count = opt.adjudicator.count},
        .protocol = opt.protocol,
        .cases = opt.cases,
        .only = opt.only,
    };
    if (has_options) {
        out->reference.paths = opt.reference.items;
        out->reference.count = opt.reference.count;
        out->candidate.paths = opt.candidate.items;
        out->candidate.count = opt.candidate.count;
    } else {
        out->reference.paths = rest->items;
        out->reference.count = 1;
        out->candidate.paths = rest->items + 1;
        out->candidate.count = 1;
    }
    return 0;
}

struct inputs {
    struct stage *stage;
    bool may_fail;
};

/* A capture's file, the rendered prompt beside it, and the record of the stage
 * that made it. */
static int record_file(const char *path, void *context, struct err *err)
{
    static const char *const beside[] = {"prompt.txt", "stage.json"};
    const struct inputs *in = context;
    char *dir = path_dir(path);
    struct err why = ERR_INIT;
    int ret = stage_input(in->stage, path, &why);

    for (size_t i = 0; i < 2 && ret == 0; i++) {
        char *other = path_join(dir, beside[i]);

        if (io_exists(other))
            ret = stage_input(in->stage, other, &why);
        free(other);
    }
    free(dir);
    if (ret && !in->may_fail)
        *err = why;
    return in->may_fail ? 0 : ret; /* the verdict says what is unreadable */
}

static int record_captures(struct stage *s, const struct capture_paths *from,
                           struct err *err)
{
    struct inputs in = {s, from->may_fail};
    struct capture_set *set;
    int ret;

    if (from->count == 0)
        return 0;
    for (size_t i = 0; i < from->count; i++) {
        char *role = i == 0 ? xstrdup(from->role)
                            : xasprintf("%s%zu", from->role, i + 1);
        stage_role(s, role, from->paths[i]);
        free(role);
    }
    set = capture_set_open(from, err);
    ret = set ? capture_set_files(set, NULL, record_file, &in, err) : -1;
    capture_set_close(set);
    return ret;
}

struct outputs {
    struct stage *stage;
    const char *dir;
};

static int record_output(const char *name, void *context, struct err *err)
{
    const struct outputs *o = context;

    return stage_output(o->stage, o->dir, name, err);
}

static int record_input(const char *path, void *stage, struct err *err)
{
    return stage_input(stage, path, err);
}

/* What the pack was asked, for an auditor who has no pack. */
static int write_texts(const struct texts *texts, struct stage *s,
                       const char *dir, struct err *err)
{
    json_t *asked = texts_remembered(texts);
    char *path = path_join(dir, "texts.json");
    int ret = json_write_file(asked, path, err);

    free(path);
    json_decref(asked);
    return ret ? -1 : stage_output(s, dir, "texts.json", err);
}

/* The stage's record, all but its outputs. */
static struct stage *record_of(const struct compare_request *request,
                               const json_t *document, int argc, char **argv,
                               struct err *err)
{
    const struct {
        const char *role, *path;
    } files[] = {{"GATES", request->gates},
                 {"PROTOCOL", request->protocol},
                 {"CASES", request->cases},
                 {"RECEIPT", opt.receipt}};
    struct stage *s = stage_new(command.program, argc, argv, &opt.stage, err);

    if (!s)
        return NULL;
    stage_role(s, "OUT", opt.out);
    stage_role(s, "PACK", opt.pack);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        stage_role(s, files[i].role, files[i].path);
    if (record_captures(s, &request->reference, err) ||
        record_captures(s, &request->candidate, err) ||
        record_captures(s, &request->adjudicator, err))
        goto fail;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        if (files[i].path && stage_input(s, files[i].path, err))
            goto fail;
    if (opt.pack && prompt_files(opt.pack, record_input, s, err))
        goto fail;
    stage_set(s, "verdict", json_incref(json_object_get(document, "verdict")));
    return s;
fail:
    stage_free(s);
    return NULL;
}

static int write_evidence(const struct compare_request *request,
                          const json_t *document, int argc, char **argv,
                          const char *dir, struct err *err)
{
    struct stage *s = record_of(request, document, argc, argv, err);
    struct outputs out = {s, dir};
    int ret = -1;

    if (s &&
        (!request->texts || write_texts(request->texts, s, dir, err) == 0) &&
        report_write(document, dir, record_output, &out, err) == 0)
        ret = stage_write(s, dir, err);
    stage_free(s);
    return ret;
}

static int write_junit(const json_t *document, struct err *err)
{
    struct buf text = BUF_INIT;
    int ret;

    report_junit(document, "compare", &text);
    ret = io_write_file(opt.junit, text.data, text.len, err);
    buf_release(&text);
    return ret;
}

static void print(const json_t *document,
                  void (*as_text)(const json_t *document, struct buf *out))
{
    struct buf text = BUF_INIT;

    if (opt.json) {
        cli_print_json(document);
        return;
    }
    as_text(document, &text);
    fwrite(text.data, 1, text.len, stdout);
    buf_release(&text);
}

/* 1: the earlier verdict is the output now; 0: it has to be made. */
static int reuse(const struct compare_request *request, int argc, char **argv,
                 struct err *err)
{
    const char *from = opt.stage.reuse;
    char *path = path_join(from, "summary.json");
    struct err why = ERR_INIT;
    json_t *document = json_read_file(path, &why);
    struct stage *s = NULL;
    int ret = -1;

    if (io_check_new(opt.out, err))
        goto out;
    if (document)
        s = record_of(request, document, argc, argv, &why);
    if (!s || stage_holds(s, from, &why)) {
        earlier_decline(&command, from, &why);
        ret = 0;
        goto out;
    }
    print(document, report_text);
    if (cli_flush(err) || (opt.junit && write_junit(document, err)) ||
        earlier_adopt(&command, from, opt.out, err))
        goto out;
    if (!compare_passed(document))
        err->code = ERR_NO;
    ret = 1;
out:
    stage_free(s);
    json_decref(document);
    free(path);
    return ret;
}

static int compare(struct compare_request *request, int argc, char **argv,
                   struct err *err)
{
    struct publish p = PUBLISH_INIT;
    json_t *document = NULL, *about = NULL;
    int ret = -1;

    if (io_check_new(opt.junit, err))
        return -1;
    if (opt.stage.reuse) {
        ret = reuse(request, argc, argv, err);
        if (ret)
            return ret < 0 ? -1 : 0;
        ret = -1;
    }
    if (opt.receipt || opt.candidate_name) {
        about = compare_about(opt.receipt, opt.candidate_name, err);
        if (!about)
            return -1;
    }
    request->about = about;
    if (opt.pack) {
        request->texts = texts_open_pack(opt.pack, request->protocol, err);
        if (!request->texts)
            goto out;
    }
    if (opt.out && publish_begin(&p, opt.out, err))
        goto out;
    document = compare_run(request, err);
    if (!document)
        goto out;
    if (opt.out && write_evidence(request, document, argc, argv, p.part, err))
        goto out;
    print(document, report_text);
    if (cli_flush(err))
        goto out;
    if (opt.junit && write_junit(document, err))
        goto out;
    if (opt.out && publish_commit(&p, err))
        goto out;
    ret = 0;
    if (!compare_passed(document))
        err->code = ERR_NO; /* the report has said why */
out:
    publish_abort(&p);
    json_decref(document);
    json_decref(about);
    texts_free(request->texts);
    return ret;
}

/* {"cases": [{"name", "stages", "first", "hint"}]} */
static int add_stages(const struct capture_set *reference,
                      const struct capture_set *candidate, const char *name,
                      json_t *cases, struct err *err)
{
    struct capture *ref = capture_open(reference, name, err);
    struct capture *cand = ref ? capture_open(candidate, name, err) : NULL;
    json_t *found = cand ? stages_compare(ref, cand, err) : NULL;

    if (found) {
        json_t *item = json_pack("{s:s}", "name", name);

        json_object_update(item, found);
        json_array_append_new(cases, item);
    }
    json_decref(found);
    capture_close(ref);
    capture_close(cand);
    return found ? 0 : err_in(err, "case '%s'", name);
}

static void stages_report(const json_t *document, struct buf *out)
{
    size_t i;
    json_t *item;

    json_array_foreach(json_object_get(document, "cases"), i, item)
    {
        buf_addf(out, "%scase %s\n", i ? "\n" : "",
                 json_string_value(json_object_get(item, "name")));
        stages_text(item, out);
    }
}

static int list_stages(struct compare_request *request, struct err *err)
{
    struct capture_set *reference, *candidate = NULL;
    json_t *document = json_object(), *cases = json_array();
    int ret = -1;

    json_object_set_new(document, "cases", cases);
    request->candidate.may_fail = false;
    reference = capture_set_open(&request->reference, err);
    if (reference)
        candidate = capture_set_open(&request->candidate, err);
    if (!candidate || capture_set_apart(reference, candidate, err))
        goto out;
    if (capture_set_is_single(reference) != capture_set_is_single(candidate)) {
        err_set(err, ERR_INPUT,
                "one side is a single capture, the other a folder of them");
        goto out;
    }
    if (capture_set_is_single(reference))
        capture_set_rename(candidate, capture_set_name(reference, 0));
    if (opt.only && !capture_set_has(reference, opt.only)) {
        err_set(err, ERR_INPUT, "no case '%s' in the reference", opt.only);
        goto out;
    }
    for (size_t i = 0; i < capture_set_count(reference); i++) {
        const char *name = capture_set_name(reference, i);

        if (opt.only && strcmp(opt.only, name) != 0)
            continue;
        if (add_stages(reference, candidate, name, cases, err))
            goto out;
    }
    print(document, stages_report);
    ret = 0;
out:
    capture_set_close(reference);
    capture_set_close(candidate);
    json_decref(document);
    return ret;
}

/* Measures states; judges them only when gates are given. */
static int judge_parity(const struct cli_list *rest, struct err *err)
{
    struct parity_input input = {0};
    struct gates gates = {0};
    json_t *document = NULL;
    int ret = -1;

    if (opt.stages || opt.out || opt.junit || opt.cases || opt.only ||
        opt.protocol || opt.files || opt.candidate_files || opt.stage.reuse ||
        opt.reference.count || opt.candidate.count || opt.adjudicator.count ||
        opt.pack || opt.receipt || opt.candidate_name)
        return err_set(err, ERR_USAGE,
                       "--parity takes no captures, cases, pack or output "
                       "folder");
    if (opt.text && opt.json)
        return err_set(err, ERR_USAGE, "--json and --text: one of them");
    if (rest->count != 1)
        return err_set(err, ERR_USAGE, "%s operand: STATES",
                       rest->count ? "one" : "missing");
    if ((opt.gates && gates_read(opt.gates, &gates, err)) ||
        parity_read(opt.parity, &input, err))
        goto out;
    document = parity_compare(&input, rest->items[0], opt.model, opt.revision,
                              opt.gates ? &gates : NULL, err);
    if (!document)
        goto out;
    opt.json = !opt.text;
    print(document, parity_text);
    ret = 0;
    if (!parity_passed(document))
        err->code = ERR_NO;
out:
    gates_release(&gates);
    parity_release(&input);
    json_decref(document);
    return ret;
}

int main(int argc, char **argv)
{
    struct err err = ERR_INIT;
    struct cli_list rest = {0};
    struct compare_request request;
    int state = cli_parse(&command, argc, argv, &rest, &err);

    mem_return_blocks();
    if (state == 0 && opt.parity)
        judge_parity(&rest, &err);
    else if (state == 0 && fill_request(&rest, &request, &err) == 0) {
        if (opt.stages)
            list_stages(&request, &err);
        else
            compare(&request, argc, argv, &err);
    }
    free(rest.items);
    free(opt.reference.items);
    free(opt.candidate.items);
    free(opt.adjudicator.items);
    free(opt.stage.roles.items);
    free(opt.stage.after.items);
    return cli_finish(&command, &err);
}
