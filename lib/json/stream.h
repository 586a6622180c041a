#ifndef JSON_STREAM_H
#define JSON_STREAM_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A pull reader for JSON documents too large to build as a tree (a
 * tokenizer.json has half a million merges).  It reads a text in memory, one
 * event a call, strictly: UTF-8 without BOM, depth at most 64, nothing after
 * the document; errors are ERR_INPUT with line and column.  Numbers are checked
 * for their form and handed over as they are spelled.
 *
 *     struct json_stream s;
 *     json_stream_init(&s, data, len);
 *     while ((event = json_stream_next(&s, &err)) > STREAM_DONE) ...
 *     json_stream_release(&s);
 *
 * Duplicate keys are refused inside every value that is read while `unique` is
 * set (it may be changed between calls); where it is not, the caller looks.
 */
enum json_event {
    STREAM_BAD = -1, /* err says why */
    STREAM_DONE = 0, /* the document has ended */
    STREAM_OBJECT,   /* { */
    STREAM_OBJECT_END,
    STREAM_LIST, /* [ */
    STREAM_LIST_END,
    STREAM_KEY,  /* text, len: decoded */
    STREAM_TEXT, /* text, len: decoded */
    STREAM_NUMBER,
    STREAM_TRUTH, /* true or false: text[0] tells */
    STREAM_NOTHING,
};

struct json_stream_keys;

struct json_stream {
    const char *text; /* of the last key, text, number; valid until the next
                         call; not NUL-terminated */
    size_t len;
    size_t start; /* offset at which the last event's text begins */
    bool unique;  /* refuse duplicate keys from here on */

    const char *data; /* the rest is the reader's own */
    size_t size, at;
    int depth;
    unsigned state;
    char open[64];
    struct buf scratch;
    struct json_stream_keys *keys;
};

void json_stream_init(struct json_stream *s, const char *data, size_t len);
/* For one value of a document that was read over before. */
void json_stream_init_at(struct json_stream *s, const char *data, size_t len,
                         size_t offset);
void json_stream_release(struct json_stream *s);

enum json_event json_stream_next(struct json_stream *s, struct err *err);

/*
 * Reads over the value whose first event comes next, checking it; *from and *to
 * (NULL is fine) tell where its text lies in the data.
 */
int json_stream_skip(struct json_stream *s, size_t *from, size_t *to,
                     struct err *err);

/* Sets err to "line L, column C: ..." for the last event's place. */
int json_stream_fail(const struct json_stream *s, enum err_code code,
                     struct err *err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Line and column (in bytes) of an offset, both from 1. */
void json_stream_place(const struct json_stream *s, size_t offset, size_t *line,
                       size_t *column);
#endif
