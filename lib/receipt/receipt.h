#ifndef RECEIPT_RECEIPT_H
#define RECEIPT_RECEIPT_H

#include "base/err.h"
#include "hash/hash.h"
#include "json/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A source receipt: who the bytes of a pack are.
 *
 *     {"format": "assay-receipt-1", "strength": "listing",
 *      "upstream": {"repository": "...", "revision": "..."},      or null
 *      "trees": [{"path", "id"}], "commit": "...",     where known; commit_hex
 *                                                      when it is no UTF-8
 *      "files": [{"path", "size", "sha256", "git_blob", "mode",
 *                 "tensors_sha256", "tensors"}]}                 by path
 *
 * Strength says where it comes from: "recorded" (the bytes that were there);
 * "listing" (upstream's own list of hashes); "tree" (a listing whose Git tree
 * ids, computed again from the files up, are those that upstream states, so
 * that no file is dropped or added); "commit" (the raw commit object is there,
 * its id is the revision and its tree is the one computed: the revision alone
 * then proves every file).  receipt_read() computes all of it again and refuses
 * a receipt that states more than it holds.  A listing may lack one digest of
 * a file (null), never both.  git_blob is the id of the file's content or, for
 * a file that upstream keeps in LFS, that of its pointer (formats.md 2.2). mode
 * is 100644, 100755, 120000 (a link: its text is the content) or 160000
 * (another repository: git_blob is its commit, and nothing of it is looked at).
 * tensors_sha256, where there is one, is the digest of what a .safetensors file
 * holds, however it is laid out; it decides nothing, it only explains.
 */
struct receipt_file {
    char *path;                       /* below the pack, '/' between parts */
    int64_t size;                     /* of the content, or of its pointer; -1
                                         when not known */
    char sha256[HASH_SHA256_HEX];     /* "" when not known */
    char git_blob[HASH_GIT_HEX];      /* "" when not known */
    char tensors[HASH_SHA256_HEX];    /* "" when not known */
    char mode[7];                     /* of its Git entry; "" when not known */
    char cache_name[HASH_SHA256_HEX]; /* found: the blob's name in a Hub cache,
                                         which is its digest; else "" */
    bool is_link;        /* found: a link whose text is the content */
    json_t *tensor_list; /* [{"name", "dtype", "shape", "sha256"}] or NULL; the
                            receipt's that read or recorded it */
};

/* A folder and the id of its Git tree, as upstream states it; path "" is the
 * root. */
struct receipt_tree {
    char *path;
    char id[HASH_GIT_HEX];
};

struct receipt {
    char *repository, *revision; /* NULL: no upstream was named */
    const char *strength;        /* one of the four above */
    struct receipt_file *files;  /* sorted by path bytes */
    size_t count;
    struct receipt_tree *trees; /* as stated; sorted by path bytes */
    size_t tree_count;
    char *commit; /* the raw commit object, or NULL */
};

#define RECEIPT_INIT                                   \
    {                                                  \
        NULL, NULL, "recorded", NULL, 0, NULL, 0, NULL \
    }

void receipt_release(struct receipt *r);

/* "REPO@REVISION" into repository and revision. */
int receipt_set_upstream(struct receipt *r, const char *text, struct err *err);

/*
 * Hashes every file of a pack.  Left out at its root: .git, .cache, .locks and
 * CACHEDIR.TAG.  Refused: an LFS pointer in a file's place, a special file, and
 * a link that leads out of the pack (out of the repository's folder, when the
 * pack is a snapshot in a Hub cache), a blob of such a cache whose name is not
 * its digest.
 */
int receipt_record(struct receipt *r, const char *pack, struct err *err);

/*
 * From upstream's own listing, recognised by its form (formats.md 2.3): Hub
 * tree JSON, Hub model info, a Hub cache list, `git ls-tree -r -t -l` text
 * (also with -z), the lines of sha256sum (also --tag), or a download's folder
 * of .metadata files (PACK/.cache/huggingface/download).  An answer saved with
 * its header (curl -i), or beside it as LISTING.headers (curl -D), is refused
 * when its Link header names a next page.
 */
