#ifndef GATES_PARITY_H
#define GATES_PARITY_H

#include "base/buf.h"
#include "base/err.h"
#include "gates/gates.h"
#include "json/json.h"

#include <stddef.h>
#include <stdint.h>

/*
 * Parity of hidden states, for records of token ids:
 *
 *     {"records": [{"tokenIds": [...] or "tokenIdsFile": "ids.json",
 *                   "hidden": "states.safetensors",
 *                   "tensor": "hidden_states",
 *                   "trace": "trace.safetensors"}]}
 *
 * Paths are relative to the file; `tensor` is "hidden_states" when it is not
 * given, and has the shape [P, hidden] or [1, P, hidden], P at most the number
 * of ids.  `trace`, upstream's stages of the record, may be left out.
 */
struct parity_record {
    int64_t *ids;
    size_t count;
    char *path;         /* where the states lie */
    const char *hidden; /* as written */
    const char *tensor;
    char *trace; /* where its stages lie, or NULL */
};

struct parity_input {
    struct parity_record *records;
    size_t count;
    char *path;
    json_t *root; /* owns what the records point at */
};

/* Errors are ERR_INPUT in the words that the man page lists. */
int parity_read(const char *path, struct parity_input *out, struct err *err);
void parity_release(struct parity_input *input); /* NULL is fine */

/*
 * Compares states-0.safetensors, states-1... of a folder (tensor hidden_states,
 * [P, hidden] or more rows) with the records, row by row in f64:
 *
 *     relativeError               |c - r| / |r| over all positions
 *     worstPositionRelativeError  the largest of a single position
 *     medianPositionRelativeError the middle one (the lower of two)
 *     largestDifference           largest |c - r|
 *     meanCosine, smallestCosine  of positions
 *     positions                   how many
 *     equalPositions              of them, those equal in every component
 *
 * for each record and over all positions of all records; of a record with a
 * trace also "flips" (gates/flips.h), found in the folder's
 * trace-0.safetensors, trace-1...  Keys are sorted. model and revision go into
 * the document; a NULL revision is null.  With gates, each record also has
 * "gates", judged on hidden_states alone, and the document a "verdict".
 */
json_t *parity_compare(const struct parity_input *input, const char *states,
                       const char *model, const char *revision,
                       const struct gates *gates, struct err *err);

/* "overall.relativeError: 0.0047", a line a value. */
void parity_text(const json_t *document, struct buf *out);

/* Is every value finite, and the verdict, if there is one, "pass"? */
bool parity_passed(const json_t *document);
#endif
