#ifndef JSON_STREAM_H
#define JSON_STREAM_H

#include "base/buf.h"
#include "base/err.h"
#include "json/json.h"
#include "json/window.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A pull reader for JSON documents too large to build as a tree (a
 * tokenizer.json has half a million merges).  It reads a file a little at a
 * time, one event a call, strictly: UTF-8 without BOM, depth at most 64,
 * nothing after the document; errors are ERR_INPUT with line and column (a file
 * that cannot be read: what io_pread() says).  Numbers are checked for their
 * form and handed over as they are spelled.
 *
 *     struct json_stream s;
 *     json_stream_open(&s, path, JSON_WINDOW, &err);
 *     while ((event = json_stream_next(&s, &err)) > STREAM_DONE) ...
 *     json_stream_release(&s);
 *
 * Who reads an object event by event looks for keys that come twice.
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

struct json_stream {
    const char *text; /* of the last key, text, number; valid until the next
                         call; not NUL-terminated */
    size_t len;

    struct window in; /* the rest is the reader's own: positions are in it */
    size_t at;
    size_t start; /* where the last event begins */
    enum json_event last;
    bool is_copied; /* text is in scratch */
    int depth;
    unsigned state;
    char open[64];
    struct buf scratch;
};

/* Bytes of a file that are held at a time, unless a string is longer: little
 * enough to stay in the processor's cache. */
enum { JSON_WINDOW = 256 << 10 };

/* May be released when it fails. */
int json_stream_open(struct json_stream *s, const char *path, size_t window,
                     struct err *err);
void json_stream_release(struct json_stream *s);

enum json_event json_stream_next(struct json_stream *s, struct err *err);

/* Reads over the value whose first event comes next, checking it. */
int json_stream_skip(struct json_stream *s, struct err *err);

/* That value as a tree; NULL with err, where a key comes twice too. */
json_t *json_stream_tree(struct json_stream *s, struct err *err);

/* The last event's text, number or truth as a tree, null of any other; NULL
 * with err for a number that fits neither 64 bits nor a double. */
json_t *json_stream_scalar(const struct json_stream *s, struct err *err);

/* Where in the text the next event begins, or the blanks before it; and back to
 * there, to read one value over again. */
size_t json_stream_offset(const struct json_stream *s);
void json_stream_seek(struct json_stream *s, size_t offset);

/* Sets err to "line L, column C: ..." for the last event's place; and puts that
 * before what err says. */
int json_stream_in(const struct json_stream *s, struct err *err);
int json_stream_fail(const struct json_stream *s, enum err_code code,
                     struct err *err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
#endif
