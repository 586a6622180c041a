/* The stage record: what ran, on what, giving what. */
#include "evidence/stage.h"

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

/* One name for one place: as spelled, made absolute, and links followed. */
struct role {
    char *name, *spelled, *plain, *real;
    bool is_given; /* by --role: wins over the tool's own */
};

/* A file that was hashed. */
struct entry {
    char *path, *name; /* as given (NULL for an output), and as recorded */
    char sha256[HASH_SHA256_HEX];
    int64_t size;
};

struct entries {
    struct entry *items;
    size_t count;
};

struct stage {
    const char *program;
    int argc;
    char **argv;
    struct role *roles;
    size_t role_count;
    struct entries inputs, outputs;
    json_t *identity; /* program and libraries */
    json_t *frozen;
    json_t *record;
};

/* ------------------------------------------------------------- paths */

/* Absolute, without "." and "..", by spelling alone. */
static char *plain_path(const char *path)
{
    char cwd[PATH_MAX] = "";
    struct buf out = BUF_INIT;

    if (path[0] != '/' && !getcwd(cwd, sizeof(cwd)))
        cwd[0] = '\0';
    char *whole = xasprintf("%s/%s", cwd, path), *save = NULL;
    for (char *part = strtok_r(whole, "/", &save); part;
         part = strtok_r(NULL, "/", &save)) {
        if (strcmp(part, ".") == 0)
            continue;
        if (strcmp(part, "..") == 0) {
            while (out.len > 0 && out.data[--out.len] != '/')
                continue;
            if (out.data)
                out.data[out.len] = '\0';
            continue;
        }
        buf_addch(&out, '/');
        buf_addstr(&out, part);
    }
    if (out.len == 0)
        buf_addch(&out, '/');
    free(whole);
    return buf_detach(&out);
}

/* Links followed as far as the path exists. */
static char *real_path(const char *plain)
{
    char *real = realpath(plain, NULL);

    if (real || strcmp(plain, "/") == 0)
        return real ? real : xstrdup(plain);
    char *dir = path_dir(plain), *real_dir = real_path(dir);
    real = path_join(real_dir, path_base(plain));
    free(dir);
    free(real_dir);
    return real;
}

/* What follows `folder` in `path`: "" or "/rest"; NULL when it lies elsewhere.
 */
static const char *rest_below(const char *path, const char *folder)
{
    size_t n = strlen(folder);

    if (strcmp(folder, "/") == 0)
        return path;
    if (strncmp(path, folder, n) != 0 || (path[n] != '/' && path[n] != '\0'))
        return NULL;
    return path + n;
}

static char *name_by_roles(const struct stage *s, const char *path,
                           bool is_plain)
{
    const struct role *best = NULL;
    const char *best_rest = NULL;

    for (size_t i = 0; i < s->role_count; i++) {
        const struct role *r = &s->roles[i];
        const char *rest = rest_below(path, is_plain ? r->plain : r->real);

        if (!rest || (best && best->is_given && !r->is_given))
            continue;
        if (!best || (r->is_given && !best->is_given) ||
            strlen(rest) < strlen(best_rest)) {
            best = r;
            best_rest = rest;
        }
    }
    if (!best)
        return NULL;
    return strcmp(best_rest, "/") == 0
               ? xstrdup(best->name)
               : xasprintf("%s%s", best->name, best_rest);
}

char *stage_name(const struct stage *s, const char *path)
{
    char *plain = plain_path(path);
    char *name = name_by_roles(s, plain, true);

    if (!name) {
        char *dir = path_dir(plain), *real_dir = real_path(dir);
        char *real = path_join(real_dir, path_base(plain));

        name = name_by_roles(s, real, false);
        free(real);
        free(real_dir);
        free(dir);
    }
    if (!name)
        name = xasprintf("ELSEWHERE/%s", path_base(plain));
    free(plain);
    return name;
}

static void add_role(struct stage *s, const char *name, size_t name_len,
                     const char *path, bool is_given)
{
    s->roles = xrealloc(s->roles, (s->role_count + 1) * sizeof(*s->roles));
    struct role *r = &s->roles[s->role_count++];

    r->name = xstrndup(name, name_len);
    r->spelled = xstrdup(path);
    r->plain = plain_path(path);
    r->real = real_path(r->plain);
    r->is_given = is_given;
}

void stage_role(struct stage *s, const char *name, const char *path)
{
    if (path)
        add_role(s, name, strlen(name), path, false);
}

