/* grid24, grid32, chain128 and decoding over ternary weights. */
#include "kernel_data.h"
#include "kernels/packed.h"

struct pack {
    struct packed_weight w;
    uint32_t *codes;
    uint16_t *scales, *biases;
};

/* Random codes and scales; a few scales are 0, subnormal or the largest. */
static struct pack make(int64_t out, int64_t in, bool is_hard)
{
    static const uint16_t odd[] = {0, 1, 0x3ff, 0x7bff, 0x400};
    struct pack p;
    int64_t groups = out * in / 128;

    p.codes = data_array(out * in / 16, 4);
    p.scales = data_array(groups, 2);
    p.biases = data_array(groups, 2);
    for (int64_t i = 0; i < out * in; i++)
        p.codes[i / 16] |= (uint32_t)(data_next() % 3) << i % 16 * 2;
    for (int64_t i = 0; i < groups; i++) {
        p.scales[i] = f16_from_f32(0.03f + 0.01f * data_uniform());
        if (is_hard && data_next() % 3 == 0)
            p.scales[i] = odd[data_next() % 5];
        p.biases[i] = p.scales[i] | 0x8000;
    }
    p.w = (struct packed_weight){out, in, p.codes, p.scales};
    return p;
}

static void release(struct pack *p)
{
    free(p->codes), free(p->scales), free(p->biases);
}

static int code_at(const struct packed_weight *w, int64_t row, int64_t k)
{
    return (int)(w->codes[(row * w->in + k) / 16] >> k % 16 * 2 & 3);
}

/* The order of orders.md once more, in double and whole numbers. */
static float grid_sum(const float *x, const struct packed_weight *w,
                      int64_t row, int bits)
{
    float y = 0;

    for (int64_t g = 0; g < w->in / 128; g++) {
        double m = 0, u;
        int64_t d = 0;
        int e = 0;
        float s = f16_to_f32(w->scales[row * (w->in / 128) + g]);

        for (int64_t k = g * 128; k < g * 128 + 128; k++) {
            if (!isfinite(x[k]))
                return NAN;
            m = fmax(m, fabs((double)x[k]));
        }
        if (m > 0) {
            frexp(m, &e);
            e = e - 1 < -80 ? -80 : e - 1;
        }
        u = ldexp(1, e - bits);
        for (int64_t k = g * 128; k < g * 128 + 128; k++) {
            double q =
                fmin(nearbyint((double)x[k] / u), ldexp(1, bits + 1) - 1);

            d += (code_at(w, row, k) - 1) * (int64_t)q;
        }
        y = fmaf((float)((double)s * u), (float)d, y);
    }
    return isnan(y) ? NAN : y;
}

static void test_order(enum packed_grid grid)
{
    const int64_t out = 5, in = 384, rows = 9;
    int bits = grid == PACKED_GRID24 ? 22 : 30, wrong = 0;

    for (int hard = 0; hard < 2; hard++) {
        struct pack p = make(out, in, hard);
        float *x = data_fill(rows * in, hard ? data_hard : data_normal),
              *y = data_array(rows * out, 4);

        /* q = 2^23 - 1/2 at both ends; rounds to the even 2^23 */
        x[0] = 0x1.fffffep0f, x[in] = -0x1.fffffep0f;
        for (int i = 1; i < 128; i++)
            x[i] = x[in + i] = data_uniform();
        memset(x + 2 * in, 0, (size_t)in * 4);
        for (int64_t i = 3 * in; i < 4 * in; i++) /* below 2^-80, and more */
            x[i] = ldexpf(x[i], i < 3 * in + 128 ? -140 : -90);
        packed_matmul(y, x, &p.w, grid, rows);
        for (int64_t t = 0; t < rows; t++)
            for (int64_t o = 0; o < out; o++) {
                float want = grid_sum(x + t * in, &p.w, o, bits);

                if (memcmp(&y[t * out + o], &want, 4) != 0) {
                    diag("row %d, output %d: got %a, wanted %a", (int)t, (int)o,
                         (double)y[t * out + o], (double)want);
                    wrong++;
                }
            }
        release(&p);
        free(x), free(y);
    }
    is_int(wrong, 0,
           grid == PACKED_GRID24 ? "sums follow grid24" : "sums follow grid32");
}

