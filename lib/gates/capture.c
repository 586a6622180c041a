/* One case of a set of captures: its files, read together. */
#include "gates/capture_internal.h"

#include "base/buf.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "hash/hash.h"
#include "safetensors/safetensors.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PROMPT_MAX = 64 << 20 };

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
    const struct one_case *from = capture_set_find(set, name);
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
            char *text = capture_by_role(&why, o->file->path, o->file->role);

            capture_add_remark(&c->trouble, text);
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
    char *text = capture_by_role(&why, o->file->path,
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
