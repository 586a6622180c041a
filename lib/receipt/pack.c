/* A pack as it lies on disk: which files there are, and their digests. */
#include "base/buf.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "hash/files.h"
#include "receipt/receipt_internal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MAX_FILES = 1000000, MAX_DEPTH = 64 };

static const char *const ignored[] = {".git", ".cache", ".locks",
                                      "CACHEDIR.TAG"};

/* ------------------------------------------------------------ walking */

struct walk {
    struct receipt *r;
    const struct receipt *listed; /* NULL: there is none */
    const char *pack;
    char *home; /* real path that links may lead into */
};

static const struct receipt_file *find(const struct receipt *r,
                                       const char *path)
{
    struct receipt_file key = {.path = (char *)path};

    return r && r->count
               ? bsearch(&key, r->files, r->count, sizeof(key), receipt_by_path)
               : NULL;
}

/* Is it a link upstream too, whose text is the content? */
static bool is_link_upstream(const struct walk *w, const char *path)
{
    const struct receipt_file *f = find(w->listed, path);

    return f && strcmp(f->mode, "120000") == 0;
}

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

/* Where a link leads, freed by the caller; NULL with err set when that is
 * nowhere, or out of the pack. */
static char *follow(const struct walk *w, const char *path, struct err *err)
{
    char *real = realpath(path, NULL);
    size_t n = strlen(w->home);

    if (!real) {
        err_sys(err, "%s", path);
    } else if (strncmp(real, w->home, n) != 0 || real[n] != '/') {
        err_set(err, ERR_INPUT, "%s: the link leads out of the pack", path);
        free(real);
        real = NULL;
    }
    return real;
}

static bool is_hex(const char *text)
{
    return text[strspn(text, "0123456789abcdef")] == '\0';
}

/* The name of a blob in a Hub cache is the digest of its content. */
static void set_cache_name(const struct walk *w, const char *real,
                           struct receipt_file *f)
{
    const char *name = path_base(real);
    char *blobs = path_join(w->home, "blobs"), *dir = path_dir(real);
    size_t n = strlen(name);

    if (strcmp(blobs, dir) == 0 && (n == 40 || n == 64) && is_hex(name))
        memcpy(f->cache_name, name, n + 1);
    free(blobs);
    free(dir);
}

static int walk_folder(struct walk *w, const char *below, int depth,
                       struct err *err);

static int walk_one(struct walk *w, const char *below, int depth,
                    struct err *err)
{
    char *path = path_join(w->pack, below), *real = NULL;
    struct stat own, st;
    int ret = -1;

    if (lstat(path, &own)) {
        err_sys(err, "%s", path);
        goto out;
    }
    bool is_link = S_ISLNK(own.st_mode);
    bool is_content = is_link && is_link_upstream(w, below);

    st = own;
    if (is_link && !is_content) {
        real = follow(w, path, err);
        if (!real)
            goto out;
        if (stat(path, &st)) {
            err_sys(err, "%s", path);
            goto out;
        }
    }
    if (S_ISDIR(st.st_mode)) {
        ret = is_link ? err_set(err, ERR_INPUT, "%s: a link to a folder", path)
                      : walk_folder(w, below, depth + 1, err);
    } else if (!S_ISREG(st.st_mode) && !is_content) {
        err_set(err, ERR_INPUT, "%s: not a regular file", path);
    } else if (w->r->count == MAX_FILES) {
        err_set(err, ERR_INPUT, "%s: more than %d files", w->pack,
                (int)MAX_FILES);
    } else if (receipt_path_fault(below)) {
        err_set(err, ERR_INPUT, "%s: the name %s", path,
                receipt_path_fault(below));
    } else {
        struct receipt_file *f = receipt_add(w->r, below);

        f->is_link = is_content;
        if (real)
            set_cache_name(w, real, f);
        ret = 0;
    }
out:
    free(real);
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

static int walk(struct receipt *r, const struct receipt *listed,
                const char *pack, struct err *err)
{
    struct walk w = {r, listed, pack, NULL};
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
        qsort(r->files, r->count, sizeof(*r->files), receipt_by_path);
    return ret;
}

/* ------------------------------------------------------------ hashing */

static const char pointer_head[] = RECEIPT_POINTER_HEAD;

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

/* Must the content's own blob id be known?  Not where the listed id is that of
 * the pointer to the listed content, which its SHA-256 decides. */
static bool needs_blob(const struct receipt *listed,
                       const struct receipt_file *found)
{
    const struct receipt_file *f = find(listed, found->path);
    char pointer[HASH_GIT_HEX];
    int64_t size;

    if (!f || strlen(found->cache_name) == 40)
        return true;
    if (!f->git_blob[0])
        return false;
    if (!f->sha256[0] || f->size < 0)
        return true;
    receipt_pointer(f, receipt_hash(listed), pointer, &size);
    return strcmp(pointer, f->git_blob) != 0;
}

/* The text of a link, which is its content. */
static int hash_link(const char *path, enum hash_kind hash,
                     struct receipt_file *f, struct err *err)
{
    char text[PATH_MAX];
    ssize_t n = readlink(path, text, sizeof(text));

