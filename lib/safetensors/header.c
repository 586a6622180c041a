/*
 * The JSON header of a .safetensors file, read by its own grammar:
 *
 *     { "__metadata__": {"key": "value", ...} or null,
 *       "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]} }
 *
 * Nothing else is JSON that we need, so there is no recursion.  Strings are
 * unescaped in place, where they only get shorter.
 */
#include "safetensors/safetensors_internal.h"

#include "base/hex.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cursor {
    char *start, *at, *end;
    struct err *err;
};

const char *st_show(const char *name, char out[ST_SHOWN])
{
    size_t at = 0;
    const char *s = name;

    while (*s && at < ST_SHOWN - 16) {
        unsigned char c = (unsigned char)*s++;

        if (c < 0x20 || c == 0x7f)
            at += (size_t)snprintf(out + at, ST_SHOWN - at, "\\u%04x", c);
        else
            out[at++] = (char)c;
    }
    while (((unsigned char)*s & 0xc0) == 0x80) /* not inside a character */
        out[at++] = *s++;
    snprintf(out + at, ST_SHOWN - at, "%s", *s ? "..." : "");
    return out;
}

static int fail(struct cursor *c, const char *what)
{
    return err_set(c->err, ERR_INPUT, "header, byte %td: %s", c->at - c->start,
                   what);
}

static void skip_space(struct cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' ||
                              *c->at == '\r' || *c->at == '\t'))
        c->at++;
}

/* Is `ch` the next character?  Steps over it if so. */
static bool accept(struct cursor *c, char ch)
{
    skip_space(c);
    if (c->at >= c->end || *c->at != ch)
        return false;
    c->at++;
    return true;
}

static int expect(struct cursor *c, char ch)
{
    char what[] = "expected ' '";

    if (accept(c, ch))
        return 0;
    what[10] = ch;
    return fail(c, c->at < c->end ? what : "the header ends early");
}

/* After an item: 1 when another follows, 0 at `close`, -1 otherwise. */
static int next_item(struct cursor *c, char close)
{
    if (accept(c, ','))
        return 1;
    return expect(c, close);
}

/* Four hex digits, or -1. */
static int hex4(struct cursor *c)
{
    int value = 0;

    if (c->end - c->at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(*c->at);

        if (digit < 0)
            return -1;
        value = value * 16 + digit;
        c->at++;
    }
    return value;
}

/* After a backslash: writes the character at *to. */
static int parse_escape(struct cursor *c, char **to)
{
    static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
    const char *simple;
    int code, low;

    if (c->at >= c->end)
        return fail(c, "the header ends early");
    if (*c->at != 'u') {
        simple = strchr(from, *c->at);
        if (!simple || !*simple)
            return fail(c, "no such escape");
        *(*to)++ = into[simple - from];
        c->at++;
        return 0;
    }
    c->at++;
    code = hex4(c);
    if (code < 0)
        return fail(c, "\\u needs four hex digits");
    if (code == 0)
        return fail(c, "U+0000 in a string");
    if (code >= 0xdc00 && code < 0xe000)
        return fail(c, "half a surrogate pair");
    if (code >= 0xd800 && code < 0xdc00) {
        if (c->end - c->at < 2 || c->at[0] != '\\' || c->at[1] != 'u')
            return fail(c, "half a surrogate pair");
        c->at += 2;
        low = hex4(c);
        if (low < 0xdc00 || low > 0xdfff)
            return fail(c, "half a surrogate pair");
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    *to += utf8_put((uint32_t)code, *to);
    return 0;
}

/* A string, unescaped where it stands; *len may be NULL. */
static int parse_string(struct cursor *c, char **out, size_t *len)
{
    char *to;

    if (!accept(c, '"'))
        return fail(c, c->at < c->end ? "expected a string"
                                      : "the header ends early");
    *out = to = c->at;
    for (;;) {
        unsigned char ch;

        if (c->at >= c->end)
            return fail(c, "the header ends early");
        ch = (unsigned char)*c->at;
        if (ch == '"')
            break;
        if (ch < 0x20)
            return fail(c, "control character in a string");
        c->at++;
        if (ch != '\\')
            *to++ = (char)ch;
        else if (parse_escape(c, &to))
            return -1;
    }
    c->at++;
    *to = '\0';
    if (len)
        *len = (size_t)(to - *out);
    return 0;
}

/* 0 or a digit string without leading zero, at most 2^63 - 1. */
static int parse_int(struct cursor *c, int64_t *out)
{
    int64_t value = 0;
    const char *first;

    skip_space(c);
    first = c->at;
    while (c->at < c->end && *c->at >= '0' && *c->at <= '9') {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, *c->at - '0', &value))
            return fail(c, "a number above 2^63 - 1");
        c->at++;
    }
    if (c->at == first || (*first == '0' && c->at - first > 1) ||
        (c->at < c->end && strchr(".eE", *c->at)))
        return fail(c, "expected a plain non-negative integer");
    *out = value;
    return 0;
}

