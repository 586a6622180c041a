/* Finds the files of captures, and lays them over one another. */
#include "gates/capture_internal.h"

#include "base/bug.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SUFFIX ".safetensors"

void capture_add_remark(char **list, const char *text)
{
    char *longer = **list ? xasprintf("%s; %s", *list, text) : xstrdup(text);

    free(*list);
    *list = longer;
}

char *capture_by_role(const struct err *why, const char *path, const char *role)
{
    size_t len = strlen(path);

    return strncmp(why->text, path, len) == 0
               ? xasprintf("%s%s", role, why->text + len)
               : xasprintf("%s: %s", role, why->text);
}

/* "CANDIDATE" for the first path, "CANDIDATE2" for the second. */
static char *role_of(const struct capture_paths *from, size_t layer)
{
    return layer == 0 ? xstrdup(from->role)
                      : xasprintf("%s%zu", from->role, layer + 1);
}

static bool has_suffix(const char *name)
{
    size_t len = strlen(name), tail = strlen(SUFFIX);

    return len > tail && strcmp(name + len - tail, SUFFIX) == 0;
}

/* Is `name` among the comma-separated `list`, as it is or without suffix? */
static bool is_listed(const char *list, const char *name)
{
    size_t stem = strlen(name) - strlen(SUFFIX);

    for (const char *at = list; *at;) {
        size_t len = strcspn(at, ",");

        if ((len == stem || len == strlen(name)) && memcmp(at, name, len) == 0)
            return true;
        at += len + (at[len] == ',');
    }
    return false;
}

static void add_file(struct one_case *c, char *path, char *role, size_t layer)
{
    struct stat st;
    struct file *f;

    c->files = xrealloc(c->files, (c->count + 1) * sizeof(*c->files));
    f = &c->files[c->count++];
    *f = (struct file){.path = path, .role = role, .layer = layer};
    if (stat(path, &st) == 0) {
        f->dev = st.st_dev;
        f->ino = st.st_ino;
        f->has_id = true;
    }
}

struct one_case *capture_set_find(const struct capture_set *set,
                                  const char *name)
{
    for (size_t i = 0; i < set->count; i++)
        if (strcmp(set->cases[i].name, name) == 0)
            return &set->cases[i];
    return NULL;
}

static struct one_case *add_case(struct capture_set *set, const char *name)
{
    struct one_case *found = capture_set_find(set, name);

    if (found)
        return found;
    set->cases = xrealloc(set->cases, (set->count + 1) * sizeof(*set->cases));
    found = &set->cases[set->count++];
    *found = (struct one_case){.name = xstrdup(name), .remark = xstrdup("")};
    return found;
}

/* How many .safetensors stand directly in a folder, and of those how many are
 * listed in `files`? */
static size_t count_files(const struct io_list *list, const char *files,
                          size_t *listed)
{
    size_t n = 0;

    *listed = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (list->names[i][0] == '.' || !has_suffix(list->names[i]))
            continue;
        n++;
        *listed += files && is_listed(files, list->names[i]);
    }
    return n;
}

static void add_files(struct one_case *c, const char *dir, const char *role,
                      const struct io_list *list,
                      const struct capture_paths *from, size_t layer)
{
    size_t listed;
    bool is_free;

    count_files(list, from->files, &listed);
    is_free = !from->files || (from->may_fail && listed == 0);
    for (size_t i = 0; i < list->count; i++) {
        const char *name = list->names[i];

        if (name[0] == '.' || !has_suffix(name))
            continue;
        if (!is_free && !is_listed(from->files, name)) {
            char *text = xasprintf("--files leaves out %s/%s", role, name);

            capture_add_remark(&c->remark, text);
            free(text);
            continue;
        }
        add_file(c, path_join(dir, name), xasprintf("%s/%s", role, name),
                 layer);
    }
}

/* A name for a single capture's case. */
static char *single_name(const char *path)
{
    char *full = realpath(path, NULL);
    char *name = xstrdup(path_base(full ? full : path));
    struct err why = ERR_INIT;

    if (has_suffix(name))
        name[strlen(name) - strlen(SUFFIX)] = '\0';
    if (path_check_name(name, &why)) {
        free(name);
        name = xstrdup("case");
    }
    free(full);
    return name;
}

/* One folder of a folder of captures. */
static int add_case_folder(struct capture_set *set, const char *dir,
                           const char *role, const char *name,
                           const struct capture_paths *from, size_t layer,
                           struct err *err)
{
    char *sub = path_join(dir, name);
    char *sub_role = xasprintf("%s/%s", role, name);
    struct io_list list = {0};
    struct err why = ERR_INIT;
    int ret = 0;

