/* Writing a bundle. */
#include "evidence/bundle_internal.h"

#include "archive/tar.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

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
    text = bundle_info(info, "Bagging-Date: ", &len);
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
    for (int64_t at = 0; at < size; at += BUNDLE_STEP) {
        size_t n = size - at < BUNDLE_STEP ? (size_t)(size - at) : BUNDLE_STEP;

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
    char *block = xmalloc(BUNDLE_STEP);
    int ret = 0;

    for (size_t i = 0; i < p->count && ret == 0; i++) {
        const struct step *s = &p->steps[i];
        char *name = plan_name(top, s), *path = path_join(run, s->path);

        ret = tar_writer_entry(w, name, s->is_dir, s->size, mtime, err);
        if (ret == 0 && !s->is_dir)
            ret = put_file(w, path, s, block, err);
        free(path);
        free(name);
    }
    free(block);
    return ret;
}

/* What goes into the file, and its identity. */
struct content {
    const struct plan *plan;
    const char *run, *top, *out;
    int64_t size, mtime;
    char *sha256;
};

static int put_content(int fd, void *ctx, struct err *err)
{
    const struct content *c = ctx;
    struct tar_writer *w = tar_writer_new(fd, c->out, c->size, err);
    int ret = !w || put_all(w, c->plan, c->run, c->top, c->mtime, err) ||
                      tar_writer_end(w, c->sha256, NULL, err)
                  ? -1
                  : 0;

    tar_writer_free(w);
    return ret;
}

static int write_bundle(const struct plan *p, const char *run, const char *top,
                        const char *out, int64_t mtime,
                        char sha256[HASH_SHA256_HEX], struct err *err)
{
    struct content c = {p, run, top, out, 0, mtime, sha256};

    if (plan_tar_size(p, top, out, &c.size, err) || io_check_new(out, err))
        return -1;
    return io_write_by(out, put_content, &c, err);
}

/* One tag file's step, with its size; `is_optional`: it may be missing. */
static int plan_tag(struct plan *p, const char *run, const char *name,
                    bool is_optional, struct err *err)
{
    char *path = path_join(run, name);
    struct stat st;
    int ret = 0;

    if (lstat(path, &st)) {
        if (!is_optional || errno != ENOENT)
            ret = err_sys(err, "%s", path);
    } else if (st.st_size > BUNDLE_TAG_CAP) {
        ret = err_set(err, ERR_INPUT, "%s: longer than %d bytes", path,
                      (int)BUNDLE_TAG_CAP);
    } else {
        plan_add(p, name, strlen(name))->size = st.st_size;
    }
    free(path);
    return ret;
}

static int plan_tags(struct plan *p, const char *run, struct err *err)
{
    plan_add(p, "", 0)->is_dir = true;
    for (int i = 0; i < BAG_TAGS; i++)
        if (plan_tag(p, run, bag_tag_names[i], false, err))
            return -1;
    return plan_tag(p, run, BUNDLE_SIGNATURE, true, err);
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
    if (io_read_file(info_path, BUNDLE_TAG_CAP, &info, err) ||
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
