/* config.json with a ledger: what became of every key. */
#include "ledger/config.h"

#include "base/io.h"
#include "base/mem.h"
#include "tap.h"

#include <math.h>
#include <unistd.h>

static char path[] = "/tmp/assay-config-XXXXXX";

static struct config *open_text(const char *text, struct err *err)
{
    FILE *f = fopen(path, "w");

    if (!f || fputs(text, f) < 0 || fclose(f))
        return NULL;
    return config_open(path, err);
}

/* The family at hand: two counts, an alias, an inner object. */
static int read_all(struct config *c, int64_t *hidden, int64_t *experts,
                    double *theta, struct err *err)
{
    const struct section *s = config_root(c), *rope;

    if (config_count(s, "hidden", 64, hidden, err) ||
        config_count(s, "num_local_experts|num_experts", -1, experts, err) ||
        config_expect_text(s, "hidden_act", "silu", err) ||
        config_expect_flag(s, "use_qk_norm", true, err) ||
        config_section(s, "rope", &rope, err))
        return -1;
    *theta = 10000;
    if (rope && config_real(rope, "theta", 10000, theta, err))
        return -1;
    config_ignore_common(s);
    return config_finish(c, err);
}

/* What config_real_or_null() makes of a text: value, or NaN. */
static int read_bound(const char *text, double fallback, double *out,
                      struct err *err)
{
    struct config *c = open_text(text, err);
    int ret = c ? config_real_or_null(config_root(c), "bound|lower", fallback,
                                      out, err)
                : -1;

    config_close(c);
    return ret;
}

static void test_null(void)
{
    struct err err = ERR_INIT;
    double v;

    ok(read_bound("{\"bound\": -2.5}", -5, &v, &err) == 0 && v == -2.5,
       "a real that may be null: its number");
    ok(read_bound("{}", -5, &v, &err) == 0 && v == -5, "the fallback");
    ok(read_bound("{\"lower\": null}", -5, &v, &err) == 0 && v != v,
       "null says that there is none");
    ok(read_bound("{}", NAN, &v, &err) == 0 && v != v,
       "and so may the fallback");
    ok(read_bound("{\"bound\": \"x\"}", -5, &v, &err) != 0 &&
           err.code == ERR_INPUT,
       "a text is neither");
}

static void test_good(void)
{
    static const char *const texts[] = {
        "{\"hidden\": 64, \"num_experts\": 8, \"rope\": {\"theta\": 5e6}}",
        "{\"num_local_experts\": 8, \"num_experts\": 8, \"hidden\": null, "
        "\"use_cache\": true, \"rope\": {\"theta\": 5000000}, "
        "\"hidden_act\": \"silu\"}",
        "{\"num_experts\": 8, \"rope\": {\"theta\": 5e6, \"mood\": 1}, "
        "\"favourite_colour\": 3, \"made_up_key\": [1], \"license\": \"x\", "
        "\"sliding_window\": null, \"\": 1, \"\u00fc\": 2}"};

    for (size_t i = 0; i < 3; i++) {
        struct err err = ERR_INIT;
        struct config *c = open_text(texts[i], &err);
        int64_t hidden = 0, experts = 0;
        double theta = 0;

        ok(c && read_all(c, &hidden, &experts, &theta, &err) == 0 &&
               hidden == 64 && experts == 8 && theta == 5e6,
           "spellings of one model, what nobody knows let stand: %s", err.text);
        config_close(c);
    }
}

