#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Is it UTF-8 by the book: no overlong form, no surrogate, nothing above
 * U+10FFFF, nothing cut off?  NUL bytes are characters like others.
 */
bool utf8_is_valid(const char *text, size_t len);

/* Bytes of the sequence at text (1 to 4); 0 when it is malformed or left is 0.
 */
size_t utf8_len(const char *text, size_t left);

/* Writes a code point, at most U+10FFFF, and returns its bytes (1 to 4). */
size_t utf8_put(uint32_t c, char *out);

/* '?' for control characters and for bytes that are no UTF-8: text that came
 * from a file must not move the terminal's cursor, nor break a line. */
void utf8_make_printable(char *text);
#endif
