#ifndef GATES_CAPTURE_H
#define GATES_CAPTURE_H

#include "base/buf.h"
#include "base/err.h"
#include "gates/metrics.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * What one implementation dumped.  A capture is one .safetensors file, or a
 * folder whose .safetensors are read together; a folder of captures holds one
 * folder a case.  Several paths are laid over one another, case by case: a
 * tensor of a later path hides one of the same name in an earlier path.  Inside
 * one path a name twice is refused.
 *
 * A reference must be sound: whatever cannot be read is an error.  Of a
 * candidate, what cannot be read is remembered as trouble, and fails the gates
 * that would have needed it; only what the system refuses (ERR_SYSTEM: no
 * memory, no descriptors) is an error there too, because it says nothing about
 * the file.
 *
 * In messages that go into reports a path is written by role, CANDIDATE/...
 * (CANDIDATE2/... for the second path), so that they are the same wherever the
 * files lie.
 */
struct capture_paths {
    const char *role; /* "REFERENCE" */
    const char *const *paths;
    size_t count;
    /* Comma-separated names, with or without .safetensors: only these are read
     * of a folder.  A candidate's folder that holds none of them is read
     * whole: another engine names its files as it likes.  NULL is all. */
    const char *files;
    bool may_fail; /* a candidate */
};

struct capture_set;
struct capture_set *capture_set_open(const struct capture_paths *from,
                                     struct err *err);
void capture_set_close(struct capture_set *set); /* NULL is fine */

/* One capture rather than a folder of them?  Its only case then has the name of
 * the file or folder, or "case" when that is no name for a case. */
bool capture_set_is_single(const struct capture_set *set);

size_t capture_set_count(const struct capture_set *set);
const char *capture_set_name(const struct capture_set *set, size_t i);
bool capture_set_has(const struct capture_set *set, const char *name);
/* Gives a single capture's case another name. */
void capture_set_rename(struct capture_set *set, const char *name);

/* Why some path of a candidate is not there at all; "" when all are. */
const char *capture_set_trouble(const struct capture_set *set);

/* Refuses (ERR_INPUT) one file on both sides: device and inode. */
int capture_set_apart(const struct capture_set *a, const struct capture_set *b,
                      struct err *err);

/* Visits every file that would be read of a case (NULL: of all), in order of
 * cases and paths. */
int capture_set_files(const struct capture_set *set, const char *name,
                      int (*visit)(const char *path, void *context,
                                   struct err *err),
                      void *context, struct err *err);

/* One case of it, its files open.  Release with capture_close(). */
struct capture;
struct capture *capture_open(const struct capture_set *set, const char *name,
                             struct err *err);
void capture_close(struct capture *c); /* NULL is fine */

/* Fills `out` and returns true when the capture holds that tensor. */
bool capture_find(const struct capture *c, const char *tensor,
                  struct tensor_source *out);

/* Names of all its tensors that match a pattern (fnmatch), sorted by bytes;
 * they live as long as the capture.  The array is the caller's to free. */
size_t capture_match(const struct capture *c, const char *pattern,
                     const char ***names);

/* prompt.txt beside its tensors, the last path's that has one; false when there
 * is none that can be read. */
bool capture_prompt(const struct capture *c, struct buf *out);

/*
 * Files of b that are, byte for byte, files of a, as far as they hold one of
 * the tensors (a NULL ends the list): [{"reference": role, "candidate": role,
 * "sha256"}], a new reference; NULL on ERR_SYSTEM.
 */
json_t *capture_same_bytes(const struct capture *a, const struct capture *b,
                           const char *const *tensors, struct err *err);

/* What could not be read of it, "; " between; "" when all could. */
const char *capture_trouble(const struct capture *c);

/* Why it may hold less than one expects: paths without a folder for this case,
 * files that --files left out; "" when nothing of the kind. */
const char *capture_remark(const struct capture *c);
#endif
