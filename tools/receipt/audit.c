/*
 * audit: derives a run's answer again from its evidence alone, and says which
 * claims that proves, which it contradicts and which nothing here can prove.
 */
#include "audit.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "cli/cli.h"
#include "evidence/bundle.h"
#include "verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_contradicted(const struct audit *a)
{
    size_t i;
    json_t *claim;

    json_array_foreach(a->claims, i,
                       claim) if (strcmp(audit_text(claim, "verdict"),
                                         "contradicted") == 0) return true;
    return false;
}

static json_t *document_of(struct audit *a)
{
    json_t *root = json_object();
    char *path = path_join(a->data, "compare/summary.json");
    struct err ignored = ERR_INIT;
    json_t *summary = json_read_file(path, &ignored);
    const char *verdict = audit_text(summary, "verdict");

    json_object_set_new(
        root, "verdict",
        json_string(is_contradicted(a) ? "contradicted" : "proved"));
    json_object_set_new(root, "run_verdict",
                        verdict[0] ? json_string(verdict) : json_null());
    if (a->is_bundle)
        json_object_set_new(root, "bundle_sha256",
                            json_string(a->view.bundle.sha256));
    json_object_set(root, "claims", a->claims);
    if (a->drift)
        json_object_set(root, "drift", a->drift);
    json_decref(summary);
    free(path);
    return root;
}

static void print_table(const json_t *root)
{
    size_t i, k;
    json_t *claim, *line;

    json_array_foreach(json_object_get(root, "claims"), i, claim)
    {
        printf("%-16s  %s\n%-16s    by %s\n", audit_text(claim, "verdict"),
               audit_text(claim, "claim"), "", audit_text(claim, "by"));
        json_array_foreach(json_object_get(claim, "faults"), k, line)
            printf("%-16s    - %s\n", "", json_string_value(line));
    }
    json_array_foreach(json_object_get(root, "drift"), i, line)
        printf("drift             %s\n", json_string_value(line));
    const char *run = audit_text(root, "run_verdict");
    const char *identity = audit_text(root, "bundle_sha256");
    if (identity[0])
        printf("the bundle's identity: %s\n", identity);
    printf("the run's verdict: %s\naudit: %s\n", run[0] ? run : "none",
           audit_text(root, "verdict"));
}

static void check_signature(struct audit *a)
{
    struct err why = ERR_INIT;
    char *by;
    const char *verdict = seal_signature(a->run, a->signers, &by, &why);

    if (why.code)
        audit_fault(a, "%s", why.text);
    audit_claim(a, "the seal is signed by somebody who may", verdict, by);
    free(by);
}

/* Programs run on files that lie on disk: a bundle is unpacked for them. */
static int recompute_bundle(struct audit *a, char **by, struct err *err)
{
    const char *tmp = getenv("TMPDIR");
    char *dir = xasprintf("%s/assay-audit.XXXXXX", tmp && *tmp ? tmp : "/tmp");
    char *data = NULL;
    struct err ignored = ERR_INIT;
    struct bundle b = {.bag = BAG_INIT};
    int ret = -1;

    if (!mkdtemp(dir)) {
        err_sys(err, "%s", dir);
    } else {
        data = path_join(dir, "data");
        ret = bundle_spill(a->run, dir, &b, err);
        if (ret == 0 && strcmp(b.sha256, a->view.bundle.sha256) != 0)
            ret = err_set(err, ERR_INPUT, "%s: changed while it was audited",
                          a->run);
        if (ret == 0)
            ret = recompute_run(data, a->pack, by, a->faults, err);
        bundle_release(&b);
        io_remove_tree(dir, &ignored);
    }
    free(data);
    free(dir);
    return ret;
}

static int check_again(struct audit *a, struct err *err)
{
    static const char claim[] = "these executables make these outputs of the "
                                "pack";
    char *by = NULL;

    if (!a->pack)
        return 0;
    if (view_has_digests_only(&a->files)) {
        audit_open_claim(a, claim, "the reference's tensors were not kept");
        return 0;
    }
    if (a->is_bundle ? recompute_bundle(a, &by, err)
                     : recompute_run(a->data, a->pack, &by, a->faults, err)) {
        free(by);
        return -1;
    }
    audit_conclude(a, claim, by);
    free(by);
    return 0;
}

