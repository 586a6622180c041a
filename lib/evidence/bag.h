#ifndef EVIDENCE_BAG_H
#define EVIDENCE_BAG_H

#include "base/buf.h"
#include "base/err.h"
#include "hash/hash.h"
#include "json/json.h"

#include <stddef.h>
#include <stdint.h>

/*
 * Evidence as a BagIt 1.0 bag (formats.md 6.2):
 *
 *     bagit.txt bag-info.txt manifest-sha256.txt tagmanifest-sha256.txt
 *     data/...                               the payload
 *     timing.json, *.sig                     in no manifest
 *
 * Names follow formats.md 6.1: portable, unique ignoring case, regular files
 * and folders only, no links of either kind, no empty folder.
 */
struct bag_file {
    char *path; /* from the bag's root */
    char sha256[HASH_SHA256_HEX];
    int64_t size;
};

struct bag_files {
    struct bag_file *items; /* sorted by path bytes */
    size_t count;
};

#define BAG_FILES_INIT \
    {                  \
        NULL, 0        \
    }
void bag_files_release(struct bag_files *files);
const struct bag_file *bag_find(const struct bag_files *files,
                                const char *path);

/*
 * Seals a folder that holds data/ (and perhaps timing.json): writes bagit.txt,
 * the manifest, bag-info.txt and, last, the tag manifest.  `date` is the
 * Bagging-Date "YYYY-MM-DD", NULL to leave it out.  The External-Identifier
 * follows from the payload, so that two bags of the same payload are the same
 * bytes.  A bag that is sealed already is ERR_EXISTS; a name or file that may
 * not stand in evidence is ERR_INPUT.
 */
int bag_seal(const char *dir, const char *date, struct err *err);

/* A manifest's lines, sorted by path, sizes 0; the text is used up.  What is no
 * line, and a path that stands twice, become faults. */
void bag_manifest_parse(char *text, size_t len, const char *name,
                        struct bag_files *out, json_t *faults);

/* Paths that differ only in case become faults. */
void bag_check_folded(const struct bag_files *files, json_t *faults);

/*
 * Checks a bag as it lies on disk.  Every fault is appended to `faults` as one
 * line of text; `files` gets the payload as found, hashed.  -1 only when the
 * folder cannot be read at all.
 */
int bag_check(const char *dir, struct bag_files *files, json_t *faults,
              struct err *err);

/*
 * A bag that was read already, from wherever it lies.  A tag file that could
 * not be read has no text.  bag_judge() does what is left of bag_check() then:
 * the declaration, both manifests against what was found, the Payload-Oxum.
 */
enum bag_tag {
    BAG_DECLARATION,
    BAG_INFO,
    BAG_MANIFEST,
    BAG_TAG_MANIFEST,
    BAG_TAGS
};
extern const char *const bag_tag_names[BAG_TAGS];

struct bag {
    struct bag_files payload; /* as found, hashed; sorted */
    struct bag_files tags;    /* what lies beside data/; sorted */
    struct buf text[BAG_TAGS];
};

#define BAG_INIT                                   \
    {                                              \
        BAG_FILES_INIT, BAG_FILES_INIT,            \
        {                                          \
            BUF_INIT, BUF_INIT, BUF_INIT, BUF_INIT \
        }                                          \
    }
void bag_release(struct bag *bag);
void bag_judge(const struct bag *bag, json_t *faults);
#endif
