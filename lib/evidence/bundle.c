/*
 * A sealed run as one file.  The tag files come first, so that a reader knows
 * from the manifest which entry must come next: everything else is refused.
 */
#include "evidence/bundle.h"

#include "archive/tar.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/publish.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { STEP = 1 << 20, TAG_CAP = 64 << 20, SLACK = 64 << 20 };
enum { MAX_ENTRIES = 1000000 };

enum { BAGIT, BAG_INFO, MANIFEST, TAG_MANIFEST, SIGNATURE, TAGS };
static const char *const tag_names[TAGS] = {
    "bagit.txt", "bag-info.txt", "manifest-sha256.txt",
    "tagmanifest-sha256.txt", "tagmanifest-sha256.txt.sig"};

void bundle_release(struct bundle *b)
{
    free(b->name);
    free(b->first_other);
    bag_files_release(&b->files);
    bag_files_release(&b->tags);
    *b = (struct bundle){0};
}

/* -------------------------------------------------------------- the plan */

/* Every entry in its order: name from the bag's root, digest of a file. */
struct step {
    char *path;
    const char
        *sha256; /* NULL: a folder, or a file whose digest is not known */
    int64_t size;
    bool is_dir;
};

struct plan {
    struct step *steps;
    size_t count;
};

static struct step *plan_add(struct plan *p, const char *path, size_t len)
{
    if ((p->count & (p->count - 1)) == 0)
        p->steps = xrealloc(p->steps,
                            (p->count ? p->count * 2 : 1) * sizeof(*p->steps));
    p->steps[p->count] = (struct step){xstrndup(path, len), NULL, 0, false};
    return &p->steps[p->count++];
}

static void plan_release(struct plan *p)
{
    for (size_t i = 0; i < p->count; i++)
        free(p->steps[i].path);
    free(p->steps);
    *p = (struct plan){NULL, 0};
}

static int by_path(const void *a, const void *b)
{
    const struct step *x = a, *y = b;

    return strcmp(x->path, y->path);
}

/* Adds the payload, sorted by path, and the folders on the way to it. */
static int plan_payload(struct plan *p, const struct bag_files *files,
                        struct err *err)
{
    size_t first = p->count;
    const char *before = "";

    for (size_t i = 0; i < files->count; i++) {
        const char *path = files->items[i].path;

        for (size_t n = strcspn(path, "/"); path[n];
             n += 1 + strcspn(path + n + 1, "/"))
            if (strncmp(before, path, n) != 0 || before[n] != '/')
                plan_add(p, path, n)->is_dir = true;
        struct step *s = plan_add(p, path, strlen(path));
        s->sha256 = files->items[i].sha256;
        s->size = files->items[i].size;
        before = path;
    }
    if (p->count > MAX_ENTRIES)
        return err_set(err, ERR_INPUT, "more than %d entries",
                       (int)MAX_ENTRIES);
    qsort(p->steps + first, p->count - first, sizeof(*p->steps), by_path);
    for (size_t i = first + 1; i < p->count; i++)
        if (strcmp(p->steps[i - 1].path, p->steps[i].path) == 0)
            return err_set(err, ERR_INPUT, "'%s' is a file and a folder",
                           p->steps[i].path);
    return 0;
}

static char *entry_name(const char *top, const struct step *s)
{
    return xasprintf("%s/%s%s", top, s->path,
                     s->is_dir && s->path[0] ? "/" : "");
}

/* The tar's length as the writer makes it. */
static int tar_size(const struct plan *p, const char *top, const char *path,
                    int64_t *size, struct err *err)
{
    struct tar_writer *w = tar_writer_new(-1, path, 0, err);
    int ret = w ? 0 : -1;

    for (size_t i = 0; i < p->count && ret == 0; i++) {
        char *name = entry_name(top, &p->steps[i]);

        ret = tar_writer_entry(w, name, p->steps[i].is_dir, p->steps[i].size, 0,
                               err);
        free(name);
    }
    if (ret == 0)
        ret = tar_writer_end(w, NULL, size, err);
    tar_writer_free(w);
    return ret;
}