static float rotated_f16(void)
{
    return f16_to_f32(f16_from_f32(data_normal()));
}
static float with_outliers(void)
{
    float x = data_normal();

    return data_next() % 100 == 0 ? 50 * x : x;
}

/* orders.md measured these rms and largest errors in units of 1e-8 of the
 * products' norm; other numbers may lie half as far again, or twice. */
static void test_error(void)
{
    static const struct {
        const char *name;
        float (*value)(void);
        enum packed_grid grid;
        double rms, largest;
    } kinds[] = {
        {"f16", rotated_f16, PACKED_GRID24, 8, 34},
        {"f32", data_normal, PACKED_GRID24, 15, 51},
        {"f32 with outliers", with_outliers, PACKED_GRID24, 45, 236},
        {"f32 with outliers, grid32", with_outliers, PACKED_GRID32, 10, 49}};
    const int64_t out = 40, in = 2048, rows = 10;

    for (size_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++) {
        struct pack p = make(out, in, false);
        float *x = data_fill(rows * in, kinds[kind].value),
              *y = data_array(rows * out, 4), *row = data_array(in, 4);
        double *xx = data_widen(x, rows * in), *yy = data_array(rows * out, 8);
        double largest = 0, squares = 0, worst_wide = 0;

        packed_matmul(y, x, &p.w, kinds[kind].grid, rows);
        packed_matmul_f64(yy, xx, &p.w, rows);
        for (int64_t o = 0; o < out; o++) {
            packed_row(row, &p.w, o);
            for (int64_t t = 0; t < rows; t++) {
                long double exact = 0, norm = 0;
                double e, wide;

                for (int64_t i = 0; i < in; i++) {
                    long double v = (long double)x[t * in + i] * row[i];

                    exact += v;
                    norm += v * v;
                }
                norm = sqrtl(norm);
                e = 1e8 * (double)(fabsl(y[t * out + o] - exact) / norm);
                wide = (double)(fabsl(yy[t * out + o] - exact) / norm);
                largest = fmax(largest, e);
                squares += e * e;
                worst_wide = fmax(worst_wide, wide);
            }
        }
        ok(sqrt(squares / (double)(out * rows)) <= 1.5 * kinds[kind].rms &&
               largest <= 2 * kinds[kind].largest,
           "%s: rms error %.0f, largest %.0f 1e-8ths of the products' norm",
           kinds[kind].name, sqrt(squares / (double)(out * rows)), largest);
        ok(worst_wide < 3e-15, "and in double %.2g", worst_wide);
        release(&p);
        free(x), free(y), free(row), free(xx), free(yy);
    }
}

static void same_bits(int64_t out, int64_t in, int64_t rows, bool is_hard)
{
    struct pack p = make(out, in, is_hard);
    float *x = data_fill(rows * in, is_hard ? data_hard : data_normal);
    float *want[2], *got = data_array(rows * out, 4);
    double *xx, *want_wide = data_array(rows * out, 8),
                *got_wide = data_array(rows * out, 8);
    size_t n = (size_t)(rows * out);
    bool good = true;

    if (is_hard && rows > 2) {
        x[in - 1] = INFINITY;
        x[2 * in] = -NAN;
    }
    xx = data_widen(x, rows * in);
    set_threads(1);
    select_form("plain");
    for (int grid = 0; grid < 2; grid++) {
        want[grid] = data_array(rows * out, 4);
        packed_matmul(want[grid], x, &p.w, (enum packed_grid)grid, rows);
    }
    packed_matmul_f64(want_wide, xx, &p.w, rows);
    for (int i = 0; i < SETUPS; i++) {
        if (!use_setup(i))
            continue;
        for (int grid = 0; grid < 2; grid++) {
            memset(got, 0xff, n * 4);
            packed_matmul(got, x, &p.w, (enum packed_grid)grid, rows);
            good &= memcmp(got, want[grid], n * 4) == 0;
            memset(got, 0xff, n * 4);
            for (int64_t t = 0; t < rows; t++)
                packed_matmul(got + t * out, x + t * in, &p.w,
                              (enum packed_grid)grid, 1);
            good &= memcmp(got, want[grid], n * 4) == 0;
        }
        memset(got_wide, 0xff, n * 8);
        packed_matmul_f64(got_wide, xx, &p.w, rows);
        good &= memcmp(got_wide, want_wide, n * 8) == 0;
    }
    ok(good, "[%d, %d] x %d rows%s: the same bits", (int)out, (int)in,
       (int)rows, is_hard ? ", hard values" : "");
    release(&p);
    free(x), free(xx), free(want[0]), free(want[1]), free(got);
    free(want_wide), free(got_wide);
}

