/*
 * From the syntax of upstream's pattern engines to PCRE2, by recursive descent:
 * each construct is read, understood and written again.  Every set of
 * characters becomes explicit (our tables, combined here) and is written as
 * ranges, with PCRE2's own categories where these, corrected by the difference
 * in Unicode versions, are shorter.  Letters without regard to case become sets
 * too, so PCRE2's own rules of case, word and space are never asked.
 */
#include "tokenizer/translate.h"

#include <string.h>

enum { MAX_REPEAT = 1000 };

static int read_alternatives(struct reader *r, struct err *err);

int reader_refuse(size_t at, struct err *err, const char *what)
{
    return err_set(err, ERR_UNSUPPORTED, "pattern, byte %zu: %s", at + 1, what);
}

bool reader_next_is(const struct reader *r, const char *text)
{
    size_t n = strlen(text);

    return r->len - r->at >= n && memcmp(r->source + r->at, text, n) == 0;
}

bool reader_take(struct reader *r, const char *text)
{
    if (!reader_next_is(r, text))
        return false;
    r->at += strlen(text);
    return true;
}

/*
 * Under (?i) upstream also lets one character stand for two or three letters
 * (ss, ff, fi, fl, st and the like), which sets cannot say.
 */
static int check_folding(struct reader *r, uint32_t c, size_t at,
                         struct err *err)
{
    static const char pairs[][2] = {
        {'s', 's'}, {'f', 'f'}, {'f', 'i'}, {'f', 'l'}, {'s', 't'}};
    uint32_t before = r->last_letter;

    r->last_letter = c < 0x80 ? c | 0x20 : 0;
    if (r->engine == PATTERN_RUST)
        return 0;
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        if (before == (uint32_t)pairs[i][0] &&
            r->last_letter == (uint32_t)pairs[i][1])
            return reader_refuse(
                at, err,
                "two letters that fold to one character, without "
                "regard to case");
    return 0;
}

static int write_char(struct reader *r, uint32_t c, size_t at, struct err *err)
{
    struct char_set s = {0};
    int ret = -1;

    if (!r->is_caseless) {
        if ((c | 0x20) >= 'a' && (c | 0x20) <= 'z')
            buf_addch(r->out, (int)c);
        else
            buf_addf(r->out, "\\x{%x}", c);
        return 0;
    }
    if (check_folding(r, c, at, err) == 0 &&
        translate_add_caseless(r, c, &s, err) == 0) {
        translate_write_set(r->out, &s);
        ret = 0;
    }
    char_set_release(&s);
    return ret;
}

/* A word boundary, by upstream's word. */
static void write_boundary(struct reader *r, bool is_negated, struct err *err)
{
    struct char_set word = {0}, other = {0};
    struct buf w = BUF_INIT, o = BUF_INIT;

    translate_add_class_letter(r, 'w', false, &word, err);
    char_set_add_set(&other, &word);
    char_set_negate(&other);
    translate_write_set(&w, &word);
    translate_write_set(&o, &other);
    buf_addf(r->out,
             is_negated ? "(?:(?<=%s)(?=%s)|(?<!%s)(?!%s))"
                        : "(?:(?<=%s)(?!%s)|(?<!%s)(?=%s))",
             w.data, w.data, w.data, w.data);
    buf_release(&w);
    buf_release(&o);
    char_set_release(&word);
    char_set_release(&other);
}

/* After '\'; *is_anchor when nothing may repeat it. */
static int read_backslash(struct reader *r, bool *is_anchor, struct err *err)
{
    struct char_set s = {0};
    size_t at = r->at;
    uint32_t c;
    int ret;

    if (r->at == r->len)
        return reader_refuse(r->at, err, "ends in '\\'");
    char letter = r->source[r->at];
    if (letter == 'p' || letter == 'P' || translate_is_class_letter(letter)) {
        r->at++;
        r->last_letter = 0;
        ret = letter == 'p' || letter == 'P'
                  ? translate_read_property(r, letter == 'P', &s, err)
                  : translate_add_class_letter(r, letter, false, &s, err);
        if (ret == 0)
            translate_write_set(r->out, &s);
        char_set_release(&s);
        return ret;
    }
    if (letter == 'A' || letter == 'z' ||
        (letter == 'Z' && r->engine == PATTERN_RUBY)) {
        r->at++;
        *is_anchor = true;
        buf_addf(r->out, "\\%c", letter);
        return 0;
    }
    if (letter == 'b' || letter == 'B') {
        if (r->is_caseless)
            return reader_refuse(at, err,
                                 "a word boundary without regard to case");
        r->at++;
        *is_anchor = true;
        write_boundary(r, letter == 'B', err);
        return 0;
    }
    if (translate_read_escaped_char(r, &c, err))
        return -1;
    return write_char(r, c, at, err);
}

