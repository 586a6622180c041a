/* Values of a pack's JSON file by key, each noted as read or defaulted. */
#include "ledger/config.h"

#include "ledger/config_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { COUNT_MAX = 1 << 24 };

/* One of the alternatives into `key` (64 bytes); false after the last. */
static bool next_key(const char **keys, char *key)
{
    size_t n = strcspn(*keys, "|");

    if (**keys == '\0')
        return false;
    snprintf(key, 64, "%.*s", (int)n, *keys);
    *keys += n + ((*keys)[n] == '|');
    return true;
}

/* The value under one of the keys, NULL when none is there; `key` is the one,
 * or the first. */
static int find(const struct section *s, const char *keys, char *key,
                json_t *fallback, json_t **out, struct err *err)
{
    char name[64];
    const char *rest = keys;

    *out = NULL;
    next_key(&rest, key);
    rest = keys;
    while (next_key(&rest, name)) {
        json_t *value = json_object_get(s->object, name);

        if (!value || json_is_null(value))
            continue;
        section_note(s, name, READ, value);
        if (*out && !json_equal(*out, value)) {
            char text[128];

            snprintf(text, sizeof(text), "and '%s' contradict each other",
                     name);
            return section_malformed(s, key, text, err);
        }
        if (!*out)
            strcpy(key, name);
        *out = value;
    }
    if (!*out)
        section_note(s, key, DEFAULTED, fallback ? fallback : json_null());
    return 0;
}

bool config_has(const struct section *s, const char *key)
{
    return json_has(s->object, key);
}

bool config_is_null(const struct section *s, const char *key)
{
    return json_is_null(json_object_get(s->object, key));
}

int config_section(const struct section *s, const char *key,
                   const struct section **out, struct err *err)
{
    json_t *object = json_object_get(s->object, key);
    bool is_there = object && !json_is_null(object);

    *out = NULL;
    section_note(s, key, is_there ? READ : DEFAULTED,
                 is_there ? NULL : json_null());
    if (!is_there)
        return 0;
    if (!json_is_object(object))
        return section_malformed(s, key, "is not an object", err);
    *out = section_below(s, object, key);
    return 0;
}

static int read_integer(const struct section *s, const char *keys,
                        int64_t least, int64_t fallback, int64_t *out,
                        struct err *err)
{
    json_t *standard = fallback < 0 ? NULL : json_integer(fallback), *value;
    char key[64], range[64];
    int ret = find(s, keys, key, standard, &value, err);

    json_decref(standard);
    if (ret)
        return -1;
    *out = fallback;
    if (!value)
        return fallback < 0 ? section_malformed(s, key, "is missing", err) : 0;
    snprintf(range, sizeof(range), "is not a count from %lld to 2^24",
             (long long)least);
    if (!json_is_integer(value) || json_integer_value(value) < least ||
        json_integer_value(value) > COUNT_MAX)
        return section_malformed(s, key, range, err);
    *out = json_integer_value(value);
    return 0;
}

int config_count(const struct section *s, const char *keys, int64_t fallback,
                 int64_t *out, struct err *err)
{
    return read_integer(s, keys, 1, fallback, out, err);
}

int config_amount(const struct section *s, const char *keys, int64_t fallback,
                  int64_t *out, struct err *err)
{
    return read_integer(s, keys, 0, fallback, out, err);
}

int config_real(const struct section *s, const char *keys, double fallback,
                double *out, struct err *err)
{
    json_t *standard = isnan(fallback) ? NULL : json_real(fallback), *value;
    char key[64];
    int ret = find(s, keys, key, standard, &value, err);

    json_decref(standard);
    if (ret)
        return -1;
    *out = fallback;
    if (!value)
        return isnan(fallback) ? section_malformed(s, key, "is missing", err)
                               : 0;
    if (!json_is_number(value))
        return section_malformed(s, key, "is not a number", err);
    *out = json_number_value(value);
    return 0;
}

int config_real_or_null(const struct section *s, const char *keys,
                        double fallback, double *out, struct err *err)
{
    json_t *standard = isnan(fallback) ? json_null() : json_real(fallback);
    json_t *value;
    const char *rest = keys;
    char key[64], name[64];
    int ret = find(s, keys, key, standard, &value, err);

    json_decref(standard);
    if (ret)
        return -1;
    if (value && !json_is_number(value))
        return section_malformed(s, key, "is neither a number nor null", err);
    *out = value ? json_number_value(value) : fallback;
    while (!value && next_key(&rest, name))
        if (config_is_null(s, name)) {
            section_note(s, name, READ, NULL);
            *out = NAN;
        }
    return 0;
}

int config_flag(const struct section *s, const char *keys, bool fallback,
                bool *out, struct err *err)
{
    json_t *standard = json_boolean(fallback), *value;
    char key[64];
    int ret = find(s, keys, key, standard, &value, err);

    json_decref(standard);
    if (ret)
        return -1;
    *out = fallback;
    if (value && !json_is_boolean(value))
        return section_malformed(s, key, "is neither true nor false", err);
    if (value)
        *out = json_is_true(value);
    return 0;
}

int config_text(const struct section *s, const char *keys, const char *fallback,
                const char **out, struct err *err)
{
    json_t *standard = fallback ? json_string(fallback) : NULL, *value;
    char key[64];
    int ret = find(s, keys, key, standard, &value, err);

    json_decref(standard);
    if (ret)
        return -1;
    *out = fallback;
    if (value && !json_is_string(value))
        return section_malformed(s, key, "is not a string", err);
    if (value)
        *out = json_string_value(value);
    return 0;
}

const json_t *config_value(const struct section *s, const char *key)
{
    json_t *value = json_object_get(s->object, key);

    if (json_is_null(value))
        value = NULL;
    section_note(s, key, value ? READ : DEFAULTED, value ? value : json_null());
    return value;
}

int config_expect_text(const struct section *s, const char *keys,
                       const char *value, struct err *err)
{
    const char *got;

    if (config_text(s, keys, value, &got, err))
        return -1;
    if (strcmp(got, value) != 0)
        return config_refuse(s, keys, err, "is '%.60s', only '%s' is supported",
                             got, value);
    return 0;
}

int config_expect_flag(const struct section *s, const char *keys, bool value,
                       struct err *err)
{
    bool got;

    if (config_flag(s, keys, value, &got, err))
        return -1;
    if (got != value)
        return config_refuse(s, keys, err, "is %s, only %s is supported",
                             got ? "true" : "false", value ? "true" : "false");
    return 0;
}
