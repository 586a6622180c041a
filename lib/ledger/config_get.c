/* Values of a pack's JSON file whose key must be there; errors name the key
 * alone. */
#include "ledger/config.h"

#include "base/mem.h"
#include "ledger/config_internal.h"

#include <stdlib.h>
#include <string.h>

/* A required key: read when it is there, else the getter will say so. */
static void note_required(const struct section *s, const char *key)
{
    json_t *value = json_object_get(s->object, key);

    if (value)
        section_note(s, key, READ, json_is_object(value) ? NULL : value);
}

int config_get_text(const struct section *s, const char *key, const char **out,
                    size_t *len, struct err *err)
{
    note_required(s, key);
    if (json_get_str(s->object, key, out, err))
        return -1;
    if (len)
        *len = json_string_length(json_object_get(s->object, key));
    return 0;
}

int config_get_int(const struct section *s, const char *key, int64_t *out,
                   struct err *err)
{
    note_required(s, key);
    return json_get_int(s->object, key, out, err);
}

int config_get_real(const struct section *s, const char *key, double *out,
                    struct err *err)
{
    note_required(s, key);
    return json_get_real(s->object, key, out, err);
}

int config_get_flag(const struct section *s, const char *key, bool *out,
                    struct err *err)
{
    note_required(s, key);
    return json_get_bool(s->object, key, out, err);
}

int config_get_list(const struct section *s, const char *key, json_t **out,
                    struct err *err)
{
    note_required(s, key);
    return json_get_array(s->object, key, out, err);
}

int config_get_section(const struct section *s, const char *key,
                       const struct section **out, struct err *err)
{
    json_t *object;

    note_required(s, key);
    if (json_get_object(s->object, key, &object, err))
        return -1;
    *out = section_below(s, object, key);
    return 0;
}

int config_get_item(const struct section *s, const char *key, size_t i,
                    const struct section **out, struct err *err)
{
    json_t *list = json_object_get(s->object, key);
    json_t *item = json_array_get(list, i);

    if (!json_is_object(item))
        return err_set(err, ERR_INPUT, "not an object");
    section_note(s, key, READ, NULL);
    char *name = xasprintf("%s[%zu]", key, i);
    *out = section_below(s, item, name);
    free(name);
    return 0;
}

/* ---- one of a kind ---- */

int config_get_within(const struct section *s, const char *key, int64_t low,
                      int64_t high, int64_t *out, struct err *err)
{
    if (config_get_int(s, key, out, err))
        return -1;
    if (*out < low || *out > high)
        return err_set(err, ERR_INPUT, "'%s' is %lld, not within %lld and %lld",
                       key, (long long)*out, (long long)low, (long long)high);
    return 0;
}

int config_want_text(const struct section *s, const char *key,
                     const char *value, struct err *err)
{
    const char *got;

    if (config_get_text(s, key, &got, NULL, err))
        return -1;
    return strcmp(got, value) == 0
               ? 0
               : err_set(err, ERR_UNSUPPORTED,
                         "'%s' is '%s'; only '%s' is supported", key, got,
                         value);
}

int config_want_int(const struct section *s, const char *key, int64_t value,
                    struct err *err)
{
    int64_t got;

    if (config_get_int(s, key, &got, err))
        return -1;
    return got == value ? 0
                        : err_set(err, ERR_UNSUPPORTED,
                                  "'%s' is %lld; only %lld is supported", key,
                                  (long long)got, (long long)value);
}

int config_want_flag(const struct section *s, const char *key, bool value,
                     struct err *err)
{
    bool got;

    if (config_get_flag(s, key, &got, err))
        return -1;
    return got == value
               ? 0
               : err_set(err, ERR_UNSUPPORTED,
                         "'%s' is %s; only %s is supported", key,
                         got ? "true" : "false", value ? "true" : "false");
}