/* A run or bundle whose seal must hold: what its verdict was. */
static json_t *sealed_summary(const char *run, struct err *err)
{
    struct bag_files files = BAG_FILES_INIT;
    struct view view = {.mount = NULL};
    json_t *faults = json_array(), *summary = NULL;
    int ret = 0;

    if (io_is_dir(run))
        ret = bag_check(run, &files, faults, err);
    else if (view_open(&view, run, true, err))
        ret = -1;
    else
        bag_judge(&view.bundle.bag, faults);
    if (ret == 0 && json_array_size(faults))
        err_set(err, ERR_INPUT, "%s: not as it was sealed: %s", run,
                json_string_value(json_array_get(faults, 0)));
    else if (ret == 0)
        summary = audit_read_summary(run);
    if (!summary)
        err_set(err, ERR_INPUT, "%s: has no compare/summary.json", run);
    view_close(&view);
    json_decref(faults);
    bag_files_release(&files);
    return summary;
}

/* The run's files as found, and the faults of the bag. */
static int read_run(struct audit *a, struct err *err)
{
    if (io_is_dir(a->run))
        return bag_check(a->run, &a->files, a->faults, err);
    if (view_open(&a->view, a->run, false, err))
        return -1;
    a->is_bundle = true;
    a->files = a->view.bundle.bag.payload;
    bag_judge(&a->view.bundle.bag, a->faults);
    return 0;
}

static int audit(struct audit *a, struct err *err)
{
    json_t *before = NULL;
    int64_t size;
    int fd = a->signers ? io_open(a->signers, &size, err) : -1;

    if (a->signers && fd < 0)
        return -1;
    if (fd >= 0)
        close(fd);
    if (a->against) {
        before = sealed_summary(a->against, err);
        if (!before)
            return -1;
    }
    if (read_run(a, err)) {
        json_decref(before);
        return -1;
    }
    if (before) {
        json_t *now = audit_read_summary(a->run);

        a->drift = drift(before, now);
        json_decref(now);
        json_decref(before);
    }
    char *by = xasprintf("%zu files against the manifests", a->files.count);
    audit_conclude(a, "the evidence is whole: every file is as it was sealed",
                   by);
    free(by);
    check_signature(a);
    audit_coverage(a);
    audit_receipt(a);
    audit_chain(a);
    audit_executables(a);
    audit_statement(a);
    json_t *record = audit_read_record(a, "compare");
    int ret = audit_verdict(a, record, err) || audit_reports(a, record, err) ||
                      check_again(a, err)
                  ? -1
                  : 0;
    json_decref(record);
    if (ret)
        return -1;
    audit_open_claim(a,
                     "continuation_ids are the reference's own greedy choice",
                     "no gate covers who chose them");
    audit_open_claim(
        a, "the run was made when and where it is said to be",
        "no clock or host is in the evidence; a signature says who");
    return 0;
}

int verb_audit(int argc, char **argv)
{
    bool json = false;
    struct audit a = {.files = BAG_FILES_INIT, .cases = CASE_LIST_INIT};
    const struct cli_opt options[] = {
        {'j', "json", NULL, "print one JSON document", CLI_FLAG, &json},
        {'s', "signers", "file", "who may sign (an allowed_signers file)",
         CLI_STR, &a.signers},
        {'r', "recompute", "pack", "run export and forward again on this pack",
         CLI_STR, &a.pack},
        {'a', "against", "run", "how values moved from this run or bundle",
         CLI_STR, &a.against},
        {0},
    };
    const struct cli_command command = {
        "assay-receipt",
        "audit",
        "RUN|BUNDLE",
        "Derives a run's answer again from its evidence alone.",
        options,
        1,
        1};
    struct cli_list rest = {NULL, 0};
    struct err err = ERR_INIT;

    if (cli_parse(&command, argc, argv, &rest, &err) == 0) {
        a.run = rest.items[0];
        a.data = path_join(a.run, "data");
        a.claims = json_array();
        a.faults = json_array();
        if (audit(&a, &err) == 0) {
            json_t *root = document_of(&a);

            if (json)
                cli_print_json(root);
            else
                print_table(root);
            if (is_contradicted(&a))
                err.code = ERR_NO; /* the table says what */
            json_decref(root);
        }
    }
    json_decref(a.claims);
    json_decref(a.drift);
    json_decref(a.faults);
    if (!a.is_bundle)
        bag_files_release(&a.files);
    view_close(&a.view);
    case_list_release(&a.cases);
    free(a.data);
    free(rest.items);
    return cli_finish(&command, &err);
}
