/* The payload as it lies on disk, and sealing it. */
#include "evidence/bag_internal.h"

#include "base/buf.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "hash/files.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_FILES = 1000000, MAX_DEPTH = 64 };

struct walk {
    const char *root;
    struct bag_files *files;
    json_t *faults;
};

/* Walks a folder; what may not stand in evidence becomes a fault. */
static int walk(struct walk *w, const char *below, int depth, struct err *err)
{
    struct io_list list;
    char *dir = path_join(w->root, below);
    int ret = io_list(dir, &list, err);

    free(dir);
    if (ret)
        return -1;
    if (list.count == 0)
        bag_fault(w->faults, "%s: an empty folder", below);
    if (depth > MAX_DEPTH)
        ret = err_set(err, ERR_INPUT, "%s: nested deeper than %d", w->root,
                      (int)MAX_DEPTH);
    for (size_t i = 0; i < list.count && ret == 0; i++) {
        char *path = xasprintf("%s/%s", below, list.names[i]);
        char *whole = path_join(w->root, path);
        struct stat st;
        struct err why = ERR_INIT;

        if (path_check(path, &why))
            bag_fault(w->faults, "%s", why.text);
        else if (lstat(whole, &st))
            ret = err_sys(err, "%s", whole);
        else if (S_ISDIR(st.st_mode))
            ret = walk(w, path, depth + 1, err);
        else if (!S_ISREG(st.st_mode))
            bag_fault(w->faults, "%s: neither a file nor a folder", path);
        else if (st.st_nlink > 1)
            bag_fault(w->faults, "%s: a hard link", path);
        else if (w->files->count == MAX_FILES)
            ret = err_set(err, ERR_INPUT, "%s: more than %d files", w->root,
                          (int)MAX_FILES);
        else
            bag_add(w->files, path);
        free(whole);
        free(path);
    }
    io_list_release(&list);
    return ret;
}

static int hash_payload(const char *dir, struct bag_files *files,
                        struct err *err)
{
    struct hash_file *found = xcalloc(files->count + 1, sizeof(*found));

    for (size_t i = 0; i < files->count; i++)
        found[i].path = path_join(dir, files->items[i].path);
    int ret = hash_files(found, files->count, HASH_SHA1, err);
    for (size_t i = 0; i < files->count; i++) {
        memcpy(files->items[i].sha256, found[i].sha256, HASH_SHA256_HEX);
        files->items[i].size = found[i].size;
        free((char *)found[i].path);
    }
    free(found);
    return ret;
}

int bag_load_payload(const char *dir, struct bag_files *files, json_t *faults,
                     struct err *err)
{
    struct walk w = {dir, files, faults};

    if (walk(&w, "data", 0, err))
        return -1;
    bag_sort(files);
    bag_check_folded(files, faults);
    return hash_payload(dir, files, err);
}

static void manifest_line(struct buf *out, const char *sha256, const char *path)
{
    buf_addf(out, "%s  %s\n", sha256, path);
}

static int put(const char *dir, const char *name, const struct buf *text,
               struct err *err)
{
    char *path = path_join(dir, name);
    int ret = io_write_file(path, text->data, text->len, err);

    free(path);
    return ret;
}

static void take_away(const char *dir, const char *name)
{
    char *path = path_join(dir, name);

    unlink(path);
    free(path);
}

static int write_tags(const char *dir, const struct bag_files *files,
                      const char *date, struct err *err)
{
    static const int by_name[] = {BAG_INFO, BAG_DECLARATION, BAG_MANIFEST};
    struct buf text[BAG_TAGS] = {BUF_INIT, BUF_INIT, BUF_INIT, BUF_INIT};
    char size[64], sha256[HASH_SHA256_HEX];
    int ret = 0;

    buf_addstr(&text[BAG_DECLARATION], BAG_DECLARATION_TEXT);
    for (size_t i = 0; i < files->count; i++)
        manifest_line(&text[BAG_MANIFEST], files->items[i].sha256,
                      files->items[i].path);
    hash_sha256(text[BAG_MANIFEST].data, text[BAG_MANIFEST].len, sha256);
    bag_oxum(files, size);
    buf_addf(&text[BAG_INFO], "Payload-Oxum: %s\n", size);
    if (date)
        buf_addf(&text[BAG_INFO], "Bagging-Date: %s\n", date);
    buf_addf(&text[BAG_INFO],
             "External-Identifier: assay-%.16s\nAssay-Version: %s\n", sha256,
             ASSAY_VERSION);
    for (size_t i = 0; i < sizeof(by_name) / sizeof(by_name[0]); i++) {
        const struct buf *t = &text[by_name[i]];

        hash_sha256(t->data, t->len, sha256);
        manifest_line(&text[BAG_TAG_MANIFEST], sha256,
                      bag_tag_names[by_name[i]]);
    }
    int written = 0;
    while (written < BAG_TAGS && ret == 0) {
        ret = put(dir, bag_tag_names[written], &text[written], err);
        written += ret == 0;
    }
    while (ret && written > 0) /* half a seal is none */
        take_away(dir, bag_tag_names[--written]);
    for (int i = 0; i < BAG_TAGS; i++)
        buf_release(&text[i]);
    return ret;
}

/* Beside data/ only what the bag itself brings may stand. */
static int check_root(const char *dir, struct err *err)
{
    struct io_list list;
    char *seal = path_join(dir, bag_tag_names[BAG_TAG_MANIFEST]);
    int ret = io_exists(seal)
                  ? err_set(err, ERR_EXISTS, "%s: is sealed already", dir)
                  : 0;

    free(seal);
    if (ret || io_list(dir, &list, err))
        return -1;
    for (size_t i = 0; i < list.count && ret == 0; i++) {
        const char *name = list.names[i];

        if (strcmp(name, "data") != 0 && strcmp(name, "timing.json") != 0)
            ret = err_set(err, ERR_INPUT, "%s/%s: does not belong there", dir,
                          name);
    }
    io_list_release(&list);
    return ret;
}

int bag_seal(const char *dir, const char *date, struct err *err)
{
    struct bag_files files = BAG_FILES_INIT;
    json_t *faults = json_array();
    int ret = -1;

    if (check_root(dir, err) || bag_load_payload(dir, &files, faults, err))
        goto out;
    if (json_array_size(faults))
        err_set(err, ERR_INPUT, "%s",
                json_string_value(json_array_get(faults, 0)));
    else
        ret = write_tags(dir, &files, date, err);
out:
    json_decref(faults);
    bag_files_release(&files);
    return ret;
}
