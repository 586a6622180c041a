#ifndef MODELS_STOPS_H
#define MODELS_STOPS_H

#include "base/err.h"
#include "ledger/ledger.h"
#include "json/json.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * The tokens that end an answer.  Of what generation_config.json says they
 * alone count here: a teacher-forced pass and a greedy choice look at no
 * sampling setting, as upstream's do not.
 */
struct stops {
    int64_t tokens[8];
    int count;
};

bool stops_has(const struct stops *s, int64_t token);

/* An 'eos_token_id': one token, or a list; NULL adds nothing. */
int stops_add(struct stops *s, const json_t *eos, struct err *err);

/*
 * Those of the pack's generation_config.json, whose known keys are noted in
 * the ledger as without effect; an unknown one that has meaning is refused.
 * *is_there says whether there is such a file.
 */
int stops_read(struct stops *s, struct ledger *ledger, bool *is_there,
               struct err *err);
#endif
