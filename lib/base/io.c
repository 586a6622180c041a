/* Files, read and written whole. */
#include "base/io.h"

#include "base/mem.h"
#include "base/mount.h"
#include "base/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_path(const char *path, struct err *err)
{
    enum mount_kind kind = mount_look(path);

    if (kind == MOUNT_FILE)
        return mount_open(path, err);
    int fd = kind == MOUNT_NOTHING
                 ? -1
                 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (kind == MOUNT_NOTHING)
        errno = ENOENT;
    return fd < 0 ? err_sys(err, "%s", path) : fd;
}

int io_open(const char *path, int64_t *size, struct err *err)
{
    struct stat st;
    int fd = open_path(path, err);

    if (fd < 0)
        return -1;
    if (fstat(fd, &st)) {
        err_sys(err, "%s", path);
    } else if (!S_ISREG(st.st_mode)) {
        err_set(err, ERR_INPUT, "%s: not a regular file", path);
    } else {
        *size = st.st_size;
        return fd;
    }
    close(fd);
    return -1;
}

int io_pread(int fd, const char *path, void *dst, size_t len, int64_t offset,
             struct err *err)
{
    char *at = dst;

    while (len > 0) {
        ssize_t n = pread(fd, at, len, offset);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(err, "%s: read", path);
        if (n == 0)
            return err_set(err, ERR_INPUT,
                           "%s: ends %zu bytes early, at offset %lld", path,
                           len, (long long)offset);
        at += n;
        offset += n;
        len -= (size_t)n;
    }
    return 0;
}

static int read_stream(int fd, const char *path, size_t cap, struct buf *out,
                       struct err *err)
{
    size_t start = out->len;

    for (;;) {
        buf_reserve(out, 65536);
        ssize_t n = read(fd, out->data + out->len, 65536);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(err, "%s: read", path);
        if (n == 0)
            break;
        out->len += (size_t)n;
        if (out->len - start > cap)
            return err_set(err, ERR_INPUT, "%s: longer than %zu bytes", path,
                           cap);
    }
    out->data[out->len] = '\0';
    return 0;
}

int io_read_file(const char *path, size_t cap, struct buf *out, struct err *err)
{
    int64_t size;

    if (strcmp(path, "-") == 0)
        return read_stream(STDIN_FILENO, "standard input", cap, out, err);
    int fd = io_open(path, &size, err);
    if (fd < 0)
        return -1;
    int ret;
    if ((uint64_t)size > cap)
        ret = err_set(err, ERR_INPUT, "%s: longer than %zu bytes", path, cap);
    else
        ret = read_stream(fd, path, cap, out, err);
    close(fd);
    return ret;
}

int io_write(int fd, const char *path, const void *data, size_t len,
             struct err *err)
{
    const char *at = data;

