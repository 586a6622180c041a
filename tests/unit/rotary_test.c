/*
 * Rotary frequencies from config.json, against Transformers 5.24.0
 * (ROPE_INIT_FUNCTIONS["yarn"] on a Llama configuration, head_dim 16).
 */
#include "models/rotary.h"

#include "base/mem.h"
#include "tap.h"

#include <unistd.h>

static char path[] = "/tmp/assay-rotary-XXXXXX";

static int read_text(const char *text, double positions, struct rotary *r,
                     struct err *err)
{
    FILE *f = fopen(path, "w");
    int ret;

    if (!f || fputs(text, f) < 0 || fclose(f))
        return -1;
    struct config *c = config_open(path, err);
    ret = c ? rotary_read(r, config_root(c), 10000, positions, err) : -1;
    config_close(c);
    return ret;
}

static const struct {
    const char *name, *text;
    double factor;
    float want[8];
} yarns[] = {
    {"mscale equal: tables times 1",
     "{\"rope_parameters\": {\"rope_type\": \"yarn\", \"rope_theta\": 50000, "
     "\"factor\": 64, \"original_max_position_embeddings\": 4096, "
     "\"beta_fast\": 32, \"beta_slow\": 1, \"mscale\": 1, "
     "\"mscale_all_dim\": 1}}",
     1,
     {0x1p+0f, 0x1.08ce7ap-2f, 0x1.11ea82p-4f, 0x1.7cbc94p-7f, 0x1.92fe3cp-10f,
      0x1.2f2b10p-16f, 0x1.3998eep-18f, 0x1.4462a2p-20f}},
    {"beta_fast 1: a ramp of one step",
     "{\"rope_theta\": 50000, \"rope_scaling\": {\"type\": \"yarn\", "
     "\"factor\": 64, \"original_max_position_embeddings\": 4096, "
     "\"beta_fast\": 1, \"beta_slow\": 1}}",
     0x1.6a77a7fb177c8p+0,
     {0x1p+0f, 0x1.08ce7ap-2f, 0x1.11ea82p-4f, 0x1.1b56c2p-6f, 0x1.2515fep-8f,
      0x1.2f2b10p-16f, 0x1.3998eep-18f, 0x1.4462a2p-20f}},
    {"attention_factor given",
     "{\"rope_parameters\": {\"rope_type\": \"yarn\", \"factor\": 4, "
     "\"original_max_position_embeddings\": 64, \"beta_fast\": 32, "
     "\"beta_slow\": 1, \"attention_factor\": 1.25}}",
     1.25,
     {0x1p+0f, 0x1.e5b9d0p-3f, 0x1.999998p-5f, 0x1.030dc6p-7f, 0x1.47ae14p-9f,
      0x1.9e7c70p-11f, 0x1.0624dep-12f, 0x1.4b96c0p-14f}},
    {"not truncated; mscale below mscale_all_dim",
     "{\"rope_parameters\": {\"rope_type\": \"yarn\", \"factor\": 4, "
     "\"original_max_position_embeddings\": 64, \"truncate\": false, "
     "\"mscale\": 0.707, \"mscale_all_dim\": 1}}",
     0x1.edbc41e43a629p-1,
     {0x1p+0f, 0x1.96b2f6p-3f, 0x1.a35a42p-6f, 0x1.030dc6p-7f, 0x1.47ae14p-9f,
      0x1.9e7c70p-11f, 0x1.0624dep-12f, 0x1.4b96c0p-14f}},
};

static void test_yarn(void)
{
    for (size_t i = 0; i < sizeof(yarns) / sizeof(yarns[0]); i++) {
        struct err err = ERR_INIT;
        struct rotary r;
        float f[8];
        double wide[8];
        int wrong = 0, far = 0;

        if (read_text(yarns[i].text, 262144, &r, &err)) {
            ok(false, "%s: %s", yarns[i].name, err.text);
            continue;
        }
        r.dims = 16;
        rotary_frequencies(&r, 1, f);
        rotary_frequencies_f64(&r, 1, wide);
        for (int k = 0; k < 8; k++) {
            wrong += f[k] != yarns[i].want[k];
            far += fabs(wide[k] / (double)f[k] - 1) > 1e-6;
            if (f[k] != yarns[i].want[k])
                diag("%d: got %a, wanted %a", k, (double)f[k],
                     (double)yarns[i].want[k]);
        }
        ok(wrong == 0 && far == 0 &&
               fabs(r.attention_factor - yarns[i].factor) < 1e-12,
           "%s", yarns[i].name);
    }
}

/* Transformers 5.24.0 on torch 2.13.0: "default" frequencies of so many
 * columns; of 32 and more PyTorch's own power, here another one than the exact.
 */
