/*
 * What stands for one character in a pattern: classes, properties, escapes.
 * Each becomes a set, and is written as ranges, with PCRE2's own categories
 * where these, corrected by the difference in Unicode versions, are shorter.
 */
#include "tokenizer/translate.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

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

/* -- writing sets -- */

static bool has_unicode_14(void)
{
    char version[64] = "";

    return pcre2_config(PCRE2_CONFIG_UNICODE_VERSION, NULL) <=
               (int)sizeof(version) &&
           pcre2_config(PCRE2_CONFIG_UNICODE_VERSION, version) > 0 &&
           strcmp(version, "14.0.0") == 0;
}

/* The categories, as PCRE2 holds them, that lie wholly inside s. */
static uint32_t categories_inside(const struct char_set *s)
{
    uint32_t mask = 0;

    if (!has_unicode_14())
        return 0;
    mask = ((uint32_t)1 << unicode_category_names_count) - 1;
    for (size_t i = 0; i < unicode_category_count; i++) {
        const struct unicode_valued_range *c = &unicode_category[i];

        if (mask >> c->value & 1 && !char_set_holds(s, c->first, c->last))
            mask &= ~((uint32_t)1 << c->value);
    }
    for (size_t i = 0; i < unicode_pcre2_extra_count; i++) {
        const struct unicode_valued_range *c = &unicode_pcre2_extra[i];

        if (mask >> c->value & 1 && !char_set_holds(s, c->first, c->last))
            mask &= ~((uint32_t)1 << c->value);
    }
    return mask;
}

/* What is left of s when the categories of mask are written by name. */
static void rest_of(const struct char_set *s, uint32_t mask,
                    struct char_set *rest)
{
    struct char_set named = {0}, lacks = {0};

    char_set_add_valued(&named, unicode_category, unicode_category_count, mask);
    char_set_negate(&named);
    char_set_add_valued(&lacks, unicode_pcre2_lacks, unicode_pcre2_lacks_count,
                        mask);
    char_set_add_set(&named, &lacks);
    char_set_tidy(&named);
    char_set_add_set(rest, s);
    char_set_intersect(rest, &named);
    char_set_release(&named);
    char_set_release(&lacks);
}

void translate_write_set(struct buf *out, struct char_set *s)
{
    struct char_set outside = {0}, rest[2] = {{0}, {0}};
    uint32_t mask[2];

    char_set_add_set(&outside, s);
    char_set_negate(&outside);
    char_set_drop_surrogates(s);
    char_set_drop_surrogates(&outside);
    if (s->count == 0) {
        buf_addstr(out, "(?!)");
    } else if (outside.count == 0) {
        buf_addstr(out, "[\\x{0}-\\x{10ffff}]");
    } else {
        mask[0] = s->count > 12 ? categories_inside(s) : 0;
        mask[1] = outside.count > 12 ? categories_inside(&outside) : 0;
        rest_of(s, mask[0], &rest[0]);
        rest_of(&outside, mask[1], &rest[1]);
        int side = rest[1].count < rest[0].count;

        buf_addstr(out, side ? "[^" : "[");
        for (size_t i = 0; i < unicode_category_names_count; i++)
            if (mask[side] >> i & 1)
                buf_addf(out, "\\p{%s}", unicode_category_names[i]);
        for (size_t i = 0; i < rest[side].count; i++) {
            const struct unicode_range *c = &rest[side].r[i];

            buf_addf(out, "\\x{%x}", c->first);
            if (c->last != c->first)
                buf_addf(out, "-\\x{%x}", c->last);
        }
        buf_addch(out, ']');
    }
    char_set_release(&outside);
    char_set_release(&rest[0]);
    char_set_release(&rest[1]);
}

/* -- reading sets -- */

