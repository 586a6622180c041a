/* Filters that give numbers, and default. */
#include "jinja/jinja_filters.h"
#include "jinja/jinja_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct jval jfilter_default(struct rt *rt, struct jval v, struct jargs *args)
{
    struct jval a[2];

    jargs_bind(rt, args, "default", "default_value,boolean", 0, false, a);
    if (v.type == JV_UNDEF ||
        (jargs_flag(rt, a[1], false) && !jval_truth(rt, v)))
        return a[0].type == JV_MISSING ? jval_cstr(rt, "") : a[0];
    return v;
}

struct jval jfilter_abs(struct rt *rt, struct jval v, struct jargs *args)
{
    jargs_bind(rt, args, "abs", "", 0, true, NULL);
    if (v.type == JV_FLOAT)
        return jval_float(fabs(v.f));
    if (!jval_is_int(v))
        rt_fail(rt, ERR_INPUT, "bad operand type for abs(): '%s'",
                jval_typename(v));
    bool is_negative =
        v.type == JV_BIG ? v.big->negative : jval_index(rt, v) < 0;
    return is_negative         ? jval_negate(rt, v)
           : v.type == JV_BOOL ? jval_int(v.b)
                               : v;
}

struct jval jfilter_int(struct rt *rt, struct jval v, struct jargs *args)
{
    struct jval a[2], out;
    double f;

    jargs_bind(rt, args, "int", "default,base", 0, false, a);
    struct jval otherwise = a[0].type == JV_MISSING ? jval_int(0) : a[0];
    if (v.type == JV_UNDEF)
        jval_undef_fail(rt, v);
    if (v.type == JV_BOOL)
        return jval_int(v.b);
    if (jval_is_int(v))
        return v;
    if (v.type == JV_FLOAT) {
        if (isinf(v.f))
            rt_fail(rt, ERR_INPUT, "cannot convert float infinity to integer");
        return isnan(v.f) ? otherwise : jval_from_double(rt, v.f);
    }
    if (v.type != JV_STR)
        return otherwise;
    int64_t base = 10;
    if (a[1].type != JV_MISSING) {
        /* int() of a base that is no int is caught; then float() is tried */
        base = jval_is_int(a[1]) ? jval_clamp(rt, a[1]) : -1;
    }
    if (jstr_to_int(rt, v, base, &out))
        return out;
    if (!jstr_to_float(rt, v, &f) || !isfinite(f))
        return otherwise;
    return jval_from_double(rt, f);
}

struct jval jfilter_float(struct rt *rt, struct jval v, struct jargs *args)
{
    struct jval a;
    double f;

    jargs_bind(rt, args, "float", "default", 0, false, &a);
    if (v.type == JV_UNDEF)
        jval_undef_fail(rt, v);
    if (jval_is_number(v))
        return jval_float(jval_number(rt, v));
    if (v.type == JV_STR && jstr_to_float(rt, v, &f))
        return jval_float(f);
    return a.type == JV_MISSING ? jval_float(0) : a;
}

struct jval jfilter_filesizeformat(struct rt *rt, struct jval v,
                                   struct jargs *args)
{
    static const char letters[] = "kMGTPEZY";
    struct jval a;
    double bytes, unit;

    jargs_bind(rt, args, "filesizeformat", "binary", 0, false, &a);
    bool is_binary = jargs_flag(rt, a, false);
    double base = is_binary ? 1024 : 1000;
    if (v.type == JV_STR) {
        if (!jstr_to_float(rt, v, &bytes))
            rt_fail(rt, ERR_INPUT, "filesizeformat: not a number");
    } else if (jval_is_number(v)) {
        bytes = jval_number(rt, v);
    } else {
        rt_fail(rt, ERR_INPUT, "filesizeformat: not a number");
    }
    if (bytes == 1)
        return jval_cstr(rt, "1 Byte");
    if (bytes < base)
        return jval_cstr(rt, rt_printf(rt, "%.0f Bytes", trunc(bytes)));
    unit = base * base;
    for (size_t i = 0;; i++, unit *= base)
        if (bytes < unit || i == 7)
            return jval_cstr(rt,
                             rt_printf(rt, "%.1f %c%sB", base * bytes / unit,
                                       is_binary && i == 0 ? 'K' : letters[i],
                                       is_binary ? "i" : ""));
}

/* A float to a multiple of 10^places, places < 0, half to even: on the exact
 * decimal digits. */
