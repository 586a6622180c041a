/*
 * A pull reader for large JSON documents.  `state` says what may come next;
 * `open` holds a bracket for each level.
 */
#include "json/stream.h"

#include "base/mem.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 64, MAX_PROBES = 4096 };

enum state {
    WANT_VALUE,        /* a value must come */
    WANT_VALUE_OR_END, /* after '[' */
    WANT_KEY_OR_END,   /* after '{' */
    WANT_COMMA_OR_END, /* after a value inside something */
    WANT_NOTHING,      /* the document has ended */
};

/*
 * The keys of the objects that are open, the innermost's last.  They go as they
 * came, last in first out, so a slot that is emptied breaks no search.
 */
struct key {
    uint64_t hash;
    size_t at, len; /* in text */
    int depth;
};
struct json_stream_keys {
    struct key *items;
    size_t count;
    uint32_t *slots; /* places in items, + 1; 0: empty */
    size_t cap;      /* of slots, a power of two; items has half as many */
    struct buf text;
    bool is_open[MAX_DEPTH + 1]; /* are the keys of this level's object kept? */
};

void json_stream_init(struct json_stream *s, const char *data, size_t len)
{
    memset(s, 0, sizeof(*s));
    s->data = data;
    s->size = len;
    s->state = WANT_VALUE;
}

void json_stream_init_at(struct json_stream *s, const char *data, size_t len,
                         size_t offset)
{
    json_stream_init(s, data, len);
    s->at = offset;
}

void json_stream_release(struct json_stream *s)
{
    buf_release(&s->scratch);
    if (s->keys) {
        buf_release(&s->keys->text);
        free(s->keys->items);
        free(s->keys->slots);
        free(s->keys);
    }
    s->keys = NULL;
}

void json_stream_place(const struct json_stream *s, size_t offset, size_t *line,
                       size_t *column)
{
    size_t begin = 0;

    *line = 1;
    for (size_t i = 0; i < offset && i < s->size; i++)
        if (s->data[i] == '\n') {
            ++*line;
            begin = i + 1;
        }
    *column = offset - begin + 1;
}

static int fail_at(const struct json_stream *s, size_t offset,
                   enum err_code code, struct err *err, const char *what)
{
    size_t line, column;

