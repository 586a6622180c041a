/* Evidence as a BagIt 1.0 bag: sealing and checking. */
#include "evidence/bag.h"

#include "base/buf.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { MANIFEST_CAP = 512 << 20, MAX_FILES = 1000000, MAX_DEPTH = 64 };

static const char declaration[] =
    "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n";
static const char manifest_name[] = "manifest-sha256.txt";
static const char tag_manifest_name[] = "tagmanifest-sha256.txt";
static const char *const tag_files[] = {"bag-info.txt", "bagit.txt",
                                        "manifest-sha256.txt"};
enum { TAG_FILES = sizeof(tag_files) / sizeof(tag_files[0]) };

void bag_files_release(struct bag_files *files)
{
    for (size_t i = 0; i < files->count; i++)
        free(files->items[i].path);
    free(files->items);
    *files = (struct bag_files)BAG_FILES_INIT;
}

static struct bag_file *add_file(struct bag_files *files, const char *path)
{
    if ((files->count & (files->count - 1)) == 0)
        files->items =
            xrealloc(files->items, (files->count ? files->count * 2 : 1) *
                                       sizeof(*files->items));
    struct bag_file *f = &files->items[files->count++];

    *f = (struct bag_file){xstrdup(path), "", 0};
    return f;
}

static int by_path(const void *a, const void *b)
{
    const struct bag_file *x = a, *y = b;

    return strcmp(x->path, y->path);
}

static int by_folded_path(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;

    return strcasecmp(*x, *y);
}

static void sort_files(struct bag_files *files)
{
    if (files->count)
        qsort(files->items, files->count, sizeof(*files->items), by_path);
}

const struct bag_file *bag_find(const struct bag_files *files, const char *path)
{
    struct bag_file key = {(char *)path, "", 0};

    return files->count ? bsearch(&key, files->items, files->count,
                                  sizeof(*files->items), by_path)
                        : NULL;
}

static void fault(json_t *faults, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void fault(json_t *faults, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    json_append_line(faults, format, ap);
    va_end(ap);
}

/* ------------------------------------------------------------- payload */

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
        fault(w->faults, "%s: an empty folder", below);
    if (depth > MAX_DEPTH)
        ret = err_set(err, ERR_INPUT, "%s: nested deeper than %d", w->root,
                      (int)MAX_DEPTH);
    for (size_t i = 0; i < list.count && ret == 0; i++) {
        char *path = xasprintf("%s/%s", below, list.names[i]);
        char *whole = path_join(w->root, path);
        struct stat st;
        struct err why = ERR_INIT;

        if (path_check(path, &why))
            fault(w->faults, "%s", why.text);
        else if (lstat(whole, &st))
            ret = err_sys(err, "%s", whole);
        else if (S_ISDIR(st.st_mode))
            ret = walk(w, path, depth + 1, err);
        else if (!S_ISREG(st.st_mode))
            fault(w->faults, "%s: neither a file nor a folder", path);
        else if (st.st_nlink > 1)
            fault(w->faults, "%s: a hard link", path);
        else if (w->files->count == MAX_FILES)
            ret = err_set(err, ERR_INPUT, "%s: more than %d files", w->root,
                          (int)MAX_FILES);
        else
            add_file(w->files, path);
        free(whole);
        free(path);
    }
    io_list_release(&list);
    return ret;
}

void bag_check_folded(const struct bag_files *files, json_t *faults)
{
    const char **paths = xcalloc(files->count + 1, sizeof(*paths));

    for (size_t i = 0; i < files->count; i++)
        paths[i] = files->items[i].path;
    if (files->count)
        qsort(paths, files->count, sizeof(*paths), by_folded_path);
    for (size_t i = 1; i < files->count; i++)
        if (strcasecmp(paths[i - 1], paths[i]) == 0)
            fault(faults, "%s and %s differ only in case", paths[i - 1],
                  paths[i]);
    free(paths);
}

static int hash_below(const char *root, struct bag_file *f, struct err *err)
{
    char *path = path_join(root, f->path);
    int ret = hash_sha256_file(path, f->sha256, &f->size, err);

    free(path);
    return ret;
}

/* `known`: what was hashed while it was written there, or NULL. */
static int load_payload(const char *dir, const struct bag_files *known,
                        struct bag_files *files, json_t *faults,
                        struct err *err)
{
    struct walk w = {dir, files, faults};

    if (walk(&w, "data", 0, err))
        return -1;
    sort_files(files);
    bag_check_folded(files, faults);
    for (size_t i = 0; i < files->count; i++) {
        const struct bag_file *f =
            known ? bag_find(known, files->items[i].path) : NULL;

        if (f) {
            memcpy(files->items[i].sha256, f->sha256, sizeof(f->sha256));
            files->items[i].size = f->size;
        } else if (hash_below(dir, &files->items[i], err)) {
            return -1;
        }
    }
    return 0;
}

static void oxum(const struct bag_files *files, char out[64])
{
    int64_t bytes = 0;

    for (size_t i = 0; i < files->count; i++)
        bytes += files->items[i].size;
    snprintf(out, 64, "%lld.%zu", (long long)bytes, files->count);
}

