/* Every gate on every case: what is to be compared, and the document. */
#include "gates/compare_internal.h"

#include "base/bug.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "receipt/receipt.h"

#include <stdlib.h>
#include <string.h>

const char *const compare_verdicts[VERDICTS] = {
    [PASS] = "pass",
    [FAIL] = "fail",
    [MISSING] = "missing",
    [NOT_APPLICABLE] = "not applicable",
};

json_t *compare_text(const char *text)
{
    json_t *out = text && text[0] ? json_string(text) : json_null();

    if (!out) {
        char *plain = xstrdup(text);

        for (char *at = plain; *at; at++)
            if ((unsigned char)*at >= 0x80)
                *at = '?';
        out = json_string(plain);
        free(plain);
    }
    return out;
}

/* A JSON file and the digest of the very bytes that were parsed. */
static json_t *read_json(const char *path, char sha256[HASH_SHA256_HEX],
                         struct err *err)
{
    struct buf text = BUF_INIT;
    json_t *root = NULL;

    if (io_read_file(path, IO_JSON_CAP, &text, err) == 0) {
        hash_sha256(text.data, text.len, sha256);
        root = json_parse(text.data, text.len, err);
        if (!root)
            err_in(err, "%s", path);
    }
    buf_release(&text);
    return root;
}

static bool is_planned(const struct compare *run, const char *name)
{
    for (size_t i = 0; i < run->all; i++)
        if (strcmp(run->planned[i].name, name) == 0)
            return true;
    return false;
}

static void plan_from_file(struct compare *run)
{
    const struct case_list *list = &run->cases;

    run->planned = xcalloc(list->count + 1, sizeof(*run->planned));
    for (size_t i = 0; i < list->count; i++)
        run->planned[run->all++] =
            (struct planned){list->cases[i].name, &list->cases[i]};
}

static void plan_from_reference(struct compare *run)
{
    size_t count = capture_set_count(run->reference);

    run->planned = xcalloc(count + 1, sizeof(*run->planned));
    for (size_t i = 0; i < count; i++)
        run->planned[run->all++].name = capture_set_name(run->reference, i);
}

static int plan(struct compare *run, struct err *err)
{
    const char *only = run->request.only;

    if (only && path_check_name(only, err))
        return -1;
    if (only && capture_set_is_single(run->reference))
        capture_set_rename(run->reference, only);
    if (run->request.cases)
        plan_from_file(run);
    else
        plan_from_reference(run);
    if (only) {
        if (!is_planned(run, only))
            return err_set(err, ERR_INPUT, "no case '%s' in the %s", only,
                           run->request.cases ? "cases file" : "reference");
        size_t at = 0;
        while (strcmp(run->planned[at].name, only) != 0)
            at++;
        struct planned first = run->planned[0];
        run->planned[0] = run->planned[at];
        run->planned[at] = first;
    }
    if (run->all == 0)
        return err_set(err, ERR_INPUT, "no case to compare");
    run->count = only ? 1 : run->all;
    run->judged = xcalloc(run->count, sizeof(json_t *));
    return 0;
}

/* A single candidate capture is that of the reference's single case. */
static int match_single(struct compare *run, struct capture_set *other,
                        const char *what, struct err *err)
{
    bool single = capture_set_is_single(run->reference);

    if (capture_set_count(other) == 0)
        return 0;
    if (capture_set_is_single(other) != single)
        return err_set(err, ERR_INPUT, "the reference is %s, the %s %s",
                       single ? "one capture" : "a folder of captures", what,
                       single ? "a folder of captures" : "one capture");
    if (single)
        capture_set_rename(other, capture_set_name(run->reference, 0));
    return 0;
}

static int run_open(struct compare *run, struct err *err)
{
    const struct compare_request *r = &run->request;
    json_t *protocol;

    if (gates_read(r->gates, &run->gates, err))
        return -1;
    run->gate_used = xcalloc(run->gates.count, sizeof(*run->gate_used));
    if (r->protocol) {
        protocol = read_json(r->protocol, run->protocol_sha256, err);
        if (!protocol)
            return -1;
        json_decref(protocol);
    }
    if (r->cases && case_list_read(r->cases, &run->cases, err))
        return -1;
    run->reference = capture_set_open(&r->reference, err);
    if (!run->reference)
        return -1;
    run->candidate = capture_set_open(&r->candidate, err);
    if (!run->candidate ||
        capture_set_apart(run->reference, run->candidate, err) ||
        plan(run, err) || match_single(run, run->candidate, "candidate", err))
        return -1;
    if (r->adjudicator.count) {
        run->adjudicator = capture_set_open(&r->adjudicator, err);
        if (!run->adjudicator ||
            match_single(run, run->adjudicator, "adjudicator", err))
            return -1;
    }
    return 0;
}

