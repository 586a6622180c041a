/*
 * Metrics against numpy in float64 (tests/unit/gates_metrics_expected.py prints
 * the table), and what must never pass.
 */
#include "gates/metrics.h"
#include "tap.h"

#include <string.h>

static const struct {
    int64_t rows, columns;
    bool is_f16; /* the reference; the candidate is f32 */
    enum gate_metric metric;
    double value;
    int64_t row, column; /* of the worst element, where numpy names it */
} expected[] = {
    {5, 1000, false, METRIC_MAX_ABS, 0.009997844696044922, 4, 708},
    {5, 1000, false, METRIC_MEAN_ABS, 0.005000468515849206, -1, -1},
    {5, 1000, false, METRIC_RMS, 0.005778644639079094, -1, -1},
    {5, 1000, false, METRIC_RELATIVE_L2, 0.0012506545438374784, -1, -1},
    {5, 1000, false, METRIC_ROW_RELATIVE_L2, 0.0012933411684550207, -1, -1},
    {5, 1000, false, METRIC_COSINE, 0.9999992215290173, -1, -1},
    {5, 1000, false, METRIC_ROW_COSINE, 0.9999991681029613, -1, -1},
    {5, 1000, false, METRIC_MAX_ABS_PROB, 0.00015133591887356128, 2, 726},
    {5, 1000, false, METRIC_KL, 1.6943651254483234e-05, -1, -1},
    {5, 1000, false, METRIC_MEAN_KL, 1.5120196080472875e-05, -1, -1},
    {5, 1000, false, METRIC_ARGMAX_EQUAL, 1.0, -1, -1},
    {5, 1000, false, METRIC_ARGMAX_SHARE, 0.8, -1, -1},
    {5, 1000, false, METRIC_ARGMAX_LEAD, 0.01129770278930664, -1, -1},
    {3, 70001, false, METRIC_MAX_ABS, 0.009999871253967285, 1, 10351},
    {3, 70001, false, METRIC_MEAN_ABS, 0.004999556516708026, -1, -1},
    {3, 70001, false, METRIC_RMS, 0.0057720268577086, -1, -1},
    {3, 70001, false, METRIC_RELATIVE_L2, 0.0012486462161975496, -1, -1},
    {3, 70001, false, METRIC_ROW_RELATIVE_L2, 0.0012504248231968397, -1, -1},
    {3, 70001, false, METRIC_COSINE, 0.9999992221793315, -1, -1},
    {3, 70001, false, METRIC_ROW_COSINE, 0.999999220449467, -1, -1},
    {3, 70001, false, METRIC_MAX_ABS_PROB, 2.342992154500957e-06, 2, 68724},
    {3, 70001, false, METRIC_KL, 1.5451796627303144e-05, -1, -1},
    {3, 70001, false, METRIC_MEAN_KL, 1.5404872835670118e-05, -1, -1},
    {3, 70001, false, METRIC_ARGMAX_EQUAL, 2.0, -1, -1},
    {3, 70001, false, METRIC_ARGMAX_SHARE, 0.3333333333333333, -1, -1},
    {3, 70001, false, METRIC_ARGMAX_LEAD, 0.000484466552734375, -1, -1},
    {7, 37, true, METRIC_MAX_ABS, 0.011371135711669922, 1, 30},
    {7, 37, true, METRIC_MEAN_ABS, 0.005164359267180764, -1, -1},
    {7, 37, true, METRIC_RMS, 0.006023102761064619, -1, -1},
    {7, 37, true, METRIC_RELATIVE_L2, 0.001353212451426738, -1, -1},
    {7, 37, true, METRIC_ROW_RELATIVE_L2, 0.0015108931649709804, -1, -1},
    {7, 37, true, METRIC_COSINE, 0.9999990879029805, -1, -1},
    {7, 37, true, METRIC_ROW_COSINE, 0.9999988733876821, -1, -1},
    {7, 37, true, METRIC_MAX_ABS_PROB, 0.0017659162891007218, 4, 3},
    {7, 37, true, METRIC_KL, 1.7935444102315798e-05, -1, -1},
    {7, 37, true, METRIC_MEAN_KL, 1.1097322195439686e-05, -1, -1},
    {7, 37, true, METRIC_ARGMAX_EQUAL, 0.0, -1, -1},
    {7, 37, true, METRIC_ARGMAX_SHARE, 1.0, -1, -1},
    {7, 37, true, METRIC_ARGMAX_LEAD, 0.0, -1, -1},
    {1, 2, false, METRIC_MAX_ABS, 0.005795687437057495, 0, 0},
    {1, 2, false, METRIC_MEAN_ABS, 0.003412112593650818, -1, -1},
    {1, 2, false, METRIC_RMS, 0.004162203909693959, -1, -1},
    {1, 2, false, METRIC_RELATIVE_L2, 0.001246798989198208, -1, -1},
    {1, 2, false, METRIC_ROW_RELATIVE_L2, 0.001246798989198208, -1, -1},
    {1, 2, false, METRIC_COSINE, 0.9999992298766678, -1, -1},
    {1, 2, false, METRIC_ROW_COSINE, 0.9999992298766678, -1, -1},
    {1, 2, false, METRIC_MAX_ABS_PROB, 8.727562595478577e-05, -1, -1},
    {1, 2, false, METRIC_KL, 2.9746433731461157e-07, -1, -1},
    {1, 2, false, METRIC_MEAN_KL, 2.9746433731461157e-07, -1, -1},
    {1, 2, false, METRIC_ARGMAX_EQUAL, 0.0, -1, -1},
    {1, 2, false, METRIC_ARGMAX_SHARE, 1.0, -1, -1},
    {1, 2, false, METRIC_ARGMAX_LEAD, 0.0, -1, -1},
};

