/* Checkpoints by canonical name: spellings, checks, quantised forms, ledger. */
#include "models/checkpoint.h"

#include "base/io.h"
#include "base/mem.h"
#include "safetensors/safetensors.h"
#include "tap.h"

#include <unistd.h>

static char folder[] = "/tmp/assay-checkpoint-XXXXXX";

struct stored {
    const char *name;
    enum dtype dtype;
    int64_t rows, cols; /* cols 0: one dimension */
    const void *data;
};

static void write_pack(const struct stored *t, size_t count)
{
    struct err err = ERR_INIT;
    char *path = xasprintf("%s/model.safetensors", folder);
    int handles[16];

    unlink(path);
    struct safetensors_writer *w = safetensors_create(path, &err);
    for (size_t i = 0; w && i < count; i++)
        handles[i] = safetensors_declare(
            w, t[i].name, t[i].dtype,
            t[i].cols ? SHAPE(t[i].rows, t[i].cols) : SHAPE(t[i].rows), &err);
    for (size_t i = 0; w && i < count; i++) {
        int64_t n = t[i].rows * (t[i].cols ? t[i].cols : 1);

        safetensors_write(w, handles[i], 0, t[i].data,
                          (size_t)n * dtype_bits(t[i].dtype) / 8, &err);
    }
    if (!w || safetensors_finish(w, &err))
        ok(false, "%s", err.text);
    free(path);
}

static const struct rename renames[] = {
    {"^language_model.", ""}, {".w1.", ".gate."}, {NULL, NULL}};
static const char *const ignored[] = {"mtp.*", NULL};
static const struct checkpoint_names names = {renames, ignored, 2};

/* A matrix m.gate.weight [2, 4] and a vector m.norm [4] */
struct wants {
    struct dense_weight gate;
    struct param norm;
};

static void list(struct part *p, struct wants *w)
{
    part_clear(p);
    part_dense(p, &w->gate, 2, 4, "m.gate.weight");
    part_param(p, &w->norm, 4, "m.norm");
}

static struct checkpoint *open_all(struct part *p, struct wants *w,
                                   struct err *err)
{
    struct checkpoint *c = checkpoint_open(folder, &names, err);

    list(p, w);
    if (c && (checkpoint_expect(c, p, err) || checkpoint_finish(c, err))) {
        checkpoint_close(c);
        return NULL;
    }
    return c;
}

static const float eight[8] = {1, 2, 3, 4, 5, 6, 7, 1.00390625f};
static const float norm[4] = {1, 2, 3, 4};

static void test_spellings(void)
{
    struct stored t[] = {
        {"language_model.m.w1.weight", DTYPE_F32, 2, 4, eight},
        {"m.norm", DTYPE_F32, 4, 1, norm},
        {"mtp.x", DTYPE_F32, 4, 0, norm},
        {"model.layers.2.x", DTYPE_F32, 4, 0, norm},
    };
    struct err err = ERR_INIT;
    struct part p = PART_INIT;
    struct wants w;

    write_pack(t, 4);
    struct checkpoint *c = open_all(&p, &w, &err);
    ok(c != NULL, "renamed, ignored and further layers: %s", err.text);
    if (!c)
        return;
    checkpoint_load(c, &p, CHECKPOINT_LAYER, &err);
    ok(w.gate.dtype == DTYPE_F32 && memcmp(w.gate.data, eight, 32) == 0 &&
           w.norm.f[3] == 4 && w.norm.d[2] == 3,
       "f32: as stored");
    checkpoint_set_precision(c, PRECISION_BF16);
    checkpoint_load(c, &p, CHECKPOINT_LAYER, &err);
    const uint16_t *half = w.gate.data;
    ok(w.gate.dtype == DTYPE_BF16 && half[7] == 0x3f80 && half[0] == 0x3f80 &&
           w.norm.dtype == DTYPE_BF16,
       "bf16: rounded to it, to the nearest even");
    part_clear(&p);
    p.is_kept = true;
    part_dense(&p, &w.gate, 2, 4, "m.gate.weight");
    checkpoint_load(c, &p, CHECKPOINT_EXPERT, &err);
    ok(w.gate.dtype == DTYPE_F32 && memcmp(w.gate.data, eight, 32) == 0,
       "bf16: what upstream keeps in f32 is kept");
    json_t *ledger = checkpoint_ledger(c, true, &err), *line;
    int read = 0, dropped = 0;
    size_t i;
    json_array_foreach(ledger, i, line)
    {
        const char *state = json_string_value(json_object_get(line, "state"));

        read += strcmp(state, "read") == 0;
        dropped += strcmp(state, "ignored") == 0;
    }
    ok(read == 2 && dropped == 2, "the ledger tells read from ignored");
    json_decref(ledger);
    part_release(&p);
    checkpoint_close(c);
}

