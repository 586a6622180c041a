#ifndef FORWARD_REUSE_H
#define FORWARD_REUSE_H

#include "base/err.h"
#include "run.h"

/*
 * --reuse: an earlier result becomes the output when the records of all its
 * cases are what this run would write.  1: it is the output now; 0: it has to
 * be computed, why is told on stderr; -1 with err set.
 */
int reuse_earlier(const struct run *r, struct err *err);
#endif
