/* Conversions between element types, against definitions in double. */
#include "tap.h"
#include "tensor/dtype.h"

/* The f16 nearest to x, half to even, by trying every finite value. */
static uint16_t nearest_f16(double x)
{
    uint16_t best = 0;
    double best_distance = INFINITY;

    for (uint32_t h = 0; h < 0x7c00; h++) {
        double distance = fabs(fabs(x) - (double)f16_to_f32((uint16_t)h));

        if (distance < best_distance ||
            (distance == best_distance && (h & 1) == 0)) {
            best = (uint16_t)h;
            best_distance = distance;
        }
    }
    if (fabs(x) >= 65520.0)
        best = 0x7c00;
    return signbit(x) ? best | 0x8000 : best;
}

static void test_every_f16_comes_back(void)
{
    int wrong = 0;

    for (uint32_t h = 0; h < 0x10000; h++) {
        bool is_nan = (h & 0x7c00) == 0x7c00 && (h & 0x3ff) != 0;
        uint16_t back = f16_from_f32(f16_to_f32((uint16_t)h));

        if (is_nan ? (back & 0x7c00) != 0x7c00 || (back & 0x3ff) == 0
                   : back != h)
            wrong++;
        if (!is_nan && f16_from_f64((double)f16_to_f32((uint16_t)h)) != h)
            wrong++;
    }
    is_int(wrong, 0, "every f16 value comes back from f32 and f64");
}

static void test_f16_rounding(void)
{
    static const double values[] = {0.1,
                                    1.0 / 3.0,
                                    2049.0,
                                    2051.0,
                                    65504.0,
                                    65519.9,
                                    65520.0,
                                    1e-7,
                                    2.98e-8,
                                    2.9802323e-8,
                                    5.9604645e-8,
                                    6.1e-5,
                                    0x1.ffcp-15,
                                    0x1.002p0,
                                    0x1.006p0,
                                    0x1.0020000001p0,
                                    3.14159265358979};
    int wrong = 0;

    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        for (int sign = -1; sign <= 1; sign += 2) {
            double x = sign * values[i];

            if (f16_from_f64(x) != nearest_f16(x)) {
                diag("f64 %.17g: %04x", x, f16_from_f64(x));
                wrong++;
            }
            if (f16_from_f32((float)x) != nearest_f16((double)(float)x)) {
                diag("f32 %.17g: %04x", x, f16_from_f32((float)x));
                wrong++;
            }
        }
    is_int(wrong, 0, "f32 and f64 round to the nearest f16, half to even");
    is_int(f16_from_f64(0x1.0020000001p0), 0x3c01,
           "f64 to f16 rounds once, not by way of f32");
}

static void test_bf16(void)
{
    is_int(bf16_from_f32(1.0f), 0x3f80, "bf16 of 1");
    is_int(bf16_from_f32(0x1.01p0f), 0x3f80, "half to even, down");
    is_int(bf16_from_f32(0x1.03p0f), 0x3f82, "half to even, up");
    is_int(bf16_from_f32(0x1.fffffep127f), 0x7f80, "overflow to infinity");
    ok(isnan(bf16_to_f32(bf16_from_f32(NAN))), "NaN stays NaN");
}

static void test_names(void)
{
    enum dtype d;

    for (int i = 0; i < DTYPE_COUNT; i++)
        ok(dtype_parse(dtype_name((enum dtype)i), &d) && (int)d == i,
           "%s is read back", dtype_name((enum dtype)i));
    ok(!dtype_parse("f32", &d), "names are exact: f32 is not F32");
}

int main(void)
{
    test_every_f16_comes_back();
    test_f16_rounding();
    test_bf16();
    test_names();
    return done();
}