static const struct {
    const char *names; /* separated by spaces */
    const char *members;
} category_groups[] = {
    {"l letter", "Lu Ll Lt Lm Lo"},
    {"lc casedletter", "Lu Ll Lt"},
    {"m mark combiningmark", "Mn Mc Me"},
    {"n number", "Nd Nl No"},
    {"p punctuation", "Pc Pd Ps Pe Pi Pf Po"},
    {"s symbol", "Sm Sc Sk So"},
    {"z separator", "Zs Zl Zp"},
    {"c other", "Cc Cf Co Cn"},
    {"uppercaseletter", "Lu"},
    {"lowercaseletter", "Ll"},
    {"titlecaseletter", "Lt"},
    {"modifierletter", "Lm"},
    {"otherletter", "Lo"},
    {"nonspacingmark", "Mn"},
    {"spacingmark", "Mc"},
    {"enclosingmark", "Me"},
    {"decimalnumber", "Nd"},
    {"letternumber", "Nl"},
    {"othernumber", "No"},
    {"connectorpunctuation", "Pc"},
    {"dashpunctuation", "Pd"},
    {"openpunctuation", "Ps"},
    {"closepunctuation", "Pe"},
    {"initialpunctuation", "Pi"},
    {"finalpunctuation", "Pf"},
    {"otherpunctuation", "Po"},
    {"mathsymbol", "Sm"},
    {"currencysymbol", "Sc"},
    {"modifiersymbol", "Sk"},
    {"othersymbol", "So"},
    {"spaceseparator", "Zs"},
    {"lineseparator", "Zl"},
    {"paragraphseparator", "Zp"},
    {"control", "Cc"},
    {"format", "Cf"},
    {"privateuse", "Co"},
    {"unassigned", "Cn"},
};

