#ifndef EVIDENCE_BUNDLE_INTERNAL_H
#define EVIDENCE_BUNDLE_INTERNAL_H

#include "evidence/bundle.h"

/* The order of a bundle's entries: written by, and read against. */

enum { BUNDLE_STEP = 1 << 20, BUNDLE_TAG_CAP = 64 << 20 };
#define BUNDLE_SIGNATURE "tagmanifest-sha256.txt.sig"

/* One entry: its name from the bag's root. */
struct step {
    char *path;
    const char *sha256; /* NULL: a folder, or a tag file */
    int64_t size;
    bool is_dir;
};

struct plan {
    struct step *steps;
    size_t count;
};

struct step *plan_add(struct plan *p, const char *path, size_t len);
void plan_release(struct plan *p);

/* Adds the payload, sorted by path, and the folders on the way to it.  The
 * digests stay those of `files`. */
int plan_payload(struct plan *p, const struct bag_files *files,
                 struct err *err);

/* "TOP/path", with a slash behind a folder; freed by the caller. */
char *plan_name(const char *top, const struct step *s);

/* The tar's length as the writer makes it. */
int plan_tar_size(const struct plan *p, const char *top, const char *path,
                  int64_t *size, struct err *err);

/* The value of a line of bag-info.txt ("Payload-Oxum: "), inside text; NULL
 * when there is none. */
const char *bundle_info(const struct buf *text, const char *key, size_t *len);
#endif