void compare_free(struct compare *run)
{
    if (!run)
        return;
    for (size_t i = 0; run->judged && i < run->count; i++)
        json_decref(run->judged[i]);
    free(run->judged);
    gates_release(&run->gates);
    capture_set_close(run->reference);
    capture_set_close(run->candidate);
    capture_set_close(run->adjudicator);
    case_list_release(&run->cases);
    free(run->planned);
    free(run->gate_used);
    free(run);
}

/* Names of a set's cases that are not planned. */
static json_t *unplanned(const struct compare *run,
                         const struct capture_set *set)
{
    json_t *out = json_array();

    for (size_t i = 0; i < capture_set_count(set); i++)
        if (!is_planned(run, capture_set_name(set, i)))
            json_array_append_new(out, json_string(capture_set_name(set, i)));
    return out;
}

static json_t *write_down(const struct compare *run)
{
    json_t *out = json_object(), *counts = json_object();
    json_t *unused = json_array(), *cases = json_array();
    bool passed = !run->any_fail && run->tally[PASS] > 0;

    json_object_set_new(out, "verdict", json_string(passed ? "pass" : "fail"));
    if (run->request.about)
        json_object_set(out, "about", (json_t *)run->request.about);
    json_object_set_new(out, "gates_sha256", json_string(run->gates.sha256));
    if (run->request.protocol)
        json_object_set_new(out, "protocol_sha256",
                            json_string(run->protocol_sha256));
    if (run->request.cases)
        json_object_set_new(out, "cases_sha256",
                            json_string(run->cases.sha256));
    json_object_set_new(out, "reason",
                        run->any_fail || run->tally[PASS] > 0
                            ? json_null()
                            : json_string("no gate applied to any case: "
                                          "nothing was compared"));
    for (int v = 0; v < VERDICTS; v++)
        json_object_set_new(counts, compare_verdicts[v],
                            json_integer(run->tally[v]));
    json_object_set_new(out, "counts", counts);
    json_object_set_new(out, "extra_cases", unplanned(run, run->candidate));
    json_object_set_new(out, "not_compared", unplanned(run, run->reference));
    for (size_t i = 0; i < run->gates.count; i++)
        if (!run->gate_used[i])
            json_array_append_new(unused,
                                  json_string(run->gates.items[i].name));
    json_object_set_new(out, "unused_gates", unused);
    for (size_t i = 0; i < run->count; i++)
        json_array_append(cases, run->judged[i]);
    json_object_set_new(out, "cases", cases);
    return out;
}

struct compare *compare_begin(const struct compare_request *request,
                              struct err *err)
{
    struct compare *run = xcalloc(1, sizeof(*run));

    run->request = *request;
    if (run_open(run, err) == 0)
        return run;
    compare_free(run);
    return NULL;
}

size_t compare_count(const struct compare *run)
{
    return run->count;
}

const char *compare_name(const struct compare *run, size_t i)
{
    return run->planned[i].name;
}

int compare_judge(struct compare *run, size_t i, struct err *err)
{
    bool is_fail = true;

    if (run->judged[i])
        return 0;
    run->judged[i] = compare_case(run, &run->planned[i], &is_fail, err);
    run->any_fail |= is_fail;
    return run->judged[i] ? 0 : -1;
}

json_t *compare_end(struct compare *run, struct err *err)
{
    for (size_t i = 0; i < run->count; i++)
        if (compare_judge(run, i, err))
            return NULL;
    return write_down(run);
}

void compare_set_about(struct compare *c, const json_t *about)
{
    c->request.about = about;
}

json_t *compare_about(const char *receipt, const char *candidate,
                      struct err *err)
{
    struct receipt r = RECEIPT_INIT;
    char sha256[HASH_SHA256_HEX];

    if (receipt && (receipt_read(&r, receipt, err) ||
                    hash_sha256_file(receipt, sha256, NULL, err))) {
        receipt_release(&r);
        return NULL;
    }
    json_t *out = json_object();
    json_object_set_new(out, "pack", compare_text(r.repository));
    json_object_set_new(out, "revision", compare_text(r.revision));
    json_object_set_new(out, "candidate", compare_text(candidate));
    json_object_set_new(out, "receipt_sha256",
                        compare_text(receipt ? sha256 : NULL));
    receipt_release(&r);
    return out;
}

json_t *compare_run(const struct compare_request *request, struct err *err)
{
    struct compare *run = compare_begin(request, err);
    json_t *document = run ? compare_end(run, err) : NULL;

    compare_free(run);
    return document;
}

bool compare_passed(const json_t *document)
{
    const char *verdict = NULL;
    struct err err = ERR_INIT;

    return json_get_str(document, "verdict", &verdict, &err) == 0 &&
           strcmp(verdict, "pass") == 0;
}
