/*
 * A pull reader for large JSON documents.  `state` says what may come next;
 * `open` holds a bracket for each level.
 */
#include "json/stream.h"

#include "base/hex.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAX_DEPTH = 64 };

enum state {
    WANT_VALUE,        /* a value must come */
    WANT_VALUE_OR_END, /* after '[' */
    WANT_KEY_OR_END,   /* after '{' */
    WANT_COMMA_OR_END, /* after a value inside something */
    WANT_NOTHING,      /* the document has ended */
};

static void start_anew(struct json_stream *s)
{
    s->at = s->start = 0;
    s->depth = 0;
    s->state = WANT_VALUE;
}

int json_stream_open(struct json_stream *s, const char *path, size_t window,
                     struct err *err)
{
    memset(s, 0, sizeof(*s));
    start_anew(s);
    return window_open(&s->in, path, window, err);
}

size_t json_stream_offset(const struct json_stream *s)
{
    return s->in.base + s->at;
}

void json_stream_seek(struct json_stream *s, size_t offset)
{
    window_seek(&s->in, offset);
    start_anew(s);
}

void json_stream_release(struct json_stream *s)
{
    window_release(&s->in);
    buf_release(&s->scratch);
}

/* Is there a byte at a position? */
static bool has(struct json_stream *s, size_t at)
{
    while (at >= s->in.size)
        if (!window_more(&s->in))
            return false;
    return true;
}

/* Between two events: lets go of what was read when little is left. */
static void slide(struct json_stream *s)
{
    enum { LITTLE = 16 };

    if (s->in.size - s->at <= s->in.cap / LITTLE && window_slide(&s->in, s->at))
        s->at = 0;
}

static int fail_at(const struct json_stream *s, size_t offset,
                   enum err_code code, struct err *err, const char *what)
{
    const struct err *trouble = &s->in.trouble;
    size_t line, column;

    if (trouble->code != ERR_NONE)
        return err_set(err, trouble->code, "%s", trouble->text);
    window_place(&s->in, offset, &line, &column);
    return err_set(err, code, "line %zu, column %zu: %s", line, column, what);
}

int json_stream_in(const struct json_stream *s, struct err *err)
{
    size_t line, column;

    window_place(&s->in, s->start, &line, &column);
    return err_in(err, "line %zu, column %zu", line, column);
}

int json_stream_fail(const struct json_stream *s, enum err_code code,
                     struct err *err, const char *format, ...)
{
    char what[384];
    va_list ap;

    va_start(ap, format);
    vsnprintf(what, sizeof(what), format, ap);
    va_end(ap);
    return fail_at(s, s->start, code, err, what);
}

static enum json_event bad(struct json_stream *s, size_t offset,
                           struct err *err, const char *what)
{
    fail_at(s, offset, ERR_INPUT, err, what);
    return STREAM_BAD;
}

/* How many of eight bytes are spaces, up to the first that is none. */
static size_t count_spaces(const char *p)
{
    uint64_t word;

    memcpy(&word, p, sizeof(word));
    word ^= UINT64_C(0x2020202020202020);
    return word ? (size_t)__builtin_ctzll(word) / 8 : 8;
}

static void skip_blank(struct json_stream *s)
{
    do {
        const char *p = s->in.data + s->at, *end = s->in.data + s->in.size;

        while (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r') {
            p++; /* indentation is much of such a document: eight at a time */
            if (end - p >= 8)
                p += count_spaces(p);
        }
        s->at = (size_t)(p - s->in.data);
    } while (s->at == s->in.size && window_more(&s->in));
}

/* The byte that comes next, blanks left out; NUL at the end. */
static char next_byte(struct json_stream *s)
{
    skip_blank(s);
    return s->in.data[s->at];
}

/* The four digits at a position. */
static int hex4(struct json_stream *s, size_t at, uint32_t *out)
{
    return has(s, at + 3) ? hex_read(s->in.data + at, 4, out) : -1;
}

static int low_surrogate(struct json_stream *s, size_t at, uint32_t *out)
{
    if (!has(s, at + 1) || memcmp(s->in.data + at, "\\u", 2) != 0 ||
        hex4(s, at + 2, out))
        return -1;
    return *out >= 0xdc00 && *out < 0xe000 ? 0 : -1;
}