/* ------------------------------------------------------------- sealing */

static void manifest_line(struct buf *out, const char *sha256, const char *path)
{
    buf_addf(out, "%s  %s\n", sha256, path);
}

static int put(const char *dir, const char *name, const char *data, size_t len,
               struct err *err)
{
    char *path = path_join(dir, name);
    int ret = io_write_file(path, data, len, err);

    free(path);
    return ret;
}

static int write_tags(const char *dir, const struct bag_files *files,
                      const char *date, struct err *err)
{
    struct buf manifest = BUF_INIT, info = BUF_INIT, tags = BUF_INIT;
    char size[64], sha256[TAG_FILES][HASH_SHA256_HEX];

    for (size_t i = 0; i < files->count; i++)
        manifest_line(&manifest, files->items[i].sha256, files->items[i].path);
    hash_sha256(manifest.data, manifest.len, sha256[2]);
    oxum(files, size);
    buf_addf(&info, "Payload-Oxum: %s\n", size);
    if (date)
        buf_addf(&info, "Bagging-Date: %s\n", date);
    buf_addf(&info, "External-Identifier: assay-%.16s\nAssay-Version: %s\n",
             sha256[2], ASSAY_VERSION);
    hash_sha256(info.data, info.len, sha256[0]);
    hash_sha256(declaration, sizeof(declaration) - 1, sha256[1]);
    for (size_t i = 0; i < TAG_FILES; i++)
        manifest_line(&tags, sha256[i], tag_files[i]);
    int ret =
        put(dir, "bagit.txt", declaration, sizeof(declaration) - 1, err) ||
                put(dir, manifest_name, manifest.data, manifest.len, err) ||
                put(dir, "bag-info.txt", info.data, info.len, err) ||
                put(dir, tag_manifest_name, tags.data, tags.len, err)
            ? -1
            : 0;
    buf_release(&manifest);
    buf_release(&info);
    buf_release(&tags);
    return ret;
}

