/*
 * Every stage alone: with --local each is fed with upstream's own input, so
 * that what differs is the stage's.  On the two traces of bonsai-tiny-a, f16:
 *
 *   --sums chain (upstream's CPU order in linear layers): vision stages differ
 * in at most 1 % of elements, at least half of the MLP rows are bitwise equal,
 *   and mixers lie within 1.5 times the distance that upstream itself has from
 *   itself with its sums reversed (fixtures/calibration/tiny-a.json).
 *
 *   --sums written: every stage within 1.5 times that distance; and at least
 * half of the MLP rows are bitwise equal to upstream's with its sums exact (fed
 * with the same inputs: fixtures/calibration/tiny-a/CASE).
 *
 *   f32, rounded to f16 at each stage's end, must fail the first of these.
 */
#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "safetensors/safetensors.h"
#include "tap.h"
#include "json/json.h"

#include <sys/wait.h>
#include <unistd.h>

static const char recordings[] = "../shared/data/bonsai-tiny-a";
static const char calibration[] = "fixtures/calibration/tiny-a.json";
static const char *const cases[] = {"shapes", "thinking-arithmetic"};
static const size_t CAP = (size_t)1 << 30;

struct distance {
    double differing;  /* share of elements */
    double equal_rows; /* share of rows */
    double relative_l2;
};

/* ---- running the program ---- */

static int run(const char *out, const char *name, const char *precision,
               const char *sums)
{
    const char *bin = getenv("ASSAY_BIN");
    char *command =
        xasprintf("%s/assay-forward --pack %s/pack --inputs %s/captures/%s"
                  " --prefix %s/captures/%s --files reference-f16"
                  " --local %s/captures/%s --trace '*' --precision %s --sums %s"
                  " --out %s",
                  bin ? bin : "build", recordings, recordings, name, recordings,
                  name, recordings, name, precision, sums, out);
    int status = system(command);

    free(command);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* ---- measuring a stage ---- */

static struct distance measure(const struct safetensors *reference,
                               const struct safetensors *ours, const char *name)
{
    struct err err = ERR_INIT;
    struct tensor a = {0}, b = {0};
    struct distance d = {1, 0, INFINITY};

    if (safetensors_load(reference, name, CAP, &a, &err) ||
        safetensors_load(ours, name, CAP, &b, &err) ||
        !shape_equal(&a.shape, &b.shape)) {
        diag("%s: %s", name, err.text);
        goto out;
    }
    size_t n = (size_t)shape_count(&a.shape), cols = (size_t)a.shape.size[1];
    float *x = xcalloc(n, sizeof(*x)), *y = xcalloc(n, sizeof(*y));
    dtype_to_f32(a.dtype, a.data, n, x);
    dtype_to_f32(b.dtype, b.data, n, y);
    size_t differing = 0, rows = 0;
    double square = 0, whole = 0;
    for (size_t i = 0; i < n; i += cols) {
        size_t before = differing;

        for (size_t k = i; k < i + cols; k++) {
            float rounded =
                a.dtype == DTYPE_F16 ? f16_to_f32(f16_from_f32(y[k])) : y[k];
            double off = (double)rounded - (double)x[k];

            differing += rounded != x[k];
            square += off * off;
            whole += (double)x[k] * (double)x[k];
        }
        rows += differing == before;
    }
    d = (struct distance){(double)differing / (double)n,
                          (double)rows / (double)(n / cols),
                          sqrt(square / whole)};
    free(x);
    free(y);
out:
    tensor_release(&a);
    tensor_release(&b);
    return d;
}

/* Upstream's own distance under reversed sums, of the same stage alone. */
static double reversed(const json_t *root, const char *name, const char *stage)
{
    const json_t *at = json_object_get(root, "calibration");

    at = json_object_get(json_object_get(at, name), "reversed");
    at = json_object_get(json_object_get(at, "stages_local"), stage);
    return json_number_value(json_object_get(at, "rel_l2"));
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);

    return n >= m && strcmp(text + n - m, end) == 0;
}

/* ---- the three claims about one pass ---- */

struct verdict {
    int stages, far, vision_off, mlp_off, mixer_far;
    double worst_vision, least_mlp, worst_mixer;
};

