/* Operators of Python's values. */
#include "jinja/jinja_internal.h"

#include <math.h>

__attribute__((noreturn)) static void
no_operator(struct rt *rt, const char *sign, struct jval a, struct jval b)
{
    if (a.type == JV_UNDEF)
        jval_undef_fail(rt, a);
    if (b.type == JV_UNDEF)
        jval_undef_fail(rt, b);
    rt_fail(rt, ERR_INPUT, "unsupported operand types for %s: '%s' and '%s'",
            sign, jval_typename(a), jval_typename(b));
}

static struct jval concat_str(struct rt *rt, struct jval a, struct jval b)
{
    if (a.safe || b.safe) {
        a = jval_escape(rt, a);
        b = jval_escape(rt, b);
    }
    struct jsb sb = {.rt = rt};
    jsb_add(&sb, a.s->data, a.s->len);
    jsb_add(&sb, b.s->data, b.s->len);
    struct jval v = jsb_val(&sb);
    v.safe = a.safe;
    return v;
}

struct jval jval_add(struct rt *rt, struct jval a, struct jval b)
{
    int64_t sum;

    if (jval_is_int(a) && jval_is_int(b)) {
        if (a.type == JV_BIG || b.type == JV_BIG ||
            __builtin_add_overflow(jval_index(rt, a), jval_index(rt, b), &sum))
            return jbig_add(rt, a, b, false);
        return jval_int(sum);
    }
    if (jval_is_number(a) && jval_is_number(b))
        return jval_float(jval_number(rt, a) + jval_number(rt, b));
    if (a.type == JV_STR && b.type == JV_STR)
        return concat_str(rt, a, b);
    if (a.type == b.type && (a.type == JV_LIST || a.type == JV_TUPLE)) {
        struct jval v = jval_list(rt, a.type, a.list->n + b.list->n);

        rt_step(rt, (a.list->n + b.list->n) / 8);
        for (size_t i = 0; i < a.list->n; i++)
            jlist_add(rt, v.list, a.list->v[i]);
        for (size_t i = 0; i < b.list->n; i++)
            jlist_add(rt, v.list, b.list->v[i]);
        return v;
    }
    no_operator(rt, "+", a, b);
}

static struct jval repeat(struct rt *rt, struct jval v, struct jval times)
{
    if (times.type == JV_BIG)
        rt_fail(rt, ERR_INPUT, "cannot fit 'int' into an index-sized integer");
    int64_t n = jval_index(rt, times);

    n = n < 0 ? 0 : n;
    if (v.type == JV_STR) {
        if (v.s->len && n > JINJA_MAX_MEMORY / (int64_t)v.s->len)
            rt_fail(rt, ERR_INPUT, "a string of more than %d bytes",
                    JINJA_MAX_MEMORY);
        struct jsb b = {.rt = rt};
        for (int64_t i = 0; i < n && v.s->len; i++)
            jsb_add(&b, v.s->data, v.s->len);
        struct jval out = jsb_val(&b);
        out.safe = v.safe;
        return out;
    }
    if (v.list->n &&
        n > JINJA_MAX_MEMORY / (int64_t)(v.list->n * sizeof(struct jval)))
        rt_fail(rt, ERR_INPUT, "a list of more than %d bytes",
                JINJA_MAX_MEMORY);
    struct jval out = jval_list(rt, v.type, v.list->n * (size_t)n);
    for (int64_t i = 0; i < n && v.list->n; i++)
        for (size_t k = 0; k < v.list->n; k++)
            jlist_add(rt, out.list, v.list->v[k]);
    return out;
}

static struct jval power(struct rt *rt, struct jval a, struct jval b)
{
    if (jval_is_int(a) && jval_is_int(b)) {
        bool is_negative =
            b.type == JV_BIG ? b.big->negative : jval_index(rt, b) < 0;

        if (!is_negative) {
            if (b.type == JV_BIG) {
                if (a.type == JV_BIG || jval_index(rt, a) < -1 ||
                    jval_index(rt, a) > 1)
                    rt_fail(rt, ERR_UNSUPPORTED,
                            "an integer of more than %d bits",
                            JINJA_MAX_INTEGER_BITS);
                return jbig_pow(rt, a, b.big->d[0] & 1 ? 1 : 2);
            }
            return jbig_pow(rt, a, (uint64_t)jval_index(rt, b));
        }
    }
    double x = jval_number(rt, a), y = jval_number(rt, b);
    if (x == 0 && y < 0)
        rt_fail(rt, ERR_INPUT, "0.0 cannot be raised to a negative power");
    if (x < 0 && isfinite(x) && isfinite(y) && y != floor(y))
        rt_fail(rt, ERR_UNSUPPORTED, "a complex number");
    double z = pow(x, y);
    if (isinf(z) && isfinite(x) && isfinite(y))
        rt_fail(rt, ERR_INPUT, "'**' is too large for a float");
    return jval_float(z);
}

