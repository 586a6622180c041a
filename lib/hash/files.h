#ifndef HASH_FILES_H
#define HASH_FILES_H

#include "base/err.h"
#include "hash/hash.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Many files side by side: on as many threads as there are processors that the
 * system lets us use (at most 8), and two at once on each where that helps
 * (sha256_pair.h).
 */
struct hash_file {
    const char *path;
    bool wants_blob; /* the Git blob id too */
    char sha256[HASH_SHA256_HEX];
    char git_blob[HASH_GIT_HEX]; /* "" unless wanted */
    int64_t size;
};

/* `kind` is that of blob ids.  The error told is that of the first file, in
 * their order, that could not be read. */
int hash_files(struct hash_file *files, size_t count, enum hash_kind kind,
               struct err *err);
#endif
