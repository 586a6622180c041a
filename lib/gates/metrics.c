/*
 * Distances over streamed tensors.  Flat metrics read both sides in blocks of
 * 65,536 elements, row metrics a row at a time.  What is not finite is looked
 * for before any value counts: a NaN anywhere, or an infinity where the other
 * side has not the same one, fails every metric.
 */
#include "gates/metrics.h"

#include "base/bug.h"
#include "base/mem.h"
#include "kernels/elementary.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCK = 1 << 16,          /* elements; a multiple of 16 lanes */
    ROW_CAP = 1 << 24,        /* elements of the longest row */
    ROW_BYTES = ROW_CAP * 8,  /* the same in f64 */
    FIRST_IDS_ROWS = 1 << 20, /* rows searched when shapes differ */
};

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

json_t *metric_index(const struct tensor_shape *shape, int64_t at)
{
    json_t *index = json_array();
    int64_t place[TENSOR_MAX_DIMS];

    for (int d = shape->dims - 1; d >= 0; d--) {
        place[d] = at % shape->size[d];
        at /= shape->size[d];
    }
    for (int d = 0; d < shape->dims; d++)
        json_array_append_new(index, json_integer(place[d]));
    return index;
}

static int64_t integer_at(enum dtype dtype, const void *bytes)
{
    union {
        int64_t i64;
        uint32_t u32;
        int32_t i32;
        uint16_t u16;
        int16_t i16;
        int8_t i8;
        uint8_t u8;
    } v = {0};

    memcpy(&v, bytes, dtype_bits(dtype) / 8);
    switch (dtype) {
    case DTYPE_U64:
    case DTYPE_I64:
        return v.i64;
    case DTYPE_U32:
        return v.u32;
    case DTYPE_I32:
        return v.i32;
    case DTYPE_I16:
        return v.i16;
    case DTYPE_U16:
        return v.u16;
    case DTYPE_I8:
        return v.i8;
    default:
        return v.u8;
    }
}

json_t *metric_element(enum dtype dtype, const void *bytes)
{
    double value;

    if (dtype_is_float(dtype)) {
        dtype_to_f64(dtype, bytes, 1, &value);
        return json_real_or_text(value);
    }
    if (dtype == DTYPE_U64 && integer_at(dtype, bytes) < 0) {
        char text[24];

        snprintf(text, sizeof(text), "%" PRIu64,
                 (uint64_t)integer_at(dtype, bytes));
        return json_string(text);
    }
    return json_integer(integer_at(dtype, bytes));
}

/* The two sides, and room for a block of each. */
struct pair {
    const struct tensor_source *ref, *cand;
    unsigned char *raw_ref, *raw_cand;
    double *r, *c;
    size_t cap; /* elements that fit */
    struct metric_result *out;
    struct err *err;
};

