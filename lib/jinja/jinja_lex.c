/*
 * From a template's source to tokens, with upstream's white space rules
 * (trim_blocks, lstrip_blocks, '-' and '+').  The source is sound UTF-8 with
 * LF only and without its final newline.
 */
#include "jinja/jinja_internal.h"

#include "base/hex.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lexer {
    struct rt *rt;
    const char *src;
    size_t len, pos;
    bool line_starting; /* the last match ended a line */
    struct jtoken *tokens;
    size_t n, cap;
    char *closers; /* brackets that are open, as what closes them */
    size_t open, open_cap;
};

__attribute__((noreturn, format(printf, 3, 4))) static void
fail_at(struct lexer *lx, size_t at, const char *format, ...)
{
    va_list ap;
    char text[300];

    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    lx->rt->at = (uint32_t)at;
    rt_fail(lx->rt, ERR_INPUT, "%s", text);
}

static struct jtoken *add(struct lexer *lx, enum jtok type, size_t at,
                          size_t len)
{
    lx->tokens =
        rt_grow(lx->rt, lx->tokens, lx->n, &lx->cap, sizeof(*lx->tokens));
    struct jtoken *t = &lx->tokens[lx->n++];
    t->type = type;
    t->at = (uint32_t)at;
    t->len = (uint32_t)len;
    return t;
}

static bool has(const struct lexer *lx, size_t at, const char *text)
{
    size_t n = strlen(text);

    return n <= lx->len - at && memcmp(lx->src + at, text, n) == 0;
}

/* Behind the white space that starts at `at`. */
static size_t skip_space(const struct lexer *lx, size_t at)
{
    while (at < lx->len) {
        size_t next = at;

        if (!juni_is(juni_next(lx->src, &next), JUNI_SPACE))
            break;
        at = next;
    }
    return at;
}

static void matched(struct lexer *lx, size_t end)
{
    lx->line_starting = end > lx->pos ? lx->src[end - 1] == '\n' : false;
    lx->pos = end;
}

/* Text before a tag, white space taken off as its sign and the rules say. */
static void add_data(struct lexer *lx, size_t from, size_t to, char sign,
                     bool is_variable)
{
    if (sign == '-') {
        while (to > from) {
            size_t before = to;

            if (!juni_is(juni_before(lx->src, &before), JUNI_SPACE))
                break;
            to = before;
        }
    } else if (sign != '+' && !is_variable) {
        size_t line = to;

        while (line > from && lx->src[line - 1] != '\n')
            line--;
        if ((line > from || lx->line_starting) && skip_space(lx, line) >= to)
            to = line;
    }
    if (to > from) {
        struct jtoken *t = add(lx, JT_DATA, from, to - from);

        t->value = jval_str(lx->rt, lx->src + from, to - from);
    }
}

static char sign_at(const struct lexer *lx, size_t at)
{
    return at < lx->len && (lx->src[at] == '-' || lx->src[at] == '+')
               ? lx->src[at]
               : 0;
}

/* `word` and white space around it from `at`; 0 when it is not there. */
static size_t keyword(const struct lexer *lx, size_t at, const char *word)
{
    at = skip_space(lx, at);
    if (!has(lx, at, word))
        return 0;
    return skip_space(lx, at + strlen(word));
}

/* Behind the end of a tag that may stand at `at`, or 0. */
static size_t tag_end(const struct lexer *lx, size_t at, const char *close,
                      bool may_trim)
{
    if (may_trim && lx->src[at] == '+' && has(lx, at + 1, close))
        return at + 3;
    if (lx->src[at] == '-' && has(lx, at + 1, close))
        return skip_space(lx, at + 3);
    if (!has(lx, at, close))
        return 0;
    at += 2;
    return may_trim && at < lx->len && lx->src[at] == '\n' ? at + 1 : at;
}

/* What nothing stands in may go without its end: upstream stops there. */
static void miss_end(struct lexer *lx, const char *what)
{
    if (lx->pos < lx->len)
        fail_at(lx, lx->pos, "%s", what);
}

/* After "{% raw %}": data up to the endraw tag. */
static void lex_raw(struct lexer *lx)
{
    for (size_t at = lx->pos; at < lx->len; at++) {
        if (!has(lx, at, "{%"))
            continue;
        char sign = sign_at(lx, at + 2);
        size_t end = keyword(lx, at + 2 + (sign != 0), "endraw");

        end = end && end < lx->len ? tag_end(lx, end, "%}", true) : 0;
        if (!end)
            continue;
        add_data(lx, lx->pos, at, sign, false);
        matched(lx, end);
        return;
    }
    miss_end(lx, "missing end of raw directive");
}

