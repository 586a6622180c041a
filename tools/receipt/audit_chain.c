/* Who made what from what: the receipt before and after, the stage records by
 * digest, the executables. */
#include "audit.h"
#include "base/mem.h"
#include "base/path.h"
#include "receipt/receipt.h"
#include "verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------- receipts */

/* verify's document again, from what it says it found. */
static void check_verify(struct audit *a, const struct receipt *r,
                         const char *sha256, const char *below,
                         const char *when)
{
    json_t *stored = audit_read_payload(a, below), *again = NULL;
    struct receipt_report report;
    struct err err = ERR_INIT;
    struct buf text = BUF_INIT;
    char digest[HASH_SHA256_HEX];

    if (!stored)
        return;
    if (receipt_report_read(r, stored, &report, &err)) {
        audit_fault(a, "%s: %s", below, err.text);
        goto out;
    }
    again = receipt_report_json(r, sha256, &report);
    json_write(again, &text);
    hash_sha256(text.data, text.len, digest);
    if (strcmp(digest, audit_payload(a, below)->sha256) != 0)
        audit_fault(a, "%s: does not follow from what it found", below);
    for (size_t i = 0; i < report.count; i++)
        if (report.rows[i].state != RECEIPT_SAME)
            audit_fault(a, "%s the run: '%s': %s", when,
                        report.rows[i].listed.path ? report.rows[i].listed.path
                                                   : report.rows[i].found.path,
                        receipt_state_name(report.rows[i].state));
    receipt_report_release(&report);
out:
    buf_release(&text);
    json_decref(again);
    json_decref(stored);
}

void audit_receipt(struct audit *a)
{
    struct receipt r = RECEIPT_INIT;
    struct err err = ERR_INIT;
    char *path = path_join(a->data, "source/receipt.json");
    const struct bag_file *f = audit_payload(a, "source/receipt.json");
    char *upstream = NULL;
    const char *strength = "recorded";

    if (!f || receipt_read(&r, path, &err)) {
        audit_fault(a, "%s", f ? err.text : "source/receipt.json: missing");
    } else {
        check_verify(a, &r, f->sha256, "source/verify-before.json", "before");
        check_verify(a, &r, f->sha256, "source/verify-after.json", "after");
        strength = r.strength;
        if (r.repository)
            upstream = xasprintf("%s@%s", r.repository, r.revision);
    }
    audit_conclude(a, "the pack was what its receipt lists, before and after",
                   "verify-before.json and verify-after.json, concluded again");
    char *by = xasprintf("receipt of strength '%s', upstream %s", strength,
                         upstream ? upstream : "not named");
    if (strcmp(strength, "commit") == 0)
        audit_conclude(a, "the receipt is upstream's", by);
    else
        audit_open_claim(a, "the receipt is upstream's", by);
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
    json_t *root = audit_payload(a, path) ? audit_read_payload(a, path) : NULL,
           *file;

    out[0] = '\0';
    json_array_foreach(json_object_get(root, "files"), i, file)
    {
        if (below[n] && strcmp(audit_text(file, "path"), below + n + 1) == 0)
            snprintf(out, HASH_SHA256_HEX, "%s", audit_text(file, "sha256"));
    }
    json_decref(root);
    free(path);
}

/* One input: a file of the run, of the pack, or of the kept reference. */
static void check_input(struct audit *a, const char *stage, const json_t *input,
                        const json_t *found)
{
    const char *path = audit_text(input, "path"),
               *sha = audit_text(input, "sha256");
    const char *actual = NULL;
    char kept[HASH_SHA256_HEX];

    if (strncmp(path, "RUN/", 4) == 0) {
        const struct bag_file *f = audit_payload(a, path + 4);

        actual = f ? f->sha256 : NULL;
    } else if (strncmp(path, "PACK/", 5) == 0) {
        actual = json_string_value(json_object_get(found, path + 5));
    } else if (strcmp(path, "RECEIPT") == 0) {
        const struct bag_file *f = audit_payload(a, "source/receipt.json");

        actual = f ? f->sha256 : NULL;
    } else if (strncmp(path, "REFERENCE/", 10) == 0) {
        kept_digest(a, path + 10, kept);
        actual = kept[0] ? kept : NULL;
    }
    if (!actual)
        audit_fault(a, "%s/stage.json: input %s is not in the evidence", stage,
                    path);
    else if (strcmp(actual, sha) != 0)
        audit_fault(a, "%s/stage.json: input %s had SHA-256 %s, is %s", stage,
                    path, sha, actual);
}

