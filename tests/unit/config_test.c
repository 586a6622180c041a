/* config.json with a ledger: what became of every key. */
#include "ledger/config.h"

#include "base/io.h"
#include "base/mem.h"
#include "tap.h"

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

static void test_good(void)
{
    static const char *const texts[] = {
        "{\"hidden\": 64, \"num_experts\": 8, \"rope\": {\"theta\": 5e6}}",
        "{\"num_local_experts\": 8, \"num_experts\": 8, \"hidden\": null, "
        "\"use_cache\": true, \"rope\": {\"theta\": 5000000}, "
        "\"hidden_act\": \"silu\"}"};

    for (size_t i = 0; i < 2; i++) {
        struct err err = ERR_INIT;
        struct config *c = open_text(texts[i], &err);
        int64_t hidden = 0, experts = 0;
        double theta = 0;

        ok(c && read_all(c, &hidden, &experts, &theta, &err) == 0 &&
               hidden == 64 && experts == 8 && theta == 5e6,
           "two spellings of one model: %s", err.text);
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

int main(void)
{
    int fd = mkstemp(path);

    if (fd < 0)
        return 1;
    close(fd);
    test_good();
    test_refusals();
    test_ledger();
    unlink(path);
    return done();
}
