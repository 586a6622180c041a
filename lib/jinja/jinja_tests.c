/* Tests: what stands behind `is`. */
#include "jinja/jinja_text.h"

#include <string.h>

enum test {
    T_ODD,
    T_EVEN,
    T_DIVISIBLEBY,
    T_DEFINED,
    T_UNDEFINED,
    T_FILTER,
    T_TEST,
    T_NONE,
    T_BOOLEAN,
    T_FALSE,
    T_TRUE,
    T_INTEGER,
    T_FLOAT,
    T_LOWER,
    T_UPPER,
    T_STRING,
    T_MAPPING,
    T_NUMBER,
    T_SEQUENCE,
    T_ITERABLE,
    T_CALLABLE,
    T_SAMEAS,
    T_ESCAPED,
    T_IN,
    T_EQ,
    T_NE,
    T_GT,
    T_GE,
    T_LT,
    T_LE,
};
static const struct {
    const char *name;
    enum test test;
} tests[] = {
    {"odd", T_ODD},
    {"even", T_EVEN},
    {"divisibleby", T_DIVISIBLEBY},
    {"defined", T_DEFINED},
    {"undefined", T_UNDEFINED},
    {"filter", T_FILTER},
    {"test", T_TEST},
    {"none", T_NONE},
    {"boolean", T_BOOLEAN},
    {"false", T_FALSE},
    {"true", T_TRUE},
    {"integer", T_INTEGER},
    {"float", T_FLOAT},
    {"lower", T_LOWER},
    {"upper", T_UPPER},
    {"string", T_STRING},
    {"mapping", T_MAPPING},
    {"number", T_NUMBER},
    {"sequence", T_SEQUENCE},
    {"iterable", T_ITERABLE},
    {"callable", T_CALLABLE},
    {"sameas", T_SAMEAS},
    {"escaped", T_ESCAPED},
    {"in", T_IN},
    {"==", T_EQ},
    {"eq", T_EQ},
    {"equalto", T_EQ},
    {"!=", T_NE},
    {"ne", T_NE},
    {">", T_GT},
    {"gt", T_GT},
    {"greaterthan", T_GT},
    {"ge", T_GE},
    {">=", T_GE},
    {"<", T_LT},
    {"lt", T_LT},
    {"lessthan", T_LT},
    {"<=", T_LE},
    {"le", T_LE},
};

int jtest_find(const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
        if (strlen(tests[i].name) == len &&
            memcmp(tests[i].name, name, len) == 0)
            return (int)i;
    return -1;
}

static bool is_callable(struct jval v)
{
    switch (v.type) {
    case JV_UNDEF:
    case JV_MACRO:
    case JV_METHOD:
    case JV_FUNC:
    case JV_LOOP:
    case JV_JOINER:
        return true;
    default:
        return false;
    }
}

bool jtest_call(struct rt *rt, int test, struct jval v, struct jargs *args)
{
    static const enum jcompare orders[] = {[T_GT - T_GT] = JC_GT,
                                           [T_GE - T_GT] = JC_GE,
                                           [T_LT - T_GT] = JC_LT,
                                           [T_LE - T_GT] = JC_LE};
    enum test t = tests[test].test;
    struct jval other;
    bool takes_one = t == T_DIVISIBLEBY || t == T_SAMEAS || t >= T_IN;

    jargs_bind(rt, args, tests[test].name, takes_one ? "other" : "",
               takes_one ? 1 : 0, t >= T_EQ, takes_one ? &other : NULL);
    switch (t) {
    case T_ODD:
    case T_EVEN:
    case T_DIVISIBLEBY:
        v = jval_arith(rt, JN_MOD, v, t == T_DIVISIBLEBY ? other : jval_int(2));
        return jval_equal(rt, v, jval_int(t == T_ODD));
    case T_DEFINED:
        return v.type != JV_UNDEF;
    case T_UNDEFINED:
        return v.type == JV_UNDEF;
    case T_FILTER:
    case T_TEST: {
        if (v.type != JV_STR)
            return false;
        if (t == T_TEST)
            return jtest_find(v.s->data, v.s->len) >= 0;
        char *name = rt_printf(rt, "%.*s", (int)v.s->len, v.s->data);
        return jfilter_find(v.s->data, v.s->len) >= 0 || jfilter_is_known(name);
    }
    case T_NONE:
        return v.type == JV_NONE;
    case T_BOOLEAN:
        return v.type == JV_BOOL;
    case T_FALSE:
    case T_TRUE:
        return v.type == JV_BOOL && v.b == (t == T_TRUE);
    case T_INTEGER:
        return v.type == JV_INT || v.type == JV_BIG;
    case T_FLOAT:
        return v.type == JV_FLOAT;
    case T_LOWER:
        return jstr_is_cased(rt, jval_to_str(rt, v), JUNI_LOWER, JUNI_UPPER);
    case T_UPPER:
        return jstr_is_cased(rt, jval_to_str(rt, v), JUNI_UPPER, JUNI_LOWER);
    case T_STRING:
        return v.type == JV_STR;
    case T_MAPPING:
        return v.type == JV_DICT;
    case T_NUMBER:
        return jval_is_number(v);
    case T_SEQUENCE:
        return jval_is_iterable(v) && v.type != JV_VIEW && v.type != JV_ITER &&
               v.type != JV_LOOP;
    case T_ITERABLE:
        return jval_is_iterable(v);
    case T_CALLABLE:
        return is_callable(v);
    case T_SAMEAS:
        return jval_is_same(rt, v, other);
    case T_ESCAPED:
        return v.type == JV_STR && v.safe;
    case T_IN:
        return jval_in(rt, v, other);
    case T_EQ:
        return jval_equal(rt, v, other);
    case T_NE:
        return !jval_equal(rt, v, other);
    default:
        return jval_order(rt, orders[t - T_GT], v, other);
    }
}