static int parse_dtype(struct cursor *c, enum dtype *out)
{
    char shown[ST_SHOWN], known[256] = "";
    char *name;

    if (parse_string(c, &name, NULL))
        return -1;
    if (dtype_parse(name, out))
        return 0;
    for (int d = 0; d < DTYPE_COUNT; d++) {
        size_t n = strlen(known);

        snprintf(known + n, sizeof(known) - n, " %s",
                 dtype_name((enum dtype)d));
    }
    return err_set(c->err, ERR_INPUT, "unknown dtype '%s'; known:%s",
                   st_show(name, shown), known);
}

static int parse_shape(struct cursor *c, struct tensor_shape *out)
{
    int more = 1;

    out->dims = 0;
    if (expect(c, '['))
        return -1;
    if (accept(c, ']'))
        return 0;
    while (more == 1) {
        if (out->dims == TENSOR_MAX_DIMS)
            return fail(c, "more than 32 dimensions");
        if (parse_int(c, &out->size[out->dims++]))
            return -1;
        more = next_item(c, ']');
    }
    return more;
}

static int parse_offsets(struct cursor *c, int64_t *begin, int64_t *end)
{
    return expect(c, '[') || parse_int(c, begin) || expect(c, ',') ||
                   parse_int(c, end) || expect(c, ']')
               ? -1
               : 0;
}

/* Does the shape need exactly the bytes between the offsets? */
static int check_size(struct tensor_info *info, int64_t begin, int64_t end,
                      struct err *err)
{
    int64_t bytes = shape_bytes(&info->shape, info->dtype);
    char text[256];

    shape_format(&info->shape, text, sizeof(text));
    if (end < begin)
        return err_set(err, ERR_INPUT, "offsets [%lld, %lld) run backwards",
                       (long long)begin, (long long)end);
    if (bytes < 0 && shape_count(&info->shape) >= 0 &&
        shape_count(&info->shape) < INT64_MAX / 64)
        return err_set(err, ERR_INPUT,
                       "shape %s of %u-bit elements is no whole number of "
                       "bytes",
                       text, dtype_bits(info->dtype));
    if (bytes < 0)
        return err_set(err, ERR_INPUT, "shape %s overflows", text);
    if (bytes != end - begin)
        return err_set(err, ERR_INPUT,
                       "offsets [%lld, %lld) hold %lld bytes, %s %s needs %lld",
                       (long long)begin, (long long)end,
                       (long long)(end - begin), dtype_name(info->dtype), text,
                       (long long)bytes);
    info->offset = begin;
    info->bytes = bytes;
    return 0;
}

static int parse_entry(struct cursor *c, struct tensor_info *info)
{
    enum { DTYPE = 1, SHAPE_KEY = 2, OFFSETS = 4 };
    int seen = 0, more = 1;
    int64_t begin = 0, end = 0;

    if (expect(c, '{'))
        return -1;
    if (accept(c, '}'))
        more = 0;
    while (more == 1) {
        char *key;
        int which;

        if (parse_string(c, &key, NULL) || expect(c, ':'))
            return -1;
        which = strcmp(key, "dtype") == 0          ? DTYPE
                : strcmp(key, "shape") == 0        ? SHAPE_KEY
                : strcmp(key, "data_offsets") == 0 ? OFFSETS
                                                   : 0;
        if (which == 0)
            return fail(c, "a key that is not dtype, shape or data_offsets");
        if (seen & which)
            return fail(c, "a key twice in one entry");
        seen |= which;
        if (which == DTYPE       ? parse_dtype(c, &info->dtype)
            : which == SHAPE_KEY ? parse_shape(c, &info->shape)
                                 : parse_offsets(c, &begin, &end))
            return -1;
        more = next_item(c, '}');
    }
    if (more < 0)
        return -1;
    if (seen != (DTYPE | SHAPE_KEY | OFFSETS))
        return fail(c, "dtype, shape or data_offsets is missing");
    return check_size(info, begin, end, c->err);
}

/* Room for one more item of `size` bytes in *items; NULL when there is none. */
static void *grow(void *items, size_t count, size_t *cap, size_t size,
                  struct err *err)
{
    size_t more = *cap ? *cap * 2 : 64;
    void *bigger;

