#ifndef TOKENIZER_UNICODE_FORM_H
#define TOKENIZER_UNICODE_FORM_H

#include "tokenizer/piece.h"

#include <stdbool.h>

/*
 * NFD, and NFC where it is composed, NFKD and NFKC where it is compatible; by
 * upstream's tables (Unicode 9.0), and with its places, which are not always
 * the characters' own.  Stops where out has grown past `most`.
 */
void unicode_form(bool is_composed, bool is_compatible, const struct piece *p,
                  size_t most, struct made *out);

/* Up to where NFC leaves p alone, from a byte on: the settled character before
 * the first that is not, or the end. */
size_t unicode_settled_end(const struct piece *p, size_t from);
#endif