    json_stream_place(s, offset, &line, &column);
    return err_set(err, code, "line %zu, column %zu: %s", line, column, what);
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

static void skip_blank(struct json_stream *s)
{
    const char *p = s->data + s->at, *end = s->data + s->size;

    while (p < end && (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r')) {
        /* Indentation is much of such a document: eight at a time. */
        while (end - p > 8 && memcmp(p + 1, "        ", 8) == 0)
            p += 8;
        p++;
    }
    s->at = (size_t)(p - s->data);
}

static int hex4(const char *p, size_t room, uint32_t *out)
{
    *out = 0;
    if (room < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        char c = p[i];
        uint32_t digit;

        if (c >= '0' && c <= '9')
            digit = (uint32_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            digit = (uint32_t)(c - 'a' + 10);
        else if (c >= 'A' && c <= 'F')
            digit = (uint32_t)(c - 'A' + 10);
        else
            return -1;
        *out = *out << 4 | digit;
    }
    return 0;
}

/* One escape at s->at (behind the backslash) into scratch. */
static int read_escape(struct json_stream *s, struct err *err)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    size_t room = s->size - s->at;
    const char *p = s->data + s->at;
    uint32_t c, low;

    if (room == 0)
        return fail_at(s, s->at, ERR_INPUT, err, "text ends inside a string");
    const char *plain = *p ? strchr(from, *p) : NULL;
    if (plain) {
        buf_addch(&s->scratch, to[plain - from]);
        s->at++;
        return 0;
    }
    if (*p != 'u')
        return fail_at(s, s->at - 1, ERR_INPUT, err, "unknown escape");
    if (hex4(p + 1, room - 1, &c))
        return fail_at(s, s->at - 1, ERR_INPUT, err,
                       "'\\u' without four hexadecimal digits");
    s->at += 5;
    if (c >= 0xd800 && c < 0xe000) {
        p += 5;
        room -= 5;
        if (c >= 0xdc00 || room < 6 || p[0] != '\\' || p[1] != 'u' ||
            hex4(p + 2, room - 2, &low) || low < 0xdc00 || low >= 0xe000)
            return fail_at(s, s->at - 6, ERR_INPUT, err,
                           "a surrogate without its pair");
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        s->at += 6;
    }
    char u[4];
    buf_add(&s->scratch, u, utf8_put(c, u));
    return 0;
}

/* The string whose opening quote is at s->at; sets text and len. */
static int read_string(struct json_stream *s, struct err *err)
{
    const unsigned char *data = (const unsigned char *)s->data;
    size_t i = s->at + 1, run = i;
    bool is_copied = false;

    s->start = s->at;
    for (;;) {
        while (i < s->size && data[i] >= 0x20 && data[i] < 0x80 &&
               data[i] != '"' && data[i] != '\\')
            i++;
        if (i == s->size)
            return fail_at(s, s->start, ERR_INPUT, err,
                           "text ends inside a string");
        if (data[i] >= 0xc2 && data[i] < 0xe0 && s->size - i > 1 &&
            (data[i + 1] & 0xc0) == 0x80) {
            i += 2; /* most of a byte-level vocabulary */
        } else if (data[i] >= 0x80) {
            size_t n = utf8_len(s->data + i, s->size - i);

            if (n == 0)
                return fail_at(s, i, ERR_INPUT, err, "not UTF-8");
            i += n;
        } else if (data[i] == '"') {
            break;
        } else if (data[i] == '\\') {
            if (!is_copied)
                buf_clear(&s->scratch);
            is_copied = true;
            buf_add(&s->scratch, s->data + run, i - run);
            s->at = i + 1;
            if (read_escape(s, err))
                return -1;
            i = run = s->at;
        } else {
            return fail_at(s, i, ERR_INPUT, err,
                           "a control character inside a string");
        }
    }
    if (is_copied) {
        buf_add(&s->scratch, s->data + run, i - run);
        s->text = s->scratch.data;
        s->len = s->scratch.len;
    } else {
        s->text = s->data + run;
        s->len = i - run;
    }
    s->at = i + 1;
    return 0;
}

static bool is_digit(const struct json_stream *s, size_t i)
{
    return i < s->size && s->data[i] >= '0' && s->data[i] <= '9';
}

static int read_number(struct json_stream *s, struct err *err)
{
    size_t i = s->at;
    bool is_sound = true;

    s->start = s->at;
    if (s->data[i] == '-')
        i++;
    if (i < s->size && s->data[i] == '0')
        i++;
    else if (is_digit(s, i))
        while (is_digit(s, i))
            i++;
    else
        is_sound = false;
    if (is_sound && i < s->size && s->data[i] == '.') {
        is_sound = is_digit(s, ++i);
        while (is_digit(s, i))
            i++;
    }
    if (is_sound && i < s->size && (s->data[i] == 'e' || s->data[i] == 'E')) {
        i++;
        if (i < s->size && (s->data[i] == '+' || s->data[i] == '-'))
            i++;
        is_sound = is_digit(s, i);
        while (is_digit(s, i))
            i++;
    }
    if (!is_sound || is_digit(s, i))
        return fail_at(s, s->start, ERR_INPUT, err, "not a number");
    s->text = s->data + s->start;
    s->len = i - s->start;
    s->at = i;
    return 0;
}

static uint64_t hash_key(int depth, const char *text, size_t len)
{
    uint64_t h = 0x9e3779b97f4a7c15u ^ (uint64_t)depth;

    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)text[i]) * 0x100000001b3u;
    return h ^ h >> 29;
}

static bool is_same_key(const struct json_stream_keys *keys,
                        const struct key *a, const struct key *b)
{
    return a->hash == b->hash && a->depth == b->depth && a->len == b->len &&
           memcmp(keys->text.data + a->at, keys->text.data + b->at, a->len) ==
               0;
}

/* The slot of an item: its own or its equal's, else the empty one that it may
 * take; NULL when that is too far. */
static uint32_t *find_slot(const struct json_stream_keys *keys, size_t item)
{
    size_t mask = keys->cap - 1, i = (size_t)keys->items[item].hash & mask;

    for (size_t probes = 0; probes <= MAX_PROBES; probes++) {
        uint32_t *slot = &keys->slots[i];

        if (*slot == 0 || *slot == item + 1 ||
            is_same_key(keys, &keys->items[*slot - 1], &keys->items[item]))
            return slot;
        i = (i + 1) & mask;
    }
    return NULL;
}

/* In the order of the items, as if they had come into this table at once. */
static int grow_keys(struct json_stream_keys *keys)
{
    keys->cap = keys->cap ? keys->cap * 2 : 64;
    keys->items = xrealloc(keys->items, keys->cap / 2 * sizeof(*keys->items));
    free(keys->slots);
    keys->slots = xcalloc(keys->cap, sizeof(*keys->slots));
    for (size_t i = 0; i < keys->count; i++) {
        uint32_t *slot = find_slot(keys, i);

        if (!slot)
            return -1;
        *slot = (uint32_t)i + 1;
    }
    return 0;
}

