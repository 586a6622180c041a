/*
 * SSH signatures.  The blob of one:
 *
 *     "SSHSIG" u32:1 string:key string:namespace string:"" string:hash
 *     string:signature          key       = string:"ssh-ed25519" string:32
 * bytes signature = string:"ssh-ed25519" string:64 bytes
 *
 * What is signed:
 *
 *     "SSHSIG" string:namespace string:"" string:hash string:H(message)
 */
#include "sign/sign.h"

#include "base/base64.h"
#include "base/io.h"
#include "base/mem.h"
#include "sign/sign_internal.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_FILE_CAP = 64 << 10, SIGNATURE_CAP = 64 << 10 };

static const char magic[] = "SSHSIG"; /* without its NUL */
static const char kind[] = "ssh-ed25519";
static const char armor_name[] = "SSH SIGNATURE";

/* The bytes that a key signs. */
static int signed_bytes(const char *space, const char *hash,
                        const void *message, size_t len, struct buf *out,
                        struct err *err)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int n;

    if (!EVP_Digest(message, len, digest, &n,
                    strcmp(hash, "sha256") == 0 ? EVP_sha256() : EVP_sha512(),
                    NULL))
        return err_set(err, ERR_SYSTEM, "%s is not to be had", hash);
    buf_add(out, magic, 6);
    wire_put(out, space, strlen(space));
    wire_put(out, "", 0);
    wire_put(out, hash, strlen(hash));
    wire_put(out, digest, n);
    return 0;
}

/* ---------------------------------------------------------- private keys */

/*
 * "openssh-key-v1\0" string:cipher string:kdf string:options u32:1 string:key
 * string:{u32 check, u32 check, string:"ssh-ed25519", string:32 bytes,
 * string:{32 bytes seed, 32 bytes key}, string:comment, bytes 1 2 3 ...}
 */
static int parse_private(const struct buf *blob,
                         unsigned char seed[SIGN_KEY_BYTES],
                         unsigned char key[SIGN_KEY_BYTES], struct err *err)
{
    static const char head[] = "openssh-key-v1";
    struct wire w = {(const unsigned char *)blob->data, blob->len}, in;
    struct wire_string cipher, kdf, options, public, secret, type, pair, rest;
    uint32_t count, check[2];

    if (w.left < sizeof(head) || memcmp(w.at, head, sizeof(head)) != 0)
        return err_set(err, ERR_INPUT, "not an OpenSSH private key");
    w.at += sizeof(head);
    w.left -= sizeof(head);
    if (!wire_string(&w, &cipher) || !wire_string(&w, &kdf) ||
        !wire_string(&w, &options) || !wire_u32(&w, &count) || count != 1 ||
        !wire_string(&w, &public) || !wire_string(&w, &secret) || w.left)
        return err_set(err, ERR_INPUT, "a malformed OpenSSH private key");
    if (!wire_is(&cipher, "none") || !wire_is(&kdf, "none"))
        return err_set(err, ERR_UNSUPPORTED,
                       "the key is encrypted: sign with ssh-keygen -Y sign "
                       "-n " SIGN_NAMESPACE);
    in = (struct wire){secret.data, secret.len};
    if (!wire_u32(&in, &check[0]) || !wire_u32(&in, &check[1]) ||
        check[0] != check[1] || !wire_string(&in, &type))
        return err_set(err, ERR_INPUT, "a malformed OpenSSH private key");
    if (!wire_is(&type, kind))
        return err_set(err, ERR_UNSUPPORTED, "not an Ed25519 key");
    if (!wire_string(&in, &public) || public.len != SIGN_KEY_BYTES ||
        !wire_string(&in, &pair) || pair.len != 2 * SIGN_KEY_BYTES ||
        memcmp(pair.data + SIGN_KEY_BYTES, public.data, SIGN_KEY_BYTES) != 0 ||
        !wire_string(&in, &rest))
        return err_set(err, ERR_INPUT, "a malformed OpenSSH private key");
    memcpy(seed, pair.data, SIGN_KEY_BYTES);
    memcpy(key, public.data, SIGN_KEY_BYTES);
    return 0;
}

