/* A directory that appears whole or not at all. */
#include "base/publish.h"

#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static void release(struct publish *p)
{
    if (p->lock >= 0)
        close(p->lock);
    free(p->final);
    free(p->part);
    *p = (struct publish)PUBLISH_INIT;
}

/* Locks the folder that `part` names now; 1 when it was renamed or removed
 * between open and lock, so that the caller tries again. */
static int lock_folder(struct publish *p, struct err *err)
{
    struct stat held, there;

    p->lock = open(p->part, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (p->lock < 0)
        return errno == ENOENT ? 1 : err_write(err, "%s", p->part);
    if (flock(p->lock, LOCK_EX | LOCK_NB))
        return errno == EWOULDBLOCK
                   ? err_set(err, ERR_EXISTS,
                             "%s: another process is writing it", p->final)
                   : err_write(err, "%s: lock", p->part);
    if (fstat(p->lock, &held) || lstat(p->part, &there) ||
        held.st_ino != there.st_ino || held.st_dev != there.st_dev) {
        close(p->lock);
        p->lock = -1;
        return 1;
    }
    return 0;
}

static int empty_folder(const char *path, struct err *err)
{
    struct io_list list;
    int ret = 0;

    if (io_list(path, &list, err))
        return -1;
    for (size_t i = 0; i < list.count && ret == 0; i++) {
        char *entry = path_join(path, list.names[i]);

        ret = io_remove_tree(entry, err);
        free(entry);
    }
    io_list_release(&list);
    return ret;
}

int publish_begin(struct publish *p, const char *path, struct err *err)
{
    char *clean = xstrdup(path), *dir;
    size_t n = strlen(clean);
    int state = 1;

    while (n > 1 && clean[n - 1] == '/')
        clean[--n] = '\0';
    *p = (struct publish)PUBLISH_INIT;
    dir = path_dir(clean);
    p->final = clean;
    p->part = xasprintf("%s/.%s.part", dir, path_base(clean));
    if (io_check_new(p->final, err) || io_make_dirs(dir, err))
        goto fail;
    while (state == 1) {
        p->took_over = mkdir(p->part, 0755) != 0;
        if (p->took_over && errno != EEXIST) {
            err_write(err, "%s", p->part);
            goto fail;
        }
        state = lock_folder(p, err);
    }
    if (state < 0 || (p->took_over && empty_folder(p->part, err)))
        goto fail;
    free(dir);
    return 0;
fail:
    free(dir);
    release(p);
    return -1;
}

static int sync_one(const char *path, const struct stat *st, int type,
                    struct FTW *ftw)
{
    (void)st;
    (void)ftw;
    if (type != FTW_F && type != FTW_DP)
        return 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return -1;
    int ret = fsync(fd);
    close(fd);
    return ret;
}

static int sync_dir_of(const char *path, struct err *err)
{
    char *dir = path_dir(path);
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int ret = 0;

    if (fd < 0 || fsync(fd))
        ret = err_write(err, "%s: fsync", dir);
    if (fd >= 0)
        close(fd);
    free(dir);
    return ret;
}

int publish_commit(struct publish *p, struct err *err)
{
    if (nftw(p->part, sync_one, 32, FTW_DEPTH | FTW_PHYS)) {
        err_write(err, "%s: fsync", p->final);
        publish_abort(p);
        return -1;
    }
    if (renameat2(AT_FDCWD, p->part, AT_FDCWD, p->final, RENAME_NOREPLACE)) {
        err_write(err, "%s", p->final);
        publish_abort(p);
        return -1;
    }
    int ret = sync_dir_of(p->final, err);
    release(p);
    return ret;
}

void publish_abort(struct publish *p)
{
    struct err ignored = ERR_INIT;

    if (p->part)
        io_remove_tree(p->part, &ignored);
    release(p);
}

int publish_adopt(const char *from, const char *to, struct err *err)
{
    char *dir = path_dir(to);
    int ret = -1;

    if (io_make_dirs(dir, err))
        goto out;
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE)) {
        err_write(err, "%s", to);
        goto out;
    }
    ret = sync_dir_of(to, err) || sync_dir_of(from, err) ? -1 : 0;
out:
    free(dir);
    return ret;
}
