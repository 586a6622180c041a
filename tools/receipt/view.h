#ifndef TOOLS_RECEIPT_VIEW_H
#define TOOLS_RECEIPT_VIEW_H

#include "base/err.h"
#include "base/mount.h"
#include "evidence/bundle.h"
#include "json/json.h"

#include <stdbool.h>

/*
 * A bundle read once, from end to end, without unpacking it.  What an auditor
 * asks for later is kept and can be read as BUNDLE/data/... (base/mount.h): the
 * JSON documents, the frozen files, and the captures until they are judged.
 *
 * The order of a bundle (formats.md 6.5: by path) decides what must be kept.
 * adjudicator/, candidate/, export/ and forward/ come before the gates and the
 * reference: one side of every comparison, kept to the end of its case in files
 * without a name (mount_spill()).  reference/ comes behind inputs/, one case
 * after the other: each is judged as soon as its last file has passed, and both
 * sides of it are let go.  So storage holds the candidate's captures and one
 * case of the reference's, memory 8 MiB of documents and the decoder's window.
 */
struct view {
    struct bundle bundle; /* names and digests of all that passed */
    struct mount *mount;
    json_t *document; /* the verdict again; NULL: why not */
    struct err why;
};

/* `is_drift`: keep compare/summary.json only, and judge nothing. */
int view_open(struct view *v, const char *bundle, bool is_drift,
              struct err *err);
void view_close(struct view *v);

/* Does a run keep its reference's digests only? */
bool view_has_digests_only(const struct bag_files *files);
#endif
