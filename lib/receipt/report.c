/* What verify found, as a document; and back. */
#include "receipt/receipt_internal.h"

#include <stdlib.h>
#include <string.h>

static const char *how(const struct receipt_row *row)
{
    if (!row->listed.path || !row->found.path)
        return NULL;
    return row->by_pointer && row->listed.sha256[0] ? "sha256, lfs pointer"
           : row->by_pointer                        ? "lfs pointer"
           : row->listed.sha256[0] && row->listed.git_blob[0]
               ? "sha256, git_blob"
           : row->listed.sha256[0] ? "sha256"
                                   : "git_blob";
}

static json_t *row_json(const struct receipt_row *row)
{
    const char *path = row->listed.path ? row->listed.path : row->found.path;
    json_t *o = json_pack("{s:s, s:s, s:s?}", "path", path, "verdict",
                          receipt_state_name(row->state), "by", how(row));

    json_object_set_new(o, "expected",
                        row->listed.path ? receipt_file_json(&row->listed)
                                         : json_null());
    json_object_set_new(o, "found",
                        row->found.path ? receipt_file_json(&row->found)
                                        : json_null());
    return o;
}

json_t *receipt_report_json(const struct receipt *r, const char *sha256,
                            const struct receipt_report *report)
{
    json_t *root = json_object(), *files = json_array();

    json_object_set_new(
        root, "verdict",
        json_string(report->same == report->count ? "same" : "differs"));
    json_object_set_new(root, "receipt_sha256", json_string(sha256));
    json_object_set_new(root, "strength", json_string(r->strength));
    json_object_set_new(root, "upstream", receipt_upstream(r));
    for (size_t i = 0; i < report->count; i++)
        json_array_append_new(files, row_json(&report->rows[i]));
    json_object_set_new(root, "files", files);
    return root;
}

/* The files that a document says were found, as a receipt of the disk. */
static int read_found(const json_t *document, struct receipt *disk,
                      struct err *err)
{
    json_t *files, *row, *found;
    size_t i;

    if (json_get_array(document, "files", &files, err))
        return -1;
    json_array_foreach(files, i, row)
    {
        const char *path, *text;

        if (json_get_str(row, "path", &path, err))
            return err_in(err, "files[%zu]", i);
        if (!json_has(row, "found"))
            continue;
        struct receipt_file *f = receipt_add(disk, path);
        if (json_get_object(row, "found", &found, err) ||
            json_get_int(found, "size", &f->size, err) ||
            json_get_str(found, "sha256", &text, err) ||
            receipt_set_hex(f->sha256, sizeof(f->sha256), text, err) ||
            (json_has(found, "git_blob") &&
             (json_get_str(found, "git_blob", &text, err) ||
              receipt_set_id(f->git_blob, text, err))) ||
            (json_has(found, "cache_name") &&
             (json_get_str(found, "cache_name", &text, err) ||
              receipt_set_id(f->cache_name, text, err))) ||
            receipt_read_digest(found, "tensors_sha256", f->tensors,
                                sizeof(f->tensors), err))
            return err_in(err, "'%s'", path);
    }
    return receipt_sort(disk, err);
}

int receipt_report_read(const struct receipt *r, const json_t *document,
                        struct receipt_report *out, struct err *err)
{
    struct receipt disk = RECEIPT_INIT;

    *out = (struct receipt_report){.disk = RECEIPT_INIT};
    if (read_found(document, &disk, err)) {
        receipt_release(&disk);
        return -1;
    }
    receipt_compare(r, &disk, out);
    return 0;
}
