#ifndef TOKENIZER_BATCHING_H
#define TOKENIZER_BATCHING_H

#include "base/err.h"
#include "json/json.h"

/*
 * The sections "truncation" and "padding" of a tokenizer.json.  Prompts are
 * single and whole, so nothing follows them; but upstream opens no file where
 * one of them lacks a field or has a wrong one (tokenizers 0.22.2, 0.23.3), and
 * neither do we: ERR_INPUT names the field.
 */
int truncation_check(const json_t *value, struct err *err);
int padding_check(const json_t *value, struct err *err);
#endif
