/* Any bytes as an armored SSH signature, and as an allowed_signers file. */
#include "memory_file.h"
#include "sign/sign.h"

static const struct signature nobody; /* whom no line names */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct signature s;
    struct err err = ERR_INIT;
    char path[64];

    if (signature_read(&s, (const char *)data, size, &err) == 0 &&
        signature_verify(&s, SIGN_NAMESPACE, "hello\n", 6, &err) == -1 &&
        err.code == ERR_NONE)
        abort();
    signature_release(&s);
    err_clear(&err);
    int fd = memory_file(data, size, path);
    free(signature_principals(&nobody, SIGN_NAMESPACE, path, 1000000000, &err));
    close(fd);
    return 0;
}