static bool names(const json_t *list, const char *path)
{
    size_t i;
    json_t *item;

    json_array_foreach(list, i, item) if (strcmp(audit_text(item, "path"),
                                                 path) == 0) return true;
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
        char *below = xasprintf("%s/%s", stage, audit_text(item, "path"));
        const struct bag_file *f = audit_payload(a, below);

        if (!f)
            audit_fault(a, "%s: an output of its stage, missing", below);
        else if (strcmp(f->sha256, audit_text(item, "sha256")) != 0)
            audit_fault(a, "%s: its stage wrote SHA-256 %s, it is %s", below,
                        audit_text(item, "sha256"), f->sha256);
        free(below);
    }
    for (i = 0; i < a->files.count; i++) {
        const char *path = a->files.items[i].path;

        if (strncmp(path, prefix, n) != 0 ||
            strcmp(path + n, "stage.json") == 0 ||
            strcmp(path, "data/source/verify-after.json") == 0)
            continue;
        if (!names(outputs, path + n))
            audit_fault(a, "%s: no output of its stage", path + 5);
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
        const struct bag_file *f = audit_payload(a, below);
        const char *sha =
            audit_text(json_object_get(stated, frozen[i]), "sha256");

        if (!f || strcmp(f->sha256, sha) != 0)
            audit_fault(
                a,
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
        audit_fault(a, "%s/stage.json: does not follow %s", stage, path);
}

static void check_program(struct audit *a, const char *stage,
                          const json_t *record, const char *want)
{
    const char *name = audit_text(json_object_get(record, "program"), "name");

    if (strcmp(name, want) != 0)
        audit_fault(a, "%s/stage.json: made by '%s', not %s", stage, name,
                    want);
}

/* One stage; `before` are records that must be among its inputs. */
static void check_stage(struct audit *a, const char *stage, const char *program,
                        const char *const *before, const json_t *found)
{
    char *below = xasprintf("%s/stage.json", stage);
    json_t *record = audit_read_payload(a, below), *input;
    json_t *inputs = json_object_get(record, "inputs");
    size_t i;

    free(below);
    if (!record)
        return;
    a->stages++;
    if (strcmp(audit_text(record, "format"), "assay-stage-1") != 0)
        audit_fault(a, "%s/stage.json: format '%s'", stage,
                    audit_text(record, "format"));
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
    json_t *root = audit_read_payload(a, "source/verify-before.json"), *row;
    json_t *out = json_object();
    size_t i;

    json_array_foreach(json_object_get(root, "files"), i, row)
    {
        json_t *sha = json_object_get(json_object_get(row, "found"), "sha256");

        if (sha)
            json_object_set(out, audit_text(row, "path"), sha);
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

void audit_chain(struct audit *a)
{
    static const char *const none[] = {NULL};
    json_t *found = found_in_pack(a);
    size_t most = 3 * a->cases.count + 4, n = 0;
    const char **before = xcalloc(most, sizeof(*before));
    const char *folders[] = {"export", "forward", "adjudicator"};

    check_stage(a, "source", "assay-receipt", none, found);
    check_case_stages(a, "export", "assay-export", false, found);
    if (!audit_has_folder(a, "candidate"))
        check_case_stages(a, "forward", "assay-forward", true, found);
    if (audit_has_folder(a, "adjudicator"))
        check_case_stages(a, "adjudicator", "assay-forward", true, found);
    before[n++] = xstrdup("RUN/source/stage.json");
    before[n++] = xstrdup("RUN/source/verify-after.json");
    for (size_t k = 0; k < 3; k++)
        for (size_t i = 0;
             audit_has_folder(a, folders[k]) && i < a->cases.count; i++)
            before[n++] = xasprintf("RUN/%s/%s/stage.json", folders[k],
                                    a->cases.cases[i].name);
    check_stage(a, "compare", "assay-compare", before, found);
    char *by = xasprintf("%zu stage records, by digest", a->stages);
    audit_conclude(a, "each stage read what the stage before wrote", by);
    free(by);
    while (n > 0)
        free((char *)before[--n]);
    free(before);
    json_decref(found);
}

void audit_executables(struct audit *a)
{
    struct err err = ERR_INIT;
    struct buf text = BUF_INIT;
    json_t *stored = audit_read_payload(a, "executables.json");
    json_t *again = executables_json(a->data, NULL, &err);
    json_t *candidate = json_object_get(stored, "candidate"), *item, *other;
    char digest[HASH_SHA256_HEX];
    size_t i, k;

    if (!again)
        audit_fault(a, "%s", err.text);
    if (stored && again) {
        if (candidate)
            json_object_set(again, "candidate", candidate);
        json_write(again, &text);
        hash_sha256(text.data, text.len, digest);
        if (strcmp(digest, audit_payload(a, "executables.json")->sha256) != 0)
            audit_fault(a, "executables.json: not what the stage records name");
        json_t *programs = json_object_get(again, "programs");
        json_array_foreach(programs, i, item) json_array_foreach(
            programs, k,
            other) if (k < i && strcmp(audit_text(item, "name"),
                                       audit_text(other, "name")) == 0)
            audit_fault(a, "two builds of %s ran", audit_text(item, "name"));
    }
    audit_conclude(
        a, "one build of each program ran, and executables.json lists it",
        "stage records");
    audit_open_claim(a, "these executables compute what their source says",
                     "nothing here; rebuild, or recompute with the pack");
    if (audit_has_folder(a, "candidate"))
        audit_open_claim(a,
                         "the candidate's captures come from the engine named",
                         candidate ? "its digest, on the word of whoever ran it"
                                   : "no executable was named");
    buf_release(&text);
    json_decref(again);
    json_decref(stored);
}
