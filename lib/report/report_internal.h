#ifndef REPORT_REPORT_INTERNAL_H
#define REPORT_REPORT_INTERNAL_H

#include "base/buf.h"
#include "json/json.h"

#include <stddef.h>

/* What the writers share: reading the document, and wording. */

const char *report_str(const json_t *object, const char *key); /* "" if none */
const json_t *report_cases(const json_t *document);
const json_t *report_gates(const json_t *test_case);
int report_count(const json_t *document, const char *verdict);

/* "&amp;" for '&', and so for '<', '>' and '"'; NULL for any other. */
const char *report_entity(char c);

/* A number as it reads back, "NaN", or "-" for null. */
void report_number(const json_t *value, struct buf *out);

/* "0.0055", "FAIL 0.0125", "missing", "-": what stands in the big table. */
void report_cell(const json_t *gate, struct buf *out);

/* "at most 0.01", "exact". */
void report_limit(const json_t *gate, struct buf *out);

/* The value as it reads back: "0.005493164", "3 of 94 differ". */
void report_value(const json_t *gate, struct buf *out);

/* All about one gate of one case in a sentence. */
void report_sentence(const json_t *gate, struct buf *out);

/*
 * Where ids and prompts of a case part, a line each ending in LF; nothing when
 * they do not.  The place of the difference is marked "»".
 */
void report_parting(const json_t *test_case, struct buf *out);

/* "pack X, revision Y; candidate: Z" of the document, nothing when it tells
 * none of them. */
void report_about(const json_t *document, struct buf *out);

/* "fail: 3 of 42 gates failed, 1 missing (6 cases)" without the verdict. */
void report_tally(const json_t *document, struct buf *out);

/* Remarks about the whole: extra cases and the like; one call a line. */
size_t report_remarks(const json_t *document, struct buf *lines, size_t max);

/* The case in which the i-th gate came out worst; NULL when it never ran. */
const json_t *report_worst(const json_t *document, size_t i,
                           const char **case_name);

/* "hidden_states relative_l2: reference 5e-05, candidate 0.0002": one line of a
 * case's "adjudicator". */
void report_distance(const json_t *line, struct buf *out);

/* Which of the two is nearer to the f64 value: "candidate nearer", "reference
 * nearer", "equally near"; "" when either has no distance. */
const char *report_nearer(const json_t *line);

/* value / limit, 1 at the limit and more beyond; NaN without a limit. */
double report_ratio(const json_t *gate);
#endif