static struct verdict judge(const char *name, const char *out,
                            const json_t *root)
{
    struct err err = ERR_INIT;
    char *ref =
        xasprintf("%s/captures/%s/trace-f16.safetensors", recordings, name);
    char *mine = path_join(out, "trace.safetensors");
    struct safetensors *a = safetensors_open(ref, &err);
    struct safetensors *b = safetensors_open(mine, &err);
    struct verdict v = {.least_mlp = 1};

    for (size_t i = 0; a && b && i < safetensors_count(a); i++) {
        const char *tensor = safetensors_at(a, i)->name;
        const char *stage = tensor + strlen("trace.");
        struct distance d = measure(a, b, tensor);
        double allowed = 1.5 * reversed(root, name, stage);

        v.stages++;
        v.far += d.relative_l2 > allowed;
        if (strncmp(stage, "vision.", 7) == 0) {
            v.vision_off += d.differing > 0.01;
            v.worst_vision = fmax(v.worst_vision, d.differing);
        } else if (ends_with(stage, ".mlp")) {
            v.mlp_off += d.equal_rows < 0.5;
            v.least_mlp = fmin(v.least_mlp, d.equal_rows);
        } else if (ends_with(stage, ".mixer")) {
            v.mixer_far += d.relative_l2 > allowed;
            v.worst_mixer = fmax(v.worst_mixer, d.relative_l2 * 1.5 / allowed);
        }
    }
    if (err.code)
        diag("%s", err.text);
    safetensors_close(a);
    safetensors_close(b);
    free(ref);
    free(mine);
    return v;
}

/* The least share of equal MLP rows against upstream with exact sums. */
static double exact_mlp_rows(const char *dir, const char *name)
{
    struct err err = ERR_INIT;
    char *ref =
        xasprintf("fixtures/calibration/tiny-a/%s/trace-f16.safetensors", name);
    char *mine = xasprintf("%s/%s-f16-written/trace.safetensors", dir, name);
    struct safetensors *a = safetensors_open(ref, &err);
    struct safetensors *b = safetensors_open(mine, &err);
    double least = INFINITY;

    for (size_t i = 0; a && b && i < safetensors_count(a); i++) {
        const char *tensor = safetensors_at(a, i)->name;

        if (ends_with(tensor, ".mlp"))
            least = fmin(least, measure(a, b, tensor).equal_rows);
    }
    if (err.code)
        diag("%s", err.text);
    safetensors_close(a);
    safetensors_close(b);
    free(ref);
    free(mine);
    return least;
}

static struct verdict pass(const char *dir, const char *name,
                           const char *precision, const char *sums,
                           const json_t *root)
{
    char *out = xasprintf("%s/%s-%s-%s", dir, name, precision, sums);

    ok(run(out, name, precision, sums) == 0, "%s, %s, sums %s: runs", name,
       precision, sums);
    struct verdict v = judge(name, out, root);
    diag("%s, %s, sums %s: vision differs in at most %.3f %% of elements, MLP "
         "rows equal at least %.1f %%, mixers at most %.2f times upstream's "
         "own distance",
         name, precision, sums, 100 * v.worst_vision, 100 * v.least_mlp,
         v.worst_mixer);
    free(out);
    return v;
}

int main(void)
{
    char dir[] = "/tmp/local_stages.XXXXXX";
    struct err err = ERR_INIT;

    if (!io_is_dir(recordings))
        skip_all("no bonsai-tiny-a");
    json_t *root = json_read_file(calibration, &err);
    if (!root || !mkdtemp(dir)) {
        diag("%s", err.text);
        return 1;
    }
    for (size_t i = 0; i < 2; i++) {
        struct verdict v = pass(dir, cases[i], "f16", "chain", root);

        ok(v.stages >= 14, "%s: all stages are there", cases[i]);
        ok(v.vision_off == 0, "%s: vision stages differ in at most 1 %%",
           cases[i]);
        ok(v.mlp_off == 0, "%s: half of the MLP rows are bitwise equal",
           cases[i]);
        ok(v.mixer_far == 0, "%s: mixers are as near as upstream to itself",
           cases[i]);
        v = pass(dir, cases[i], "f16", "written", root);
        ok(v.far == 0, "%s: in the written orders every stage is as near",
           cases[i]);
        double exact = exact_mlp_rows(dir, cases[i]);
        diag("%s: %.1f %% of MLP rows equal upstream's exact sums", cases[i],
             100 * exact);
        ok(exact >= 0.5 && exact <= 1,
           "%s: half of the MLP rows are upstream's with exact sums", cases[i]);
        v = pass(dir, cases[i], "f32", "written", root);
        ok(v.mlp_off > 0 && v.mixer_far > 0 && (i > 0 || v.vision_off > 0),
           "%s: an f32 pass rounded at each stage's end is found out",
           cases[i]);
    }
    json_decref(root);
    io_remove_tree(dir, &err);
    return done();
}
