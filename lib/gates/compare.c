/* Every gate on every case: measured, judged, written down. */
#include "gates/compare.h"

#include "base/bug.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "cases/cases.h"
#include "gates/explain.h"
#include "gates/gates.h"
#include "gates/metrics.h"
#include "hash/hash.h"
#include "receipt/receipt.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum verdict { PASS, FAIL, MISSING, NOT_APPLICABLE, VERDICTS };

static const char *const verdict_names[VERDICTS] = {
    [PASS] = "pass",
    [FAIL] = "fail",
    [MISSING] = "missing",
    [NOT_APPLICABLE] = "not applicable",
};

/* One case of the cases file. */
struct planned {
    const char *name;                /* in the document */
    const struct test_case *of_file; /* NULL without a cases file */
};

struct compare {
    struct compare_request request;
    struct gates gates;
    struct capture_set *reference, *candidate, *adjudicator;
    struct case_list cases; /* empty without a cases file */
    char protocol_sha256[HASH_SHA256_HEX];
    struct planned *planned; /* what is to be compared comes first */
    size_t count, all;       /* how many are, and how many there are */
    int64_t tally[VERDICTS];
    bool *gate_used;
    json_t **judged; /* as planned; NULL: not yet */
    bool any_fail;
};

/* One case under comparison. */
struct one {
    const struct planned *plan;
    struct capture *reference, *candidate, *adjudicator;
    bool in_reference, in_candidate, has_images;
};

/* A message may name a file whose name is no UTF-8. */
static json_t *text_or_null(const char *text)
{
    json_t *out = text && text[0] ? json_string(text) : json_null();

    if (!out) {
        char *plain = xstrdup(text);

        for (char *at = plain; *at; at++)
            if ((unsigned char)*at >= 0x80)
                *at = '?';
        out = json_string(plain);
        free(plain);
    }
    return out;
}

/* A JSON file and the digest of the very bytes that were parsed. */
static json_t *read_json(const char *path, char sha256[HASH_SHA256_HEX],
                         struct err *err)
{
    struct buf text = BUF_INIT;
    json_t *root = NULL;

    if (io_read_file(path, IO_JSON_CAP, &text, err) == 0) {
        hash_sha256(text.data, text.len, sha256);
        root = json_parse(text.data, text.len, err);
        if (!root)
            err_in(err, "%s", path);
    }
    buf_release(&text);
    return root;
}

static bool is_planned(const struct compare *run, const char *name)
{
    for (size_t i = 0; i < run->all; i++)
        if (strcmp(run->planned[i].name, name) == 0)
            return true;
    return false;
}

static void plan_from_file(struct compare *run)
{
    const struct case_list *list = &run->cases;

    run->planned = xcalloc(list->count + 1, sizeof(*run->planned));
    for (size_t i = 0; i < list->count; i++)
        run->planned[run->all++] =
            (struct planned){list->cases[i].name, &list->cases[i]};
}

static void plan_from_reference(struct compare *run)
{
    size_t count = capture_set_count(run->reference);

    run->planned = xcalloc(count + 1, sizeof(*run->planned));
    for (size_t i = 0; i < count; i++)
        run->planned[run->all++].name = capture_set_name(run->reference, i);
}

static int plan(struct compare *run, struct err *err)
{
    const char *only = run->request.only;

    if (only && path_check_name(only, err))
        return -1;
    if (only && capture_set_is_single(run->reference))
        capture_set_rename(run->reference, only);
    if (run->request.cases)
        plan_from_file(run);
    else
        plan_from_reference(run);
    if (only) {
        if (!is_planned(run, only))
            return err_set(err, ERR_INPUT, "no case '%s' in the %s", only,
                           run->request.cases ? "cases file" : "reference");
        size_t at = 0;
        while (strcmp(run->planned[at].name, only) != 0)
            at++;
        struct planned first = run->planned[0];
        run->planned[0] = run->planned[at];
        run->planned[at] = first;
    }
    if (run->all == 0)
        return err_set(err, ERR_INPUT, "no case to compare");
    run->count = only ? 1 : run->all;
    run->judged = xcalloc(run->count, sizeof(json_t *));
    return 0;
}

