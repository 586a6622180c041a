#ifndef TOKENIZER_COMPONENTS_H
#define TOKENIZER_COMPONENTS_H

#include "tokenizer/chain.h"

/* What the readers of a tokenizer.json's components share. */

/* A component's type. */
int component_type(const struct section *value, const char **type,
                   struct err *err);
/* ERR_UNSUPPORTED, by name. */
int component_unknown(const char *type, struct err *err);
/* Flags that change no id: noted, and checked where they are there; a NULL ends
 * the list. */
int component_ignore_flags(const struct section *value, const char *const *keys,
                           struct err *err);
/* The settings of a ByteLevel, which one that is no pre-tokenizer ignores. */
extern const char *const component_byte_level_keys[];
#endif
