/* Traces: where two implementations first part, stage by stage. */
#include "gates/stages.h"

#include "base/buf.h"
#include "base/mem.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROW_CAP = 1 << 24 /* elements of the longest row */ };
/* Roundings and most defects keep a stage's norm; this much is another scale.
 */
static const double SCALE_OFF = 0.1;
/* A row this far away, relative to its norm, is no rounding: f16 and bf16
 * passes of a whole model stay below. */
static const double FAR = 0.03;
#define PREFIX "trace."

/* The part of a model that a stage belongs to, in the order of computing; a
 * name that we do not know stands between the embedding and the end. */
static int part_of(const char *stage)
{
    static const struct {
        const char *start;
        int part;
    } parts[] = {
        {"vision.patch_embed", 0}, {"vision.pos_embed", 1},
        {"vision.rotary", 2},      {"vision.block", 3},
        {"vision.merger", 5},      {"vision.", 4},
        {"input_embeds", 6},       {"embed", 6},
        {"final_norm", 8},         {"logits", 9},
    };

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (strncmp(stage, parts[i].start, strlen(parts[i].start)) == 0)
            return parts[i].part;
    return 7;
}

/* By bytes, but runs of digits by their number: layer2 before layer10. */
static int natural(const char *a, const char *b)
{
    while (*a && *b) {
        if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
            size_t la, lb;

            a += strspn(a, "0");
            b += strspn(b, "0");
            la = strspn(a, "0123456789");
            lb = strspn(b, "0123456789");
            if (la != lb)
                return la < lb ? -1 : 1;
            int order = memcmp(a, b, la);
            if (order)
                return order;
            a += la;
            b += lb;
        } else if (*a != *b) {
            break;
        } else {
            a++;
            b++;
        }
    }
    return (unsigned char)*a - (unsigned char)*b;
}

/* Of a stage inside a layer, the place of its last word; "out" closes it. */
static int place_of(const char *word)
{
    static const char *const words[] = {
        ".attn", ".mixer", ".router", ".experts", ".margin", ".mlp", ".out"};
    int count = (int)(sizeof(words) / sizeof(words[0]));

    for (int i = 0; i < count; i++)
        if (strcmp(word, words[i]) == 0)
            return 2 * i;
    return 2 * count - 3; /* before the end */
}

int stages_order(const char *a, const char *b)
{
    const char *wa = strrchr(a, '.'), *wb = strrchr(b, '.');

    if (part_of(a) != part_of(b))
        return part_of(a) - part_of(b);
    if (wa && wb && wa - a == wb - b && strncmp(a, b, (size_t)(wa - a)) == 0 &&
        place_of(wa) != place_of(wb))
        return place_of(wa) - place_of(wb);
    return natural(a, b);
}

static int by_order(const void *a, const void *b)
{
    return stages_order(*(const char *const *)a + strlen(PREFIX),
                        *(const char *const *)b + strlen(PREFIX));
}

/* Rows that are equal, the first that is not, and the ratio of norms. */
struct row_count {
    int64_t rows, equal, first, first_far;
    double norm_ratio;
};

/* Adds a row's squares; true when it lies farther away than roundings do. */
static bool add_row(const double *r, const double *c, size_t n,
                    struct lanes *sq_r, struct lanes *sq_c)
{
    struct lanes d = {{0}}, own = {{0}};

    for (size_t i = 0; i < n; i++) {
        sq_r->at[i % 16] += r[i] * r[i];
        sq_c->at[i % 16] += c[i] * c[i];
        own.at[i % 16] += r[i] * r[i];
        d.at[i % 16] += (c[i] - r[i]) * (c[i] - r[i]);
    }
    return sqrt(lanes_fold(&d)) > FAR * sqrt(lanes_fold(&own));
}

static int count_rows(const struct tensor_source *ref,
                      const struct tensor_source *cand, struct row_count *out,
                      struct err *err)
{
    const struct tensor_shape *shape = &ref->shape;
    int64_t width = shape->dims ? shape->size[shape->dims - 1] : 1;
    size_t n = (size_t)width, size_r = dtype_bits(ref->dtype) / 8;
    size_t size_c = dtype_bits(cand->dtype) / 8;
    void *raw_r = mem_array(n, size_r, (size_t)ROW_CAP * 8, err);
    void *raw_c = mem_array(n, size_c, (size_t)ROW_CAP * 8, err);
    double *r = mem_array(n, sizeof(*r), (size_t)ROW_CAP * 8, err);
    double *c = mem_array(n, sizeof(*c), (size_t)ROW_CAP * 8, err);
    struct lanes sq_r = {{0}}, sq_c = {{0}};
    int ret = raw_r && raw_c && r && c ? 0 : -1;