/* A single candidate capture is that of the reference's single case. */
static int match_single(struct compare *run, struct capture_set *other,
                        const char *what, struct err *err)
{
    bool single = capture_set_is_single(run->reference);

    if (capture_set_count(other) == 0)
        return 0;
    if (capture_set_is_single(other) != single)
        return err_set(err, ERR_INPUT, "the reference is %s, the %s %s",
                       single ? "one capture" : "a folder of captures", what,
                       single ? "a folder of captures" : "one capture");
    if (single)
        capture_set_rename(other, capture_set_name(run->reference, 0));
    return 0;
}

static int run_open(struct compare *run, struct err *err)
{
    const struct compare_request *r = &run->request;
    json_t *protocol;

    if (gates_read(r->gates, &run->gates, err))
        return -1;
    run->gate_used = xcalloc(run->gates.count, sizeof(*run->gate_used));
    if (r->protocol) {
        protocol = read_json(r->protocol, run->protocol_sha256, err);
        if (!protocol)
            return -1;
        json_decref(protocol);
    }
    if (r->cases && case_list_read(r->cases, &run->cases, err))
        return -1;
    run->reference = capture_set_open(&r->reference, err);
    if (!run->reference)
        return -1;
    run->candidate = capture_set_open(&r->candidate, err);
    if (!run->candidate ||
        capture_set_apart(run->reference, run->candidate, err) ||
        plan(run, err) || match_single(run, run->candidate, "candidate", err))
        return -1;
    if (r->adjudicator.count) {
        run->adjudicator = capture_set_open(&r->adjudicator, err);
        if (!run->adjudicator ||
            match_single(run, run->adjudicator, "adjudicator", err))
            return -1;
    }
    return 0;
}

void compare_free(struct compare *run)
{
    if (!run)
        return;
    for (size_t i = 0; run->judged && i < run->count; i++)
        json_decref(run->judged[i]);
    free(run->judged);
    gates_release(&run->gates);
    capture_set_close(run->reference);
    capture_set_close(run->candidate);
    capture_set_close(run->adjudicator);
    case_list_release(&run->cases);
    free(run->planned);
    free(run->gate_used);
    free(run);
}

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

static json_t *value_json(const struct metric_result *r)
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
    json_object_set_new(out, "value", value_json(r));
    json_object_set_new(out, "verdict", json_string(verdict_names[f->verdict]));
    json_object_set_new(out, "worst",
                        r->worst ? json_incref(r->worst) : json_null());
    json_object_set_new(out, "reason", text_or_null(f->reason));
    json_object_set_new(out, "margin",
                        has_margin ? json_real(margin) : json_null());
    json_object_set_new(out, "compared", json_integer(r->compared));
    json_object_set_new(out, "differing", json_integer(r->differing));
    if (r->rows)
        json_object_set_new(out, "rows", json_integer(r->rows));
    if (f->place)
        json_object_set_new(out, "place", json_incref(f->place));
    json_object_set_new(out, "explanation", text_or_null(f->explanation));
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

static int judge(struct compare *run, size_t at, const struct one *one,
                 json_t *gates, enum verdict *verdict, struct err *err)
{
    const struct gate *gate = &run->gates.items[at];
    struct finding f = {0};
    const char **names = NULL, *name = NULL;
    int64_t tensors = 0;
    int ret = 0;

    if (gate->images_only && !one->has_images)
        f.verdict = NOT_APPLICABLE;
    else if (is_pattern(gate->tensor))
        ret = judge_pattern(gate, one, &f, &name, &tensors, &names, err);
    else
        ret = find(gate, gate->tensor, one, &f, err);
    if (ret == 0) {
        json_t *item = gate_json(gate, &f);

        if (is_pattern(gate->tensor)) {
            json_object_set_new(item, "tensors", json_integer(tensors));
            json_object_set_new(item, "worst_tensor", text_or_null(name));
        }
        json_array_append_new(gates, item);
        run->tally[f.verdict]++;
        run->gate_used[at] |= f.verdict != NOT_APPLICABLE;
    }
    *verdict = f.verdict;
    finding_release(&f);
    free(names);
    return ret;
}