static bool is_word_of(const char *words, const char *word)
{
    size_t n = strlen(word);

    for (const char *at = words; (at = strstr(at, word)) != NULL; at++)
        if ((at == words || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0'))
            return true;
    return false;
}

/* Lower case without blanks, '_' and '-', as names of sets are compared. */
static void plain_name(const char *name, size_t len, char out[64])
{
    size_t n = 0;

    for (size_t i = 0; i < len && n < 63; i++) {
        char c = name[i];

        if (c == ' ' || c == '_' || c == '-')
            continue;
        out[n++] = (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
    }
    out[n] = '\0';
}

static uint32_t category_mask(const char *plain)
{
    const char *members = NULL;
    uint32_t mask = 0;
    char own[64];

    for (size_t i = 0; i < sizeof(category_groups) / sizeof(*category_groups);
         i++)
        if (is_word_of(category_groups[i].names, plain))
            members = category_groups[i].members;
    for (size_t i = 0; i < unicode_category_names_count; i++) {
        plain_name(unicode_category_names[i], 2, own);
        if (members ? is_word_of(members, unicode_category_names[i])
                    : strcmp(own, plain) == 0)
            mask |= (uint32_t)1 << i;
    }
    return mask;
}

/* Which categories a caseless set may name: those closed under case. */
static bool is_closed_under_case(const char *plain)
{
    return is_word_of("n number nd nl no p punctuation s symbol so z separator "
                      "zs zl zp cc",
                      plain);
}

static int add_property(struct reader *r, const char *name, size_t len,
                        struct char_set *out, struct err *err)
{
    char plain[64], own[64];
    uint32_t mask;

    plain_name(name, len, plain);
    if (len == 0 || len > 60)
        return reader_refuse(r->at, err, "a property without a sound name");
    mask = category_mask(plain);
    if (mask) {
        if (r->is_caseless && !is_closed_under_case(plain))
            return reader_refuse(
                r->at, err, "a property of letters without regard to case");
        char_set_add_valued(out, unicode_category, unicode_category_count,
                            mask);
        return 0;
    }
    if (strcmp(plain, "any") == 0) {
        char_set_add(out, 0, CHAR_LAST);
        return 0;
    }
    for (size_t i = 0; i < unicode_script_names_count; i++) {
        plain_name(unicode_script_names[i], strlen(unicode_script_names[i]),
                   own);
        if (strcmp(own, plain) != 0)
            continue;
        if (r->is_caseless)
            return reader_refuse(r->at, err, "a script without regard to case");
        for (size_t k = 0; k < unicode_script_count; k++)
            if (unicode_script[k].value == i)
                char_set_add(out, unicode_script[k].first,
                             unicode_script[k].last);
        return 0;
    }
    return err_set(err, ERR_UNSUPPORTED,
                   "pattern, byte %zu: unknown property '%.*s'", r->at + 1,
                   (int)len, name);
}

/* \p{Name}, \p{^Name}, \P{Name}; r->at is behind the letter. */
int translate_read_property(struct reader *r, bool is_negated,
                            struct char_set *out, struct err *err)
{
    struct char_set own = {0};
    const char *end;

    if (!reader_take(r, "{"))
        return reader_refuse(r->at, err, "a property without '{'");
    if (reader_take(r, "^"))
        is_negated = !is_negated;
    end = memchr(r->source + r->at, '}', r->len - r->at);
    if (!end)
        return reader_refuse(r->at, err, "a property without '}'");
    size_t len = (size_t)(end - (r->source + r->at));
    if (add_property(r, r->source + r->at, len, &own, err)) {
        char_set_release(&own);
        return -1;
    }
    r->at += len + 1;
    if (is_negated)
        char_set_negate(&own);
    char_set_add_set(out, &own);
    char_set_release(&own);
    return 0;
}

/*
 * \s \S \d \D \w \W \h \H: the set of the letter.  Outside a class the Ruby
 * engine's \w has six characters of Latin-1 more than inside one.
 */
int translate_add_class_letter(struct reader *r, char letter, bool is_inside,
                               struct char_set *out, struct err *err)
{
    struct char_set own = {0};
    bool is_negated = letter >= 'A' && letter <= 'Z';

    switch (letter | 0x20) {
    case 's':
        char_set_add_table(&own, unicode_space, unicode_space_count);
        break;
    case 'd':
        char_set_add_valued(&own, unicode_category, unicode_category_count,
                            category_mask("nd"));
        break;
    case 'w':
        if (r->engine == PATTERN_RUST)
            char_set_add_table(&own, unicode_word, unicode_word_count);
        else
            char_set_add_table(&own, unicode_pattern_word,
                               unicode_pattern_word_count);
        if (r->engine == PATTERN_RUBY && !is_inside) {
            char_set_add(&own, 0xb2, 0xb3);
            char_set_add(&own, 0xb9, 0xb9);
            char_set_add(&own, 0xbc, 0xbe);
        }
        if (r->is_caseless) {
            char_set_release(&own);
            return reader_refuse(r->at, err, "'\\w' without regard to case");
        }
        break;
    default:
        if (r->engine == PATTERN_RUST) {
            char_set_release(&own);
            return reader_refuse(r->at, err, "unknown escape '\\h'");
        }
        char_set_add(&own, '0', '9');
        char_set_add(&own, 'A', 'F');
        char_set_add(&own, 'a', 'f');
        break;
    }
    if (is_negated)
        char_set_negate(&own);
    char_set_add_set(out, &own);
    char_set_release(&own);
    return 0;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

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

bool translate_is_class_letter(char c)
{
    return c && strchr("sSdDwWhH", c);
}

/* A character without regard to case. */
int translate_add_caseless(struct reader *r, uint32_t c, struct char_set *out,
                           struct err *err)
{
    uint32_t upper;

    char_set_add(out, c, c);
    if (c < 0x80) {
        if ((c | 0x20) < 'a' || (c | 0x20) > 'z')
            return 0;
        upper = c & ~(uint32_t)0x20;
        char_set_add(out, upper, upper);
        char_set_add(out, upper | 0x20, upper | 0x20);
        if (upper == 'S')
            char_set_add(out, 0x17f, 0x17f);
        if (upper == 'K')
            char_set_add(out, 0x212a, 0x212a);
        return 0;
    }
    struct char_set safe = {0};
    char_set_add_valued(&safe, unicode_category, unicode_category_count,
                        category_mask("lo") | category_mask("p") |
                            category_mask("z") | category_mask("nd"));
    char_set_tidy(&safe);
    bool is_safe = char_set_holds(&safe, c, c) &&
                   !(c >= 0x10a0 && c < 0x1100); /* Georgian has case */
    char_set_release(&safe);
    return is_safe
               ? 0
               : reader_refuse(r->at, err,
                               "a letter outside ASCII without regard to case");
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
                            category_mask("p") | category_mask("s"));
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

int translate_read_class(struct reader *r, struct char_set *out,
                         struct err *err);

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
