/*
 * Distances over streamed tensors.  Flat metrics read both sides in blocks of
 * 65,536 elements, row metrics a row at a time.  What is not finite is looked
 * for before any value counts: a NaN anywhere, or an infinity where the other
 * side has not the same one, fails every metric.
 */
#include "gates/metrics_internal.h"

#include "base/bug.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

double lanes_fold(const struct lanes *l)
{
    double v[16];

    memcpy(v, l->at, sizeof(v));
    for (int half = 8; half >= 1; half /= 2)
        for (int i = 0; i < half; i++)
            v[i] += v[i + half];
    return v[0];
}

double cosine_of(double dot, double square_a, double square_b)
{
    double product = square_a * square_b;

    /* The root of a square is exact; large or small sums take two roots. */
    if (isfinite(product) && product > 1e-290)
        return dot / sqrt(product);
    return dot / (sqrt(square_a) * sqrt(square_b));
}

static int measure_exact(struct pair *p)
{
    const size_t size = dtype_bits(p->ref->dtype) / 8;
    const bool is_float = dtype_is_float(p->ref->dtype);
    int64_t count = shape_count(&p->ref->shape);
    struct not_finite odd = {0};
    struct metric_result *out = p->out;

    for (int64_t at = 0; at < count; at += METRIC_BLOCK) {
        size_t n =
            count - at < METRIC_BLOCK ? (size_t)(count - at) : METRIC_BLOCK;
        int state = is_float ? pair_read(p, at, n) : pair_read_raw(p, at, n);

        if (state)
            return state;
        if (!is_float && memcmp(p->raw_ref, p->raw_cand, n * size) == 0)
            continue;
        for (size_t i = 0; i < n; i++) {
            const void *r = p->raw_ref + i * size, *c = p->raw_cand + i * size;

            if (is_float)
                not_finite_see(&odd, at + (int64_t)i, p->r[i], p->c[i]);
            if (memcmp(r, c, size) == 0)
                continue;
            if (out->differing++ == 0)
                metric_set_worst(out,
                                 metric_index(&p->ref->shape, at + (int64_t)i),
                                 metric_element(p->ref->dtype, r),
                                 metric_element(p->cand->dtype, c));
        }
    }
    out->compared = count;
    if (not_finite_fails(&odd, p))
        return 0;
    out->is_measured = true;
    out->is_count = true;
    out->value = (double)out->differing;
    return 0;
}

void sums_add(struct sums *s, const double *r, const double *c, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double x = r[i], y = c[i], d;
        size_t lane = i % 16;

        if (!s->started) {
            s->r_first = x;
            s->c_first = y;
            s->started = true;
        }
        s->r_varies |= x != s->r_first;
        s->c_varies |= y != s->c_first;
        if (isinf(x)) /* the same on both sides, or the metric has failed */
            x = y = 0;
        d = y - x;
        s->abs_d.at[lane] += fabs(d);
        s->sq_d.at[lane] += d * d;
        s->sq_r.at[lane] += x * x;
        s->sq_c.at[lane] += y * y;
        s->dot.at[lane] += x * y;
    }
}

double sums_relative_l2(const struct sums *s)
{
    return sqrt(lanes_fold(&s->sq_d)) / sqrt(lanes_fold(&s->sq_r));
}

double sums_cosine(const struct sums *s)
{
    if (!s->r_varies || !s->c_varies)
        return NAN;
    return cosine_of(lanes_fold(&s->dot), lanes_fold(&s->sq_r),
                     lanes_fold(&s->sq_c));
}

void largest_see(struct largest *l, int64_t at, double r, double c)
{
    double d = r == c ? 0 : fabs(c - r);

    if (!l->is_set || d > l->d)
        *l = (struct largest){true, d, at, r, c};
}

void largest_set(const struct largest *l, struct pair *p)
{
    if (l->is_set)
        metric_set_worst(p->out, metric_index(&p->ref->shape, l->at),
                         json_real_or_text(l->r), json_real_or_text(l->c));
}

