/* A receipt from upstream's own listing (formats.md 2.3). */
#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "receipt/receipt_internal.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The files are sorted: the first not below "PATH/" tells. */
static bool has_child(const struct receipt *r, const char *path)
{
    size_t low = 0, high = r->count, n = strlen(path);
    char *prefix = xasprintf("%s/", path);

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (strcmp(r->files[mid].path, prefix) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    bool found =
        low < r->count && strncmp(r->files[low].path, prefix, n + 1) == 0;
    free(prefix);
    return found;
}

static int check_folders(const struct receipt *r, struct err *err)
{
    for (size_t i = 0; i < r->tree_count; i++)
        if (r->trees[i].path[0] && !has_child(r, r->trees[i].path))
            return err_set(err, ERR_INPUT,
                           "folder '%s' has no files: a page of the listing is "
                           "missing",
                           r->trees[i].path);
    return 0;
}

static int set_size(struct receipt_file *f, const json_t *entry,
                    const char *key, struct err *err)
{
    if (json_get_int(entry, key, &f->size, err))
        return -1;
    return f->size < 0 ? err_set(err, ERR_INPUT, "a negative '%s'", key) : 0;
}

static int set_hex(char *out, size_t cap, const json_t *entry, const char *key,
                   struct err *err)
{
    const char *text;

    return json_get_str(entry, key, &text, err) ||
                   receipt_set_hex(out, cap, text, err)
               ? -1
               : 0;
}

static int set_id(char *out, const json_t *entry, const char *key,
                  struct err *err)
{
    const char *text;

    return json_get_str(entry, key, &text, err) ||
                   receipt_set_id(out, text, err)
               ? -1
               : 0;
}

/* A folder's tree id, where the listing has one. */
static int add_folder(struct receipt *r, const char *path, const json_t *entry,
                      struct err *err)
{
    char id[HASH_GIT_HEX] = "";

    if (json_has(entry, "oid") && set_id(id, entry, "oid", err))
        return err_in(err, "'%s'", path);
    receipt_add_tree(r, path, id);
    return 0;
}

/* One entry of the Hub's two JSON forms, which name the same things apart. */
static int hub_entry(struct receipt *r, const json_t *entry, const char *path,
                     const char *blob_key, const char *lfs_sha_key,
                     struct err *err)
{
    struct receipt_file *f = receipt_add(r, path);
    json_t *lfs;

    if (set_id(f->git_blob, entry, blob_key, err))
        return err_in(err, "'%s'", path);
    if (!json_has(entry, "lfs"))
        return set_size(f, entry, "size", err) ? err_in(err, "'%s'", path) : 0;
    if (json_get_object(entry, "lfs", &lfs, err) ||
        set_size(f, lfs, "size", err) ||
        set_hex(f->sha256, sizeof(f->sha256), lfs, lfs_sha_key, err))
        return err_in(err, "'%s'", path);
    return 0;
}

static int hub_tree(struct receipt *r, const json_t *root, struct err *err)
{
    json_t *entry;
    size_t i;

    json_array_foreach(root, i, entry)
    {
        const char *type, *path;

        if (json_get_str(entry, "type", &type, err) ||
            json_get_str(entry, "path", &path, err))
            return err_in(err, "entry %zu", i);
        if (strcmp(type, "directory") == 0) {
            if (add_folder(r, path, entry, err))
                return -1;
        } else if (strcmp(type, "file") != 0)
            return err_set(err, ERR_UNSUPPORTED, "'%s' is a '%s'", path, type);
        else if (hub_entry(r, entry, path, "oid", "oid", err))
            return -1;
    }
    return 0;
}

static int hub_siblings(struct receipt *r, const json_t *root, struct err *err)
{
    json_t *list, *entry;
    const char *text;
    size_t i;

    if (json_get_array(root, "siblings", &list, err))
        return -1;
    if (json_has(root, "sha")) {
        if (json_get_str(root, "sha", &text, err))
            return -1;
        if (r->revision && strcmp(text, r->revision) != 0)
            return err_set(err, ERR_INPUT,
                           "the listing is of revision '%s', not '%s'", text,
                           r->revision);
    }
    json_array_foreach(list, i, entry)
    {
        if (json_get_str(entry, "rfilename", &text, err))
            return err_in(err, "siblings[%zu]", i);
        if (hub_entry(r, entry, text, "blobId", "sha256", err))
            return -1;
    }
    return 0;
}

/* A cache's list is named by its revision: trees/REV.json. */
static int check_revision(const struct receipt *r, const char *listing,
                          struct err *err)
{
    const char *name = path_base(listing);
    size_t n = strspn(name, "0123456789abcdef");

    if ((n != 40 && n != 64) || strcmp(name + n, ".json") != 0 ||
        !r->revision ||
        (strlen(r->revision) == n && strncmp(name, r->revision, n) == 0))
        return 0;
    return err_set(err, ERR_INPUT,
                   "the listing is of revision '%.*s', not '%s'", (int)n, name,
                   r->revision);
}

static int cache_list(struct receipt *r, const json_t *root,
                      const char *listing, struct err *err)
{
    json_t *files, *entry;
    const char *path;
    int64_t version;

    if (json_get_int(root, "format_version", &version, err))
        return -1;
    if (version != 1)
        return err_set(err, ERR_UNSUPPORTED, "format_version %lld",
                       (long long)version);
    if (check_revision(r, listing, err) ||
        json_get_object(root, "files", &files, err))
        return -1;
    json_object_foreach(files, path, entry)
    {
        struct receipt_file *f = receipt_add(r, path);
        bool is_lfs = json_has(entry, "lfs_sha256");

        if (set_id(f->git_blob, entry, "blob_id", err) ||
            (is_lfs &&
             set_hex(f->sha256, sizeof(f->sha256), entry, "lfs_sha256", err)) ||
            set_size(f, entry,
                     is_lfs && json_has(entry, "lfs_size") ? "lfs_size"
                                                           : "size",
                     err))
            return err_in(err, "'%s'", path);
    }
    return 0;
}

/* ------------------------------------------------------------- ls-tree */

/* Git's C-style quoting: \" \\ \a \b \t \n \v \f \r and three octal digits. */
static int unquote(const char *text, size_t len, struct buf *out,
                   struct err *err)
{
    static const char letters[] = "abtnvfr\"\\";
    static const char values[] = "\a\b\t\n\v\f\r\"\\";

    for (size_t i = 0; i < len; i++) {
        if (text[i] != '\\') {
            buf_addch(out, text[i]);
            continue;
        }
        const char *at = i + 1 < len ? strchr(letters, text[i + 1]) : NULL;
        if (at && *at) {
            buf_addch(out, values[at - letters]);
            i++;
            continue;
        }
        int value = 0, digits = 0;
        while (digits < 3 && i + 1 < len && text[i + 1] >= '0' &&
               text[i + 1] <= '7') {
            value = value * 8 + (text[++i] - '0');
            digits++;
        }
        if (digits != 3 || value == 0 || value > 255)
            return err_set(err, ERR_INPUT, "a broken quoted path");
        buf_addch(out, value);
    }
    return 0;
}

static int tree_path(const char *text, size_t len, bool is_raw, struct buf *out,
                     struct err *err)
{
    buf_clear(out);
    if (is_raw || len == 0 || text[0] != '"') {
        buf_add(out, text, len);
        return 0;
    }
    if (len < 2 || text[len - 1] != '"')
        return err_set(err, ERR_INPUT, "a quoted path without its end");
    return unquote(text + 1, len - 2, out, err);
}

/* "MODE KIND ID SIZE\tPATH" */
static int tree_line(struct receipt *r, const char *line, size_t len,
                     bool is_raw, struct err *err)
{
    const char *tab = memchr(line, '\t', len);
    char mode[8], kind[8], id[72], size[24], rest[2];
    struct buf path = BUF_INIT;
    int ret = -1;

    if (!tab)
        return err_set(err, ERR_INPUT, "no TAB before the path");
    char *head = xstrndup(line, (size_t)(tab - line));
    int n = sscanf(head, "%7s %7s %71s %23s %1s", mode, kind, id, size, rest);
    free(head);
    if (n != 4)
        return err_set(err, ERR_INPUT,
                       "not 'mode kind id size' (git ls-tree -r -t -l)");
    if (tree_path(tab + 1, len - (size_t)(tab + 1 - line), is_raw, &path, err))
        goto out;
    if (strcmp(kind, "tree") == 0) {
        char tree[HASH_GIT_HEX];

        ret = receipt_set_id(tree, id, err);
        if (ret == 0)
            receipt_add_tree(r, path.data, tree);
    } else if (!receipt_is_mode(mode) ||
               strcmp(kind, strcmp(mode, "160000") == 0 ? "commit" : "blob") !=
                   0) {
        err_set(err, ERR_UNSUPPORTED, "'%s' is a %s of mode %s", path.data,
                kind, mode);
    } else {
        struct receipt_file *f = receipt_add(r, path.data);
        bool is_repository = strcmp(mode, "160000") == 0;
        char *end;

        f->size = strtoll(is_repository ? "0" : size, &end, 10);
        if (*end || f->size < 0 ||
            (!is_repository && (size[0] < '0' || size[0] > '9')))
            err_set(err, ERR_INPUT, "size '%s' is no number", size);
        else
            ret = receipt_set_id(f->git_blob, id, err);
        memcpy(f->mode, mode, sizeof(f->mode));
    }
out:
    buf_release(&path);
    return ret;
}

static int ls_tree(struct receipt *r, const struct buf *text, struct err *err)
{
    bool is_raw = memchr(text->data, '\0', text->len) != NULL;
    int end_of_line = is_raw ? '\0' : '\n';
    size_t number = 1;

    for (size_t at = 0; at < text->len; number++) {
        const char *line = text->data + at;
        const char *end = memchr(line, end_of_line, text->len - at);
        size_t len = end ? (size_t)(end - line) : text->len - at;

        if (tree_line(r, line, len, is_raw, err))
            return err_in(err, "line %zu", number);
        at += len + 1;
    }
    return 0;
}

/* An answer's header that names a next page: this one is not all. */
static int check_pages(const char *header, struct err *err)
{
    for (const char *line = header; *line;) {
        size_t n = strcspn(line, "\n");
        char *copy = xstrndup(line, n);
        bool is_more =
            strncasecmp(copy, "link:", 5) == 0 &&
            (strstr(copy, "rel=\"next\"") || strstr(copy, "rel=next"));

        free(copy);
        if (is_more)
            return err_set(err, ERR_INPUT,
                           "its Link header names a next page: a page of the "
                           "listing is missing");
        line += n + (line[n] == '\n');
    }
    return 0;
}

/* Behind the header of an answer that was saved with it. */
static int skip_header(const struct buf *text, size_t *skip, struct err *err)
{
    const char *end;

    *skip = 0;
    while (strncmp(text->data + *skip, "HTTP/", 5) == 0) {
        end = strstr(text->data + *skip, "\r\n\r\n");
        if (!end)
            return err_set(err, ERR_INPUT, "an answer's header without an end");
        char *header =
            xstrndup(text->data + *skip, (size_t)(end - text->data) - *skip);
        int ret = check_pages(header, err);

        free(header);
        if (ret)
            return -1;
        *skip = (size_t)(end - text->data) + 4;
    }
    *skip += strspn(text->data + *skip, " \t\r\n");
    return 0;
}

static int import_text(struct receipt *r, const struct buf *text,
                       const char *listing, struct err *err)
{
    size_t skip;

    if (skip_header(text, &skip, err))
        return -1;
    if (receipt_is_sums(text->data + skip))
        return strlen(text->data) == text->len
                   ? receipt_import_sums(r, text->data + skip, err)
                   : err_set(err, ERR_INPUT, "holds a NUL");
    if (text->data[skip] != '[' && text->data[skip] != '{')
        return ls_tree(r, text, err);
    json_t *root = json_parse(text->data + skip, text->len - skip, err);
    int ret = -1;
    if (!root)
        return -1;
    if (json_is_array(root))
        ret = hub_tree(r, root, err);
    else if (json_has(root, "siblings"))
        ret = hub_siblings(r, root, err);
    else if (json_has(root, "format_version"))
        ret = cache_list(r, root, listing, err);
    else
        err_set(err, ERR_UNSUPPORTED,
                "not a Hub tree, model info, cache list or ls-tree listing");
    json_decref(root);
    return ret;
}

/* The listing; beside it may lie the header it came with. */
static int read_listing(const char *listing, struct buf *text, struct err *err)
{
    char *headers = xasprintf("%s.headers", listing);
    struct buf header = BUF_INIT;
    int ret = io_read_file(listing, IO_JSON_CAP, text, err);

    if (ret == 0 && io_exists(headers)) {
        ret = io_read_file(headers, IO_JSON_CAP, &header, err);
        if (ret == 0 && header.len && check_pages(header.data, err))
            ret = err_in(err, "%s", listing);
    }
    buf_release(&header);
    free(headers);
    return ret;
}

int receipt_import(struct receipt *r, const char *listing, struct err *err)
{
    struct buf text = BUF_INIT;
    int ret = -1;

    r->strength = "listing";
    if (io_is_dir(listing)) {
        if (receipt_import_metadata(r, listing, err))
            goto out;
    } else if (read_listing(listing, &text, err)) {
        goto out;
    } else if (text.len == 0) {
        err_set(err, ERR_INPUT, "%s: empty", listing);
        goto out;
    }
    if ((text.len && import_text(r, &text, listing, err)) ||
        receipt_sort(r, err) || check_folders(r, err))
        err_in(err, "%s", listing);
    else if (r->count == 0)
        err_set(err, ERR_INPUT, "%s: lists no files", listing);
    else
        ret = 0;
out:
    buf_release(&text);
    return ret;
}