static bool shows_images(const struct capture *c)
{
    struct tensor_source s;

    if (capture_find(c, "image_grid_thw", &s) && shape_count(&s.shape) > 0)
        return true;
    return capture_find(c, "patches", &s) ||
           capture_find(c, "image_embeds", &s);
}

static bool shows_in_file(const struct planned *planned)
{
    return planned->of_file && planned->of_file->image_count > 0;
}

/* Captures of different prompts are not comparable, whatever the gates say. */
static char *different_prompts(const struct one *one)
{
    static const char *const ids[] = {"prompt_ids", "continuation_ids"};

    for (size_t i = 0; i < 2; i++) {
        struct tensor_source ref, cand;

        if (!capture_find(one->reference, ids[i], &ref) ||
            !capture_find(one->candidate, ids[i], &cand))
            continue;
        char *why = explain_ids(&ref, &cand);
        if (!why)
            continue;
        char *text =
            xasprintf("captures of different prompts: '%s': %s", ids[i], why);
        free(why);
        return text;
    }
    return NULL;
}

/* The first ids and the first byte that differ, with what is around them. */
static void find_parting(const struct compare *run, const struct one *one,
                         json_t *out)
{
    static const char *const ids[] = {"prompt_ids", "continuation_ids"};
    struct texts *texts = run->request.texts;
    struct buf reference = BUF_INIT, candidate = BUF_INIT;
    json_t *around = NULL, *prompt = NULL;

    for (size_t i = 0; i < 2 && !around; i++) {
        struct tensor_source ref, cand;

        if (capture_find(one->reference, ids[i], &ref) &&
            capture_find(one->candidate, ids[i], &cand))
            around =
                explain_around(one->plan->name, ids[i], &ref, &cand, texts);
    }
    if (capture_prompt(one->reference, &reference) &&
        capture_prompt(one->candidate, &candidate))
        prompt =
            explain_prompt(one->plan->of_file, &reference, &candidate, texts);
    if (around)
        json_object_set_new(out, "around", around);
    if (prompt)
        json_object_set_new(out, "prompt", prompt);
    buf_release(&reference);
    buf_release(&candidate);
}

static int find_copies(const struct one *one, json_t *out, struct err *err)
{
    static const char *const computed[] = {"logits", "hidden_states",
                                           "image_embeds", NULL};
    json_t *same =
        capture_same_bytes(one->reference, one->candidate, computed, err);

    if (!same)
        return -1;
    if (json_array_size(same))
        json_object_set(out, "same_bytes", same);
    json_decref(same);
    return 0;
}

/* How far each side lies from the f64 value. */
static int adjudicate(const struct one *one, json_t *out, struct err *err)
{
    static const struct {
        const char *tensor;
        enum gate_metric metric;
    } asked[] = {
        {"image_embeds", METRIC_RELATIVE_L2},
        {"hidden_states", METRIC_RELATIVE_L2},
        {"logits", METRIC_RELATIVE_L2},
        {"logits", METRIC_MAX_ABS_PROB},
    };

    for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
        struct tensor_source exact, side[2];
        const char *reason = NULL;
        struct metric_result result[2] = {{0}};
        json_t *item;

        if (!capture_find(one->adjudicator, asked[i].tensor, &exact))
            continue;
        bool has[2] = {
            capture_find(one->reference, asked[i].tensor, &side[0]),
            capture_find(one->candidate, asked[i].tensor, &side[1]),
        };
        item = json_object();
        json_object_set_new(item, "tensor", json_string(asked[i].tensor));
        json_object_set_new(item, "metric",
                            json_string(gate_metric_name(asked[i].metric)));
        for (int s = 0; s < 2; s++) {
            if (has[s] && metric_measure(asked[i].metric, &exact, &side[s],
                                         &result[s], err)) {
                json_decref(item);
                metric_result_release(&result[0]);
                return -1;
            }
            json_object_set_new(item, s == 0 ? "reference" : "candidate",
                                value_json(&result[s]));
            if (!reason)
                reason = has[s] ? result[s].reason : "a side does not hold it";
            if (!reason[0])
                reason = NULL;
        }
        json_object_set_new(item, "reason", text_or_null(reason));
        json_array_append_new(out, item);
        metric_result_release(&result[0]);
        metric_result_release(&result[1]);
    }
    return 0;
}

