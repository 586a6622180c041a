#ifndef GATES_METRICS_H
#define GATES_METRICS_H

#include "base/err.h"
#include "gates/gates.h"
#include "tensor/tensor.h"
#include "json/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Distances between two tensors that are read in blocks: nothing larger than
 * a row is in memory.  Every element is widened to f64 exactly; sums run in 16
 * lanes by element index mod 16, folded 8, 4, 2, 1 (order `lanes16` in f64), so
 * a value is the same on every machine.
 */
struct tensor_source {
    enum dtype dtype;
    struct tensor_shape shape;
    /* Bytes [offset, offset + len) of the tensor's data. */
    int (*read)(const struct tensor_source *s, int64_t offset, size_t len,
                void *dst, struct err *err);
    const void *context, *detail;
};

struct metric_result {
    bool is_measured; /* value means something */
    double value;     /* may be NaN or infinite: then reason says why */
    bool is_count;    /* value is a whole number of elements or rows */
    int64_t compared; /* elements looked at */
    int64_t differing;
    int64_t rows, rows_differing;
    char reason[320]; /* why it fails whatever the value; "" when sound */
    json_t *worst;    /* {"index", "reference", "candidate", ...} or NULL */
};

/*
 * Measures one metric.  What is wrong with the candidate, or makes the two
 * incomparable (shape, dtype, NaN, infinity, nothing to compare, a metric that
 * is undefined for these values), is a reason in the result; -1 is only for a
 * reference that cannot be read.  A candidate's read error is a reason too.
 */
int metric_measure(enum gate_metric metric, const struct tensor_source *ref,
                   const struct tensor_source *cand, struct metric_result *out,
                   struct err *err);
void metric_result_release(struct metric_result *r);

/* The place of flat element `at` as a JSON array. */
json_t *metric_index(const struct tensor_shape *shape, int64_t at);

/* One stored element as JSON: integers as they are, floats as numbers or
 * "NaN", anything else as its raw bits. */
json_t *metric_element(enum dtype dtype, const void *bytes);

/* 16 running sums; metric_fold() adds them up in the written order. */
struct lanes {
    double at[16];
};
double lanes_fold(const struct lanes *l);

/* dot / |a||b| of the folded sums: exactly 1 when a and b are equal. */
double cosine_of(double dot, double square_a, double square_b);

/* Softmax of one row of f64 values into p, and log of its denominator with the
 * maximum put back; false when it is undefined (+inf, or all -inf). */
bool metric_softmax(const double *x, size_t n, double *p, double *log_sum);
#endif
