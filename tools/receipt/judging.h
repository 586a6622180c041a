#ifndef TOOLS_RECEIPT_JUDGING_H
#define TOOLS_RECEIPT_JUDGING_H

#include "base/err.h"
#include "json/json.h"

/*
 * The verdict of a run again, from the tensors and the frozen files below its
 * data/ and with the options that compare's stage record states.  A case can be
 * judged as soon as its captures are there; judging_end() judges the others and
 * gives the document, or NULL.
 */
struct judging;
struct judging *judging_begin(const char *data, struct err *err);
int judging_case(struct judging *j, const char *name, struct err *err);
json_t *judging_end(struct judging *j, struct err *err);
void judging_free(struct judging *j); /* NULL is fine */
#endif
