/* Reads frozen limits, and refuses what it does not understand. */
#include "gates/gates.h"

#include "base/io.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MAX_BYTES = 64, TENSOR_MAX_BYTES = 256, GATES_MAX = 1000 };

static const struct {
    const char *name;
    enum gate_relation relation;
} metrics[METRIC_COUNT] = {
    [METRIC_EXACT] = {"exact", GATE_NONE},
    [METRIC_MAX_ABS] = {"max_abs", GATE_AT_MOST},
    [METRIC_MEAN_ABS] = {"mean_abs", GATE_AT_MOST},
    [METRIC_RMS] = {"rms", GATE_AT_MOST},
    [METRIC_RELATIVE_L2] = {"relative_l2", GATE_AT_MOST},
    [METRIC_ROW_RELATIVE_L2] = {"row_relative_l2", GATE_AT_MOST},
    [METRIC_COSINE] = {"cosine", GATE_AT_LEAST},
    [METRIC_ROW_COSINE] = {"row_cosine", GATE_AT_LEAST},
    [METRIC_MAX_ABS_PROB] = {"max_abs_prob", GATE_AT_MOST},
    [METRIC_KL] = {"kl", GATE_AT_MOST},
    [METRIC_MEAN_KL] = {"mean_kl", GATE_AT_MOST},
    [METRIC_ARGMAX_EQUAL] = {"argmax_equal", GATE_NONE},
    [METRIC_ARGMAX_SHARE] = {"argmax_share", GATE_AT_LEAST},
    [METRIC_ARGMAX_LEAD] = {"argmax_lead", GATE_AT_MOST},
};

const char *gate_metric_name(enum gate_metric metric)
{
    return metrics[metric].name;
}

enum gate_relation gate_metric_relation(enum gate_metric metric)
{
    return metrics[metric].relation;
}

bool gate_holds(const struct gate *gate, double value)
{
    return gate->relation == GATE_AT_LEAST ? value >= gate->limit
                                           : value <= gate->limit;
}

/* A value that stands in tables and file names of reports. */
static int check_text(const char *key, const char *text, size_t max,
                      struct err *err)
{
    size_t len = strlen(text);

    if (len == 0)
        return err_set(err, ERR_INPUT, "'%s' is empty", key);
    if (len > max)
        return err_set(err, ERR_INPUT, "'%s' is longer than %zu bytes", key,
                       max);
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
            return err_set(err, ERR_INPUT, "'%s' holds a control character",
                           key);
    return 0;
}

static int read_metric(const char *name, enum gate_metric *out, struct err *err)
{
    for (int m = 0; m < METRIC_COUNT; m++) {
        if (strcmp(metrics[m].name, name) == 0) {
            *out = (enum gate_metric)m;
            return 0;
        }
    }
    return err_set(err, ERR_UNSUPPORTED, "unknown metric '%.60s'", name);
}

static int read_limit(const json_t *object, struct gate *gate, struct err *err)
{
    const char *const keys[] = {
        [GATE_NONE] = NULL,
        [GATE_AT_MOST] = "at_most",
        [GATE_AT_LEAST] = "at_least",
    };
    const char *metric = gate_metric_name(gate->metric);

    gate->relation = gate_metric_relation(gate->metric);
    for (int r = GATE_AT_MOST; r <= GATE_AT_LEAST; r++)
        if (r != (int)gate->relation && json_object_get(object, keys[r]))
            return err_set(
                err, ERR_INPUT, "metric '%s' takes %s%s, not '%s'", metric,
                gate->relation == GATE_NONE ? "no limit" : "",
                gate->relation == GATE_NONE ? "" : keys[gate->relation],
                keys[r]);
    if (gate->relation == GATE_NONE)
        return 0;
    if (json_get_real(object, keys[gate->relation], &gate->limit, err))
        return -1;
    if (!isfinite(gate->limit) || fabs(gate->limit) > 1e300)
        return err_set(err, ERR_INPUT, "'%s' is too large",
                       keys[gate->relation]);
    if (gate->relation == GATE_AT_MOST && gate->limit < 0)
        return err_set(err, ERR_INPUT, "'at_most' is negative");
    if (gate->relation == GATE_AT_LEAST && fabs(gate->limit) > 1)
        return err_set(err, ERR_INPUT, "'at_least' of a %s is beyond 1",
                       metric);
    return 0;
}

