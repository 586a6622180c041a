#ifndef TOKENIZER_SEAMS_H
#define TOKENIZER_SEAMS_H

#include "tokenizer/vocab.h"

/*
 * Where a text may be cut before byte pair encoding.  What a merge makes is a
 * token, so two characters that stand side by side in no token are joined by
 * none: on either side of them the merges are the same whether the other side
 * is there or not.  A text that no pre-tokenizer splits (Llama, Gemma) falls
 * into words that way, which are encoded in linear time and come again.
 *
 * This holds where every symbol at the start is a token of one character or a
 * byte of the fallback, and no other token is made of those.
 */
struct seams;

/* NULL when some token is made of fallback bytes. */
struct seams *seams_new(const struct vocab *vocab);
void seams_free(struct seams *s); /* NULL is fine */

/* Bytes up to the first seam of a text (UTF-8), or len. */
size_t seams_next(const struct seams *s, const char *text, size_t len);
#endif