static double noise(uint64_t i, uint64_t seed)
{
    uint64_t h = (i * 2654435761U + seed) % 4294967296U;

    h = (h ^ h >> 15) * 2246822519U % 4294967296U;
    return (double)h / 2147483648.0 - 1;
}

static int read_memory(const struct tensor_source *s, int64_t offset,
                       size_t len, void *dst, struct err *err)
{
    if (!s->context)
        return err_set(err, ERR_INPUT, "cut short");
    memcpy(dst, (const char *)s->context + offset, len);
    return 0;
}

static struct tensor_source source(enum dtype dtype, struct tensor_shape shape,
                                   const void *data)
{
    return (struct tensor_source){
        .dtype = dtype, .shape = shape, .read = read_memory, .context = data};
}

static void test_numpy_agrees(void)
{
    static uint16_t half[70001 * 3];
    static float ref[70001 * 3], cand[70001 * 3];

    for (size_t t = 0; t < sizeof(expected) / sizeof(expected[0]); t++) {
        int64_t n = expected[t].rows * expected[t].columns;
        struct tensor_shape shape =
            SHAPE(expected[t].rows, expected[t].columns);
        struct metric_result got;
        struct err err = ERR_INIT;

        for (int64_t i = 0; i < n; i++) {
            ref[i] = (float)(8 * noise((uint64_t)i, 1));
            cand[i] = (float)((double)ref[i] + 0.01 * noise((uint64_t)i, 99));
            half[i] = f16_from_f32(ref[i]);
        }
        struct tensor_source r = expected[t].is_f16
                                     ? source(DTYPE_F16, shape, half)
                                     : source(DTYPE_F32, shape, ref);
        struct tensor_source c = source(DTYPE_F32, shape, cand);
        enum gate_metric m = expected[t].metric;
        double want = expected[t].value;
        bool is_kl = m == METRIC_KL || m == METRIC_MEAN_KL;
        int state = metric_measure(m, &r, &c, &got, &err);

        ok(state == 0 && got.reason[0] == '\0' &&
               fabs(got.value - want) <= fabs(want) * (is_kl ? 1e-9 : 1e-12),
           "%s of [%d, %d] is numpy's %.6g", gate_metric_name(m),
           (int)expected[t].rows, (int)expected[t].columns, want);
        if (got.value != want)
            diag("got %.17g, numpy %.17g", got.value, want);
        if (expected[t].row >= 0) {
            const json_t *index = json_object_get(got.worst, "index");

            ok(json_integer_value(json_array_get(index, 0)) ==
                       expected[t].row &&
                   json_integer_value(json_array_get(index, 1)) ==
                       expected[t].column,
               "  and its place is numpy's argmax");
        }
        metric_result_release(&got);
    }
}

enum { N = 6 };

