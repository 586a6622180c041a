#ifndef EXPORT_EXPORT_H
#define EXPORT_EXPORT_H

#include "base/err.h"
#include "cases/cases.h"
#include "cases/protocol.h"
#include "cli/cli.h"
#include "evidence/stage.h"

#include <stdbool.h>

/* What the command line asks for; each mode is one file of this folder. */
struct export_options {
    const char *pack, *cases, *one_case, *protocol, *out;
    const char *text, *render, *jsonl, *template, *context, *resize;
    int64_t at; /* a byte of what is rendered; -1: not asked */
    struct cli_list images;
    bool is_json, is_decode, is_alpha, is_ledger, is_predict;
    struct stage_options stage;
};

/* --text, --jsonl: a pack's tokenizer alone; results on stdout. */
int export_text(const struct export_options *opt,
                const struct protocol *protocol, struct err *err);
int export_lines(const struct export_options *opt,
                 const struct protocol *protocol, struct err *err);

/* --render, --template: the rendered bytes on stdout, or with --at the place of
 * the template that wrote one of them. */
int export_render(const struct export_options *opt,
                  const struct protocol *protocol, struct err *err);
int export_template(const struct export_options *opt,
                    const struct protocol *protocol, struct err *err);

/* --image: one line an image on stdout; ERR_INPUT (ERR_UNSUPPORTED when that is
 * all it was) after the last when some could not be used. */
int export_images(const struct export_options *opt,
                  const struct protocol *protocol, struct err *err);

/* --ledger: each key of the pack's files that export looks at, and what became
 * of it. */
int export_ledger(const struct export_options *opt,
                  const struct protocol *protocol, struct err *err);

/* --cases with --out: prompt.txt, inputs.safetensors and stage.json of one case
 * in opt->out, or of every case in a folder of its name below it.  With --reuse
 * an earlier result whose record still holds becomes opt->out. */
int export_cases(int argc, char **argv, const struct cli_command *command,
                 const struct export_options *opt,
                 const struct protocol *protocol, struct err *err);

/*
 * --cases with --predict: what --out would write and the memory it would take,
 * as one document; "bytes" counts whole blocks of storage.
 *
 *     {"cases": [{"name", "tokens", "grids": [[t, h, w]], "patch_cols",
 *                 "bytes"}], "bytes", "memory"}
 */
int export_predict(const struct export_options *opt,
                   const struct protocol *protocol, struct err *err);
#endif
