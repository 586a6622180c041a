/*
 * audit: derives a run's answer again from its evidence alone, and says which
 * claims that proves, which it contradicts and which nothing here can prove.
 */
#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "cases/cases.h"
#include "cli/cli.h"
#include "evidence/bag.h"
#include "evidence/bundle.h"
#include "judging.h"
#include "receipt/receipt.h"
#include "report/report.h"
#include "verbs.h"
#include "view.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct audit {
    const char *run;
    char *data;             /* RUN/data */
    struct bag_files files; /* the payload as found, hashed; "data/..." */
    json_t *claims;
    json_t *faults;             /* of the claim at hand */
    const char *pack, *against; /* to recompute; to compare with; or NULL */
    json_t *drift;
    const char *signers; /* allowed_signers, or NULL */
    struct view view;    /* of a bundle */
    bool is_bundle;
    struct case_list cases;
    bool has_cases;
    size_t stages;
};

static void fault(struct audit *a, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void fault(struct audit *a, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    json_append_line(a->faults, format, ap);
    va_end(ap);
}

static void add_claim(struct audit *a, const char *claim, const char *verdict,
                      const char *by)
{
    json_array_append_new(a->claims, json_pack("{s:s, s:s, s:s, s:O}", "claim",
                                               claim, "verdict", verdict, "by",
                                               by, "faults", a->faults));
    json_decref(a->faults);
    a->faults = json_array();
}

/* Ends the claim at hand: proved unless a fault was found. */
static void conclude(struct audit *a, const char *claim, const char *by)
{
    add_claim(a, claim, json_array_size(a->faults) ? "contradicted" : "proved",
              by);
}

static void open_claim(struct audit *a, const char *claim, const char *by)
{
    add_claim(a, claim, "cannot be proved", by);
}

/* A payload file below data/. */
static const struct bag_file *payload(const struct audit *a, const char *below)
{
    char *path = xasprintf("data/%s", below);
    const struct bag_file *f = bag_find(&a->files, path);

    free(path);
    return f;
}

static json_t *read_payload(struct audit *a, const char *below)
{
    char *path = path_join(a->data, below);
    struct err err = ERR_INIT;
    json_t *root = payload(a, below) ? json_read_file(path, &err) : NULL;

    if (!root && err.code)
        fault(a, "%s", err.text);
    else if (!root)
        fault(a, "%s: missing", below);
    free(path);
    return root;
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

/* ------------------------------------------------------------- receipts */

/* verify's document again, from what it says it found. */
static void check_verify(struct audit *a, const struct receipt *r,
                         const char *sha256, const char *below,
                         const char *when)
{
    json_t *stored = read_payload(a, below), *again = NULL;
    struct receipt_report report;
    struct err err = ERR_INIT;
    struct buf text = BUF_INIT;
    char digest[HASH_SHA256_HEX];

    if (!stored)
        return;
    if (receipt_report_read(r, stored, &report, &err)) {
        fault(a, "%s: %s", below, err.text);
        goto out;
    }
    again = receipt_report_json(r, sha256, &report);
    json_write(again, &text);
    hash_sha256(text.data, text.len, digest);
    if (strcmp(digest, payload(a, below)->sha256) != 0)
        fault(a, "%s: does not follow from what it found", below);
    for (size_t i = 0; i < report.count; i++)
        if (report.rows[i].state != RECEIPT_SAME)
            fault(a, "%s the run: '%s': %s", when,
                  report.rows[i].listed.path ? report.rows[i].listed.path
                                             : report.rows[i].found.path,
                  receipt_state_name(report.rows[i].state));
    receipt_report_release(&report);
out:
    buf_release(&text);
    json_decref(again);
    json_decref(stored);
}

static void check_receipt(struct audit *a)
{
    struct receipt r = RECEIPT_INIT;
    struct err err = ERR_INIT;
    char *path = path_join(a->data, "source/receipt.json");
    const struct bag_file *f = payload(a, "source/receipt.json");
    char *upstream = NULL;
    const char *strength = "recorded";

    if (!f || receipt_read(&r, path, &err)) {
        fault(a, "%s", f ? err.text : "source/receipt.json: missing");
    } else {
        check_verify(a, &r, f->sha256, "source/verify-before.json", "before");
        check_verify(a, &r, f->sha256, "source/verify-after.json", "after");
        strength = r.strength;
        if (r.repository)
            upstream = xasprintf("%s@%s", r.repository, r.revision);
    }
    conclude(a, "the pack was what its receipt lists, before and after",
             "verify-before.json and verify-after.json, concluded again");
    char *by = xasprintf("receipt of strength '%s', upstream %s", strength,
                         upstream ? upstream : "not named");
    if (strcmp(strength, "commit") == 0)
        conclude(a, "the receipt is upstream's", by);
    else
        open_claim(a, "the receipt is upstream's", by);
    free(by);
    free(upstream);
    free(path);
    receipt_release(&r);
}

/* --------------------------------------------------------- stage records */

/* The digest of REFERENCE/CASE/FILE that a run kept instead of the file; into
 * `out`, "" when there is none. */
static void kept_digest(struct audit *a, const char *below,
                        char out[HASH_SHA256_HEX])
{
    size_t n = strcspn(below, "/"), i;
    char *path = xasprintf("reference/%.*s/digests.json", (int)n, below);
    json_t *root = payload(a, path) ? read_payload(a, path) : NULL, *file;

    out[0] = '\0';
    json_array_foreach(json_object_get(root, "files"), i, file)
    {
        if (below[n] && strcmp(text_of(file, "path"), below + n + 1) == 0)
            snprintf(out, HASH_SHA256_HEX, "%s", text_of(file, "sha256"));
    }
    json_decref(root);
    free(path);
}

/* One input: a file of the run, of the pack, or of the kept reference. */
static void check_input(struct audit *a, const char *stage, const json_t *input,
                        const json_t *found)
{
    const char *path = text_of(input, "path"), *sha = text_of(input, "sha256");
    const char *actual = NULL;
    char kept[HASH_SHA256_HEX];

    if (strncmp(path, "RUN/", 4) == 0) {
        const struct bag_file *f = payload(a, path + 4);

        actual = f ? f->sha256 : NULL;
    } else if (strncmp(path, "PACK/", 5) == 0) {
        actual = json_string_value(json_object_get(found, path + 5));
    } else if (strcmp(path, "RECEIPT") == 0) {
        const struct bag_file *f = payload(a, "source/receipt.json");

        actual = f ? f->sha256 : NULL;
    } else if (strncmp(path, "REFERENCE/", 10) == 0) {
        kept_digest(a, path + 10, kept);
        actual = kept[0] ? kept : NULL;
    }
    if (!actual)
        fault(a, "%s/stage.json: input %s is not in the evidence", stage, path);
    else if (strcmp(actual, sha) != 0)
        fault(a, "%s/stage.json: input %s had SHA-256 %s, is %s", stage, path,
              sha, actual);
}

static bool names(const json_t *list, const char *path)
{
    size_t i;
    json_t *item;

    json_array_foreach(list, i, item) if (strcmp(text_of(item, "path"), path) ==
                                          0) return true;
    return false;
}

/* Every file beside the record is an output of it, and the other way round. */
static void check_outputs(struct audit *a, const char *stage,
                          const json_t *outputs)
{
    char *prefix = xasprintf("data/%s/", stage);
    size_t n = strlen(prefix), i;
    json_t *item;

    json_array_foreach(outputs, i, item)
    {
        char *below = xasprintf("%s/%s", stage, text_of(item, "path"));
        const struct bag_file *f = payload(a, below);

        if (!f)
            fault(a, "%s: an output of its stage, missing", below);
        else if (strcmp(f->sha256, text_of(item, "sha256")) != 0)
            fault(a, "%s: its stage wrote SHA-256 %s, it is %s", below,
                  text_of(item, "sha256"), f->sha256);
        free(below);
    }
    for (i = 0; i < a->files.count; i++) {
        const char *path = a->files.items[i].path;

        if (strncmp(path, prefix, n) != 0 ||
            strcmp(path + n, "stage.json") == 0 ||
            strcmp(path, "data/source/verify-after.json") == 0)
            continue;
        if (!names(outputs, path + n))
            fault(a, "%s: no output of its stage", path + 5);
    }
    free(prefix);
}

/* The frozen files' digests as the record states them. */
static void check_frozen(struct audit *a, const char *stage,
                         const json_t *record)
{
    static const char *const frozen[] = {"protocol.json", "cases.json",
                                         "gates.json"};
    json_t *stated = json_object_get(record, "frozen");

    for (size_t i = 0; i < sizeof(frozen) / sizeof(frozen[0]); i++) {
        char *below = xasprintf("inputs/%s", frozen[i]);
        const struct bag_file *f = payload(a, below);
        const char *sha = text_of(json_object_get(stated, frozen[i]), "sha256");

        if (!f || strcmp(f->sha256, sha) != 0)
            fault(a,
                  "%s/stage.json: ran with %s of SHA-256 %s, the evidence "
                  "holds %s",
                  stage, frozen[i], sha[0] ? sha : "(none)",
                  f ? f->sha256 : "none");
        free(below);
    }
}

static void check_before(struct audit *a, const char *stage,
                         const json_t *inputs, const char *path)
{
    if (!names(inputs, path))
        fault(a, "%s/stage.json: does not follow %s", stage, path);
}

static void check_program(struct audit *a, const char *stage,
                          const json_t *record, const char *want)
{
    const char *name = text_of(json_object_get(record, "program"), "name");

    if (strcmp(name, want) != 0)
        fault(a, "%s/stage.json: made by '%s', not %s", stage, name, want);
}

/* One stage; `before` are records that must be among its inputs. */
static void check_stage(struct audit *a, const char *stage, const char *program,
                        const char *const *before, const json_t *found)
{
    char *below = xasprintf("%s/stage.json", stage);
    json_t *record = read_payload(a, below), *input;
    json_t *inputs = json_object_get(record, "inputs");
    size_t i;

    free(below);
    if (!record)
        return;
    a->stages++;
    if (strcmp(text_of(record, "format"), "assay-stage-1") != 0)
        fault(a, "%s/stage.json: format '%s'", stage,
              text_of(record, "format"));
    check_program(a, stage, record, program);
    check_frozen(a, stage, record);
    json_array_foreach(inputs, i, input)
    {
        check_input(a, stage, input, found);
    }
    for (i = 0; before[i]; i++)
        check_before(a, stage, inputs, before[i]);
    check_outputs(a, stage, json_object_get(record, "outputs"));
    json_decref(record);
}

/* What verify found in the pack: {path: sha256}. */
static json_t *found_in_pack(struct audit *a)
{
    json_t *root = read_payload(a, "source/verify-before.json"), *row;
    json_t *out = json_object();
    size_t i;

    json_array_foreach(json_object_get(root, "files"), i, row)
    {
        json_t *sha = json_object_get(json_object_get(row, "found"), "sha256");

        if (sha)
            json_object_set(out, text_of(row, "path"), sha);
    }
    json_decref(root);
    return out;
}

/* Stages of one case each: export/CASE, forward/CASE, adjudicator/CASE. */
static void check_case_stages(struct audit *a, const char *folder,
                              const char *program, bool follows_export,
                              const json_t *found)
{
    for (size_t i = 0; i < a->cases.count; i++) {
        const char *name = a->cases.cases[i].name;
        char *stage = xasprintf("%s/%s", folder, name);
        char *after = follows_export
                          ? xasprintf("RUN/export/%s/stage.json", name)
                          : xstrdup("RUN/source/stage.json");
        const char *before[] = {after, NULL};

        check_stage(a, stage, program, before, found);
        free(after);
        free(stage);
    }
}

static bool has_folder(const struct audit *a, const char *name)
{
    char *path = path_join(a->data, name);
    bool found = io_is_dir(path);

    free(path);
    return found;
}

static void check_chain(struct audit *a)
{
    static const char *const none[] = {NULL};
    json_t *found = found_in_pack(a);
    size_t most = 3 * a->cases.count + 4, n = 0;
    const char **before = xcalloc(most, sizeof(*before));
    const char *folders[] = {"export", "forward", "adjudicator"};

    check_stage(a, "source", "assay-receipt", none, found);
    check_case_stages(a, "export", "assay-export", false, found);
    if (!has_folder(a, "candidate"))
        check_case_stages(a, "forward", "assay-forward", true, found);
    if (has_folder(a, "adjudicator"))
        check_case_stages(a, "adjudicator", "assay-forward", true, found);
    before[n++] = xstrdup("RUN/source/stage.json");
    before[n++] = xstrdup("RUN/source/verify-after.json");
    for (size_t k = 0; k < 3; k++)
        for (size_t i = 0; has_folder(a, folders[k]) && i < a->cases.count; i++)
            before[n++] = xasprintf("RUN/%s/%s/stage.json", folders[k],
                                    a->cases.cases[i].name);
    check_stage(a, "compare", "assay-compare", before, found);
    char *by = xasprintf("%zu stage records, by digest", a->stages);
    conclude(a, "each stage read what the stage before wrote", by);
    free(by);
    while (n > 0)
        free((char *)before[--n]);
    free(before);
    json_decref(found);
}

static void check_executables(struct audit *a)
{
    struct err err = ERR_INIT;
    struct buf text = BUF_INIT;
    json_t *stored = read_payload(a, "executables.json");
    json_t *again = executables_json(a->data, NULL, &err);
    json_t *candidate = json_object_get(stored, "candidate"), *item, *other;
    char digest[HASH_SHA256_HEX];
    size_t i, k;

    if (!again)
        fault(a, "%s", err.text);
    if (stored && again) {
        if (candidate)
            json_object_set(again, "candidate", candidate);
        json_write(again, &text);
        hash_sha256(text.data, text.len, digest);
        if (strcmp(digest, payload(a, "executables.json")->sha256) != 0)
            fault(a, "executables.json: not what the stage records name");
        json_t *programs = json_object_get(again, "programs");
        json_array_foreach(programs, i, item) json_array_foreach(
            programs, k,
            other) if (k < i && strcmp(text_of(item, "name"),
                                       text_of(other, "name")) == 0)
            fault(a, "two builds of %s ran", text_of(item, "name"));
    }
    conclude(a, "one build of each program ran, and executables.json lists it",
             "stage records");
    open_claim(a, "these executables compute what their source says",
               "nothing here; rebuild, or recompute with the pack");
    if (has_folder(a, "candidate"))
        open_claim(a, "the candidate's captures come from the engine named",
                   candidate ? "its digest, on the word of whoever ran it"
                             : "no executable was named");
    buf_release(&text);
    json_decref(again);
    json_decref(stored);
}

/* -------------------------------------------------------------- verdict */

static json_t *read_summary(const char *run)
{
    char *path = path_join(run, "data/compare/summary.json");
    struct err ignored = ERR_INIT;
    json_t *summary = json_read_file(path, &ignored);

    free(path);
    return summary;
}

/* compare's files made again against those in the evidence. */
struct again {
    struct audit *audit;
    const char *from;    /* "the tensors", for the faults */
    bool is_other_build; /* its JSON may say less than ours */
    size_t newer;        /* files in which it does */
    json_t *reports;     /* their faults; NULL: they are not looked at */
};

__attribute__((format(printf, 2, 3))) static void
add_line(json_t *lines, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    json_append_line(lines, format, ap);
    va_end(ap);
}

/* 1 when the stored file states part of what the new one does, no more. */
static int states_less(struct again *w, const char *below,
                       const struct buf *text, struct err *err)
{
    json_t *stored, *made;
    int ret = -1;

    if (!w->is_other_build)
        return 0;
    stored = read_payload(w->audit, below);
    made = json_parse(text->data, text->len, err);
    if (made)
        ret = stored &&
              verdict_follows(stored, payload(w->audit, below)->sha256, made);
    json_decref(made);
    json_decref(stored);
    return ret;
}

static int compare_again(const char *name, const struct buf *text,
                         void *context, struct err *err)
{
    struct again *w = context;
    char *below = xasprintf("compare/%s", name);
    const struct bag_file *f = payload(w->audit, below);
    size_t n = strlen(name);
    bool is_json = n > 5 && strcmp(name + n - 5, ".json") == 0;
    json_t *faults = is_json ? w->audit->faults : w->reports;
    char digest[HASH_SHA256_HEX];
    int ret = 0;

    hash_sha256(text->data, text->len, digest);
    if (faults && !f) {
        add_line(faults, "%s: missing", below);
    } else if (faults && strcmp(f->sha256, digest) != 0) {
        int less = is_json ? states_less(w, below, text, err) : 0;

        if (less == 0)
            add_line(faults, "%s: made again from %s, it is other bytes", below,
                     w->from);
        w->newer += less > 0;
        ret = less < 0 ? -1 : 0;
    }
    free(below);
    return ret;
}

/* Was this stage's program the one that lies beside ours? */
static bool is_build_beside(const json_t *record, const char *program)
{
    const char *sha = text_of(json_object_get(record, "program"), "sha256");
    char digest[HASH_SHA256_HEX], *self = realpath("/proc/self/exe", NULL);
    char *dir = self ? path_dir(self) : NULL;
    char *path = dir ? path_join(dir, program) : NULL;
    struct err ignored = ERR_INIT;
    bool is = path && hash_sha256_file(path, digest, NULL, &ignored) == 0 &&
              strcmp(digest, sha) == 0;

    free(path);
    free(dir);
    free(self);
    return is;
}

/* Compares again, or takes what was judged while a bundle passed. */
static json_t *judge_again(struct audit *a, struct err *why)
{
    struct judging *j;
    json_t *document = NULL;

    if (a->is_bundle) {
        *why = a->view.why;
        return json_incref(a->view.document);
    }
    j = judging_begin(a->data, why);
    if (j)
        document = judging_end(j, why);
    judging_free(j);
    return document;
}

/* A stage's record; NULL, which another claim tells, when there is none. */
static json_t *read_record(struct audit *a, const char *stage)
{
    char *path = xasprintf("%s/%s/stage.json", a->data, stage);
    struct err ignored = ERR_INIT;
    json_t *record = json_read_file(path, &ignored);

    free(path);
    return record;
}

/* The gates' limits by the stored verdict and by the one made again. */
static void tell_limits(struct audit *a, const json_t *document)
{
    json_t *stored = read_summary(a->run);

    drift_limits(a->faults, stored, document);
    json_decref(stored);
}

/* -1 only when the system said no. */
static int check_verdict(struct audit *a, const json_t *record, struct err *err)
{
    static const char claim[] = "every gate's verdict follows from the tensors";
    struct again w = {.audit = a,
                      .from = "the tensors",
                      .is_other_build =
                          !is_build_beside(record, "assay-compare")};
    struct err why = ERR_INIT;
    json_t *document = NULL;
    int ret = 0;

    if (view_has_digests_only(&a->files)) {
        open_claim(a, claim, "the reference's tensors were not kept");
        return 0;
    }
    if (!record)
        fault(a, "compare/stage.json: cannot be read");
    else
        document = judge_again(a, &why);
    if (why.code == ERR_SYSTEM)
        return err_set(err, why.code, "%s", why.text);
    if (record && !document)
        fault(a, "%s", why.text);
    if (document)
        ret = report_each(document, compare_again, &w, err);
    if (document && json_array_size(a->faults))
        tell_limits(a, document);
    char *by = xasprintf("all gates of all cases computed again: %s%s",
                         document ? text_of(document, "verdict") : "not done",
                         w.newer ? "; this build's files state more" : "");
    if (ret == 0)
        conclude(a, claim, by);
    free(by);
    json_decref(document);
    return ret;
}

/* What follows from summary.json alone: CASE.json, and the reports for people,
 * whose layout is the build's own.  -1 only when the system said no. */
static int check_reports(struct audit *a, const json_t *record, struct err *err)
{
    static const char claim[] = "the reports say what the verdict files say";
    struct again w = {
        .audit = a, .from = "summary.json", .reports = json_array()};
    struct err why = ERR_INIT;
    json_t *summary = read_summary(a->run);
    int ret = 0;

    if (!summary)
        fault(a, "compare/summary.json: cannot be read");
    else if (report_each(summary, compare_again, &w, &why) &&
             why.code == ERR_SYSTEM)
        ret = -1;
    else if (why.code)
        fault(a, "compare/summary.json: %s", why.text);
    if (ret) {
        *err = why;
    } else if (json_array_size(a->faults) == 0 && json_array_size(w.reports) &&
               !is_build_beside(record, "assay-compare")) {
        char *by = xasprintf(
            "another build of assay-compare wrote them, of SHA-256 %s",
            text_of(json_object_get(record, "program"), "sha256"));

        open_claim(a, claim, by);
        free(by);
    } else {
        json_array_extend(a->faults, w.reports);
        conclude(a, claim, "made again from summary.json");
    }
    json_decref(w.reports);
    json_decref(summary);
    return ret;
}

/* The in-toto statement says what the verdict files say. */
static void check_statement(struct audit *a)
{
    static const char name[] = "verdict.intoto.json";
    const struct bag_file *f = payload(a, name);
    struct err err = ERR_INIT;
    struct buf text = BUF_INIT;
    char digest[HASH_SHA256_HEX];
    json_t *again = attest_json(a->data, &err);

    if (!f)
        fault(a, "%s: missing", name);
    if (!again)
        fault(a, "%s", err.text);
    if (f && again) {
        json_write(again, &text);
        hash_sha256(text.data, text.len, digest);
        if (strcmp(digest, f->sha256) != 0)
            fault(a, "%s: made again from the verdict, it is other bytes",
                  name);
    }
    conclude(a, "the in-toto statement is of this receipt, engine and verdict",
             name);
    buf_release(&text);
    json_decref(again);
}

/* ------------------------------------------------------------- coverage */

static void check_images(struct audit *a, const struct test_case *c)
{
    for (size_t i = 0; i < c->image_count; i++) {
        struct buf bytes = BUF_INIT;
        struct err err = ERR_INIT;

        if (!path_is_portable(c->images[i].file))
            fault(a, "case '%s': image '%s' lies elsewhere", c->name,
                  c->images[i].file);
        else if (case_image_read(&c->images[i], &bytes, &err))
            fault(a, "case '%s': %s", c->name, err.text);
        buf_release(&bytes);
    }
}

/* A folder of cases holds those that were declared and no other. */
static void check_cases_of(struct audit *a, const char *folder)
{
    char *prefix = xasprintf("data/%s/", folder);
    size_t n = strlen(prefix);

    for (size_t i = 0; i < a->cases.count; i++) {
        char *dir = xasprintf("%s/%s", folder, a->cases.cases[i].name);

        if (!has_folder(a, dir))
            fault(a, "%s: missing", dir);
        free(dir);
    }
    for (size_t i = 0; i < a->files.count; i++) {
        const char *path = a->files.items[i].path;
        bool is_declared = false;

        if (strncmp(path, prefix, n) != 0)
            continue;
        for (size_t k = 0; k < a->cases.count; k++) {
            const char *name = a->cases.cases[k].name;

            is_declared |= strncmp(path + n, name, strlen(name)) == 0 &&
                           path[n + strlen(name)] == '/';
        }
        if (!is_declared)
            fault(a, "%s: of no declared case", path + 5);
    }
    free(prefix);
}

static bool is_declared_image(const struct audit *a, const char *below)
{
    for (size_t i = 0; i < a->cases.count; i++)
        for (size_t k = 0; k < a->cases.cases[i].image_count; k++)
            if (strcmp(a->cases.cases[i].images[k].file, below) == 0)
                return true;
    return false;
}

/* Files that no claim would look at: beside the stages, among the frozen. */
static void check_strays(struct audit *a)
{
    static const char *const known[] = {
        "executables.json", "verdict.intoto.json", "inputs/cases.json",
        "inputs/protocol.json", "inputs/gates.json"};
    static const char *const folders[] = {
        "source/",    "export/",      "forward/", "candidate/",
        "reference/", "adjudicator/", "compare/"};

    for (size_t i = 0; i < a->files.count; i++) {
        const char *below = a->files.items[i].path + strlen("data/");
        bool is_known = strncmp(below, "inputs/", 7) == 0 &&
                        is_declared_image(a, below + 7);

        for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++)
            is_known |= strcmp(below, known[k]) == 0;
        for (size_t k = 0; k < sizeof(folders) / sizeof(folders[0]); k++)
            is_known |= strncmp(below, folders[k], strlen(folders[k])) == 0;
        if (!is_known)
            fault(a, "%s: of no stage", below);
    }
}

static void check_coverage(struct audit *a)
{
    char *path = path_join(a->data, "inputs/cases.json");
    struct err err = ERR_INIT;

    if (!payload(a, "inputs/cases.json"))
        fault(a, "inputs/cases.json: missing");
    else if (case_list_read(path, &a->cases, &err))
        fault(a, "%s", err.text);
    else
        a->has_cases = true;
    for (size_t i = 0; i < a->cases.count; i++) {
        char *verdict = xasprintf("compare/%s.json", a->cases.cases[i].name);

        check_images(a, &a->cases.cases[i]);
        if (!payload(a, verdict))
            fault(a, "%s: missing", verdict);
        free(verdict);
    }
    check_strays(a);
    if (a->has_cases) {
        check_cases_of(a, "export");
        if (has_folder(a, "adjudicator"))
            check_cases_of(a, "adjudicator");
        if (!has_folder(a, "candidate"))
            check_cases_of(a, "forward");
    }
    char *by = xasprintf("%zu cases declared", a->cases.count);
    conclude(a, "every declared case was run and judged", by);
    free(by);
    free(path);
}

/* --------------------------------------------------------------- report */

static bool is_contradicted(const struct audit *a)
{
    size_t i;
    json_t *claim;

    json_array_foreach(a->claims, i,
                       claim) if (strcmp(text_of(claim, "verdict"),
                                         "contradicted") == 0) return true;
    return false;
}

static json_t *document_of(struct audit *a)
{
    json_t *root = json_object();
    char *path = path_join(a->data, "compare/summary.json");
    struct err ignored = ERR_INIT;
    json_t *summary = json_read_file(path, &ignored);
    const char *verdict = text_of(summary, "verdict");

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
        printf("%-16s  %s\n%-16s    by %s\n", text_of(claim, "verdict"),
               text_of(claim, "claim"), "", text_of(claim, "by"));
        json_array_foreach(json_object_get(claim, "faults"), k, line)
            printf("%-16s    - %s\n", "", json_string_value(line));
    }
    json_array_foreach(json_object_get(root, "drift"), i, line)
        printf("drift             %s\n", json_string_value(line));
    const char *run = text_of(root, "run_verdict");
    const char *identity = text_of(root, "bundle_sha256");
    if (identity[0])
        printf("the bundle's identity: %s\n", identity);
    printf("the run's verdict: %s\naudit: %s\n", run[0] ? run : "none",
           text_of(root, "verdict"));
}

