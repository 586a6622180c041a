#ifndef PROMPT_PROMPT_H
#define PROMPT_PROMPT_H

#include "base/buf.h"
#include "base/err.h"
#include "cases/cases.h"
#include "cases/protocol.h"
#include "jinja/jinja.h"
#include "ledger/ledger.h"
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

/* Visits the pack's files that prompts are made from. */
typedef int prompt_visitor(const char *path, void *context, struct err *err);
int prompt_files(const char *pack, prompt_visitor *visit, void *context,
                 struct err *err);
#endif