int receipt_import(struct receipt *r, const char *listing, struct err *err);

/*
 * Makes an imported receipt as strong as it can be: its trees (more of them may
 * come from a file, `git ls-tree -r -t -d REV` lines and the root's bare id)
 * are computed again, and the raw commit object (`git cat-file commit REV`) is
 * put in.  Either file may be NULL.  A stated id that is not the one computed
 * is ERR_INPUT, except where the listing tells no modes and an executable file
 * could be the reason: then the receipt stays a listing.
 */
int receipt_strengthen(struct receipt *r, const char *trees_file,
                       const char *commit_file, struct err *err);

/* The root's tree id, computed from the files; -1 when a blob id is missing. */
int receipt_root(const struct receipt *r, char out[HASH_GIT_HEX],
                 struct err *err);

int receipt_read(struct receipt *r, const char *path, struct err *err);
json_t *receipt_json(const struct receipt *r);

/* {"repository", "revision"}, or null when no upstream was named. */
json_t *receipt_upstream(const struct receipt *r);

/* One file of a comparison with the pack on disk. */
enum receipt_state {
    RECEIPT_SAME,
    RECEIPT_DIFFERS,
    RECEIPT_MISSING,
    RECEIPT_EXTRA
};
/* size, sha256 and git_blob, null where not known; tensors_sha256. */
json_t *receipt_file_json(const struct receipt_file *f);

const char *receipt_state_name(enum receipt_state state);

/* SHA-1, or SHA-256 when the receipt's ids have 64 digits. */
enum hash_kind receipt_hash(const struct receipt *r);

/* Is a file of this size and these digests the listed one, by its own blob id
 * or by that of its LFS pointer? */
bool receipt_is_same(const struct receipt_file *listed, enum hash_kind hash,
                     const struct receipt_file *found);

struct receipt_row {
    enum receipt_state state;
    bool by_pointer; /* the listed blob id is that of its LFS pointer */
    struct receipt_file listed, found; /* path NULL: not there */
};

struct receipt_report {
    struct receipt_row *rows; /* sorted by path */
    size_t count, same;
    struct receipt disk; /* owns the found side */
};

/*
 * Every file of the receipt against the pack, and every file of the pack
 * against the receipt.  Returns 0 whatever was found; -1 when it could not be
 * answered (an LFS pointer in a file's place among it).  The rows borrow from
 * `r`, which must outlive the report.
 */
int receipt_verify(const struct receipt *r, const char *pack,
                   struct receipt_report *out, struct err *err);

/*
 * The same with a file of what was hashed before (cache.c draws it), read when
 * opened if it is there, written anew by receipt_cache_save().  A file is not
 * hashed again when device, inode, size, change and modification times are what
 * they were, and older than the record.  `full` believes nothing of it, but
 * writes it.  `skipped` counts what was believed.
 */
struct receipt_cache {
    const char *path;
    json_t *old, *fresh; /* entries by the file's whole path */
    bool full;
    size_t skipped;
};
#define RECEIPT_CACHE_INIT         \
    {                              \
        NULL, NULL, NULL, false, 0 \
    }
int receipt_cache_open(struct receipt_cache *c, const char *path,
                       struct err *err);
int receipt_cache_save(struct receipt_cache *c, struct err *err);
void receipt_cache_release(struct receipt_cache *c);
int receipt_verify_cached(const struct receipt *r, const char *pack,
                          struct receipt_cache *cache,
                          struct receipt_report *out, struct err *err);
void receipt_report_release(struct receipt_report *report);

/*
 * The report as a document; `sha256` is that of the receipt's file:
 *
 *     {"verdict": "same" | "differs", "receipt_sha256", "strength", "upstream",
 *      "files": [{"path", "verdict", "by", "expected", "found"}]}
 */
json_t *receipt_report_json(const struct receipt *r, const char *sha256,
                            const struct receipt_report *report);

/* The report again, from the document's found side alone: for an auditor, who
 * believes what was found but not what was concluded. */
int receipt_report_read(const struct receipt *r, const json_t *document,
                        struct receipt_report *out, struct err *err);
#endif