/* What is held is loaded once, and outlives the next load into its buffer. */
static void test_held(void)
{
    static const float later[8] = {8, 7, 6, 5, 4, 3, 2, 1};
    struct stored t[] = {
        {"m.gate.weight", DTYPE_F32, 2, 4, eight},
        {"m.norm", DTYPE_F32, 4, 0, norm},
        {"m.up.weight", DTYPE_F32, 2, 4, later},
    };
    struct part first = PART_INIT, second = PART_INIT;
    struct dense_weight up;
    struct wants w;
    struct err err = ERR_INIT;

    write_pack(t, 3);
    struct checkpoint *c = checkpoint_open(folder, &names, &err);
    list(&first, &w);
    part_dense(&second, &up, 2, 4, "m.up.weight");
    if (!c || checkpoint_expect(c, &first, &err) ||
        checkpoint_expect(c, &second, &err))
        ok(false, "%s", err.text);
    checkpoint_hold(c, 65); /* the gate's 64 bytes, and nothing else */
    checkpoint_load(c, &first, CHECKPOINT_LAYER, &err);
    const void *gate = w.gate.data, *buffer = w.norm.f;
    checkpoint_load(c, &second, CHECKPOINT_LAYER, &err);
    ok(memcmp(gate, eight, 32) == 0, "what is held outlives the next load");
    ok(up.data == buffer && memcmp(up.data, later, 32) == 0,
       "what has no room goes into the buffer");
    checkpoint_load(c, &first, CHECKPOINT_LAYER, &err);
    ok(w.gate.data == gate && w.norm.f[3] == 4, "what is held is found again");
    checkpoint_set_precision(c, PRECISION_BF16);
    checkpoint_load(c, &first, CHECKPOINT_LAYER, &err);
    ok(w.gate.dtype == DTYPE_BF16, "another precision holds none of it");
    part_release(&first);
    part_release(&second);
    checkpoint_close(c);
}

static void test_refusals(void)
{
    static const struct stored gate = {"m.w1.weight", DTYPE_F32, 2, 4, eight};
    static const struct stored good = {"m.norm", DTYPE_F32, 4, 0, norm};
    static const float other[8] = {9};
    const struct {
        const char *says;
        enum err_code code;
        size_t count;
        struct stored t[3];
    } cases[] = {
        {"holds no tensor 'm.norm'", ERR_INPUT, 1, {gate}},
        {"'odd' has no place",
         ERR_INPUT,
         3,
         {gate, good, {"odd", DTYPE_F32, 4, 0, norm}}},
        {"'model.layers.1.x' has no place",
         ERR_INPUT,
         3,
         {gate, good, {"model.layers.1.x", DTYPE_F32, 4, 0, norm}}},
        {"'m.w1.weight' is [4, 2], not [2, 4]",
         ERR_INPUT,
         2,
         {{"m.w1.weight", DTYPE_F32, 4, 2, eight}, good}},
        {"'m.norm' is [3], not [4]",
         ERR_INPUT,
         2,
         {gate, {"m.norm", DTYPE_F32, 3, 0, norm}}},
        {"'m.norm' is U8, not F32, BF16 or F16",
         ERR_UNSUPPORTED,
         2,
         {gate, {"m.norm", DTYPE_U8, 4, 0, norm}}},
        {"with different bytes",
         ERR_INPUT,
         3,
         {gate, good, {"m.gate.weight", DTYPE_F32, 2, 4, other}}},
        {"is F8_E4M3 without its scales",
         ERR_INPUT,
         2,
         {{"m.w1.weight", DTYPE_F8_E4M3, 2, 4, eight}, good}},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = ERR_INIT;
        struct part p = PART_INIT;
        struct wants w;

        write_pack(cases[i].t, cases[i].count);
        struct checkpoint *c = open_all(&p, &w, &err);
        if (!ok(!c && err.code == cases[i].code &&
                    strstr(err.text, cases[i].says),
                "refused: %s", cases[i].says))
            diag("%d %s", err.code, err.text);
        checkpoint_close(c);
        part_release(&p);
    }
    /* the same bytes twice are no contradiction */
    struct stored twice[] = {gate, good, gate};
    struct err err = ERR_INIT;
    struct part p = PART_INIT;
    struct wants w;
    twice[2].name = "language_model.m.gate.weight";
    write_pack(twice, 3);
    struct checkpoint *c = open_all(&p, &w, &err);
    ok(c != NULL, "one tensor twice with the same bytes");
    checkpoint_close(c);
    part_release(&p);
}

