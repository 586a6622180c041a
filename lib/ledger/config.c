/* A JSON file of a pack, and what became of each of its keys. */
#include "ledger/config.h"

#include "base/mem.h"
#include "ledger/ledger_internal.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT_MAX = 1 << 24, VALUE_MAX = 160 };

struct section {
    struct config *config;
    json_t *object; /* borrowed from the root */
    char *prefix;   /* "text_config.", or "" */
};

/* In ascending strength: a key that one reader ignores and another reads is
 * read. */
enum state { UNREAD, IGNORED, DEFAULTED, READ };
static const char *const state_names[] = {"unread", "without effect",
                                          "defaulted", "read"};

struct entry {
    char *key;
    enum state state;
    json_t *value; /* NULL: not shown */
};

struct config {
    char *path;
    json_t *root;
    struct section **sections; /* the root first */
    size_t section_count;
    json_t *sections_by; /* an object: prefix -> index into sections */
    struct entry *entries;
    size_t count;
    json_t *places; /* an object: full key -> index into entries */
};

/* Takes the prefix over. */
static struct section *add_section(struct config *c, json_t *object,
                                   char *prefix)
{
    struct section *s = xcalloc(1, sizeof(*s));

    *s = (struct section){c, object, prefix};
    c->sections =
        xrealloc(c->sections, (c->section_count + 1) * sizeof(*c->sections));
    c->sections[c->section_count] = s;
    json_object_set_new(c->sections_by, prefix,
                        json_integer((json_int_t)c->section_count++));
    return s;
}

struct config *config_new(const char *path, json_t *root)
{
    struct config *c = xcalloc(1, sizeof(*c));

    c->path = xstrdup(path);
    c->root = root;
    c->places = json_object();
    c->sections_by = json_object();
    add_section(c, root, xstrdup(""));
    return c;
}

struct config *config_open(const char *path, struct err *err)
{
    json_t *root = json_read_config(path, err);

    if (root && !json_is_object(root))
        err_set(err, ERR_INPUT, "%s: is not an object", path);
    if (!json_is_object(root)) {
        json_decref(root);
        return NULL;
    }
    return config_new(path, root);
}

void config_close(struct config *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->section_count; i++) {
        free(c->sections[i]->prefix);
        free(c->sections[i]);
    }
    free(c->sections);
    json_decref(c->sections_by);
    for (size_t i = 0; i < c->count; i++) {
        free(c->entries[i].key);
        json_decref(c->entries[i].value);
    }
    free(c->entries);
    json_decref(c->places);
    json_decref(c->root);
    free(c->path);
    free(c);
}

const struct section *config_root(struct config *c)
{
    return c->sections[0];
}

const char *config_path(const struct section *s)
{
    return s->config->path;
}

const json_t *config_object(const struct section *s)
{
    return s->object;
}

/* ---- the ledger ---- */

static const struct entry *entry_of(const struct section *s, const char *key)
{
    char *full = xasprintf("%s%s", s->prefix, key);
    json_t *at = json_object_get(s->config->places, full);

    free(full);
    return at ? &s->config->entries[json_integer_value(at)] : NULL;
}

static void note(const struct section *s, const char *key, enum state state,
                 json_t *value)
{
    struct config *c = s->config;
    struct entry *e = (struct entry *)entry_of(s, key);

    if (!e) {
        c->entries = xrealloc(c->entries, (c->count + 1) * sizeof(*c->entries));
        e = &c->entries[c->count];
        *e = (struct entry){.key = xasprintf("%s%s", s->prefix, key)};
        json_object_set_new(c->places, e->key,
                            json_integer((json_int_t)c->count++));
    }
    if (state <= e->state)
        return;
    json_decref(e->value);
    e->state = state;
    e->value = value ? json_incref(value) : NULL;
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

static bool is_shown(const json_t *value)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    bool is_short = text && strlen(text) <= VALUE_MAX;

    free(text);
    return is_short;
}

static void add_line(json_t *lines, const char *prefix, const char *key,
                     enum state state, json_t *value)
{
    char *full = xasprintf("%s%s", prefix, key);
    json_t *line = json_object();

    json_object_set_new(line, "key", json_string(full));
    json_object_set_new(line, "state", json_string(state_names[state]));
    if (value && is_shown(value))
        json_object_set(line, "value", value);
    json_array_append_new(lines, line);
    free(full);
}

