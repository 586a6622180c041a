#ifndef LEDGER_LEDGER_INTERNAL_H
#define LEDGER_LEDGER_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

/* Words of the settings of upstream's configuration classes, sorted. */
extern const char *const setting_words[];
extern const size_t setting_words_count;

/*
 * May a key that is read nowhere change what a model computes?  It may when all
 * its words are words of settings, or when one is of the trade ("forget_gate":
 * gate).
 */
bool key_has_meaning(const char *key);
#endif
