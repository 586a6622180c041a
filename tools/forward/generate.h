#ifndef FORWARD_GENERATE_H
#define FORWARD_GENERATE_H

#include "base/err.h"
#include "run.h"

/*
 * Greedy generation from the prompt of the run's only case: the token of the
 * highest logit, the lowest id on ties, until --generate tokens or one that
 * ends the answer.  Tokens go to stdout as they come, one a line.  What a
 * teacher-forced pass along the same tokens would write goes to
 * outputs.safetensors in the case's folder.
 */
int generate(const struct run *r, struct err *err);
#endif
