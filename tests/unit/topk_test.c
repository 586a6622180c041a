/* torch.topk's choice among equal values: vectors of torch 2.13
 * (specs/families/deepseek-v4.md 6.4). */
#include "kernels/topk.h"

#include "base/mem.h"
#include "safetensors/safetensors.h"
#include "tap.h"

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static bool picks(const double *values, int64_t n, int64_t k,
                  const int64_t *want)
{
    struct topk_pair *scratch = xcalloc((size_t)n, sizeof(*scratch));
    int64_t *chosen = xcalloc((size_t)k, sizeof(*chosen));
    bool good;

    topk_torch(values, n, k, chosen, scratch);
    qsort(chosen, (size_t)k, sizeof(*chosen), ascending);
    good = memcmp(chosen, want, (size_t)k * sizeof(*want)) == 0;
    if (!good)
        for (int64_t i = 0; i < k; i++)
            diag("got %lld, wanted %lld", (long long)chosen[i],
                 (long long)want[i]);
    free(chosen);
    free(scratch);
    return good;
}

/* n = 16, the first c values 0, the rest -infinity, two picked */
static void test_zeros(void)
{
    static const int64_t want[16][2] = {
        {0, 11}, {0, 1}, {0, 1}, {0, 1}, {0, 1}, {4, 5},  {5, 6},  {5, 7},
        {5, 7},  {6, 8}, {6, 8}, {7, 9}, {8, 9}, {9, 10}, {9, 10}, {10, 11}};
    double values[16];
    int wrong = 0;

    for (int c = 1; c <= 16; c++) {
        for (int i = 0; i < 16; i++)
            values[i] = i < c ? 0 : -INFINITY;
        wrong += !picks(values, 16, 2, want[c - 1]);
    }
    is_int(wrong, 0, "zeros before masked entries");
}

static void test_vectors(void)
{
    static const struct {
        const char *name;
        int64_t n, k;
        double values[16];
        int64_t want[2];
    } cases[] = {
        {"two halves",
         16,
         2,
         {0, .5, 0, 0, .5, .25, 0, .5, -INFINITY, -INFINITY, -INFINITY,
          -INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY},
         {1, 4}},
        {"eight equal", 8, 2, {0}, {5, 6}},
        {"four equal", 4, 2, {0}, {2, 3}},
        {"three equal", 3, 2, {0}, {0, 1}},
        {"router scores in bf16",
         8,
         2,
         {.832, .836, .836, .828, .836, .83, .836, .82},
         {1, 6}},
        {"no ties", 8, 2, {1, 5, 2, 8, 3, 0, -1, 4}, {1, 3}},
        {"a NaN comes first", 8, 2, {1, NAN, 2, 8, 3, 0, -1, 4}, {1, 3}},
        {"all", 2, 2, {1, 2}, {0, 1}},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        ok(picks(cases[i].values, cases[i].n, cases[i].k, cases[i].want), "%s",
           cases[i].name);
}

/* k at most n / 64: torch 2.13's topk of zeros with a few other values. */
static void test_partial_sort(void)
{
    static const struct {
        int64_t n, k;
        struct {
            int at;
            double value;
        } other[5];
        int64_t want[4];
    } cases[] = {
        {128, 2, {{2, 18}, {14, 18}, {24, 20}}, {14, 24}},
        {192, 3, {{2, 1}, {3, 1}, {4, 1}, {50, 2}}, {3, 4, 50}},
        {192, 3, {{0, 1}, {1, 1}, {2, 1}, {60, 2}, {70, 2}}, {1, 60, 70}},
        {256,
         4,
         {{9, 5}, {10, 5}, {11, 5}, {12, 5}, {99, 6}},
         {10, 11, 12, 99}},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        double values[256] = {0};

        for (int k = 0; k < 5 && cases[i].other[k].value > 0; k++)
            values[cases[i].other[k].at] = cases[i].other[k].value;
        ok(picks(values, cases[i].n, cases[i].k, cases[i].want),
           "%lld of %lld: a heap's choice", (long long)cases[i].k,
           (long long)cases[i].n);
    }
}

static struct tensor recording(struct safetensors *s, const char *name)
{
    struct err err = ERR_INIT;
    struct tensor t = {0};

    if (safetensors_load(s, name, 1 << 24, &t, &err)) {
        diag("%s", err.text);
        exit(1);
    }
    return t;
}

/* The choice of torch 2.13.0, recorded by tests/oracle/torch_topk.py. */
static void test_recorded(void)
{
    enum { MOST = 700 };
    struct err err = ERR_INIT;
    struct safetensors *s =
        safetensors_open("fixtures/torch/topk.safetensors", &err);
    struct topk_pair scratch[MOST];
    double wide[MOST];
    int64_t picked[MOST], at = 0;
    int wrong = 0;

    if (!s) {
        diag("%s", err.text);
        exit(1);
    }
    struct tensor values = recording(s, "values");
    struct tensor shapes = recording(s, "shapes");
    struct tensor chosen = recording(s, "chosen");
    const int64_t *shape = shapes.data;
    const unsigned char *taken = chosen.data;
    int64_t rows = shape_count(&shapes.shape) / 2;
    for (int64_t r = 0; r < rows; r++, shape += 2) {
        unsigned char ours[MOST] = {0};

        for (int64_t i = 0; i < shape[0]; i++)
            wide[i] = (double)((const float *)values.data)[at + i];
        topk_torch(wide, shape[0], shape[1], picked, scratch);
        for (int64_t i = 0; i < shape[1]; i++)
            ours[picked[i]] = 1;
        wrong += memcmp(ours, taken + at, (size_t)shape[0]) != 0;
        at += shape[0];
    }
    is_int(rows, 240, "recorded choices");
    is_int(wrong, 0, "each is of the same values, whatever the ties");
    tensor_release(&values);
    tensor_release(&shapes);
    tensor_release(&chosen);
    safetensors_close(s);
}

/* Whatever the ties, the k largest values; also past the fallback. */
static void test_largest(void)
{
    enum { N = 300 };
    struct topk_pair scratch[N];
    double values[N];
    int64_t chosen[N];
    uint64_t state = 7;
    int wrong = 0;

    for (int round = 0; round < 2000; round++) {
        int64_t n = 1 + round % N, k = 1 + round * 7 % n;
        bool is_organ = round % 5 == 0; /* hard for a median of three */

        for (int64_t i = 0; i < n; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            values[i] = is_organ ? (double)(i < n / 2 ? i : n - i)
                                 : (double)(state >> 60);
        }
        topk_torch(values, n, k, chosen, scratch);
        double least = INFINITY;
        int64_t above = 0;
        for (int64_t i = 0; i < k; i++)
            least = values[chosen[i]] < least ? values[chosen[i]] : least;
        for (int64_t i = 0; i < n; i++)
            above += values[i] > least;
        qsort(chosen, (size_t)k, sizeof(*chosen), ascending);
        for (int64_t i = 1; i < k; i++)
            wrong += chosen[i] == chosen[i - 1];
        wrong += above >= k;
    }
    is_int(wrong, 0, "the k largest, each once");
}

int main(void)
{
    test_zeros();
    test_vectors();
    test_partial_sort();
    test_recorded();
    test_largest();
    return done();
}
