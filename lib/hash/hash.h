#ifndef HASH_HASH_H
#define HASH_HASH_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/*
 * Digests, through OpenSSL.  Hex is lower case and NUL-terminated.
 */
enum { HASH_SHA256_HEX = 65, HASH_GIT_HEX = 65 };

/* Bytes as they come. */
struct hash;
enum hash_kind { HASH_SHA256, HASH_SHA1, HASH_SHA512 };
struct hash *hash_new(enum hash_kind kind);
void hash_add(struct hash *h, const void *data, size_t len);
void hash_hex(struct hash *h, char *out); /* ends it; 2 * size + 1 bytes */
void hash_free(struct hash *h);

void hash_sha256(const void *data, size_t len, char out[HASH_SHA256_HEX]);
int hash_sha256_file(const char *path, char out[HASH_SHA256_HEX], int64_t *size,
                     struct err *err);

/*
 * Git object ids: the digest of "KIND LENGTH\0" and the content; SHA-1 (40
 * digits), or SHA-256 (64) in repositories of that kind.
 */
void hash_git(enum hash_kind hash, const char *kind, const void *data,
              size_t len, char out[HASH_GIT_HEX]);

/* A file's SHA-256 and, in the same pass, its blob id by `hash`; git_blob NULL
 * leaves that out, and only one digest is computed. */
int hash_file(const char *path, enum hash_kind hash,
              char sha256[HASH_SHA256_HEX], char git_blob[HASH_GIT_HEX],
              int64_t *size, struct err *err);
#endif
