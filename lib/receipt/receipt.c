/* Source receipts: files in their order, and two lists side by side. */
#include "receipt/receipt.h"

#include "base/mem.h"
#include "receipt/receipt_internal.h"

#include <stdlib.h>
#include <string.h>

void receipt_release(struct receipt *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->count; i++) {
        free(r->files[i].path);
        json_decref(r->files[i].tensor_list);
    }
    free(r->files);
    for (size_t i = 0; i < r->tree_count; i++)
        free(r->trees[i].path);
    free(r->trees);
    free(r->commit);
    free(r->repository);
    free(r->revision);
    *r = (struct receipt)RECEIPT_INIT;
}

int receipt_set_upstream(struct receipt *r, const char *text, struct err *err)
{
    const char *at = strrchr(text, '@');

    if (!at || at == text || !at[1])
        return err_set(err, ERR_USAGE,
                       "--upstream takes REPOSITORY@REVISION, not '%s'", text);
    free(r->repository);
    free(r->revision);
    r->repository = xstrndup(text, (size_t)(at - text));
    r->revision = xstrdup(at + 1);
    return 0;
}

struct receipt_file *receipt_add(struct receipt *r, const char *path)
{
    if ((r->count & (r->count - 1)) == 0)
        r->files = xrealloc(r->files,
                            (r->count ? r->count * 2 : 1) * sizeof(*r->files));
    struct receipt_file *f = &r->files[r->count++];

    *f = (struct receipt_file){.path = xstrdup(path)};
    return f;
}

int receipt_by_path(const void *a, const void *b)
{
    const struct receipt_file *x = a, *y = b;

    return strcmp(x->path, y->path);
}

const char *receipt_path_fault(const char *path)
{
    json_t *text = json_string(path);

    if (!text)
        return "is not UTF-8";
    json_decref(text);
    for (const char *at = path; *at; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            return "has a control character";
    for (;;) {
        size_t n = strcspn(path, "/");

        if (n == 0 || (n == 1 && path[0] == '.') ||
            (n == 2 && path[0] == '.' && path[1] == '.'))
            return "does not stay inside the pack";
        if (!path[n])
            return NULL;
        path += n + 1;
    }
}

int receipt_sort(struct receipt *r, struct err *err)
{
    if (r->count)
        qsort(r->files, r->count, sizeof(*r->files), receipt_by_path);
    for (size_t i = 0; i < r->count; i++) {
        const char *path = r->files[i].path, *fault = receipt_path_fault(path);

        if (fault)
            return err_set(err, ERR_INPUT, "the path of file %zu %s", i + 1,
                           fault);
        if (i && strcmp(r->files[i - 1].path, path) == 0)
            return err_set(err, ERR_INPUT, "path '%s' is listed twice", path);
        if (!r->files[i].sha256[0] && !r->files[i].git_blob[0])
            return err_set(err, ERR_INPUT, "path '%s' has no digest", path);
    }
    return 0;
}

void receipt_pointer(const struct receipt_file *f, enum hash_kind hash,
                     char blob[HASH_GIT_HEX], int64_t *size)
{
    char *text = xasprintf(RECEIPT_POINTER_HEAD "\noid sha256:%s\nsize %lld\n",
                           f->sha256, (long long)f->size);

    *size = (int64_t)strlen(text);
    hash_git(hash, "blob", text, *size > 0 ? (size_t)*size : 0, blob);
    free(text);
}

const char *receipt_state_name(enum receipt_state state)
{
    static const char *const names[] = {"same", "differs", "missing", "extra"};

    return names[state];
}

bool receipt_has_its_name(const struct receipt_file *f)
{
    return !f->cache_name[0] || strcmp(f->cache_name, f->sha256) == 0 ||
           strcmp(f->cache_name, f->git_blob) == 0;
}

/* Is it the listed content?  by_pointer: the listed blob id is that of the LFS
 * pointer to it. */
static bool is_listed(const struct receipt_file *want, enum hash_kind hash,
                      const struct receipt_file *got, bool *by_pointer)
{
    char pointer[HASH_GIT_HEX];
    int64_t pointer_size;
    bool is_sha = !want->sha256[0] || strcmp(want->sha256, got->sha256) == 0;
    bool is_blob =
        !want->git_blob[0] || strcmp(want->git_blob, got->git_blob) == 0;
    bool is_size = want->size < 0 || want->size == got->size;

    *by_pointer = false;
    if (!is_blob) {
        receipt_pointer(got, hash, pointer, &pointer_size);
        *by_pointer = strcmp(want->git_blob, pointer) == 0;
        is_blob = *by_pointer;
        is_size |= *by_pointer && want->size == pointer_size;
    }
    return is_sha && is_blob && is_size && receipt_has_its_name(got);
}

bool receipt_is_same(const struct receipt_file *listed, enum hash_kind hash,
                     const struct receipt_file *found)
{
    bool by_pointer;

    return is_listed(listed, hash, found, &by_pointer);
}

static void compare_one(struct receipt_row *row, enum hash_kind hash)
{
    row->state = is_listed(&row->listed, hash, &row->found, &row->by_pointer)
                     ? RECEIPT_SAME
                     : RECEIPT_DIFFERS;
}

void receipt_compare(const struct receipt *r, struct receipt *disk,
                     struct receipt_report *out)
{
    size_t i = 0, j = 0;

    *out = (struct receipt_report){.disk = *disk};
    *disk = (struct receipt)RECEIPT_INIT;
    out->rows = xcalloc(r->count + out->disk.count + 1, sizeof(*out->rows));
    while (i < r->count || j < out->disk.count) {
        struct receipt_row *row = &out->rows[out->count++];
        int order = i == r->count ? 1
                    : j == out->disk.count
                        ? -1
                        : strcmp(r->files[i].path, out->disk.files[j].path);

        if (order <= 0)
            row->listed = r->files[i++];
        if (order >= 0)
            row->found = out->disk.files[j++];
        row->state = order > 0 ? RECEIPT_EXTRA
                     : strcmp(row->listed.mode, "160000") == 0
                         ? RECEIPT_SAME /* nothing of it is looked at */
                         : RECEIPT_MISSING;
        if (order == 0)
            compare_one(row, receipt_hash(r));
        out->same += row->state == RECEIPT_SAME;
    }
}

void receipt_report_release(struct receipt_report *report)
{
    free(report->rows);
    receipt_release(&report->disk);
    *report = (struct receipt_report){.disk = RECEIPT_INIT};
}
