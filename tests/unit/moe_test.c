/* Routing and experts: hand examples, and each row by itself. */
#include "models/moe.h"

#include "base/mem.h"
#include "tap.h"

static struct ops ops;

static struct act values(int64_t rows, int64_t cols, enum dtype t,
                         const float *x)
{
    struct act a = ops_new(&ops, rows, cols, t);

    for (int64_t i = 0; i < rows * cols; i++)
        if (act_is_wide(&a))
            act_d(&a)[i] = (double)x[i];
        else
            act_f(&a)[i] = x[i];
    return a;
}

static bool routes(const struct routed *r, int64_t row, const int64_t *expert,
                   const float *weight)
{
    bool good = true;

    for (int64_t s = 0; s < r->chosen; s++) {
        int64_t at = row * r->chosen + s, found = -1;

        for (int64_t k = 0; k < r->chosen; k++)
            if (expert[k] == r->expert[at])
                found = k;
        good &= found >= 0 && act_f(&r->weight)[at] == weight[found];
    }
    return good;
}

static void test_bias(void)
{
    static const float x[4] = {0.5f, 0.25f, 0.125f, 0.75f};
    static const float bias[4] = {0, 1, 0, -1};
    static const double wide[4] = {0, 1, 0, -1};
    struct param b = {DTYPE_F32, 4, bias, wide};
    struct routing how = {.chosen = 2,
                          .groups = 1,
                          .groups_kept = 1,
                          .is_normalised = true,
                          .scale = 1};
    struct act scores = values(1, 4, DTYPE_F32, x);
    struct routed r = op_route(&ops, &scores, &b, &how);

    /* chosen by 0.5, 1.25, 0.125, -0.25; weighed by 0.5 and 0.25 */
    ok(routes(&r, 0, (int64_t[]){0, 1}, (float[]){0.5f / 0.75f, 0.25f / 0.75f}),
       "the bias is in the choice, not in the weights");
    ok(act_f(&r.margin)[0] == 0.375f, "the margin: 0.5 against 0.125");
    how.is_normalised = false;
    how.scale = 4;
    r = op_route(&ops, &scores, NULL, &how);
    ok(routes(&r, 0, (int64_t[]){0, 3}, (float[]){2, 3}),
       "not normalised, scaled");
}

static void test_groups(void)
{
    /* two groups of four: the best expert is in the worse group */
    static const float x[8] = {0.9f, 0.1f, 0.1f, 0.1f, 0.6f, 0.5f, 0.4f, 0.3f};
    static const float bias[8] = {-9, -9, -9, -9, -9, -9, -9, -9};
    static const double wide[8] = {-9, -9, -9, -9, -9, -9, -9, -9};
    struct param b = {DTYPE_F32, 8, bias, wide};
    struct routing how = {
        .chosen = 2, .groups = 2, .groups_kept = 1, .scale = 1};
    struct act scores = values(1, 8, DTYPE_F32, x);
    struct routed r = op_route(&ops, &scores, NULL, &how);

    ok(routes(&r, 0, (int64_t[]){4, 5}, (float[]){0.6f, 0.5f}),
       "a group counts by its two best");
    r = op_route(&ops, &scores, &b, &how);
    ok(routes(&r, 0, (int64_t[]){4, 5}, (float[]){0.6f, 0.5f}),
       "left out is -infinity, not 0");
}

static void test_rounding(void)
{
    static const float x[2] = {0.6640625f, 0.333984375f}; /* exact in bf16 */
    struct routing how = {.chosen = 2,
                          .groups = 1,
                          .groups_kept = 1,
                          .is_normalised = true,
                          .eps = 1e-20,
                          .scale = 1.5};
    struct act scores = values(1, 2, DTYPE_BF16, x);
    struct routed r = op_route(&ops, &scores, NULL, &how);

    /* the sum 0.998046875 is exact; 0.66537... rounds to 0.6640625, times 1.5
     * is exact; 0.33464... rounds to 0.333984375, times 1.5 to 0.5 */
    ok(routes(&r, 0, (int64_t[]){0, 1}, (float[]){0.99609375f, 0.5f}),
       "each step rounds to the scores' dtype");
}

int main(void)
{
    struct err err = ERR_INIT;

    if (ops_init(&ops, PRECISION_BF16, SUMS_WRITTEN, 1 << 16, &err))
        return 1;
    test_bias();
    test_groups();
    test_rounding();
    ops_release_all(&ops);
    return done();
}