/* --------------------------------------------------------------- writing */

/* The value of a line of bag-info.txt, inside text; NULL when there is none. */
static const char *info_value(const struct buf *text, const char *key,
                              size_t *len)
{
    const char *at = text->data, *found = NULL;
    size_t n = strlen(key);

    while (at && *at) {
        size_t line = strcspn(at, "\r\n");

        if (line > n && strncmp(at, key, n) == 0) {
            found = at + n;
            *len = line - n;
        }
        at += line;
        at += strspn(at, "\r\n");
    }
    return found;
}

static int entry_time(const struct buf *info, int64_t *out, struct err *err)
{
    const char *text = getenv("SOURCE_DATE_EPOCH");
    size_t len;
    char *end;

    *out = 0;
    if (text) {
        *out = strtoll(text, &end, 10);
        return *end || !*text || *out < 0
                   ? err_set(err, ERR_USAGE,
                             "SOURCE_DATE_EPOCH '%s' is no time", text)
                   : 0;
    }
    text = info_value(info, "Bagging-Date: ", &len);
    if (text) {
        struct tm day = {0};

        if (len != 10 || strptime(text, "%Y-%m-%d", &day) != text + 10)
            return err_set(err, ERR_INPUT, "bag-info.txt: no Bagging-Date");
        *out = (int64_t)timegm(&day);
    }
    return 0;
}

/* One file into the tar; its digest and size must be those planned. */
static int put_file(struct tar_writer *w, const char *path,
                    const struct step *s, char *block, struct err *err)
{
    struct hash *hash = NULL;
    char sha256[HASH_SHA256_HEX];
    int64_t size;
    int ret = -1;
    int fd = io_open(path, &size, err);

    if (fd < 0)
        return -1;
    hash = hash_new(HASH_SHA256);
    if (size != s->size) {
        err_set(err, ERR_INPUT, "%s: changed while it was read", path);
        goto out;
    }
    for (int64_t at = 0; at < size; at += STEP) {
        size_t n = size - at < STEP ? (size_t)(size - at) : STEP;

        if (io_pread(fd, path, block, n, at, err) ||
            tar_writer_data(w, block, n, err))
            goto out;
        hash_add(hash, block, n);
    }
    hash_hex(hash, sha256);
    if (s->sha256 && strcmp(sha256, s->sha256) != 0)
        err_set(err, ERR_INPUT, "%s: changed while it was read", path);
    else
        ret = 0;
out:
    hash_free(hash);
    close(fd);
    return ret;
}

static int put_all(struct tar_writer *w, const struct plan *p, const char *run,
                   const char *top, int64_t mtime, struct err *err)
{
    char *block = xmalloc(STEP);
    int ret = 0;

    for (size_t i = 0; i < p->count && ret == 0; i++) {
        const struct step *s = &p->steps[i];
        char *name = entry_name(top, s), *path = path_join(run, s->path);

        ret = tar_writer_entry(w, name, s->is_dir, s->size, mtime, err);
        if (ret == 0 && !s->is_dir)
            ret = put_file(w, path, s, block, err);
        free(path);
        free(name);
    }
    free(block);
    return ret;
}

static int write_bundle(const struct plan *p, const char *run, const char *top,
                        const char *out, int64_t mtime,
                        char sha256[HASH_SHA256_HEX], struct err *err)
{
    char *dir = path_dir(out);
    char *part =
        xasprintf("%s/.%s.%ld.part", dir, path_base(out), (long)getpid());
    struct tar_writer *w = NULL;
    int64_t size;
    int ret = -1, fd = -1;

    if (tar_size(p, top, out, &size, err) || io_make_dirs(dir, err))
        goto out;
    if (io_exists(out)) {
        err_set(err, ERR_EXISTS, "%s: is there already", out);
        goto out;
    }
    fd =
        open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0) {
        err_sys(err, "%s", part);
        goto out;
    }
    w = tar_writer_new(fd, out, size, err);
    if (!w || put_all(w, p, run, top, mtime, err) ||
        tar_writer_end(w, sha256, NULL, err))
        goto out;
    if (fsync(fd))
        err_sys(err, "%s: fsync", out);
    else if (renameat2(AT_FDCWD, part, AT_FDCWD, out, RENAME_NOREPLACE))
        err_sys(err, "%s", out);
    else
        ret = 0;
