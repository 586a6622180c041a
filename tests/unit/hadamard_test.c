/* The rotation: bonsai2.md A.7, its definition in double, and bits. */
#include "kernel_data.h"
#include "kernels/hadamard.h"

static uint32_t bits(float x)
{
    uint32_t u;

    memcpy(&u, &x, sizeof(u));
    return u;
}

static float sign(void)
{
    return data_next() & 1 ? 1.0f : -1.0f;
}
static float small_integer(void)
{
    return (float)((int)(data_next() % 17) - 8);
}

/* A.7: a unit vector e_1 gives +-r32(1/sqrt(b)), + at even indices. */
static void test_unit_vectors(void)
{
    static const struct {
        int64_t block;
        uint32_t factor;
    } blocks[] = {{512, 0x3d3504f3},
                  {1024, 0x3d000000},
                  {2048, 0x3cb504f3},
                  {4096, 0x3c800000}};

    for (size_t n = 0; n < sizeof(blocks) / sizeof(blocks[0]); n++) {
        int64_t b = blocks[n].block;
        float *x = data_array(b, 4), *signs = data_array(b, 4);
        int wrong = 0;

        for (int64_t i = 0; i < b; i++)
            signs[i] = 1;
        x[1] = 1;
        hadamard_rotate(x, signs, b, b, 1);
        for (int64_t i = 0; i < b; i++)
            wrong += bits(x[i]) != (blocks[n].factor | (uint32_t)(i & 1) << 31);
        is_int(wrong, 0, "A.7: e_1 in a block");
        free(x), free(signs);
    }
}

static int parity(uint64_t x)
{
    return __builtin_popcountll(x) & 1;
}

/* H[i][j] = (-1)^popcount(i AND j) / sqrt(b), in double. */
static void test_definition(void)
{
    static const int64_t blocks[] = {1, 2, 4, 8, 16, 64, 512};

    for (size_t n = 0; n < sizeof(blocks) / sizeof(blocks[0]); n++) {
        int64_t b = blocks[n], width = 3 * b;
        float *x = data_fill(width, data_normal), *s = data_fill(width, sign),
              *y = data_array(width, 4), *z = data_array(width, 4);
        double *wide = data_widen(x, width), *ss = data_widen(s, width);
        double worst = 0, worst_wide = 0;

        memcpy(y, x, (size_t)width * 4);
        memcpy(z, x, (size_t)width * 4);
        hadamard_rotate(y, s, width, b, 1);
        hadamard_inverse(z, s, width, b, 1);
        hadamard_rotate_f64(wide, ss, width, b, 1);
        for (int64_t i = 0; i < width; i++) {
            double forward = 0, inverse = 0;

            for (int64_t j = i / b * b; j < i / b * b + b; j++) {
                double v = (double)x[j];

                if (parity((uint64_t)(i % b & j % b)))
                    v = -v;
                forward += v * ss[j];
                inverse += v * ss[i];
            }
            forward /= sqrt((double)b);
            inverse /= sqrt((double)b);
            worst = fmax(worst, fabs((double)y[i] - forward));
            worst = fmax(worst, fabs((double)z[i] - inverse));
            worst_wide = fmax(worst_wide, fabs(wide[i] - forward));
        }
        ok(worst < 2e-6 && worst_wide < 4e-15,
           "block %d: f32 within %.2g, f64 within %.2g of the definition",
           (int)b, worst, worst_wide);
        free(x), free(s), free(y), free(z), free(wide), free(ss);
    }
}

/* A.7: small integers come back exactly in blocks of 1024 and 4096. */
static void test_round_trip(void)
{
    static const int64_t blocks[] = {1024, 4096};

    for (int n = 0; n < 2; n++) {
        int64_t b = blocks[n];
        float *x = data_fill(b, small_integer), *s = data_fill(b, sign),
              *y = data_array(b, 4);
        int wrong = 0;

        memcpy(y, x, (size_t)b * 4);
        hadamard_rotate(y, s, b, b, 1);
        hadamard_inverse(y, s, b, b, 1);
        for (int64_t i = 0; i < b; i++)
            wrong += y[i] != x[i];
        is_int(wrong, 0, "A.7: integers survive the round trip");
        free(x), free(s), free(y);
    }
}

static void same_bits(int64_t width, int64_t block, int64_t rows,
                      bool is_spoilt)
{
    int64_t n = width * rows;
    size_t size = (size_t)n * 4;
    float *x = data_fill(n, is_spoilt ? data_hard : data_normal),
          *s = data_fill(width, sign), *want = data_array(2 * n, 4),
          *got = data_array(2 * n, 4);
    double *ss = data_widen(s, width), *want_wide, *got_wide;
    bool good = true;

    if (is_spoilt) {
        x[0] = INFINITY, x[n / 2] = -INFINITY, x[n - 1] = -NAN;
    }
    for (int i = -1; i < SETUPS; i++) {
        float *y = i < 0 ? want : got;

        if (i < 0) {
            set_threads(1);
            select_form("plain");
        } else if (!use_setup(i)) {
            continue;
        }
        memcpy(y, x, size);
        memcpy(y + n, x, size);
        hadamard_rotate(y, s, width, block, rows);
        hadamard_inverse(y + n, s, width, block, rows);
        good &= i < 0 || memcmp(got, want, 2 * size) == 0;
    }
    want_wide = data_widen(x, n);
    set_threads(1);
    select_form("plain");
    hadamard_rotate_f64(want_wide, ss, width, block, rows);
    hadamard_inverse_f64(want_wide, ss, width, block, rows);
    for (int i = 0; i < SETUPS; i++)
        if (use_setup(i)) {
            got_wide = data_widen(x, n);
            hadamard_rotate_f64(got_wide, ss, width, block, rows);
            hadamard_inverse_f64(got_wide, ss, width, block, rows);
            good &= memcmp(got_wide, want_wide, 2 * size) == 0;
            free(got_wide);
        }
    ok(good, "width %d, block %d, %d rows%s: the same bits", (int)width,
       (int)block, (int)rows, is_spoilt ? ", hard values" : "");
    free(x), free(s), free(want), free(got), free(ss), free(want_wide);
}

int main(void)
{
    static const int64_t shapes[][3] = {
        {1, 1, 3},       {6, 2, 2},      {12, 4, 5},    {24, 8, 3},
        {48, 16, 1},     {96, 32, 7},    {512, 512, 5}, {2048, 1024, 3},
        {6144, 2048, 2}, {8192, 4096, 2}};

    for (int form = 0; form < 2; form++)
        if (select_form(form ? "avx2" : "plain")) {
            test_unit_vectors();
            test_definition();
            test_round_trip();
        }
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        for (int spoilt = 0; spoilt < 2; spoilt++)
            same_bits(shapes[i][0], shapes[i][1], shapes[i][2], spoilt);
    set_threads(1);
    return done();
}
