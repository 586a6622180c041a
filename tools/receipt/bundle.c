/* bundle, extract: a sealed run as one file, and back. */
#include "evidence/bundle.h"
#include "base/io.h"
#include "cli/cli.h"
#include "verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* An identity that nobody could read is no success: what was made is removed.
 */
static int tell(const char *sha256, struct err *err)
{
    printf("%s\n", sha256);
    return cli_flush(err);
}

int verb_bundle(int argc, char **argv)
{
    const char *out = NULL;
    const struct cli_opt options[] = {
        {'o', "out", "file", "the bundle; must not exist", CLI_NEEDED, &out},
        {0},
    };
    const struct cli_command command = {
        "assay-receipt",
        "bundle",
        "RUN",
        "Packs a sealed run into one file and prints its identity.",
        options,
        1,
        1};
    struct cli_list rest = {NULL, 0};
    struct err err = ERR_INIT;
    char sha256[HASH_SHA256_HEX];

    if (cli_parse(&command, argc, argv, &rest, &err) == 0 &&
        bundle_write(rest.items[0], out, sha256, &err) == 0 &&
        tell(sha256, &err))
        unlink(out);
    free(rest.items);
    return cli_finish(&command, &err);
}

int verb_extract(int argc, char **argv)
{
    const char *out = NULL;
    const struct cli_opt options[] = {
        {'o', "out", "dir", "the run's folder; must not exist", CLI_NEEDED,
         &out},
        {0},
    };
    const struct cli_command command = {
        "assay-receipt",
        "extract",
        "BUNDLE",
        "Unpacks a bundle and prints its identity.",
        options,
        1,
        1};
    struct cli_list rest = {NULL, 0};
    struct bundle b = {0};
    struct err err = ERR_INIT, ignored = ERR_INIT;

    if (cli_parse(&command, argc, argv, &rest, &err) == 0 &&
        io_check_new(out, &err) == 0 &&
        bundle_extract(rest.items[0], out, &b, &err) == 0 &&
        tell(b.sha256, &err))
        io_remove_tree(out, &ignored);
    bundle_release(&b);
    free(rest.items);
    return cli_finish(&command, &err);
}
