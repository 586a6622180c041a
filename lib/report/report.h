#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

#include "base/buf.h"
#include "base/err.h"
#include "json/json.h"

/*
 * Reports of a comparison, from its document alone (gates/compare.h): the same
 * document gives the same bytes.
 */

/* For a terminal: cases x gates, the worst of each gate, every failure in one
 * line, the verdict last. */
void report_text(const json_t *document, struct buf *out);

/* The verdict first, one table, the rest folded away; below 200 KB. */
void report_markdown(const json_t *document, struct buf *out);

/* One self-contained page: no script, nothing fetched, light and dark. */
void report_html(const json_t *document, struct buf *out);

/* JUnit's XML: a suite a case, a test a gate; a gate that did not run is an
 * error.  `suite` names the whole. */
void report_junit(const json_t *document, const char *suite, struct buf *out);

/*
 * A comparison's files, in order: CASE.json for each case, summary.json,
 * report.md, report.html and junit.xml, given to `visit` one after the other.
 * A case named as one of them is ERR_INPUT, and so are two that differ only in
 * case.
 */
int report_each(const json_t *document,
                int (*visit)(const char *name, const struct buf *text,
                             void *context, struct err *err),
                void *context, struct err *err);

/* The same into a folder that is there (base/publish.h guards it); the names
 * written go to `visit` when it is not NULL. */
int report_write(const json_t *document, const char *dir,
                 int (*visit)(const char *name, void *context, struct err *err),
                 void *context, struct err *err);
#endif
