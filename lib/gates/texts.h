#ifndef GATES_TEXTS_H
#define GATES_TEXTS_H

#include "base/buf.h"
#include "base/err.h"
#include "cases/cases.h"
#include "json/json.h"

#include <stddef.h>
#include <stdint.h>

/*
 * What only the pack can say of captures that differ: pieces and text of ids,
 * and the place of the template that wrote a byte.  All that is asked is
 * remembered: an auditor without the pack, given that, comes to the same
 * document.
 */
struct texts;

/* From a pack, read as the protocol (a path, or NULL) means it. */
struct texts *texts_open_pack(const char *pack, const char *protocol,
                              struct err *err);
/* From what another one remembered. */
struct texts *texts_open(const char *path, struct err *err);
void texts_free(struct texts *t); /* NULL is fine */

/*
 * {"ids": [...], "pieces": [...], "text": "..."} of ids that `what`
 * ("prompt_ids of the reference") of a case holds around a difference; pieces
 * and text only where they are known (t may be NULL).  A new reference.
 */
json_t *texts_ids(struct texts *t, const char *case_name, const char *what,
                  const int64_t *ids, size_t count);

/*
 * {"of": "reference" or "candidate", "template": "chat_template.jinja", "line",
 * "column"}: what wrote the byte at `offset` of that side's prompt, the first
 * at which the two differ.  NULL when it is not known: neither is what the
 * pack's template renders.
 */
json_t *texts_place(struct texts *t, const struct test_case *c,
                    const struct buf *reference, const struct buf *candidate,
                    size_t offset);

/* What was asked: {"CASE": {"prompt_ids of the reference": {...}, "place":
 * {...}}}, a new reference. */
json_t *texts_remembered(const struct texts *t);
#endif