    if (n < 0)
        return err_sys(err, "%s", path);
    f->size = n;
    hash_sha256(text, (size_t)n, f->sha256);
    hash_git(hash, "blob", text, (size_t)n, f->git_blob);
    return 0;
}

/* One file of which the content must be read. */
struct task {
    struct receipt_file *file;
    char *path, *real; /* real: with a cache only */
    struct stat before;
};

struct hashing {
    struct receipt *r;
    const struct receipt *listed; /* NULL: there is none */
    struct receipt_cache *cache;  /* or NULL */
    const char *pack;
    enum hash_kind kind;
    struct task *tasks;
    struct hash_file *files; /* of the tasks */
    size_t count;
};

/* What needs no reading of the content: a link's text, the cache.  Else it
 * becomes a task. */
static int prepare(struct hashing *h, struct receipt_file *f, struct err *err)
{
    struct task t = {.file = f, .path = path_join(h->pack, f->path)};
    bool wants_blob = needs_blob(h->listed, f), is_known = f->is_link;
    int ret = f->is_link ? hash_link(t.path, h->kind, f, err) : 0;

    if (!is_known && h->cache)
        t.real = realpath(t.path, NULL);
    if (t.real && stat(t.real, &t.before) == 0 && !h->cache->full &&
        receipt_cache_find(h->cache, t.real, &t.before, wants_blob, h->kind,
                           f)) {
        receipt_cache_keep(h->cache, t.real);
        h->cache->skipped++;
        is_known = true;
    }
    if (is_known) {
        free(t.real);
        free(t.path);
        return ret;
    }
    h->files[h->count] =
        (struct hash_file){.path = t.path, .wants_blob = wants_blob};
    h->tasks[h->count++] = t;
    return 0;
}

/* What a task found; it is remembered unless it changed under our hands. */
static int settle(struct hashing *h, size_t i, int64_t now, struct err *err)
{
    struct task *t = &h->tasks[i];
    const struct hash_file *found = &h->files[i];
    struct receipt_file *f = t->file;
    struct stat after;

    memcpy(f->sha256, found->sha256, sizeof(f->sha256));
    memcpy(f->git_blob, found->git_blob, sizeof(f->git_blob));
    f->size = found->size;
    if (t->real && stat(t->real, &after) == 0 &&
        memcmp(&t->before.st_ctim, &after.st_ctim, sizeof(after.st_ctim)) == 0)
        receipt_cache_add(h->cache, t->real, &t->before, now, f);
    return check_pointer(t->path, f->size, err);
}

/* Files side by side; the error told is that of the first path. */
static int hash_all(struct receipt *r, const struct receipt *listed,
                    struct receipt_cache *cache, const char *pack,
                    struct err *err)
{
    struct hashing h = {.r = r,
                        .listed = listed,
                        .cache = cache,
                        .pack = pack,
                        .kind = listed ? receipt_hash(listed) : HASH_SHA1};
    struct timespec now;
    int ret = 0;

    h.tasks = xcalloc(r->count + 1, sizeof(*h.tasks));
    h.files = xcalloc(r->count + 1, sizeof(*h.files));
    for (size_t i = 0; i < r->count && ret == 0; i++)
        ret = prepare(&h, &r->files[i], err);
    /* the clock that the system stamps files with: what is written from here
     * on has no earlier time than this one */
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    if (ret == 0)
        ret = hash_files(h.files, h.count, h.kind, err);
    for (size_t i = 0; i < h.count; i++) {
        if (ret == 0)
            ret = settle(&h, i, (int64_t)now.tv_sec * 1000000000 + now.tv_nsec,
                         err);
        free(h.tasks[i].real);
        free(h.tasks[i].path);
    }
    free(h.tasks);
    free(h.files);
    return ret;
}

int receipt_record(struct receipt *r, const char *pack, struct err *err)
{
    r->strength = "recorded";
    if (walk(r, NULL, pack, err))
        return -1;
    if (r->count == 0)
        return err_set(err, ERR_INPUT, "%s: no files", pack);
    if (hash_all(r, NULL, NULL, pack, err))
        return -1;
    for (size_t i = 0; i < r->count; i++) {
        struct receipt_file *f = &r->files[i];

        if (!receipt_has_its_name(f))
            return err_set(err, ERR_INPUT,
                           "%s/%s: in the cache its name is %s, its SHA-256 is "
                           "%s",
                           pack, f->path, f->cache_name, f->sha256);
        f->cache_name[0] = '\0';
    }
    return 0;
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
    if (walk(&disk, r, pack, err) || hash_all(&disk, r, cache, pack, err)) {
        receipt_release(&disk);
        return -1;
    }
    receipt_compare(r, &disk, out);
    return 0;
}
