#ifndef FORWARD_PREDICT_H
#define FORWARD_PREDICT_H

#include "base/err.h"
#include "models/model.h"
#include "json/json.h"

/*
 * --predict: what a forward pass will write and the memory it will take, from
 * the document that assay-export --predict prints, without computing anything.
 *
 *     {"cases": [{"name", "bytes"}], "bytes", "memory"}
 *
 * "bytes" counts whole blocks of storage; both are at least what the pass comes
 * to.
 */
struct predict_options {
    const char *plan;   /* of assay-export --predict */
    const char *prefix; /* captures with continuation_ids, or NULL */
    const char *files;  /* which files of the prefix's folders are read */
    int64_t shards;     /* files of the pack, which every record lists */
};

/* NULL with err set. */
json_t *predict(const struct predict_options *o, struct model *m,
                const struct forward_options *f, struct err *err);
#endif