static double float_mod(double x, double y)
{
    double r = fmod(x, y);

    if (r != 0 ? (y < 0) != (r < 0) : false)
        r += y;
    return r != 0 ? r : copysign(0.0, y);
}

static double float_floordiv(double x, double y)
{
    double r = fmod(x, y), q = (x - r) / y;

    if (r != 0 && (y < 0) != (r < 0))
        q -= 1.0;
    if (q == 0)
        return copysign(0.0, x / y);
    double whole = floor(q);
    return q - whole > 0.5 ? whole + 1.0 : whole;
}

static struct jval divide(struct rt *rt, enum jnode_type op, struct jval a,
                          struct jval b)
{
    if (!jval_truth(rt, b))
        rt_fail(rt, ERR_INPUT, "division by zero");
    if (!jval_is_int(a) || !jval_is_int(b)) {
        double x = jval_number(rt, a), y = jval_number(rt, b);

        return jval_float(op == JN_DIV        ? x / y
                          : op == JN_FLOORDIV ? float_floordiv(x, y)
                                              : float_mod(x, y));
    }
    bool is_small = a.type != JV_BIG && b.type != JV_BIG;
    int64_t x = is_small ? jval_index(rt, a) : 0;
    int64_t y = is_small ? jval_index(rt, b) : 0;
    if (op == JN_DIV) {
        const int64_t exact = (int64_t)1 << 53;

        if (is_small && x >= -exact && x <= exact && y >= -exact && y <= exact)
            return jval_float((double)x / (double)y);
        double f = jbig_divide(rt, a, b);
        if (isinf(f))
            rt_fail(rt, ERR_INPUT, "division result too large for a float");
        return jval_float(f);
    }
    if (!is_small || (x == INT64_MIN && y == -1)) {
        struct jval q, r;

        jbig_divmod(rt, a, b, &q, &r);
        return op == JN_FLOORDIV ? q : r;
    }
    int64_t q = x / y, r = x % y;
    if (r != 0 && (r < 0) != (y < 0)) {
        q--;
        r += y;
    }
    return jval_int(op == JN_FLOORDIV ? q : r);
}

struct jval jval_arith(struct rt *rt, enum jnode_type op, struct jval a,
                       struct jval b)
{
    static const char *const signs[] = {
        [JN_ADD] = "+", [JN_SUB] = "-",       [JN_MUL] = "*", [JN_DIV] = "/",
        [JN_MOD] = "%", [JN_FLOORDIV] = "//", [JN_POW] = "**"};
    bool are_numbers = jval_is_number(a) && jval_is_number(b);
    int64_t r;

    if (op == JN_ADD)
        return jval_add(rt, a, b);
    if (op == JN_MOD && a.type == JV_STR)
        return jformat_percent(rt, a, b);
    if (op == JN_MUL && jval_is_sequence(a) && jval_is_int(b))
        return repeat(rt, a, b);
    if (op == JN_MUL && jval_is_sequence(b) && jval_is_int(a))
        return repeat(rt, b, a);
    if (!are_numbers)
        no_operator(rt, signs[op], a, b);
    if (op == JN_POW)
        return power(rt, a, b);
    if (op == JN_DIV || op == JN_FLOORDIV || op == JN_MOD)
        return divide(rt, op, a, b);
    if (jval_is_int(a) && jval_is_int(b)) {
        bool is_big = a.type == JV_BIG || b.type == JV_BIG;

        if (op == JN_SUB) {
            if (is_big || __builtin_sub_overflow(jval_index(rt, a),
                                                 jval_index(rt, b), &r))
                return jbig_add(rt, a, b, true);
            return jval_int(r);
        }
        if (is_big ||
            __builtin_mul_overflow(jval_index(rt, a), jval_index(rt, b), &r))
            return jbig_mul(rt, a, b);
        return jval_int(r);
    }
    double x = jval_number(rt, a), y = jval_number(rt, b);
    return jval_float(op == JN_SUB ? x - y : x * y);
}

struct jval jval_negate(struct rt *rt, struct jval v)
{
    if (v.type == JV_FLOAT)
        return jval_float(-v.f);
    if (jval_is_int(v))
        return jval_arith(rt, JN_SUB, jval_int(0), v);
    if (v.type == JV_UNDEF)
        jval_undef_fail(rt, v);
    rt_fail(rt, ERR_INPUT, "bad operand type for unary -: '%s'",
            jval_typename(v));
}