out:
    tar_writer_free(w);
    if (fd >= 0) {
        close(fd);
        if (ret)
            unlink(part);
    }
    free(part);
    free(dir);
    return ret;
}

/* The tag files' steps, with their sizes. */
static int plan_tags(struct plan *p, const char *run, struct err *err)
{
    plan_add(p, "", 0)->is_dir = true;
    for (int i = 0; i < TAGS; i++) {
        char *path = path_join(run, tag_names[i]);
        struct stat st;
        int found = lstat(path, &st);

        if (found == 0 && st.st_size > TAG_CAP)
            err_set(err, ERR_INPUT, "%s: longer than %d bytes", path,
                    (int)TAG_CAP);
        else if (found && (i != SIGNATURE || errno != ENOENT))
            err_sys(err, "%s", path);
        else if (found == 0)
            plan_add(p, tag_names[i], strlen(tag_names[i]))->size = st.st_size;
        free(path);
        if (err->code)
            return -1;
    }
    return 0;
}

int bundle_write(const char *run, const char *out, char sha256[HASH_SHA256_HEX],
                 struct err *err)
{
    struct bag_files files = BAG_FILES_INIT;
    struct plan plan = {NULL, 0};
    struct buf info = BUF_INIT;
    json_t *faults = json_array();
    char *real = realpath(run, NULL),
         *info_path = path_join(run, "bag-info.txt");
    int64_t mtime;
    int ret = -1;

    if (!real) {
        err_sys(err, "%s", run);
        goto out;
    }
    if (path_check_name(path_base(real), err) ||
        bag_check(run, &files, faults, err))
        goto out;
    if (json_array_size(faults)) {
        err_set(err, ERR_INPUT, "%s: not as it was sealed: %s", run,
                json_string_value(json_array_get(faults, 0)));
        goto out;
    }
    if (io_read_file(info_path, TAG_CAP, &info, err) ||
        entry_time(&info, &mtime, err) || plan_tags(&plan, run, err) ||
        plan_payload(&plan, &files, err))
        goto out;
    ret = write_bundle(&plan, run, path_base(real), out, mtime, sha256, err);
out:
    plan_release(&plan);
    buf_release(&info);
    bag_files_release(&files);
    json_decref(faults);
    free(info_path);
    free(real);
    return ret;
}

/* --------------------------------------------------------------- reading */

struct reading {
    struct tar_reader *tar;
    const struct bundle_visitor *visitor;
    struct bundle *out;
    struct plan plan;
    struct bag_files listed;
    struct tar_entry entry; /* at hand */
    int64_t mtime, limit;
    char *block;
    size_t entries;
};

/* Steps to the next entry: 1, 0 at the end, -1. */
static int next(struct reading *r, struct err *err)
{
    int state = tar_reader_next(r->tar, &r->entry, err);

    if (state <= 0)
        return state;
    if (r->entries++ == 0)
        r->mtime = r->entry.mtime;
    if (r->entry.mtime != r->mtime)
        return err_set(err, ERR_INPUT, "entry %zu has a time of its own",
                       r->entries);
    return 1;
}

/* Is the entry at hand the one of that name and kind? */
static bool is_at(const struct reading *r, const char *path, bool is_dir)
{
    size_t n = strlen(r->out->name);
    const char *name = r->entry.name;
    size_t len = strlen(path);

    return r->entry.is_dir == is_dir && strncmp(name, r->out->name, n) == 0 &&
           name[n] == '/' && strncmp(name + n + 1, path, len) == 0 &&
           strcmp(name + n + 1 + len, is_dir && len ? "/" : "") == 0;
}

