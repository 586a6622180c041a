#ifndef MODELS_WEIGHT_NAMES_H
#define MODELS_WEIGHT_NAMES_H

#include "base/arena.h"

#include <stdint.h>

/*
 * Files differ in spelling, so every stored name of a tensor is first rewritten
 * to the family's canonical one by a table; from there on only canonical names
 * occur.
 */
enum { WEIGHT_NAME_SIZE = 256 }; /* of a canonical name, with its end */

/* Replaces `from` in a name by `to`, once; "^x" only at its start, "x$" only at
 * its end.  Rules apply in order, each to what the one before left. */
struct rename {
    const char *from, *to;
};

struct checkpoint_names {
    const struct rename *renames; /* from NULL ends them; may be NULL */
    const char *const *ignored;   /* globs of stored names; NULL ends them */
    int64_t layers; /* canonical "model.layers.N." with N >= layers is ignored:
                       modules that predict further tokens; 0: none is */
};

/* The canonical name, in the arena, or NULL for an ignored tensor.  A stored
 * name that is too long to be anybody's stays as it is. */
const char *weight_name(const struct checkpoint_names *names,
                        const char *stored, struct arena *arena);
#endif