    while (len > 0) {
        ssize_t n = write(fd, at, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(err, "%s: write", path);
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

int io_write_by(const char *path, io_writer *put, void *ctx, struct err *err)
{
    char *dir = path_dir(path);
    char *part =
        xasprintf("%s/.%s.%ld.part", dir, path_base(path), (long)getpid());
    int ret = -1, fd = -1;

    if (io_make_dirs(dir, err))
        goto out;
    fd =
        open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0) {
        err_write(err, "%s", part);
        goto out;
    }
    if (put(fd, ctx, err))
        goto out;
    if (fsync(fd)) {
        err_write(err, "%s: fsync", path);
        goto out;
    }
    if (renameat2(AT_FDCWD, part, AT_FDCWD, path, RENAME_NOREPLACE)) {
        err_write(err, "%s", path);
        goto out;
    }
    ret = 0;
out:
    if (fd >= 0)
        close(fd);
    if (ret)
        unlink(part);
    free(part);
    free(dir);
    return ret;
}

struct bytes {
    const char *path;
    const void *data;
    size_t len;
};

static int put_bytes(int fd, void *ctx, struct err *err)
{
    const struct bytes *b = ctx;

    return io_write(fd, b->path, b->data, b->len, err);
}

int io_write_file(const char *path, const void *data, size_t len,
                  struct err *err)
{
    struct bytes b = {path, data, len};

    return io_write_by(path, put_bytes, &b, err);
}

int io_make_dirs(const char *path, struct err *err)
{
    char *copy = xstrdup(path);
    int ret = 0;

    for (char *at = copy + 1; ret == 0; at++) {
        char c = *at;

        if (c != '/' && c != '\0')
            continue;
        *at = '\0';
        if (mkdir(copy, 0755) && errno != EEXIST)
            ret = err_write(err, "%s", copy);
        *at = c;
        if (c == '\0')
            break;
    }
    if (ret == 0 && !io_is_dir(path))
        ret = err_set(err, ERR_INPUT, "%s: not a directory", path);
    free(copy);
    return ret;
}

bool io_exists(const char *path)
{
    enum mount_kind kind = mount_look(path);
    struct stat st;

    return kind == MOUNT_NONE ? lstat(path, &st) == 0 : kind != MOUNT_NOTHING;
}

int io_check_new(const char *path, struct err *err)
{
    return path && io_exists(path)
               ? err_set(err, ERR_EXISTS, "%s: is there already", path)
               : 0;
}

bool io_is_dir(const char *path)
{
    enum mount_kind kind = mount_look(path);
    struct stat st;

    return kind == MOUNT_NONE ? stat(path, &st) == 0 && S_ISDIR(st.st_mode)
                              : kind == MOUNT_FOLDER;
}

bool io_is_same(const char *a, const char *b)
{
    struct stat sa, sb;

    return stat(a, &sa) == 0 && stat(b, &sb) == 0 && sa.st_dev == sb.st_dev &&
           sa.st_ino == sb.st_ino;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int io_list(const char *path, struct io_list *out, struct err *err)
{
    if (mount_look(path) == MOUNT_FOLDER) {
        mount_list(path, out);
        return 0;
    }
    DIR *dir = opendir(path);
    size_t cap = 0;

    *out = (struct io_list){NULL, 0};
    if (!dir)
        return err_sys(err, "%s", path);
    for (;;) {
        errno = 0;
        struct dirent *entry = readdir(dir);

        if (!entry)
            break;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (out->count == cap) {
            cap = cap ? cap * 2 : 16;
            out->names = xrealloc(out->names, cap * sizeof(*out->names));
        }
        out->names[out->count++] = xstrdup(entry->d_name);
    }
    int ret = errno ? err_sys(err, "%s: readdir", path) : 0;
    closedir(dir);
    if (ret)
        io_list_release(out);
    else if (out->count)
        qsort(out->names, out->count, sizeof(*out->names), by_bytes);
    return ret;
}

void io_list_release(struct io_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->names[i]);
    free(list->names);
    *list = (struct io_list){NULL, 0};
}

static int remove_one(const char *path, const struct stat *st, int type,
                      struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

int io_remove_tree(const char *path, struct err *err)
{
    if (nftw(path, remove_one, 32, FTW_DEPTH | FTW_PHYS) && errno != ENOENT)
        return err_sys(err, "%s: remove", path);
    return 0;
}

int io_copy_file(const char *from, const char *to, struct err *err)
{
    int64_t size;
    int in = io_open(from, &size, err), out = -1, ret = -1;
    char *block = NULL;
    enum { STEP = 1 << 20 };

    if (in < 0)
        return -1;
    out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (out < 0) {
        err_write(err, "%s", to);
        goto out;
    }
    block = xmalloc(STEP);
    for (int64_t at = 0; at < size; at += STEP) {
        size_t n = size - at < STEP ? (size_t)(size - at) : STEP;

        if (io_pread(in, from, block, n, at, err) ||
            io_write(out, to, block, n, err))
            goto out;
    }
    if (fsync(out)) {
        err_write(err, "%s: fsync", to);
        goto out;
    }
    ret = 0;
out:
    free(block);
    close(in);
    if (out >= 0)
        close(out);
    return ret;
}