/* The file at hand: hashed, given to the visitor, kept in `text` if wanted. */
static int take_file(struct reading *r, const char *path, struct buf *text,
                     char sha256[HASH_SHA256_HEX], struct err *err)
{
    const struct bundle_visitor *v = r->visitor;
    struct hash *hash = hash_new(HASH_SHA256);
    int64_t n = -1;

    if (v && v->begin && v->begin(v->context, path, false, r->entry.size, err))
        goto out;
    while ((n = tar_reader_data(r->tar, r->block, STEP, err)) > 0) {
        hash_add(hash, r->block, (size_t)n);
        if (text)
            buf_add(text, r->block, (size_t)n);
        if (v && v->data && v->data(v->context, r->block, (size_t)n, err)) {
            n = -1;
            goto out;
        }
    }
    if (n == 0 && v && v->end)
        n = v->end(v->context, err);
    hash_hex(hash, sha256);
out:
    hash_free(hash);
    return n == 0 ? 0 : -1;
}

static int take_folder(struct reading *r, const char *path, struct err *err)
{
    const struct bundle_visitor *v = r->visitor;

    return v && v->begin ? v->begin(v->context, path, true, 0, err) : 0;
}

static int take_top(struct reading *r, struct err *err)
{
    int state = next(r, err);
    size_t n;

    if (state <= 0)
        return state < 0 ? -1 : err_set(err, ERR_INPUT, "holds nothing");
    n = strlen(r->entry.name);
    if (!r->entry.is_dir || n < 2 || r->entry.name[n - 1] != '/')
        return err_set(err, ERR_INPUT, "the first entry is no folder");
    r->out->name = xstrndup(r->entry.name, n - 1);
    if (path_check_name(r->out->name, err))
        return -1;
    plan_add(&r->plan, "", 0)->is_dir = true;
    return take_folder(r, "", err);
}

/* Payload-Oxum "BYTES.FILES" sets the limit when none was given. */
static int set_limit(struct reading *r, const struct buf *info, struct err *err)
{
    size_t len;
    const char *text = info_value(info, "Payload-Oxum: ", &len);
    char *end;
    long long bytes = text ? strtoll(text, &end, 10) : -1;

    if (bytes < 0 || bytes > INT64_MAX - SLACK || *end != '.')
        return err_set(err, ERR_INPUT, "bag-info.txt: no Payload-Oxum");
    tar_reader_limit(r->tar, r->limit ? r->limit : bytes + SLACK);
    return 0;
}

static int take_manifest(struct reading *r, struct buf *text, struct err *err)
{
    json_t *faults = json_array();
    struct bag_files *listed = &r->listed;
    int ret = 0;

    bag_manifest_parse(text->data, text->len, tag_names[MANIFEST], listed,
                       faults);
    for (size_t i = 0; i < listed->count && ret == 0; i++)
        ret = path_check(listed->items[i].path, err);
    bag_check_folded(listed, faults);
    if (ret == 0 && json_array_size(faults))
        ret = err_set(err, ERR_INPUT, "%s",
                      json_string_value(json_array_get(faults, 0)));
    for (size_t i = 0; i < listed->count && ret == 0; i++)
        if (strncmp(listed->items[i].path, "data/", 5) != 0)
            ret = err_set(err, ERR_INPUT, "%s: '%s' is no payload",
                          tag_names[MANIFEST], listed->items[i].path);
    if (ret == 0 && listed->count == 0)
        ret = err_set(err, ERR_INPUT, "%s: lists nothing", tag_names[MANIFEST]);
    json_decref(faults);
    return ret;
}