/* Loads one matrix and compares it. */
static void expect_values(const char *name, const struct stored *t,
                          size_t count, int64_t out, int64_t in,
                          const float *want, const char *refused)
{
    struct err err = ERR_INIT;
    struct part p = PART_INIT;
    struct dense_weight w = {0};
    bool same = true;

    write_pack(t, count);
    struct checkpoint *c = checkpoint_open(folder, &names, &err);
    part_dense(&p, &w, out, in, "q.weight");
    int ret = !c || checkpoint_expect(c, &p, &err) ||
              checkpoint_finish(c, &err) ||
              checkpoint_load(c, &p, CHECKPOINT_LAYER, &err);
    if (refused) {
        if (!ok(ret && strstr(err.text, refused), "%s: %s", name, refused))
            diag("%s", err.text);
    } else {
        for (int64_t i = 0; i < out * in && ret == 0; i++)
            same &= bf16_to_f32(((const uint16_t *)w.data)[i]) == want[i];
        if (!ok(ret == 0 && w.dtype == DTYPE_BF16 && same, "%s", name))
            diag("%s", err.text);
    }
    part_release(&p);
    checkpoint_close(c);
}

static void test_quantised(void)
{
    /* E4M3: 0x38 is 1, 0x01 is 2^-9, 0x7e is 448, 0xb8 is -1 */
    static const uint8_t f8[4] = {0x38, 0x01, 0x7e, 0xb8};
    static const uint8_t f8_nan[4] = {0x38, 0x01, 0x7f, 0xb8};
    static const float two[1] = {2}, grid[2] = {2, 0.5f};
    static const float f8_want[4] = {2, 0x1p-8f, 896, -2};
    static const float even_want[4] = {2, 0x1p-8f, 224, -0.5f};
    static const uint8_t e8m0[1] = {128}, e8m0_nan[1] = {255};
    /* E2M1: 0x21 is 0.5, 1; 0xfe is -4, -6 with the even column low */
    static const uint8_t fp4[2] = {0x21, 0xfe};
    static const float fp4_want[4] = {1, 2, -8, -12};
    /* int4 codes 0, 1, 15, 8 lowest first: -8, -7, 7, 0 */
    static const uint32_t int4[1] = {0x00008f10 | 0x88880000};
    static const int64_t shape[2] = {1, 8}, bad_shape[2] = {1, 7};
    static const float int4_want[8] = {-16, -14, 14, 0, 0, 0, 0, 0};
    struct stored block[] = {{"q.weight", DTYPE_F8_E4M3, 1, 4, f8},
                             {"q.weight_scale_inv", DTYPE_F32, 1, 1, two}};
    struct stored packed[] = {{"q.weight_packed", DTYPE_U8, 1, 2, fp4},
                              {"q.weight_scale", DTYPE_U8, 1, 1, e8m0}};
    struct stored words[] = {{"q.weight_packed", DTYPE_I32, 1, 1, int4},
                             {"q.weight_scale", DTYPE_F32, 1, 1, two},
                             {"q.weight_shape", DTYPE_I64, 2, 0, shape}};

    expect_values("f8: blocks", block, 2, 1, 4, f8_want, NULL);
    block[1] = (struct stored){"q.weight_scale_inv", DTYPE_F8_E8M0, 1, 1, e8m0};
    expect_values("f8: powers of two", block, 2, 1, 4, f8_want, NULL);
    block[1].data = e8m0_nan;
    expect_values("f8", block, 2, 1, 4, NULL, "scale 0 is not finite");
    block[1] = (struct stored){"q.weight_scale_inv", DTYPE_F32, 1, 2, grid};
    expect_values("f8: an even grid", block, 2, 1, 4, even_want, NULL);
    block[1] = (struct stored){"q.weight_scale_inv", DTYPE_F32, 1, 3, eight};
    expect_values("f8", block, 2, 1, 4, NULL, "no grid of blocks");
    block[1] = (struct stored){"q.weight_scale_inv", DTYPE_F32, 1, 1, two};
    block[0].data = f8_nan;
    expect_values("f8", block, 2, 1, 4, NULL, "[0, 2] is not a number");
    expect_values("fp4: packed", packed, 2, 1, 4, fp4_want, NULL);
    packed[0] = (struct stored){"q.weight", DTYPE_I8, 1, 2, fp4};
    packed[1] =
        (struct stored){"q.weight_scale_inv", DTYPE_F8_E8M0, 1, 1, e8m0};
    expect_values("fp4: I8", packed, 2, 1, 4, fp4_want, NULL);
    expect_values("int4", words, 3, 1, 8, int4_want, NULL);
    words[2].data = bad_shape;
    expect_values("int4", words, 3, 1, 8, NULL, "says [1, 7], not [1, 8]");
}

int main(void)
{
    if (!mkdtemp(folder))
        return 1;
    test_spellings();
    test_held();
    test_refusals();
    test_quantised();
    char *path = xasprintf("%s/model.safetensors", folder);
    unlink(path);
    free(path);
    rmdir(folder);
    return done();
}
