/* Source receipts: recording, reading, writing, comparing. */
#include "receipt/receipt.h"

#include "base/buf.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "receipt/receipt_internal.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MAX_FILES = 1000000, MAX_DEPTH = 64, MAX_THREADS = 8 };

static const char *const ignored[] = {".git", ".cache", ".locks",
                                      "CACHEDIR.TAG"};

void receipt_release(struct receipt *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->count; i++) {
        free(r->files[i].path);
        json_decref(r->files[i].tensor_list);
    }
    free(r->files);
    for (size_t i = 0; i < r->tree_count; i++)
        free(r->trees[i].path);
    free(r->trees);
    free(r->commit);
    free(r->repository);
    free(r->revision);
    *r = (struct receipt)RECEIPT_INIT;
}

int receipt_set_upstream(struct receipt *r, const char *text, struct err *err)
{
    const char *at = strrchr(text, '@');

    if (!at || at == text || !at[1])
        return err_set(err, ERR_USAGE,
                       "--upstream takes REPOSITORY@REVISION, not '%s'", text);
    free(r->repository);
    free(r->revision);
    r->repository = xstrndup(text, (size_t)(at - text));
    r->revision = xstrdup(at + 1);
    return 0;
}

struct receipt_file *receipt_add(struct receipt *r, const char *path)
{
    if ((r->count & (r->count - 1)) == 0)
        r->files = xrealloc(r->files,
                            (r->count ? r->count * 2 : 1) * sizeof(*r->files));
    struct receipt_file *f = &r->files[r->count++];

    *f = (struct receipt_file){xstrdup(path), 0, "", "", "", "", NULL};
    return f;
}

static int by_path(const void *a, const void *b)
{
    const struct receipt_file *x = a, *y = b;

    return strcmp(x->path, y->path);
}

/* What is wrong with a path: it must stay below the pack (relative, no empty
 * part, no "." or "..") and print as one line of UTF-8. */