static void add_found(struct bag_files *files, const char *path,
                      const char *sha256, int64_t size)
{
    if ((files->count & (files->count - 1)) == 0)
        files->items =
            xrealloc(files->items, (files->count ? files->count * 2 : 1) *
                                       sizeof(*files->items));
    struct bag_file *f = &files->items[files->count++];

    *f = (struct bag_file){xstrdup(path), "", size};
    memcpy(f->sha256, sha256, HASH_SHA256_HEX);
}

/* One tag file.  The entry behind it is at hand afterwards. */
static int take_tag(struct reading *r, int tag, struct err *err)
{
    struct buf text = BUF_INIT;
    char sha256[HASH_SHA256_HEX];
    int ret = -1;

    if (r->entry.size > TAG_CAP) {
        err_set(err, ERR_INPUT, "%s: longer than %d bytes", tag_names[tag],
                (int)TAG_CAP);
        goto out;
    }
    buf_addstr(&text, "");
    plan_add(&r->plan, tag_names[tag], strlen(tag_names[tag]))->size =
        r->entry.size;
    if (take_file(r, tag_names[tag], &text, sha256, err) ||
        (tag == BAG_INFO && set_limit(r, &text, err)) ||
        (tag == MANIFEST && take_manifest(r, &text, err)))
        goto out;
    add_found(&r->out->tags, tag_names[tag], sha256, r->entry.size);
    ret = 0;
out:
    buf_release(&text);
    return ret;
}

static int misplaced(const struct reading *r, const char *want, int state,
                     struct err *err)
{
    if (state < 0)
        return -1;
    if (state == 0)
        return err_set(err, ERR_INPUT, "ends where %s should stand", want);
    /* the name is the bundle's: print it only when it is fit to print */
    return path_is_portable(r->entry.name)
               ? err_set(err, ERR_INPUT, "'%s' stands where %s should",
                         r->entry.name, want)
               : err_set(err, ERR_INPUT,
                         "a name outside the rules stands where %s should",
                         want);
}

static int take_tags(struct reading *r, struct err *err)
{
    int state = 1;

    for (int tag = 0; tag < SIGNATURE; tag++) {
        state = next(r, err);
        if (state <= 0 || !is_at(r, tag_names[tag], false))
            return misplaced(r, tag_names[tag], state, err);
        if (take_tag(r, tag, err))
            return -1;
    }
    state = next(r, err);
    if (state == 1 && is_at(r, tag_names[SIGNATURE], false)) {
        if (take_tag(r, SIGNATURE, err))
            return -1;
        state = next(r, err);
    }
    return state;
}

/* `state` tells whether the first payload entry is at hand. */
static int take_payload(struct reading *r, int state, struct err *err)
{
    struct plan *p = &r->plan;
    size_t first = p->count;

    if (state < 0 || plan_payload(p, &r->listed, err))
        return -1;
    for (size_t i = first; i < p->count; i++) {
        struct step *s = &p->steps[i];
        char sha256[HASH_SHA256_HEX];

        if (state <= 0 || !is_at(r, s->path, s->is_dir))
            return misplaced(r, s->path, state, err);
        if (s->is_dir ? take_folder(r, s->path, err)
                      : take_file(r, s->path, NULL, sha256, err))
            return -1;
        if (!s->is_dir) {
            s->size = r->entry.size;
            add_found(&r->out->files, s->path, sha256, s->size);
            if (strcmp(sha256, s->sha256) != 0 && !r->out->first_other)
                r->out->first_other = xstrdup(s->path);
        }
        state = next(r, err);
    }
    return state == 0 ? 0 : misplaced(r, "the end", state, err);
}

static int read_all(struct reading *r, const char *path, struct err *err)
{
    int64_t canonical;

    if (take_top(r, err) || take_payload(r, take_tags(r, err), err))
        return -1;
    tar_reader_identity(r->tar, r->out->sha256, &r->out->size);
    if (tar_size(&r->plan, r->out->name, path, &canonical, err))
        return -1;
    return r->out->size == canonical
               ? 0
               : err_set(err, ERR_INPUT,
                         "its tar is %lld bytes long, that of these files "
                         "%lld",
                         (long long)r->out->size, (long long)canonical);
}

