#ifndef FORWARD_PREDICT_H
#define FORWARD_PREDICT_H

#include "base/err.h"
#include "run.h"
#include "json/json.h"

/*
 * --predict: what a forward pass will write and the memory it will take, from
 * the document that assay-export --predict prints, without computing anything.
 *
 *     {"cases": [{"name", "bytes"}], "bytes", "memory"}
 *
 * "bytes" counts whole blocks of storage; both are at least what the pass comes
 * to.  NULL with err set.
 */
json_t *predict(const struct run *r, struct err *err);
#endif
