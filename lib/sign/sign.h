#ifndef SIGN_SIGN_H
#define SIGN_SIGN_H

#include "base/buf.h"
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/*
 * SSH signatures (SSHSIG) with Ed25519 keys, as `ssh-keygen -Y sign` makes and
 * `ssh-keygen -Y verify` checks them: the same bytes for the same key.  A
 * signature proves who, not when.  Other kinds of keys are ERR_UNSUPPORTED.
 */
enum { SIGN_KEY_BYTES = 32, SIGN_BYTES = 64, SIGN_FINGERPRINT = 51 };

#define SIGN_NAMESPACE "assay-evidence@v1"

/* Signs with an OpenSSH private key file, which must not be encrypted, and
 * appends the armored signature.  An encrypted key is ERR_UNSUPPORTED. */
int sign_make(const char *key_file, const char *space, const void *message,
              size_t len, struct buf *armor, struct err *err);

/* What a signature says. */
struct signature {
    unsigned char key[SIGN_KEY_BYTES], bytes[SIGN_BYTES];
    char *space;                        /* its namespace */
    char hash[8];                       /* "sha256" or "sha512" */
    char fingerprint[SIGN_FINGERPRINT]; /* "SHA256:..." as ssh-keygen -l */
};
void signature_release(struct signature *s);

/* From its armored text; malformed is ERR_INPUT.  Release also on failure. */
int signature_read(struct signature *s, const char *text, size_t len,
                   struct err *err);

/* 0 when it is the key's signature of that message in that namespace; else
 * ERR_NO with the reason. */
int signature_verify(const struct signature *s, const char *space,
                     const void *message, size_t len, struct err *err);

/*
 * Who the key is, by an allowed_signers file (ssh-keygen(1)): the principals of
 * the first line that has the key, allows the namespace and is valid at `when`
 * (seconds since 1970); freed by the caller.  NULL with ERR_NO when there is
 * none, saying why the key's own lines do not apply.  A line that cannot be
 * read allows nobody, and is told when nobody is found.
 */
char *signature_principals(const struct signature *s, const char *space,
                           const char *signers_file, int64_t when,
                           struct err *err);
#endif
