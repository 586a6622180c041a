/* SSH signatures: the bytes of ssh-keygen (OpenSSH 9.2, fixtures/sign), and
 * everything that is not one refused. */
#include "base/io.h"
#include "sign/sign.h"
#include "tap.h"

#include <unistd.h>

#define DIR "fixtures/sign/"

static struct buf message = BUF_INIT, armor = BUF_INIT;
static char signers[] = "/tmp/assay-signers-XXXXXX";

static int read_text(const char *text, size_t len, struct err *err)
{
    struct signature s;

    err_clear(err);
    int ret = signature_read(&s, text, len, err);
    if (ret == 0)
        ret = signature_verify(&s, SIGN_NAMESPACE, message.data, message.len,
                               err);
    signature_release(&s);
    return ret;
}

#define KEY        \
    "ssh-ed25519 " \
    "AAAAC3NzaC1lZDI1NTE5AAAAIEO1qtmXTPR1vjkJX2N4Pjqw6iluGbyjeGfdVtCEk7uK"

static const struct {
    const char *text, *who;
    enum err_code code;
    const char *says;
} files[] = {
    {"a@b " KEY "\n", "a@b", 0, NULL},
    {"a@b,c " KEY " a comment\n", "a@b,c", 0, NULL},
    {"\"a@b\" " KEY "\n", "a@b", 0, NULL},
    {"# nobody\n\n   \nother ssh-ed25519 AAAA\na " KEY, "a", 0, NULL},
    {"a namespaces=\"assay-evidence@v1\" " KEY, "a", 0, NULL},
    {"a namespaces=\"git,assay-*\" " KEY, "a", 0, NULL},
    {"a namespaces=\"*,!assay-*\" " KEY, NULL, ERR_NO,
     "is not allowed this namespace"},
    {"a namespaces=\"git\" " KEY, NULL, ERR_NO,
     "is not allowed this namespace"},
    {"a cert-authority " KEY, NULL, ERR_NO, "certificate authority"},
    {"a valid-after=\"20010909Z\" " KEY, "a", 0, NULL},
    {"a valid-after=\"20010910Z\" " KEY, NULL, ERR_NO, "is not valid yet"},
    {"a valid-before=\"20010908Z\" " KEY, NULL, ERR_NO, "is no longer valid"},
    {"a valid-before=\"20010909014641Z\" " KEY, "a", 0, NULL},
    {"a valid-before=\"200109090147Z\",valid-after=\"20010101Z\" " KEY, "a", 0,
     NULL},
    {"a valid-before=\"20010908Z\" " KEY "\nb " KEY, "b", 0, NULL},
    {"a valid-after=\"2001\" " KEY, NULL, ERR_NO, "line 1"},
    {"a unknown=\"x\" " KEY, NULL, ERR_NO, "line 1"},
    {"a\n", NULL, ERR_NO, "line 1"},
    {"a b c\n", NULL, ERR_NO, "line 1"},
    {"a ssh-ed25519\n", NULL, ERR_NO, "line 1"},
    {"a ssh-ed25519 AAAA\n", NULL, ERR_NO, "is in no line of it"},
    {"", NULL, ERR_NO, "is in no line of it"},
};

static void check_signers(void)
{
    struct signature s;
    struct err err = ERR_INIT;

    signature_read(&s, armor.data, armor.len, &err);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        FILE *f = fopen(signers, "w");

        fputs(files[i].text, f);
        fclose(f);
        err_clear(&err);
        /* 2001-09-09 01:46:40 UTC */
        char *who =
            signature_principals(&s, SIGN_NAMESPACE, signers, 1000000000, &err);
        ok(who && files[i].who ? strcmp(who, files[i].who) == 0
                               : who == files[i].who,
           "signers file %zu: %s", i, files[i].who ? files[i].who : "nobody");
        if (!who)
            ok(err.code == files[i].code && strstr(err.text, files[i].says),
               "%s", err.text);
        free(who);
    }
    signature_release(&s);
}