static void set_reason(struct metric_result *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void set_reason(struct metric_result *out, const char *format, ...)
{
    va_list ap;

    if (out->reason[0])
        return; /* the first one stands */
    va_start(ap, format);
    vsnprintf(out->reason, sizeof(out->reason), format, ap);
    va_end(ap);
}

static void pair_release(struct pair *p)
{
    free(p->raw_ref);
    free(p->raw_cand);
    free(p->r);
    free(p->c);
}

static int pair_reserve(struct pair *p, size_t elements)
{
    p->cap = elements;
    p->raw_ref = mem_array(elements, 8, ROW_BYTES, p->err);
    p->raw_cand = mem_array(elements, 8, ROW_BYTES, p->err);
    p->r = mem_array(elements, sizeof(double), ROW_BYTES, p->err);
    p->c = mem_array(elements, sizeof(double), ROW_BYTES, p->err);
    return p->raw_ref && p->raw_cand && p->r && p->c ? 0 : -1;
}

/* n raw elements of each side from element `at`.  1: the candidate could not
 * be read (a reason stands); -1: the reference could not. */
static int pair_read_raw(struct pair *p, int64_t at, size_t n)
{
    struct err why = ERR_INIT;
    size_t size_r = dtype_bits(p->ref->dtype) / 8;
    size_t size_c = dtype_bits(p->cand->dtype) / 8;

    BUG_ON(n > p->cap);
    if (p->ref->read(p->ref, at * (int64_t)size_r, n * size_r, p->raw_ref,
                     p->err))
        return -1;
    if (p->cand->read(p->cand, at * (int64_t)size_c, n * size_c, p->raw_cand,
                      &why)) {
        if (why.code == ERR_SYSTEM)
            return err_set(p->err, why.code, "%s", why.text);
        set_reason(p->out, "the candidate cannot be read: %.250s", why.text);
        return 1;
    }
    return 0;
}

static int pair_read(struct pair *p, int64_t at, size_t n)
{
    int state = pair_read_raw(p, at, n);

    if (state)
        return state;
    dtype_to_f64(p->ref->dtype, p->raw_ref, n, p->r);
    dtype_to_f64(p->cand->dtype, p->raw_cand, n, p->c);
    return 0;
}

static void set_worst(struct metric_result *out, json_t *index, json_t *ref,
                      json_t *cand)
{
    json_decref(out->worst);
    out->worst = json_object();
    json_object_set_new(out->worst, "index", index);
    json_object_set_new(out->worst, "reference", ref);
    json_object_set_new(out->worst, "candidate", cand);
}

/* What is not finite, counted while elements pass. */
struct not_finite {
    int64_t ref_nan, cand_nan, infinite;
    int64_t first; /* place of the first of any kind */
    double first_ref, first_cand;
};

static void not_finite_see(struct not_finite *f, int64_t at, double r, double c)
{
    bool any = f->ref_nan + f->cand_nan + f->infinite > 0;
    bool bad = true;

    if (isnan(c) || isnan(r)) {
        f->cand_nan += isnan(c);
        f->ref_nan += isnan(r);
    } else if (isinf(r) || isinf(c)) {
        bad = r != c;
        f->infinite += bad;
    } else {
        bad = false;
    }
    if (bad && !any) {
        f->first = at;
        f->first_ref = r;
        f->first_cand = c;
    }
}

/* Fails the result when there was any; true then. */
static bool not_finite_fails(const struct not_finite *f, struct pair *p)
{
    struct metric_result *out = p->out;

    if (f->ref_nan + f->cand_nan + f->infinite == 0)
        return false;
    json_t *index = metric_index(&p->ref->shape, f->first);
    char *place = json_dumps(index, JSON_COMPACT);
    if (f->cand_nan)
        set_reason(out,
                   "the candidate holds NaN: %" PRId64 " of %" PRId64
                   " elements, first at %s",
                   f->cand_nan, shape_count(&p->ref->shape), place);
    else if (f->ref_nan)
        set_reason(out,
                   "the reference holds NaN: %" PRId64 " of %" PRId64
                   " elements, first at %s",
                   f->ref_nan, shape_count(&p->ref->shape), place);
    else
        set_reason(out,
                   "infinite where the other side is not: %" PRId64
                   " of %" PRId64 " elements, first at %s",
                   f->infinite, shape_count(&p->ref->shape), place);
    free(place);
    set_worst(out, index, json_real_or_text(f->first_ref),
              json_real_or_text(f->first_cand));
    out->value = f->cand_nan + f->ref_nan ? NAN : INFINITY;
    out->is_measured = true;
    out->is_count = false;
    return true;
}

/* Where ids of different shapes first part: rows of the shorter width. */
static int first_in_common(struct pair *p)
{
    const struct tensor_shape *rs = &p->ref->shape, *cs = &p->cand->shape;
    size_t size = dtype_bits(p->ref->dtype) / 8;

    if (rs->dims != cs->dims || rs->dims < 1 || rs->dims > 2 ||
        !dtype_is_int(p->ref->dtype))
        return 0;
    int last = rs->dims - 1;
    int64_t rows = last == 0 ? 1 : rs->size[0], width = rs->size[last];
    if (last == 1 && cs->size[0] < rows)
        rows = cs->size[0];
    if (cs->size[last] < width)
        width = cs->size[last];
    if (rows > FIRST_IDS_ROWS)
        rows = FIRST_IDS_ROWS;
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t at = 0; at < width; at += BLOCK) {
            size_t n = width - at < BLOCK ? (size_t)(width - at) : BLOCK;
            struct err why = ERR_INIT;
            int64_t from_r = row * rs->size[last] + at;
            int64_t from_c = row * cs->size[last] + at;

            if (p->ref->read(p->ref, from_r * (int64_t)size, n * size,
                             p->raw_ref, p->err))
                return -1;
            if (p->cand->read(p->cand, from_c * (int64_t)size, n * size,
                              p->raw_cand, &why))
                return 0; /* the shape is reason enough */
            for (size_t i = 0; i < n; i++) {
                const void *r = p->raw_ref + i * size;
                const void *c = p->raw_cand + i * size;

                if (memcmp(r, c, size) == 0)
                    continue;
                set_worst(p->out, metric_index(rs, from_r + (int64_t)i),
                          metric_element(p->ref->dtype, r),
                          metric_element(p->cand->dtype, c));
                return 0;
            }
        }
    }
    return 0;
}

