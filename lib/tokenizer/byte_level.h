#ifndef TOKENIZER_BYTE_LEVEL_H
#define TOKENIZER_BYTE_LEVEL_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * ByteLevel's alphabet: 256 characters, one for each byte.  The printable ones
 * of Latin-1 stand for themselves, the others for U+0100 ... U+0143 in order.
 */
uint32_t byte_level_char(unsigned char byte);

/* Appends the bytes as characters. */
void byte_level_spell(const char *bytes, size_t len, struct buf *out);

/* Appends the bytes behind UTF-8 text; false, with nothing appended, when a
 * character stands for none. */
bool byte_level_bytes(const char *text, size_t len, struct buf *out);

/* GPT-2's expression, by which ByteLevel splits when asked. */
extern const char byte_level_pattern[];
#endif
