/* Parity of hidden states: records of ids, and how far states lie apart. */
#include "gates/parity.h"

#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "gates/flips.h"
#include "gates/metrics.h"
#include "safetensors/safetensors.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { IDS_MAX = 1 << 24, ROW_CAP = 1 << 22 };
static const char DEFAULT_TENSOR[] = "hidden_states";

/* ---------------------------------------------------------------- input */

static int read_json(const char *path, json_t **out, struct err *err)
{
    struct buf text = BUF_INIT;
    struct err why = ERR_INIT;
    int ret = 0;

    *out = NULL;
    if (io_read_file(path, IO_JSON_CAP, &text, &why)) {
        ret = err_set(err, why.code, "failed to read %s", path);
    } else {
        *out = json_parse(text.data, text.len, &why);
        if (!*out)
            ret = err_set(err, why.code, "invalid parity JSON in %s: %s", path,
                          why.text);
    }
    buf_release(&text);
    return ret;
}

static int take_ids(const json_t *list, size_t i, struct parity_record *r,
                    struct err *err)
{
    if (!json_is_array(list))
        return err_set(err, ERR_INPUT, "record %zu: ids are not an array", i);
    r->count = json_array_size(list);
    if (r->count == 0)
        return err_set(err, ERR_INPUT, "record %zu holds no ids", i);
    r->ids = mem_array(r->count, sizeof(*r->ids),
                       (size_t)IDS_MAX * sizeof(*r->ids), err);
    if (!r->ids)
        return err_in(err, "record %zu", i);
    for (size_t k = 0; k < r->count; k++) {
        const json_t *id = json_array_get(list, k);

        if (!json_is_integer(id) || json_integer_value(id) < 0)
            return err_set(err, ERR_INPUT,
                           "record %zu: id %zu is not a whole number", i, k);
        r->ids[k] = json_integer_value(id);
    }
    return 0;
}

static int take_ids_file(const char *dir, const char *name, size_t i,
                         struct parity_record *r, struct err *err)
{
    char *path = path_join(dir, name);
    json_t *list;
    int ret = read_json(path, &list, err);

    if (ret == 0)
        ret = take_ids(list, i, r, err);
    json_decref(list);
    free(path);
    return ret;
}

static int take_record(const json_t *item, const char *dir, size_t i,
                       struct parity_record *r, struct err *err)
{
    const json_t *ids = json_object_get(item, "tokenIds");
    const char *file;

    if (!json_is_object(item))
        return err_set(err, ERR_INPUT, "record %zu is not an object", i);
    if (ids && json_has(item, "tokenIdsFile"))
        return err_set(err, ERR_INPUT,
                       "record %zu names both tokenIds and tokenIdsFile", i);
    if (!ids && !json_has(item, "tokenIdsFile"))
        return err_set(err, ERR_INPUT,
                       "record %zu names neither tokenIds nor tokenIdsFile", i);
    if (ids ? take_ids(ids, i, r, err)
            : json_get_str(item, "tokenIdsFile", &file, err) ||
                  take_ids_file(dir, file, i, r, err))
        return -1;
    r->tensor = DEFAULT_TENSOR;
    if (json_get_str(item, "hidden", &r->hidden, err) ||
        (json_has(item, "tensor") &&
         json_get_str(item, "tensor", &r->tensor, err)))
        return err_in(err, "record %zu", i);
    r->path = path_join(dir, r->hidden);
    if (json_has(item, "trace")) {
        if (json_get_str(item, "trace", &file, err))
            return err_in(err, "record %zu", i);
        r->trace = path_join(dir, file);
    }
    return 0;
}

int parity_read(const char *path, struct parity_input *out, struct err *err)
{
    char *dir = path_dir(path);
    json_t *list;
    int ret = -1;

    *out = (struct parity_input){.path = xstrdup(path)};
    if (read_json(path, &out->root, err))
        goto out;
    list = json_object_get(out->root, "records");
    if (json_array_size(list) == 0) {
        err_set(err, ERR_INPUT, "%s lists no records to compare", path);
        goto out;
    }
    out->records = xcalloc(json_array_size(list), sizeof(*out->records));
    for (size_t i = 0; i < json_array_size(list); i++) {
        out->count++;
        if (take_record(json_array_get(list, i), dir, i, &out->records[i], err))
            goto out;
    }
    ret = 0;
out:
    if (ret)
        parity_release(out);
    free(dir);
    return ret;
}

void parity_release(struct parity_input *input)
{
    if (!input)
        return;
    for (size_t i = 0; i < input->count; i++) {
        free(input->records[i].ids);
        free(input->records[i].path);
        free(input->records[i].trace);
    }
    free(input->records);
    free(input->path);
    json_decref(input->root);
    *input = (struct parity_input){0};
}

/* --------------------------------------------------------------- states */