static void check_signature(struct audit *a)
{
    struct err why = ERR_INIT;
    char *by;
    const char *verdict = seal_signature(a->run, a->signers, &by, &why);

    if (why.code)
        fault(a, "%s", why.text);
    add_claim(a, "the seal is signed by somebody who may", verdict, by);
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
        open_claim(a, claim, "the reference's tensors were not kept");
        return 0;
    }
    if (a->is_bundle ? recompute_bundle(a, &by, err)
                     : recompute_run(a->data, a->pack, &by, a->faults, err)) {
        free(by);
        return -1;
    }
    conclude(a, claim, by);
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
        summary = read_summary(run);
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
        json_t *now = read_summary(a->run);

        a->drift = drift(before, now);
        json_decref(now);
        json_decref(before);
    }
    char *by = xasprintf("%zu files against the manifests", a->files.count);
    conclude(a, "the evidence is whole: every file is as it was sealed", by);
    free(by);
    check_signature(a);
    check_coverage(a);
    check_receipt(a);
    check_chain(a);
    check_executables(a);
    check_statement(a);
    json_t *record = read_record(a, "compare");
    int ret = check_verdict(a, record, err) || check_reports(a, record, err) ||
                      check_again(a, err)
                  ? -1
                  : 0;
    json_decref(record);
    if (ret)
        return -1;
    open_claim(a, "continuation_ids are the reference's own greedy choice",
               "no gate covers who chose them");
    open_claim(a, "the run was made when and where it is said to be",
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
                print_json(root);
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
