#ifndef FORWARD_STATES_H
#define FORWARD_STATES_H

#include "base/err.h"
#include "evidence/stage.h"
#include "run.h"

/*
 * Hidden states of the records of a parity input, all in one pass over the
 * weights: states-0.safetensors, states-1 ..., one a record, each the tensor
 * hidden_states [tokens, hidden]; with a pattern also trace-0.safetensors ...,
 * which without one hold the choices of experts when the input names traces.
 * --inject is for a single record.
 */
int states_forward(const struct run *r, struct err *err);

/* What the record names: the input, the files of ids, and the outputs. */
int states_record(const struct run *r, struct stage *s, struct err *err);
#endif
