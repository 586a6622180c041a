#ifndef TOKENIZER_SCORE_H
#define TOKENIZER_SCORE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * A JSON number as upstream's reader takes it: quick, and in one of twelve of
 * 17 digits one place of the last bit off.  A Unigram's scores are compared
 * strictly, so a path may hang on that bit.  False when it is out of range
 * (upstream refuses the file).  The text is a valid JSON number.
 */
bool score_read(const char *text, size_t len, double *out);
#endif
