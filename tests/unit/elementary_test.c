/* Elementary functions against exact values, and their forms in f32. */
#include "forms.h"
#include "hash/hash.h"
#include "kernels/elementary.h"
#include "kernels/rows_internal.h"
#include "tap.h"
#include "tensor/dtype.h"
#include "json/json.h"

static double number(const json_t *row, size_t i)
{
    return strtod(json_string_value(json_array_get(row, i)), NULL);
}

static double exp2_of(double x)
{
    int e;

    frexp(x, &e);
    return e < -1021 ? 0x1p-1074 : ldexp(1, e - 53);
}

/* Distance from high + low in units of high's last place. */
static double error_of(double got, double high, double low)
{
    if (got == high || (isinf(got) && isinf(high)))
        return fabs(isinf(high) ? 0 : low / exp2_of(high));
    return fabs(((got - high) - low) / exp2_of(high));
}

/* Half a unit is a correct rounding; what an f32 result may add to that. */
static double error_f32(float got, double high)
{
    double unit = exp2_of(high) * 0x1p29;

    if (isinf(got) || fabs(high) > 0x1p127)
        return 0;
    if (unit < 0x1p-149)
        unit = 0x1p-149;
    return fabs(((double)got - high) / unit);
}

static void check(const json_t *root, const char *name, double (*f)(double),
                  float (*narrow)(float), double limit)
{
    const json_t *rows = json_object_get(root, name);
    double worst = 0, worst_x = 0, worst_f32 = 0;

    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        double x = number(row, 0), high = number(row, 1);
        double error = error_of(f(x), high, number(row, 2));

        if (!(error <= worst)) {
            worst = error;
            worst_x = x;
        }
        if ((double)(float)x == x) {
            double e32 = error_f32(narrow((float)x), high);

            worst_f32 = e32 > worst_f32 ? e32 : worst_f32;
        }
    }
    diag("%s: %zu values, at most %.3f units of the last place, at %a", name,
         json_array_size(rows), worst, worst_x);
    ok(json_array_size(rows) > 100 && worst < limit, "%s: below %g units", name,
       limit);
    ok(worst_f32 < 0.50001, "%s in f32: below 0.50001 units (%.6f)", name,
       worst_f32);
}

static void check_pow(const json_t *root)
{
    const json_t *rows = json_object_get(root, "pow");
    double worst = 0;
    int wrong = 0;

    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        double high = number(row, 2);
        double got = elem_pow(number(row, 0), number(row, 1));
        double error = error_of(got, high, number(row, 3));

        worst = error > worst || error != error ? error : worst;
        wrong += (float)got != (float)high;
    }
    diag("pow: %zu values, at most %.3f units", json_array_size(rows), worst);
    ok(json_array_size(rows) > 200 && worst < 1, "pow: below 1 unit");
    is_int(wrong, 0, "pow: every result rounds to the right float");
}