    if (!io_is_dir(sub))
        goto out;
    if (path_check_name(name, &why)) {
        ret = err_set(err, ERR_INPUT, "%s: no name for a case: %.200s", dir,
                      why.text);
        goto out;
    }
    struct one_case *c = add_case(set, name);
    c->layers++;
    if (io_list(sub, &list, &why)) {
        if (!from->may_fail || why.code == ERR_SYSTEM) {
            *err = why;
            ret = -1;
        } else {
            /* As a file that will not open: its gates fail by it. */
            add_file(c, xstrdup(sub), xstrdup(sub_role), layer);
        }
        goto out;
    }
    add_files(c, sub, sub_role, &list, from, layer);
out:
    io_list_release(&list);
    free(sub);
    free(sub_role);
    return ret;
}

enum kind { KIND_NONE, KIND_SINGLE, KIND_FOLDER };

/* Does a folder below hold captures? */
static bool has_case_folders(const char *dir, const struct io_list *list,
                             bool with_files)
{
    for (size_t i = 0; i < list->count; i++) {
        char *sub = path_join(dir, list->names[i]);
        struct io_list inner = {0};
        struct err why = ERR_INIT;
        size_t listed;
        bool found = list->names[i][0] != '.' && io_is_dir(sub);

        if (found && with_files) {
            found = io_list(sub, &inner, &why) == 0 &&
                    count_files(&inner, NULL, &listed) > 0;
            io_list_release(&inner);
        }
        free(sub);
        if (found)
            return true;
    }
    return false;
}

static int add_folder(struct capture_set *set, const char *dir,
                      const char *role, const struct capture_paths *from,
                      size_t layer, enum kind *kind, struct err *err)
{
    struct io_list list = {0};
    size_t listed;
    int ret = -1;

    if (io_list(dir, &list, err))
        return -1;
    bool has_files = count_files(&list, from->files, &listed) > 0;
    if (has_files && has_case_folders(dir, &list, true)) {
        err_set(err, ERR_INPUT,
                "%s: holds captures both itself and in folders below", dir);
        goto out;
    }
    if (has_files) {
        char *name = single_name(dir);

        *kind = KIND_SINGLE;
        /* Later paths of a single capture join the first one's case. */
        struct one_case *c = set->count ? &set->cases[0] : add_case(set, name);
        add_files(c, dir, role, &list, from, layer);
        free(name);
    } else if (has_case_folders(dir, &list, false)) {
        *kind = KIND_FOLDER;
        for (size_t i = 0; i < list.count; i++)
            if (list.names[i][0] != '.' &&
                add_case_folder(set, dir, role, list.names[i], from, layer,
                                err))
                goto out;
    } else if (!from->may_fail) {
        err_set(err, ERR_INPUT, "%s: holds no %s", dir, SUFFIX);
        goto out;
    } else {
        char *text = xasprintf("%s holds no %s", role, SUFFIX);

        capture_add_remark(&set->trouble, text);
        free(text);
    }
    ret = 0;
out:
    io_list_release(&list);
    return ret;
}

static int add_path(struct capture_set *set, const struct capture_paths *from,
                    size_t layer, enum kind *kind, struct err *err)
{
    const char *path = from->paths[layer];
    char *role = role_of(from, layer);
    struct stat st;
    int ret = 0;

    if (io_is_dir(path)) {
        ret = add_folder(set, path, role, from, layer, kind, err);
    } else if (stat(path, &st)) {
        struct err why = ERR_INIT;

        err_sys(&why, "%s", path);
        if (from->may_fail && why.code != ERR_SYSTEM) {
            char *text = capture_by_role(&why, path, role);

            capture_add_remark(&set->trouble, text);
            free(text);
        } else {
            *err = why;
            ret = -1;
        }
    } else {
        char *name = single_name(path);
        struct one_case *c = set->count ? &set->cases[0] : add_case(set, name);

        *kind = KIND_SINGLE;
        add_file(c, xstrdup(path), xstrdup(role), layer);
        free(name);
    }
    free(role);
    return ret;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct one_case *)a)->name,
                  ((const struct one_case *)b)->name);
}

/* Notes the paths that have no folder for a case that another path has. */
static void remark_gaps(struct capture_set *set,
                        const struct capture_paths *from)
{
    for (size_t i = 0; i < set->count; i++) {
        struct one_case *c = &set->cases[i];

        for (size_t k = 0; k < from->count && c->layers < from->count; k++) {
            char *sub = path_join(from->paths[k], c->name);
            char *role = role_of(from, k);
            char *text = xasprintf("%s has no folder for this case", role);

            if (!io_is_dir(sub))
                capture_add_remark(&c->remark, text);
            free(sub);
            free(role);
            free(text);
        }
    }
}

