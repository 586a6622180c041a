#ifndef GATES_GATES_H
#define GATES_GATES_H

#include "base/err.h"
#include "hash/hash.h"
#include "json/json.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * Frozen limits, gates.json:
 *
 *     {"gates": [{"name": "probabilities", "tensor": "logits",
 *                 "metric": "max_abs_prob", "at_most": 0.01,
 *                 "when": "images"}, ...]}
 *
 * Each metric has one direction: a distance takes `at_most`, a likeness takes
 * `at_least`, and a metric that is a question of yes or no takes no limit.
 * Rows are a tensor's last dimension; r is the reference, c the candidate.
 */
enum gate_metric {
    METRIC_EXACT,           /* elements whose bytes differ: none may */
    METRIC_MAX_ABS,         /* largest |c - r| */
    METRIC_MEAN_ABS,        /* mean |c - r| */
    METRIC_RMS,             /* sqrt(mean (c - r)^2) */
    METRIC_RELATIVE_L2,     /* |c - r| / |r|, norms over the whole tensor */
    METRIC_ROW_RELATIVE_L2, /* the largest of its rows */
    METRIC_COSINE,          /* c.r / |c||r| over the whole tensor */
    METRIC_ROW_COSINE,      /* the smallest of its rows */
    METRIC_MAX_ABS_PROB,    /* largest |softmax(c) - softmax(r)| of a row */
    METRIC_KL,              /* the row with the largest KL(r || c), nats */
    METRIC_MEAN_KL,         /* mean over rows */
    METRIC_ARGMAX_EQUAL,    /* rows whose argmax differs: none may */
    METRIC_ARGMAX_SHARE,    /* share of rows whose argmax agrees */
    METRIC_ARGMAX_LEAD,     /* r's lead, its largest element over its second,
                               in the rows whose argmax differs: the largest;
                               0 when none does */
    METRIC_COUNT
};

enum gate_relation { GATE_NONE, GATE_AT_MOST, GATE_AT_LEAST };

struct gate {
    char *name, *tensor; /* tensor may be a pattern: "trace.layer*.mlp" */
    enum gate_metric metric;
    enum gate_relation relation;
    double limit;     /* 0 when there is no relation */
    bool images_only; /* "when": "images" */
};

struct gates {
    struct gate *items;
    size_t count;
    char sha256[HASH_SHA256_HEX]; /* of the file's bytes */
};

/*
 * Reads and checks them.  Malformed, empty, a limit that is missing or runs the
 * wrong way, or a name twice: ERR_INPUT; a key, metric or `when` that we do
 * not know: ERR_UNSUPPORTED, naming it.
 */
int gates_read(const char *path, struct gates *out, struct err *err);
void gates_release(struct gates *g); /* NULL and empty are fine */

const char *gate_metric_name(enum gate_metric metric);
enum gate_relation gate_metric_relation(enum gate_metric metric);

/* Does the value hold the limit?  Never for a NaN. */
bool gate_holds(const struct gate *gate, double value);
#endif
