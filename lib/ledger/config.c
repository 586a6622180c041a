/* A JSON file of a pack, and what became of each of its keys. */
#include "ledger/config.h"

#include "base/mem.h"
#include "ledger/config_internal.h"
#include "ledger/ledger_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VALUE_MAX = 160 };

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

const struct section *section_below(const struct section *s, json_t *object,
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

void section_note(const struct section *s, const char *key, enum state state,
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

int section_malformed(const struct section *s, const char *key,
                      const char *what, struct err *err)
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

/* ---- what is noted without being read ---- */

void config_default(const struct section *s, const char *key, json_t *value)
{
    section_note(s, key, DEFAULTED, value);
    json_decref(value);
}

void config_ignore(const struct section *s, const char *const *keys)
{
    for (; *keys; keys++) {
        json_t *value = json_object_get(s->object, *keys);

        if (value)
            section_note(s, *keys, IGNORED, value);
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
                section_note(c->sections[i], key, IGNORED, value);
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
