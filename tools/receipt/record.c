/* record and import: a receipt is made. */
#include "base/io.h"
#include "cli/cli.h"
#include "receipt/receipt.h"
#include "verbs.h"

#include <stdlib.h>
#include <string.h>

int verb_record(int argc, char **argv)
{
    const char *upstream = NULL, *out = NULL;
    bool tensors = false;
    const struct cli_opt options[] = {
        {'u', "upstream", "repo@rev", "where the pack was published", CLI_STR,
         &upstream},
        {'o', "out", "file", "write the receipt there, not to stdout", CLI_STR,
         &out},
        {'t', "tensors", NULL, "also a digest of every tensor", CLI_FLAG,
         &tensors},
        {0},
    };
    const struct cli_command command = {
        "assay-receipt",
        "record",
        "PACK",
        "Writes a receipt of the bytes that are there.",
        options,
        1,
        1};
    struct cli_list rest = {NULL, 0};
    struct receipt r = RECEIPT_INIT;
    struct err err = ERR_INIT;

    if (cli_parse(&command, argc, argv, &rest, &err) == 0 &&
        (!upstream || receipt_set_upstream(&r, upstream, &err) == 0) &&
        io_check_new(out, &err) == 0 &&
        receipt_record(&r, rest.items[0], &err) == 0) {
        for (size_t i = 0; i < r.count; i++) {
            json_t *list = add_tensors_digest(rest.items[0], &r.files[i]);

            if (tensors)
                r.files[i].tensor_list = list;
            else
                json_decref(list);
        }
        put_json(receipt_json(&r), out, &err);
    }
    receipt_release(&r);
    free(rest.items);
    return cli_finish(&command, &err);
}

int verb_import(int argc, char **argv)
{
    const char *upstream = NULL, *listing = NULL, *out = NULL;
    const char *trees = NULL, *commit = NULL;
    const struct cli_opt options[] = {
        {'u', "upstream", "repo@rev", "what the listing lists", CLI_NEEDED,
         &upstream},
        {'l', "listing", "file",
         "upstream's listing: Hub JSON, git ls-tree -r -t -l text, sha256sum "
         "lines, or a download's folder of .metadata",
         CLI_NEEDED, &listing},
        {'t', "trees", "file", "git ls-tree -r -t -d text, and the root's id",
         CLI_STR, &trees},
        {'c', "commit", "file", "the raw commit object (git cat-file commit)",
         CLI_STR, &commit},
        {'o', "out", "file", "write the receipt there, not to stdout", CLI_STR,
         &out},
        {0},
    };
    const struct cli_command command = {
        "assay-receipt",
        "import",
        "",
        "Writes a receipt from upstream's own listing.",
        options,
        0,
        0};
    struct cli_list rest = {NULL, 0};
    struct receipt r = RECEIPT_INIT;
    struct err err = ERR_INIT;

    if (cli_parse(&command, argc, argv, &rest, &err) == 0 &&
        receipt_set_upstream(&r, upstream, &err) == 0 &&
        io_check_new(out, &err) == 0 &&
        receipt_import(&r, listing, &err) == 0 &&
        receipt_strengthen(&r, trees, commit, &err) == 0)
        put_json(receipt_json(&r), out, &err);
    receipt_release(&r);
    free(rest.items);
    return cli_finish(&command, &err);
}

int verb_files(int argc, char **argv)
{
    const struct cli_command command = {
        "assay-receipt",
        "files",
        "RECEIPT",
        "Prints what a receipt lists, a line each.",
        NULL,
        1,
        1};
    struct cli_list rest = {NULL, 0};
    struct receipt r = RECEIPT_INIT;
    struct err err = ERR_INIT;

    if (cli_parse(&command, argc, argv, &rest, &err) == 0 &&
        receipt_read(&r, rest.items[0], &err) == 0) {
        if (r.repository)
            printf("upstream\t%s@%s\n", r.repository, r.revision);
        for (size_t i = 0; i < r.count; i++) {
            const struct receipt_file *f = &r.files[i];

            printf("%s\t%s\t%lld\t%s\t%s\n",
                   strcmp(f->mode, "160000") == 0 ? "repository" : "file",
                   f->path, (long long)f->size, f->sha256[0] ? f->sha256 : "-",
                   f->git_blob[0] ? f->git_blob : "-");
        }
    }
    receipt_release(&r);
    free(rest.items);
    return cli_finish(&command, &err);
}
