#ifndef GATES_STAGES_H
#define GATES_STAGES_H

#include "base/err.h"
#include "gates/capture.h"
#include "json/json.h"

/*
 * Two traces side by side: every tensor trace.STAGE of the reference, in the
 * order of computing (the vision tower, the embedding, layers by number, the
 * final norm), with how far the candidate's lies from it.
 *
 *     {"stages": [{"stage", "shape", "elements", "differing", "rows",
 *                  "rows_equal", "relative_l2", "norm_ratio", "max_abs",
 *                  "first_row", "first_far_row", "reason"}],
 *      "first": "layer0.mixer" or null, "suspect": likewise,
 *      "hint": null or a sentence}
 *
 * differing counts elements of another value, rows_equal rows that are bitwise
 * equal (by value when the dtypes differ), first_row is the first row that is
 * not, first_far_row the first that lies farther away than roundings take one:
 * 3 % of its norm.  norm_ratio is |c| / |r|.  A stage that cannot be compared
 * has the reason and nulls.
 *
 * first is the first stage with any difference, suspect the first with a far
 * row or a reason; the hint says what its differences look like.
 */

/*
 * Fills the document of one case; -1 when the reference cannot be read or holds
 * no trace (ERR_INPUT).
 */
json_t *stages_compare(const struct capture *reference,
                       const struct capture *candidate, struct err *err);

/* The same for a terminal: one stage a line, TAB-separated under a header. */
void stages_text(const json_t *document, struct buf *out);

/* Does a stage name come before another in the order of computing? < 0, 0, > 0
 * as strcmp(). */
int stages_order(const char *a, const char *b);
#endif
