/* Finds a capture's files, and lays them over one another. */
#include "gates/capture.h"

#include "base/buf.h"
#include "base/bug.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "hash/hash.h"
#include "safetensors/safetensors.h"

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX ".safetensors"

enum { PROMPT_MAX = 64 << 20 };

struct file {
    char *path, *role;
    size_t layer; /* which path of the command line it came with */
    dev_t dev;
    ino_t ino;
    bool has_id;
};

struct one_case {
    char *name;
    struct file *files;
    size_t count;
    size_t layers; /* how many paths have a folder or file for it */
    char *remark;
};

struct capture_set {
    bool is_single, may_fail;
    struct one_case *cases; /* sorted by name */
    size_t count;
    char *trouble;
};

struct open_file {
    const struct file *file;
    struct safetensors *st;
    bool may_fail; /* its errors go into reports, by role */
};

struct capture {
    struct open_file *files; /* in order of layers */
    size_t count;
    char *trouble, *remark;
};

/* Adds text to a "; "-separated list. */
static void add_remark(char **list, const char *text)
{
    char *longer = **list ? xasprintf("%s; %s", *list, text) : xstrdup(text);

    free(*list);
    *list = longer;
}

/* err's text with `path` in front replaced by `role`. */
static char *by_role(const struct err *why, const char *path, const char *role)
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

static struct one_case *find_case(const struct capture_set *set,
                                  const char *name)
{
    for (size_t i = 0; i < set->count; i++)
        if (strcmp(set->cases[i].name, name) == 0)
            return &set->cases[i];
    return NULL;
}

static struct one_case *add_case(struct capture_set *set, const char *name)
{
    struct one_case *found = find_case(set, name);

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

            add_remark(&c->remark, text);
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

        add_remark(&set->trouble, text);
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
            char *text = by_role(&why, path, role);

            add_remark(&set->trouble, text);
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
                add_remark(&c->remark, text);
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
    return find_case(set, name) != NULL;
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

/* One tensor name in two files of one layer is refused. */
static int check_names(const struct open_file *a, const struct open_file *b,
                       struct err *err)
{
    for (size_t i = 0; i < safetensors_count(a->st); i++) {
        const char *name = safetensors_at(a->st, i)->name;

        if (safetensors_find(b->st, name))
            return err_set(err, ERR_INPUT,
                           "tensor '%.100s' is in %s and in %s: --files names "
                           "those to read",
                           name, a->file->path, b->file->path);
    }
    return 0;
}

struct capture *capture_open(const struct capture_set *set, const char *name,
                             struct err *err)
{
    const struct one_case *from = find_case(set, name);
    struct capture *c = xcalloc(1, sizeof(*c));

    c->trouble = xstrdup(set->trouble);
    c->remark = xstrdup(from ? from->remark : "");
    if (!from)
        return c;
    c->files = xcalloc(from->count, sizeof(*c->files));
    for (size_t i = 0; i < from->count; i++) {
        struct open_file *o = &c->files[c->count];
        struct err why = ERR_INIT;

        o->file = &from->files[i];
        o->may_fail = set->may_fail;
        o->st = safetensors_open(o->file->path, &why);
        if (o->st) {
            c->count++;
        } else if (set->may_fail && why.code != ERR_SYSTEM) {
            char *text = by_role(&why, o->file->path, o->file->role);

            add_remark(&c->trouble, text);
            free(text);
        } else {
            *err = why;
            goto fail;
        }
    }
    for (size_t i = 0; i < c->count; i++)
        for (size_t j = 0; j < i; j++)
            if (c->files[i].file->layer == c->files[j].file->layer &&
                check_names(&c->files[j], &c->files[i], err))
                goto fail;
    return c;
fail:
    capture_close(c);
    return NULL;
}

void capture_close(struct capture *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->count; i++)
        safetensors_close(c->files[i].st);
    free(c->files);
    free(c->trouble);
    free(c->remark);
    free(c);
}

