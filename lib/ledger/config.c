/* A model's config.json, and what became of each of its keys. */
#include "ledger/config.h"

#include "base/mem.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT_MAX = 1 << 24 };

struct section {
    struct config *config;
    json_t *object; /* borrowed from the root */
    char *prefix;   /* "text_config.", or "" */
    struct section *next;
};

struct config {
    char *path;
    json_t *root;
    struct section *first;
    json_t *entries; /* the ledger */
    json_t *seen;    /* an object: full key -> true */
};

struct config *config_open(const char *path, struct err *err)
{
    json_t *root = json_read_config(path, err);

    if (root && !json_is_object(root))
        err_set(err, ERR_INPUT, "%s: is not an object", path);
    if (!json_is_object(root)) {
        json_decref(root);
        return NULL;
    }
    struct config *c = xcalloc(1, sizeof(*c));
    c->path = xstrdup(path);
    c->root = root;
    c->entries = json_array();
    c->seen = json_object();
    c->first = xcalloc(1, sizeof(*c->first));
    *c->first = (struct section){c, root, xstrdup(""), NULL};
    return c;
}

void config_close(struct config *c)
{
    if (!c)
        return;
    for (struct section *s = c->first, *next; s; s = next) {
        next = s->next;
        free(s->prefix);
        free(s);
    }
    json_decref(c->entries);
    json_decref(c->seen);
    json_decref(c->root);
    free(c->path);
    free(c);
}

const struct section *config_root(struct config *c)
{
    return c->first;
}

/* ---- the ledger ---- */

static void note(const struct section *s, const char *key, const char *state,
                 json_t *value)
{
    struct config *c = s->config;
    char *full = xasprintf("%s%s", s->prefix, key);

    if (!json_object_get(c->seen, full)) {
        json_object_set_new(c->seen, full, json_true());
        json_array_append_new(
            c->entries,
            json_pack("{s:s, s:s, s:o}", "key", full, "state", state, "value",
                      value ? json_copy(value) : json_null()));
    }
    free(full);
}

static bool is_seen(const struct section *s, const char *key)
{
    char *full = xasprintf("%s%s", s->prefix, key);
    bool seen = json_object_get(s->config->seen, full) != NULL;

    free(full);
    return seen;
}

int config_refuse(const struct section *s, const char *key, struct err *err,
                  const char *format, ...)
{
    char text[256];
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    return err_set(err, ERR_UNSUPPORTED, "%s: '%s%s' %s", s->config->path,
                   s->prefix, key, text);
}

static int malformed(const struct section *s, const char *key, const char *what,
                     struct err *err)
{
    return err_set(err, ERR_INPUT, "%s: '%s%s' %s", s->config->path, s->prefix,
                   key, what);
}

json_t *config_ledger(const struct config *c)
{
    return json_incref(c->entries);
}

int config_finish(struct config *c, struct err *err)
{
    const struct section *unread_in = NULL;
    const char *unread = NULL, *key;
    json_t *value;

    for (const struct section *s = c->first; s; s = s->next)
        json_object_foreach(s->object, key, value)
        {
            if (is_seen(s, key))
                continue;
            note(s, key, "unread", value);
            if (!unread) {
                unread = key;
                unread_in = s;
            }
        }
    return unread ? config_refuse(unread_in, unread, err,
                                  "is not known, and may change what the model "
                                  "computes")
                  : 0;
}

/* ---- reading ---- */

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
        note(s, name, "read", value);
        if (*out && !json_equal(*out, value)) {
            char text[128];

            snprintf(text, sizeof(text), "and '%s' contradict each other",
                     name);
            return malformed(s, key, text, err);
        }
        if (!*out)
            strcpy(key, name);
        *out = value;
    }
    if (!*out)
        note(s, key, "defaulted", fallback);
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

    *out = NULL;
    note(s, key, "read", json_is_object(object) ? NULL : object);
    if (!object || json_is_null(object))
        return 0;
    if (!json_is_object(object))
        return malformed(s, key, "is not an object", err);
    struct section *at = s->config->first;
    for (;; at = at->next) {
        if (at->object == object) {
            *out = at;
            return 0;
        }
        if (!at->next)
            break;
    }
    struct section *found = xcalloc(1, sizeof(*found));
    *found = (struct section){s->config, object,
                              xasprintf("%s%s.", s->prefix, key), NULL};
    at->next = found;
    *out = found;
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
        return fallback < 0 ? malformed(s, key, "is missing", err) : 0;
    snprintf(range, sizeof(range), "is not a count from %lld to 2^24",
             (long long)least);
    if (!json_is_integer(value) || json_integer_value(value) < least ||
        json_integer_value(value) > COUNT_MAX)
        return malformed(s, key, range, err);
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
        return isnan(fallback) ? malformed(s, key, "is missing", err) : 0;
    if (!json_is_number(value))
        return malformed(s, key, "is not a number", err);
    *out = json_number_value(value);
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
        return malformed(s, key, "is neither true nor false", err);
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
        return malformed(s, key, "is not a string", err);
    if (value)
        *out = json_string_value(value);
    return 0;
}

const json_t *config_value(const struct section *s, const char *key)
{
    json_t *value = json_object_get(s->object, key);

    if (json_is_null(value))
        value = NULL;
    note(s, key, value ? "read" : "defaulted", value);
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

void config_ignore(const struct section *s, const char *const *keys)
{
    for (; *keys; keys++) {
        json_t *value = json_object_get(s->object, *keys);

        if (value)
            note(s, *keys, "without effect", value);
    }
}

void config_ignore_common(const struct section *s)
{
    static const char *const keys[] = {"_attn_implementation_autoset",
                                       "_name_or_path",
                                       "architectures",
                                       "attention_dropout",
                                       "auto_map",
                                       "bos_token_id",
                                       "dtype",
                                       "eos_token_id",
                                       "initializer_range",
                                       "model_type",
                                       "output_attentions",
                                       "output_hidden_states",
                                       "pad_token_id",
                                       "return_dict",
                                       "torch_dtype",
                                       "transformers_version",
                                       "unsloth_version",
                                       "use_cache",
                                       NULL};

    config_ignore(s, keys);
}
