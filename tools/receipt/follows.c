/* Verdict files of another build against those made again. */
#include "hash/hash.h"
#include "verbs.h"

#include <string.h>

/* Without these a verdict file says less than a verdict. */
static const char *const needed[] = {
    "verdict", "gates_sha256", "protocol_sha256", "cases_sha256", "counts",
    "cases",   "name",         "gates",           "tensor",       "metric",
    "at_most", "at_least",     "value",           "worst",        "reason"};

static bool is_needed(const char *key)
{
    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
        if (strcmp(key, needed[i]) == 0)
            return true;
    return false;
}

static bool is_part(const json_t *part, const json_t *whole)
{
    const char *key;
    json_t *value;
    size_t i;

    if (json_is_object(part) && json_is_object(whole)) {
        json_object_foreach((json_t *)part, key, value)
        {
            const json_t *other = json_object_get(whole, key);

            if (!other || !is_part(value, other))
                return false;
        }
        json_object_foreach((json_t *)whole, key, value)
        {
            if (is_needed(key) && !json_object_get(part, key))
                return false;
        }
        return true;
    }
    if (json_is_array(part) && json_is_array(whole)) {
        if (json_array_size(part) != json_array_size(whole))
            return false;
        json_array_foreach(part, i, value)
        {
            if (!is_part(value, json_array_get(whole, i)))
                return false;
        }
        return true;
    }
    return json_equal(part, whole);
}

bool verdict_follows(const json_t *stored, const char *sha256,
                     const json_t *made)
{
    struct buf text = BUF_INIT;
    char digest[HASH_SHA256_HEX];

    json_write(stored, &text);
    hash_sha256(text.data, text.len, digest);
    buf_release(&text);
    return strcmp(digest, sha256) == 0 && is_part(stored, made);
}
