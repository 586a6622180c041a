/* One case: its captures, every gate on them, and what else parts them. */
#include "gates/compare_internal.h"

#include "base/mem.h"
#include "gates/explain.h"

#include <stdlib.h>

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
                                compare_value(&result[s]));
            if (!reason)
                reason = has[s] ? result[s].reason : "a side does not hold it";
            if (!reason[0])
                reason = NULL;
        }
        json_object_set_new(item, "reason", compare_text(reason));
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

json_t *compare_case(struct compare *run, const struct planned *planned,
                     bool *is_fail, struct err *err)
{
    struct one one;
    int64_t seen[VERDICTS] = {0};
    json_t *out = json_object(), *gates = json_array(), *exact = json_array();
    char *reason = NULL;
    int ret = one_open(run, planned, &one, err);

    for (size_t i = 0; i < run->gates.count && ret == 0; i++) {
        enum verdict v = FAIL;
        json_t *item = compare_gate(&run->gates.items[i], &one, &v, err);

        if (!item) {
            ret = -1;
            break;
        }
        json_array_append_new(gates, item);
        run->tally[v]++;
        run->gate_used[i] |= v != NOT_APPLICABLE;
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
        json_object_set_new(out, "verdict", json_string(compare_verdicts[v]));
        json_object_set_new(out, "reason", compare_text(reason));
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
