/* Hyper-connections: vectors of specs/families/deepseek-v4.md 13 and, for the
 * mix, figures small enough to work out by hand. */
#include "kernels/streams.h"

#include "tap.h"

#include <math.h>
#include <string.h>

static const double logits[] = {0.5, -0.2, 0.1, 0.9};
static const struct {
    int64_t iterations;
    double want[4];
} vectors[] = {
    {1, {.68306854, .32473730, .31693044, .67526172}},
    {2, {.67967873, .32132282, .32032027, .67867618}},
    {20, {.67917766, .32082134, .32082134, .67917766}},
};

static void sinkhorn(void)
{
    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
        double wide[4], worst = 0;
        float narrow[4];

        for (int k = 0; k < 4; k++)
            narrow[k] = (float)(wide[k] = logits[k]);
        streams_sinkhorn_f64(wide, 1, 2, vectors[i].iterations, 1e-6);
        streams_sinkhorn(narrow, 1, 2, vectors[i].iterations, 1e-6);
        for (int k = 0; k < 4; k++) {
            worst = fmax(worst, fabs(wide[k] - vectors[i].want[k]));
            worst = fmax(worst, fabs((double)narrow[k] - vectors[i].want[k]));
        }
        ok(worst < 2e-7, "Sinkhorn after %lld iterations",
           (long long)vectors[i].iterations);
    }
}

static void mix(void)
{
    /* two streams of two values, an m that is not symmetric */
    static const double x0[] = {1, 2, 3, 4}, post[] = {0.5, 2}, y[] = {1, -1},
                        m[] = {0.25, 0.75, 1, 0.5},
                        want[] = {3.75, 4, 4.25, 1.5};
    double wide[4];
    float x[4], p[2], z[2], c[4];
    bool same = true;

    memcpy(wide, x0, sizeof(wide));
    streams_mix_f64(wide, post, m, y, 1, 2, 2);
    ok(memcmp(wide, want, sizeof(want)) == 0,
       "streams mix by the matrix transposed");
    for (int i = 0; i < 4; i++) {
        x[i] = (float)x0[i];
        c[i] = (float)m[i];
    }
    for (int i = 0; i < 2; i++) {
        p[i] = (float)post[i];
        z[i] = (float)y[i];
    }
    streams_mix(x, p, c, z, 1, 2, 2, DTYPE_BF16);
    for (int i = 0; i < 4; i++)
        same &= (double)x[i] == want[i];
    ok(same, "and so in bf16");
    /* 1 + 2^-8 rounds to 1 in bf16 before it multiplies 2^9: 512, not 514 */
    x[0] = 0;
    p[0] = 1.00390625f;
    z[0] = 512;
    c[0] = 0;
    streams_mix(x, p, c, z, 1, 1, 1, DTYPE_BF16);
    ok(x[0] == 512.0f, "post is rounded before it multiplies");
}

static void collapse(void)
{
    static const float x[] = {1, 2, 3, 4}, w[] = {0.5f, 0.25f};
    float y[2];

    streams_collapse(y, x, w, 1, 2, 2, DTYPE_F32);
    ok(y[0] == 1.25f && y[1] == 2.0f, "streams collapse by their weights");
}

int main(void)
{
    sinkhorn();
    mix();
    collapse();
    return done();
}