/* Floats that must fail, and how. */
static const struct {
    const char *name;
    enum gate_metric metric;
    double ref[N], cand[N];
    const char *says;
} undefined[] = {
    {"a NaN in the candidate",
     METRIC_MAX_ABS,
     {1, 2, 3, 4, 5, 6},
     {1, 2, NAN, 4, 5, 6},
     "the candidate holds NaN: 1 of 6 elements, first at [0,2]"},
    {"a NaN on both sides",
     METRIC_EXACT,
     {1, 2, NAN, 4, 5, 6},
     {1, 2, NAN, 4, 5, 6},
     "the candidate holds NaN: 1 of 6 elements, first at [0,2]"},
    {"a NaN in the reference",
     METRIC_ARGMAX_EQUAL,
     {1, 2, 3, 4, NAN, 6},
     {1, 2, 3, 4, 5, 6},
     "the reference holds NaN: 1 of 6 elements, first at [1,1]"},
    {"an infinity on one side",
     METRIC_RELATIVE_L2,
     {1, 2, 3, 4, 5, 6},
     {1, INFINITY, 3, 4, 5, 6},
     "infinite where the other side is not: 1 of 6 elements, first at [0,1]"},
    {"infinities of two signs",
     METRIC_MAX_ABS,
     {1, -INFINITY, 3, 4, 5, 6},
     {1, INFINITY, 3, 4, 5, 6},
     "infinite where the other side is not: 1 of 6 elements, first at [0,1]"},
    {"an infinite maximum under a softmax",
     METRIC_MAX_ABS_PROB,
     {1, INFINITY, 3, 4, 5, 6},
     {1, INFINITY, 3, 4, 5, 6},
     "softmax of row 0 is undefined: infinite"},
    {"the direction of a constant",
     METRIC_COSINE,
     {1, 2, 3, 4, 5, 6},
     {7, 7, 7, 7, 7, 7},
     "cosine is undefined: the candidate is constant"},
    {"two constants, though in one direction",
     METRIC_COSINE,
     {2, 2, 2, 2, 2, 2},
     {7, 7, 7, 7, 7, 7},
     "cosine is undefined: the reference is constant"},
    {"a constant row among others",
     METRIC_ROW_COSINE,
     {1, 2, 3, 4, 5, 6},
     {1, 2, 3, 7, 7, 7},
     "cosine of row 1 is undefined: the candidate is constant"},
    {"a distance relative to zero",
     METRIC_RELATIVE_L2,
     {0, 0, 0, 0, 0, 0},
     {0, 0, 0, 0, 0, 0},
     "relative_l2 is undefined: the reference is zero everywhere"},
    {"a row relative to zero",
     METRIC_ROW_RELATIVE_L2,
     {1, 2, 3, 0, 0, 0},
     {1, 2, 3, 0, 0, 0},
     "relative_l2 of row 1 is undefined: the reference is zero"},
    {"the argmax of a constant row",
     METRIC_ARGMAX_EQUAL,
     {3, 2, 1, 6, 5, 4},
     {3, 2, 1, 8, 8, 8},
     "argmax of row 1 is undefined: the candidate is constant"},
};

static void test_undefined_fails(void)
{
    for (size_t t = 0; t < sizeof(undefined) / sizeof(undefined[0]); t++) {
        struct metric_result got;
        struct err err = ERR_INIT;
        struct tensor_source r =
            source(DTYPE_F64, SHAPE(2, 3), undefined[t].ref);
        struct tensor_source c =
            source(DTYPE_F64, SHAPE(2, 3), undefined[t].cand);

        metric_measure(undefined[t].metric, &r, &c, &got, &err);
        is_str(got.reason, undefined[t].says, undefined[t].name);
        metric_result_release(&got);
    }
}

static void test_one_element(void)
{
    const double x = 3, y = 4;
    static const enum gate_metric none[] = {METRIC_COSINE, METRIC_ROW_COSINE,
                                            METRIC_ARGMAX_EQUAL,
                                            METRIC_ARGMAX_SHARE};
    struct tensor_source r = source(DTYPE_F64, SHAPE(1), &x);
    struct tensor_source c = source(DTYPE_F64, SHAPE(1), &y);

    for (size_t t = 0; t < sizeof(none) / sizeof(none[0]); t++) {
        struct metric_result got;
        struct err err = ERR_INIT;

        metric_measure(none[t], &r, &c, &got, &err);
        ok(strstr(got.reason, "is undefined") != NULL,
           "%s of one element is undefined", gate_metric_name(none[t]));
        metric_result_release(&got);
    }
}

