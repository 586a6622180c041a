/*
 * What was hashed before: {"format": "assay-cache-1", "files": [{"path",
 * "device", "inode", "size", "changed", "modified", "recorded",
 * "sha256", "git_blob"}]}, times in nanoseconds since 1970.
 */
#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "receipt/receipt_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int64_t nanoseconds(const struct timespec *t)
{
    return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

void receipt_cache_release(struct receipt_cache *c)
{
    json_decref(c->old);
    json_decref(c->fresh);
    *c = (struct receipt_cache)RECEIPT_CACHE_INIT;
}

int receipt_cache_open(struct receipt_cache *c, const char *path,
                       struct err *err)
{
    json_t *root = NULL, *files, *entry;
    const char *format, *name;
    size_t i;
    int ret = -1;

    c->path = path;
    c->old = json_object();
    c->fresh = json_object();
    if (!io_exists(path))
        return 0;
    root = json_read_file(path, err);
    if (!root || json_get_str(root, "format", &format, err))
        goto out;
    if (strcmp(format, "assay-cache-1") != 0) {
        err_set(err, ERR_UNSUPPORTED, "format '%s'", format);
        goto out;
    }
    if (json_get_array(root, "files", &files, err))
        goto out;
    json_array_foreach(files, i, entry)
    {
        if (json_get_str(entry, "path", &name, err))
            goto out;
        json_object_set(c->old, name, entry);
    }
    ret = 0;
out:
    json_decref(root);
    return ret ? err_in(err, "%s", path) : 0;
}

static int64_t number(const json_t *entry, const char *key)
{
    return json_integer_value(json_object_get(entry, key));
}

/* How long a second change could hide behind the same time: a tick of the
 * clock, or, where times are whole seconds, the two of FAT. */
static int64_t tick(const struct stat *st)
{
    return st->st_ctim.tv_nsec == 0 && st->st_mtim.tv_nsec == 0 ? 2000000000
                                                                : 0;
}

/* Unchanged since it was hashed, and older than that. */
static bool is_unchanged(const json_t *entry, const struct stat *st)
{
    int64_t recorded = number(entry, "recorded");
    int64_t changed = nanoseconds(&st->st_ctim);
    int64_t modified = nanoseconds(&st->st_mtim);

    return number(entry, "device") == (int64_t)st->st_dev &&
           number(entry, "inode") == (int64_t)st->st_ino &&
           number(entry, "size") == (int64_t)st->st_size &&
           number(entry, "changed") == changed &&
           number(entry, "modified") == modified &&
           changed + tick(st) < recorded && modified + tick(st) < recorded;
}

bool receipt_cache_find(const struct receipt_cache *c, const char *path,
                        const struct stat *st, bool needs_blob,
                        enum hash_kind hash, struct receipt_file *out)
{
    const json_t *entry = json_object_get(c->old, path);
    struct receipt_file f = *out;
    struct err ignored = ERR_INIT;

    if (!entry || !is_unchanged(entry, st) ||
        receipt_read_digest(entry, "sha256", f.sha256, sizeof(f.sha256),
                            &ignored) ||
        !f.sha256[0])
        return false;
    if (needs_blob &&
        (receipt_read_digest(entry, "git_blob", f.git_blob,
                             hash == HASH_SHA256 ? 65 : 41, &ignored) ||
         !f.git_blob[0]))
        return false;
    f.size = (int64_t)st->st_size;
    *out = f;
    return true;
}

void receipt_cache_keep(struct receipt_cache *c, const char *path)
{
    json_object_set(c->fresh, path, json_object_get(c->old, path));
}

void receipt_cache_add(struct receipt_cache *c, const char *path,
                       const struct stat *st, int64_t recorded,
                       const struct receipt_file *f)
{
    json_object_set_new(
        c->fresh, path,
        json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:s?}", "path",
                  path, "device", (json_int_t)st->st_dev, "inode",
                  (json_int_t)st->st_ino, "size", (json_int_t)st->st_size,
                  "changed", (json_int_t)nanoseconds(&st->st_ctim), "modified",
                  (json_int_t)nanoseconds(&st->st_mtim), "recorded",
                  (json_int_t)recorded, "sha256", f->sha256, "git_blob",
                  f->git_blob[0] ? f->git_blob : NULL));
}

int receipt_cache_save(struct receipt_cache *c, struct err *err)
{
    json_t *files = json_array(), *entry, *root;
    char *part = xasprintf("%s.%ld.new", c->path, (long)getpid());
    const char *name;
    int ret;

    json_object_foreach(c->fresh, name, entry) json_array_append(files, entry);
    root = json_pack("{s:s, s:O}", "format", "assay-cache-1", "files", files);
    ret = json_write_file(root, part, err);
    if (ret == 0 && rename(part, c->path))
        ret = err_write(err, "%s", c->path);
    if (ret)
        unlink(part);
    json_decref(files);
    json_decref(root);
    free(part);
    return ret;
}