static void lex_comment(struct lexer *lx)
{
    for (size_t at = lx->pos; at < lx->len; at++) {
        size_t end = tag_end(lx, at, "#}", true);

        if (end) {
            matched(lx, end);
            return;
        }
    }
    miss_end(lx, "missing end of comment tag");
}

/* --- inside a tag --- */

static bool is_digit(const struct lexer *lx, size_t at, size_t *next)
{
    if (at >= lx->len)
        return false;
    *next = at;
    return juni_is(juni_next(lx->src, next), JUNI_DECIMAL);
}

/* \d+(_\d+)* from `at`; returns its end, or `at`. */
static size_t digits(const struct lexer *lx, size_t at)
{
    size_t next;

    if (!is_digit(lx, at, &next))
        return at;
    at = next;
    for (;;) {
        size_t from = at < lx->len && lx->src[at] == '_' ? at + 1 : at;

        if (!is_digit(lx, from, &next))
            return at;
        at = next;
    }
}

static size_t match_float(const struct lexer *lx, size_t at)
{
    size_t end = digits(lx, at), fraction;

    if (end == at || (at > 0 && lx->src[at - 1] == '.'))
        return 0;
    fraction = end;
    if (end < lx->len && lx->src[end] == '.' && digits(lx, end + 1) > end + 1)
        fraction = digits(lx, end + 1);
    if (fraction < lx->len && (lx->src[fraction] | 0x20) == 'e') {
        size_t exponent = fraction + 1 + (sign_at(lx, fraction + 1) != 0);

        if (digits(lx, exponent) > exponent)
            return digits(lx, exponent);
    }
    return fraction > end ? fraction : 0;
}

/* The value of a digit in a base, or -1. */
static int digit_value(const struct lexer *lx, size_t at, int base,
                       size_t *next)
{
    int v = -1;

    if (at >= lx->len)
        return -1;
    *next = at;
    uint32_t c = juni_next(lx->src, next);
    if (base == 16 && (c | 0x20) >= 'a' && (c | 0x20) <= 'f')
        v = (int)(c | 0x20) - 'a' + 10;
    else if (base >= 10 ? juni_is(c, JUNI_DECIMAL) : c >= '0' && c <= '9')
        v = juni_get(c)->digit;
    return v < base ? v : -1;
}

static size_t match_integer(struct lexer *lx, size_t at, struct jval *out)
{
    int base = 10, v;
    size_t next, end = at;
    struct jsb b = {.rt = lx->rt};

    if (lx->src[at] == '0' && at + 1 < lx->len) {
        char c = (char)(lx->src[at + 1] | 0x20);
        int radix = c == 'b' ? 2 : c == 'o' ? 8 : c == 'x' ? 16 : 0;
        size_t first = at + 2 + (at + 2 < lx->len && lx->src[at + 2] == '_');

        if (radix && digit_value(lx, first, radix, &next) >= 0) {
            base = radix;
            end = at + 2;
        }
    }
    if (base == 10 && (lx->src[at] < '0' || lx->src[at] > '9'))
        return 0;
    bool is_zero = base == 10 && lx->src[at] == '0';
    for (;;) {
        size_t from = end;

        if (from < lx->len && lx->src[from] == '_' && (b.len || base != 10))
            from++;
        v = digit_value(lx, from, base, &next);
        if (v < 0 || (is_zero && lx->src[from] != '0'))
            break;
        jsb_addch(&b, "0123456789abcdef"[v]);
        end = next;
    }
    if (base == 10 && b.len > 4300)
        fail_at(lx, at, "an integer of more than 4300 digits");
    *out = jbig_parse(lx->rt, b.data, b.len, base);
    return end;
}

static int hex_digits(const char *text, size_t left, size_t n, uint32_t *out)
{
    return left < n ? -1 : hex_read(text, n, out);
}

/*
 * A string literal's text.  Upstream writes every character beyond ASCII as an
 * escape and then decodes escapes, so a backslash before one eats the escape.
 */
static struct jval unescape(struct lexer *lx, size_t from, size_t len)
{
    static const char names[] = "\\'\"abfnrtv",
                      values[] = "\\'\"\a\b\f\n\r\t\v";
    struct jsb b = {.rt = lx->rt};
    const char *s = lx->src + from;

