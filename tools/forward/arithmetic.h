#ifndef FORWARD_ARITHMETIC_H
#define FORWARD_ARITHMETIC_H

#include "base/err.h"
#include "cases/protocol.h"
#include "models/model.h"
#include "run.h"
#include "json/json.h"

/*
 * How a run computes: in which precision, in whose order of sums, by which of
 * upstream's calls.  An option wins over the protocol, and that over what the
 * family's references were recorded with.
 */

/* Are the names that the options give known?  ERR_USAGE. */
int arithmetic_check(const struct run_options *opt, struct err *err);

/* ERR_UNSUPPORTED when the family has no such order of sums. */
int arithmetic_choose(const struct run_options *opt, const struct protocol *p,
                      const struct model *m, struct forward_options *out,
                      struct err *err);

/* The orders of sums by name and version, as a stage record states them; a new
 * reference. */
json_t *arithmetic_orders(const struct forward_options *f);
#endif