int main(void)
{
    struct err err = ERR_INIT;
    struct buf again = BUF_INIT, other = BUF_INIT;
    struct signature s;
    bool all = true;
    int fd = mkstemp(signers);

    if (fd < 0)
        return 1;
    close(fd);
    if (io_read_file(DIR "message", 100, &message, &err) ||
        io_read_file(DIR "message.sig", 4096, &armor, &err))
        return 1;
    is_int(sign_make(DIR "key", SIGN_NAMESPACE, message.data, message.len,
                     &again, &err),
           0, "signing with an OpenSSH key");
    is_str(again.data, armor.data, "gives ssh-keygen's bytes");
    is_int(signature_read(&s, armor.data, armor.len, &err), 0, "reading them");
    is_str(s.fingerprint, "SHA256:VVa6XPShNz+KuIv56p8udr85ACFroiOYoK97TCXQSss",
           "the key's fingerprint");
    is_str(s.space, SIGN_NAMESPACE, "the namespace");
    is_str(s.hash, "sha512", "the digest");
    is_int(
        signature_verify(&s, SIGN_NAMESPACE, message.data, message.len, &err),
        0, "and they verify");
    ok(signature_verify(&s, SIGN_NAMESPACE, "Hello\n", 6, &err) == -1 &&
           err.code == ERR_NO,
       "not another message");
    err_clear(&err);
    ok(signature_verify(&s, "git", message.data, message.len, &err) == -1 &&
           err.code == ERR_NO,
       "not in another namespace");
    signature_release(&s);
    /* another encoding of the same bytes */
    for (size_t i = 0; i < armor.len; i++) {
        if (i > 40 && armor.data[i] == '\n' && i + 20 < armor.len)
            buf_addstr(&other, "\r\n");
        else
            buf_addch(&other, armor.data[i]);
    }
    is_int(read_text(other.data, other.len, &err), 0, "other line ends");
    for (size_t cut = 0; cut + 1 < armor.len; cut++)
        all = read_text(armor.data, cut, &err) == -1 &&
              (err.code == ERR_INPUT || err.code == ERR_UNSUPPORTED) && all;
    ok(all, "cut short at every byte: refused");
    all = true;
    for (size_t i = 0; i < armor.len; i++) {
        char was = armor.data[i];

        if (was == '\n')
            continue;
        armor.data[i] = was == 'A' ? 'B' : 'A';
        all = read_text(armor.data, armor.len, &err) == -1 && all;
        armor.data[i] = was;
    }
    ok(all, "another character at every place: refused");
    ok(read_text("", 0, &err) == -1 && err.code == ERR_INPUT, "nothing");
    buf_clear(&other);
    io_read_file(DIR "unsupported-ecdsa.sig", 4096, &other, &err);
    ok(read_text(other.data, other.len, &err) == -1 &&
           err.code == ERR_UNSUPPORTED,
       "another kind of key is named");
    static const char *const keys[] = {DIR "unsupported-ecdsa",
                                       DIR "unsupported-encrypted"};
    for (size_t i = 0; i < 2; i++) {
        err_clear(&err);
        ok(sign_make(keys[i], SIGN_NAMESPACE, "x", 1, &again, &err) == -1 &&
               err.code == ERR_UNSUPPORTED,
           "%s", err.text);
    }
    static const char *const bad[] = {DIR "key.pub", DIR "message.sig",
                                      DIR "none", "fixtures"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        err_clear(&err);
        ok(sign_make(bad[i], SIGN_NAMESPACE, "x", 1, &again, &err) == -1 &&
               err.code == ERR_INPUT,
           "%s", err.text);
    }
    check_signers();
    unlink(signers);
    buf_release(&again);
    buf_release(&other);
    buf_release(&armor);
    buf_release(&message);
    return done();
}
