/*
 * Git trees, computed again from the files up: an entry is "MODE NAME\0" and
 * the raw id; entries go by name, a folder as if "/" stood behind its name,
 * which is the order of the files' whole paths.
 */
#include "base/hex.h"
#include "base/io.h"
#include "base/mem.h"
#include "receipt/receipt_internal.h"

#include <stdlib.h>
#include <string.h>

enum { COMMIT_CAP = 1 << 20, MAX_DEPTH = 64 };

void receipt_add_tree(struct receipt *r, const char *path, const char *id)
{
    if ((r->tree_count & (r->tree_count - 1)) == 0)
        r->trees = xrealloc(r->trees, (r->tree_count ? r->tree_count * 2 : 1) *
                                          sizeof(*r->trees));
    struct receipt_tree *t = &r->trees[r->tree_count++];

    t->path = xstrdup(path);
    snprintf(t->id, sizeof(t->id), "%s", id);
}

static int by_path(const void *a, const void *b)
{
    const struct receipt_tree *x = a, *y = b;

    return strcmp(x->path, y->path);
}

enum hash_kind receipt_hash(const struct receipt *r)
{
    for (size_t i = 0; i < r->count; i++)
        if (r->files[i].git_blob[0])
            return strlen(r->files[i].git_blob) == 64 ? HASH_SHA256 : HASH_SHA1;
    return HASH_SHA1;
}

static void add_entry(struct buf *tree, const char *mode, const char *name,
                      size_t len, const char *id)
{
    buf_addstr(tree, mode);
    buf_addch(tree, ' ');
    buf_add(tree, name, len);
    buf_addch(tree, '\0');
    for (size_t i = 0; id[i]; i += 2)
        buf_addch(tree, hex_digit(id[i]) * 16 + hex_digit(id[i + 1]));
}

/* Called with each folder's computed id. */
struct visit {
    const struct receipt *r;
    int (*folder)(struct visit *v, const char *path, size_t len, const char *id,
                  struct err *err);
    size_t assumed; /* files whose mode was taken to be 100644 */
};

/* The tree of the files [first, last), whose paths share `at` bytes. */
static int compute(struct visit *v, size_t first, size_t last, size_t at,
                   int depth, char out[HASH_GIT_HEX], struct err *err)
{
    const struct receipt_file *files = v->r->files;
    struct buf tree = BUF_INIT;
    int ret = 0;

    if (depth > MAX_DEPTH)
        return err_set(err, ERR_INPUT, "folders nested deeper than %d",
                       (int)MAX_DEPTH);
    for (size_t i = first; i < last && ret == 0;) {
        const char *name = files[i].path + at;
        size_t n = strcspn(name, "/"), end = i + 1;
        char id[HASH_GIT_HEX];

        if (!name[n]) {
            if (!files[i].git_blob[0])
                ret = err_set(err, ERR_INPUT, "'%s' has no blob id",
                              files[i].path);
            v->assumed += !files[i].mode[0];
            add_entry(&tree, files[i].mode[0] ? files[i].mode : "100644", name,
                      n, files[i].git_blob);
            i++;
            continue;
        }
        while (end < last && strncmp(files[end].path + at, name, n + 1) == 0)
            end++;
        ret = compute(v, i, end, at + n + 1, depth + 1, id, err);
        if (ret == 0 && v->folder)
            ret = v->folder(v, files[i].path, at + n, id, err);
        if (ret == 0)
            add_entry(&tree, "40000", name, n, id);
        i = end;
    }
    if (ret == 0)
        hash_git(receipt_hash(v->r), "tree", tree.data ? tree.data : "",
                 tree.len, out);
    buf_release(&tree);
    return ret;
}

int receipt_root(const struct receipt *r, char out[HASH_GIT_HEX],
                 struct err *err)
{
    struct visit v = {.r = r};

    return compute(&v, 0, r->count, 0, 0, out, err);
}

/* The id stated of a folder; NULL when none is. */
static const char *stated(const struct receipt *r, const char *path, size_t len)
{
    char *name = xstrndup(path, len);
    struct receipt_tree key = {.path = name};
    const struct receipt_tree *t =
        r->tree_count
            ? bsearch(&key, r->trees, r->tree_count, sizeof(key), by_path)
            : NULL;

    free(name);
    return t && t->id[0] ? t->id : NULL;
}

static int check_folder(struct visit *v, const char *path, size_t len,
                        const char *id, struct err *err)
{
    const char *want = stated(v->r, path, len);

    return !want || strcmp(want, id) == 0
               ? 0
               : err_set(err, ERR_INPUT,
                         "folder '%.*s': its files make tree %s, %s is stated: "
                         "a file was dropped, added or changed",
                         (int)len, path, id, want);
}

/* The id in the line "tree ID" that a commit begins with. */
static int commit_tree(const char *commit, char out[HASH_GIT_HEX],
                       struct err *err)
{
    size_t n = strncmp(commit, "tree ", 5) == 0
                   ? strspn(commit + 5, "0123456789abcdef")
                   : 0;

    if ((n != 40 && n != 64) || commit[5 + n] != '\n')
        return err_set(err, ERR_INPUT, "the commit object names no tree");
    memcpy(out, commit + 5, n);
    out[n] = '\0';
    return 0;
}

static int check_commit(const struct receipt *r, const char *root,
                        struct err *err)
{
    char id[HASH_GIT_HEX], tree[HASH_GIT_HEX];

    hash_git(receipt_hash(r), "commit", r->commit, strlen(r->commit), id);
    if (!r->revision || strcmp(id, r->revision) != 0)
        return err_set(err, ERR_INPUT,
                       "the commit object is %s, the revision is %s", id,
                       r->revision ? r->revision : "not named");
    if (commit_tree(r->commit, tree, err))
        return -1;
    return strcmp(tree, root) == 0
               ? 0
               : err_set(err, ERR_INPUT,
                         "the files make tree %s, the commit's is %s: a file "
                         "was dropped, added or changed",
                         root, tree);
}

