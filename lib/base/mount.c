/* Files of an archive, looked up by path. */
#include "base/mount.h"

#include "base/bug.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct file {
    char *path;
    char *data; /* or NULL */
    size_t len;
    int fd; /* or -1 */
};

struct mount {
    char *root;
    struct file *files; /* sorted by path once is_sorted */
    size_t count;
    bool is_sorted;
    struct mount *next;
};

static struct mount *mounts;

struct mount *mount_new(const char *root)
{
    struct mount *m = xcalloc(1, sizeof(*m));

    m->root = xstrdup(root);
    m->next = mounts;
    mounts = m;
    return m;
}

static void let_go(struct file *f)
{
    free(f->data);
    f->data = NULL;
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
}

void mount_free(struct mount *m)
{
    if (!m)
        return;
    for (struct mount **at = &mounts; *at; at = &(*at)->next)
        if (*at == m) {
            *at = m->next;
            break;
        }
    for (size_t i = 0; i < m->count; i++) {
        let_go(&m->files[i]);
        free(m->files[i].path);
    }
    free(m->files);
    free(m->root);
    free(m);
}

void mount_declare(struct mount *m, const char *path)
{
    if ((m->count & (m->count - 1)) == 0)
        m->files = xrealloc(m->files,
                            (m->count ? m->count * 2 : 1) * sizeof(*m->files));
    m->files[m->count++] = (struct file){xstrdup(path), NULL, 0, -1};
    m->is_sorted = false;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct file *)a)->path,
                  ((const struct file *)b)->path);
}

/* Index of the first file whose path is not below `path` in order. */
static size_t lower_bound(struct mount *m, const char *path)
{
    size_t low = 0, high = m->count;

    if (!m->is_sorted && m->count)
        qsort(m->files, m->count, sizeof(*m->files), by_path);
    m->is_sorted = true;
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (strcmp(m->files[middle].path, path) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct file *find(struct mount *m, const char *path)
{
    size_t i = lower_bound(m, path);

    return i < m->count && strcmp(m->files[i].path, path) == 0 ? &m->files[i]
                                                               : NULL;
}

void mount_bytes(struct mount *m, const char *path, const void *data,
                 size_t len)
{
    struct file *f = find(m, path);

    BUG_ON(!f);
    let_go(f);
    f->data = xmalloc(len + 1);
    if (len)
        memcpy(f->data, data, len);
    f->len = len;
}

void mount_fd(struct mount *m, const char *path, int fd)
{
    struct file *f = find(m, path);

    BUG_ON(!f);
    let_go(f);
    f->fd = fd;
}

void mount_drop(struct mount *m, const char *path)
{
    struct file *f = find(m, path);

    if (f)
        let_go(f);
}

int mount_spill(struct err *err)
{
    const char *tmp = getenv("TMPDIR");
    char *path;
    int fd;

    if (!tmp || !*tmp)
        tmp = "/tmp";
    fd = open(tmp, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    /* storage that knows no files without a name */
    path = xasprintf("%s/assay-spill.XXXXXX", tmp);
    fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        err_sys(err, "%s", tmp);
    else
        unlink(path);
    free(path);
    return fd;
}

/* The mount that holds `path`, and what of the path lies below its root; "" for
 * the root itself. */
static struct mount *mount_of(const char *path, const char **below)
{
    for (struct mount *m = mounts; m; m = m->next) {
        size_t n = strlen(m->root);

        if (strncmp(path, m->root, n) != 0 || (path[n] && path[n] != '/'))
            continue;
        *below = path[n] ? path + n + 1 : path + n;
        return m;
    }
    return NULL;
}

/* "folder/", "" for the root's. */
static char *prefix_of(const char *folder)
{
    return xasprintf("%s%s", folder, folder[0] ? "/" : "");
}

static bool is_below(const struct mount *m, size_t i, const char *prefix)
{
    return i < m->count &&
           strncmp(m->files[i].path, prefix, strlen(prefix)) == 0;
}

enum mount_kind mount_look(const char *path)
{
    const char *below;
    struct mount *m = mount_of(path, &below);

    if (!m)
        return MOUNT_NONE;
    char *prefix = prefix_of(below);
    bool is_folder = is_below(m, lower_bound(m, prefix), prefix);
    free(prefix);
    if (is_folder || !below[0])
        return MOUNT_FOLDER;
    return find(m, below) ? MOUNT_FILE : MOUNT_NOTHING;
}

/* The bytes as a file of their own, at its start. */
static int file_of(const struct file *f, const char *path, struct err *err)
{
    int fd = memfd_create("assay", MFD_CLOEXEC);

    if (fd < 0)
        return err_sys(err, "%s", path);
    if (io_write(fd, path, f->data, f->len, err) == 0 &&
        lseek(fd, 0, SEEK_SET) == 0)
        return fd;
    close(fd);
    return -1;
}

int mount_open(const char *path, struct err *err)
{
    const char *below;
    struct mount *m = mount_of(path, &below);
    const struct file *f = m ? find(m, below) : NULL;
    char own[64];
    int fd;

    BUG_ON(!f);
    if (f->data)
        return file_of(f, path, err);
    if (f->fd < 0)
        return err_set(err, ERR_INPUT, "%s: was not kept", path);
    /* a descriptor with a place of its own */
    snprintf(own, sizeof(own), "/proc/self/fd/%d", f->fd);
    fd = open(own, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? err_sys(err, "%s", path) : fd;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void mount_list(const char *path, struct io_list *out)
{
    const char *below;
    struct mount *m = mount_of(path, &below);

    BUG_ON(!m);
    *out = (struct io_list){NULL, 0};
    char *prefix = prefix_of(below);
    for (size_t i = lower_bound(m, prefix); is_below(m, i, prefix); i++) {
        const char *name = m->files[i].path + strlen(prefix);
        size_t n = strcspn(name, "/");
        const char *last = out->count ? out->names[out->count - 1] : "";

        /* what lies in one folder stands side by side */
        if (strncmp(last, name, n) == 0 && last[n] == '\0')
            continue;
        out->names =
            xrealloc(out->names, (out->count + 1) * sizeof(*out->names));
        out->names[out->count++] = xstrndup(name, n);
    }
    /* "a-b" comes before "a/c", and "a" before "a-b" */
    if (out->count)
        qsort(out->names, out->count, sizeof(*out->names), by_bytes);
    free(prefix);
}