static void test_refusals(void)
{
    static const struct {
        const char *text, *says;
        enum err_code code;
    } cases[] = {
        {"{\"num_experts\": 8, \"soft_cap\": 30}", "'soft_cap' is not known",
         ERR_UNSUPPORTED},
        {"{\"num_experts\": 8, \"rope\": {\"theta\": 1, \"alpha\": 2}}",
         "'rope.alpha' is not known", ERR_UNSUPPORTED},
        {"{\"num_experts\": 8, \"final_logit_softcapping\": 30}",
         "'final_logit_softcapping' is not known, and may change",
         ERR_UNSUPPORTED},
        {"{\"num_experts\": 8, \"forget_gate\": 1}",
         "'forget_gate' is not known", ERR_UNSUPPORTED},
        {"{\"num_experts\": 8, \"attentionMultiplier\": 0}",
         "'attentionMultiplier' is not known", ERR_UNSUPPORTED},
        {"{\"num_experts\": 8, \"use_sinks\": false, \"query_scale\": false}",
         "'query_scale' is not known", ERR_UNSUPPORTED},
        {"{\"num_experts\": 8, \"num_local_experts\": 4}", "contradict",
         ERR_INPUT},
        {"{}", "'num_local_experts' is missing", ERR_INPUT},
        {"{\"num_experts\": 0}", "is not a count", ERR_INPUT},
        {"{\"num_experts\": 99999999999}", "is not a count", ERR_INPUT},
        {"{\"num_experts\": \"8\"}", "is not a count", ERR_INPUT},
        {"{\"num_experts\": 8, \"hidden_act\": \"gelu\"}",
         "is 'gelu', only 'silu'", ERR_UNSUPPORTED},
        {"{\"num_experts\": 8, \"use_qk_norm\": false}", "is false, only true",
         ERR_UNSUPPORTED},
        {"{\"num_experts\": 8, \"use_qk_norm\": 1}", "neither true nor false",
         ERR_INPUT},
        {"{\"num_experts\": 8, \"rope\": [1]}", "is not an object", ERR_INPUT},
        {"[1]", "is not an object", ERR_INPUT},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = ERR_INIT;
        struct config *c = open_text(cases[i].text, &err);
        int64_t hidden, experts;
        double theta;

        if (c)
            read_all(c, &hidden, &experts, &theta, &err);
        if (!ok(err.code == cases[i].code && strstr(err.text, cases[i].says),
                "refused: %s", cases[i].text))
            diag("%d: %s", err.code, err.text);
        config_close(c);
    }
}

static void test_ledger(void)
{
    struct err err = ERR_INIT;
    struct config *c = open_text("{\"num_experts\": 8, \"use_cache\": true, "
                                 "\"rope\": {\"theta\": 7}, \"odd\": 1}",
                                 &err);
    static const char *const want[][2] = {{"hidden", "defaulted"},
                                          {"num_experts", "read"},
                                          {"hidden_act", "defaulted"},
                                          {"use_qk_norm", "defaulted"},
                                          {"rope", "read"},
                                          {"rope.theta", "read"},
                                          {"use_cache", "without effect"},
                                          {"odd", "unread"}};
    size_t n = sizeof(want) / sizeof(want[0]);
    int64_t hidden, experts;
    double theta;
    int wrong = 0;

    read_all(c, &hidden, &experts, &theta, &err);
    json_t *ledger = config_ledger(c);
    is_int((int64_t)json_array_size(ledger), (int64_t)n, "a line a key");
    for (size_t i = 0; i < n && i < json_array_size(ledger); i++) {
        const json_t *line = json_array_get(ledger, i);
        const char *key = json_string_value(json_object_get(line, "key"));
        const char *state = json_string_value(json_object_get(line, "state"));

        if (strcmp(key, want[i][0]) != 0 || strcmp(state, want[i][1]) != 0) {
            wrong++;
            diag("%s %s", key, state);
        }
    }
    is_int(wrong, 0, "each with what became of it");
    json_decref(ledger);
    config_close(c);
}