static int check_key(struct json_stream *s, struct err *err)
{
    struct json_stream_keys *keys = s->keys;
    uint32_t *slot = NULL;

    if (!keys || !keys->is_open[s->depth])
        return 0; /* opened while unique was off */
    if (keys->count * 2 < keys->cap || grow_keys(keys) == 0) {
        keys->items[keys->count] =
            (struct key){hash_key(s->depth, s->text, s->len), keys->text.len,
                         s->len, s->depth};
        buf_add(&keys->text, s->text, s->len);
        slot = find_slot(keys, keys->count);
    }
    if (!slot)
        return json_stream_fail(s, ERR_INPUT, err, "keys are made to collide");
    if (*slot)
        return json_stream_fail(s, ERR_INPUT, err, "duplicate key '%.*s'",
                                (int)(s->len < 100 ? s->len : 100), s->text);
    *slot = (uint32_t)++keys->count;
    return 0;
}

static void drop_keys(struct json_stream_keys *keys, int depth)
{
    while (keys->count && keys->items[keys->count - 1].depth == depth) {
        *find_slot(keys, --keys->count) = 0;
        keys->text.len = keys->items[keys->count].at;
    }
}

static enum json_event open_level(struct json_stream *s, char bracket,
                                  struct err *err)
{
    s->start = s->at;
    if (s->depth == MAX_DEPTH)
        return bad(s, s->at, err, "nested deeper than 64");
    s->open[s->depth++] = bracket;
    s->at++;
    if (bracket == '[') {
        s->state = WANT_VALUE_OR_END;
        return STREAM_LIST;
    }
    if (s->unique && !s->keys)
        s->keys = xcalloc(1, sizeof(*s->keys));
    if (s->keys)
        s->keys->is_open[s->depth] = s->unique;
    s->state = WANT_KEY_OR_END;
    return STREAM_OBJECT;
}

static void after_value(struct json_stream *s)
{
    s->state = s->depth ? WANT_COMMA_OR_END : WANT_NOTHING;
}

static enum json_event close_level(struct json_stream *s)
{
    s->start = s->at++;
    bool is_list = s->open[s->depth - 1] == '[';
    if (s->keys && !is_list)
        drop_keys(s->keys, s->depth);
    s->depth--;
    after_value(s);
    return is_list ? STREAM_LIST_END : STREAM_OBJECT_END;
}

static enum json_event read_word(struct json_stream *s, const char *word,
                                 enum json_event event, struct err *err)
{
    size_t n = strlen(word);

    s->start = s->at;
    if (s->size - s->at < n || memcmp(s->data + s->at, word, n) != 0)
        return bad(s, s->at, err, "not a value");
    s->text = s->data + s->at;
    s->len = n;
    s->at += n;
    after_value(s);
    return event;
}

static enum json_event read_key(struct json_stream *s, struct err *err)
{
    if (s->at == s->size || s->data[s->at] != '"')
        return bad(s, s->at, err,
                   s->at == s->size ? "text ends inside an object"
                                    : "a key must be a string");
    if (read_string(s, err))
        return STREAM_BAD;
    size_t start = s->start;
    if (check_key(s, err))
        return STREAM_BAD;
    skip_blank(s);
    if (s->at == s->size || s->data[s->at] != ':')
        return bad(s, s->at, err, "no ':' after a key");
    s->at++;
    s->start = start;
    s->state = WANT_VALUE;
    return STREAM_KEY;
}

static enum json_event read_value(struct json_stream *s, struct err *err)
{
    char c = s->at < s->size ? s->data[s->at] : '\0';

    s->start = s->at;
    if (s->at == s->size)
        return bad(s, s->at, err, "text ends where a value is due");
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

enum json_event json_stream_next(struct json_stream *s, struct err *err)
{
    if (s->at == 0 && s->size >= 3 && memcmp(s->data, "\xef\xbb\xbf", 3) == 0)
        return bad(s, 0, err, "starts with a byte order mark");
    skip_blank(s);
    char c = s->at < s->size ? s->data[s->at] : '\0';
    char closing = s->depth && s->open[s->depth - 1] == '[' ? ']' : '}';

    switch ((enum state)s->state) {
    case WANT_NOTHING:
        s->start = s->at;
        if (s->at < s->size)
            return bad(s, s->at, err, "text after the document");
        return STREAM_DONE;
    case WANT_COMMA_OR_END:
        if (c == closing)
            return close_level(s);
        if (c != ',')
            return bad(s, s->at, err,
                       s->at == s->size ? "text ends too early"
                                        : "neither ',' nor an end");
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

int json_stream_skip(struct json_stream *s, size_t *from, size_t *to,
                     struct err *err)
{
    int level = s->depth;
    size_t begin = 0;
    bool is_first = true;

    do {
        enum json_event event = json_stream_next(s, err);

        if (event == STREAM_BAD)
            return -1;
        if (is_first)
            begin = s->start;
        is_first = false;
    } while (s->depth > level);
    if (from)
        *from = begin;
    if (to)
        *to = s->at;
    return 0;
}