static void test_special(void)
{
    static const struct {
        double (*f)(double);
        double x, want;
        const char *name;
    } cases[] = {
        {elem_exp, INFINITY, INFINITY, "exp(inf)"},
        {elem_exp, -INFINITY, 0, "exp(-inf)"},
        {elem_exp, 0, 1, "exp(0)"},
        {elem_exp, 710, INFINITY, "exp(710)"},
        {elem_exp, -746, 0, "exp(-746)"},
        {elem_exp, 0x1p-60, 1, "exp(tiny)"},
        {elem_log, 1, 0, "log(1)"},
        {elem_log, 0, -INFINITY, "log(0)"},
        {elem_log, INFINITY, INFINITY, "log(inf)"},
        {elem_log, -1, NAN, "log(-1)"},
        {elem_log1p, 0, 0, "log1p(0)"},
        {elem_log1p, -1, -INFINITY, "log1p(-1)"},
        {elem_log1p, -2, NAN, "log1p(-2)"},
        {elem_log1p, INFINITY, INFINITY, "log1p(inf)"},
        {elem_sin, 0, 0, "sin(0)"},
        {elem_cos, 0, 1, "cos(0)"},
        {elem_sin, 0x1p31, NAN, "sin(2^31): refused"},
        {elem_cos, INFINITY, NAN, "cos(inf)"},
        {elem_tanh, INFINITY, 1, "tanh(inf)"},
        {elem_tanh, -INFINITY, -1, "tanh(-inf)"},
        {elem_tanh, 0, 0, "tanh(0)"},
        {elem_erf, INFINITY, 1, "erf(inf)"},
        {elem_erf, -INFINITY, -1, "erf(-inf)"},
        {elem_erf, 6, 1, "erf(6)"},
        {elem_exp, NAN, NAN, "exp(NaN)"},
        {elem_log, NAN, NAN, "log(NaN)"},
        {elem_log1p, NAN, NAN, "log1p(NaN)"},
        {elem_sin, NAN, NAN, "sin(NaN)"},
        {elem_cos, NAN, NAN, "cos(NaN)"},
        {elem_tanh, NAN, NAN, "tanh(NaN)"},
        {elem_erf, -NAN, NAN, "erf(NaN)"},
    };
    static const uint64_t nan_bits = 0x7ff8000000000000;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        double got = cases[i].f(cases[i].x);

        ok(isnan(cases[i].want) ? memcmp(&got, &nan_bits, 8) == 0
                                : got == cases[i].want,
           "%s", cases[i].name);
    }
    ok(signbit(elem_sin(-0.0)) && signbit(elem_tanh(-0.0)) &&
           signbit(elem_erf(-0.0)) && signbit(elem_log1p(-0.0)),
       "-0 stays -0");
    ok(isnan(elem_pow(-1, 2)) && isnan(elem_pow(0, 2)) &&
           isnan(elem_pow(INFINITY, 1)) && isnan(elem_pow(2, NAN)),
       "pow outside its domain is NaN");
    ok(elem_pow(2, 10) == 1024 && elem_pow(5, 0) == 1 && elem_pow(1, 1e9) == 1,
       "pow of exact powers");
    ok(elem_pow(2, 1024) == INFINITY && elem_pow(2, -1100) == 0 &&
           elem_pow(10, 1e300) == INFINITY && elem_pow(0.1, 1e300) == 0,
       "pow overflows and underflows");
}

/* Floats that reach every exponent, and the hard ones. */
static size_t some_floats(float **out)
{
    size_t n = 0, step = 4099;
    float *x = malloc((UINT32_MAX / step + 64) * sizeof(*x));

    if (!x)
        exit(1);
    for (uint64_t u = 0; u <= UINT32_MAX; u += step) {
        uint32_t bits = (uint32_t)u;

        memcpy(&x[n++], &bits, 4);
    }
    *out = x;
    return n;
}

static void test_rows(void)
{
    float *x, *y, *z;
    size_t n = some_floats(&x);
    int wrong_exp = 0, wrong_tanh = 0, far = 0;

    y = malloc(n * sizeof(*y));
    z = malloc(n * sizeof(*z));
    if (!y || !z)
        exit(1);
    elem_exp_row(y, x, (int64_t)n);
    elem_tanh_row(z, x, (int64_t)n);
    for (size_t i = 0; i < n; i++) {
        float a = elem_exp_f32(x[i]), b = elem_tanh_f32(x[i]);

        wrong_exp += memcmp(&a, &y[i], 4) != 0;
        wrong_tanh += memcmp(&b, &z[i], 4) != 0;
        far += isfinite(x[i]) && (a != (float)elem_exp((double)x[i]) ||
                                  b != (float)elem_tanh((double)x[i]));
    }
    is_int(wrong_exp, 0, "exp of a row is exp of each");
    is_int(wrong_tanh, 0, "tanh of a row is tanh of each");
    diag("%d of %zu roundings differ from the double functions'", far, n);
    ok(far <= 8, "the short series round as the long ones do");
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        elem_exp_row_avx2(z, x, (int64_t)n);
        is_mem(z, y, n * sizeof(*z), "exp: the AVX2 form has the same bits");
        for (size_t i = 0; i < n; i++)
            y[i] = elem_tanh_f32(x[i]);
        elem_tanh_row_avx2(z, x, (int64_t)n);
        is_mem(z, y, n * sizeof(*z), "tanh: the AVX2 form has the same bits");
    }
    free(x);
    free(y);
    free(z);
}

