#ifndef EVIDENCE_BUNDLE_H
#define EVIDENCE_BUNDLE_H

#include "base/err.h"
#include "evidence/bag.h"
#include "hash/hash.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A sealed run as one file, NAME.tar.zst (formats.md 6.5): one top folder named
 * as the run, then
 *
 *     bagit.txt bag-info.txt manifest-sha256.txt tagmanifest-sha256.txt
 *     [tagmanifest-sha256.txt.sig]
 *     data/...         by path bytes, a folder before its content
 *
 * timing.json stays behind.  Identity is the SHA-256 of the tar; the same run
 * gives the same tar on any machine.
 */

/*
 * Writes `out`, a new file, from a sealed run.  The run is checked first, and
 * every file again while it is read: what is not as it was sealed is refused.
 * Entries' time is SOURCE_DATE_EPOCH, else the Bagging-Date, else 0.
 */
int bundle_write(const char *run, const char *out, char sha256[HASH_SHA256_HEX],
                 struct err *err);

/* What is called while a bundle is read; paths are from the bag's root, that of
 * the top folder itself is "".  -1 ends the reading.  Any may be NULL. */
struct bundle_visitor {
    void *context;
    /* the manifest, before the first entry that it lists */
    int (*listed)(void *context, const struct bag_files *files,
                  struct err *err);
    int (*begin)(void *context, const char *path, bool is_dir, int64_t size,
                 struct err *err);
    int (*data)(void *context, const void *data, size_t len, struct err *err);
    int (*end)(void *context, struct err *err); /* of a file */
};

struct bundle {
    char *name;        /* the top folder */
    struct bag bag;    /* as found, hashed: for bag_judge() */
    char *first_other; /* a payload file that is not as the manifest says;
                          NULL: all are */
    char sha256[HASH_SHA256_HEX];
    int64_t size; /* of the tar */
};
void bundle_release(struct bundle *b);

/*
 * Reads a bundle from end to end in one pass; nothing of the payload is kept.
 * Refused (ERR_INPUT): whatever tar.h refuses; a name that may not stand in
 * evidence; an entry in another place than the one above, which covers a second
 * entry of a name, a second top folder, an entry in no manifest and a manifest
 * line without entry; other bytes of tar than bundle_write() would put; more
 * bytes than `limit`, 0 for the Payload-Oxum and 64 MiB.  Digests that differ
 * are no refusal: see first_other.
 */
int bundle_read(const char *path, int64_t limit,
                const struct bundle_visitor *visitor, struct bundle *out,
                struct err *err);

/*
 * Unpacks a bundle into a new folder, which appears whole or not at all: read
 * once from end to end before anything is written, then written beneath one
 * directory descriptor, each file exclusively, never through a link.  A digest
 * that differs is ERR_INPUT.
 */
int bundle_extract(const char *path, const char *dir, struct bundle *out,
                   struct err *err);

/* The same without the first reading and without judging digests: for an
 * auditor who runs programs on the files, into a folder of his own that is
 * there and empty. */
int bundle_spill(const char *path, const char *dir, struct bundle *out,
                 struct err *err);
#endif
