#ifndef LEDGER_LEDGER_H
#define LEDGER_LEDGER_H

#include "base/err.h"
#include "ledger/config.h"
#include "json/json.h"

/*
 * A pack's JSON files, each read once, and what became of their keys: one
 * ledger goes through all the readers of a stage (template, tokenizer, image
 * processor, model), and into its record.
 */
struct ledger;

struct ledger *ledger_new(const char *pack);
void ledger_free(struct ledger *l); /* NULL is fine */

/* The root of a file of the pack into *out; NULL when there is no such file.
 * Malformed, or not an object: ERR_INPUT. */
int ledger_file(struct ledger *l, const char *name, const struct section **out,
                struct err *err);

/* The same for a file that must be there. */
int ledger_need(struct ledger *l, const char *name, const struct section **out,
                struct err *err);

/* Hands over what another reader took apart, in place of what stood under that
 * name. */
void ledger_put(struct ledger *l, const char *name, struct config *config);

/* config_finish() of one of them. */
int ledger_finish(struct ledger *l, const char *name, struct err *err);

/* {"config.json": [...], ...}, the lines of config_ledger() by file, in the
 * order in which the files were asked for; a new reference. */
json_t *ledger_json(const struct ledger *l);
#endif
