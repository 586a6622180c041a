#ifndef GATES_EXPLAIN_H
#define GATES_EXPLAIN_H

#include "cases/cases.h"
#include "gates/capture.h"
#include "gates/metrics.h"
#include "gates/texts.h"
#include "json/json.h"

/*
 * What the two tensors themselves say about why they differ.  Each returns a
 * sentence or an object that the caller owns, or NULL when nothing is known; a
 * read error is nothing known, because the gate has reported it.
 */

/* Ids: what was put in, left out or replaced, "1 id too many at 0: [2]". */
char *explain_ids(const struct tensor_source *ref,
                  const struct tensor_source *cand);

/*
 * Ids in one row: the first that differs, with those around it on both sides:
 * {"tensor", "index", "first", "reference": {"ids", "pieces", "text"},
 * "candidate": {...}}; `first` is the place of the first id shown.  NULL when
 * none differs.
 */
json_t *explain_around(const char *case_name, const char *tensor,
                       const struct tensor_source *ref,
                       const struct tensor_source *cand, struct texts *texts);

/*
 * Rendered prompts: the first byte that differs, its line and column (in code
 * points, from 1), the text on both sides, and what wrote it: {"offset",
 * "line", "column", "reference": {"bytes", "before", "after"}, "candidate":
 * {...}, "written_by": {...} (gates/texts.h) or null}.  NULL when they are
 * equal; `planned` may be NULL.
 */
json_t *explain_prompt(const struct test_case *planned,
                       const struct buf *reference, const struct buf *candidate,
                       struct texts *texts);

/* Positions on three axes: axes exchanged, or counted as for text; else how far
 * each axis differs, from which token on, in or behind which image. */
char *explain_positions(const struct capture *reference,
                        const struct tensor_source *ref,
                        const struct tensor_source *cand);

/* Image patches: {"image", "patch": [row, column], "pixel": [y, x], "channel",
 * "frame"} of element `at`, by the reference's grid. */
json_t *explain_patch_place(const struct capture *reference,
                            const struct tensor_source *patches, int64_t at);

/*
 * Image patches, what explains the difference: values rounded to fewer bits; an
 * order of rows (raster, transposed) or of features (channels reversed or last)
 * or a normalisation (another mean and standard deviation), when one turns the
 * reference into the candidate within 1e-5, or but for the rounding of f16 or
 * bf16; images or rows in another order; frames that do not repeat the first;
 * else how many values differ, when they are few.
 *
 * With the case's images at hand (`planned`, NULL without a cases file): the
 * reference's own normalisation, and another resampling (nearest neighbour,
 * bilinear, ..., with or without antialiasing, rounded or not) that turns the
 * images into the candidate, where bicubic gives the reference.
 */
char *explain_patches(const struct test_case *planned,
                      const struct capture *reference,
                      const struct tensor_source *ref,
                      const struct tensor_source *cand);

/* How the first image is cut whose grid is another; NULL when none is. */
char *explain_grid(const struct capture *reference,
                   const struct capture *candidate);
#endif