    for (size_t i = 0; i < len;) {
        size_t at = i;
        uint32_t c = juni_next(s, &i), value = 0;

        if (c != '\\') {
            jsb_putcp(&b, c);
            continue;
        }
        c = juni_next(s, &i); /* the literal's pattern took one more */
        const char *simple = c && c < 0x80 ? strchr(names, (int)c) : NULL;
        size_t n = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
        if (simple) {
            jsb_addch(&b, values[simple - names]);
        } else if (c == '\n') {
            continue;
        } else if (c >= '0' && c <= '7') {
            value = c - '0';
            for (int k = 0; k < 2 && i < len && s[i] >= '0' && s[i] <= '7'; k++)
                value = value * 8 + (uint32_t)(s[i++] - '0');
            jsb_putcp(&b, value);
        } else if (n) {
            if (hex_digits(s + i, len - i, n, &value) || value > 0x10ffff)
                fail_at(lx, from + at,
                        "a \\%c escape is cut short or too large", (char)c);
            i += n;
            jsb_putcp(&b, value);
        } else if (c == 'N') {
            const char *end =
                i < len && s[i] == '{' ? memchr(s + i, '}', len - i) : NULL;

            if (!end)
                fail_at(lx, from + at, "malformed \\N character escape");
            int32_t named = juni_named(s + i + 1, (size_t)(end - s) - i - 1);
            if (named < 0) {
                lx->rt->at = (uint32_t)(from + at);
                rt_fail(lx->rt, ERR_UNSUPPORTED,
                        "character name '%.*s' in a \\N escape",
                        (int)(end - s - (long)i - 1), s + i + 1);
            }
            jsb_putcp(&b, (uint32_t)named);
            i = (size_t)(end - s) + 1;
        } else if (c < 0x80) {
            jsb_addch(&b, '\\');
            jsb_addch(&b, (char)c);
        } else {
            char text[16];

            snprintf(text, sizeof(text),
                     c < 0x100     ? "\\x%02x"
                     : c < 0x10000 ? "\\u%04x"
                                   : "\\U%08x",
                     c);
            jsb_addstr(&b, text);
        }
    }
    return jsb_val(&b);
}

/* Behind a string literal that starts at `at`, or 0. */
static size_t match_string(const struct lexer *lx, size_t at)
{
    char quote = lx->src[at];

    if (quote != '\'' && quote != '"')
        return 0;
    for (size_t i = at + 1; i < lx->len; i++) {
        if (lx->src[i] == quote)
            return i + 1;
        if (lx->src[i] == '\\')
            i++;
    }
    return 0;
}

static const struct {
    char text[3];
    enum jtok type;
} operators[] = {
    {"//", JT_FLOORDIV}, {"**", JT_POW},      {"==", JT_EQ},
    {"!=", JT_NE},       {">=", JT_GE},       {"<=", JT_LE},
    {"+", JT_ADD},       {"-", JT_SUB},       {"/", JT_DIV},
    {"*", JT_MUL},       {"%", JT_MOD},       {"~", JT_TILDE},
    {"[", JT_LBRACKET},  {"]", JT_RBRACKET},  {"(", JT_LPAREN},
    {")", JT_RPAREN},    {"{", JT_LBRACE},    {"}", JT_RBRACE},
    {">", JT_GT},        {"<", JT_LT},        {"=", JT_ASSIGN},
    {".", JT_DOT},       {":", JT_COLON},     {"|", JT_PIPE},
    {",", JT_COMMA},     {";", JT_SEMICOLON},
};

static void open_bracket(struct lexer *lx, char closer)
{
    lx->closers = rt_grow(lx->rt, lx->closers, lx->open, &lx->open_cap,
                          sizeof(*lx->closers));
    lx->closers[lx->open++] = closer;
}

static void lex_operator(struct lexer *lx)
{
    size_t at = lx->pos, i = 0;

    while (i < sizeof(operators) / sizeof(operators[0]) &&
           !has(lx, at, operators[i].text))
        i++;
    if (i == sizeof(operators) / sizeof(operators[0])) {
        size_t next = at;

        juni_next(lx->src, &next);
        fail_at(lx, at, "unexpected character '%.*s'", (int)(next - at),
                lx->src + at);
    }
    enum jtok type = operators[i].type;
    if (type == JT_LBRACE || type == JT_LPAREN || type == JT_LBRACKET) {
        open_bracket(lx, type == JT_LBRACE   ? '}'
                         : type == JT_LPAREN ? ')'
                                             : ']');
    } else if (type == JT_RBRACE || type == JT_RPAREN || type == JT_RBRACKET) {
        if (lx->open == 0)
            fail_at(lx, at, "unexpected '%s'", operators[i].text);
        if (lx->closers[--lx->open] != operators[i].text[0])
            fail_at(lx, at, "unexpected '%s', expected '%c'", operators[i].text,
                    lx->closers[lx->open]);
    }
    add(lx, type, at, strlen(operators[i].text));
    matched(lx, at + strlen(operators[i].text));
}