static void test_vectors(void)
{
    static const struct {
        const char *text;
        int64_t dims, at;
        float want;
    } cases[] = {
        {"{\"rope_theta\": 50000}", 64, 5, 0x1.79ac46p-3f},
        {"{\"rope_theta\": 50000}", 128, 47, 0x1.735bdep-12f},
        {"{\"rope_theta\": 160000}", 128, 9, 0x1.7bc0a0p-3f},
        {"{\"rope_theta\": 1000000}", 128, 37, 0x1.6453f6p-12f},
        {"{\"rope_theta\": 500000}", 96, 19, 0x1.6b9c8ap-8f},
        {"{\"rope_theta\": 10000}", 96, 20, 0x1.60fb8ep-6f},
        {"{\"rope_theta\": 10000}", 96, 40, 0x1.e6b4b8p-12f},
        {"{\"rope_theta\": 150000}", 64, 10, 0x1.8b448cp-6f},
        {"{\"rope_theta\": 5000000}", 256, 38, 0x1.504622p-7f},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = ERR_INIT;
        struct rotary r;
        float f[128];

        if (read_text(cases[i].text, 100, &r, &err)) {
            ok(false, "%s: %s", cases[i].text, err.text);
            continue;
        }
        r.dims = cases[i].dims;
        rotary_frequencies(&r, 1, f);
        ok(f[cases[i].at] == cases[i].want,
           "%s, %d columns: frequency %d is %a", cases[i].text, (int)r.dims,
           (int)cases[i].at, (double)f[cases[i].at]);
    }
}

/* _compute_dynamic_ntk_parameters() of a tensor of the length: the third from
 * the front and the last. */
static void test_dynamic(void)
{
    static const struct {
        const char *text;
        double positions;
        int64_t dims, length;
        float third, last;
    } cases[] = {
        {"{\"rope_parameters\": {\"rope_type\": \"dynamic\", \"rope_theta\": "
         "10000, \"factor\": 4.0}}",
         32, 16, 100, 0x1.ae910cp-5f, 0x1.173b92p-15f},
        {"{\"rope_parameters\": {\"rope_type\": \"dynamic\", \"rope_theta\": "
         "5000000, \"factor\": 3.5}}",
         32, 32, 200, 0x1.913226p-4f, 0x1.d10b30p-26f},
        {"{\"rope_parameters\": {\"rope_type\": \"dynamic\", \"rope_theta\": "
         "500000, \"factor\": 2.0}}",
         100, 24, 317, 0x1.530a54p-4f, 0x1.2c1578p-20f},
        {"{\"rope_parameters\": {\"rope_type\": \"dynamic\", \"rope_theta\": "
         "10000, \"factor\": 8.0}}",
         32, 64, 33, 0x1.1bcdb0p-1f, 0x1.bf749ep-14f},
        {"{\"rope_parameters\": {\"rope_type\": \"dynamic\", \"rope_theta\": "
         "1000000, \"factor\": 2.0}}",
         100, 128, 250, 0x1.3e2b18p-1f, 0x1.4d1c9ap-22f},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = ERR_INIT;
        struct rotary r;
        float f[128];

        if (read_text(cases[i].text, cases[i].positions, &r, &err)) {
            ok(false, "%s: %s", cases[i].text, err.text);
            continue;
        }
        r.dims = cases[i].dims;
        rotary_frequencies(&r, cases[i].length, f);
        ok(f[2] == cases[i].third && f[r.dims / 2 - 1] == cases[i].last,
           "dynamic, %d columns, %d tokens: %a, %a", (int)r.dims,
           (int)cases[i].length, (double)f[2], (double)f[r.dims / 2 - 1]);
    }
}

static void test_precedence(void)
{
    static const struct {
        const char *text;
        double theta, partial;
    } cases[] = {
        {"{}", 10000, -1},
        {"{\"rope_theta\": 7, \"partial_rotary_factor\": 0.5}", 7, 0.5},
        {"{\"rope_theta\": 7, \"rope_parameters\": {\"rope_theta\": 8}}", 8,
         -1},
        {"{\"rope_scaling\": {\"rope_theta\": 9}, \"rope_parameters\": "
         "{\"rope_theta\": 8}}",
         9, -1},
        {"{\"rope_scaling\": null, \"rope_parameters\": {\"rope_theta\": 8, "
         "\"partial_rotary_factor\": 0.25}, \"partial_rotary_factor\": 0.5}",
         8, 0.25},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = ERR_INIT;
        struct rotary r = {0};
        int ret = read_text(cases[i].text, 100, &r, &err);

        ok(ret == 0 && r.theta == cases[i].theta &&
               (cases[i].partial < 0 ? isnan(r.partial)
                                     : r.partial == cases[i].partial),
           "precedence: %s", cases[i].text);
    }
}

static void test_refusals(void)
{
    static const char *const texts[] = {
        "{\"rope_theta\": -1}", "{\"rope_theta\": \"x\"}",
        "{\"rope_parameters\": {\"rope_type\": \"longrope\"}}",
        "{\"rope_parameters\": {\"rope_type\": \"yarn\", \"factor\": -4}}",
        "{\"rope_parameters\": 3}"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct err err = ERR_INIT;
        struct rotary r;

        ok(read_text(texts[i], 100, &r, &err) != 0 && err.code != ERR_NONE,
           "refused: %s", texts[i]);
    }
}

int main(void)
{
    int fd = mkstemp(path);

    if (fd < 0)
        return 1;
    close(fd);
    test_yarn();
    test_vectors();
    test_dynamic();
    test_precedence();
    test_refusals();
    unlink(path);
    return done();
}
