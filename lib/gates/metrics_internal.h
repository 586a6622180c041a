#ifndef GATES_METRICS_INTERNAL_H
#define GATES_METRICS_INTERNAL_H

#include "gates/metrics.h"

/* Shared by metrics.c (which metric is what; the flat ones), metrics_pair.c
 * (two tensors side by side) and metrics_rows.c (a row at a time); nobody else
 * includes it. */
enum {
    METRIC_BLOCK = 1 << 16,               /* elements; a multiple of 16 lanes */
    METRIC_ROW_CAP = 1 << 24,             /* elements of the longest row */
    METRIC_ROW_BYTES = METRIC_ROW_CAP * 8 /* the same in f64 */
};

/* ---- metrics_pair.c ---- */

/* The two sides, and room for a block of each. */
struct pair {
    const struct tensor_source *ref, *cand;
    unsigned char *raw_ref, *raw_cand;
    double *r, *c;
    size_t cap; /* elements that fit */
    struct metric_result *out;
    struct err *err;
};

/* Why it fails; the first reason stands. */
void metric_reason(struct metric_result *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The place to show; takes the three references. */
void metric_set_worst(struct metric_result *out, json_t *index, json_t *ref,
                      json_t *cand);

int pair_reserve(struct pair *p, size_t elements);
void pair_release(struct pair *p);

/* n raw elements of each side from element `at`.  1: the candidate could not
 * be read (a reason stands); -1: the reference could not. */
int pair_read_raw(struct pair *p, int64_t at, size_t n);

/* The same, widened into r and c too. */
int pair_read(struct pair *p, int64_t at, size_t n);

/* Shapes, dtypes and emptiness: 1 when a reason stands, -1 on an error. */
int pair_check(enum gate_metric metric, struct pair *p);

/* What is not finite, counted while elements pass. */
struct not_finite {
    int64_t ref_nan, cand_nan, infinite;
    int64_t first; /* place of the first of any kind */
    double first_ref, first_cand;
};

void not_finite_see(struct not_finite *f, int64_t at, double r, double c);

/* Fails the result when there was any; true then. */
bool not_finite_fails(const struct not_finite *f, struct pair *p);

/* ---- metrics.c ---- */

/* Sums over a run of elements whose first has index 0 mod 16. */
struct sums {
    struct lanes abs_d, sq_d, sq_r, sq_c, dot;
    double r_first, c_first;
    bool started, r_varies, c_varies; /* more than one value seen */
};

void sums_add(struct sums *s, const double *r, const double *c, size_t n);
double sums_relative_l2(const struct sums *s);

/* NaN where a direction is undefined: a constant tensor has none that says
 * anything, nor has a single element. */
double sums_cosine(const struct sums *s);
const char *sums_constant(const struct sums *s); /* which side is */

/* The largest |c - r| so far, and where. */
struct largest {
    bool is_set;
    double d; /* |c - r| */
    int64_t at;
    double r, c;
};

void largest_see(struct largest *l, int64_t at, double r, double c);
void largest_set(const struct largest *l, struct pair *p); /* is the worst */

/* ---- metrics_rows.c ---- */

/* Each row is looked at for what is not finite before it counts. */
int metrics_measure_rows(enum gate_metric metric, struct pair *p);
#endif