    if (count < *cap)
        return items;
    if (count >= ST_TENSOR_CAP) {
        err_set(err, ERR_UNSUPPORTED, "more than %d tensors in one file",
                ST_TENSOR_CAP);
        return NULL;
    }
    bigger = mem_array(more, size, SIZE_MAX, err);
    if (!bigger)
        return NULL;
    if (count)
        memcpy(bigger, items, count * size);
    free(items);
    *cap = more;
    return bigger;
}

static int pair_order(const void *a, const void *b)
{
    return strcmp(((const struct st_pair *)a)->key,
                  ((const struct st_pair *)b)->key);
}

static int parse_metadata(struct cursor *c, struct st_header *h)
{
    char shown[ST_SHOWN];
    int more = 1;

    skip_space(c);
    if (c->end - c->at >= 4 && memcmp(c->at, "null", 4) == 0) {
        c->at += 4;
        return 0;
    }
    if (expect(c, '{'))
        return -1;
    if (accept(c, '}'))
        return 0;
    while (more == 1) {
        char *key, *value;
        struct st_pair *room;

        if (parse_string(c, &key, NULL) || expect(c, ':') ||
            parse_string(c, &value, NULL))
            return -1;
        room = grow(h->metadata, h->metadata_count, &h->metadata_cap,
                    sizeof(*room), c->err);
        if (!room)
            return -1;
        h->metadata = room;
        h->metadata[h->metadata_count++] = (struct st_pair){key, value};
        more = next_item(c, '}');
    }
    if (more < 0)
        return -1;
    qsort(h->metadata, h->metadata_count, sizeof(*h->metadata), pair_order);
    for (size_t i = 1; i < h->metadata_count; i++)
        if (strcmp(h->metadata[i - 1].key, h->metadata[i].key) == 0)
            return err_set(c->err, ERR_INPUT, "key '%s' twice",
                           st_show(h->metadata[i].key, shown));
    return 0;
}

static int parse_tensor(struct cursor *c, char *name, size_t len,
                        struct st_header *h)
{
    char shown[ST_SHOWN];
    struct tensor_info *room;

    if (len > ST_NAME_CAP)
        return fail(c, "a name longer than 65536 bytes");
    room = grow(h->infos, h->count, &h->cap, sizeof(*room), c->err);
    if (!room)
        return -1;
    h->infos = room;
    room[h->count].name = name;
    if (parse_entry(c, &room[h->count]))
        return err_in(c->err, "tensor '%s'", st_show(name, shown));
    h->count++;
    return 0;
}

static int info_order(const void *a, const void *b)
{
    return strcmp(((const struct tensor_info *)a)->name,
                  ((const struct tensor_info *)b)->name);
}

static int parse_items(struct cursor *c, struct st_header *h)
{
    bool has_metadata = false;
    int more = 1;

    if (accept(c, '}'))
        return 0;
    while (more == 1) {
        char *name;
        size_t len;

        if (parse_string(c, &name, &len) || expect(c, ':'))
            return -1;
        if (strcmp(name, "__metadata__") != 0) {
            if (parse_tensor(c, name, len, h))
                return -1;
        } else {
            if (has_metadata)
                return fail(c, "'__metadata__' twice");
            has_metadata = true;
            if (parse_metadata(c, h))
                return err_in(c->err, "'__metadata__'");
        }
        more = next_item(c, '}');
    }
    return more;
}

int st_header_parse(char *text, size_t len, struct st_header *out,
                    struct err *err)
{
    struct cursor c = {text, text, text + len, err};
    char shown[ST_SHOWN];

    *out = (struct st_header){NULL, 0, 0, NULL, 0, 0};
    if (len == 0)
        return err_set(err, ERR_INPUT, "the header is empty");
    if (!utf8_is_valid(text, len))
        return err_set(err, ERR_INPUT, "the header is not UTF-8");
    if (*text != '{')
        return fail(&c, "the header must start with '{'");
    c.at++;
    if (parse_items(&c, out))
        return -1;
    while (c.at < c.end && *c.at == ' ')
        c.at++;
    if (c.at < c.end)
        return fail(&c, "bytes after the header's object");
    if (out->count)
        qsort(out->infos, out->count, sizeof(*out->infos), info_order);
    for (size_t i = 1; i < out->count; i++)
        if (strcmp(out->infos[i - 1].name, out->infos[i].name) == 0)
            return err_set(err, ERR_INPUT, "tensor '%s' twice",
                           st_show(out->infos[i].name, shown));
    return 0;
}

void st_header_release(struct st_header *h)
{
    free(h->infos);
    free(h->metadata);
    *h = (struct st_header){NULL, 0, 0, NULL, 0, 0};
}
