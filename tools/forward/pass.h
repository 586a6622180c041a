#ifndef FORWARD_PASS_H
#define FORWARD_PASS_H

#include "base/err.h"
#include "run.h"

/*
 * The teacher-forced pass: all cases go through the layers together, each along
 * its continuation, and what a stage gives goes to the case's sink, in the
 * folder of the case below the output (sink.h).
 */
int pass_forced(const struct run *r, struct err *err);
#endif