int bundle_read(const char *path, int64_t limit,
                const struct bundle_visitor *visitor, struct bundle *out,
                struct err *err)
{
    struct reading r = {.visitor = visitor,
                        .out = out,
                        .listed = BAG_FILES_INIT,
                        .limit = limit};
    int ret = -1;

    *out = (struct bundle){0};
    r.tar = tar_reader_open(path, err);
    if (!r.tar)
        return -1;
    if (limit)
        tar_reader_limit(r.tar, limit);
    r.block = xmalloc(STEP);
    ret = read_all(&r, path, err);
    if (ret) {
        if (strncmp(err->text, path, strlen(path)) != 0)
            err_in(err, "%s", path);
        bundle_release(out);
    }
    free(r.block);
    plan_release(&r.plan);
    bag_files_release(&r.listed);
    tar_reader_close(r.tar);
    return ret;
}

/* -------------------------------------------------------------- unpacking */

struct unpack {
    int root, file; /* the folder beneath which all is written; at hand */
    const char *path;
};

/* The folder that holds `path`, opened part by part, never through a link. */
static int open_parent(const struct unpack *u, const char *path,
                       struct err *err)
{
    int at = fcntl(u->root, F_DUPFD_CLOEXEC, 0);

    while (at >= 0) {
        size_t n = strcspn(path, "/");
        char *part;
        int below;

        if (!path[n])
            return at;
        part = xstrndup(path, n);
        below =
            openat(at, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        close(at);
        free(part);
        at = below;
        path += n + 1;
    }
    return err_sys(err, "%s", path);
}

static int unpack_begin(void *context, const char *path, bool is_dir,
                        int64_t size, struct err *err)
{
    struct unpack *u = context;
    int parent, ret = 0;

    (void)size;
    if (!path[0])
        return 0;
    parent = open_parent(u, path, err);
    if (parent < 0)
        return -1;
    if (is_dir)
        ret = mkdirat(parent, path_base(path), 0755);
    else
        u->file =
            openat(parent, path_base(path),
                   O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (ret || (!is_dir && u->file < 0))
        ret = err_sys(err, "%s", path);
    close(parent);
    u->path = path;
    return ret;
}

static int unpack_data(void *context, const void *data, size_t len,
                       struct err *err)
{
    struct unpack *u = context;

    return io_write(u->file, u->path, data, len, err);
}

static int unpack_end(void *context, struct err *err)
{
    struct unpack *u = context;
    int ret = close(u->file) ? err_sys(err, "%s", u->path) : 0;

    u->file = -1;
    return ret;
}

int bundle_spill(const char *path, const char *dir, struct bundle *out,
                 struct err *err)
{
    struct unpack u = {-1, -1, NULL};
    struct bundle_visitor v = {&u, unpack_begin, unpack_data, unpack_end};
    int ret = -1;

    *out = (struct bundle){0};
    u.root = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (u.root < 0)
        return err_sys(err, "%s", dir);
    ret = bundle_read(path, 0, &v, out, err);
    if (u.file >= 0)
        close(u.file);
    close(u.root);
    return ret;
}

static int refuse_other(const struct bundle *b, const char *path,
                        struct err *err)
{
    return b->first_other ? err_set(err, ERR_INPUT,
                                    "%s: %s: its SHA-256 is not the manifest's",
                                    path, b->first_other)
                          : 0;
}

int bundle_extract(const char *path, const char *dir, struct bundle *out,
                   struct err *err)
{
    struct publish p = PUBLISH_INIT;

    if (bundle_read(path, 0, NULL, out, err) || refuse_other(out, path, err))
        return -1;
    bundle_release(out);
    if (publish_begin(&p, dir, err))
        return -1;
    if (bundle_spill(path, p.part, out, err) || refuse_other(out, path, err)) {
        publish_abort(&p);
        return -1;
    }
    return publish_commit(&p, err);
}