static double round_tens(double f, int64_t places)
{
    char text[400], *p;
    int digits;

    if (places < -400)
        return copysign(0.0, f);
    /* the exact whole part; what is behind the point only breaks ties */
    snprintf(text, sizeof(text), "%.0f", trunc(fabs(f)));
    digits = (int)strlen(text);
    bool has_rest = fabs(f) != trunc(fabs(f));
    int keep = digits + (int)places;
    if (keep < 0)
        return copysign(0.0, f);
    p = text + keep;
    bool is_above = *p > '5', is_half = *p == '5';
    for (char *q = p + 1; is_half && *q; q++)
        has_rest |= *q != '0';
    if (is_half)
        is_above = has_rest || (keep > 0 && (p[-1] - '0') % 2 == 1);
    memset(p, '0', (size_t)(digits - keep));
    double whole = strtod(text, NULL);
    if (is_above) {
        char more[sizeof(text) + 1];

        /* one up in the last kept place, with the carry */
        snprintf(more, sizeof(more), "0%s", text);
        int i = keep;
        while (more[i] == '9')
            more[i--] = '0';
        more[i]++;
        whole = strtod(more, NULL);
    }
    return copysign(whole, f);
}

static struct jval round_int(struct rt *rt, struct jval v, int64_t places)
{
    struct jval unit, q, r, twice;

    if (v.type == JV_BOOL)
        v = jval_int(v.b);
    if (places >= 0)
        return v;
    if (places < -5000)
        return jval_int(0);
    unit = jbig_pow(rt, jval_int(10), (uint64_t)-places);
    jbig_divmod(rt, v, unit, &q, &r);
    twice = jval_arith(rt, JN_MUL, r, jval_int(2));
    bool is_odd = jval_truth(rt, jval_arith(rt, JN_MOD, q, jval_int(2)));
    if (jval_order(rt, JC_GT, twice, unit) ||
        (is_odd && jval_equal(rt, twice, unit)))
        q = jval_add(rt, q, jval_int(1));
    return jval_arith(rt, JN_MUL, q, unit);
}

struct jval jfilter_round(struct rt *rt, struct jval v, struct jargs *args)
{
    struct jval a[2];
    char text[512];

    jargs_bind(rt, args, "round", "precision,method", 0, false, a);
    bool is_common = a[1].type == JV_MISSING || jstr_is(a[1], "common");
    bool is_ceil = jstr_is(a[1], "ceil");
    if (!is_common && !is_ceil && !jstr_is(a[1], "floor"))
        rt_fail(rt, ERR_INPUT, "round: method must be common, ceil or floor");
    struct jval precision = a[0].type == JV_MISSING ? jval_int(0) : a[0];
    if (v.type == JV_UNDEF)
        jval_undef_fail(rt, v);
    if (!jval_is_number(v))
        rt_fail(rt, ERR_INPUT, "round: '%s' object is not a number",
                jval_typename(v));
    if (!is_common) {
        struct jval ten = jval_arith(rt, JN_POW, jval_int(10), precision);
        struct jval scaled = jval_arith(rt, JN_MUL, v, ten);

        if (scaled.type == JV_FLOAT) {
            if (!isfinite(scaled.f))
                rt_fail(rt, ERR_INPUT, "cannot convert float to integer");
            scaled = jval_from_double(rt, is_ceil ? ceil(scaled.f)
                                                  : floor(scaled.f));
        }
        return jval_arith(rt, JN_DIV, scaled, ten);
    }
    if (precision.type == JV_NONE) {
        if (v.type != JV_FLOAT)
            return round_int(rt, v, 0);
        if (!isfinite(v.f))
            rt_fail(rt, ERR_INPUT, "cannot convert float to integer");
        return jval_from_double(rt, rint(v.f));
    }
    int64_t places = jval_clamp(rt, precision);
    if (v.type != JV_FLOAT)
        return round_int(rt, v, places);
    if (!isfinite(v.f) || places > 323)
        return v;
    if (places < 0) {
        double f = round_tens(v.f, places);

        if (isinf(f))
            rt_fail(rt, ERR_INPUT, "rounded value too large to represent");
        return jval_float(f);
    }
    /* libc prints the exact value, half to even, as Python does; the places
     * above are more than any double has in front of and behind the point */
    int n = snprintf(NULL, 0, "%.*f", (int)places, v.f);
    char *exact = n < (int)sizeof(text) ? text : rt_alloc(rt, (size_t)n + 1);
    snprintf(exact, (size_t)n + 1, "%.*f", (int)places, v.f);
    return jval_float(strtod(exact, NULL));
}
