/* audit --against: how a run's values moved from another run's. */
#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "verbs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "none";
}

static const json_t *find(const json_t *list, const char *name)
{
    json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
    {
        if (strcmp(text_of(item, "name"), name) == 0)
            return item;
    }
    return NULL;
}

__attribute__((format(printf, 2, 3))) static void add(json_t *lines,
                                                      const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    json_append_line(lines, format, ap);
    va_end(ap);
}

/* A gate's limit: the number under the key that says how it is meant. */
static const char *limit_key(const json_t *gate)
{
    static const char *const keys[] = {"at_most", "at_least"};

    for (size_t i = 0; i < 2; i++)
        if (json_is_number(json_object_get(gate, keys[i])))
            return keys[i];
    return NULL;
}

static void compare_limits(json_t *lines, const char *where,
                           const json_t *before, const json_t *now)
{
    const char *a = limit_key(before), *b = limit_key(now);
    char x[32] = "none", y[32] = "none";

    if (a)
        json_format_real(json_number_value(json_object_get(before, a)), x);
    if (b)
        json_format_real(json_number_value(json_object_get(now, b)), y);
    if (strcmp(x, y) != 0)
        add(lines, "%s: the limit changed, %s -> %s", where, x, y);
}

/* A number, "NaN" or an infinity, "none". */
static void format_value(const json_t *value, char out[32])
{
    if (json_is_number(value))
        json_format_real(json_number_value(value), out);
    else
        snprintf(out, 32, "%.31s",
                 json_is_string(value) ? json_string_value(value) : "none");
}

static void compare_gate(json_t *lines, const char *name, const json_t *before,
                         const json_t *now)
{
    const json_t *a = json_object_get(before, "value");
    const json_t *b = json_object_get(now, "value");
    const char *was = text_of(before, "verdict"), *is = text_of(now, "verdict");
    char *where = xasprintf("%s/%s", name, text_of(now, "name"));
    char x[32], y[32];

    compare_limits(lines, where, before, now);
    if (!json_is_number(a) || !json_is_number(b)) {
        bool has_moved = json_is_number(a) || json_is_number(b) ||
                         json_is_string(a) || json_is_string(b);

        format_value(a, x);
        format_value(b, y);
        has_moved = has_moved && strcmp(x, y) != 0;
        if (has_moved)
            add(lines, "%s: %s%s%s, value %s -> %s", where, was,
                strcmp(was, is) ? " -> " : " as before",
                strcmp(was, is) ? is : "", x, y);
        else if (strcmp(was, is) != 0)
            add(lines, "%s: %s -> %s", where, was, is);
        free(where);
        return;
    }
    double v = json_number_value(a), w = json_number_value(b);
    double more = fabs(w) > fabs(v) ? w / v : v / w;
    const json_t *key = json_object_get(now, "at_least");
    bool is_worse = json_is_number(key) ? w < v : fabs(w) > fabs(v);

    json_format_real(v, x);
    json_format_real(w, y);
    if (strcmp(was, is) == 0 && v == w) {
        free(where);
        return;
    }
    if (isfinite(more) && more > 0 && !json_is_number(key))
        add(lines, "%s: %s%s%s, value %s -> %s, %.3g times %s", where, was,
            strcmp(was, is) ? " -> " : " as before", strcmp(was, is) ? is : "",
            x, y, more, is_worse ? "worse" : "better");
    else
        add(lines, "%s: %s%s%s, value %s -> %s, %s", where, was,
            strcmp(was, is) ? " -> " : " as before", strcmp(was, is) ? is : "",
            x, y, is_worse ? "worse" : "better");
    free(where);
}

static void compare_case(json_t *lines, const json_t *before, const json_t *now)
{
    const char *name = text_of(now, "name");
    json_t *gates = json_object_get(now, "gates"), *gate;
    json_t *others = json_object_get(before, "gates");
    size_t i;

    json_array_foreach(gates, i, gate)
    {
        const json_t *other = find(others, text_of(gate, "name"));

        if (other)
            compare_gate(lines, name, other, gate);
        else
            add(lines, "%s/%s: a new gate", name, text_of(gate, "name"));
    }
    json_array_foreach(others, i, gate)
    {
        if (!find(gates, text_of(gate, "name")))
            add(lines, "%s/%s: no longer a gate", name, text_of(gate, "name"));
    }
}

void drift_limits(json_t *lines, const json_t *before, const json_t *now)
{
    json_t *cases = json_object_get(now, "cases"), *item, *gate;
    size_t i, k;

    json_array_foreach(cases, i, item)
    {
        const char *name = text_of(item, "name");
        const json_t *old = find(json_object_get(before, "cases"), name);

        json_array_foreach(json_object_get(item, "gates"), k, gate)
        {
            const char *gate_name = text_of(gate, "name");
            const json_t *was = find(json_object_get(old, "gates"), gate_name);
            char *where = xasprintf("%s/%s", name, gate_name);

            if (was)
                compare_limits(lines, where, was, gate);
            free(where);
        }
    }
}

json_t *drift(const json_t *before, const json_t *now)
{
    static const char *const frozen[] = {"gates", "protocol", "cases"};
    json_t *lines = json_array();
    json_t *cases = json_object_get(now, "cases"), *item;
    json_t *others = json_object_get(before, "cases");
    size_t i;

    add(lines, "verdict: %s -> %s", text_of(before, "verdict"),
        text_of(now, "verdict"));
    for (i = 0; i < 3; i++) {
        char *key = xasprintf("%s_sha256", frozen[i]);

        if (strcmp(text_of(before, key), text_of(now, key)) != 0)
            add(lines, "%s.json changed: %.16s -> %.16s", frozen[i],
                text_of(before, key), text_of(now, key));
        free(key);
    }
    json_array_foreach(cases, i, item)
    {
        const json_t *other = find(others, text_of(item, "name"));

        if (other)
            compare_case(lines, other, item);
        else
            add(lines, "%s: a new case", text_of(item, "name"));
    }
    json_array_foreach(others, i, item)
    {
        if (!find(cases, text_of(item, "name")))
            add(lines, "%s: no longer a case", text_of(item, "name"));
    }
    return lines;
}