static int read_private(const char *path, unsigned char seed[SIGN_KEY_BYTES],
                        unsigned char key[SIGN_KEY_BYTES], struct err *err)
{
    struct buf text = BUF_INIT, blob = BUF_INIT;
    int ret = -1;

    if (io_read_file(path, KEY_FILE_CAP, &text, err))
        goto out;
    if (armor_decode(text.data, text.len, "OPENSSH PRIVATE KEY", &blob, err) ||
        parse_private(&blob, seed, key, err))
        err_in(err, "%s", path);
    else
        ret = 0;
out:
    if (text.data)
        OPENSSL_cleanse(text.data, text.cap);
    if (blob.data)
        OPENSSL_cleanse(blob.data, blob.cap);
    buf_release(&text);
    buf_release(&blob);
    return ret;
}

/* The signature, and that the file's public half is the seed's. */
static int ed25519_sign(const unsigned char *seed, const unsigned char *key,
                        const struct buf *bytes, unsigned char *out,
                        struct err *err)
{
    EVP_PKEY *pair = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed,
                                                  SIGN_KEY_BYTES);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    unsigned char own[SIGN_KEY_BYTES];
    size_t n = sizeof(own), m = SIGN_BYTES;
    int ret = -1;

    if (!pair || !ctx || !EVP_PKEY_get_raw_public_key(pair, own, &n))
        err_set(err, ERR_SYSTEM, "no Ed25519");
    else if (memcmp(own, key, SIGN_KEY_BYTES) != 0)
        err_set(err, ERR_INPUT, "the key's two halves do not belong together");
    else if (EVP_DigestSignInit(ctx, NULL, NULL, NULL, pair) != 1 ||
             EVP_DigestSign(ctx, out, &m, (const unsigned char *)bytes->data,
                            bytes->len) != 1)
        err_set(err, ERR_SYSTEM, "signing failed");
    else
        ret = 0;
    EVP_MD_CTX_free(ctx);
    EVP_PKEY_free(pair);
    return ret;
}

int sign_make(const char *key_file, const char *space, const void *message,
              size_t len, struct buf *armor, struct err *err)
{
    unsigned char seed[SIGN_KEY_BYTES], key[SIGN_KEY_BYTES], raw[SIGN_BYTES];
    struct buf bytes = BUF_INIT, part = BUF_INIT, blob = BUF_INIT;
    int ret = -1;

    if (read_private(key_file, seed, key, err))
        return -1;
    if (signed_bytes(space, "sha512", message, len, &bytes, err))
        goto out;
    if (ed25519_sign(seed, key, &bytes, raw, err)) {
        err_in(err, "%s", key_file);
        goto out;
    }
    buf_add(&blob, magic, 6);
    buf_add(&blob, "\0\0\0\1", 4);
    wire_put(&part, kind, strlen(kind));
    wire_put(&part, key, sizeof(key));
    wire_put(&blob, part.data, part.len);
    wire_put(&blob, space, strlen(space));
    wire_put(&blob, "", 0);
    wire_put(&blob, "sha512", 6);
    buf_clear(&part);
    wire_put(&part, kind, strlen(kind));
    wire_put(&part, raw, sizeof(raw));
    wire_put(&blob, part.data, part.len);
    buf_addf(armor, "-----BEGIN %s-----\n", armor_name);
    base64_encode(blob.data, blob.len, 70, armor);
    buf_addf(armor, "-----END %s-----\n", armor_name);
    ret = 0;
out:
    OPENSSL_cleanse(seed, sizeof(seed));
    buf_release(&blob);
    buf_release(&part);
    buf_release(&bytes);
    return ret;
}

/* ------------------------------------------------------------- verifying */

void signature_release(struct signature *s)
{
    free(s->space);
    s->space = NULL;
}

/* string:"ssh-ed25519" string:size bytes */
static int parse_typed(const struct wire_string *s, size_t size,
                       unsigned char *out, struct err *err)
{
    struct wire w = {s->data, s->len};
    struct wire_string type, bytes;

    if (!wire_string(&w, &type))
        return err_set(err, ERR_INPUT, "a malformed SSH signature");
    if (!wire_is(&type, kind))
        return err_set(err, ERR_UNSUPPORTED,
                       "the signature's key is not an Ed25519 key");
    if (!wire_string(&w, &bytes) || bytes.len != size || w.left)
        return err_set(err, ERR_INPUT, "a malformed SSH signature");
    memcpy(out, bytes.data, size);
    return 0;
}