    out->rows = shape_count(shape) / width;
    out->equal = 0;
    out->first = out->first_far = -1;
    for (int64_t row = 0; row < out->rows && ret == 0; row++) {
        int64_t at = row * width;
        bool same, far;

        ret = ref->read(ref, at * (int64_t)size_r, n * size_r, raw_r, err);
        if (ret == 0)
            ret =
                cand->read(cand, at * (int64_t)size_c, n * size_c, raw_c, err);
        if (ret)
            break;
        dtype_to_f64(ref->dtype, raw_r, n, r);
        dtype_to_f64(cand->dtype, raw_c, n, c);
        same = ref->dtype == cand->dtype ? memcmp(raw_r, raw_c, n * size_r) == 0
                                         : memcmp(r, c, n * sizeof(*r)) == 0;
        far = add_row(r, c, n, &sq_r, &sq_c);
        out->equal += same;
        if (!same && out->first < 0)
            out->first = row;
        if (far && out->first_far < 0)
            out->first_far = row;
    }
    out->norm_ratio = sqrt(lanes_fold(&sq_c)) / sqrt(lanes_fold(&sq_r));
    free(raw_r);
    free(raw_c);
    free(r);
    free(c);
    return ret;
}

static json_t *shape_json(const struct tensor_shape *shape)
{
    json_t *out = json_array();

    for (int d = 0; d < shape->dims; d++)
        json_array_append_new(out, json_integer(shape->size[d]));
    return out;
}

/* The numbers of one stage; a reason instead when they cannot be had. */
struct stage_result {
    struct metric_result l2, most;
    struct row_count rows;
    const char *reason;
    char *made; /* a reason that was put together */
};

static int measure(const struct capture *reference,
                   const struct capture *candidate, const char *name,
                   struct tensor_source *ref, struct stage_result *out,
                   struct err *err)
{
    struct tensor_source cand;

    capture_find(reference, name, ref);
    if (!capture_find(candidate, name, &cand)) {
        const char *trouble = capture_trouble(candidate);

        out->made = trouble[0]
                        ? xasprintf("the candidate cannot be read: %s", trouble)
                        : NULL;
        out->reason = out->made ? out->made : "the candidate does not hold it";
        return 0;
    }
    if (metric_measure(METRIC_MAX_ABS, ref, &cand, &out->most, err) ||
        metric_measure(METRIC_RELATIVE_L2, ref, &cand, &out->l2, err))
        return -1;
    if (out->most.reason[0]) {
        out->reason = out->most.reason;
        return 0;
    }
    return count_rows(ref, &cand, &out->rows, err);
}

static json_t *stage_json(const char *name, const struct tensor_source *ref,
                          const struct stage_result *r)
{
    json_t *out = json_object();
    bool good = !r->reason;

    json_object_set_new(out, "stage", json_string(name + strlen(PREFIX)));
    json_object_set_new(out, "shape", shape_json(&ref->shape));
    json_object_set_new(out, "elements",
                        json_integer(shape_count(&ref->shape)));
    json_object_set_new(out, "differing",
                        good ? json_integer(r->most.differing) : json_null());
    json_object_set_new(out, "rows",
                        good ? json_integer(r->rows.rows) : json_null());
    json_object_set_new(out, "rows_equal",
                        good ? json_integer(r->rows.equal) : json_null());
    /* Undefined against a reference of zeros. */
    json_object_set_new(out, "relative_l2",
                        good && !r->l2.reason[0]
                            ? json_real_or_text(r->l2.value)
                            : json_null());
    json_object_set_new(out, "norm_ratio",
                        good && !r->l2.reason[0]
                            ? json_real_or_text(r->rows.norm_ratio)
                            : json_null());
    json_object_set_new(out, "max_abs",
                        good ? json_real_or_text(r->most.value) : json_null());
    json_object_set_new(out, "first_row",
                        good && r->rows.first >= 0 ? json_integer(r->rows.first)
                                                   : json_null());
    json_object_set_new(out, "first_far_row",
                        good && r->rows.first_far >= 0
                            ? json_integer(r->rows.first_far)
                            : json_null());
    json_object_set_new(out, "reason",
                        good ? json_null() : json_string(r->reason));
    return out;
}

