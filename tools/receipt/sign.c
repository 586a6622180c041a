/* sign: an SSH signature over a run's seal; and what one proves. */
#include "sign/sign.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "cli/cli.h"
#include "evidence/bag.h"
#include "verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SEAL_CAP = 64 << 20, SIGNATURE_CAP = 64 << 10 };
static const char seal_name[] = "tagmanifest-sha256.txt";
static const char signature_name[] = "tagmanifest-sha256.txt.sig";

/* The seal's bytes, of a run that is as it was sealed. */
static int read_seal(const char *run, struct buf *seal, struct err *err)
{
    struct bag_files files = BAG_FILES_INIT;
    json_t *faults = json_array();
    char *path = path_join(run, seal_name);
    int ret = -1;

    if (bag_check(run, &files, faults, err))
        goto out;
    if (json_array_size(faults))
        err_set(err, ERR_INPUT, "%s: not as it was sealed: %s", run,
                json_string_value(json_array_get(faults, 0)));
    else
        ret = io_read_file(path, SEAL_CAP, seal, err);
out:
    free(path);
    json_decref(faults);
    bag_files_release(&files);
    return ret;
}

static int sign(const char *key, const char *run, struct err *err)
{
    struct buf seal = BUF_INIT, armor = BUF_INIT;
    char *path = path_join(run, signature_name);
    int ret = -1;

    if (io_check_new(path, err) == 0 && read_seal(run, &seal, err) == 0 &&
        sign_make(key, SIGN_NAMESPACE, seal.data, seal.len, &armor, err) == 0)
        ret = io_write_file(path, armor.data, armor.len, err);
    buf_release(&seal);
    buf_release(&armor);
    free(path);
    return ret;
}

int verb_sign(int argc, char **argv)
{
    const char *key = NULL;
    const struct cli_opt options[] = {
        {'k', "key", "file", "an OpenSSH private key (Ed25519)", CLI_NEEDED,
         &key},
        {0},
    };
    const struct cli_command command = {
        "assay-receipt",
        "sign",
        "RUN",
        "Signs the seal of a run, as ssh-keygen -Y sign does.",
        options,
        1,
        1};
    struct cli_list rest = {NULL, 0};
    struct err err = ERR_INIT;

    if (cli_parse(&command, argc, argv, &rest, &err) == 0)
        sign(key, rest.items[0], &err);
    free(rest.items);
    return cli_finish(&command, &err);
}

/* A signature that is there: is it one, and whose? */
static int judge(const struct signature *s, const struct buf *seal,
                 const char *signers, char **by, struct err *err)
{
    char *who;

    if (signature_verify(s, SIGN_NAMESPACE, seal->data, seal->len, err))
        return -1;
    if (!signers) {
        *by = xasprintf("signed by %s; no --signers says who that is",
                        s->fingerprint);
        return 0;
    }
    who = signature_principals(s, SIGN_NAMESPACE, signers, (int64_t)time(NULL),
                               err);
    if (!who)
        return -1;
    *by = xasprintf("signed by %s, %s", who, s->fingerprint);
    free(who);
    return 0;
}

const char *seal_signature(const char *run, const char *signers, char **by,
                           struct err *why)
{
    struct signature s = {0};
    struct buf seal = BUF_INIT, armor = BUF_INIT;
    char *path = path_join(run, signature_name);
    char *seal_path = path_join(run, seal_name);
    const char *verdict = "contradicted";

    *by = NULL;
    if (!io_exists(path)) {
        if (signers)
            err_set(why, ERR_NO, "%s: missing", signature_name);
        else
            verdict = "cannot be proved";
        *by = xstrdup("no signature");
    } else if (io_read_file(path, SIGNATURE_CAP, &armor, why) == 0 &&
               io_read_file(seal_path, SEAL_CAP, &seal, why) == 0 &&
               signature_read(&s, armor.data ? armor.data : "", armor.len,
                              why) == 0 &&
               judge(&s, &seal, signers, by, why) == 0) {
        verdict = signers ? "proved" : "cannot be proved";
    }
    if (!*by)
        *by = xstrdup("the signature over the tag manifest");
    signature_release(&s);
    buf_release(&seal);
    buf_release(&armor);
    free(path);
    free(seal_path);
    return verdict;
}
