/*
 * Two tensors side by side: read in blocks, checked for what makes them
 * incomparable, and their elements shown.
 */
#include "gates/metrics_internal.h"

#include "base/bug.h"
#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_IDS_ROWS = 1 << 20 }; /* rows searched when shapes differ */

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

void metric_reason(struct metric_result *out, const char *format, ...)
{
    va_list ap;

    if (out->reason[0])
        return; /* the first one stands */
    va_start(ap, format);
    vsnprintf(out->reason, sizeof(out->reason), format, ap);
    va_end(ap);
}

void pair_release(struct pair *p)
{
    free(p->raw_ref);
    free(p->raw_cand);
    free(p->r);
    free(p->c);
}

int pair_reserve(struct pair *p, size_t elements)
{
    p->cap = elements;
    p->raw_ref = mem_array(elements, 8, METRIC_ROW_BYTES, p->err);
    p->raw_cand = mem_array(elements, 8, METRIC_ROW_BYTES, p->err);
    p->r = mem_array(elements, sizeof(double), METRIC_ROW_BYTES, p->err);
    p->c = mem_array(elements, sizeof(double), METRIC_ROW_BYTES, p->err);
    return p->raw_ref && p->raw_cand && p->r && p->c ? 0 : -1;
}

int pair_read_raw(struct pair *p, int64_t at, size_t n)
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
        metric_reason(p->out, "the candidate cannot be read: %.250s", why.text);
        return 1;
    }
    return 0;
}

int pair_read(struct pair *p, int64_t at, size_t n)
{
    int state = pair_read_raw(p, at, n);

    if (state)
        return state;
    dtype_to_f64(p->ref->dtype, p->raw_ref, n, p->r);
    dtype_to_f64(p->cand->dtype, p->raw_cand, n, p->c);
    return 0;
}

void metric_set_worst(struct metric_result *out, json_t *index, json_t *ref,
                      json_t *cand)
{
    json_decref(out->worst);
    out->worst = json_object();
    json_object_set_new(out->worst, "index", index);
    json_object_set_new(out->worst, "reference", ref);
    json_object_set_new(out->worst, "candidate", cand);
}

void not_finite_see(struct not_finite *f, int64_t at, double r, double c)
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

bool not_finite_fails(const struct not_finite *f, struct pair *p)
{
    struct metric_result *out = p->out;

    if (f->ref_nan + f->cand_nan + f->infinite == 0)
        return false;
    json_t *index = metric_index(&p->ref->shape, f->first);
    char *place = json_dumps(index, JSON_COMPACT);
    if (f->cand_nan)
        metric_reason(out,
                      "the candidate holds NaN: %" PRId64 " of %" PRId64
                      " elements, first at %s",
                      f->cand_nan, shape_count(&p->ref->shape), place);
    else if (f->ref_nan)
        metric_reason(out,
                      "the reference holds NaN: %" PRId64 " of %" PRId64
                      " elements, first at %s",
                      f->ref_nan, shape_count(&p->ref->shape), place);
    else
        metric_reason(out,
                      "infinite where the other side is not: %" PRId64
                      " of %" PRId64 " elements, first at %s",
                      f->infinite, shape_count(&p->ref->shape), place);
    free(place);
    metric_set_worst(out, index, json_real_or_text(f->first_ref),
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
        for (int64_t at = 0; at < width; at += METRIC_BLOCK) {
            size_t n =
                width - at < METRIC_BLOCK ? (size_t)(width - at) : METRIC_BLOCK;
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
                metric_set_worst(p->out, metric_index(rs, from_r + (int64_t)i),
                                 metric_element(p->ref->dtype, r),
                                 metric_element(p->cand->dtype, c));
                return 0;
            }
        }
    }
    return 0;
}

int pair_check(enum gate_metric metric, struct pair *p)
{
    enum dtype rd = p->ref->dtype, cd = p->cand->dtype;
    int64_t count = shape_count(&p->ref->shape);

    if (metric == METRIC_EXACT) {
        if (rd != cd)
            metric_reason(p->out,
                          "dtype differs: the reference is %s, the "
                          "candidate %s",
                          dtype_name(rd), dtype_name(cd));
        else if (dtype_bits(rd) % 8 != 0 || dtype_bits(rd) > 64)
            metric_reason(p->out, "elements of %s are not compared",
                          dtype_name(rd));
    } else if (!dtype_is_float(rd) || !dtype_is_float(cd)) {
        metric_reason(p->out,
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
        metric_reason(p->out,
                      "shape differs: the reference is %.100s, the candidate "
                      "%.100s",
                      r, c);
        if (pair_reserve(p, METRIC_BLOCK) || first_in_common(p))
            return -1;
        return 1;
    }
    if (count == 0) {
        metric_reason(p->out, "nothing was compared: the tensor is empty");
        return 1;
    }
    return 0;
}