/* What the differences of a stage with a far row look like. */
static const char *hint_for(const char *stage, const struct stage_result *r)
{
    bool is_text = part_of(stage) == 7;

    if (strncmp(stage, "vision.patch_embed", 18) == 0)
        return "the patches or the patch embedding differ: see the patches "
               "gate first";
    if (strncmp(stage, "vision.pos_embed", 16) == 0)
        return "the interpolation of position embeddings is suspected";
    if (strncmp(stage, "vision.rotary", 13) == 0)
        return "the vision tower's rotary angles are suspected";
    if (strncmp(stage, "input_embeds", 12) == 0)
        return "the embedding, or the insertion of image rows, is suspected";
    if (r->l2.reason[0] == '\0' && fabs(r->rows.norm_ratio - 1) > SCALE_OFF)
        return "its size is another: a scale, or a norm's weight (w or 1 + w), "
               "is suspected";
    if (is_text && r->rows.first_far == 1)
        return "position 0 is right, later ones are not: the rotary embedding, "
               "or what else depends on position, is suspected";
    if (is_text && r->rows.first_far > 1)
        return "the first positions are right, later ones are not: a window, a "
               "chunk's boundary or a state carried on is suspected";
    if (strcmp(stage, "final_norm") == 0)
        return "only the final norm differs: its weight's convention (w or "
               "1 + w) or its epsilon is suspected";
    return NULL;
}

json_t *stages_compare(const struct capture *reference,
                       const struct capture *candidate, struct err *err)
{
    const char **names;
    size_t count = capture_match(reference, PREFIX "*", &names);
    json_t *out = json_object(), *stages = json_array();
    const char *first = NULL, *suspect = NULL, *hint = NULL;
    int ret = 0;

    if (count == 0)
        ret = err_set(err, ERR_INPUT, "the reference holds no trace");
    else
        qsort(names, count, sizeof(*names), by_order);
    for (size_t i = 0; i < count && ret == 0; i++) {
        struct stage_result r = {.rows = {.first = -1, .first_far = -1}};
        struct tensor_source ref;

        ret = measure(reference, candidate, names[i], &ref, &r, err);
        if (ret == 0) {
            json_array_append_new(stages, stage_json(names[i], &ref, &r));
            if (!first && (r.reason || r.rows.first >= 0))
                first = names[i] + strlen(PREFIX);
            if (!suspect && (r.reason || r.rows.first_far >= 0)) {
                suspect = names[i] + strlen(PREFIX);
                hint = r.reason ? NULL : hint_for(suspect, &r);
            }
        }
        metric_result_release(&r.l2);
        metric_result_release(&r.most);
        free(r.made);
    }
    json_object_set_new(out, "stages", stages);
    json_object_set_new(out, "first", first ? json_string(first) : json_null());
    json_object_set_new(out, "suspect",
                        suspect ? json_string(suspect) : json_null());
    json_object_set_new(out, "hint", hint ? json_string(hint) : json_null());
    free(names);
    if (ret == 0)
        return out;
    json_decref(out);
    return NULL;
}

static void add_share(const json_t *stage, const char *part, const char *whole,
                      struct buf *out)
{
    double a = json_number_value(json_object_get(stage, part));
    double b = json_number_value(json_object_get(stage, whole));

    if (json_is_null(json_object_get(stage, part)))
        buf_addstr(out, "\t-");
    else
        buf_addf(out, "\t%.2f %%", 100 * a / b);
}

static void add_value(const json_t *value, struct buf *out)
{
    char text[32];

    buf_addch(out, '\t');
    if (json_is_integer(value)) {
        buf_addf(out, "%lld", (long long)json_integer_value(value));
    } else if (json_is_real(value)) {
        json_format_real(json_real_value(value), text);
        buf_addstr(out, text);
    } else {
        buf_addstr(out, json_is_string(value) ? json_string_value(value) : "-");
    }
}

void stages_text(const json_t *document, struct buf *out)
{
    const char *hint = json_string_value(json_object_get(document, "hint"));
    const char *first = json_string_value(json_object_get(document, "first"));
    const char *suspect =
        json_string_value(json_object_get(document, "suspect"));
    size_t i;
    json_t *stage;

    buf_addstr(
        out,
        "stage\telements differing\trows equal\trelative L2\t"
        "norm ratio\tlargest difference\tfirst row\tfirst far row\treason\n");
    json_array_foreach(json_object_get(document, "stages"), i, stage)
    {
        buf_addstr(out, json_string_value(json_object_get(stage, "stage")));
        add_share(stage, "differing", "elements", out);
        add_share(stage, "rows_equal", "rows", out);
        add_value(json_object_get(stage, "relative_l2"), out);
        add_value(json_object_get(stage, "norm_ratio"), out);
        add_value(json_object_get(stage, "max_abs"), out);
        add_value(json_object_get(stage, "first_row"), out);
        add_value(json_object_get(stage, "first_far_row"), out);
        add_value(json_object_get(stage, "reason"), out);
        buf_addch(out, '\n');
    }
    if (!first)
        buf_addstr(out, "every stage is equal\n");
    else if (!suspect)
        buf_addf(out,
                 "first to differ: %s; every row of every stage is as near "
                 "as roundings leave it\n",
                 first);
    else
        buf_addf(out, "first to differ: %s; first beyond roundings: %s%s%s\n",
                 first, suspect, hint ? "; " : "", hint ? hint : "");
}
