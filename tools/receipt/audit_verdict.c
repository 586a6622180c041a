/* The verdict again, from the tensors; and what is written of it. */
#include "audit.h"
#include "base/mem.h"
#include "base/path.h"
#include "judging.h"
#include "report/report.h"
#include "verbs.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

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
    stored = audit_read_payload(w->audit, below);
    made = json_parse(text->data, text->len, err);
    if (made)
        ret = stored &&
              verdict_follows(stored, audit_payload(w->audit, below)->sha256,
                              made);
    json_decref(made);
    json_decref(stored);
    return ret;
}

static int compare_again(const char *name, const struct buf *text,
                         void *context, struct err *err)
{
    struct again *w = context;
    char *below = xasprintf("compare/%s", name);
    const struct bag_file *f = audit_payload(w->audit, below);
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
    const char *sha = audit_text(json_object_get(record, "program"), "sha256");
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

/* The gates' limits by the stored verdict and by the one made again. */
static void tell_limits(struct audit *a, const json_t *document)
{
    json_t *stored = audit_read_summary(a->run);

    drift_limits(a->faults, stored, document);
    json_decref(stored);
}

/* -1 only when the system said no. */
int audit_verdict(struct audit *a, const json_t *record, struct err *err)
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
        audit_open_claim(a, claim, "the reference's tensors were not kept");
        return 0;
    }
    if (!record)
        audit_fault(a, "compare/stage.json: cannot be read");
    else
        document = judge_again(a, &why);
    if (why.code == ERR_SYSTEM)
        return err_set(err, why.code, "%s", why.text);
    if (record && !document)
        audit_fault(a, "%s", why.text);
    if (document)
        ret = report_each(document, compare_again, &w, err);
    if (document && json_array_size(a->faults))
        tell_limits(a, document);
    char *by =
        xasprintf("all gates of all cases computed again: %s%s",
                  document ? audit_text(document, "verdict") : "not done",
                  w.newer ? "; this build's files state more" : "");
    if (ret == 0)
        audit_conclude(a, claim, by);
    free(by);
    json_decref(document);
    return ret;
}

/* What follows from summary.json alone: CASE.json, and the reports for people,
 * whose layout is the build's own.  -1 only when the system said no. */
int audit_reports(struct audit *a, const json_t *record, struct err *err)
{
    static const char claim[] = "the reports say what the verdict files say";
    struct again w = {
        .audit = a, .from = "summary.json", .reports = json_array()};
    struct err why = ERR_INIT;
    json_t *summary = audit_read_summary(a->run);
    int ret = 0;

    if (!summary)
        audit_fault(a, "compare/summary.json: cannot be read");
    else if (report_each(summary, compare_again, &w, &why) &&
             why.code == ERR_SYSTEM)
        ret = -1;
    else if (why.code)
        audit_fault(a, "compare/summary.json: %s", why.text);
    if (ret) {
        *err = why;
    } else if (json_array_size(a->faults) == 0 && json_array_size(w.reports) &&
               !is_build_beside(record, "assay-compare")) {
        char *by = xasprintf(
            "another build of assay-compare wrote them, of SHA-256 %s",
            audit_text(json_object_get(record, "program"), "sha256"));

        audit_open_claim(a, claim, by);
        free(by);
    } else {
        json_array_extend(a->faults, w.reports);
        audit_conclude(a, claim, "made again from summary.json");
    }
    json_decref(w.reports);
    json_decref(summary);
    return ret;
}

/* The in-toto statement says what the verdict files say. */
void audit_statement(struct audit *a)
{
    static const char name[] = "verdict.intoto.json";
    const struct bag_file *f = audit_payload(a, name);
    struct err err = ERR_INIT;
    struct buf text = BUF_INIT;
    char digest[HASH_SHA256_HEX];
    json_t *again = attest_json(a->data, &err);

    if (!f)
        audit_fault(a, "%s: missing", name);
    if (!again)
        audit_fault(a, "%s", err.text);
    if (f && again) {
        json_write(again, &text);
        hash_sha256(text.data, text.len, digest);
        if (strcmp(digest, f->sha256) != 0)
            audit_fault(a, "%s: made again from the verdict, it is other bytes",
                        name);
    }
    audit_conclude(
        a, "the in-toto statement is of this receipt, engine and verdict",
        name);
    buf_release(&text);
    json_decref(again);
}
