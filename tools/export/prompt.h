#ifndef EXPORT_PROMPT_H
#define EXPORT_PROMPT_H

#include "base/buf.h"
#include "base/err.h"
#include "cases/cases.h"
#include "cases/protocol.h"
#include "evidence/stage.h"
#include "jinja/jinja.h"
#include "tokenizer/tokenizer.h"

/* A pack's chat template and tokenizer, as the protocol means them.  What they
 * read of its files goes into the ledger, which may be NULL. */

/* Returns NULL with err set; tokenizer_free() it. */
struct tokenizer *prompt_tokenizer(const char *pack, struct ledger *ledger,
                                   const struct protocol *protocol,
                                   struct err *err);

/* The rendered prompt of a case, with the generation prompt at its end;
 * `results` may be NULL. */
int prompt_render(const char *pack, struct ledger *ledger,
                  const struct test_case *c, const struct protocol *protocol,
                  struct jinja_results *results, struct buf *out,
                  struct err *err);

/* Into a stage record: the pack's files that prompts are made from; the
 * environment, rule and library versions that can change a bit. */
int prompt_record_files(struct stage *stage, const char *pack, struct err *err);
void prompt_describe(struct stage *stage, const struct tokenizer *tokenizer,
                     const struct protocol *protocol);
#endif