static int check_ids(const struct receipt *r, struct err *err)
{
    size_t n = receipt_hash(r) == HASH_SHA256 ? 64 : 40;

    for (size_t i = 0; i < r->count; i++)
        if (r->files[i].git_blob[0] && strlen(r->files[i].git_blob) != n)
            return err_set(err, ERR_INPUT,
                           "'%s': SHA-1 and SHA-256 ids beside each other",
                           r->files[i].path);
    for (size_t i = 1; i < r->tree_count; i++)
        if (strcmp(r->trees[i - 1].path, r->trees[i].path) == 0)
            return err_set(err, ERR_INPUT, "folder '%s' is listed twice",
                           r->trees[i].path);
    return 0;
}

static bool has_blobs(const struct receipt *r)
{
    for (size_t i = 0; i < r->count; i++)
        if (!r->files[i].git_blob[0])
            return false;
    return true;
}

/* What the trees and the commit make of the receipt: its strength. */
static int derive(const struct receipt *r, struct visit *v,
                  const char **strength, struct err *err)
{
    char root[HASH_GIT_HEX];
    const char *want = stated(r, "", 0);

    *v = (struct visit){.r = r, .folder = check_folder};
    *strength = "listing";
    if (!has_blobs(r))
        return r->commit ? err_set(err, ERR_INPUT,
                                   "a commit, but files without blob ids")
                         : 0;
    if (compute(v, 0, r->count, 0, 0, root, err))
        return -1;
    if (want && strcmp(want, root) != 0)
        return err_set(err, ERR_INPUT,
                       "the files make tree %s, %s is stated: a file was "
                       "dropped, added or changed",
                       root, want);
    if (r->commit) {
        if (check_commit(r, root, err))
            return -1;
        *strength = "commit";
    } else if (want) {
        *strength = "tree";
    }
    return 0;
}

int receipt_check_trees(struct receipt *r, bool is_new, struct err *err)
{
    struct visit v;
    const char *strength;
    struct err why = ERR_INIT;

    if (r->tree_count)
        qsort(r->trees, r->tree_count, sizeof(*r->trees), by_path);
    if (check_ids(r, err))
        return -1;
    if (!is_new && !r->commit && r->tree_count == 0)
        return strcmp(r->strength, "tree") == 0 ||
                       strcmp(r->strength, "commit") == 0
                   ? err_set(err, ERR_INPUT,
                             "states strength '%s', holds no %s", r->strength,
                             r->strength)
                   : 0;
    if (derive(r, &v, &strength, &why) == 0) {
        if (!is_new && strcmp(strength, r->strength) != 0)
            return err_set(err, ERR_INPUT,
                           "states strength '%s', what it holds makes '%s'",
                           r->strength, strength);
        r->strength = strength;
        return 0;
    }
    /* an executable among files whose modes are not told looks like this */
    if (!is_new || !v.assumed || r->commit || stated(r, "", 0))
        return err_set(err, why.code, "%s%s", why.text,
                       v.assumed ? " (the listing tells no modes)" : "");
    for (size_t i = 0; i < r->tree_count; i++)
        free(r->trees[i].path);
    r->tree_count = 0;
    r->strength = "listing";
    return 0;
}

/* Lines of `git ls-tree -r -t -d`, and the root's bare id. */
static int read_trees(struct receipt *r, const char *path, struct err *err)
{
    struct buf text = BUF_INIT;
    char *save = NULL;
    int ret = io_read_file(path, IO_JSON_CAP, &text, err);

    for (char *line = ret == 0 && text.len ? strtok_r(text.data, "\n", &save)
                                           : NULL;
         line && ret == 0; line = strtok_r(NULL, "\n", &save)) {
        char *tab = strchr(line, '\t');
        char mode[8], kind[8], word[72], id[HASH_GIT_HEX];
        int n;

        if (tab)
            *tab = '\0';
        n = sscanf(line, "%7s %7s %71s", mode, kind, word);
        if (tab && n == 3 && strcmp(kind, "commit") == 0)
            continue; /* another repository, which the listing has */
        if (!tab)
            ret = receipt_set_id(id, line, err);
        else if (n == 3 && strcmp(kind, "tree") == 0)
            ret = receipt_set_id(id, word, err);
        else
            ret = err_set(err, ERR_INPUT,
                          "a line is not 'mode tree id TAB path'");
        if (ret == 0 &&
            !stated(r, tab ? tab + 1 : "", tab ? strlen(tab + 1) : 0)) {
            receipt_add_tree(r, tab ? tab + 1 : "", id);
            qsort(r->trees, r->tree_count, sizeof(*r->trees), by_path);
        }
        if (ret)
            err_in(err, "%s", path);
    }
    buf_release(&text);
    return ret;
}

int receipt_strengthen(struct receipt *r, const char *trees_file,
                       const char *commit_file, struct err *err)
{
    struct buf text = BUF_INIT;
    int ret = -1;

    if (r->tree_count)
        qsort(r->trees, r->tree_count, sizeof(*r->trees), by_path);
    if (trees_file && read_trees(r, trees_file, err))
        goto out;
    if (commit_file) {
        if (io_read_file(commit_file, COMMIT_CAP, &text, err))
            goto out;
        if (!text.len || memchr(text.data, '\0', text.len)) {
            err_set(err, ERR_INPUT, "%s: not a commit object", commit_file);
            goto out;
        }
        r->commit = xstrdup(text.data);
    }
    ret = receipt_check_trees(r, true, err);
out:
    buf_release(&text);
    return ret;
}
