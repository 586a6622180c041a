/* What does not apply here, and must be sound all the same. */
#include "tokenizer/batching.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static bool is_whole(const json_t *value, json_int_t most)
{
    return json_is_integer(value) && json_integer_value(value) >= 0 &&
           json_integer_value(value) <= most;
}

static bool is_size(const json_t *value)
{
    return is_whole(value, INT64_MAX);
}

static bool is_size_or_null(const json_t *value)
{
    return !value || json_is_null(value) || is_size(value);
}

static bool is_id(const json_t *value)
{
    return is_whole(value, UINT32_MAX);
}

static bool is_text(const json_t *value)
{
    return json_is_string(value);
}

static bool is_side(const json_t *value)
{
    const char *text = json_string_value(value);

    return text && (strcmp(text, "Left") == 0 || strcmp(text, "Right") == 0);
}

static bool is_side_or_absent(const json_t *value)
{
    return !value || is_side(value);
}

static bool is_truncation(const json_t *value)
{
    const char *text = json_string_value(value);

    return text &&
           (strcmp(text, "LongestFirst") == 0 ||
            strcmp(text, "OnlyFirst") == 0 || strcmp(text, "OnlySecond") == 0);
}

/* "BatchLongest", or {"Fixed": length}. */
static bool is_padding(const json_t *value)
{
    const char *text = json_string_value(value);

    return text ? strcmp(text, "BatchLongest") == 0
                : json_object_size(value) == 1 &&
                      is_size(json_object_get(value, "Fixed"));
}

struct field {
    const char *name;
    bool (*is_sound)(const json_t *value); /* NULL: it is not there */
};

static int check(const json_t *object, const struct field *fields, size_t count,
                 struct err *err)
{
    if (!json_is_object(object))
        return err_set(err, ERR_INPUT, "not an object");
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_object_get(object, fields[i].name);

        if (!fields[i].is_sound(value))
            return err_set(err, ERR_INPUT,
                           value ? "'%s' is not what upstream takes"
                                 : "no '%s'",
                           fields[i].name);
    }
    return 0;
}

int truncation_check(const json_t *value, struct err *err)
{
    static const struct field fields[] = {
        {"direction", is_side_or_absent},
        {"max_length", is_size},
        {"strategy", is_truncation},
        {"stride", is_size},
    };

    return check(value, fields, sizeof(fields) / sizeof(fields[0]), err);
}

int padding_check(const json_t *value, struct err *err)
{
    static const struct field fields[] = {
        {"strategy", is_padding}, {"direction", is_side},
        {"pad_id", is_id},        {"pad_to_multiple_of", is_size_or_null},
        {"pad_type_id", is_id},   {"pad_token", is_text},
    };

    return check(value, fields, sizeof(fields) / sizeof(fields[0]), err);
}