static bool lex_name(struct lexer *lx)
{
    size_t at = lx->pos, end = at, next = at;
    bool is_sound = true;

    /* what the pattern takes, judged afterwards by Python's rule */
    while (end < lx->len) {
        uint32_t c = juni_next(lx->src, &next);

        if (!juni_is(c, JUNI_NAME))
            break;
        is_sound = is_sound &&
                   juni_is(c, end == at ? JUNI_ID_START : JUNI_ID_CONTINUE);
        end = next;
    }
    if (end == at)
        return false;
    if (!is_sound)
        fail_at(lx, at, "invalid character in identifier");
    struct jtoken *t = add(lx, JT_NAME, at, end - at);
    t->name = rt_printf(lx->rt, "%.*s", (int)(end - at), lx->src + at);
    matched(lx, end);
    return true;
}

/* The inside of "{{ }}" or "{% %}", up to its end. */
static void lex_tag(struct lexer *lx, bool is_variable)
{
    const char *close = is_variable ? "}}" : "%}";

    lx->open = 0;
    while (lx->pos < lx->len) {
        size_t at = lx->pos, end = 0;
        struct jtoken *t;
        struct jval v;

        rt_step(lx->rt, 1);
        if (lx->open == 0)
            end = tag_end(lx, at, close, !is_variable);
        if (end) {
            add(lx, is_variable ? JT_VAR_END : JT_BLOCK_END, at, 2);
            matched(lx, end);
            return;
        }
        end = skip_space(lx, at);
        if (end > at) {
            matched(lx, end);
            continue;
        }
        end = match_float(lx, at);
        if (end) {
            char *text =
                rt_printf(lx->rt, "%.*s", (int)(end - at), lx->src + at);
            char *to = text;

            for (char *p = text; *p; p++) {
                if ((unsigned char)*p >= 0x80)
                    fail_at(lx, at, "invalid decimal literal");
                if (*p != '_')
                    *to++ = *p;
            }
            *to = '\0';
            t = add(lx, JT_NUMBER, at, end - at);
            t->value = jval_float(strtod(text, NULL));
            matched(lx, end);
            continue;
        }
        end = match_integer(lx, at, &v);
        if (end) {
            t = add(lx, JT_INTEGER, at, end - at);
            t->value = v;
            matched(lx, end);
            continue;
        }
        if (lex_name(lx))
            continue;
        end = match_string(lx, at);
        if (end) {
            v = unescape(lx, at + 1, end - at - 2);
            t = add(lx, JT_STR, at, end - at);
            t->value = v;
            matched(lx, end);
            continue;
        }
        lex_operator(lx);
    }
}

struct jtoken *jinja_lex(struct rt *rt, const char *source, size_t len,
                         size_t *count)
{
    struct lexer lx = {
        .rt = rt, .src = source, .len = len, .line_starting = true};

    while (lx.pos < len) {
        const char *brace = source + lx.pos;
        size_t at, raw = 0;

        do {
            brace = memchr(brace, '{', (size_t)(source + len - brace));
            if (brace && brace + 1 < source + len &&
                (brace[1] == '{' || brace[1] == '%' || brace[1] == '#'))
                break;
        } while (brace && ++brace);
        if (!brace) {
            struct jtoken *t = add(&lx, JT_DATA, lx.pos, len - lx.pos);

            t->value = jval_str(rt, source + lx.pos, len - lx.pos);
            break;
        }
        at = (size_t)(brace - source);
        char kind = brace[1], sign = sign_at(&lx, at + 2);
        if (kind == '%') {
            raw = keyword(&lx, at + 2 + (sign != 0), "raw");
            if (raw && has(&lx, raw, "-%}"))
                raw = skip_space(&lx, raw + 3);
            else
                raw = raw && has(&lx, raw, "%}") ? raw + 2 : 0;
        }
        add_data(&lx, lx.pos, at, sign, kind == '{');
        matched(&lx, raw ? raw : at + 2 + (sign != 0));
        if (raw) {
            lex_raw(&lx);
        } else if (kind == '#') {
            lex_comment(&lx);
        } else {
            add(&lx, kind == '{' ? JT_VAR_BEGIN : JT_BLOCK_BEGIN, at, 2);
            lex_tag(&lx, kind == '{');
        }
    }
    add(&lx, JT_EOF, len, 0);
    *count = lx.n;
    return lx.tokens;
}
