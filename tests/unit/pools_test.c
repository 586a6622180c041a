/* Selection by pools (specs/families/glm-5-next.md 7, 12.5): cases small enough
 * to work out by hand. */
#include "kernels/pools.h"

#include "tap.h"

#include <math.h>
#include <string.h>

enum { TOKENS = 9, SIZE = 4 };

/* Pools 0-3 and 4-7 are whole; one head and column; a row's query is its sign.
 * Keys 1 and 2: a positive query prefers pool 1, a negative one finds both at
 * zero, and among two equal scores torch.topk takes index 0. */
static const float k[] = {1, 2};
static const struct {
    int64_t chosen, t;
    float q, weight;
    const char *want;
} cases[] = {
    {1, 0, 1, 1, "100000000"}, /* the tail alone */
    {1, 2, 1, 1, "111000000"},
    {1, 3, 1, 1, "111100000"}, /* its pool is whole, and wins over none */
    {1, 4, 1, 1, "111110000"},
    {1, 7, 1, 1, "000011110"},  /* its own pool wins */
    {1, 7, 1, -1, "111100000"}, /* its own pool loses: it does not see itself */
    {1, 8, 1, 1, "000011111"},
    {1, 8, -1, 1, "111100001"},
    {2, 8, 1, 1, "111111111"},  /* room for all: dense */
    {2, 5, 1, 1, "111111000"},  /* pool 1 is picked but not visible */
    {9, 8, 1, -1, "111111111"}, /* fewer pools than places */
};

static void selection(void)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct pools shape = {SIZE, 1, 1, cases[i].chosen, true, 1};
        unsigned char seen[TOKENS * TOKENS], wide[TOKENS * TOKENS];
        float q[TOKENS], w[TOKENS];
        double qd[TOKENS], wd[TOKENS], kd[] = {1, 2};
        char text[TOKENS + 1] = "";

        for (int t = 0; t < TOKENS; t++) {
            qd[t] = (double)(q[t] = cases[i].q);
            wd[t] = (double)(w[t] = cases[i].weight);
        }
        pool_select(seen, q, k, w, &shape, TOKENS);
        pool_select_f64(wide, qd, kd, wd, &shape, TOKENS);
        for (int j = 0; j < TOKENS; j++)
            text[j] = seen[cases[i].t * TOKENS + j] ? '1' : '0';
        is_str(text, cases[i].want, "what a token sees");
        ok(memcmp(seen, wide, sizeof(seen)) == 0, "and so in double");
    }
}

static void no_tail(void)
{
    struct pools shape = {1, 1, 1, 1, false, 1};
    const float q[] = {1, 1, 1}, keys[] = {3, 1, 2}, w[] = {1, 1, 1};
    unsigned char seen[9];

    pool_select(seen, q, keys, w, &shape, 3);
    ok(memcmp(seen, "\1\0\0\1\0\0\1\0\0", 9) == 0,
       "pools of one token: the best of those up to it");
}

static void keys(void)
{
    /* two columns: equal gates, and one that takes member 1 alone */
    static const float x[] = {1, 5, 3, 7, 9, 9}, gate[] = {0, 0, 1, 200, 0, 0},
                       place[] = {1, 0, 0, 0};
    static const double xd[] = {1, 5, 3, 7, 9, 9}, gd[] = {0, 0, 1, 200, 0, 0},
                        pd[] = {1, 0, 0, 0};
    struct pools shape = {2, 1, 2, 1, true, 1};
    float y[2];
    double wide[2];

    pool_keys(y, x, gate, place, &shape, 3, DTYPE_F32);
    pool_keys_f64(wide, xd, gd, pd, &shape, 3, DTYPE_F64);
    ok(y[0] == 2.0f && y[1] == 7.0f, "a pool's key is a mean by columns");
    ok(wide[0] == 2.0 && fabs(wide[1] - 7) < 1e-12, "and so in double");
}

static void roundings(void)
{
    /* weights 1/2; products 0.5 * 1.0078125 (bf16) are exact, their sum of
     * 1.00390625 lies between two bf16 values and goes to the even one, 1 */
    static const float x[] = {1.0078125f, 1.0f}, none[] = {0, 0};
    struct pools shape = {2, 1, 1, 1, true, 1};
    float y[1];

    pool_keys(y, x, none, none, &shape, 2, DTYPE_BF16);
    ok(y[0] == 1.0f, "a pool's key is rounded once, to the even of two");
}

int main(void)
{
    selection();
    no_tail();
    keys();
    roundings();
    return done();
}
