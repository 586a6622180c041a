#ifndef JINJA_JINJA_H
#define JINJA_JINJA_H

#include "base/buf.h"
#include "base/err.h"
#include "json/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Chat templates, executed as upstream executes them: Jinja2 3.1.6 in the
 * environment of transformers' apply_chat_template (immutable sandbox,
 * trim_blocks, lstrip_blocks, loop controls, generation blocks, its tojson,
 * raise_exception and strftime_now), with the values, str methods and printing
 * of Python 3.11.
 *
 *     struct jinja_options o = {.transformers = "5.5.0", .now = NULL};
 *     struct jinja_template *t = jinja_compile(name, source, len, &o, &err);
 *     if (t && jinja_render(t, context, &out, &err) == 0) ...
 *     jinja_free(t);
 *
 * A template comes from anyone: steps, memory, output and nesting are bounded
 * (the JINJA_ limits), and passing a bound is a refusal.  What upstream has and
 * we do not is ERR_UNSUPPORTED by its name; what upstream fails on is
 * ERR_INPUT.  Messages start with the template's name, line and column.
 */
struct jinja_template;

enum {
    JINJA_MAX_SOURCE = 1 << 20, /* bytes of a template */
    JINJA_MAX_OUTPUT = 16 << 20,
    JINJA_MAX_STEPS = 10 * 1000 * 1000,
    JINJA_MAX_MEMORY = 256 << 20, /* all values of one render */
    JINJA_MAX_NESTING = 200,      /* of blocks, brackets and values */
    JINJA_MAX_CALLS = 200, /* macros and recursive loops, one in another */
    JINJA_MAX_INTEGER_BITS = 1 << 16,
};

struct jinja_options {
    /* The version meant, "5.5.0" when NULL: rules that changed follow it. */
    const char *transformers;
    /* The template's clock, "2026-02-03T04:05:06Z"; when NULL a template that
     * asks for the time is refused. */
    const char *now;
};

/* Copies what it needs; NULL with err set. */
struct jinja_template *jinja_compile(const char *name, const char *source,
                                     size_t len, const struct jinja_options *o,
                                     struct err *err);
void jinja_free(struct jinja_template *t); /* NULL is fine */

/*
 * Appends the output, UTF-8.  The context is an object of variables; integers
 * keep 64 bits.  A template's own refusal (raise_exception) is ERR_INPUT.
 */
int jinja_render(const struct jinja_template *t, const json_t *context,
                 struct buf *out, struct err *err);

/* What else a render can tell; zero it first, jinja_results_release() after. */
struct jinja_results {
    const char *context_name; /* the context's, for errors in it; may be NULL */
    /* generation blocks, in code points of the output; asked for with
     * want_spans: a block whose place upstream gets wrong is then refused */
    bool want_spans;
    struct jinja_span {
        size_t begin, end;
    } * spans;
    size_t span_count;
    /* which part of the template wrote output from byte `begin` on */
    bool want_origins;
    struct jinja_origin {
        size_t begin;
        unsigned line, column; /* from 1; columns count code points */
        bool is_text;          /* the source's own: the place goes along */
    } * origins;
    size_t origin_count;
    char *name;     /* with want_origins: the template's, as it was compiled */
    bool raised;    /* the failure was raise_exception(text), and */
    struct buf why; /* this is its whole text */
};
void jinja_results_release(struct jinja_results *r);

/* The place that wrote the byte at `offset` of what was rendered: an
 * expression's or block's, of plain text the character's own.  False when there
 * is none. */
bool jinja_origin_at(const struct jinja_results *r, const struct buf *out,
                     size_t offset, struct jinja_origin *place);

/*
 * The same with the context as JSON text, read as Python's json module does:
 * integers of any size, keys in their order.  `results` may be NULL.
 */
int jinja_render_text(const struct jinja_template *t, const char *context,
                      size_t len, struct jinja_results *results,
                      struct buf *out, struct err *err);
int jinja_render_more(const struct jinja_template *t, const json_t *context,
                      struct jinja_results *results, struct buf *out,
                      struct err *err);

/* Unicode version of the tables behind str methods, "14.0.0". */
const char *jinja_unicode_version(void);
#endif
