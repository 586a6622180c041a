/* The stage record: what ran, on what, giving what. */
#include "evidence/stage_internal.h"

#include "base/buf.h"
#include "base/bug.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "hash/hash.h"

#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const frozen_names[] = {"protocol.json", "cases.json",
                                           "gates.json"};

/* ----------------------------------------------------------- entries */

static void entries_add(struct entries *list, const char *path, char *name,
                        const char *sha256, int64_t size)
{
    list->items =
        xrealloc(list->items, (list->count + 1) * sizeof(*list->items));
    struct entry *e = &list->items[list->count++];

    e->path = path ? xstrdup(path) : NULL;
    e->name = name;
    memcpy(e->sha256, sha256, HASH_SHA256_HEX);
    e->size = size;
}

static void entries_copy(struct entries *to, const struct entries *from)
{
    for (size_t i = 0; i < from->count; i++) {
        const struct entry *e = &from->items[i];

        entries_add(to, e->path, e->name ? xstrdup(e->name) : NULL, e->sha256,
                    e->size);
    }
}

static void entries_release(struct entries *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].path);
        free(list->items[i].name);
    }
    free(list->items);
}

static bool has_input(const struct stage *s, const char *path)
{
    for (size_t i = 0; i < s->inputs.count; i++)
        if (strcmp(s->inputs.items[i].path, path) == 0)
            return true;
    return false;
}

void stage_input_known(struct stage *s, const char *path, const char *sha256,
                       int64_t size)
{
    BUG_ON(strlen(sha256) != HASH_SHA256_HEX - 1);
    if (!has_input(s, path))
        entries_add(&s->inputs, path, NULL, sha256, size);
}

int stage_input(struct stage *s, const char *path, struct err *err)
{
    char sha256[HASH_SHA256_HEX];
    int64_t size;

    if (has_input(s, path))
        return 0;
    if (hash_sha256_file(path, sha256, &size, err))
        return -1;
    entries_add(&s->inputs, path, NULL, sha256, size);
    return 0;
}

int stage_input_dir(struct stage *s, const char *dir, struct err *err)
{
    struct io_list list;
    int ret = 0;

    if (io_list(dir, &list, err))
        return -1;
    for (size_t i = 0; i < list.count && ret == 0; i++) {
        char *path = path_join(dir, list.names[i]);
        struct stat st;

        if (stat(path, &st) == 0 && S_ISREG(st.st_mode))
            ret = stage_input(s, path, err);
        free(path);
    }
    io_list_release(&list);
    return ret;
}

int stage_output(struct stage *s, const char *dir, const char *name,
                 struct err *err)
{
    char *path = path_join(dir, name);
    char sha256[HASH_SHA256_HEX];
    int64_t size;
    int ret = hash_sha256_file(path, sha256, &size, err);

    if (ret == 0)
        entries_add(&s->outputs, NULL, xstrdup(name), sha256, size);
    else if (err->code == ERR_INPUT) /* it was there: we wrote it */
        err->code = ERR_SYSTEM;
    free(path);
    return ret;
}

/* ---------------------------------------------------------- identity */

/* Text that may not be UTF-8, as a JSON string: other bytes become \xHH. */
static json_t *json_text(const char *text)
{
    json_t *value = json_string(text);

    if (value)
        return value;
    struct buf out = BUF_INIT;
    for (const char *at = text; *at; at++) {
        if ((unsigned char)*at < 0x80)
            buf_addch(&out, *at);
        else
            buf_addf(&out, "\\x%02x", (unsigned char)*at);
    }
    value = json_string(out.data);
    buf_release(&out);
    return value;
}

struct loaded {
    json_t *list;
    struct err *err;
};

static int add_library(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct loaded *l = arg;
    char sha256[HASH_SHA256_HEX];

    (void)size;
    if (info->dlpi_name[0] != '/') /* the program itself, or the vDSO */
        return 0;
    char *real = realpath(info->dlpi_name, NULL);
    if (!real)
        return err_sys(l->err, "%s", info->dlpi_name);
    int ret = hash_sha256_file(real, sha256, NULL, l->err);
    if (ret == 0)
        json_array_append_new(l->list, json_pack("{s:o, s:s}", "file",
                                                 json_text(path_base(real)),
                                                 "sha256", sha256));
    free(real);
    return ret;
}

static int by_file(const void *a, const void *b)
{
    json_t *const *x = a, *const *y = b;

    return strcmp(json_string_value(json_object_get(*x, "file")),
                  json_string_value(json_object_get(*y, "file")));
}

static json_t *sorted(json_t *list)
{
    size_t n = json_array_size(list);
    json_t **items = xcalloc(n + 1, sizeof(*items)), *out = json_array();

    for (size_t i = 0; i < n; i++)
        items[i] = json_array_get(list, i);
    if (n)
        qsort(items, n, sizeof(*items), by_file);
    for (size_t i = 0; i < n; i++)
        json_array_append(out, items[i]);
    free(items);
    json_decref(list);
    return out;
}

static int set_identity(struct stage *s, struct err *err)
{
    char sha256[HASH_SHA256_HEX];
    struct loaded l = {json_array(), err};

    if (hash_sha256_file("/proc/self/exe", sha256, NULL, err) ||
        dl_iterate_phdr(add_library, &l)) {
        json_decref(l.list);
        return -1;
    }
    s->identity = json_pack("{s:{s:s, s:s, s:s}, s:o}", "program", "name",
                            s->program, "version", ASSAY_VERSION, "sha256",
                            sha256, "libraries", sorted(l.list));
    return 0;
}