static void one_release(struct one *one)
{
    capture_close(one->reference);
    capture_close(one->candidate);
    capture_close(one->adjudicator);
}

static int one_open(struct compare *run, const struct planned *planned,
                    struct one *one, struct err *err)
{
    const char *name = planned->name;

    *one = (struct one){.plan = planned};
    one->in_reference = capture_set_has(run->reference, name);
    one->in_candidate = capture_set_has(run->candidate, name);
    one->reference = capture_open(run->reference, name, err);
    one->candidate =
        one->reference ? capture_open(run->candidate, name, err) : NULL;
    if (!one->candidate)
        return -1;
    if (run->adjudicator) {
        one->adjudicator = capture_open(run->adjudicator, name, err);
        if (!one->adjudicator)
            return -1;
    }
    one->has_images = shows_in_file(planned) || shows_images(one->reference) ||
                      shows_images(one->candidate);
    return 0;
}

static enum verdict sum_up(const int64_t seen[VERDICTS])
{
    static const enum verdict order[] = {FAIL, MISSING, PASS};

    for (size_t i = 0; i < 3; i++)
        if (seen[order[i]])
            return order[i];
    return NOT_APPLICABLE;
}

/* One case's element of the document; NULL on an error. */
static json_t *compare_case(struct compare *run, const struct planned *planned,
                            bool *is_fail, struct err *err)
{
    struct one one;
    int64_t seen[VERDICTS] = {0};
    json_t *out = json_object(), *gates = json_array(), *exact = json_array();
    char *reason = NULL;
    int ret = one_open(run, planned, &one, err);

    for (size_t i = 0; i < run->gates.count && ret == 0; i++) {
        enum verdict v = FAIL;

        ret = judge(run, i, &one, gates, &v, err);
        seen[v]++;
    }
    if (ret == 0 && one.adjudicator)
        ret = adjudicate(&one, exact, err);
    if (ret == 0) {
        reason = different_prompts(&one);
        if (reason)
            seen[FAIL]++;
        enum verdict v = sum_up(seen);
        *is_fail = v == FAIL || v == MISSING;
        json_object_set_new(out, "name", json_string(planned->name));
        json_object_set_new(out, "verdict", json_string(verdict_names[v]));
        json_object_set_new(out, "reason", text_or_null(reason));
        json_object_set_new(out, "images", json_boolean(one.has_images));
        json_object_set(out, "gates", gates);
        if (one.adjudicator)
            json_object_set(out, "adjudicator", exact);
        find_parting(run, &one, out);
        ret = find_copies(&one, out, err);
    }
    if (ret)
        err_in(err, "case '%s'", planned->name);
    json_decref(gates);
    json_decref(exact);
    free(reason);
    one_release(&one);
    if (ret == 0)
        return out;
    json_decref(out);
    return NULL;
}

/* Names of a set's cases that are not planned. */
static json_t *unplanned(const struct compare *run,
                         const struct capture_set *set)
{
    json_t *out = json_array();

    for (size_t i = 0; i < capture_set_count(set); i++)
        if (!is_planned(run, capture_set_name(set, i)))
            json_array_append_new(out, json_string(capture_set_name(set, i)));
    return out;
}

