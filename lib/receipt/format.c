/* A receipt as a document: reading and writing. */
#include "base/mem.h"
#include "receipt/receipt_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int receipt_set_hex(char *out, size_t cap, const char *text, struct err *err)
{
    if (strlen(text) != cap - 1)
        return err_set(err, ERR_INPUT, "'%s' is not %zu hex digits", text,
                       cap - 1);
    for (size_t i = 0; i < cap; i++) {
        char c = text[i];

        if (c >= 'A' && c <= 'F')
            c = (char)(c - 'A' + 'a');
        if (c && !((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
            return err_set(err, ERR_INPUT, "'%s' is not hex", text);
        out[i] = c;
    }
    return 0;
}

int receipt_set_id(char out[HASH_GIT_HEX], const char *text, struct err *err)
{
    return receipt_set_hex(out, strlen(text) == 64 ? 65 : 41, text, err);
}

static int receipt_read_id(const json_t *entry, const char *key,
                           char out[HASH_GIT_HEX], struct err *err)
{
    const char *text;

    if (!json_has(entry, key))
        return 0;
    return json_get_str(entry, key, &text, err) ||
                   receipt_set_id(out, text, err)
               ? -1
               : 0;
}

int receipt_read_digest(const json_t *entry, const char *key, char *out,
                        size_t cap, struct err *err)
{
    const char *text;

    if (!json_has(entry, key))
        return 0;
    return json_get_str(entry, key, &text, err) ||
                   receipt_set_hex(out, cap, text, err)
               ? -1
               : 0;
}

bool receipt_is_mode(const char *mode)
{
    static const char *const known[] = {"100644", "100755", "120000", "160000"};

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(mode, known[i]) == 0)
            return true;
    return false;
}

static int read_entry(struct receipt *r, const json_t *entry, struct err *err)
{
    const char *path;
    int64_t size;

    if (json_get_str(entry, "path", &path, err))
        return -1;
    struct receipt_file *f = receipt_add(r, path);
    bool has_size = !json_is_null(json_object_get(entry, "size"));

    size = 0;
    if ((has_size && json_get_int(entry, "size", &size, err)) ||
        receipt_read_digest(entry, "sha256", f->sha256, sizeof(f->sha256),
                            err) ||
        receipt_read_id(entry, "git_blob", f->git_blob, err) ||
        receipt_read_digest(entry, "tensors_sha256", f->tensors,
                            sizeof(f->tensors), err))
        return err_in(err, "'%s'", path);
    if (size < 0)
        return err_set(err, ERR_INPUT, "'%s': a negative size", path);
    f->size = has_size ? size : -1;
    if (json_has(entry, "tensors")) {
        json_t *list;

        if (json_get_array(entry, "tensors", &list, err))
            return err_in(err, "'%s'", path);
        f->tensor_list = json_incref(list);
    }
    if (json_has(entry, "mode")) {
        const char *mode;

        if (json_get_str(entry, "mode", &mode, err))
            return err_in(err, "'%s'", path);
        if (!receipt_is_mode(mode))
            return err_set(err, ERR_INPUT, "'%s': mode '%s'", path, mode);
        memcpy(f->mode, mode, sizeof(f->mode));
    }
    return 0;
}

/* Bytes without a NUL, as text. */
static int read_hex(const char *hex, char **out, struct err *err)
{
    size_t n = strlen(hex) / 2;
    char *bytes = xmalloc(n + 1);

    for (size_t i = 0; i < n; i++) {
        unsigned int value;

        if (sscanf(hex + 2 * i, "%2x", &value) != 1 || value == 0 ||
            hex[2 * i + 1] == '\0') {
            free(bytes);
            return err_set(err, ERR_INPUT, "'commit_hex' is not hex");
        }
        bytes[i] = (char)value;
    }
    bytes[n] = '\0';
    *out = bytes;
    return 0;
}

static int read_trees(struct receipt *r, const json_t *root, struct err *err)
{
    const char *path, *text;
    char id[HASH_GIT_HEX];
    json_t *list, *entry;
    size_t i;

    if (json_has(root, "trees")) {
        if (json_get_array(root, "trees", &list, err))
            return -1;
        json_array_foreach(list, i, entry)
        {
            if (json_get_str(entry, "path", &path, err) ||
                json_get_str(entry, "id", &text, err) ||
                receipt_set_id(id, text, err))
                return err_in(err, "trees[%zu]", i);
            receipt_add_tree(r, path, id);
        }
    }
    if (json_has(root, "commit")) {
        if (json_get_str(root, "commit", &text, err))
            return -1;
        r->commit = xstrdup(text);
    } else if (json_has(root, "commit_hex")) {
        if (json_get_str(root, "commit_hex", &text, err) ||
            read_hex(text, &r->commit, err))
            return -1;
    }
    return 0;
}

static int read_root(struct receipt *r, const json_t *root, struct err *err)
{
    const char *text;
    json_t *files, *upstream, *entry;
    size_t i;

    if (json_get_str(root, "format", &text, err))
        return -1;
    if (strcmp(text, "assay-receipt-1") != 0)
        return err_set(err, ERR_UNSUPPORTED, "format '%s'", text);
    if (json_has(root, "strength")) {
        if (json_get_str(root, "strength", &text, err))
            return -1;
        static const char *const known[] = {"recorded", "listing", "tree",
                                            "commit"};
        r->strength = NULL;
        for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
            if (strcmp(text, known[i]) == 0)
                r->strength = known[i];
        if (!r->strength) {
            r->strength = "recorded";
            return err_set(err, ERR_UNSUPPORTED, "strength '%s'", text);
        }
    }
    if (json_has(root, "upstream")) {
        if (json_get_object(root, "upstream", &upstream, err) ||
            json_get_str(upstream, "repository", &text, err))
            return -1;
        r->repository = xstrdup(text);
        if (json_get_str(upstream, "revision", &text, err))
            return -1;
        r->revision = xstrdup(text);
    }
    if (json_get_array(root, "files", &files, err))
        return -1;
    json_array_foreach(files, i, entry)
    {
        if (read_entry(r, entry, err))
            return err_in(err, "files[%zu]", i);
    }
    if (r->count == 0)
        return err_set(err, ERR_INPUT, "lists no files");
    return receipt_sort(r, err) || read_trees(r, root, err) ||
                   receipt_check_trees(r, false, err)
               ? -1
               : 0;
}

int receipt_read(struct receipt *r, const char *path, struct err *err)
{
    json_t *root = json_read_file(path, err);

    if (!root)
        return -1;
    int ret = read_root(r, root, err);
    if (ret)
        err_in(err, "%s", path);
    json_decref(root);
    return ret;
}

json_t *receipt_file_json(const struct receipt_file *f)
{
    json_t *o =
        json_pack("{s:o, s:s?, s:s?}", "size",
                  f->size < 0 ? json_null() : json_integer((json_int_t)f->size),
                  "sha256", f->sha256[0] ? f->sha256 : NULL, "git_blob",
                  f->git_blob[0] ? f->git_blob : NULL);

    if (f->cache_name[0])
        json_object_set_new(o, "cache_name", json_string(f->cache_name));
    if (f->tensors[0])
        json_object_set_new(o, "tensors_sha256", json_string(f->tensors));
    return o;
}

/* The raw object: as text where it is UTF-8, else in hex. */
static void put_commit(json_t *root, const char *commit)
{
    json_t *text = json_string(commit);
    struct buf hex = BUF_INIT;

    if (text) {
        json_object_set_new(root, "commit", text);
        return;
    }
    for (const char *at = commit; *at; at++)
        buf_addf(&hex, "%02x", (unsigned char)*at);
    json_object_set_new(root, "commit_hex", json_string(hex.data));
    buf_release(&hex);
}

json_t *receipt_upstream(const struct receipt *r)
{
    return r->repository ? json_pack("{s:s, s:s}", "repository", r->repository,
                                     "revision", r->revision)
                         : json_null();
}

json_t *receipt_json(const struct receipt *r)
{
    json_t *root = json_object(), *files = json_array();

    json_object_set_new(root, "format", json_string("assay-receipt-1"));
    json_object_set_new(root, "strength", json_string(r->strength));
    json_object_set_new(root, "upstream", receipt_upstream(r));
    if (r->tree_count) {
        json_t *trees = json_array();

        for (size_t i = 0; i < r->tree_count; i++)
            json_array_append_new(trees, json_pack("{s:s, s:s}", "path",
                                                   r->trees[i].path, "id",
                                                   r->trees[i].id));
        json_object_set_new(root, "trees", trees);
    }
    if (r->commit)
        put_commit(root, r->commit);
    for (size_t i = 0; i < r->count; i++) {
        json_t *entry = json_object(), *rest = receipt_file_json(&r->files[i]);

        json_object_set_new(entry, "path", json_string(r->files[i].path));
        json_object_update(entry, rest);
        json_decref(rest);
        if (r->files[i].mode[0])
            json_object_set_new(entry, "mode", json_string(r->files[i].mode));
        if (r->files[i].tensor_list)
            json_object_set(entry, "tensors", r->files[i].tensor_list);
        json_array_append_new(files, entry);
    }
    json_object_set_new(root, "files", files);
    return root;
}
