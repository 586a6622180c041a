/* What an audit keeps of a bundle while it passes. */
#include "view.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "judging.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { SMALL = 64 << 10, MEMORY = 8 << 20 };

/* Reading one. */
struct passing {
    struct view *view;
    char *data; /* BUNDLE/data */
    bool is_drift;
    const struct bag_files *listed;
    size_t next; /* file of the payload that comes next */
    struct judging *judging;
    bool is_judged; /* it was tried to begin */
    /* the file at hand */
    char *name;
    bool is_kept;
    struct buf bytes;
    int fd; /* or -1: in `bytes` */
    size_t in_memory;
};

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool ends(const char *text, const char *with)
{
    size_t n = strlen(text), m = strlen(with);

    return n > m && strcmp(text + n - m, with) == 0;
}

bool view_has_digests_only(const struct bag_files *files)
{
    for (size_t i = 0; i < files->count; i++)
        if (starts(files->items[i].path, "data/reference/") &&
            ends(files->items[i].path, "/digests.json"))
            return true;
    return false;
}

static bool is_wanted(const struct passing *p, const char *path)
{
    static const char *const captures[] = {"data/adjudicator/",
                                           "data/candidate/", "data/export/",
                                           "data/forward/", "data/reference/"};

    if (p->is_drift)
        return strcmp(path, "data/compare/summary.json") == 0;
    if (starts(path, "tagmanifest-") || starts(path, "data/inputs/") ||
        ends(path, ".json"))
        return true;
    for (size_t i = 0; i < sizeof(captures) / sizeof(captures[0]); i++)
        if (starts(path, captures[i]) &&
            (ends(path, ".safetensors") || ends(path, "/prompt.txt")))
            return !view_has_digests_only(p->listed);
    return false;
}

static int pass_listed(void *context, const struct bag_files *files,
                       struct err *err)
{
    struct passing *p = context;

    (void)err;
    p->listed = files;
    for (size_t i = 0; i < files->count; i++)
        mount_declare(p->view->mount, files->items[i].path);
    return 0;
}

/* The first of the reference's files: gates and cases have passed. */
static void begin_judging(struct passing *p)
{
    if (p->is_judged || p->is_drift || view_has_digests_only(p->listed))
        return;
    p->is_judged = true;
    p->judging = judging_begin(p->data, &p->view->why);
}

static int pass_begin(void *context, const char *path, bool is_dir,
                      int64_t size, struct err *err)
{
    struct passing *p = context;

    (void)size;
    (void)err;
    if (is_dir)
        return 0;
    free(p->name);
    p->name = xstrdup(path);
    p->is_kept = is_wanted(p, path);
    buf_clear(&p->bytes);
    if (!strchr(path, '/'))
        mount_declare(p->view->mount, path);
    if (starts(path, "data/reference/"))
        begin_judging(p);
    return 0;
}

static int pass_data(void *context, const void *data, size_t len,
                     struct err *err)
{
    struct passing *p = context;

    if (!p->is_kept)
        return 0;
    if (p->fd < 0 && p->bytes.len + len <= SMALL &&
        p->in_memory + p->bytes.len + len <= MEMORY) {
        buf_add(&p->bytes, data, len);
        return 0;
    }
    if (p->fd < 0) {
        p->fd = mount_spill(err);
        if (p->fd < 0 ||
            io_write(p->fd, p->name, p->bytes.data, p->bytes.len, err))
            return -1;
    }
    return io_write(p->fd, p->name, data, len, err);
}

/* Both sides of a judged case, with the adjudicator's. */
static void let_go(struct passing *p, const char *name)
{
    static const char *const folders[] = {"adjudicator", "candidate", "export",
                                          "forward", "reference"};

    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        char *dir = xasprintf("%s/%s/%s", p->data, folders[i], name);
        struct io_list list = {NULL, 0};
        struct err ignored = ERR_INIT;

        if (io_is_dir(dir) && io_list(dir, &list, &ignored) == 0)
            for (size_t k = 0; k < list.count; k++) {
                char *path =
                    xasprintf("data/%s/%s/%s", folders[i], name, list.names[k]);

                if (ends(path, ".safetensors") || ends(path, "/prompt.txt"))
                    mount_drop(p->view->mount, path);
                free(path);
            }
        io_list_release(&list);
        free(dir);
    }
}

/* The case's name when the file that just passed was the last below
 * reference/NAME/, freed by the caller; else NULL. */
static char *case_ended(const struct passing *p)
{
    static const char folder[] = "data/reference/";
    size_t n = sizeof(folder) - 1, len;

    if (!starts(p->name, folder))
        return NULL;
    len = strcspn(p->name + n, "/");
    if (!p->name[n + len] ||
        (p->next < p->listed->count &&
         strncmp(p->listed->items[p->next].path, p->name, n + len + 1) == 0))
        return NULL;
    return xstrndup(p->name + n, len);
}

static void judge_case(struct passing *p, const char *name)
{
    if (judging_case(p->judging, name, &p->view->why)) {
        judging_free(p->judging);
        p->judging = NULL;
    }
    let_go(p, name);
}

static int pass_end(void *context, struct err *err)
{
    struct passing *p = context;

    (void)err;
    if (p->fd >= 0) {
        mount_fd(p->view->mount, p->name, p->fd);
        p->fd = -1;
    } else if (p->is_kept) {
        mount_bytes(p->view->mount, p->name, p->bytes.data, p->bytes.len);
        p->in_memory += p->bytes.len;
    }
    p->next += starts(p->name, "data/");
    char *name = p->judging ? case_ended(p) : NULL;
    if (name)
        judge_case(p, name);
    free(name);
    return 0;
}

/* A file without a name takes a descriptor. */
static void allow_descriptors(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
}

int view_open(struct view *v, const char *bundle, bool is_drift,
              struct err *err)
{
    struct passing p = {.view = v,
                        .data = path_join(bundle, "data"),
                        .is_drift = is_drift,
                        .bytes = BUF_INIT,
                        .fd = -1};
    const struct bundle_visitor visitor = {&p, pass_listed, pass_begin,
                                           pass_data, pass_end};
    int ret;

    allow_descriptors();
    *v = (struct view){.mount = mount_new(bundle), .why = ERR_INIT};
    ret = bundle_read(bundle, 0, &visitor, &v->bundle, err);
    if (ret == 0) {
        p.listed = &v->bundle.bag.payload;
        begin_judging(&p); /* no reference at all: it says so */
    }
    if (ret == 0 && p.judging)
        v->document = judging_end(p.judging, &v->why);
    judging_free(p.judging);
    if (p.fd >= 0)
        close(p.fd);
    buf_release(&p.bytes);
    free(p.name);
    free(p.data);
    if (ret)
        view_close(v);
    return ret;
}

void view_close(struct view *v)
{
    bundle_release(&v->bundle);
    mount_free(v->mount);
    json_decref(v->document);
    *v = (struct view){.bundle = {.bag = BAG_INIT}};
}