/* Shapes, dtypes and emptiness: 1 when a reason stands, -1 on an error. */
static int check_pair(enum gate_metric metric, struct pair *p)
{
    enum dtype rd = p->ref->dtype, cd = p->cand->dtype;
    int64_t count = shape_count(&p->ref->shape);

    if (metric == METRIC_EXACT) {
        if (rd != cd)
            set_reason(p->out,
                       "dtype differs: the reference is %s, the "
                       "candidate %s",
                       dtype_name(rd), dtype_name(cd));
        else if (dtype_bits(rd) % 8 != 0 || dtype_bits(rd) > 64)
            set_reason(p->out, "elements of %s are not compared",
                       dtype_name(rd));
    } else if (!dtype_is_float(rd) || !dtype_is_float(cd)) {
        set_reason(p->out,
                   "%s compares floats: the reference is %s, the "
                   "candidate %s",
                   gate_metric_name(metric), dtype_name(rd), dtype_name(cd));
    }
    if (p->out->reason[0])
        return 1;
    if (!shape_equal(&p->ref->shape, &p->cand->shape)) {
        char r[160], c[160];

        shape_format(&p->ref->shape, r, sizeof(r));
        shape_format(&p->cand->shape, c, sizeof(c));
        set_reason(p->out,
                   "shape differs: the reference is %.100s, the candidate "
                   "%.100s",
                   r, c);
        if (pair_reserve(p, BLOCK) || first_in_common(p))
            return -1;
        return 1;
    }
    if (count == 0) {
        set_reason(p->out, "nothing was compared: the tensor is empty");
        return 1;
    }
    return 0;
}