static json_t *write_down(const struct compare *run)
{
    json_t *out = json_object(), *counts = json_object();
    json_t *unused = json_array(), *cases = json_array();
    bool passed = !run->any_fail && run->tally[PASS] > 0;

    json_object_set_new(out, "verdict", json_string(passed ? "pass" : "fail"));
    if (run->request.about)
        json_object_set(out, "about", (json_t *)run->request.about);
    json_object_set_new(out, "gates_sha256", json_string(run->gates.sha256));
    if (run->request.protocol)
        json_object_set_new(out, "protocol_sha256",
                            json_string(run->protocol_sha256));
    if (run->request.cases)
        json_object_set_new(out, "cases_sha256",
                            json_string(run->cases.sha256));
    json_object_set_new(out, "reason",
                        run->any_fail || run->tally[PASS] > 0
                            ? json_null()
                            : json_string("no gate applied to any case: "
                                          "nothing was compared"));
    for (int v = 0; v < VERDICTS; v++)
        json_object_set_new(counts, verdict_names[v],
                            json_integer(run->tally[v]));
    json_object_set_new(out, "counts", counts);
    json_object_set_new(out, "extra_cases", unplanned(run, run->candidate));
    json_object_set_new(out, "not_compared", unplanned(run, run->reference));
    for (size_t i = 0; i < run->gates.count; i++)
        if (!run->gate_used[i])
            json_array_append_new(unused,
                                  json_string(run->gates.items[i].name));
    json_object_set_new(out, "unused_gates", unused);
    for (size_t i = 0; i < run->count; i++)
        json_array_append(cases, run->judged[i]);
    json_object_set_new(out, "cases", cases);
    return out;
}

struct compare *compare_begin(const struct compare_request *request,
                              struct err *err)
{
    struct compare *run = xcalloc(1, sizeof(*run));

    run->request = *request;
    if (run_open(run, err) == 0)
        return run;
    compare_free(run);
    return NULL;
}

size_t compare_count(const struct compare *run)
{
    return run->count;
}

const char *compare_name(const struct compare *run, size_t i)
{
    return run->planned[i].name;
}

int compare_judge(struct compare *run, size_t i, struct err *err)
{
    bool is_fail = true;

    if (run->judged[i])
        return 0;
    run->judged[i] = compare_case(run, &run->planned[i], &is_fail, err);
    run->any_fail |= is_fail;
    return run->judged[i] ? 0 : -1;
}

json_t *compare_end(struct compare *run, struct err *err)
{
    for (size_t i = 0; i < run->count; i++)
        if (compare_judge(run, i, err))
            return NULL;
    return write_down(run);
}

void compare_set_about(struct compare *c, const json_t *about)
{
    c->request.about = about;
}

json_t *compare_about(const char *receipt, const char *candidate,
                      struct err *err)
{
    struct receipt r = RECEIPT_INIT;
    char sha256[HASH_SHA256_HEX];

    if (receipt && (receipt_read(&r, receipt, err) ||
                    hash_sha256_file(receipt, sha256, NULL, err))) {
        receipt_release(&r);
        return NULL;
    }
    json_t *out = json_object();
    json_object_set_new(out, "pack", text_or_null(r.repository));
    json_object_set_new(out, "revision", text_or_null(r.revision));
    json_object_set_new(out, "candidate", text_or_null(candidate));
    json_object_set_new(out, "receipt_sha256",
                        text_or_null(receipt ? sha256 : NULL));
    receipt_release(&r);
    return out;
}

json_t *compare_run(const struct compare_request *request, struct err *err)
{
    struct compare *run = compare_begin(request, err);
    json_t *document = run ? compare_end(run, err) : NULL;

    compare_free(run);
    return document;
}

bool compare_passed(const json_t *document)
{
    const char *verdict = NULL;
    struct err err = ERR_INIT;

    return json_get_str(document, "verdict", &verdict, &err) == 0 &&
           strcmp(verdict, "pass") == 0;
}
