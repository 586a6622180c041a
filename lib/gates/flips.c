/* Choices of experts that fell the other way. */
#include "gates/flips.h"

#include "base/mem.h"
#include "safetensors/safetensors.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t CAP = (size_t)1 << 30;

/* Floats of a trace's tensor, one row after the other. */
struct table {
    double *at;
    int64_t rows, cols;
};

static int load(const struct safetensors *st, const struct tensor_info *info,
                struct table *out, struct err *err)
{
    struct tensor t = {0};

    if (info->shape.dims != 2 || !dtype_is_float(info->dtype))
        return err_set(err, ERR_INPUT,
                       "%s: tensor '%.100s' is not [rows, columns] of floats",
                       safetensors_path(st, info), info->name);
    if (safetensors_load(st, info->name, CAP, &t, err))
        return -1;
    size_t n = (size_t)shape_count(&info->shape);
    out->rows = info->shape.size[0];
    out->cols = info->shape.size[1];
    out->at = mem_array(n, sizeof(*out->at), CAP, err);
    if (out->at)
        dtype_to_f64(info->dtype, t.data, n, out->at);
    tensor_release(&t);
    return out->at ? 0 : -1;
}

static bool has(const struct table *t, int64_t row, double expert)
{
    for (int64_t i = 0; i < t->cols; i++)
        if (t->at[row * t->cols + i] == expert)
            return true;
    return false;
}

static bool is_same_choice(const struct table *a, const struct table *b,
                           int64_t row)
{
    for (int64_t i = 0; i < a->cols; i++)
        if (!has(b, row, a->at[row * a->cols + i]) ||
            !has(a, row, b->at[row * a->cols + i]))
            return false;
    return true;
}

/* The first layer that parts, of each position; -1: none. */
struct parting {
    int64_t layer;
    double margin;
    bool has_margin;
};

static int load_margin(const struct safetensors *st, int64_t layer,
                       struct table *out, struct err *err)
{
    char name[64];
    const struct tensor_info *info;

    snprintf(name, sizeof(name), "trace.layer%lld.margin", (long long)layer);
    info = safetensors_find(st, name);
    return info ? load(st, info, out, err) : 0;
}

static int compare_layer(const struct safetensors *ref,
                         const struct safetensors *cand,
                         const struct tensor_info *info, int64_t layer,
                         struct parting *partings, int64_t rows,
                         struct err *err)
{
    const struct tensor_info *other = safetensors_find(cand, info->name);
    struct table r = {0}, c = {0}, margin = {0};
    int ret = -1;

    if (!other) {
        err_set(err, ERR_INPUT,
                "the candidate's trace holds no tensor '%.100s'", info->name);
        goto out;
    }
    if (load(ref, info, &r, err) || load(cand, other, &c, err) ||
        load_margin(ref, layer, &margin, err))
        goto out;
    if (r.cols != c.cols || r.rows < rows || c.rows < rows) {
        err_set(err, ERR_INPUT, "tensor '%.100s': the traces' shapes differ",
                info->name);
        goto out;
    }
    for (int64_t row = 0; row < rows; row++) {
        struct parting *p = &partings[row];

        if ((p->layer >= 0 && p->layer <= layer) || is_same_choice(&r, &c, row))
            continue;
        p->layer = layer;
        p->has_margin = margin.cols == 1 && row < margin.rows;
        p->margin = p->has_margin ? margin.at[row] : 0;
    }
    ret = 0;
out:
    free(r.at);
    free(c.at);
    free(margin.at);
    return ret;
}

/* N of trace.layerN.experts, or -1. */
static int64_t layer_of(const char *name)
{
    int end = 0;
    int layer = -1;

    if (sscanf(name, "trace.layer%9d.experts%n", &layer, &end) != 1 || !end ||
        name[end])
        return -1;
    return layer;
}

static json_t *list(const struct parting *partings, const double *errors,
                    int64_t rows)
{
    json_t *first = json_array();
    int64_t count = 0;

    for (int64_t row = 0; row < rows; row++) {
        const struct parting *p = &partings[row];

        if (p->layer < 0 || count++ >= FLIPS_MOST)
            continue;
        json_t *item = json_object();
        json_object_set_new(item, "layer", json_integer(p->layer));
        json_object_set_new(item, "margin",
                            p->has_margin ? json_real_or_text(p->margin)
                                          : json_null());
        json_object_set_new(item, "position", json_integer(row));
        json_object_set_new(item, "relativeError",
                            json_real_or_text(errors[row]));
        json_array_append_new(first, item);
    }
    return json_pack("{s:I, s:o}", "count", (json_int_t)count, "first", first);
}

json_t *flips_compare(const char *reference, const char *candidate,
                      const double *errors, int64_t rows, struct err *err)
{
    struct safetensors *ref = safetensors_open(reference, err), *cand = NULL;
    struct parting *partings = xcalloc((size_t)rows + 1, sizeof(*partings));
    json_t *out = NULL;
    int ret = ref ? 0 : -1;

    for (int64_t row = 0; row < rows; row++)
        partings[row].layer = -1;
    if (ret == 0)
        cand = safetensors_open(candidate, err);
    if (!cand)
        ret = -1;
    for (size_t i = 0; ret == 0 && i < safetensors_count(ref); i++) {
        const struct tensor_info *info = safetensors_at(ref, i);
        int64_t layer = layer_of(info->name);

        if (layer >= 0)
            ret = compare_layer(ref, cand, info, layer, partings, rows, err);
    }
    if (ret == 0)
        out = list(partings, errors, rows);
    free(partings);
    safetensors_close(ref);
    safetensors_close(cand);
    return out;
}