struct capture_set *capture_set_open(const struct capture_paths *from,
                                     struct err *err)
{
    struct capture_set *set = xcalloc(1, sizeof(*set));
    enum kind kind = KIND_NONE;

    set->may_fail = from->may_fail;
    set->trouble = xstrdup("");
    for (size_t i = 0; i < from->count; i++) {
        enum kind this = KIND_NONE;

        if (kind == KIND_FOLDER && !io_is_dir(from->paths[i]) &&
            io_exists(from->paths[i])) {
            err_set(err, ERR_INPUT,
                    "%s: one file cannot be laid over a folder of captures",
                    from->paths[i]);
            goto fail;
        }
        if (add_path(set, from, i, &this, err))
            goto fail;
        if (kind != KIND_NONE && this != KIND_NONE && this != kind) {
            err_set(err, ERR_INPUT,
                    "%s: a single capture and a folder of captures cannot be "
                    "laid over one another",
                    from->paths[i]);
            goto fail;
        }
        if (this != KIND_NONE)
            kind = this;
    }
    set->is_single = kind == KIND_SINGLE;
    if (set->count)
        qsort(set->cases, set->count, sizeof(*set->cases), by_name);
    for (size_t i = 0; i < set->count && !set->may_fail; i++) {
        if (set->cases[i].count == 0) {
            err_set(err, ERR_INPUT, "%s: case '%s' holds %s%s", from->paths[0],
                    set->cases[i].name,
                    from->files ? "none of the files " : "no " SUFFIX,
                    from->files ? from->files : "");
            goto fail;
        }
    }
    if (kind == KIND_FOLDER)
        remark_gaps(set, from);
    return set;
fail:
    capture_set_close(set);
    return NULL;
}

void capture_set_close(struct capture_set *set)
{
    if (!set)
        return;
    for (size_t i = 0; i < set->count; i++) {
        struct one_case *c = &set->cases[i];

        for (size_t j = 0; j < c->count; j++) {
            free(c->files[j].path);
            free(c->files[j].role);
        }
        free(c->files);
        free(c->name);
        free(c->remark);
    }
    free(set->cases);
    free(set->trouble);
    free(set);
}

bool capture_set_is_single(const struct capture_set *set)
{
    return set->is_single;
}

size_t capture_set_count(const struct capture_set *set)
{
    return set->count;
}

const char *capture_set_name(const struct capture_set *set, size_t i)
{
    return set->cases[i].name;
}

bool capture_set_has(const struct capture_set *set, const char *name)
{
    return capture_set_find(set, name) != NULL;
}

void capture_set_rename(struct capture_set *set, const char *name)
{
    BUG_ON(!set->is_single || set->count != 1);
    char *copy = xstrdup(name);
    free(set->cases[0].name);
    set->cases[0].name = copy;
}

const char *capture_set_trouble(const struct capture_set *set)
{
    return set->trouble;
}

static const struct file *same_file(const struct capture_set *set,
                                    const struct file *other)
{
    for (size_t i = 0; i < set->count; i++) {
        for (size_t j = 0; j < set->cases[i].count; j++) {
            const struct file *f = &set->cases[i].files[j];

            if (f->has_id && other->has_id && f->dev == other->dev &&
                f->ino == other->ino)
                return f;
        }
    }
    return NULL;
}

int capture_set_apart(const struct capture_set *a, const struct capture_set *b,
                      struct err *err)
{
    for (size_t i = 0; i < a->count; i++) {
        for (size_t j = 0; j < a->cases[i].count; j++) {
            const struct file *mine = &a->cases[i].files[j];
            const struct file *theirs = same_file(b, mine);

            if (theirs)
                return err_set(err, ERR_INPUT,
                               "%s and %s are the same file: comparing it "
                               "with itself measures nothing",
                               mine->path, theirs->path);
        }
    }
    return 0;
}

int capture_set_files(const struct capture_set *set, const char *name,
                      int (*visit)(const char *path, void *context,
                                   struct err *err),
                      void *context, struct err *err)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct one_case *c = &set->cases[i];

        if (name && strcmp(c->name, name) != 0)
            continue;
        for (size_t j = 0; j < c->count; j++)
            if (c->files[j].has_id && visit(c->files[j].path, context, err))
                return -1;
    }
    return 0;
}