/* Values as they are shown, and the stronger of two readers. */
static void test_values(void)
{
    static const char *const want[] = {
        "{\"key\":\"a\",\"state\":\"defaulted\",\"value\":7}",
        "{\"key\":\"b\",\"state\":\"read\",\"value\":[1,2]}",
        "{\"key\":\"inner\",\"state\":\"read\"}",
        "{\"key\":\"inner.c\",\"state\":\"read\",\"value\":\"x\"}",
        "{\"key\":\"list\",\"state\":\"read\"}",
        "{\"key\":\"list[1].d\",\"state\":\"read\",\"value\":2}",
        "{\"key\":\"e\",\"state\":\"read\",\"value\":5}",
        "{\"key\":\"long\",\"state\":\"unread\"}",
        "{\"key\":\"inner.f\",\"state\":\"unread\",\"value\":null}",
        "{\"key\":\"list[1].g\",\"state\":\"unread\",\"value\":{\"h\":1}}"};
    struct err err = ERR_INIT;
    char text[600], pad[301];
    const struct section *inner, *item;
    const char *c;
    int64_t a, d;

    memset(pad, 'x', 300);
    pad[300] = '\0';
    snprintf(text, sizeof(text),
             "{\"b\": [1, 2], \"inner\": {\"c\": \"x\", \"f\": null}, "
             "\"list\": [1, {\"d\": 2, \"g\": {\"h\": 1}}], \"e\": 5, "
             "\"long\": \"%s\"}",
             pad);
    struct config *config = open_text(text, &err);
    const struct section *s = config_root(config);
    ok(config_count(s, "a", 7, &a, &err) == 0 && config_value(s, "b") &&
           config_get_section(s, "inner", &inner, &err) == 0 &&
           config_get_text(inner, "c", &c, NULL, &err) == 0 &&
           config_get_item(s, "list", 1, &item, &err) == 0 &&
           config_get_int(item, "d", &d, &err) == 0 && a == 7 && d == 2,
       "values of all kinds of places: %s", err.text);
    ok(config_get_item(s, "list", 0, &item, &err) == -1 &&
           err.code == ERR_INPUT,
       "an item that is no object");
    config_ignore(s, (const char *const[]){"e", NULL});
    config_value(s, "e");
    config_ignore(s, (const char *const[]){"e", "b", NULL});
    json_t *lines = config_ledger(config);
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        char *line = json_dumps(json_array_get(lines, i), JSON_COMPACT);

        ok(line && strcmp(line, want[i]) == 0, "%s", want[i]);
        if (line && strcmp(line, want[i]) != 0)
            diag("%s", line);
        free(line);
    }
    json_decref(lines);
    config_close(config);
}

/* All that is wanted of a file with three keys, one of a kind each. */
static int read_wanted(const struct section *s, struct err *err)
{
    int64_t width;

    return config_want_text(s, "kind", "plain", err) ||
                   config_want_int(s, "bits", 2, err) ||
                   config_want_flag(s, "tied", false, err) ||
                   config_get_within(s, "bits", 2, 8, &width, err)
               ? -1
               : 0;
}

static void test_wanted(void)
{
    static const struct {
        const char *text;
        enum err_code code;
        const char *says;
    } cases[] = {
        {"{\"kind\": \"plain\", \"bits\": 2, \"tied\": false}", ERR_NONE, ""},
        {"{\"kind\": \"other\"}", ERR_UNSUPPORTED,
         "'kind' is 'other'; only 'plain' is supported"},
        {"{\"kind\": \"plain\", \"bits\": 4}", ERR_UNSUPPORTED,
         "'bits' is 4; only 2 is supported"},
        {"{\"kind\": \"plain\", \"bits\": 2, \"tied\": true}", ERR_UNSUPPORTED,
         "'tied' is true; only false is supported"},
        {"{\"kind\": \"plain\"}", ERR_INPUT, "no 'bits'"},
        {"{\"kind\": 1}", ERR_INPUT, "'kind' is not a string"},
    };
    struct err err = ERR_INIT, why = ERR_INIT;
    int64_t n;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct config *c = open_text(cases[i].text, &err);

        why = (struct err)ERR_INIT;
        read_wanted(config_root(c), &why);
        ok(why.code == cases[i].code && strcmp(why.text, cases[i].says) == 0,
           "%s: '%s'", cases[i].text, why.text);
        config_close(c);
    }
    struct config *c = open_text("{\"low\": 1, \"high\": 9}", &err);
    why = (struct err)ERR_INIT;
    ok(config_get_within(config_root(c), "low", 1, 8, &n, &why) == 0 && n == 1,
       "the least of a range");
    ok(config_get_within(config_root(c), "high", 1, 8, &n, &why) == -1 &&
           why.code == ERR_INPUT &&
           strcmp(why.text, "'high' is 9, not within 1 and 8") == 0,
       "one more than the most: %s", why.text);
    config_close(c);
}

int main(void)
{
    int fd = mkstemp(path);

    if (fd < 0)
        return 1;
    close(fd);
    test_null();
    test_good();
    test_refusals();
    test_ledger();
    test_values();
    test_wanted();
    unlink(path);
    return done();
}
