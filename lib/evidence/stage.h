#ifndef EVIDENCE_STAGE_H
#define EVIDENCE_STAGE_H

#include "base/err.h"
#include "cli/cli.h"
#include "json/json.h"

#include <stddef.h>

/*
 * The stage record, stage.json: what ran, on what, giving what.
 *
 *     {"format": "assay-stage-1",
 *      "program": {"name", "version", "sha256"},      the running executable
 *      "libraries": [{"file", "sha256"}],             what it loaded
 *      "arguments": [...],                            paths as roles
 *      "frozen": {"protocol.json": {"size", "sha256"}, ...},
 *      "inputs": [{"path", "size", "sha256"}],        paths as roles
 *      "outputs": [{"path", "size", "sha256"}],       beside the record
 *      "record": {...}}                               what the tool adds
 *
 * No clock, host name or absolute path is in it.  A path is written as ROLE or
 * ROLE/rest, where a role names a folder: --role=NAME=PATH gives one, and each
 * tool adds those that follow from its own options (PACK, OUT, ...).  Roles of
 * the command line win over the tool's own, then the longest, then the first.
 * So two runs of one build in different places give the same bytes.
 *
 * Records chain: the record of the stage before is among the inputs, because
 * the tool read its folder (stage_input_dir) or --after=FILE named it.
 *
 * A tool's use, with STAGE_OPTIONS(opt.stage) in its option table:
 *
 *     struct stage *s = stage_new("assay-export", argc, argv, &opt.stage, err);
 *     stage_role(s, "PACK", opt.pack);
 *     stage_role(s, "OUT", opt.out);
 *     stage_input(s, "dir/pack/config.json", err)
 *     stage_output(s, p.part, "inputs.safetensors", err)
 *     stage_set(s, "image_library", json_string("pillow 12.3"));
 *     stage_write(s, p.part, err)
 *     stage_free(s)
 */
struct stage;

struct stage_options {
    struct cli_list roles; /* NAME=PATH; the tool frees roles.items */
    struct cli_list after; /* stage.json files; the tool frees after.items */
    const char *frozen;    /* folder of protocol.json, cases.json, gates.json */
    const char *reuse; /* an earlier result of the stage, to be taken over */
};

/* clang-format off */
#define STAGE_OPTIONS(o)                                                      \
    {0, "role", "name=path", "in the record, call this path by that name",    \
     CLI_LIST, &(o).roles},                                                   \
    {0, "after", "file", "a stage record that this one follows",              \
     CLI_LIST, &(o).after},                                                   \
    {0, "frozen", "dir", "the run's frozen protocol, cases and gates",        \
     CLI_STR, &(o).frozen}

/* For a stage that can take over its own earlier result. */
#define STAGE_REUSE(o)                                                        \
    {0, "reuse", "dir", "take this earlier result if its record still holds", \
     CLI_STR, &(o).reuse}
/* clang-format on */

/*
 * argv as main() got it.  Hashes the running executable, its libraries, the
 * frozen files and the records in `after`.  options may be NULL.
 */
struct stage *stage_new(const char *program, int argc, char **argv,
                        const struct stage_options *options, struct err *err);
void stage_free(struct stage *s); /* NULL is fine */

/* A copy with everything so far: one process that writes several records. */
struct stage *stage_copy(const struct stage *s);

/* A role that follows from the tool's own options; a NULL path is no role.
 * `path` may be a file: its own name is then ROLE itself. */
void stage_role(struct stage *s, const char *name, const char *path);

/* Hashes a file that the stage reads; one path twice counts once. */
int stage_input(struct stage *s, const char *path, struct err *err);

/* The same with digest and size already known, from the very bytes read. */
void stage_input_known(struct stage *s, const char *path, const char *sha256,
                       int64_t size);

/* Every regular file directly in a folder, stage.json among them. */
int stage_input_dir(struct stage *s, const char *dir, struct err *err);

/* Hashes dir/name; it is recorded as `name`, relative to the record. */
int stage_output(struct stage *s, const char *dir, const char *name,
                 struct err *err);

/* A key under "record"; the value is taken over.  Keys keep their order; the
 * same key again replaces the value. */
void stage_set(struct stage *s, const char *key, json_t *value);

/* Writes dir/stage.json. */
int stage_write(struct stage *s, const char *dir, struct err *err);

/*
 * Does an earlier result of this stage still hold: is dir/stage.json, byte for
 * byte, what stage_write() would write now over the files in `dir`?  The same
 * program, libraries, arguments, frozen files, inputs (with them the records
 * before) and outputs, and nothing else in the folder.  `s` has its inputs and
 * keys, and no outputs.  0, or -1 with the first thing that differs.
 */
int stage_holds(const struct stage *s, const char *dir, struct err *why);

/* The path as the record would write it; freed by the caller. */
char *stage_name(const struct stage *s, const char *path);
#endif