/* One side: an open file, and its states as [positions, hidden]. */
struct states {
    char *path;
    struct safetensors *st;
    struct tensor_source source;
};

static int read_states(const struct tensor_source *s, int64_t offset,
                       size_t len, void *dst, struct err *err)
{
    return safetensors_read(s->context, s->detail, offset, len, dst, err);
}

static int refuse_missing(const struct states *s, const char *tensor,
                          struct err *err)
{
    json_t *names = json_array();

    for (size_t i = 0; i < safetensors_count(s->st); i++)
        json_array_append_new(names,
                              json_string(safetensors_at(s->st, i)->name));
    char *list = json_dumps(names, JSON_ENSURE_ASCII);
    err_set(err, ERR_INPUT, "%s holds no tensor \"%.100s\"; it holds %.250s",
            s->path, tensor, list);
    free(list);
    json_decref(names);
    return -1;
}

static int states_open(struct states *s, const char *path, const char *tensor,
                       struct err *err)
{
    const struct tensor_info *info;
    char shape[200];

    *s = (struct states){.path = xstrdup(path)};
    if (!io_exists(path))
        return err_set(err, ERR_INPUT, "failed to read %s", path);
    s->st = safetensors_open(path, err);
    if (!s->st)
        return -1;
    info = safetensors_find(s->st, tensor);
    if (!info)
        return refuse_missing(s, tensor, err);
    s->source = (struct tensor_source){.dtype = info->dtype,
                                       .shape = info->shape,
                                       .read = read_states,
                                       .context = s->st,
                                       .detail = info};
    struct tensor_shape *sh = &s->source.shape;
    if (sh->dims == 3 && sh->size[0] == 1)
        *sh = shape_of(2, sh->size + 1);
    shape_format(&info->shape, shape, sizeof(shape));
    if (sh->dims != 2 || shape_count(sh) <= 0)
        return err_set(err, ERR_INPUT,
                       "%s: tensor \"%.100s\" is %.100s, not "
                       "[positions, hidden]",
                       path, tensor, shape);
    if (!dtype_is_float(info->dtype))
        return err_set(err, ERR_INPUT, "%s: tensor \"%.100s\" is %s, no float",
                       path, tensor, dtype_name(info->dtype));
    return 0;
}

static void states_close(struct states *s)
{
    safetensors_close(s->st);
    free(s->path);
}

static int check_shapes(const struct parity_record *r, size_t i,
                        const struct states *ref, struct states *cand,
                        struct err *err)
{
    const int64_t *want = ref->source.shape.size;
    int64_t *have = cand->source.shape.size;

    if ((uint64_t)want[0] > r->count)
        return err_set(err, ERR_INPUT,
                       "%s: holds %" PRId64 " positions, record %zu has %zu "
                       "tokens",
                       ref->path, want[0], i, r->count);
    if (have[1] != want[1])
        return err_set(err, ERR_INPUT,
                       "%s: is %" PRId64 " wide, the model's states in %s are "
                       "%" PRId64,
                       ref->path, want[1], cand->path, have[1]);
    if (have[0] < want[0])
        return err_set(err, ERR_INPUT,
                       "%s: holds %" PRId64
                       " positions, the reference %" PRId64,
                       cand->path, have[0], want[0]);
    have[0] = want[0]; /* states past the reference's are not judged */
    return 0;
}

/* -------------------------------------------------------------- metrics */

struct totals {
    double sq_d, sq_r, largest, cosines, smallest_cosine;
    bool odd;       /* something was not finite */
    double *errors; /* of each position */
    int64_t positions, equal;
};

static void totals_add(struct totals *t, const double *r, const double *c,
                       int64_t n, bool is_equal)
{
    struct lanes sq_d = {{0}}, sq_r = {{0}}, sq_c = {{0}}, dot = {{0}};
    double cosine;

    for (int64_t i = 0; i < n; i++) {
        double d = c[i] - r[i];

        sq_d.at[i % 16] += d * d;
        sq_r.at[i % 16] += r[i] * r[i];
        sq_c.at[i % 16] += c[i] * c[i];
        dot.at[i % 16] += c[i] * r[i];
        if (fabs(d) > t->largest)
            t->largest = fabs(d);
        t->odd |= !isfinite(r[i]) || !isfinite(c[i]);
    }
    t->sq_d += lanes_fold(&sq_d);
    t->sq_r += lanes_fold(&sq_r);
    cosine = cosine_of(lanes_fold(&dot), lanes_fold(&sq_r), lanes_fold(&sq_c));
    t->cosines += cosine;
    if (t->positions == 0 || !(cosine >= t->smallest_cosine))
        t->smallest_cosine = cosine;
    t->errors[t->positions++] =
        sqrt(lanes_fold(&sq_d)) / sqrt(lanes_fold(&sq_r));
    t->equal += is_equal;
}

