#ifndef RECEIPT_RECEIPT_INTERNAL_H
#define RECEIPT_RECEIPT_INTERNAL_H

#include "receipt/receipt.h"

/* A new entry, everything but its path still empty; valid until the next. */
struct receipt_file *receipt_add(struct receipt *r, const char *path);

/* Sorts, and checks what must hold of every receipt: paths that stay inside
 * the pack, none twice, each with a digest. */
int receipt_sort(struct receipt *r, struct err *err);

/* Order of files by path bytes, for qsort and bsearch. */
int receipt_by_path(const void *a, const void *b);

/* What is wrong with a path: it must stay below the pack (relative, no empty
 * part, no "." or "..") and print as one line of UTF-8; NULL: nothing. */
const char *receipt_path_fault(const char *path);

/* The blob id and size of the LFS pointer to this content. */
#define RECEIPT_POINTER_HEAD "version https://git-lfs.github.com/spec/v1"
void receipt_pointer(const struct receipt_file *f, enum hash_kind hash,
                     char blob[HASH_GIT_HEX], int64_t *size);

/* Is a blob of a Hub cache named by its digest?  True of any other file. */
bool receipt_has_its_name(const struct receipt_file *f);

/* A stated tree id. */
void receipt_add_tree(struct receipt *r, const char *path, const char *id);

/* A Git object id: 40 hex digits, or 64. */
int receipt_set_id(char out[HASH_GIT_HEX], const char *text, struct err *err);

/* A mode that a Git tree gives a file, a link or another repository. */
bool receipt_is_mode(const char *mode);

/* Lines of sha256sum, plain or --tag. */
bool receipt_is_sums(const char *text);
int receipt_import_sums(struct receipt *r, const char *text, struct err *err);

/* A download's folder of PATH.metadata files. */
int receipt_import_metadata(struct receipt *r, const char *dir,
                            struct err *err);

/* Is what the receipt states of trees and commit so?  Sets its strength when
 * `is_new`, else demands the one that it states. */
int receipt_check_trees(struct receipt *r, bool is_new, struct err *err);

/* cap - 1 hex digits of any case, written in lower case. */
int receipt_set_hex(char *out, size_t cap, const char *text, struct err *err);

/* The digest under a key, when it is there. */
int receipt_read_digest(const json_t *entry, const char *key, char *out,
                        size_t cap, struct err *err);

/* The digests of an unchanged file from the cache, into out; false when they
 * are not to be had.  `path` is the file's whole path. */
struct stat;
bool receipt_cache_find(const struct receipt_cache *c, const char *path,
                        const struct stat *st, bool needs_blob,
                        enum hash_kind hash, struct receipt_file *out);
void receipt_cache_keep(struct receipt_cache *c, const char *path);
void receipt_cache_add(struct receipt_cache *c, const char *path,
                       const struct stat *st, int64_t recorded,
                       const struct receipt_file *f);

/* Both sides sorted; `disk` is taken over. */
void receipt_compare(const struct receipt *r, struct receipt *disk,
                     struct receipt_report *out);
#endif
