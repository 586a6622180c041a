#ifndef FORWARD_RECORDS_H
#define FORWARD_RECORDS_H

#include "base/err.h"
#include "evidence/stage.h"
#include "run.h"

#include <stddef.h>

/*
 * The stage records of a run: one beside each case's outputs, or one beside all
 * states of a parity input.  They have the program, the arguments, the pack and
 * the protocol in common; "record" holds precision, orders of sums and the
 * pack's ledger.
 */

/* What the records have in common; NULL with err set. */
struct stage *records_common(const struct run *r, struct err *err);

/* The record of case i but for its outputs: a copy of the common one and the
 * case's inputs; NULL with err set. */
struct stage *records_case(const struct run *r, const struct stage *common,
                           size_t i, struct err *err);

/* Writes all of them below the output that is being made. */
int records_write(const struct run *r, struct err *err);
#endif
