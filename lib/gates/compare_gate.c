/* One gate on one case: measured, judged, written down. */
#include "gates/compare_internal.h"

#include "base/mem.h"
#include "gates/explain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What one gate found in one tensor, before it is written down. */
struct finding {
    enum verdict verdict;
    struct metric_result result;
    char *reason;      /* NULL when the value says it all */
    char *explanation; /* or NULL */
    json_t *place;     /* of a pixel, or NULL */
};

static void finding_release(struct finding *f)
{
    metric_result_release(&f->result);
    free(f->reason);
    free(f->explanation);
    json_decref(f->place);
    *f = (struct finding){0};
}

static char *missing_reason(const struct one *one, const char *tensor,
                            bool in_reference, bool in_candidate)
{
    const char *who = in_candidate   ? "the reference does not hold"
                      : in_reference ? "the candidate does not hold"
                                     : "neither side holds";
    const char *remark =
        capture_remark(in_candidate ? one->reference : one->candidate);

    return xasprintf("%s '%s'%s%s%s", who, tensor, remark[0] ? " (" : "",
                     remark, remark[0] ? ")" : "");
}

static void find_missing(const struct one *one, const char *tensor,
                         bool in_reference, bool in_candidate,
                         struct finding *out)
{
    const char *trouble = capture_trouble(one->candidate);

    out->verdict = MISSING;
    if (!one->in_reference)
        out->reason = xstrdup("the reference has no capture of this case");
    else if (in_reference && !in_candidate && trouble[0]) {
        out->verdict = FAIL;
        out->reason = xasprintf("the candidate cannot be read: %s", trouble);
    } else if (!one->in_candidate)
        out->reason = xstrdup("the candidate has no capture of this case");
    else
        out->reason = missing_reason(one, tensor, in_reference, in_candidate);
}

static void find_explanation(const struct one *one, const char *tensor,
                             const struct tensor_source *ref,
                             const struct tensor_source *cand,
                             struct finding *f)
{
    const json_t *index = json_object_get(f->result.worst, "index");

    bool same_shape = shape_equal(&ref->shape, &cand->shape);

    if (strcmp(tensor, "patches") == 0 || strcmp(tensor, "image_grid_thw") == 0)
        f->explanation = explain_grid(one->reference, one->candidate);
    if (f->explanation)
        return; /* patches of another grid are not those of the same place */
    if (!same_shape && dtype_is_int(ref->dtype) && dtype_is_int(cand->dtype)) {
        f->explanation = explain_ids(ref, cand);
    } else if (strcmp(tensor, "position_ids") == 0) {
        f->explanation = explain_positions(one->reference, ref, cand);
    } else if (strcmp(tensor, "patches") == 0 && json_array_size(index) == 2 &&
               same_shape) {
        int64_t at =
            json_integer_value(json_array_get(index, 0)) * ref->shape.size[1] +
            json_integer_value(json_array_get(index, 1));

        f->place = explain_patch_place(one->reference, ref, at);
        f->explanation =
            explain_patches(one->plan->of_file, one->reference, ref, cand);
    }
}

/* One gate on one tensor; -1 only when the reference cannot be read. */
static int find(const struct gate *gate, const char *tensor,
                const struct one *one, struct finding *out, struct err *err)
{
    struct tensor_source ref, cand;
    bool in_reference = capture_find(one->reference, tensor, &ref);
    bool in_candidate = capture_find(one->candidate, tensor, &cand);

    if (!in_reference || !in_candidate) {
        find_missing(one, tensor, in_reference, in_candidate, out);
        return 0;
    }
    if (metric_measure(gate->metric, &ref, &cand, &out->result, err))
        return -1;
    if (out->result.reason[0])
        out->reason = xstrdup(out->result.reason);
    out->verdict = !out->reason && out->result.is_measured &&
                           gate_holds(gate, out->result.value)
                       ? PASS
                       : FAIL;
    if (out->verdict == FAIL)
        find_explanation(one, tensor, &ref, &cand, out);
    return 0;
}