/* After '(': the group, to its ')'. */
static int read_group(struct reader *r, bool *is_anchor, struct err *err)
{
    static const struct {
        const char *from, *to;
        bool is_anchor, is_caseless;
    } kinds[] = {
        {"?:", "(?:", false, false},  {"?=", "(?=", true, false},
        {"?!", "(?!", true, false},   {"?<=", "(?<=", true, false},
        {"?<!", "(?<!", true, false}, {"?>", "(?>", false, false},
        {"?i:", "(?:", false, true},
    };
    size_t at = r->at - 1;
    bool was_caseless = r->is_caseless;
    const char *open = NULL;

    if (++r->depth > MAX_DEPTH)
        return reader_refuse(at, err, "nested too deeply");
    for (size_t i = 0; !open && i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (reader_take(r, kinds[i].from)) {
            open = kinds[i].to;
            *is_anchor = kinds[i].is_anchor;
            if (kinds[i].is_caseless && !r->is_caseless) {
                r->is_caseless = true;
                r->last_letter = 0;
            }
        }
    if (!open && reader_take(r, "?-i:")) {
        open = "(?:";
        r->is_caseless = false;
    }
    if (!open && reader_next_is(r, "?"))
        return err_set(err, ERR_UNSUPPORTED,
                       "pattern, byte %zu: unknown group '(%.*s'", at + 1,
                       (int)(r->len - r->at < 3 ? r->len - r->at : 3),
                       r->source + r->at);
    buf_addstr(r->out, open ? open : "(?:"); /* nobody asks for captures */
    if (read_alternatives(r, err))
        return -1;
    if (!reader_take(r, ")"))
        return reader_refuse(at, err, "a group without its end");
    buf_addch(r->out, ')');
    r->is_caseless = was_caseless;
    r->depth--;
    return 0;
}

static int read_atom(struct reader *r, bool *is_anchor, struct err *err)
{
    struct char_set s = {0};
    size_t n, at = r->at;
    int ret = -1;

    if (reader_take(r, "("))
        return read_group(r, is_anchor, err);
    if (reader_take(r, "[")) {
        r->last_letter = 0;
        if (translate_read_class(r, &s, err) == 0) {
            translate_write_set(r->out, &s);
            ret = 0;
        }
        char_set_release(&s);
        return ret;
    }
    if (reader_take(r, "\\"))
        return read_backslash(r, is_anchor, err);
    if (reader_take(r, ".")) {
        r->last_letter = 0;
        buf_addstr(r->out, "[^\\x{a}]");
        return 0;
    }
    if (reader_take(r, "^")) {
        *is_anchor = true;
        buf_addstr(r->out, r->engine == PATTERN_RUBY ? "^" : "\\A");
        return 0;
    }
    if (reader_take(r, "$")) {
        *is_anchor = true;
        buf_addstr(r->out, r->engine == PATTERN_RUBY ? "$" : "\\z");
        return 0;
    }
    if (reader_next_is(r, "*") || reader_next_is(r, "+") ||
        reader_next_is(r, "?"))
        return reader_refuse(at, err, "nothing to repeat");
    uint32_t c = utf8_get(r->source + r->at, &n);
    r->at += n;
    return write_char(r, c, at, err);
}

static bool read_count(struct reader *r, uint32_t *out)
{
    size_t at = r->at;

    *out = 0;
    while (r->at < r->len && r->source[r->at] >= '0' &&
           r->source[r->at] <= '9' && *out < 1000000)
        *out = *out * 10 + (uint32_t)(r->source[r->at++] - '0');
    return r->at > at;
}

/* {n} {n,} {,m} {n,m}; false (and nothing read) when it is no interval. */
static bool read_interval(struct reader *r, uint32_t *least, uint32_t *most,
                          bool *is_open)
{
    size_t at = r->at;

    if (reader_take(r, "{")) {
        bool has_least = read_count(r, least), has_most = has_least;

        *most = *least;
        *is_open = false;
        if (reader_take(r, ",")) {
            has_most = read_count(r, most);
            *is_open = !has_most;
        }
        if ((has_least || has_most) && reader_take(r, "}"))
            return true;
    }
    r->at = at;
    return false;
}

/* Puts text before what was written from `from` on. */
static void insert(struct buf *out, size_t from, const char *text)
{
    size_t n = strlen(text), tail = out->len - from;

    buf_reserve(out, n);
    memmove(out->data + from + n, out->data + from, tail);
    memcpy(out->data + from, text, n);
    out->len += n;
    out->data[out->len] = '\0';
}

/* Does what may repeat something come next, where there is nothing? */
static int refuse_repeat(struct reader *r, const char *what, struct err *err)
{
    uint32_t least, most;
    bool is_open;
    size_t at = r->at;

    if (reader_next_is(r, "*") || reader_next_is(r, "+") ||
        reader_next_is(r, "?") || read_interval(r, &least, &most, &is_open))
        return reader_refuse(at, err, what);
    return 0;
}

/*
 * What repeats the atom written from `from` on, if anything does.  Upstream
 * leaves a counted loop as soon as a round of it was empty, PCRE2 tries the
 * rounds that are left; of * and + both make the same.
 */
static int read_repeat(struct reader *r, size_t from, bool is_anchor,
                       struct err *err)
{
    uint32_t least, most;
    bool is_open;
    size_t at = r->at;

    if (read_interval(r, &least, &most, &is_open)) {
        bool is_exact = !memchr(r->source + at, ',', r->at - at);

        if (is_anchor)
            return reader_refuse(at, err, "a repeated anchor");
        if (least > MAX_REPEAT || most > MAX_REPEAT ||
            (!is_open && least > most))
            return reader_refuse(at, err, "a repeat count out of range");
        if (r->may_be_empty && (least > 1 || (!is_open && most > 1)))
            return reader_refuse(at, err, "a count of what may match nothing");
        r->may_be_empty = r->may_be_empty || least == 0;
        if (is_open)
            buf_addf(r->out, "{%u,}", least);
        else
            buf_addf(r->out, "{%u,%u}", least, most);
        if (reader_next_is(r, "?") && is_exact)
            return reader_refuse(at, err, "'{n}?'");
        if (reader_take(r, "?")) {
            buf_addch(r->out, '?');
        } else if (reader_take(r, "+")) {
            if (r->engine == PATTERN_RUST) {
                buf_addch(r->out, '+');
            } else {
                insert(r->out, from, "(?:");
                buf_addstr(r->out, ")+");
            }
        }
    } else if (reader_next_is(r, "*") || reader_next_is(r, "+") ||
               reader_next_is(r, "?")) {
        if (is_anchor)
            return reader_refuse(at, err, "a repeated anchor");
        if (!reader_next_is(r, "+"))
            r->may_be_empty = true;
        buf_addch(r->out, r->source[r->at++]);
        if (reader_next_is(r, "?") || reader_next_is(r, "+"))
            buf_addch(r->out, r->source[r->at++]);
    } else {
        return 0;
    }
    return refuse_repeat(r, "a repeated repeat", err);
}

/* After "(?i)": to the end of the group, with its bars. */
static int read_caseless_rest(struct reader *r, struct err *err)
{
    bool was_caseless = r->is_caseless;

    r->is_caseless = true;
    r->last_letter = 0;
    buf_addstr(r->out, "(?:");
    if (++r->depth > MAX_DEPTH)
        return reader_refuse(r->at, err, "nested too deeply");
    if (refuse_repeat(r, "nothing to repeat", err) || read_alternatives(r, err))
        return -1;
    buf_addch(r->out, ')');
    r->depth--;
    r->is_caseless = was_caseless;
    return 0;
}

static int skip_comment(struct reader *r, struct err *err)
{
    while (r->at < r->len && !reader_next_is(r, ")"))
        if (r->source[r->at++] == '\\')
            return reader_refuse(r->at - 1, err, "'\\' in a comment");
    if (!reader_take(r, ")"))
        return reader_refuse(r->at, err, "a comment without its end");
    return refuse_repeat(r, "a repeat behind a comment", err);
}

/* To the end of the group; r->may_be_empty: can they match nothing? */
static int read_alternatives(struct reader *r, struct err *err)
{
    bool is_any_empty = false, is_empty = true; /* one of them, this one */

    while (r->at < r->len && !reader_next_is(r, ")")) {
        size_t from = r->out->len;
        bool is_anchor = false;

        if (reader_take(r, "|")) {
            r->last_letter = 0;
            buf_addch(r->out, '|');
            is_any_empty = is_any_empty || is_empty;
            is_empty = true;
            continue;
        }
        if (reader_take(r, "(?#")) {
            if (skip_comment(r, err))
                return -1;
            continue;
        }
        if (reader_take(r, "(?i)")) {
            if (read_caseless_rest(r, err))
                return -1;
            is_empty = is_empty && r->may_be_empty;
            break;
        }
        r->may_be_empty = false;
        if (read_atom(r, &is_anchor, err) ||
            read_repeat(r, from, is_anchor, err))
            return -1;
        is_empty = is_empty && (is_anchor || r->may_be_empty);
    }
    r->may_be_empty = is_any_empty || is_empty;
    return 0;
}

int pattern_translate(const char *source, size_t len,
                      enum pattern_engine engine, struct buf *out,
                      struct err *err)
{
    struct reader r = {.source = source, .len = len, .engine = engine};

    r.out = out;
    for (size_t i = 0; i < len; i++)
        if (source[i] == '\0')
            return reader_refuse(i, err, "a NUL");
    if (read_alternatives(&r, err))
        return -1;
    if (r.at < r.len)
        return reader_refuse(r.at, err, "')' without '('");
    return 0;
}
