/* Unpacking a bundle. */
#include "evidence/bundle_internal.h"

#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/publish.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
    return err_write(err, "%s", path);
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
        ret = err_write(err, "%s", path);
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
    struct bundle_visitor v = {&u, NULL, unpack_begin, unpack_data, unpack_end};
    int ret = -1;

    *out = (struct bundle){.bag = BAG_INIT};
    u.root = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (u.root < 0)
        return err_write(err, "%s", dir);
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