/* Is a the one to show rather than b? */
static bool is_worse(const struct gate *gate, const struct finding *a,
                     const struct finding *b)
{
    static const int rank[VERDICTS] = {[FAIL] = 2, [MISSING] = 1};

    if (rank[a->verdict] != rank[b->verdict])
        return rank[a->verdict] > rank[b->verdict];
    if (isnan(a->result.value) || isnan(b->result.value))
        return isnan(a->result.value) && !isnan(b->result.value);
    return gate->relation == GATE_AT_LEAST ? a->result.value < b->result.value
                                           : a->result.value > b->result.value;
}

json_t *compare_value(const struct metric_result *r)
{
    if (!r->is_measured)
        return json_null();
    return r->is_count ? json_integer((json_int_t)r->value)
                       : json_real_or_text(r->value);
}

static json_t *gate_json(const struct gate *gate, const struct finding *f)
{
    json_t *out = json_object();
    const struct metric_result *r = &f->result;
    bool has_margin =
        gate->relation != GATE_NONE && r->is_measured && isfinite(r->value);
    double margin = gate->relation == GATE_AT_LEAST ? r->value - gate->limit
                                                    : gate->limit - r->value;

    json_object_set_new(out, "name", json_string(gate->name));
    json_object_set_new(out, "tensor", json_string(gate->tensor));
    json_object_set_new(out, "metric",
                        json_string(gate_metric_name(gate->metric)));
    if (gate->relation != GATE_NONE)
        json_object_set_new(
            out, gate->relation == GATE_AT_MOST ? "at_most" : "at_least",
            json_real(gate->limit));
    json_object_set_new(out, "value", compare_value(r));
    json_object_set_new(out, "verdict",
                        json_string(compare_verdicts[f->verdict]));
    json_object_set_new(out, "worst",
                        r->worst ? json_incref(r->worst) : json_null());
    json_object_set_new(out, "reason", compare_text(f->reason));
    json_object_set_new(out, "margin",
                        has_margin ? json_real(margin) : json_null());
    json_object_set_new(out, "compared", json_integer(r->compared));
    json_object_set_new(out, "differing", json_integer(r->differing));
    if (r->rows)
        json_object_set_new(out, "rows", json_integer(r->rows));
    if (f->place)
        json_object_set_new(out, "place", json_incref(f->place));
    json_object_set_new(out, "explanation", compare_text(f->explanation));
    return out;
}

static bool is_pattern(const char *tensor)
{
    return strpbrk(tensor, "*?[") != NULL;
}

/* A gate whose tensor is a pattern: each that the reference holds, the worst
 * one shown.  None at all is missing. */
static int judge_pattern(const struct gate *gate, const struct one *one,
                         struct finding *worst, const char **name,
                         int64_t *tensors, const char ***names, struct err *err)
{
    size_t count = capture_match(one->reference, gate->tensor, names);
    int64_t compared = 0, differing = 0;

    *tensors = (int64_t)count;
    if (count == 0) {
        find_missing(one, gate->tensor, false, false, worst);
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        struct finding f = {0};

        if (find(gate, (*names)[i], one, &f, err))
            return -1;
        compared += f.result.compared;
        differing += f.result.differing;
        if (i == 0 || is_worse(gate, &f, worst)) {
            finding_release(worst);
            *worst = f;
            *name = (*names)[i];
        } else {
            finding_release(&f);
        }
    }
    worst->result.compared = compared;
    worst->result.differing = differing;
    return 0;
}

json_t *compare_gate(const struct gate *gate, const struct one *one,
                     enum verdict *verdict, struct err *err)
{
    struct finding f = {0};
    const char **names = NULL, *name = NULL;
    int64_t tensors = 0;
    json_t *out = NULL;
    int ret = 0;

    if (gate->images_only && !one->has_images)
        f.verdict = NOT_APPLICABLE;
    else if (is_pattern(gate->tensor))
        ret = judge_pattern(gate, one, &f, &name, &tensors, &names, err);
    else
        ret = find(gate, gate->tensor, one, &f, err);
    if (ret == 0)
        out = gate_json(gate, &f);
    if (out && is_pattern(gate->tensor)) {
        json_object_set_new(out, "tensors", json_integer(tensors));
        json_object_set_new(out, "worst_tensor", compare_text(name));
    }
    *verdict = f.verdict;
    finding_release(&f);
    free(names);
    return out;
}