/* One escape at s->at (behind the backslash) into scratch. */
static int read_escape(struct json_stream *s, struct err *err)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    uint32_t c, low;
    char u[4];

    if (!has(s, s->at))
        return fail_at(s, s->at, ERR_INPUT, err, "text ends inside a string");
    char letter = s->in.data[s->at];
    const char *plain = letter ? strchr(from, letter) : NULL;
    if (plain) {
        buf_addch(&s->scratch, to[plain - from]);
        s->at++;
        return 0;
    }
    if (letter != 'u')
        return fail_at(s, s->at - 1, ERR_INPUT, err, "unknown escape");
    if (hex4(s, s->at + 1, &c))
        return fail_at(s, s->at - 1, ERR_INPUT, err,
                       "'\\u' without four hexadecimal digits");
    s->at += 5;
    if (c >= 0xd800 && c < 0xe000) {
        if (c >= 0xdc00 || low_surrogate(s, s->at, &low))
            return fail_at(s, s->at - 6, ERR_INPUT, err,
                           "a surrogate without its pair");
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        s->at += 6;
    }
    buf_add(&s->scratch, u, utf8_put(c, u));
    return 0;
}

/* The first byte from `at` on that is neither plain ASCII nor of a character of
 * two bytes, which most of a byte-level vocabulary is. */
static size_t skip_plain(struct json_stream *s, size_t at)
{
    const unsigned char *p = (const unsigned char *)s->in.data + at;

    for (;;) {
        while (*p >= 0x20 && *p < 0x80 && *p != '"' && *p != '\\')
            p++;
        if (*p < 0xc2 || *p >= 0xe0 || (p[1] & 0xc0) != 0x80)
            break;
        p += 2;
    }
    return (size_t)(p - (const unsigned char *)s->in.data);
}

/* Text that lies in the window, or a copy of it: the window may have moved. */
static void set_text(struct json_stream *s)
{
    s->text = s->is_copied ? s->scratch.data : s->in.data + s->start + 1;
}

/* The string whose opening quote is at s->at; sets text and len. */
static int read_string(struct json_stream *s, struct err *err)
{
    size_t i = s->at + 1, run = i;

    s->start = s->at;
    s->is_copied = false;
    for (;;) {
        i = skip_plain(s, i);
        if (!has(s, i))
            return fail_at(s, s->start, ERR_INPUT, err,
                           "text ends inside a string");
        unsigned char c = (unsigned char)s->in.data[i];
        if (c >= 0x80) {
            has(s, i + 3);
            size_t n = utf8_len(s->in.data + i, s->in.size - i);
            if (n == 0)
                return fail_at(s, i, ERR_INPUT, err, "not UTF-8");
            i += n;
        } else if (c == '"') {
            break;
        } else if (c == '\\') {
            if (!s->is_copied)
                buf_clear(&s->scratch);
            s->is_copied = true;
            buf_add(&s->scratch, s->in.data + run, i - run);
            s->at = i + 1;
            if (read_escape(s, err))
                return -1;
            i = run = s->at;
        } else if (c < 0x20) {
            return fail_at(s, i, ERR_INPUT, err,
                           "a control character inside a string");
        }
    }
    if (s->is_copied)
        buf_add(&s->scratch, s->in.data + run, i - run);
    s->len = s->is_copied ? s->scratch.len : i - run;
    s->at = i + 1;
    set_text(s);
    return 0;
}

static bool is_at(struct json_stream *s, size_t at, char a, char b)
{
    return has(s, at) && (s->in.data[at] == a || s->in.data[at] == b);
}

/* Where the digits from a position on end. */
static size_t skip_digits(struct json_stream *s, size_t at)
{
    while (has(s, at) && s->in.data[at] >= '0' && s->in.data[at] <= '9')
        at++;
    return at;
}

static int read_number(struct json_stream *s, struct err *err)
{
    size_t i = s->at + is_at(s, s->at, '-', '-'), from = i;
    bool is_sound;

    s->start = s->at;
    i = skip_digits(s, from);
    is_sound = i == from + 1 || (i > from && s->in.data[from] != '0');
    if (is_sound && is_at(s, i, '.', '.')) {
        from = i + 1;
        i = skip_digits(s, from);
        is_sound = i > from;
    }
    if (is_sound && is_at(s, i, 'e', 'E')) {
        from = i + 1 + is_at(s, i + 1, '+', '-');
        i = skip_digits(s, from);
        is_sound = i > from;
    }
    if (!is_sound)
        return fail_at(s, s->start, ERR_INPUT, err, "not a number");
    s->text = s->in.data + s->start;
    s->len = i - s->start;
    s->at = i;
    return 0;
}