static void test_what_is_not_comparable(void)
{
    static const float f[6] = {1, 2, 3, 4, 5, 6};
    static const int64_t ids[6] = {1, 2, 3, 4, 5, 6};
    static const uint8_t bytes[6] = {0};
    const struct {
        enum gate_metric metric;
        struct tensor_source ref, cand;
        const char *says;
    } bad[] = {
        {METRIC_MAX_ABS, source(DTYPE_F32, SHAPE(2, 3), f),
         source(DTYPE_F32, SHAPE(3, 2), f),
         "shape differs: the reference is [2, 3], the candidate [3, 2]"},
        {METRIC_EXACT, source(DTYPE_I64, SHAPE(6), ids),
         source(DTYPE_F32, SHAPE(6), f),
         "dtype differs: the reference is I64, the candidate F32"},
        {METRIC_RMS, source(DTYPE_I64, SHAPE(6), ids),
         source(DTYPE_F32, SHAPE(6), f),
         "rms compares floats: the reference is I64, the candidate F32"},
        {METRIC_EXACT, source(DTYPE_I64, SHAPE(0, 3), ids),
         source(DTYPE_I64, SHAPE(0, 3), ids),
         "nothing was compared: the tensor is empty"},
        {METRIC_KL, source(DTYPE_F32, SHAPE(4, 0), f),
         source(DTYPE_F32, SHAPE(4, 0), f),
         "nothing was compared: the tensor is empty"},
        {METRIC_EXACT, source(DTYPE_F4, SHAPE(6), bytes),
         source(DTYPE_F4, SHAPE(6), bytes), "elements of F4 are not compared"},
        {METRIC_MAX_ABS, source(DTYPE_F32, SHAPE(6), f),
         source(DTYPE_F32, SHAPE(6), NULL),
         "the candidate cannot be read: cut short"},
        {METRIC_KL, source(DTYPE_F32, SHAPE(6), f),
         source(DTYPE_F32, SHAPE(6), NULL),
         "the candidate cannot be read: cut short"},
    };

    for (size_t t = 0; t < sizeof(bad) / sizeof(bad[0]); t++) {
        struct metric_result got;
        struct err err = ERR_INIT;
        int state = metric_measure(bad[t].metric, &bad[t].ref, &bad[t].cand,
                                   &got, &err);

        ok(state == 0, "it is a verdict, not an error");
        is_str(got.reason, bad[t].says, bad[t].says);
        metric_result_release(&got);
    }
    struct metric_result got;
    struct err err = ERR_INIT;
    struct tensor_source r = source(DTYPE_F32, SHAPE(6), NULL);
    struct tensor_source c = source(DTYPE_F32, SHAPE(6), f);
    is_int(metric_measure(METRIC_MAX_ABS, &r, &c, &got, &err), -1,
           "a reference that cannot be read is an error");
    is_int(err.code, ERR_INPUT, "  of the input");
}

static void test_exact(void)
{
    static const int64_t a[2][3] = {{1, 2, 3}, {4, 5, 6}};
    static const int64_t b[2][3] = {{1, 2, 3}, {4, 9, 7}};
    static const int64_t longer[2][4] = {{1, 2, 3, 9}, {4, 8, 6, 9}};
    static const double zero[1] = {0.0}, minus[1] = {-0.0};
    static const double padded[4] = {5, -INFINITY, 2, 1};
    struct tensor_source r = source(DTYPE_I64, SHAPE(2, 3), a);
    struct tensor_source c = source(DTYPE_I64, SHAPE(2, 3), b);
    struct metric_result got;
    struct err err = ERR_INIT;

    metric_measure(METRIC_EXACT, &r, &c, &got, &err);
    ok(got.value == 2 && got.is_count, "exact counts the elements that differ");
    char *text = json_dumps(got.worst, JSON_COMPACT);
    is_str(text, "{\"index\":[1,1],\"reference\":5,\"candidate\":9}",
           "  and shows the first");
    free(text);
    metric_result_release(&got);

    c = source(DTYPE_I64, SHAPE(2, 4), longer);
    metric_measure(METRIC_EXACT, &r, &c, &got, &err);
    text = json_dumps(got.worst, JSON_COMPACT);
    is_str(text, "{\"index\":[1,1],\"reference\":5,\"candidate\":8}",
           "ids of another shape: the first difference in what both have");
    free(text);
    metric_result_release(&got);

    r = source(DTYPE_F64, SHAPE(1), zero);
    c = source(DTYPE_F64, SHAPE(1), minus);
    metric_measure(METRIC_EXACT, &r, &c, &got, &err);
    ok(got.value == 1, "exact means the bytes: 0 and -0 differ");
    metric_result_release(&got);

    r = c = source(DTYPE_F64, SHAPE(1, 4), padded);
    for (int m = 0; m < METRIC_COUNT; m++) {
        metric_measure((enum gate_metric)m, &r, &c, &got, &err);
        ok(got.reason[0] == '\0' && isfinite(got.value),
           "%s: a masked logit, the same on both sides, is no fault",
           gate_metric_name((enum gate_metric)m));
        metric_result_release(&got);
    }
}