const char *sums_constant(const struct sums *s)
{
    return !s->r_varies ? "reference" : "candidate";
}

static double flat_value(enum gate_metric metric, const struct sums *s,
                         const struct largest *most, int64_t count,
                         struct metric_result *out)
{
    switch (metric) {
    case METRIC_MAX_ABS:
        return most->d;
    case METRIC_MEAN_ABS:
        return lanes_fold(&s->abs_d) / (double)count;
    case METRIC_RMS:
        return sqrt(lanes_fold(&s->sq_d) / (double)count);
    case METRIC_RELATIVE_L2:
        if (lanes_fold(&s->sq_r) == 0)
            metric_reason(out,
                          "relative_l2 is undefined: the reference is zero "
                          "everywhere");
        return sums_relative_l2(s);
    case METRIC_COSINE:
        if (!s->r_varies || !s->c_varies)
            metric_reason(out, "cosine is undefined: the %s is constant",
                          sums_constant(s));
        return sums_cosine(s);
    default:
        BUG("not a flat metric");
    }
}

static int measure_flat(enum gate_metric metric, struct pair *p)
{
    int64_t count = shape_count(&p->ref->shape);
    struct not_finite odd = {0};
    struct largest most = {0};
    struct sums sums = {0};
    struct metric_result *out = p->out;

    for (int64_t at = 0; at < count; at += METRIC_BLOCK) {
        size_t n =
            count - at < METRIC_BLOCK ? (size_t)(count - at) : METRIC_BLOCK;
        int state = pair_read(p, at, n);

        if (state)
            return state;
        for (size_t i = 0; i < n; i++) {
            double r = p->r[i], c = p->c[i];

            if (!isfinite(r) || !isfinite(c))
                not_finite_see(&odd, at + (int64_t)i, r, c);
            out->differing += r != c;
            largest_see(&most, at + (int64_t)i, r, c);
        }
        sums_add(&sums, p->r, p->c, n);
    }
    out->compared = count;
    if (not_finite_fails(&odd, p))
        return 0;
    largest_set(&most, p);
    out->value = flat_value(metric, &sums, &most, count, out);
    out->is_measured = true;
    return 0;
}

static bool is_flat(enum gate_metric metric)
{
    return metric == METRIC_MAX_ABS || metric == METRIC_MEAN_ABS ||
           metric == METRIC_RMS || metric == METRIC_RELATIVE_L2 ||
           metric == METRIC_COSINE;
}

static int measure(enum gate_metric metric, struct pair *p)
{
    const struct tensor_shape *shape = &p->ref->shape;
    int state = pair_check(metric, p);

    if (state)
        return state;
    if (metric == METRIC_EXACT || is_flat(metric)) {
        if (pair_reserve(p, METRIC_BLOCK))
            return -1;
        return metric == METRIC_EXACT ? measure_exact(p)
                                      : measure_flat(metric, p);
    }
    int64_t width = shape->dims ? shape->size[shape->dims - 1] : 1;
    if (width > METRIC_ROW_CAP) {
        metric_reason(p->out, "a row of %" PRId64 " elements is more than %d",
                      width, METRIC_ROW_CAP);
        return 1;
    }
    return pair_reserve(p, (size_t)width) ? -1
                                          : metrics_measure_rows(metric, p);
}

int metric_measure(enum gate_metric metric, const struct tensor_source *ref,
                   const struct tensor_source *cand, struct metric_result *out,
                   struct err *err)
{
    struct pair p = {.ref = ref, .cand = cand, .out = out, .err = err};

    *out = (struct metric_result){0};
    int state = measure(metric, &p);
    pair_release(&p);
    if (state < 0)
        metric_result_release(out);
    BUG_ON(state == 0 && !out->is_measured);
    return state < 0 ? -1 : 0;
}

void metric_result_release(struct metric_result *r)
{
    json_decref(r->worst);
    r->worst = NULL;
}
