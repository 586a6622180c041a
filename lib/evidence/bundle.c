/*
 * A sealed run as one file.  The tag files come first, so that a reader knows
 * from the manifest which entry must come next: everything else is refused.
 * The order is made here; bundle_write.c follows it, bundle_read.c demands it.
 */
#include "evidence/bundle_internal.h"

#include "archive/tar.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_ENTRIES = 1000000 };

void bundle_release(struct bundle *b)
{
    free(b->name);
    free(b->first_other);
    bag_release(&b->bag);
    *b = (struct bundle){.bag = BAG_INIT};
}

struct step *plan_add(struct plan *p, const char *path, size_t len)
{
    if ((p->count & (p->count - 1)) == 0)
        p->steps = xrealloc(p->steps,
                            (p->count ? p->count * 2 : 1) * sizeof(*p->steps));
    p->steps[p->count] = (struct step){xstrndup(path, len), NULL, 0, false};
    return &p->steps[p->count++];
}

void plan_release(struct plan *p)
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

int plan_payload(struct plan *p, const struct bag_files *files, struct err *err)
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

char *plan_name(const char *top, const struct step *s)
{
    return xasprintf("%s/%s%s", top, s->path,
                     s->is_dir && s->path[0] ? "/" : "");
}

int plan_tar_size(const struct plan *p, const char *top, const char *path,
                  int64_t *size, struct err *err)
{
    struct tar_writer *w = tar_writer_new(-1, path, 0, err);
    int ret = w ? 0 : -1;

    for (size_t i = 0; i < p->count && ret == 0; i++) {
        char *name = plan_name(top, &p->steps[i]);

        ret = tar_writer_entry(w, name, p->steps[i].is_dir, p->steps[i].size, 0,
                               err);
        free(name);
    }
    if (ret == 0)
        ret = tar_writer_end(w, NULL, size, err);
    tar_writer_free(w);
    return ret;
}

const char *bundle_info(const struct buf *text, const char *key, size_t *len)
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