static int check_keys(const json_t *object, const char *const *known,
                      struct err *err)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)object, key, value)
    {
        size_t i = 0;

        while (known[i] && strcmp(known[i], key) != 0)
            i++;
        if (!known[i])
            return err_set(err, ERR_UNSUPPORTED, "unknown key '%.60s'", key);
    }
    return 0;
}

static int read_gate(const json_t *object, struct gate *gate, struct err *err)
{
    static const char *const known[] = {"name",    "tensor",   "metric",
                                        "at_most", "at_least", "when",
                                        "note",    NULL};
    const char *name, *tensor, *metric, *when, *note;

    if (!json_is_object(object))
        return err_set(err, ERR_INPUT, "is not an object");
    if (json_get_str(object, "name", &name, err) ||
        check_text("name", name, NAME_MAX_BYTES, err))
        return -1;
    gate->name = xstrdup(name);
    if (check_keys(object, known, err) ||
        json_get_str(object, "tensor", &tensor, err) ||
        check_text("tensor", tensor, TENSOR_MAX_BYTES, err) ||
        json_get_str(object, "metric", &metric, err))
        return -1;
    gate->tensor = xstrdup(tensor);
    if (read_metric(metric, &gate->metric, err) ||
        read_limit(object, gate, err))
        return -1;
    if (json_object_get(object, "note") &&
        json_get_str(object, "note", &note, err))
        return -1;
    if (!json_object_get(object, "when"))
        return 0;
    if (json_get_str(object, "when", &when, err))
        return -1;
    gate->images_only = strcmp(when, "images") == 0;
    if (!gate->images_only && strcmp(when, "always") != 0)
        return err_set(err, ERR_UNSUPPORTED, "unknown 'when' '%.60s'", when);
    return 0;
}

static int read_all(const json_t *root, struct gates *out, struct err *err)
{
    static const char *const known[] = {"gates", "note", NULL};
    json_t *list;

    if (!json_is_object(root))
        return err_set(err, ERR_INPUT, "is not an object");
    if (json_get_array(root, "gates", &list, err) ||
        check_keys(root, known, err))
        return -1;
    size_t count = json_array_size(list);
    if (count == 0)
        return err_set(err, ERR_INPUT, "'gates' lists none");
    if (count > GATES_MAX)
        return err_set(err, ERR_INPUT, "'gates' lists more than %d", GATES_MAX);
    out->items = xcalloc(count, sizeof(*out->items));
    for (size_t i = 0; i < count; i++) {
        struct gate *gate = &out->items[i];

        out->count++;
        if (read_gate(json_array_get(list, i), gate, err))
            return gate->name ? err_in(err, "gate '%s'", gate->name)
                              : err_in(err, "gate %zu", i + 1);
        for (size_t j = 0; j < i; j++)
            if (strcmp(out->items[j].name, gate->name) == 0)
                return err_set(err, ERR_INPUT, "gate '%s' is there twice",
                               gate->name);
    }
    return 0;
}

int gates_read(const char *path, struct gates *out, struct err *err)
{
    struct buf text = BUF_INIT;
    json_t *root = NULL;
    int ret = -1;

    *out = (struct gates){0};
    if (io_read_file(path, IO_JSON_CAP, &text, err))
        goto out;
    hash_sha256(text.data, text.len, out->sha256);
    root = json_parse(text.data, text.len, err);
    if (!root || read_all(root, out, err)) {
        err_in(err, "%s", path);
        goto out;
    }
    ret = 0;
out:
    if (ret)
        gates_release(out);
    json_decref(root);
    buf_release(&text);
    return ret;
}

void gates_release(struct gates *g)
{
    if (!g)
        return;
    for (size_t i = 0; i < g->count; i++) {
        free(g->items[i].name);
        free(g->items[i].tensor);
    }
    free(g->items);
    *g = (struct gates){0};
}