static void test_parts(void)
{
    const int64_t out = 50, in = 256, rows = 4;
    struct pack p = make(out, in, false);
    float *x = data_fill(rows * in, data_normal),
          *whole = data_array(rows * out, 4), *part = data_array(rows * out, 4);
    int wrong = 0;

    packed_matmul(whole, x, &p.w, PACKED_GRID24, rows);
    for (int64_t first = 0; first < out; first += 13) {
        int64_t count = out - first < 13 ? out - first : 13;
        struct packed_weight some = packed_rows(&p.w, first, count);

        packed_matmul(part, x, &some, PACKED_GRID24, rows);
        for (int64_t t = 0; t < rows; t++)
            wrong += memcmp(part + t * count, whole + t * out + first,
                            (size_t)count * 4) != 0;
    }
    is_int(wrong, 0, "output rows in blocks have the bits of the whole");
    release(&p);
    free(x), free(whole), free(part);
}

static void test_rows(void)
{
    const int64_t in = 256;
    struct pack p = make(3, in, true);
    float y[256];
    double yy[256];
    int wrong = 0;

    p.scales[0] = 0;
    for (int64_t row = 0; row < 3; row++) {
        packed_row(y, &p.w, row);
        packed_row_f64(yy, &p.w, row);
        for (int64_t k = 0; k < in; k++) {
            float s = f16_to_f32(p.scales[row * 2 + k / 128]);
            int code = code_at(&p.w, row, k);
            float want = code == 0 && s != 0 ? -s : code == 2 ? s : 0.0f;

            wrong += memcmp(&y[k], &want, 4) != 0 || yy[k] != (double)want;
        }
    }
    is_int(wrong, 0, "a row decodes to -s, +0 and s");
    release(&p);
}

static void test_check(void)
{
    struct pack p = make(4, 384, true);
    struct err err = ERR_INIT;

    ok(packed_check(&p.w, p.biases, &err) == 0, "ternary weights pass");
    p.codes[2 * 24 + 9] |= 3u << 14;
    ok(packed_check(&p.w, p.biases, &err) == -1 && err.code == ERR_INPUT,
       "a code 3 is refused");
    is_str(err.text, "row 2, group 1: code 3 in a ternary weight",
           "and placed");
    p.codes[2 * 24 + 9] &= ~(3u << 14);
    static const uint16_t bad[] = {0x8001, 0xbc00, 0x8000, 0x7c00, 0x7e00};
    for (int i = 0; i < 5; i++) {
        uint16_t keep = p.scales[11];

        p.scales[11] = bad[i];
        p.biases[11] = bad[i] ^ 0x8000;
        err_clear(&err);
        ok(packed_check(&p.w, p.biases, &err) == -1 && err.code == ERR_INPUT,
           "scale bits %04x are refused: %s", bad[i], err.text);
        p.scales[11] = keep;
        p.biases[11] = keep | 0x8000;
    }
    p.biases[0] ^= 1;
    err_clear(&err);
    ok(packed_check(&p.w, p.biases, &err) == -1 && err.code == ERR_INPUT,
       "a bias one bit off is refused: %s", err.text);
    release(&p);
}

int main(void)
{
    static const int64_t shapes[][3] = {
        {1, 128, 1},  {3, 128, 2},   {16, 256, 3},   {17, 384, 4},
        {33, 512, 7}, {64, 1024, 5}, {130, 128, 66}, {20, 640, 131}};

    for (int form = 0; form < 2; form++)
        if (select_form(form ? "avx2" : "plain")) {
            test_order(PACKED_GRID24);
            test_order(PACKED_GRID32);
            test_error();
            test_parts();
        }
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        for (int hard = 0; hard < 2; hard++)
            same_bits(shapes[i][0], shapes[i][1], shapes[i][2], hard);
    test_rows();
    test_check();
    set_threads(1);
    return done();
}
