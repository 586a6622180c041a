#ifndef FORWARD_GENERATE_H
#define FORWARD_GENERATE_H

#include "base/err.h"
#include "models/model.h"

#include <stdint.h>

/*
 * Greedy generation from one prompt: the token of the highest logit, the lowest
 * id on ties, until `budget` tokens or one that ends the answer.  Tokens go to
 * stdout as they come, one a line.  What a teacher-forced pass along the same
 * tokens would write goes to dir/outputs.safetensors.
 */
int generate(struct model *m, const struct forward_options *o,
             const struct sequence *prompt, int64_t budget, const char *dir,
             struct err *err);
#endif
