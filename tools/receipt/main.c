/* assay-receipt: who the bytes are, and what a run proves. */
#include "base/err.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "verbs.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *about;
    int (*run)(int argc, char **argv);
} verbs[] = {
    {"record", "a receipt of the bytes that are there", verb_record},
    {"import", "a receipt from upstream's own listing", verb_import},
    {"verify", "a pack against its receipt", verb_verify},
    {"files", "what a receipt lists, a line each", verb_files},
    {"receive", "one file of a receipt, judged as it arrives", verb_receive},
    {"room", "storage and memory for a run, before it begins", verb_room},
    {"freeze", "copies of cases, images, protocol and gates", verb_freeze},
    {"cases", "the names of the cases", verb_cases},
    {"keep", "copies of captures, a folder a case", verb_keep},
    {"executables", "what ran, by the stage records", verb_executables},
    {"attest", "the verdict as an in-toto statement", verb_attest},
    {"seal", "manifests: the last act of a run", verb_seal},
    {"publish", "a finished run gets its name", verb_publish},
    {"audit", "a run's answer, derived again from its evidence", verb_audit},
    {"sign", "an SSH signature over a run's seal", verb_sign},
    {"bundle", "a sealed run as one file", verb_bundle},
    {"extract", "the run of a bundle", verb_extract},
};

enum { VERBS = sizeof(verbs) / sizeof(verbs[0]) };

static void usage(FILE *f)
{
    fprintf(f, "usage: assay-receipt VERB [options] ...\n"
               "Source receipts, and the evidence of a run.\n\n");
    for (size_t i = 0; i < VERBS; i++)
        fprintf(f, "  %-12s %s\n", verbs[i].name, verbs[i].about);
    fprintf(f, "\nassay-receipt VERB --help tells a verb's options.\n");
}

void put_json(json_t *root, const char *out, struct err *err)
{
    if (root && out)
        json_write_file(root, out, err);
    else if (root)
        cli_print_json(root);
    json_decref(root);
}

int main(int argc, char **argv)
{
    static const struct cli_command command = {.program = "assay-receipt"};
    const char *verb = argc > 1 ? argv[1] : "";
    struct err err = ERR_INIT;

    mem_return_blocks();
    if (strcmp(verb, "--help") == 0 || strcmp(verb, "-h") == 0) {
        usage(stdout);
        return cli_finish(&command, &err);
    }
    if (strcmp(verb, "--version") == 0) {
        printf("assay-receipt %s\n", ASSAY_VERSION);
        return cli_finish(&command, &err);
    }
    for (size_t i = 0; i < VERBS; i++)
        if (strcmp(verb, verbs[i].name) == 0)
            return verbs[i].run(argc - 1, argv + 1);
    if (verb[0])
        fprintf(stderr, "assay-receipt: no verb '%s'\n", verb);
    usage(stderr);
    return ERR_USAGE;
}