/* Ascending, NaN last. */
static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    if (isnan(x) || isnan(y))
        return isnan(x) - isnan(y);
    return x < y ? -1 : x > y;
}

static json_t *real_of(const struct totals *t, double value)
{
    return json_real_or_text(t->odd ? NAN : value);
}

/* Into `out`, whose keys stay sorted; hidden and tokens only of a record. */
static void totals_json(struct totals *t, const struct parity_record *record,
                        json_t *flips, json_t *gates, json_t *out)
{
    size_t n = (size_t)t->positions;

    qsort(t->errors, n, sizeof(*t->errors), by_value);
    json_object_set_new(out, "equalPositions", json_integer(t->equal));
    if (flips)
        json_object_set_new(out, "flips", flips);
    if (gates)
        json_object_set_new(out, "gates", gates);
    if (record)
        json_object_set_new(out, "hidden", json_string(record->hidden));
    json_object_set_new(out, "largestDifference", real_of(t, t->largest));
    json_object_set_new(out, "meanCosine",
                        real_of(t, t->cosines / (double)t->positions));
    json_object_set_new(out, "medianPositionRelativeError",
                        real_of(t, t->errors[(n - 1) / 2]));
    json_object_set_new(out, "positions", json_integer(t->positions));
    json_object_set_new(out, "relativeError",
                        real_of(t, sqrt(t->sq_d) / sqrt(t->sq_r)));
    json_object_set_new(out, "smallestCosine", real_of(t, t->smallest_cosine));
    if (record)
        json_object_set_new(out, "tokens",
                            json_integer((json_int_t)record->count));
    json_object_set_new(out, "worstPositionRelativeError",
                        real_of(t, t->errors[n - 1]));
}

static int add_rows(const struct states *ref, const struct states *cand,
                    struct totals *one, struct totals *all, struct err *err)
{
    const struct tensor_source *rs = &ref->source, *cs = &cand->source;
    int64_t rows = rs->shape.size[0], width = rs->shape.size[1];
    size_t n = (size_t)width, size_r = dtype_bits(rs->dtype) / 8;
    size_t size_c = dtype_bits(cs->dtype) / 8;
    void *raw_r = mem_array(n, size_r, (size_t)ROW_CAP * 8, err);
    void *raw_c = mem_array(n, size_c, (size_t)ROW_CAP * 8, err);
    double *r = mem_array(n, sizeof(*r), (size_t)ROW_CAP * 8, err);
    double *c = mem_array(n, sizeof(*c), (size_t)ROW_CAP * 8, err);
    int ret = raw_r && raw_c && r && c ? 0 : -1;

    for (int64_t row = 0; row < rows && ret == 0; row++) {
        int64_t at = row * width;
        bool same;

        ret = rs->read(rs, at * (int64_t)size_r, n * size_r, raw_r, err);
        if (ret == 0)
            ret = cs->read(cs, at * (int64_t)size_c, n * size_c, raw_c, err);
        if (ret)
            break;
        dtype_to_f64(rs->dtype, raw_r, n, r);
        dtype_to_f64(cs->dtype, raw_c, n, c);
        same = rs->dtype == cs->dtype ? memcmp(raw_r, raw_c, n * size_r) == 0
                                      : memcmp(r, c, n * sizeof(*r)) == 0;
        totals_add(one, r, c, width, same);
        totals_add(all, r, c, width, same);
    }
    free(raw_r);
    free(raw_c);
    free(r);
    free(c);
    return ret;
}

/* Every gate on hidden_states; *failed is set when one does not hold. */
static json_t *judge(const struct gates *gates, const struct states *ref,
                     const struct states *cand, bool *failed, struct err *err)
{
    json_t *out = json_array();

    for (size_t i = 0; i < gates->count; i++) {
        const struct gate *gate = &gates->items[i];
        struct metric_result r = {0};
        json_t *item = json_object();
        bool holds = false;

        if (strcmp(gate->tensor, DEFAULT_TENSOR) == 0) {
            if (metric_measure(gate->metric, &ref->source, &cand->source, &r,
                               err)) {
                json_decref(item);
                json_decref(out);
                return NULL;
            }
            holds = !r.reason[0] && gate_holds(gate, r.value);
        } else {
            r.is_measured = false;
        }
        json_object_set_new(item, "metric",
                            json_string(gate_metric_name(gate->metric)));
        json_object_set_new(item, "name", json_string(gate->name));
        json_object_set_new(item, "reason",
                            r.reason[0]     ? json_string(r.reason)
                            : r.is_measured ? json_null()
                                            : json_string("parity compares "
                                                          "hidden_states "
                                                          "alone"));
        json_object_set_new(item, "value",
                            r.is_measured ? json_real_or_text(r.value)
                                          : json_null());
        json_object_set_new(item, "verdict",
                            json_string(holds           ? "pass"
                                        : r.is_measured ? "fail"
                                                        : "missing"));
        json_array_append_new(out, item);
        *failed |= !holds;
        metric_result_release(&r);
    }
    return out;
}

