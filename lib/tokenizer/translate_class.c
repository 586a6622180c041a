/* What stands for one character in a pattern: escapes and classes. */
#include "tokenizer/translate.h"

#include "base/hex.h"

#include <string.h>

static int read_hex(struct reader *r, size_t least, size_t most, uint32_t *out,
                    struct err *err)
{
    size_t n = 0;

    *out = 0;
    while (n < most && r->at < r->len && hex_digit(r->source[r->at]) >= 0) {
        *out = *out << 4 | (uint32_t)hex_digit(r->source[r->at++]);
        n++;
    }
    if (n < least || *out > CHAR_LAST || (*out >= 0xd800 && *out < 0xe000))
        return reader_refuse(r->at, err, "not a character's number");
    return 0;
}

/* The character an escape stands for; r->at is at the letter after '\'. */
int translate_read_escaped_char(struct reader *r, uint32_t *out,
                                struct err *err)
{
    static const char from[] = "tnrfvae", to[] = "\t\n\r\f\v\a\x1b";
    size_t n, at = r->at;
    char c = r->source[r->at];
    const char *known = c ? strchr(from, c) : NULL;

    if (known && !(c == 'e' && r->engine == PATTERN_RUST)) {
        r->at++;
        *out = (unsigned char)to[known - from];
        return 0;
    }
    if (c == 'x' || c == 'u') {
        bool is_small = c == 'x';

        r->at++;
        if (reader_take(r, "{")) {
            if (!is_small && r->engine == PATTERN_RUBY)
                return reader_refuse(at, err, "'\\u{...}'");
            if (read_hex(r, 1, 8, out, err))
                return -1;
            return reader_take(r, "}")
                       ? 0
                       : reader_refuse(r->at, err, "'{' without '}'");
        }
        if (is_small
                ? read_hex(r, r->engine == PATTERN_RUST ? 2 : 1, 2, out, err)
                : read_hex(r, 4, 4, out, err))
            return -1;
        if (is_small && *out >= 0x80 && r->engine == PATTERN_RUBY)
            return reader_refuse(at, err, "'\\xHH' above 7F (a byte)");
        return 0;
    }
    if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
        (c >= 'A' && c <= 'Z')) {
        char what[40] = "unknown escape '\\?'";

        what[17] = c;
        return reader_refuse(at, err, what);
    }
    *out = utf8_get(r->source + r->at, &n);
    r->at += n;
    return 0;
}

static int add_range(struct reader *r, uint32_t first, uint32_t last,
                     struct char_set *out, struct err *err)
{
    if (first > last)
        return reader_refuse(r->at, err, "a range that runs backwards");
    if (!r->is_caseless) {
        char_set_add(out, first, last);
        return 0;
    }
    if (last >= 0x80 && last - first > 0x40)
        return reader_refuse(r->at, err,
                             "a range outside ASCII without regard to case");
    for (uint32_t c = first; c <= last; c++)
        if (translate_add_caseless(r, c, out, err))
            return -1;
    return 0;
}

/* [:name:] inside a class; r->at is behind "[:". */
static int read_posix(struct reader *r, struct char_set *out, struct err *err)
{
    struct char_set own = {0};
    size_t at = r->at;
    bool is_negated = reader_take(r, "^");

    if (r->is_caseless || r->engine == PATTERN_RUST)
        return reader_refuse(at, err, "a POSIX bracket here");
    if (reader_take(r, "alpha:]")) {
        char_set_add_table(&own, unicode_pattern_alpha,
                           unicode_pattern_alpha_count);
    } else if (reader_take(r, "digit:]")) {
        translate_add_class_letter(r, 'd', true, &own, err);
    } else if (reader_take(r, "space:]")) {
        translate_add_class_letter(r, 's', true, &own, err);
    } else if (reader_take(r, "punct:]")) {
        char_set_add_valued(&own, unicode_category, unicode_category_count,
                            translate_categories("p") |
                                translate_categories("s"));
    } else if (reader_take(r, "xdigit:]")) {
        translate_add_class_letter(r, 'h', true, &own, err);
    } else {
        return reader_refuse(at, err, "unknown POSIX bracket");
    }
    if (is_negated)
        char_set_negate(&own);
    char_set_add_set(out, &own);
    char_set_release(&own);
    return 0;
}

