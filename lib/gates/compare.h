#ifndef GATES_COMPARE_H
#define GATES_COMPARE_H

#include "base/err.h"
#include "gates/capture.h"
#include "gates/texts.h"
#include "json/json.h"

#include <stdbool.h>

/*
 * The whole comparison: every gate on every case, to one document.  It holds
 * nothing but what the files say, so that an auditor who runs it again over
 * the same bytes gets the same bytes: paths stand by role (capture.h).
 *
 *     {"verdict", "about", "gates_sha256", "protocol_sha256", "cases_sha256",
 *      "reason", "counts": {"pass", "fail", "missing", "not applicable"},
 *      "extra_cases", "not_compared", "unused_gates",
 *      "cases": [{"name", "verdict", "reason", "images",
 *        "gates": [{"name", "tensor", "metric", "at_most" | "at_least",
 *                   "value", "verdict", "worst": {"index", "reference",
 *                   "candidate"}, "reason", "margin", "compared",
 *                   "differing", "explanation"}],
 *        "adjudicator": [{"tensor", "metric", "reference", "candidate",
 *                         "reason"}],
 *        "around", "prompt" (gates/explain.h), "same_bytes": [{"reference",
 *        "candidate", "sha256"}]}]}
 *
 * extra_cases: of the candidate alone.  not_compared: reference captures that
 * the cases file does not name.  unused_gates: those that applied to no case.
 * about: what a report names, {"pack", "revision", "candidate",
 * "receipt_sha256"}, texts; pack and revision are null where the source receipt
 * names no upstream.
 * around, prompt, same_bytes stand only where ids or prompt.txt differ, or
 * where a file of computed tensors is the reference's, byte for byte.
 */
struct compare_request {
    const char *gates;
    struct capture_paths reference, candidate;
    struct capture_paths adjudicator; /* f64 results; count 0 is none */
    const char *protocol, *cases;     /* JSON files, or NULL */
    const char *only;                 /* this case alone, or NULL */
    struct texts *texts; /* pieces and places of differences, or NULL */
    const json_t *about; /* stands in the document as it is, or NULL */
};

/* What a report names, by a source receipt and a candidate's name, each NULL
 * when there is none; NULL with err set when the receipt cannot be read. */
json_t *compare_about(const char *receipt, const char *candidate,
                      struct err *err);

/*
 * Returns the document, or NULL: unreadable reference, gates, cases or protocol
 * (ERR_INPUT), an unknown metric (ERR_UNSUPPORTED), one file on both sides
 * (ERR_INPUT).  A failed gate is no error: see compare_passed().
 */
json_t *compare_run(const struct compare_request *request, struct err *err);

/*
 * The same by cases, for who has not all captures at hand at once: every case
 * can be judged as soon as its files are there, in any order, and they are not
 * looked at again.  compare_end() judges what is left and gives the document.
 * What the request points to must live until compare_free().
 */
struct compare;
struct compare *compare_begin(const struct compare_request *request,
                              struct err *err);
size_t compare_count(const struct compare *c);
const char *compare_name(const struct compare *c, size_t i);
int compare_judge(struct compare *c, size_t i, struct err *err);
/* The request's `about`, for who knows it only at the end. */
void compare_set_about(struct compare *c, const json_t *about);
json_t *compare_end(struct compare *c, struct err *err);
void compare_free(struct compare *c); /* NULL is fine */

/* Is the overall verdict "pass"? */
bool compare_passed(const json_t *document);
#endif