static enum json_event open_level(struct json_stream *s, char bracket,
                                  struct err *err)
{
    s->start = s->at;
    if (s->depth == MAX_DEPTH)
        return bad(s, s->at, err, "nested deeper than 64");
    s->open[s->depth++] = bracket;
    s->at++;
    s->state = bracket == '[' ? WANT_VALUE_OR_END : WANT_KEY_OR_END;
    return bracket == '[' ? STREAM_LIST : STREAM_OBJECT;
}

static void after_value(struct json_stream *s)
{
    s->state = s->depth ? WANT_COMMA_OR_END : WANT_NOTHING;
}

static enum json_event close_level(struct json_stream *s)
{
    s->start = s->at++;
    bool is_list = s->open[--s->depth] == '[';
    after_value(s);
    return is_list ? STREAM_LIST_END : STREAM_OBJECT_END;
}

static enum json_event read_word(struct json_stream *s, const char *word,
                                 enum json_event event, struct err *err)
{
    size_t n = strlen(word);

    s->start = s->at;
    if (!has(s, s->at + n - 1) || memcmp(s->in.data + s->at, word, n) != 0)
        return bad(s, s->at, err, "not a value");
    s->text = s->in.data + s->at;
    s->len = n;
    s->at += n;
    after_value(s);
    return event;
}

static enum json_event read_key(struct json_stream *s, struct err *err)
{
    if (!has(s, s->at))
        return bad(s, s->at, err, "text ends inside an object");
    if (s->in.data[s->at] != '"')
        return bad(s, s->at, err, "a key must be a string");
    if (read_string(s, err))
        return STREAM_BAD;
    if (next_byte(s) != ':')
        return bad(s, s->at, err, "no ':' after a key");
    s->at++;
    set_text(s);
    s->state = WANT_VALUE;
    return STREAM_KEY;
}

static enum json_event read_value(struct json_stream *s, struct err *err)
{
    s->start = s->at;
    if (!has(s, s->at))
        return bad(s, s->at, err, "text ends where a value is due");
    char c = s->in.data[s->at];
    if (c == '"') {
        if (read_string(s, err))
            return STREAM_BAD;
        after_value(s);
        return STREAM_TEXT;
    }
    if (c == '{' || c == '[')
        return open_level(s, c, err);
    if (c == '-' || (c >= '0' && c <= '9')) {
        if (read_number(s, err))
            return STREAM_BAD;
        after_value(s);
        return STREAM_NUMBER;
    }
    if (c == 't')
        return read_word(s, "true", STREAM_TRUTH, err);
    if (c == 'f')
        return read_word(s, "false", STREAM_TRUTH, err);
    return read_word(s, "null", STREAM_NOTHING, err);
}

static bool starts_with_mark(struct json_stream *s)
{
    return s->in.base + s->at == 0 && has(s, 2) &&
           memcmp(s->in.data, "\xef\xbb\xbf", 3) == 0;
}

static enum json_event next_event(struct json_stream *s, struct err *err)
{
    slide(s);
    if (starts_with_mark(s))
        return bad(s, 0, err, "starts with a byte order mark");
    char c = next_byte(s);
    char closing = s->depth && s->open[s->depth - 1] == '[' ? ']' : '}';

    switch ((enum state)s->state) {
    case WANT_NOTHING:
        s->start = s->at;
        if (has(s, s->at) || s->in.trouble.code != ERR_NONE)
            return bad(s, s->at, err, "text after the document");
        return STREAM_DONE;
    case WANT_COMMA_OR_END:
        if (c == closing)
            return close_level(s);
        if (c != ',')
            return bad(s, s->at, err,
                       has(s, s->at) ? "neither ',' nor an end"
                                     : "text ends too early");
        s->at++;
        skip_blank(s);
        return closing == '}' ? read_key(s, err) : read_value(s, err);
    case WANT_KEY_OR_END:
        if (c == '}')
            return close_level(s);
        return read_key(s, err);
    case WANT_VALUE_OR_END:
        if (c == ']')
            return close_level(s);
        return read_value(s, err);
    case WANT_VALUE:
        break;
    }
    return read_value(s, err);
}

enum json_event json_stream_next(struct json_stream *s, struct err *err)
{
    return s->last = next_event(s, err);
}

int json_stream_skip(struct json_stream *s, struct err *err)
{
    int level = s->depth;

    do {
        if (json_stream_next(s, err) == STREAM_BAD)
            return -1;
    } while (s->depth > level);
    return 0;
}