/* Beside data/ only what the bag itself brings may stand. */
static int check_root(const char *dir, struct err *err)
{
    struct io_list list;
    char *seal = path_join(dir, tag_manifest_name);
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

    if (check_root(dir, err) || load_payload(dir, NULL, &files, faults, err))
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

/* ------------------------------------------------------------ checking */

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* "%0A", "%0D" and "%25" decoded in place. */
static void decode_path(char *path)
{
    char *to = path;

    for (const char *at = path; *at; at++) {
        int c = *at;

        if (c == '%' &&
            (strncasecmp(at, "%0a", 3) == 0 || strncasecmp(at, "%0d", 3) == 0 ||
             strncmp(at, "%25", 3) == 0)) {
            c = hex_value(at[1]) * 16 + hex_value(at[2]);
            at += 2;
        }
        *to++ = (char)c;
    }
    *to = '\0';
}

/* One line: digest, blanks or tabs, perhaps '*', path. */
static bool parse_line(char *line, char sha256[HASH_SHA256_HEX], char **path)
{
    size_t i = 0;

    for (; i < HASH_SHA256_HEX - 1; i++) {
        if (hex_value(line[i]) < 0)
            return false;
        sha256[i] = "0123456789abcdef"[hex_value(line[i])];
    }
    sha256[i] = '\0';
    size_t blanks = strspn(line + i, " \t");
    if (blanks == 0)
        return false;
    *path = line + i + blanks;
    if (**path == '*')
        ++*path;
    decode_path(*path);
    return **path != '\0';
}

void bag_manifest_parse(char *text, size_t len, const char *name,
                        struct bag_files *out, json_t *faults)
{
    char *save = NULL;
    size_t number = 0;

    if (memchr(text, '\0', len)) {
        fault(faults, "%s: holds a NUL", name);
        return;
    }
    for (char *line = strtok_r(text, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        char sha256[HASH_SHA256_HEX], *file;

        number++;
        line[strcspn(line, "\r")] = '\0';
        if (!parse_line(line, sha256, &file))
            fault(faults, "%s: line %zu is no 'digest  path'", name, number);
        else
            memcpy(add_file(out, file)->sha256, sha256, sizeof(sha256));
    }
    sort_files(out);
    for (size_t i = 1; i < out->count; i++)
        if (strcmp(out->items[i - 1].path, out->items[i].path) == 0)
            fault(faults, "%s: '%s' stands twice", name, out->items[i].path);
}

/* A manifest's lines; nothing but a fault when it cannot be read. */
static void read_manifest(const char *dir, const char *name,
                          struct bag_files *out, json_t *faults)
{
    struct buf text = BUF_INIT;
    struct err why = ERR_INIT;
    char *path = path_join(dir, name);

    if (io_read_file(path, MANIFEST_CAP, &text, &why))
        fault(faults, "%s: cannot be read", name);
    else
        bag_manifest_parse(text.data, text.len, name, out, faults);
    free(path);
    buf_release(&text);
}

static void check_payload(const struct bag_files *listed,
                          const struct bag_files *found, json_t *faults)
{
    for (size_t i = 0; i < listed->count; i++) {
        const struct bag_file *f = &listed->items[i];
        const struct bag_file *here = bag_find(found, f->path);

        if (strncmp(f->path, "data/", 5) != 0)
            fault(faults, "%s: '%s' is no payload", manifest_name, f->path);
        else if (!here)
            fault(faults, "%s: missing", f->path);
        else if (strcmp(here->sha256, f->sha256) != 0)
            fault(faults, "%s: its SHA-256 is %s, the manifest says %s",
                  f->path, here->sha256, f->sha256);
    }
    for (size_t i = 0; i < found->count; i++)
        if (!bag_find(listed, found->items[i].path))
            fault(faults, "%s: in no manifest", found->items[i].path);
}

static void check_tags(const char *dir, json_t *faults)
{
    struct bag_files listed = BAG_FILES_INIT;

    read_manifest(dir, tag_manifest_name, &listed, faults);
    for (size_t i = 0; i < listed.count; i++) {
        struct bag_file f = {listed.items[i].path, "", 0};
        struct err why = ERR_INIT;

        if (!path_is_portable(f.path) || strncmp(f.path, "data/", 5) == 0)
            fault(faults, "%s: '%s' is no tag file", tag_manifest_name, f.path);
        else if (hash_below(dir, &f, &why))
            fault(faults, "%s: missing", f.path);
        else if (strcmp(f.sha256, listed.items[i].sha256) != 0)
            fault(faults, "%s: its SHA-256 is %s, the tag manifest says %s",
                  f.path, f.sha256, listed.items[i].sha256);
    }
    for (size_t i = 0; i < TAG_FILES; i++)
        if (!bag_find(&listed, tag_files[i]))
            fault(faults, "%s: not in %s", tag_files[i], tag_manifest_name);
    bag_files_release(&listed);
}

static void check_declaration(const char *dir, json_t *faults)
{
    struct buf text = BUF_INIT;
    struct err why = ERR_INIT;
    char *path = path_join(dir, "bagit.txt");

    if (io_read_file(path, 4096, &text, &why))
        fault(faults, "bagit.txt: cannot be read");
    else if (text.len != sizeof(declaration) - 1 ||
             memcmp(text.data, declaration, text.len) != 0)
        fault(faults, "bagit.txt: not the declaration of a BagIt 1.0 bag");
    free(path);
    buf_release(&text);
}

static void check_info(const char *dir, const struct bag_files *found,
                       json_t *faults)
{
    struct buf text = BUF_INIT;
    struct err why = ERR_INIT;
    char *path = path_join(dir, "bag-info.txt"), *save = NULL, size[64];
    const char *listed = NULL;

    oxum(found, size);
    if (io_read_file(path, 1 << 20, &text, &why)) {
        fault(faults, "bag-info.txt: cannot be read");
        goto out;
    }
    for (char *line = text.data ? strtok_r(text.data, "\r\n", &save) : NULL;
         line; line = strtok_r(NULL, "\r\n", &save))
        if (strncmp(line, "Payload-Oxum: ", 14) == 0)
            listed = line + 14;
    if (!listed)
        fault(faults, "bag-info.txt: no Payload-Oxum");
    else if (strcmp(listed, size) != 0)
        fault(faults, "bag-info.txt: Payload-Oxum is %s, found %s", listed,
              size);
out:
    free(path);
    buf_release(&text);
}

/* Beside the payload: tag files, signatures, timing.json. */
static int check_strangers(const char *dir, json_t *faults, struct err *err)
{
    struct io_list list;

    if (io_list(dir, &list, err))
        return -1;
    for (size_t i = 0; i < list.count; i++) {
        const char *name = list.names[i];
        size_t n = strlen(name);
        bool is_known = strcmp(name, "data") == 0 ||
                        strcmp(name, "timing.json") == 0 ||
                        strcmp(name, tag_manifest_name) == 0 ||
                        (n > 4 && strcmp(name + n - 4, ".sig") == 0);

        for (size_t t = 0; t < TAG_FILES; t++)
            is_known |= strcmp(name, tag_files[t]) == 0;
        if (!is_known)
            fault(faults, "%s: does not belong there", name);
    }
    io_list_release(&list);
    return 0;
}

int bag_check(const char *dir, struct bag_files *files, json_t *faults,
              struct err *err)
{
    return bag_check_unpacked(dir, NULL, files, faults, err);
}

int bag_check_unpacked(const char *dir, const struct bag_files *known,
                       struct bag_files *files, json_t *faults, struct err *err)
{
    struct bag_files listed = BAG_FILES_INIT;
    char *data = path_join(dir, "data");
    int ret = -1;

    if (check_strangers(dir, faults, err))
        goto out;
    if (!io_is_dir(data)) {
        err_set(err, ERR_INPUT, "%s: no data/: not the evidence of a run", dir);
        goto out;
    }
    if (load_payload(dir, known, files, faults, err))
        goto out;
    check_declaration(dir, faults);
    read_manifest(dir, manifest_name, &listed, faults);
    check_payload(&listed, files, faults);
    check_tags(dir, faults);
    check_info(dir, files, faults);
    ret = 0;
out:
    free(data);
    bag_files_release(&listed);
    return ret;
}
