#ifndef TOKENIZER_TOKENIZER_H
#define TOKENIZER_TOKENIZER_H

#include "base/buf.h"
#include "base/err.h"
#include "ledger/ledger.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Text to token ids and back, as upstream's tokenizers library does it for a
 * tokenizer.json (or, for Kimi, a tiktoken.model): added tokens, normalizer,
 * pre-tokenizer, BPE or Unigram, post-processor, decoder.  A component, flag or
 * split expression that we cannot show to mean the same is refused by name
 * (ERR_UNSUPPORTED); a file that is malformed is ERR_INPUT.
 *
 * A tokenizer does not change once it is open: several threads may use one.
 */
struct tokenizer;

/*
 * Which of two tokenizers a pack means (the protocol's `tokenizer` key).
 * Upstream's tokenizer_class (tokenizer_config.json) may rebuild normalizer,
 * split expression and decoder instead of taking the file's.
 */
enum tokenizer_rule {
    TOKENIZER_UNSAID, /* the file; a text that the class gives other ids for
                         is refused, with both */
    TOKENIZER_FILE,   /* the file as it is */
    TOKENIZER_CLASS,  /* what the class makes of it */
};

struct tokenizer_options {
    enum tokenizer_rule rule;
    const char *transformers; /* the version whose class is meant; NULL:
                                 5.5.0, which the packs pin */
    struct ledger *ledger;    /* of the pack's files; NULL: one of its own */
};

/*
 * Opens a pack folder (tokenizer.json, else tiktoken.model) or a tokenizer.json
 * by its own name (then there is no class).  NULL options: all zero.  Returns
 * NULL with err set.
 */
struct tokenizer *tokenizer_open(const char *path,
                                 const struct tokenizer_options *options,
                                 struct err *err);
void tokenizer_free(struct tokenizer *t); /* NULL is fine */

/* "file", "class" or unset (NULL), as protocols spell it. */
int tokenizer_rule_parse(const char *text, enum tokenizer_rule *out,
                         struct err *err);

struct token_ids {
    int64_t *ids;
    size_t count, cap;
    bool want_places;      /* set by the caller: fill the next two */
    size_t *starts, *ends; /* each token's bytes in the text it came from;
                              equal for a token that came from none */
};

void token_ids_init(struct token_ids *ids);
void token_ids_release(struct token_ids *ids);

/*
 * The ids of a text of valid UTF-8 (else ERR_INPUT with the byte's offset); out
 * is emptied first.  add_special asks the post-processor for the tokens it puts
 * around a text; a rendered chat prompt has them already.
 */
int tokenizer_encode(const struct tokenizer *t, const char *text, size_t len,
                     bool add_special, struct token_ids *out, struct err *err);

/*
 * Appends the text of ids to out; ids that stand for nothing are left out, as
 * upstream does.  skip_special leaves out the special tokens.
 */
int tokenizer_decode(const struct tokenizer *t, const int64_t *ids, size_t n,
                     bool skip_special, struct buf *out, struct err *err);

/* The id of a token as the vocabulary spells it, or -1. */
int64_t tokenizer_id(const struct tokenizer *t, const char *token);

/* How the vocabulary (or the added token) spells an id; NULL if it has none. */
const char *tokenizer_piece(const struct tokenizer *t, int64_t id, size_t *len);

/* One more than the highest id. */
size_t tokenizer_size(const struct tokenizer *t);

/* The tokenizer_class that the pack names, or NULL. */
const char *tokenizer_class(const struct tokenizer *t);

/*
 * The special tokens that the pack's class has where the pack's files name
 * none: key, token, key, token, NULL; *tokens is NULL where it has none.
 * transformers is the version whose class is meant, or NULL.
 */
int tokenizer_class_tokens(const char *pack, struct ledger *ledger,
                           const char *transformers, const char *const **tokens,
                           struct err *err);

/* Whose tables decide what, for records: Unicode versions, and PCRE2's own. */
struct tokenizer_versions {
    const char *normalization, *patterns, *lower_case, *punctuation, *pcre2;
};
void tokenizer_versions(struct tokenizer_versions *out);

/* What was seen in the file and has no effect here, one line each; NULL after
 * the last. */
const char *tokenizer_warning(const struct tokenizer *t, size_t i);
#endif
