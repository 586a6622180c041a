#ifndef GATES_FLIPS_H
#define GATES_FLIPS_H

#include "base/err.h"
#include "json/json.h"

#include <stdint.h>

/*
 * Where two passes over the same ids chose other experts.  Each trace file
 * holds trace.layerN.experts [rows, chosen] and, in the reference, may hold
 * trace.layerN.margin [rows, 1].  One choice that falls the other way moves its
 * position by percents, and later layers and positions with it, so each
 * position is listed once, with the first layer that parts:
 *
 *     {"count": 3, "first": [{"layer": 1, "margin": 0.0002, "position": 17,
 *                             "relativeError": 0.31}, ...]}
 *
 * margin is the reference's at that place (null: not recorded), relativeError
 * the position's own (errors, of `rows` positions); at most FLIPS_MOST of the
 * positions, ascending.  The order of a row's experts does not matter.
 * ERR_INPUT when a layer of the reference is missing in the candidate or has
 * another shape.
 */
enum { FLIPS_MOST = 32 };
json_t *flips_compare(const char *reference, const char *candidate,
                      const double *errors, int64_t rows, struct err *err);
#endif