static const char *path_fault(const char *path)
{
    json_t *text = json_string(path);

    if (!text)
        return "is not UTF-8";
    json_decref(text);
    for (const char *at = path; *at; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            return "has a control character";
    for (;;) {
        size_t n = strcspn(path, "/");

        if (n == 0 || (n == 1 && path[0] == '.') ||
            (n == 2 && path[0] == '.' && path[1] == '.'))
            return "does not stay inside the pack";
        if (!path[n])
            return NULL;
        path += n + 1;
    }
}

int receipt_sort(struct receipt *r, struct err *err)
{
    if (r->count)
        qsort(r->files, r->count, sizeof(*r->files), by_path);
    for (size_t i = 0; i < r->count; i++) {
        const char *path = r->files[i].path, *fault = path_fault(path);

        if (fault)
            return err_set(err, ERR_INPUT, "the path of file %zu %s", i + 1,
                           fault);
        if (i && strcmp(r->files[i - 1].path, path) == 0)
            return err_set(err, ERR_INPUT, "path '%s' is listed twice", path);
        if (!r->files[i].sha256[0] && !r->files[i].git_blob[0])
            return err_set(err, ERR_INPUT, "path '%s' has no digest", path);
    }
    return 0;
}

/* ------------------------------------------------------------ walking */

struct walk {
    struct receipt *r;
    const char *pack;
    char *home; /* real path that links may lead into */
};

/* The folder that a pack's links may point into: the pack, or for a snapshot
 * in a Hub cache (models--X/snapshots/REV) the repository's folder. */
static char *link_home(const char *pack, struct err *err)
{
    char *real = realpath(pack, NULL);

    if (!real) {
        err_sys(err, "%s", pack);
        return NULL;
    }
    char *dir = path_dir(real);
    if (strcmp(path_base(dir), "snapshots") == 0) {
        free(real);
        real = path_dir(dir);
    }
    free(dir);
    return real;
}

static int check_link(const struct walk *w, const char *path, struct err *err)
{
    char *real = realpath(path, NULL);
    size_t n = strlen(w->home);
    int ret = 0;

    if (!real)
        return err_sys(err, "%s", path);
    if (strncmp(real, w->home, n) != 0 || real[n] != '/')
        ret =
            err_set(err, ERR_INPUT, "%s: the link leads out of the pack", path);
    free(real);
    return ret;
}

static int walk_folder(struct walk *w, const char *below, int depth,
                       struct err *err);

static int walk_one(struct walk *w, const char *below, int depth,
                    struct err *err)
{
    char *path = path_join(w->pack, below);
    struct stat st;
    int ret = 0;

    if (lstat(path, &st) || (S_ISLNK(st.st_mode) &&
                             (check_link(w, path, err) || stat(path, &st)))) {
        ret = err_sys(err, "%s", path);
    } else if (S_ISDIR(st.st_mode)) {
        struct stat own;

        if (lstat(path, &own) == 0 && S_ISLNK(own.st_mode))
            ret = err_set(err, ERR_INPUT, "%s: a link to a folder", path);
        else
            ret = walk_folder(w, below, depth + 1, err);
    } else if (!S_ISREG(st.st_mode)) {
        ret = err_set(err, ERR_INPUT, "%s: not a regular file", path);
    } else if (w->r->count == MAX_FILES) {
        ret = err_set(err, ERR_INPUT, "%s: more than %d files", w->pack,
                      (int)MAX_FILES);
    } else if (path_fault(below)) {
        ret =
            err_set(err, ERR_INPUT, "%s: the name %s", path, path_fault(below));
    } else {
        receipt_add(w->r, below);
    }
    free(path);
    return ret;
}

static bool is_ignored(const char *name)
{
    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
        if (strcmp(name, ignored[i]) == 0)
            return true;
    return false;
}

static int walk_folder(struct walk *w, const char *below, int depth,
                       struct err *err)
{
    struct io_list list;
    int ret = 0;

    if (depth > MAX_DEPTH)
        return err_set(err, ERR_INPUT, "%s: nested deeper than %d", w->pack,
                       (int)MAX_DEPTH);
    char *dir = below[0] ? path_join(w->pack, below) : xstrdup(w->pack);
    ret = io_list(dir, &list, err);
    free(dir);
    if (ret)
        return -1;
    for (size_t i = 0; i < list.count && ret == 0; i++) {
        if (!below[0] && is_ignored(list.names[i]))
            continue;
        char *path = below[0] ? xasprintf("%s/%s", below, list.names[i])
                              : xstrdup(list.names[i]);
        ret = walk_one(w, path, depth, err);
        free(path);
    }
    io_list_release(&list);
    return ret;
}

static int walk(struct receipt *r, const char *pack, struct err *err)
{
    struct walk w = {r, pack, NULL};
    int ret = -1;

    if (!io_is_dir(pack))
        return io_exists(pack)
                   ? err_set(err, ERR_INPUT, "%s: not a directory", pack)
                   : err_set(err, ERR_INPUT, "%s: no such directory", pack);
    w.home = link_home(pack, err);
    if (w.home)
        ret = walk_folder(&w, "", 0, err);
    free(w.home);
    if (ret == 0 && r->count)
        qsort(r->files, r->count, sizeof(*r->files), by_path);
    return ret;
}

/* ------------------------------------------------------------ hashing */

static const char pointer_head[] = "version https://git-lfs.github.com/spec/v1";

/* Refuses a Git LFS pointer in a file's place. */
static int check_pointer(const char *path, int64_t size, struct err *err)
{
    struct buf text = BUF_INIT;
    int ret = 0;

    if (size >= 1024)
        return 0;
    if (io_read_file(path, 1024, &text, err))
        ret = -1;
    else if (text.len >= sizeof(pointer_head) - 1 &&
             memcmp(text.data, pointer_head, sizeof(pointer_head) - 1) == 0)
        ret = err_set(err, ERR_INPUT, "%s: LFS pointer, not the file", path);
    buf_release(&text);
    return ret;
}

struct job {
    struct receipt *r;
    const struct receipt *listed; /* NULL: there is none */
    struct receipt_cache *cache;  /* or NULL; under the mutex */
    const char *pack;
    atomic_size_t next;
    pthread_mutex_t mutex;
    size_t failed; /* smallest index that failed; its reason is in err */
    struct err *err;
};

/* The blob id and size of the LFS pointer to this content. */
static void pointer_of(const struct receipt_file *f, enum hash_kind hash,
                       char blob[HASH_GIT_HEX], int64_t *size)
{
    char *text = xasprintf("%s\noid sha256:%s\nsize %lld\n", pointer_head,
                           f->sha256, (long long)f->size);

    *size = (int64_t)strlen(text);
    hash_git(hash, "blob", text, *size > 0 ? (size_t)*size : 0, blob);
    free(text);
}

/* Must the content's own blob id be known?  Not where the listed id is that of
 * the pointer to the listed content, which its SHA-256 decides. */
static bool needs_blob(const struct job *j, const char *path)
{
    struct receipt_file key = {.path = (char *)path};
    const struct receipt_file *f =
        j->listed && j->listed->count
            ? bsearch(&key, j->listed->files, j->listed->count, sizeof(key),
                      by_path)
            : NULL;
    char pointer[HASH_GIT_HEX];
    int64_t size;

    if (!f)
        return true;
    if (!f->git_blob[0])
        return false;
    if (!f->sha256[0])
        return true;
    pointer_of(f, receipt_hash(j->listed), pointer, &size);
    return strcmp(pointer, f->git_blob) != 0;
}

/* One file's digests, from the cache or from its bytes. */
static int hash_one(struct job *j, const char *path, struct receipt_file *f,
                    struct err *err)
{
    enum hash_kind hash = j->listed ? receipt_hash(j->listed) : HASH_SHA1;
    bool is_wanted = needs_blob(j, f->path), found = false;
    char *real = j->cache ? realpath(path, NULL) : NULL;
    struct stat before, after;
    struct timespec now;

    if (real && stat(real, &before) == 0 && !j->cache->full) {
        pthread_mutex_lock(&j->mutex);
        found = receipt_cache_find(j->cache, real, &before, is_wanted, hash, f);
        if (found) {
            receipt_cache_keep(j->cache, real);
            j->cache->skipped++;
        }
        pthread_mutex_unlock(&j->mutex);
    }
    clock_gettime(CLOCK_REALTIME, &now);
    int ret = found ? 0
                    : hash_file(path, hash, f->sha256,
                                is_wanted ? f->git_blob : NULL, &f->size, err);
    /* changed under our hands: not worth remembering */
    if (ret == 0 && !found && real && stat(real, &after) == 0 &&
        memcmp(&before.st_ctim, &after.st_ctim, sizeof(after.st_ctim)) == 0) {
        pthread_mutex_lock(&j->mutex);
        receipt_cache_add(j->cache, real, &before,
                          (int64_t)now.tv_sec * 1000000000 + now.tv_nsec, f);
        pthread_mutex_unlock(&j->mutex);
    }
    free(real);
    return ret;
}

static void *hash_some(void *arg)
{
    struct job *j = arg;

    for (;;) {
        size_t i = atomic_fetch_add(&j->next, 1);

        if (i >= j->r->count)
            return NULL;
        struct receipt_file *f = &j->r->files[i];
        struct err err = ERR_INIT;
        char *path = path_join(j->pack, f->path);

        if (hash_one(j, path, f, &err) || check_pointer(path, f->size, &err)) {
            pthread_mutex_lock(&j->mutex);
            if (i < j->failed) {
                j->failed = i;
                *j->err = err;
            }
            pthread_mutex_unlock(&j->mutex);
        }
        free(path);
    }
}

/* Files side by side; the error told is that of the first path. */
static int hash_files(struct receipt *r, const struct receipt *listed,
                      struct receipt_cache *cache, const char *pack,
                      struct err *err)
{
    struct job j = {.r = r,
                    .listed = listed,
                    .cache = cache,
                    .pack = pack,
                    .failed = SIZE_MAX,
                    .err = err};
    pthread_t threads[MAX_THREADS];
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    size_t want = cpus < 1             ? 1
                  : cpus > MAX_THREADS ? MAX_THREADS
                                       : (size_t)cpus;
    size_t n = 0;

    pthread_mutex_init(&j.mutex, NULL);
    while (n + 1 < want && n + 1 < r->count &&
           pthread_create(&threads[n], NULL, hash_some, &j) == 0)
        n++;
    hash_some(&j);
    for (size_t i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&j.mutex);
    return j.failed == SIZE_MAX ? 0 : -1;
}

int receipt_record(struct receipt *r, const char *pack, struct err *err)
{
    r->strength = "recorded";
    if (walk(r, pack, err))
        return -1;
    if (r->count == 0)
        return err_set(err, ERR_INPUT, "%s: no files", pack);
    return hash_files(r, NULL, NULL, pack, err);
}

/* ----------------------------------------------------- reading, writing */

int receipt_set_hex(char *out, size_t cap, const char *text, struct err *err)
{
    if (strlen(text) != cap - 1)
        return err_set(err, ERR_INPUT, "'%s' is not %zu hex digits", text,
                       cap - 1);
    for (size_t i = 0; i < cap; i++) {
        char c = text[i];

        if (c >= 'A' && c <= 'F')
            c = (char)(c - 'A' + 'a');
        if (c && !((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
            return err_set(err, ERR_INPUT, "'%s' is not hex", text);
        out[i] = c;
    }
    return 0;
}

int receipt_set_id(char out[HASH_GIT_HEX], const char *text, struct err *err)
{
    return receipt_set_hex(out, strlen(text) == 64 ? 65 : 41, text, err);
}

static int receipt_read_id(const json_t *entry, const char *key,
                           char out[HASH_GIT_HEX], struct err *err)
{
    const char *text;

    if (!json_has(entry, key))
        return 0;
    return json_get_str(entry, key, &text, err) ||
                   receipt_set_id(out, text, err)
               ? -1
               : 0;
}

int receipt_read_digest(const json_t *entry, const char *key, char *out,
                        size_t cap, struct err *err)
{
    const char *text;

    if (!json_has(entry, key))
        return 0;
    return json_get_str(entry, key, &text, err) ||
                   receipt_set_hex(out, cap, text, err)
               ? -1
               : 0;
}

static int read_entry(struct receipt *r, const json_t *entry, struct err *err)
{
    const char *path;
    int64_t size;

    if (json_get_str(entry, "path", &path, err))
        return -1;
    struct receipt_file *f = receipt_add(r, path);
    if (json_get_int(entry, "size", &size, err) ||
        receipt_read_digest(entry, "sha256", f->sha256, sizeof(f->sha256),
                            err) ||
        receipt_read_id(entry, "git_blob", f->git_blob, err) ||
        receipt_read_digest(entry, "tensors_sha256", f->tensors,
                            sizeof(f->tensors), err))
        return err_in(err, "'%s'", path);
    if (size < 0)
        return err_set(err, ERR_INPUT, "'%s': a negative size", path);
    f->size = size;
    if (json_has(entry, "tensors")) {
        json_t *list;

        if (json_get_array(entry, "tensors", &list, err))
            return err_in(err, "'%s'", path);
        f->tensor_list = json_incref(list);
    }
    if (json_has(entry, "mode")) {
        const char *mode;

        if (json_get_str(entry, "mode", &mode, err))
            return err_in(err, "'%s'", path);
        if (strcmp(mode, "100644") != 0 && strcmp(mode, "100755") != 0)
            return err_set(err, ERR_INPUT, "'%s': mode '%s'", path, mode);
        memcpy(f->mode, mode, sizeof(f->mode));
    }
    return 0;
}

static int read_trees(struct receipt *r, const json_t *root, struct err *err)
{
    const char *path, *text;
    char id[HASH_GIT_HEX];
    json_t *list, *entry;
    size_t i;

    if (json_has(root, "trees")) {
        if (json_get_array(root, "trees", &list, err))
            return -1;
        json_array_foreach(list, i, entry)
        {
            if (json_get_str(entry, "path", &path, err) ||
                json_get_str(entry, "id", &text, err) ||
                receipt_set_id(id, text, err))
                return err_in(err, "trees[%zu]", i);
            receipt_add_tree(r, path, id);
        }
    }
    if (json_has(root, "commit")) {
        if (json_get_str(root, "commit", &text, err))
            return -1;
        r->commit = xstrdup(text);
    }
    return 0;
}

static int read_root(struct receipt *r, const json_t *root, struct err *err)
{
    const char *text;
    json_t *files, *upstream, *entry;
    size_t i;

    if (json_get_str(root, "format", &text, err))
        return -1;
    if (strcmp(text, "assay-receipt-1") != 0)
        return err_set(err, ERR_UNSUPPORTED, "format '%s'", text);
    if (json_has(root, "strength")) {
        if (json_get_str(root, "strength", &text, err))
            return -1;
        static const char *const known[] = {"recorded", "listing", "tree",
                                            "commit"};
        r->strength = NULL;
        for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
            if (strcmp(text, known[i]) == 0)
                r->strength = known[i];
        if (!r->strength) {
            r->strength = "recorded";
            return err_set(err, ERR_UNSUPPORTED, "strength '%s'", text);
        }
    }
    if (json_has(root, "upstream")) {
        if (json_get_object(root, "upstream", &upstream, err) ||
            json_get_str(upstream, "repository", &text, err))
            return -1;
        r->repository = xstrdup(text);
        if (json_get_str(upstream, "revision", &text, err))
            return -1;
        r->revision = xstrdup(text);
    }
    if (json_get_array(root, "files", &files, err))
        return -1;
    json_array_foreach(files, i, entry)
    {
        if (read_entry(r, entry, err))
            return err_in(err, "files[%zu]", i);
    }
    if (r->count == 0)
        return err_set(err, ERR_INPUT, "lists no files");
    return receipt_sort(r, err) || read_trees(r, root, err) ||
                   receipt_check_trees(r, false, err)
               ? -1
               : 0;
}

int receipt_read(struct receipt *r, const char *path, struct err *err)
{
    json_t *root = json_read_file(path, err);

    if (!root)
        return -1;
    int ret = read_root(r, root, err);
    if (ret)
        err_in(err, "%s", path);
    json_decref(root);
    return ret;
}

json_t *receipt_file_json(const struct receipt_file *f)
{
    json_t *o = json_pack("{s:I, s:s?, s:s?}", "size", (json_int_t)f->size,
                          "sha256", f->sha256[0] ? f->sha256 : NULL, "git_blob",
                          f->git_blob[0] ? f->git_blob : NULL);

    if (f->tensors[0])
        json_object_set_new(o, "tensors_sha256", json_string(f->tensors));
    return o;
}

json_t *receipt_json(const struct receipt *r)
{
    json_t *root = json_object(), *files = json_array();

    json_object_set_new(root, "format", json_string("assay-receipt-1"));
    json_object_set_new(root, "strength", json_string(r->strength));
    json_object_set_new(root, "upstream",
                        r->repository
                            ? json_pack("{s:s, s:s}", "repository",
                                        r->repository, "revision", r->revision)
                            : json_null());
    if (r->tree_count) {
        json_t *trees = json_array();

        for (size_t i = 0; i < r->tree_count; i++)
            json_array_append_new(trees, json_pack("{s:s, s:s}", "path",
                                                   r->trees[i].path, "id",
                                                   r->trees[i].id));
        json_object_set_new(root, "trees", trees);
    }
    if (r->commit)
        json_object_set_new(root, "commit", json_string(r->commit));
    for (size_t i = 0; i < r->count; i++) {
        json_t *entry = json_object(), *rest = receipt_file_json(&r->files[i]);

        json_object_set_new(entry, "path", json_string(r->files[i].path));
        json_object_update(entry, rest);
        json_decref(rest);
        if (r->files[i].mode[0])
            json_object_set_new(entry, "mode", json_string(r->files[i].mode));
        if (r->files[i].tensor_list)
            json_object_set(entry, "tensors", r->files[i].tensor_list);
        json_array_append_new(files, entry);
    }
    json_object_set_new(root, "files", files);
    return root;
}

/* ----------------------------------------------------------- comparing */

const char *receipt_state_name(enum receipt_state state)
{
    static const char *const names[] = {"same", "differs", "missing", "extra"};

    return names[state];
}

/* Is it the listed content?  by_pointer: the listed blob id is that of the LFS
 * pointer to it. */
static bool is_listed(const struct receipt_file *want, enum hash_kind hash,
                      const struct receipt_file *got, bool *by_pointer)
{
    char pointer[HASH_GIT_HEX];
    int64_t pointer_size;
    bool is_sha = !want->sha256[0] || strcmp(want->sha256, got->sha256) == 0;
    bool is_blob =
        !want->git_blob[0] || strcmp(want->git_blob, got->git_blob) == 0;
    bool is_size = want->size == got->size;

    *by_pointer = false;
    if (!is_blob) {
        pointer_of(got, hash, pointer, &pointer_size);
        *by_pointer = strcmp(want->git_blob, pointer) == 0;
        is_blob = *by_pointer;
        is_size |= *by_pointer && want->size == pointer_size;
    }
    return is_sha && is_blob && is_size;
}

bool receipt_is_same(const struct receipt_file *listed, enum hash_kind hash,
                     const struct receipt_file *found)
{
    bool by_pointer;

    return is_listed(listed, hash, found, &by_pointer);
}

static void compare_one(struct receipt_row *row, enum hash_kind hash)
{
    row->state = is_listed(&row->listed, hash, &row->found, &row->by_pointer)
                     ? RECEIPT_SAME
                     : RECEIPT_DIFFERS;
}

void receipt_compare(const struct receipt *r, struct receipt *disk,
                     struct receipt_report *out)
{
    size_t i = 0, j = 0;

    *out = (struct receipt_report){.disk = *disk};
    *disk = (struct receipt)RECEIPT_INIT;
    out->rows = xcalloc(r->count + out->disk.count + 1, sizeof(*out->rows));
    while (i < r->count || j < out->disk.count) {
        struct receipt_row *row = &out->rows[out->count++];
        int order = i == r->count ? 1
                    : j == out->disk.count
                        ? -1
                        : strcmp(r->files[i].path, out->disk.files[j].path);

        if (order <= 0)
            row->listed = r->files[i++];
        if (order >= 0)
            row->found = out->disk.files[j++];
        row->state = order < 0 ? RECEIPT_MISSING : RECEIPT_EXTRA;
        if (order == 0)
            compare_one(row, receipt_hash(r));
        out->same += row->state == RECEIPT_SAME;
    }
}

int receipt_verify(const struct receipt *r, const char *pack,
                   struct receipt_report *out, struct err *err)
{
    return receipt_verify_cached(r, pack, NULL, out, err);
}

int receipt_verify_cached(const struct receipt *r, const char *pack,
                          struct receipt_cache *cache,
                          struct receipt_report *out, struct err *err)
{
    struct receipt disk = RECEIPT_INIT;

    *out = (struct receipt_report){.disk = RECEIPT_INIT};
    if (walk(&disk, pack, err) || hash_files(&disk, r, cache, pack, err)) {
        receipt_release(&disk);
        return -1;
    }
    receipt_compare(r, &disk, out);
    return 0;
}

void receipt_report_release(struct receipt_report *report)
{
    free(report->rows);
    receipt_release(&report->disk);
    *report = (struct receipt_report){.disk = RECEIPT_INIT};
}
