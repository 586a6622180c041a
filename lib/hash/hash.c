/* Digests, through OpenSSL. */
#include "hash/hash.h"

#include "base/bug.h"
#include "base/io.h"
#include "base/mem.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { STEP = 1 << 20 };

struct hash {
    EVP_MD_CTX *ctx;
};

struct hash *hash_new(enum hash_kind kind)
{
    struct hash *h = xcalloc(1, sizeof(*h));
    const EVP_MD *md = kind == HASH_SHA256   ? EVP_sha256()
                       : kind == HASH_SHA512 ? EVP_sha512()
                                             : EVP_sha1();

    h->ctx = EVP_MD_CTX_new();
    BUG_ON(!h->ctx || !EVP_DigestInit_ex(h->ctx, md, NULL));
    return h;
}

void hash_add(struct hash *h, const void *data, size_t len)
{
    BUG_ON(!EVP_DigestUpdate(h->ctx, data, len));
}

void hash_hex(struct hash *h, char *out)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char raw[EVP_MAX_MD_SIZE];
    unsigned int n;

    BUG_ON(!EVP_DigestFinal_ex(h->ctx, raw, &n));
    for (unsigned int i = 0; i < n; i++) {
        out[2 * i] = digits[raw[i] >> 4];
        out[2 * i + 1] = digits[raw[i] & 15];
    }
    out[2 * n] = '\0';
}

void hash_free(struct hash *h)
{
    if (!h)
        return;
    EVP_MD_CTX_free(h->ctx);
    free(h);
}

void hash_sha256(const void *data, size_t len, char out[HASH_SHA256_HEX])
{
    struct hash *h = hash_new(HASH_SHA256);

    hash_add(h, data, len);
    hash_hex(h, out);
    hash_free(h);
}

static struct hash *git_new(enum hash_kind hash, const char *kind, int64_t size)
{
    struct hash *h = hash_new(hash);
    char head[48];
    int n = snprintf(head, sizeof(head), "%s %lld", kind, (long long)size);

    hash_add(h, head, (size_t)n + 1);
    return h;
}

void hash_git(enum hash_kind hash, const char *kind, const void *data,
              size_t len, char out[HASH_GIT_HEX])
{
    struct hash *h = git_new(hash, kind, (int64_t)len);

    hash_add(h, data, len);
    hash_hex(h, out);
    hash_free(h);
}

/* One pass over a file for any of the two digests. */
static int digest_file(const char *path, enum hash_kind kind, char *sha256,
                       char *git_blob, int64_t *size, struct err *err)
{
    struct hash *sha = NULL, *git = NULL;
    char *block = NULL;
    int ret = -1;
    int fd = io_open(path, size, err);

    if (fd < 0)
        return -1;
    sha = hash_new(HASH_SHA256);
    git = git_blob ? git_new(kind, "blob", *size) : NULL;
    block = xmalloc(STEP);
    for (int64_t at = 0; at < *size; at += STEP) {
        size_t n = *size - at < STEP ? (size_t)(*size - at) : STEP;

        if (io_pread(fd, path, block, n, at, err))
            goto out;
        hash_add(sha, block, n);
        if (git)
            hash_add(git, block, n);
    }
    hash_hex(sha, sha256);
    if (git)
        hash_hex(git, git_blob);
    ret = 0;
out:
    free(block);
    hash_free(sha);
    hash_free(git);
    close(fd);
    return ret;
}

int hash_sha256_file(const char *path, char out[HASH_SHA256_HEX], int64_t *size,
                     struct err *err)
{
    int64_t ignored;

    return digest_file(path, HASH_SHA1, out, NULL, size ? size : &ignored, err);
}

int hash_file(const char *path, enum hash_kind hash,
              char sha256[HASH_SHA256_HEX], char git_blob[HASH_GIT_HEX],
              int64_t *size, struct err *err)
{
    return digest_file(path, hash, sha256, git_blob, size, err);
}