static int measure_exact(struct pair *p)
{
    const size_t size = dtype_bits(p->ref->dtype) / 8;
    const bool is_float = dtype_is_float(p->ref->dtype);
    int64_t count = shape_count(&p->ref->shape);
    struct not_finite odd = {0};
    struct metric_result *out = p->out;

    for (int64_t at = 0; at < count; at += BLOCK) {
        size_t n = count - at < BLOCK ? (size_t)(count - at) : BLOCK;
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
                set_worst(out, metric_index(&p->ref->shape, at + (int64_t)i),
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

/* Sums over a run of elements whose first has index 0 mod 16. */
struct sums {
    struct lanes abs_d, sq_d, sq_r, sq_c, dot;
    double r_first, c_first;
    bool started, r_varies, c_varies; /* more than one value seen */
};

static void sums_add(struct sums *s, const double *r, const double *c, size_t n)
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

static double sums_relative_l2(const struct sums *s)
{
    return sqrt(lanes_fold(&s->sq_d)) / sqrt(lanes_fold(&s->sq_r));
}

/* NaN where a direction is undefined: a constant tensor has none that says
 * anything, nor has a single element. */
static double sums_cosine(const struct sums *s)
{
    if (!s->r_varies || !s->c_varies)
        return NAN;
    return cosine_of(lanes_fold(&s->dot), lanes_fold(&s->sq_r),
                     lanes_fold(&s->sq_c));
}

struct largest {
    bool is_set;
    double d; /* |c - r| */
    int64_t at;
    double r, c;
};

static void largest_see(struct largest *l, int64_t at, double r, double c)
{
    double d = r == c ? 0 : fabs(c - r);

    if (!l->is_set || d > l->d)
        *l = (struct largest){true, d, at, r, c};
}

static void largest_set(const struct largest *l, struct pair *p)
{
    if (l->is_set)
        set_worst(p->out, metric_index(&p->ref->shape, l->at),
                  json_real_or_text(l->r), json_real_or_text(l->c));
}

static const char *side_constant(const struct sums *s)
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
            set_reason(out, "relative_l2 is undefined: the reference is zero "
                            "everywhere");
        return sums_relative_l2(s);
    case METRIC_COSINE:
        if (!s->r_varies || !s->c_varies)
            set_reason(out, "cosine is undefined: the %s is constant",
                       side_constant(s));
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

    for (int64_t at = 0; at < count; at += BLOCK) {
        size_t n = count - at < BLOCK ? (size_t)(count - at) : BLOCK;
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
        set_reason(p->out, "softmax of row %" PRId64 " is undefined: infinite",
                   row);
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
        set_reason(out,
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
    set_worst(out, json_array(), json_integer((json_int_t)r),
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
            set_reason(p->out,
                       "cosine of row %" PRId64 " is undefined: the "
                       "%s is constant",
                       row, side_constant(&sums));
        rows_see(s, p, sums_cosine(&sums), false, &most);
        return;
    }
    if (lanes_fold(&sums.sq_r) == 0)
        set_reason(p->out,
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

/* Each row is looked at for what is not finite before it counts. */
static int measure_rows(enum gate_metric metric, struct pair *p)
{
    const struct tensor_shape *shape = &p->ref->shape;
    int64_t width = shape->dims ? shape->size[shape->dims - 1] : 1;
    struct metric_result *out = p->out;
    struct not_finite odd = {0};
    struct rows rows = {0};
    int ret = -1;

    out->rows = shape_count(shape) / width;
    rows.prob_r = mem_array(p->cap, sizeof(double), ROW_BYTES, p->err);
    rows.prob_c = mem_array(p->cap, sizeof(double), ROW_BYTES, p->err);
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

static bool is_flat(enum gate_metric metric)
{
    return metric == METRIC_MAX_ABS || metric == METRIC_MEAN_ABS ||
           metric == METRIC_RMS || metric == METRIC_RELATIVE_L2 ||
           metric == METRIC_COSINE;
}

static int measure(enum gate_metric metric, struct pair *p)
{
    const struct tensor_shape *shape = &p->ref->shape;
    int state = check_pair(metric, p);

    if (state)
        return state;
    if (metric == METRIC_EXACT || is_flat(metric)) {
        if (pair_reserve(p, BLOCK))
            return -1;
        return metric == METRIC_EXACT ? measure_exact(p)
                                      : measure_flat(metric, p);
    }
    int64_t width = shape->dims ? shape->size[shape->dims - 1] : 1;
    if (width > ROW_CAP) {
        set_reason(p->out, "a row of %" PRId64 " elements is more than %d",
                   width, ROW_CAP);
        return 1;
    }
    return pair_reserve(p, (size_t)width) ? -1 : measure_rows(metric, p);
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