/*
 * One item of a class, or a range.  Sets is_char when it was a single
 * character, so that a '-' after it may make a range.
 */
static int read_class_item(struct reader *r, struct char_set *out,
                           bool *is_char, uint32_t *c, struct err *err)
{
    size_t n;

    *is_char = false;
    if (reader_take(r, "[:"))
        return read_posix(r, out, err);
    if (reader_take(r, "["))
        return translate_read_class(r, out, err);
    if (!reader_take(r, "\\")) {
        *is_char = true;
        *c = utf8_get(r->source + r->at, &n);
        r->at += n;
        return 0;
    }
    if (r->at == r->len)
        return reader_refuse(r->at, err, "ends in '\\'");
    char letter = r->source[r->at];
    if (translate_is_class_letter(letter)) {
        r->at++;
        return translate_add_class_letter(r, letter, true, out, err);
    }
    if (letter == 'p' || letter == 'P') {
        r->at++;
        return translate_read_property(r, letter == 'P', out, err);
    }
    *is_char = true;
    if (letter == 'b' && r->engine == PATTERN_RUBY) {
        r->at++;
        *c = '\b';
        return 0;
    }
    return translate_read_escaped_char(r, c, err);
}

/* One operand of && up to "]" or "&&". */
static int read_class_part(struct reader *r, struct char_set *out,
                           struct err *err)
{
    bool is_first = true;

    while (r->at < r->len && !reader_next_is(r, "]") &&
           !reader_next_is(r, "&&")) {
        bool is_char, is_end_char;
        uint32_t c = 0, end = 0;
        size_t at = r->at;

        if (reader_next_is(r, "-") && !is_first) {
            r->at++;
            if (!reader_next_is(r, "]") && !reader_next_is(r, "&&"))
                return reader_refuse(at, err,
                                     "a '-' between two items of a class");
            if (add_range(r, '-', '-', out, err))
                return -1;
            break;
        }
        is_first = false;
        if (read_class_item(r, out, &is_char, &c, err))
            return -1;
        if (!is_char)
            continue;
        end = c;
        if (reader_next_is(r, "-") && r->at + 1 < r->len &&
            r->source[r->at + 1] != ']' &&
            memcmp(r->source + r->at, "-&&", r->len - r->at < 3 ? 1 : 3) != 0) {
            r->at++;
            if (reader_next_is(r, "["))
                return reader_refuse(r->at, err, "a range up to a class");
            if (read_class_item(r, out, &is_end_char, &end, err))
                return -1;
            if (!is_end_char)
                return reader_refuse(at, err, "a range up to a class");
        }
        if (add_range(r, c, end, out, err))
            return -1;
    }
    return 0;
}

/* A class; r->at is behind '['. */
int translate_read_class(struct reader *r, struct char_set *out,
                         struct err *err)
{
    struct char_set whole = {0}, part = {0};
    size_t at = r->at;
    bool is_negated = reader_take(r, "^"), is_first = true;
    int ret = -1;

    if (++r->depth > MAX_DEPTH) {
        reader_refuse(at, err, "nested too deeply");
        goto out;
    }
    if (reader_next_is(r, "]")) {
        reader_refuse(at, err, "an empty class");
        goto out;
    }
    do {
        if (read_class_part(r, &part, err))
            goto out;
        char_set_tidy(&part);
        if (is_first)
            char_set_add_set(&whole, &part);
        else
            char_set_intersect(&whole, &part);
        char_set_release(&part);
        is_first = false;
    } while (reader_take(r, "&&"));
    if (!reader_take(r, "]")) {
        reader_refuse(at, err, "a class without its end");
        goto out;
    }
    if (is_negated)
        char_set_negate(&whole);
    char_set_add_set(out, &whole);
    ret = 0;
out:
    r->depth--;
    char_set_release(&whole);
    char_set_release(&part);
    return ret;
}
