#ifndef TOKENIZER_COMPONENTS_H
#define TOKENIZER_COMPONENTS_H

#include "tokenizer/chain.h"

/* What the readers of a tokenizer.json's components share. */

/* A component's type. */
int component_type(const struct section *value, const char **type,
                   struct err *err);
/* ERR_UNSUPPORTED, by name. */
int component_unknown(const char *type, struct err *err);
/* The flags of a ByteLevel that is no pre-tokenizer: they change nothing, but
 * must be there. */
int component_byte_level(const struct section *value, struct err *err);
#endif