/* Of a record whose errors are not sorted yet. */
static json_t *record_flips(const struct parity_record *record, size_t i,
                            const char *dir, const struct totals *t,
                            struct err *err)
{
    char *name = xasprintf("trace-%zu.safetensors", i);
    char *path = path_join(dir, name);
    json_t *flips =
        flips_compare(record->trace, path, t->errors, t->positions, err);

    if (!flips)
        err_in(err, "record %zu", i);
    free(path);
    free(name);
    return flips;
}

static json_t *compare_record(const struct parity_record *record, size_t i,
                              const char *dir, const struct gates *gates,
                              struct totals *all, bool *failed, struct err *err)
{
    char *name = xasprintf("states-%zu.safetensors", i);
    char *path = path_join(dir, name);
    struct states ref = {0}, cand = {0};
    struct totals one = {0};
    json_t *out = NULL, *judged = NULL, *flips = NULL;

    if (states_open(&ref, record->path, record->tensor, err) ||
        states_open(&cand, path, DEFAULT_TENSOR, err) ||
        check_shapes(record, i, &ref, &cand, err))
        goto out;
    if (io_is_same(ref.path, cand.path)) {
        err_set(err, ERR_INPUT,
                "%s and %s are the same file: comparing it with itself "
                "measures nothing",
                ref.path, cand.path);
        goto out;
    }
    size_t n = (size_t)ref.source.shape.size[0];
    one.errors = xcalloc(n, sizeof(*one.errors));
    all->errors =
        xrealloc(all->errors, ((size_t)all->positions + n) * sizeof(double));
    if (add_rows(&ref, &cand, &one, all, err))
        goto out;
    if (record->trace) {
        flips = record_flips(record, i, dir, &one, err);
        if (!flips)
            goto out;
    }
    if (gates) {
        judged = judge(gates, &ref, &cand, failed, err);
        if (!judged)
            goto out;
    }
    out = json_object();
    totals_json(&one, record, flips, judged, out);
    flips = judged = NULL;
out:
    json_decref(flips);
    json_decref(judged);
    free(one.errors);
    states_close(&ref);
    states_close(&cand);
    free(name);
    free(path);
    return out;
}

json_t *parity_compare(const struct parity_input *input, const char *states,
                       const char *model, const char *revision,
                       const struct gates *gates, struct err *err)
{
    json_t *out = json_object(), *records = json_array();
    json_t *overall = json_object();
    struct totals all = {0};
    bool failed = false;

    for (size_t i = 0; i < input->count; i++) {
        json_t *item = compare_record(&input->records[i], i, states, gates,
                                      &all, &failed, err);

        if (!item) {
            json_decref(records);
            json_decref(overall);
            json_decref(out);
            free(all.errors);
            return NULL;
        }
        json_array_append_new(records, item);
    }
    totals_json(&all, NULL, NULL, NULL, overall);
    json_object_set_new(out, "model", model ? json_string(model) : json_null());
    json_object_set_new(out, "modelRevision",
                        revision ? json_string(revision) : json_null());
    json_object_set_new(out, "overall", overall);
    json_object_set_new(out, "records", records);
    if (gates)
        json_object_set_new(out, "verdict",
                            json_string(failed ? "fail" : "pass"));
    free(all.errors);
    return out;
}

static void add_line(const json_t *value, const char *path, struct buf *out)
{
    const char *key;
    size_t i;
    json_t *item;

    if (json_is_object(value)) {
        json_object_foreach((json_t *)value, key, item)
        {
            char *below = xasprintf("%s%s%s", path, path[0] ? "." : "", key);

            add_line(item, below, out);
            free(below);
        }
    } else if (json_is_array(value)) {
        json_array_foreach(value, i, item)
        {
            char *below = xasprintf("%s.%zu", path, i);

            add_line(item, below, out);
            free(below);
        }
    } else {
        buf_addf(out, "%s: ", path);
        if (json_is_string(value)) {
            buf_addstr(out, json_string_value(value));
            buf_addch(out, '\n');
        } else {
            json_write(value, out); /* its own line end */
        }
    }
}

void parity_text(const json_t *document, struct buf *out)
{
    add_line(document, "", out);
}

bool parity_passed(const json_t *document)
{
    const json_t *overall = json_object_get(document, "overall");
    const json_t *verdict = json_object_get(document, "verdict");

    if (!json_is_number(json_object_get(overall, "relativeError")))
        return false;
    return !verdict || strcmp(json_string_value(verdict), "pass") == 0;
}
