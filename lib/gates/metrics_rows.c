/* Metrics that look at a row at a time: probabilities, argmax, the worst row.
 */
#include "gates/metrics_internal.h"

#include "base/mem.h"
#include "kernels/elementary.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

bool metric_softmax(const double *x, size_t n, double *p, double *log_sum)
{
    struct lanes total = {0};
    double top = -INFINITY;

    for (size_t i = 0; i < n; i++)
        if (x[i] > top)
            top = x[i];
    if (!isfinite(top))
        return false;
    for (size_t i = 0; i < n; i++) {
        p[i] = elem_exp(x[i] - top);
        total.at[i % 16] += p[i];
    }
    double sum = lanes_fold(&total);
    for (size_t i = 0; i < n; i++)
        p[i] /= sum;
    *log_sum = top + elem_log(sum);
    return true;
}

/* Index of the largest, the lowest on ties; *gap is its lead over the next. */
static size_t argmax(const double *x, size_t n, double *gap)
{
    size_t best = 0;
    double second = -INFINITY;

    for (size_t i = 1; i < n; i++) {
        if (x[i] > x[best]) {
            second = x[best];
            best = i;
        } else if (x[i] > second) {
            second = x[i];
        }
    }
    *gap = x[best] - second;
    return best;
}

static bool is_constant(const double *x, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (x[i] != x[0])
            return false;
    return true;
}

/* What row metrics gather from row to row. */
struct rows {
    double *prob_r, *prob_c; /* a row each, for the metrics of probabilities */
    bool started;
    double worst; /* the worst row's value */
    double total; /* of all rows, in their order */
};

/* One row's value; `most` is the place to show should it be the worst. */
static void rows_see(struct rows *s, struct pair *p, double value,
                     bool larger_is_worse, const struct largest *most)
{
    bool is_worse = larger_is_worse ? value > s->worst : value < s->worst;

    s->total += value;
    if (s->started && !is_worse)
        return;
    s->started = true;
    s->worst = value;
    largest_set(most, p);
}

static void row_prob(enum gate_metric metric, struct rows *s, struct pair *p,
                     int64_t row, size_t n)
{
    struct largest most = {0};
    struct lanes kl = {0};
    double log_r, log_c;

    if (!metric_softmax(p->r, n, s->prob_r, &log_r) ||
        !metric_softmax(p->c, n, s->prob_c, &log_c)) {
        metric_reason(p->out,
                      "softmax of row %" PRId64 " is undefined: infinite", row);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        largest_see(&most, row * (int64_t)n + (int64_t)i, s->prob_r[i],
                    s->prob_c[i]);
        if (s->prob_r[i] > 0)
            kl.at[i % 16] +=
                s->prob_r[i] * ((p->r[i] - log_r) - (p->c[i] - log_c));
    }
    /* Rounding may leave a divergence a little below 0, where none is. */
    double divergence = fmax(lanes_fold(&kl), 0);
    rows_see(s, p, metric == METRIC_MAX_ABS_PROB ? most.d : divergence, true,
             &most);
}

/* s->worst is the largest lead of a row that differs; metric says which of
 * those rows is shown, the first or that one. */
static void row_argmax(enum gate_metric metric, struct rows *s, struct pair *p,
                       int64_t row, size_t n)
{
    struct metric_result *out = p->out;
    double gap_r, gap_c;
    size_t r = argmax(p->r, n, &gap_r), c = argmax(p->c, n, &gap_c);

    if (n == 1 || is_constant(p->c, n) || is_constant(p->r, n)) {
        metric_reason(out,
                      "argmax of row %" PRId64 " is undefined: the %s is "
                      "constant",
                      row, is_constant(p->r, n) ? "reference" : "candidate");
        return;
    }
    if (r == c)
        return;
    bool is_shown = out->rows_differing++ == 0;
    if (metric == METRIC_ARGMAX_LEAD && gap_r > s->worst)
        is_shown = true;
    s->worst = fmax(s->worst, gap_r);
    if (!is_shown)
        return;
    metric_set_worst(out, json_array(), json_integer((json_int_t)r),
                     json_integer((json_int_t)c));
    json_array_append_new(json_object_get(out->worst, "index"),
                          json_integer(row));
    json_object_set_new(out->worst, "reference_lead", json_real_or_text(gap_r));
    json_object_set_new(out->worst, "candidate_lead", json_real_or_text(gap_c));
}