json_t *config_ledger(const struct config *c)
{
    json_t *lines = json_array(), *value;
    const char *key;

    for (size_t i = 0; i < c->count; i++)
        add_line(lines, "", c->entries[i].key, c->entries[i].state,
                 c->entries[i].value);
    for (size_t i = 0; i < c->section_count; i++) {
        const struct section *s = c->sections[i];

        json_object_foreach(s->object, key, value)
        {
            if (!entry_of(s, key))
                add_line(lines, s->prefix, key, UNREAD, value);
        }
    }
    return lines;
}

int config_finish(struct config *c, struct err *err)
{
    const char *key;
    json_t *value;

    for (size_t i = 0; i < c->section_count; i++) {
        const struct section *s = c->sections[i];

        json_object_foreach(s->object, key, value)
        {
            bool is_off = json_is_null(value) ||
                          (json_is_false(value) && strncmp(key, "do_", 3) == 0);

            if (is_off || entry_of(s, key) || !key_has_meaning(key))
                continue;
            return config_refuse(
                s, key, err, "is not known, and may change what is computed");
        }
    }
    return 0;
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
        note(s, name, READ, value);
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
        note(s, key, DEFAULTED, fallback ? fallback : json_null());
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

/* The section of an object below `s`, made when it is asked for first. */
static const struct section *section_of(const struct section *s, json_t *object,
                                        const char *key)
{
    struct config *c = s->config;
    char *prefix = xasprintf("%s%s.", s->prefix, key);
    json_t *place = json_object_get(c->sections_by, prefix);

    if (place) {
        free(prefix);
        return c->sections[json_integer_value(place)];
    }
    return add_section(c, object, prefix);
}

int config_section(const struct section *s, const char *key,
                   const struct section **out, struct err *err)
{
    json_t *object = json_object_get(s->object, key);
    bool is_there = object && !json_is_null(object);

    *out = NULL;
    note(s, key, is_there ? READ : DEFAULTED, is_there ? NULL : json_null());
    if (!is_there)
        return 0;
    if (!json_is_object(object))
        return malformed(s, key, "is not an object", err);
    *out = section_of(s, object, key);
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
        return malformed(s, key, "is neither a number nor null", err);
    *out = value ? json_number_value(value) : fallback;
    while (!value && next_key(&rest, name))
        if (config_is_null(s, name)) {
            note(s, name, READ, NULL);
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
    note(s, key, value ? READ : DEFAULTED, value ? value : json_null());
    return value;
}

/* A required key: read when it is there, else the getter will say so. */
static void note_required(const struct section *s, const char *key)
{
    json_t *value = json_object_get(s->object, key);

    if (value)
        note(s, key, READ, json_is_object(value) ? NULL : value);
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
    *out = section_of(s, object, key);
    return 0;
}

int config_get_item(const struct section *s, const char *key, size_t i,
                    const struct section **out, struct err *err)
{
    json_t *list = json_object_get(s->object, key);
    json_t *item = json_array_get(list, i);

    if (!json_is_object(item))
        return err_set(err, ERR_INPUT, "not an object");
    note(s, key, READ, NULL);
    char *name = xasprintf("%s[%zu]", key, i);
    *out = section_of(s, item, name);
    free(name);
    return 0;
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

void config_default(const struct section *s, const char *key, json_t *value)
{
    note(s, key, DEFAULTED, value);
    json_decref(value);
}

void config_ignore(const struct section *s, const char *const *keys)
{
    for (; *keys; keys++) {
        json_t *value = json_object_get(s->object, *keys);

        if (value)
            note(s, *keys, IGNORED, value);
    }
}

void config_ignore_rest(const struct section *s)
{
    struct config *c = s->config;
    const char *key;
    json_t *value;

    for (size_t i = 0; i < c->section_count; i++)
        json_object_foreach(c->sections[i]->object, key, value)
        {
            if (!entry_of(c->sections[i], key))
                note(c->sections[i], key, IGNORED, value);
        }
}

void config_ignore_common(const struct section *s)
{
    static const char *const keys[] = {"_attn_implementation_autoset",
                                       "_commit_hash",
                                       "_name_or_path",
                                       "architectures",
                                       "attention_dropout",
                                       "auto_map",
                                       "bos_token_id",
                                       "chunk_size_feed_forward",
                                       "dtype",
                                       "eos_token_id",
                                       "id2label",
                                       "initializer_range",
                                       "label2id",
                                       "model_type",
                                       "output_attentions",
                                       "output_hidden_states",
                                       "pad_token_id",
                                       "problem_type",
                                       "return_dict",
                                       "torch_dtype",
                                       "torchscript",
                                       "transformers_version",
                                       "unsloth_version",
                                       "use_cache",
                                       NULL};

    config_ignore(s, keys);
}