static int add_given_role(struct stage *s, const char *word, struct err *err)
{
    size_t len = strcspn(word, "=");

    if (word[len] != '=' || len == 0 || !word[len + 1])
        return err_set(err, ERR_USAGE, "--role takes NAME=PATH, not '%s'",
                       word);
    for (size_t i = 0; i < len; i++)
        if (!((word[i] >= 'A' && word[i] <= 'Z') || word[i] == '_' ||
              (i > 0 && word[i] >= '0' && word[i] <= '9')))
            return err_set(err, ERR_USAGE,
                           "--role: a name is capital letters, not '%.*s'",
                           (int)len, word);
    add_role(s, word, len, word + len + 1, true);
    return 0;
}

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
        if (add_given_role(s, options->roles.items[i], err))
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

        add_role(copy, r->name, strlen(r->name), r->spelled, r->is_given);
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

static json_t *stage_json(struct stage *s)
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

/* ----------------------------------------------- an earlier result again */

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "(none)";
}

static const json_t *find_path(const json_t *list, const char *path)
{
    json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
    {
        if (strcmp(text_of(item, "path"), path) == 0)
            return item;
    }
    return NULL;
}

/* The first file in which two lists differ. */
static int tell_file(const char *what, const json_t *then, const json_t *now,
                     struct err *why)
{
    json_t *item;
    size_t i;

    json_array_foreach(now, i, item)
    {
        const char *path = text_of(item, "path");
        const json_t *old = find_path(then, path);

        if (!old)
            return err_set(why, ERR_INPUT, "%s %s is not in its record", what,
                           path);
        if (!json_equal(old, item))
            return err_set(why, ERR_INPUT, "%s %s had SHA-256 %s, is %s", what,
                           path, text_of(old, "sha256"),
                           text_of(item, "sha256"));
    }
    json_array_foreach(then, i, item)
    {
        if (!find_path(now, text_of(item, "path")))
            return err_set(why, ERR_INPUT, "%s %s is not there", what,
                           text_of(item, "path"));
    }
    return err_set(why, ERR_INPUT, "its %ss stand in other order", what);
}

static int tell_difference(const json_t *then, const json_t *now,
                           struct err *why)
{
    static const struct {
        const char *key, *text;
    } parts[] = {
        {"format", "its record is of another form"},
        {"program", "another build of the program made it"},
        {"libraries", "it was made with other libraries"},
        {"arguments", "it was made with other arguments"},
        {"frozen", "it was made under another protocol, cases or gates"},
    };

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (!json_equal(json_object_get(then, parts[i].key),
                        json_object_get(now, parts[i].key)))
            return err_set(why, ERR_INPUT, "%s", parts[i].text);
    if (!json_equal(json_object_get(then, "inputs"),
                    json_object_get(now, "inputs")))
        return tell_file("input", json_object_get(then, "inputs"),
                         json_object_get(now, "inputs"), why);
    if (!json_equal(json_object_get(then, "outputs"),
                    json_object_get(now, "outputs")))
        return tell_file("output", json_object_get(then, "outputs"),
                         json_object_get(now, "outputs"), why);
    return err_set(why, ERR_INPUT, "its record would be other bytes now");
}

/* Everything in the folder but the record. */
static int add_outputs(struct stage *s, const char *dir, struct err *err)
{
    struct io_list list;
    int ret = 0;

    if (io_list(dir, &list, err))
        return -1;
    for (size_t i = 0; i < list.count && ret == 0; i++)
        if (strcmp(list.names[i], "stage.json") != 0)
            ret = stage_output(s, dir, list.names[i], err);
    io_list_release(&list);
    return ret;
}

int stage_holds(const struct stage *s, const char *dir, struct err *why)
{
    struct stage *again = stage_copy(s);
    char *path = path_join(dir, "stage.json");
    struct buf then = BUF_INIT, now = BUF_INIT;
    json_t *root = NULL, *old = NULL;
    int ret = -1;

    BUG_ON(s->outputs.count != 0);
    if (io_read_file(path, IO_JSON_CAP, &then, why) ||
        add_outputs(again, dir, why))
        goto out;
    root = stage_json(again);
    json_write(root, &now);
    if (then.len == now.len && memcmp(then.data, now.data, now.len) == 0) {
        ret = 0;
        goto out;
    }
    old = json_parse(then.data, then.len, why);
    if (old)
        tell_difference(old, root, why);
    else
        err_in(why, "stage.json");
out:
    json_decref(old);
    json_decref(root);
    buf_release(&then);
    buf_release(&now);
    free(path);
    stage_free(again);
    return ret;
}
