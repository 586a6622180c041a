#ifndef LEDGER_CONFIG_INTERNAL_H
#define LEDGER_CONFIG_INTERNAL_H

#include "ledger/config.h"

struct section {
    struct config *config;
    json_t *object; /* borrowed from the root */
    char *prefix;   /* "text_config.", or "" */
};

/* In ascending strength: a key that one reader ignores and another reads is
 * read. */
enum state { UNREAD, IGNORED, DEFAULTED, READ };

/* Notes what became of a key, unless it is noted as more; the value is shown,
 * NULL is not. */
void section_note(const struct section *s, const char *key, enum state state,
                  json_t *value);

/* The section of an object below `s`, made when it is asked for first. */
const struct section *section_below(const struct section *s, json_t *object,
                                    const char *key);

/* "config.json: 'key' " and what is wrong with it: ERR_INPUT. */
int section_malformed(const struct section *s, const char *key,
                      const char *what, struct err *err);
#endif
