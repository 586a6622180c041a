/* Position embeddings, rotary angles and norms against what upstream made. */
#include "base/io.h"
#include "forms.h"
#include "kernels/norm.h"
#include "kernels/posembed.h"
#include "kernels/rope.h"
#include "kernels/round.h"
#include "recorded.h"
#include "tap.h"

static void read_grid(const struct safetensors *st, const char *name,
                      struct posembed_grid *grid)
{
    struct err err = ERR_INIT;
    int64_t thw[3];

    if (safetensors_read(st, safetensors_find(st, name), 0, 24, thw, &err))
        exit(1);
    grid->height = thw[1];
    grid->width = thw[2];
}

enum { SIDE = 48, COLS = 4, ANGLES = 16 };

static void test_recorded(void)
{
    static float table[SIDE * SIDE * COLS];
    static double wide[SIDE * SIDE * COLS];
    struct safetensors *st =
        recorded_open("fixtures/posembed/good-grids.safetensors");

    for (uint64_t i = 0; i < SIDE * SIDE * COLS; i++) {
        table[i] = (float)((uint32_t)(i * 2654435761) >> 21) / 512 - 2;
        wide[i] = (double)table[i];
    }
    for (int n = 0; n < 5; n++) {
        struct posembed_grid grid = {.side = SIDE, .merge = 2};
        char name[32];
        int64_t count = 0;
        float *f32;

        snprintf(name, sizeof(name), "%d.grid", n);
        read_grid(st, name, &grid);
        for (int k = 0; k < 2; k++) {
            enum dtype t = k ? DTYPE_F32 : DTYPE_F16;

            snprintf(name, sizeof(name), "%d.%s", n, k ? "f32" : "f16");
            float *want = load_from(st, &count, "%s", name);
            float *got = malloc((size_t)count * sizeof(*got));
            int64_t rows = count / COLS;
            if (!got)
                exit(1);
            posembed_rows(got, table, COLS, &grid, 0, rows / 2, t);
            posembed_rows(got + rows / 2 * COLS, table, COLS, &grid, rows / 2,
                          rows - rows / 2, t);
            is_int(differing(got, want, count), 0, name);
            f32 = want;
            if (k) {
                double far = 0, *exact = malloc((size_t)count * sizeof(*exact));

                if (!exact)
                    exit(1);
                posembed_rows_f64(exact, wide, COLS, &grid, 0, rows);
                for (int64_t i = 0; i < count; i++)
                    far = fmax(far, fabs(exact[i] - (double)f32[i]));
                ok(far < 2e-5, "double is near (%g)", far);
                free(exact);
            }
            free(want);
            free(got);
        }
        snprintf(name, sizeof(name), "%d.angles", n);
        float *want = load_from(st, &count, "%s", name);
        float *got = malloc((size_t)count * sizeof(*got));
        if (!got)
            exit(1);
        rope_vision_angles(got, ANGLES, 1e4, &grid, 0, count / ANGLES);
        is_int(differing(got, want, count), 0, name);
        free(want);
        free(got);
    }
    safetensors_close(st);
}

/* A trace of the tiny pack, where the recordings are at hand. */
static void test_trace(void)
{
    static const char data[] = "../shared/data/bonsai-tiny-a/";
    struct posembed_grid grid = {.side = 12, .merge = 2};
    char path[128];
    int64_t count, table_count;

    if (!io_exists(data)) {
        diag("no recordings here");
        return;
    }
    snprintf(path, sizeof(path), "%spack/model.safetensors", data);
    struct safetensors *pack = recorded_open(path);
    snprintf(path, sizeof(path), "%scaptures/shapes/trace-f16.safetensors",
             data);
    struct safetensors *trace = recorded_open(path);
    snprintf(path, sizeof(path), "%scaptures/shapes/inputs.safetensors", data);
    struct safetensors *inputs = recorded_open(path);
    float *table =
        load_from(pack, &table_count, "vision_tower.pos_embed.weight");
    float *want = load_from(trace, &count, "trace.vision.pos_embed");
    float *got = malloc((size_t)count * sizeof(*got));

    if (!got)
        exit(1);
    read_grid(inputs, "image_grid_thw", &grid);
    posembed_rows(got, table, table_count / (12 * 12), &grid, 0,
                  grid.height * grid.width, DTYPE_F16);
    is_int(differing(got, want, count), 0, "trace.vision.pos_embed of shapes");
    free(want);
    want = load_from(trace, &count, "trace.vision.rotary_angles");
    int64_t cols = count / (grid.height * grid.width);
    rope_vision_angles(got, cols, 1e4, &grid, 0, grid.height * grid.width);
    is_int(differing(got, want, count), 0, "trace.vision.rotary_angles");
    free(want);
    free(got);
    free(table);
    safetensors_close(pack);
    safetensors_close(trace);
    safetensors_close(inputs);
}

static void test_norms(void)
{
    struct safetensors *st =
        recorded_open("fixtures/norm/good-rows.safetensors");
    int64_t count, cols, n;
    float *x = load_from(st, &count, "x"), *w = load_from(st, &cols, "weight");
    float *b = load_from(st, &cols, "bias");
    float *got = malloc((size_t)count * sizeof(*got));

    if (!got)
        exit(1);
    for (int k = 0; k < 6; k++) {
        static const char *const names[] = {"rms", "bare", "layer"};
        enum dtype t = k < 3 ? DTYPE_F16 : DTYPE_F32;
        char name[32];
        double far = 0;

        snprintf(name, sizeof(name), "%s.%s", names[k % 3],
                 k < 3 ? "f16" : "f32");
        float *want = load_from(st, &n, "%s", name);
        if (k % 3 == 2)
            layer_norm(got, x, w, b, count / cols, cols, 1e-6, t);
        else
            rms_norm(got, x, k % 3 ? NULL : w, count / cols, cols, 1e-6, t);
        for (int64_t i = 0; i < n; i++)
            far = fmax(far, fabs((double)(got[i] - want[i])) /
                                (1 + fabs((double)want[i])));
        diag("%s: %lld of %lld differ, by at most %g", name,
             (long long)differing(got, want, n), (long long)n, far);
        ok(t == DTYPE_F16 ? differing(got, want, n) <= 3 && far < 1e-3
                          : far < 1e-6,
           "%s: mlx's, but for the order of the sum", name);
        free(want);
    }
    free(x);
    free(w);
    free(b);
    free(got);
    safetensors_close(st);
}

int main(void)
{
    for (int i = 0; use_form(i); i++) {
        test_recorded();
        test_trace();
        test_norms();
    }
    return done();
}