static int set_frozen(struct stage *s, const char *dir, struct err *err)
{
    s->frozen = json_object();
    for (size_t i = 0; i < sizeof(frozen_names) / sizeof(frozen_names[0]);
         i++) {
        char *path = path_join(dir, frozen_names[i]);
        char sha256[HASH_SHA256_HEX];
        int64_t size;
        int ret = hash_sha256_file(path, sha256, &size, err);

        free(path);
        if (ret)
            return -1;
        json_object_set_new(s->frozen, frozen_names[i],
                            json_pack("{s:I, s:s}", "size", (json_int_t)size,
                                      "sha256", sha256));
    }
    return 0;
}

struct stage *stage_new(const char *program, int argc, char **argv,
                        const struct stage_options *options, struct err *err)
{
    struct stage *s = xcalloc(1, sizeof(*s));

    s->program = program;
    s->argc = argc;
    s->argv = argv;
    s->record = json_object();
    if (set_identity(s, err))
        goto fail;
    for (size_t i = 0; options && i < options->roles.count; i++)
        if (stage_give_role(s, options->roles.items[i], err))
            goto fail;
    if (options && options->frozen) {
        stage_role(s, "FROZEN", options->frozen);
        if (set_frozen(s, options->frozen, err))
            goto fail;
    }
    for (size_t i = 0; options && i < options->after.count; i++)
        if (stage_input(s, options->after.items[i], err))
            goto fail;
    return s;
fail:
    stage_free(s);
    return NULL;
}

void stage_free(struct stage *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->role_count; i++) {
        free(s->roles[i].name);
        free(s->roles[i].spelled);
        free(s->roles[i].plain);
        free(s->roles[i].real);
    }
    free(s->roles);
    entries_release(&s->inputs);
    entries_release(&s->outputs);
    json_decref(s->identity);
    json_decref(s->frozen);
    json_decref(s->record);
    free(s);
}

struct stage *stage_copy(const struct stage *s)
{
    struct stage *copy = xcalloc(1, sizeof(*copy));

    copy->program = s->program;
    copy->argc = s->argc;
    copy->argv = s->argv;
    for (size_t i = 0; i < s->role_count; i++) {
        const struct role *r = &s->roles[i];

        stage_add_role(copy, r->name, strlen(r->name), r->spelled, r->is_given);
    }
    entries_copy(&copy->inputs, &s->inputs);
    entries_copy(&copy->outputs, &s->outputs);
    copy->identity = json_incref(s->identity);
    copy->frozen = json_incref(s->frozen);
    copy->record = json_deep_copy(s->record);
    return copy;
}

void stage_set(struct stage *s, const char *key, json_t *value)
{
    BUG_ON(json_object_set_new(s->record, key, value));
}

/* --------------------------------------------------------- arguments */

/* A word that names a path of ours: a role or an input as it was spelled, or
 * anything absolute. */
static bool is_known_path(const struct stage *s, const char *word)
{
    if (word[0] == '/' || has_input(s, word))
        return true;
    for (size_t i = 0; i < s->role_count; i++)
        if (strcmp(s->roles[i].spelled, word) == 0)
            return true;
    return false;
}

static json_t *argument(const struct stage *s, const char *word)
{
    const char *value = word;

    if (strncmp(word, "--", 2) == 0 && strchr(word, '='))
        value = strchr(word, '=') + 1;
    if (!is_known_path(s, value))
        return json_text(word);
    char *name = stage_name(s, value);
    char *whole = xasprintf("%.*s%s", (int)(value - word), word, name);
    json_t *out = json_text(whole);
    free(whole);
    free(name);
    return out;
}

/* argv without the program's own place, without --role, whose paths mean
 * nothing elsewhere, and without --reuse, which changes nothing. */
static json_t *arguments(const struct stage *s)
{
    json_t *list = json_array();

    for (int i = 1; i < s->argc; i++) {
        if (strncmp(s->argv[i], "--role=", 7) == 0 ||
            strncmp(s->argv[i], "--reuse=", 8) == 0)
            continue;
        if (strcmp(s->argv[i], "--reuse") == 0) {
            i++;
            continue;
        }
        if (strcmp(s->argv[i], "--role") == 0) {
            while (i + 1 < s->argc && s->argv[i + 1][0] != '-')
                i++;
            continue;
        }
        json_array_append_new(list, argument(s, s->argv[i]));
    }
    return list;
}

static int by_name(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = strcmp(x->name, y->name);

    return order ? order : strcmp(x->sha256, y->sha256);
}

static json_t *entries_json(struct entries *list)
{
    json_t *out = json_array();

    if (list->count)
        qsort(list->items, list->count, sizeof(*list->items), by_name);
    for (size_t i = 0; i < list->count; i++) {
        const struct entry *e = &list->items[i];

        json_array_append_new(
            out, json_pack("{s:o, s:I, s:s}", "path", json_text(e->name),
                           "size", (json_int_t)e->size, "sha256", e->sha256));
    }
    return out;
}

json_t *stage_json(struct stage *s)
{
    json_t *root = json_object();

    for (size_t i = 0; i < s->inputs.count; i++)
        if (!s->inputs.items[i].name)
            s->inputs.items[i].name = stage_name(s, s->inputs.items[i].path);
    json_object_set_new(root, "format", json_string("assay-stage-1"));
    json_object_update(root, s->identity);
    json_object_set_new(root, "arguments", arguments(s));
    if (s->frozen)
        json_object_set(root, "frozen", s->frozen);
    json_object_set_new(root, "inputs", entries_json(&s->inputs));
    json_object_set_new(root, "outputs", entries_json(&s->outputs));
    json_object_set(root, "record", s->record);
    return root;
}

int stage_write(struct stage *s, const char *dir, struct err *err)
{
    json_t *root = stage_json(s);
    char *path = path_join(dir, "stage.json");
    int ret = json_write_file(root, path, err);

    json_decref(root);
    free(path);
    return ret;
}