static void test_last_element_counts(void)
{
    enum { MANY = 200001 }; /* more than three blocks */
    static float a[MANY], b[MANY];
    struct tensor_source r = source(DTYPE_F32, SHAPE(MANY), a);
    struct tensor_source c = source(DTYPE_F32, SHAPE(MANY), b);
    static const struct {
        enum gate_metric metric;
        double value;
    } want[] = {{METRIC_MAX_ABS, 3}, {METRIC_EXACT, 1}};
    struct metric_result got;
    struct err err = ERR_INIT;

    for (int i = 0; i < MANY; i++)
        a[i] = b[i] = (float)noise((uint64_t)i, 7);
    a[MANY - 1] = 0;
    b[MANY - 1] = 3;
    for (size_t t = 0; t < 2; t++) {
        metric_measure(want[t].metric, &r, &c, &got, &err);
        ok(got.value == want[t].value, "%s sees the last of %d elements",
           gate_metric_name(want[t].metric), (int)MANY);
        is_int(json_integer_value(
                   json_array_get(json_object_get(got.worst, "index"), 0)),
               MANY - 1, "  and names it");
        metric_result_release(&got);
    }
    metric_measure(METRIC_RMS, &r, &c, &got, &err);
    ok(fabs(got.value / (3 / sqrt((double)MANY)) - 1) < 1e-15,
       "a sum is over all elements");
    is_int(got.compared, MANY, "and says how many");
    metric_result_release(&got);
}

static void test_lanes(void)
{
    struct lanes l = {{0}};

    for (int i = 0; i < 16; i++)
        l.at[i] = i == 0 ? 1e16 : i == 8 ? 1 : i == 4 ? -1e16 : 0;
    /* (1e16 + 1) rounds to 1e16, then - 1e16. */
    ok(lanes_fold(&l) == 0, "lanes fold 8, 4, 2, 1");
}

/* Of the rows whose argmax differs the one where the reference is surest. */
static void test_argmax_lead(void)
{
    static const double r[] = {3, 2.5, 0, 0, 4, 1, 9, 0, 5, 1, 1, 2.75};
    static const double c[] = {2, 2.5, 0, 5, 4, 1, 9, 0, 5, 3, 1, 2.75};
    struct tensor_source ref = source(DTYPE_F64, SHAPE(4, 3), r);
    struct tensor_source cand = source(DTYPE_F64, SHAPE(4, 3), c);
    struct metric_result got;
    struct err err = ERR_INIT;

    metric_measure(METRIC_ARGMAX_LEAD, &ref, &cand, &got, &err);
    ok(got.value == 3, "the largest lead that the candidate overturns");
    is_int(got.rows_differing, 3, "of three rows");
    is_int(json_integer_value(
               json_array_get(json_object_get(got.worst, "index"), 0)),
           1, "and its row is shown");
    ok(gate_holds(&(struct gate){.relation = GATE_AT_MOST, .limit = 3},
                  got.value) &&
           !gate_holds(&(struct gate){.relation = GATE_AT_MOST, .limit = 2.9},
                       got.value),
       "a lead at the limit may be overturned, one above it may not");
    metric_result_release(&got);
}

int main(void)
{
    test_numpy_agrees();
    test_undefined_fails();
    test_one_element();
    test_what_is_not_comparable();
    test_exact();
    test_argmax_lead();
    test_last_element_counts();
    test_lanes();
    return done();
}