/*
 * The results for every bf16 value as one digest, recorded with gcc 12 -O2 on
 * x86-64 with FMA: another compiler, level or processor that gives other bits
 * shows here.
 */
static void test_same_bits_everywhere(void)
{
    static const struct {
        double (*f)(double);
        const char *name, *want;
    } functions[] = {
        {elem_exp, "exp",
         "3bf2e097ea1783f8a4f00026655f555e8648de9e0b53f78b6fbc4efd43d08477"},
        {elem_log, "log",
         "d5f4663d2fa583bf54d048c2f3c547cef0ca261d68c665277220f01a5ae4abf6"},
        {elem_log1p, "log1p",
         "16f83eb1f9a281540ecefeaea17b337efeb1ba991ec2acb1b7e53d52ed6051ba"},
        {elem_sin, "sin",
         "0b4862bd26d0960f9213bb99f9b9687c742c8b464f880edd9390756a86e96437"},
        {elem_cos, "cos",
         "c04ebbbb1940bfa4253e5499db69ee3a691157903b11faa585d78bfdffa7251a"},
        {elem_tanh, "tanh",
         "43b1a3252d2a8f1021b5b3916caa24e5c614269e89cf9bfb1d8f903de7604d79"},
        {elem_erf, "erf",
         "468eceff8b102d84db7ac2f8fdba76b475aebd908fe4c5b073aa829a75772148"},
    };
    static double y[65536];
    static float narrow[2][65536];
    char hex[HASH_SHA256_HEX];

    for (size_t k = 0; k < sizeof(functions) / sizeof(functions[0]); k++) {
        for (uint32_t i = 0; i < 65536; i++)
            y[i] = functions[k].f((double)bf16_to_f32((uint16_t)i));
        hash_sha256(y, sizeof(y), hex);
        is_str(hex, functions[k].want, functions[k].name);
    }
    for (uint32_t i = 0; i < 65536; i++)
        y[i] = elem_pow(fabs((double)bf16_to_f32((uint16_t)i)),
                        (double)(i % 77) / 19 - 2);
    hash_sha256(y, sizeof(y), hex);
    is_str(hex,
           "e63f18b529edb6cb1b52d8f4131ea9cb135a3b3b25bbc5f6b3ccd75d9a4ddaab",
           "pow");
    for (uint32_t i = 0; i < 65536; i++) {
        narrow[0][i] = elem_exp_f32(bf16_to_f32((uint16_t)i));
        narrow[1][i] = elem_tanh_f32(bf16_to_f32((uint16_t)i));
    }
    hash_sha256(narrow, sizeof(narrow), hex);
    is_str(hex,
           "72f6031cc9197cdbc602012409722fc5984061aff610746feae2388bfb0afb25",
           "exp and tanh in f32");
}

int main(void)
{
    struct err err = ERR_INIT;
    json_t *root = json_read_file("fixtures/elementary/values.json", &err);

    if (!root) {
        ok(false, "%s", err.text);
        return done();
    }
    check(root, "exp", elem_exp, elem_exp_f32, 1);
    check(root, "log", elem_log, elem_log_f32, 1);
    check(root, "log1p", elem_log1p, elem_log1p_f32, 1);
    check(root, "sin", elem_sin, elem_sin_f32, 1);
    check(root, "cos", elem_cos, elem_cos_f32, 1);
    check(root, "tanh", elem_tanh, elem_tanh_f32, 2);
    check(root, "erf", elem_erf, elem_erf_f32, 1);
    check_pow(root);
    json_decref(root);
    test_special();
    for (int i = 0; use_form(i); i++)
        test_rows();
    test_same_bits_everywhere();
    return done();
}