static int parse_signature(struct signature *s, const struct buf *blob,
                           struct err *err)
{
    struct wire w = {(const unsigned char *)blob->data, blob->len};
    struct wire_string key, space, reserved, hash, bytes;
    unsigned char digest[EVP_MAX_MD_SIZE];
    struct buf text = BUF_INIT;
    uint32_t version;
    unsigned int n;

    if (w.left < 6 || memcmp(w.at, magic, 6) != 0)
        return err_set(err, ERR_INPUT, "not an SSH signature");
    w.at += 6;
    w.left -= 6;
    if (!wire_u32(&w, &version))
        return err_set(err, ERR_INPUT, "a malformed SSH signature");
    if (version != 1)
        return err_set(err, ERR_UNSUPPORTED, "an SSH signature of version %u",
                       version);
    if (!wire_string(&w, &key) || !wire_string(&w, &space) ||
        !wire_string(&w, &reserved) || !wire_string(&w, &hash) ||
        !wire_string(&w, &bytes) || w.left)
        return err_set(err, ERR_INPUT, "a malformed SSH signature");
    if (space.len == 0 || memchr(space.data, '\0', space.len))
        return err_set(err, ERR_INPUT, "a signature without a namespace");
    if (!wire_is(&hash, "sha256") && !wire_is(&hash, "sha512"))
        return err_set(err, ERR_UNSUPPORTED,
                       "a signature over another digest than SHA-256 and "
                       "SHA-512");
    if (parse_typed(&key, SIGN_KEY_BYTES, s->key, err) ||
        parse_typed(&bytes, SIGN_BYTES, s->bytes, err))
        return -1;
    s->space = xstrndup((const char *)space.data, space.len);
    memcpy(s->hash, hash.data, hash.len);
    s->hash[hash.len] = '\0';
    if (!EVP_Digest(key.data, key.len, digest, &n, EVP_sha256(), NULL))
        return err_set(err, ERR_SYSTEM, "sha256 is not to be had");
    buf_addstr(&text, "SHA256:");
    base64_encode(digest, n, 0, &text);
    while (text.data[text.len - 1] == '=')
        text.data[--text.len] = '\0';
    memcpy(s->fingerprint, text.data, text.len + 1);
    buf_release(&text);
    return 0;
}

int signature_read(struct signature *s, const char *text, size_t len,
                   struct err *err)
{
    struct buf blob = BUF_INIT;
    int ret = -1;

    *s = (struct signature){0};
    if (len > SIGNATURE_CAP)
        err_set(err, ERR_INPUT, "too long for a signature");
    else if (armor_decode(text, len, armor_name, &blob, err) == 0)
        ret = parse_signature(s, &blob, err);
    buf_release(&blob);
    return ret;
}

int signature_verify(const struct signature *s, const char *space,
                     const void *message, size_t len, struct err *err)
{
    struct buf bytes = BUF_INIT;
    EVP_PKEY *key = NULL;
    EVP_MD_CTX *ctx = NULL;
    int ret = -1;

    if (strcmp(s->space, space) != 0)
        return err_set(err, ERR_NO, "signed for another purpose than %s",
                       space);
    if (signed_bytes(space, s->hash, message, len, &bytes, err))
        goto out;
    key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, s->key,
                                      SIGN_KEY_BYTES);
    ctx = EVP_MD_CTX_new();
    if (!key || !ctx || EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, key) != 1)
        err_set(err, ERR_SYSTEM, "no Ed25519");
    else if (EVP_DigestVerify(ctx, s->bytes, SIGN_BYTES,
                              (const unsigned char *)bytes.data,
                              bytes.len) != 1)
        err_set(err, ERR_NO, "not the signature of these bytes by %s",
                s->fingerprint);
    else
        ret = 0;
out:
    EVP_MD_CTX_free(ctx);
    EVP_PKEY_free(key);
    buf_release(&bytes);
    return ret;
}
