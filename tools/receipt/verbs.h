#ifndef TOOLS_RECEIPT_VERBS_H
#define TOOLS_RECEIPT_VERBS_H

#include "base/err.h"
#include "receipt/receipt.h"
#include "json/json.h"

/* Each verb as a main() of its own; argv[0] is the verb. */
int verb_record(int argc, char **argv);
int verb_import(int argc, char **argv);
int verb_verify(int argc, char **argv);
int verb_files(int argc, char **argv);
int verb_receive(int argc, char **argv);
int verb_room(int argc, char **argv);
int verb_freeze(int argc, char **argv);
int verb_cases(int argc, char **argv);
int verb_keep(int argc, char **argv);
int verb_executables(int argc, char **argv);
int verb_seal(int argc, char **argv);
int verb_publish(int argc, char **argv);
int verb_audit(int argc, char **argv);
int verb_bundle(int argc, char **argv);
int verb_extract(int argc, char **argv);
int verb_sign(int argc, char **argv);
int verb_attest(int argc, char **argv);

/* Writes a document to the new file `out` (one that is there is never overwritten), or
 * to stdout without one.  Takes the reference; of NULL nothing is written, and
 * err says already why. */
void put_json(json_t *root, const char *out, struct err *err);

/* Fills f->tensors from the file, when it is a sound .safetensors file: the
 * list of its tensors with a digest each, by name; else NULL. */
json_t *add_tensors_digest(const char *pack, struct receipt_file *f);

/* The tensors that are not the same in two such lists, with a verdict each. */
json_t *compare_tensors(const json_t *want, const json_t *got);

/* Every program and library that the stage records below `data` name, and the
 * candidate's own executable (or NULL); NULL with err set. */
json_t *executables_json(const char *data, const char *candidate,
                         struct err *err);

/* Who sealed a run: "proved", "contradicted" (with the reason in why) or
 * "cannot be proved"; *by says by what and is freed by the caller.  `signers`
 * is an allowed_signers file or NULL. */
const char *seal_signature(const char *run, const char *signers, char **by,
                           struct err *why);

/* Runs export and forward again on a pack; what is not the same bytes becomes a
 * fault.  *by is freed by the caller.  -1 when it could not be tried. */
int recompute_run(const char *data, const char *pack, char **by, json_t *faults,
                  struct err *err);

/* What moved between two summary documents, a line each. */
json_t *drift(const json_t *before, const json_t *now);

/* Only the limits that differ between two such documents, "old -> new". */
void drift_limits(json_t *lines, const json_t *before, const json_t *now);

/*
 * Does a verdict file of another build follow from the one made again?  Later
 * builds may add keys, so it does when its bytes are json_write's (`sha256`),
 * every value it states is the same, every list as long, and none of the keys
 * that make a verdict is left out.
 */
bool verdict_follows(const json_t *stored, const char *sha256,
                     const json_t *made);

/* The in-toto statement of a run's verdict, from the files below `data`. */
json_t *attest_json(const char *data, struct err *err);
#endif
