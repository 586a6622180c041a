#ifndef FORWARD_STATES_H
#define FORWARD_STATES_H

#include "base/err.h"
#include "evidence/stage.h"
#include "gates/parity.h"
#include "models/model.h"

/*
 * Hidden states of the records of a parity input, all in one pass over the
 * weights: states-0.safetensors, states-1 ..., one a record, each the tensor
 * hidden_states [tokens, hidden]; with a pattern also trace-0.safetensors ...,
 * which without one hold the choices of experts when the input names traces.
 */
struct states_options {
    const char *pattern; /* of --trace, or NULL */
    const char *inject;  /* of --inject, or NULL: for a single record */
    const char *dir;     /* exists */
};

int states_forward(const struct states_options *o, struct model *m,
                   const struct forward_options *f,
                   const struct parity_input *input, struct err *err);

/* What the record names: the input, the files of ids, and the outputs. */
int states_record(const struct states_options *o,
                  const struct parity_input *input, struct stage *s,
                  struct err *err);
#endif