/* context is the open file, detail the tensor in it. */
static int read_tensor(const struct tensor_source *s, int64_t offset,
                       size_t len, void *dst, struct err *err)
{
    const struct open_file *o = s->context;
    struct err why = ERR_INIT;

    if (safetensors_read(o->st, s->detail, offset, len, dst, &why) == 0)
        return 0;
    char *text = by_role(&why, o->file->path,
                         o->may_fail ? o->file->role : o->file->path);
    err_set(err, why.code, "%s", text);
    free(text);
    return -1;
}

bool capture_find(const struct capture *c, const char *tensor,
                  struct tensor_source *out)
{
    for (size_t i = c->count; i-- > 0;) {
        const struct tensor_info *info =
            safetensors_find(c->files[i].st, tensor);

        if (!info)
            continue;
        *out = (struct tensor_source){.dtype = info->dtype,
                                      .shape = info->shape,
                                      .read = read_tensor,
                                      .context = &c->files[i],
                                      .detail = info};
        return true;
    }
    return false;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

size_t capture_match(const struct capture *c, const char *pattern,
                     const char ***names)
{
    size_t count = 0, kept = 0;

    *names = NULL;
    for (size_t i = 0; i < c->count; i++) {
        for (size_t j = 0; j < safetensors_count(c->files[i].st); j++) {
            const char *name = safetensors_at(c->files[i].st, j)->name;

            if (fnmatch(pattern, name, 0) != 0)
                continue;
            *names = xrealloc(*names, (count + 1) * sizeof(**names));
            (*names)[count++] = name;
        }
    }
    if (count)
        qsort(*names, count, sizeof(**names), by_text);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || strcmp((*names)[kept - 1], (*names)[i]) != 0)
            (*names)[kept++] = (*names)[i];
    return kept;
}

bool capture_prompt(const struct capture *c, struct buf *out)
{
    bool found = false;

    for (size_t i = c->count; i-- > 0 && !found;) {
        char *dir = path_dir(c->files[i].file->path);
        char *path = path_join(dir, "prompt.txt");
        struct err why = ERR_INIT;

        buf_clear(out);
        found =
            io_exists(path) && io_read_file(path, PROMPT_MAX, out, &why) == 0;
        free(path);
        free(dir);
    }
    return found;
}

static int64_t size_of(const struct open_file *o)
{
    struct err why = ERR_INIT;
    int64_t size = -1;
    int fd = io_open(o->file->path, &size, &why);

    if (fd < 0)
        return -1;
    close(fd);
    return size;
}

static bool holds_one(const struct open_file *o, const char *const *tensors)
{
    for (; *tensors; tensors++)
        if (safetensors_find(o->st, *tensors))
            return true;
    return false;
}

json_t *capture_same_bytes(const struct capture *a, const struct capture *b,
                           const char *const *tensors, struct err *err)
{
    json_t *out = json_array();

    for (size_t i = 0; i < a->count * b->count; i++) {
        const struct open_file *mine = &a->files[i / b->count];
        const struct open_file *theirs = &b->files[i % b->count];
        char first[HASH_SHA256_HEX], second[HASH_SHA256_HEX];
        struct err why = ERR_INIT;
        if (!holds_one(mine, tensors) || !holds_one(theirs, tensors) ||
            size_of(mine) != size_of(theirs))
            continue;
        if (hash_sha256_file(mine->file->path, first, NULL, &why) ||
            hash_sha256_file(theirs->file->path, second, NULL, &why)) {
            if (why.code != ERR_SYSTEM)
                continue; /* its gates tell */
            *err = why;
            json_decref(out);
            return NULL;
        }
        if (strcmp(first, second) == 0)
            json_array_append_new(out, json_pack("{s:s, s:s, s:s}", "reference",
                                                 mine->file->role, "candidate",
                                                 theirs->file->role, "sha256",
                                                 first));
    }
    return out;
}

const char *capture_trouble(const struct capture *c)
{
    return c->trouble;
}

const char *capture_remark(const struct capture *c)
{
    return c->remark;
}