static void row_sums(enum gate_metric metric, struct rows *s, struct pair *p,
                     int64_t row, size_t n)
{
    struct sums sums = {0};
    struct largest most = {0};

    for (size_t i = 0; i < n; i++)
        largest_see(&most, row * (int64_t)n + (int64_t)i, p->r[i], p->c[i]);
    sums_add(&sums, p->r, p->c, n);
    if (metric == METRIC_ROW_COSINE) {
        if (!sums.r_varies || !sums.c_varies)
            metric_reason(p->out,
                          "cosine of row %" PRId64 " is undefined: the "
                          "%s is constant",
                          row, sums_constant(&sums));
        rows_see(s, p, sums_cosine(&sums), false, &most);
        return;
    }
    if (lanes_fold(&sums.sq_r) == 0)
        metric_reason(p->out,
                      "relative_l2 of row %" PRId64 " is undefined: the "
                      "reference is zero",
                      row);
    rows_see(s, p, sums_relative_l2(&sums), true, &most);
}

static void row_measure(enum gate_metric metric, struct rows *s, struct pair *p,
                        int64_t row, size_t n)
{
    switch (metric) {
    case METRIC_MAX_ABS_PROB:
    case METRIC_KL:
    case METRIC_MEAN_KL:
        row_prob(metric, s, p, row, n);
        break;
    case METRIC_ARGMAX_EQUAL:
    case METRIC_ARGMAX_SHARE:
    case METRIC_ARGMAX_LEAD:
        row_argmax(metric, s, p, row, n);
        break;
    default:
        row_sums(metric, s, p, row, n);
    }
}

static void rows_finish(enum gate_metric metric, const struct rows *s,
                        struct metric_result *out)
{
    out->is_measured = true;
    switch (metric) {
    case METRIC_MEAN_KL:
        out->value = s->total / (double)out->rows;
        break;
    case METRIC_ARGMAX_EQUAL:
        out->value = (double)out->rows_differing;
        out->is_count = true;
        break;
    case METRIC_ARGMAX_SHARE:
        out->value =
            (double)(out->rows - out->rows_differing) / (double)out->rows;
        break;
    default:
        out->value = s->worst;
    }
}

int metrics_measure_rows(enum gate_metric metric, struct pair *p)
{
    const struct tensor_shape *shape = &p->ref->shape;
    int64_t width = shape->dims ? shape->size[shape->dims - 1] : 1;
    struct metric_result *out = p->out;
    struct not_finite odd = {0};
    struct rows rows = {0};
    int ret = -1;

    out->rows = shape_count(shape) / width;
    rows.prob_r = mem_array(p->cap, sizeof(double), METRIC_ROW_BYTES, p->err);
    rows.prob_c = mem_array(p->cap, sizeof(double), METRIC_ROW_BYTES, p->err);
    if (!rows.prob_r || !rows.prob_c)
        goto out;
    for (int64_t row = 0; row < out->rows; row++) {
        ret = pair_read(p, row * width, (size_t)width);
        if (ret)
            goto out;
        int64_t bad = odd.ref_nan + odd.cand_nan + odd.infinite;
        for (int64_t i = 0; i < width; i++) {
            double r = p->r[i], c = p->c[i];

            if (!isfinite(r) || !isfinite(c))
                not_finite_see(&odd, row * width + i, r, c);
            out->differing += r != c;
        }
        if (bad == odd.ref_nan + odd.cand_nan + odd.infinite)
            row_measure(metric, &rows, p, row, (size_t)width);
    }
    out->compared = shape_count(shape);
    ret = 0;
    if (odd.ref_nan + odd.cand_nan + odd.infinite > 0) {
        out->reason[0] = '\0'; /* this one comes first */
        not_finite_fails(&odd, p);
    } else if (out->reason[0]) {
        out->value = NAN;
        out->is_measured = true;
    } else {
        rows_finish(metric, &rows, out);
    }
out:
    free(rows.prob_r);
    free(rows.prob_c);
    return ret;
}
