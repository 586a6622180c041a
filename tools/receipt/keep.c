/* keep: the captures that were compared, or their digests, into a run. */
#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/publish.h"
#include "cli/cli.h"
#include "hash/hash.h"
#include "verbs.h"

#include <stdlib.h>
#include <sys/stat.h>

/* A file's identity, links followed. */
struct place {
    dev_t device;
    ino_t inode;
};

struct keep {
    const char *from, *unlike;
    char *to;
    struct place *others; /* every file in the folders of `unlike` */
    size_t other_count;
    bool digests;
    json_t *list; /* of the case at hand */
};

static bool is_other(const struct keep *k, const char *path)
{
    struct stat st;

    if (k->other_count == 0 || stat(path, &st))
        return false;
    for (size_t i = 0; i < k->other_count; i++)
        if (k->others[i].device == st.st_dev && k->others[i].inode == st.st_ino)
            return true;
    return false;
}

/* Files of a folder and of the folders in it: a capture is no deeper. */
static int list_others(struct keep *k, const char *dir, int depth,
                       struct err *err)
{
    struct io_list list;
    int ret = 0;

    if (io_list(dir, &list, err))
        return -1;
    for (size_t i = 0; i < list.count && ret == 0; i++) {
        char *path = path_join(dir, list.names[i]);
        struct stat st;

        if (stat(path, &st) == 0 && S_ISDIR(st.st_mode) && depth == 0) {
            ret = list_others(k, path, 1, err);
        } else if (stat(path, &st) == 0 && S_ISREG(st.st_mode)) {
            k->others =
                xrealloc(k->others, (k->other_count + 1) * sizeof(*k->others));
            k->others[k->other_count++] = (struct place){st.st_dev, st.st_ino};
        }
        free(path);
    }
    io_list_release(&list);
    return ret;
}

static int keep_file(struct keep *k, const char *name, const char *file,
                     struct err *err)
{
    char *below = xasprintf("%s/%s", name, file);
    char *from = path_join(k->from, below), *to = path_join(k->to, below);
    char sha256[HASH_SHA256_HEX];
    int64_t size;
    int ret = -1;

    if (is_other(k, from)) {
        err_set(err, ERR_INPUT, "%s: the same file on both sides, one is in %s",
                from, k->unlike);
    } else if (k->digests) {
        ret = hash_sha256_file(from, sha256, &size, err);
        if (ret == 0)
            json_array_append_new(
                k->list, json_pack("{s:s, s:I, s:s}", "path", file, "size",
                                   (json_int_t)size, "sha256", sha256));
    } else {
        char *dir = path_dir(to);

        ret = io_make_dirs(dir, err) || io_copy_file(from, to, err) ? -1 : 0;
        free(dir);
    }
    free(to);
    free(from);
    free(below);
    return ret;
}

static int keep_case(struct keep *k, const char *name, struct err *err)
{
    char *dir = path_join(k->from, name);
    struct io_list list = {NULL, 0};
    int ret = io_list(dir, &list, err);

    k->list = json_array();
    for (size_t i = 0; i < list.count && ret == 0; i++) {
        char *path = path_join(dir, list.names[i]);
        struct stat st;

        if (path_is_portable(list.names[i]) && stat(path, &st) == 0 &&
            S_ISREG(st.st_mode))
            ret = keep_file(k, name, list.names[i], err);
        free(path);
    }
    if (ret == 0 && json_array_size(k->list)) {
        char *to = xasprintf("%s/%s/digests.json", k->to, name);
        json_t *root = json_pack("{s:O}", "files", k->list);

        ret = json_write_file(root, to, err);
        json_decref(root);
        free(to);
    }
    json_decref(k->list);
    io_list_release(&list);
    free(dir);
    return ret;
}

static int keep_all(struct keep *k, struct err *err)
{
    struct io_list list;
    size_t kept = 0;
    int ret = 0;

    if (io_list(k->from, &list, err))
        return -1;
    for (size_t i = 0; i < list.count && ret == 0; i++) {
        char *dir = path_join(k->from, list.names[i]);

        if (io_is_dir(dir) && path_is_portable(list.names[i])) {
            ret = keep_case(k, list.names[i], err);
            kept++;
        }
        free(dir);
    }
    io_list_release(&list);
    if (ret == 0 && kept == 0)
        ret = err_set(err, ERR_INPUT, "%s: holds no folder of a case", k->from);
    return ret;
}

static int keep(struct keep *k, const char *out, struct err *err)
{
    struct publish p = PUBLISH_INIT;

    if (!io_is_dir(k->from))
        return err_set(err, ERR_INPUT, "%s: no such folder of captures",
                       k->from);
    if (k->unlike && list_others(k, k->unlike, 0, err))
        return -1;
    if (publish_begin(&p, out, err))
        return -1;
    k->to = p.part;
    if (keep_all(k, err) == 0)
        return publish_commit(&p, err);
    publish_abort(&p);
    return -1;
}

int verb_keep(int argc, char **argv)
{
    struct keep k = {0};
    const struct cli_opt options[] = {
        {'d', "digests", NULL, "their digests only", CLI_FLAG, &k.digests},
        {0, "unlike", "dir", "refuse a file that is the same one there",
         CLI_STR, &k.unlike},
        {0},
    };
    const struct cli_command command = {
        "assay-receipt",
        "keep",
        "FROM TO",
        "Copies captures, a folder a case, into a run.",
        options,
        2,
        2};
    struct cli_list rest = {NULL, 0};
    struct err err = ERR_INIT;

    if (cli_parse(&command, argc, argv, &rest, &err) == 0) {
        k.from = rest.items[0];
        keep(&k, rest.items[1], &err);
    }
    free(k.others);
    free(rest.items);
    return cli_finish(&command, &err);
}
