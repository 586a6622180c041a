/*
 * From the syntax of upstream's pattern engines to PCRE2, by recursive descent:
 * each construct is read, understood and written again.  Every set of
 * characters becomes explicit (our tables, combined here) and is written as
 * ranges, with PCRE2's own categories where these, corrected by the difference
 * in Unicode versions, are shorter.  Letters without regard to case become sets
 * too, so PCRE2's own rules of case, word and space are never asked.
 */
#include "tokenizer/pattern.h"

#include "base/bug.h"
#include "base/mem.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 100, LAST = 0x10ffff, MAX_REPEAT = 1000 };

/* Sorted, disjoint, not adjacent once set_tidy() has run. */
struct set {
    struct unicode_range *r;
    size_t count, cap;
};

struct reader {
    const char *source;
    size_t len, at;
    enum pattern_engine engine;
    bool is_caseless;
    int depth;
    uint32_t last_letter; /* the literal just written under (?i), or 0 */
    struct buf *out;
};

static void set_add(struct set *s, uint32_t first, uint32_t last)
{
    if (s->count == s->cap) {
        s->cap = s->cap ? s->cap * 2 : 16;
        s->r = xrealloc(s->r, s->cap * sizeof(*s->r));
    }
    s->r[s->count++] = (struct unicode_range){first, last};
}

static void set_release(struct set *s)
{
    free(s->r);
    *s = (struct set){0};
}

static int by_first(const void *a, const void *b)
{
    const struct unicode_range *x = a, *y = b;

    return x->first < y->first ? -1 : x->first > y->first;
}

static void set_tidy(struct set *s)
{
    size_t n = 0;

    if (s->count)
        qsort(s->r, s->count, sizeof(*s->r), by_first);
    for (size_t i = 0; i < s->count; i++) {
        if (n && s->r[i].first <= s->r[n - 1].last + 1) {
            if (s->r[i].last > s->r[n - 1].last)
                s->r[n - 1].last = s->r[i].last;
        } else {
            s->r[n++] = s->r[i];
        }
    }
    s->count = n;
}

static void set_add_set(struct set *s, const struct set *other)
{
    for (size_t i = 0; i < other->count; i++)
        set_add(s, other->r[i].first, other->r[i].last);
}

/* Surrogates are not characters: they are in a set or not, nobody can tell. */
static void set_negate(struct set *s)
{
    struct set out = {0};
    uint32_t from = 0;

    set_tidy(s);
    for (size_t i = 0; i < s->count; i++) {
        if (from < s->r[i].first)
            set_add(&out, from, s->r[i].first - 1);
        from = s->r[i].last + 1;
    }
    if (from <= LAST)
        set_add(&out, from, LAST);
    set_release(s);
    *s = out;
}

static void set_intersect(struct set *s, struct set *other)
{
    set_negate(s);
    set_negate(other);
    set_add_set(s, other);
    set_negate(s);
}

/* What cannot be written must not be in either side of a class. */
static void set_drop_surrogates(struct set *s)
{
    struct set characters = {0};

    set_add(&characters, 0, 0xd7ff);
    set_add(&characters, 0xe000, LAST);
    set_intersect(s, &characters);
    set_release(&characters);
}

static void set_add_table(struct set *s, const struct unicode_range *r,
                          size_t count)
{
    for (size_t i = 0; i < count; i++)
        set_add(s, r[i].first, r[i].last);
}

static void set_add_valued(struct set *s, const struct unicode_valued_range *r,
                           size_t count, uint32_t mask)
{
    for (size_t i = 0; i < count; i++)
        if (mask >> r[i].value & 1)
            set_add(s, r[i].first, r[i].last);
}

static bool set_holds(const struct set *s, uint32_t first, uint32_t last)
{
    size_t low = 0, high = s->count;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (s->r[mid].last < first)
            low = mid + 1;
        else
            high = mid;
    }
    return low < s->count && s->r[low].first <= first && s->r[low].last >= last;
}

static int refuse(size_t at, struct err *err, const char *what)
{
    return err_set(err, ERR_UNSUPPORTED, "pattern, byte %zu: %s", at + 1, what);
}

static bool next_is(const struct reader *r, const char *text)
{
    size_t n = strlen(text);

    return r->len - r->at >= n && memcmp(r->source + r->at, text, n) == 0;
}

static bool take(struct reader *r, const char *text)
{
    if (!next_is(r, text))
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
static uint32_t categories_inside(const struct set *s)
{
    uint32_t mask = 0;

    if (!has_unicode_14())
        return 0;
    mask = ((uint32_t)1 << unicode_category_names_count) - 1;
    for (size_t i = 0; i < unicode_category_count; i++) {
        const struct unicode_valued_range *c = &unicode_category[i];

        if (mask >> c->value & 1 && !set_holds(s, c->first, c->last))
            mask &= ~((uint32_t)1 << c->value);
    }
    for (size_t i = 0; i < unicode_pcre2_extra_count; i++) {
        const struct unicode_valued_range *c = &unicode_pcre2_extra[i];

        if (mask >> c->value & 1 && !set_holds(s, c->first, c->last))
            mask &= ~((uint32_t)1 << c->value);
    }
    return mask;
}

/* What is left of s when the categories of mask are written by name. */
static void rest_of(const struct set *s, uint32_t mask, struct set *rest)
{
    struct set named = {0}, lacks = {0};

    set_add_valued(&named, unicode_category, unicode_category_count, mask);
    set_negate(&named);
    set_add_valued(&lacks, unicode_pcre2_lacks, unicode_pcre2_lacks_count,
                   mask);
    set_add_set(&named, &lacks);
    set_tidy(&named);
    set_add_set(rest, s);
    set_intersect(rest, &named);
    set_release(&named);
    set_release(&lacks);
}

static void write_set(struct buf *out, struct set *s)
{
    struct set outside = {0}, rest[2] = {{0}, {0}};
    uint32_t mask[2];

    set_add_set(&outside, s);
    set_negate(&outside);
    set_drop_surrogates(s);
    set_drop_surrogates(&outside);
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
    set_release(&outside);
    set_release(&rest[0]);
    set_release(&rest[1]);
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
                        struct set *out, struct err *err)
{
    char plain[64], own[64];
    uint32_t mask;

    plain_name(name, len, plain);
    if (len == 0 || len > 60)
        return refuse(r->at, err, "a property without a sound name");
    mask = category_mask(plain);
    if (mask) {
        if (r->is_caseless && !is_closed_under_case(plain))
            return refuse(r->at, err,
                          "a property of letters without regard to case");
        set_add_valued(out, unicode_category, unicode_category_count, mask);
        return 0;
    }
    if (strcmp(plain, "any") == 0) {
        set_add(out, 0, LAST);
        return 0;
    }
    for (size_t i = 0; i < unicode_script_names_count; i++) {
        plain_name(unicode_script_names[i], strlen(unicode_script_names[i]),
                   own);
        if (strcmp(own, plain) != 0)
            continue;
        if (r->is_caseless)
            return refuse(r->at, err, "a script without regard to case");
        for (size_t k = 0; k < unicode_script_count; k++)
            if (unicode_script[k].value == i)
                set_add(out, unicode_script[k].first, unicode_script[k].last);
        return 0;
    }
    return err_set(err, ERR_UNSUPPORTED,
                   "pattern, byte %zu: unknown property '%.*s'", r->at + 1,
                   (int)len, name);
}

/* \p{Name}, \p{^Name}, \P{Name}; r->at is behind the letter. */
static int read_property(struct reader *r, bool is_negated, struct set *out,
                         struct err *err)
{
    struct set own = {0};
    const char *end;

    if (!take(r, "{"))
        return refuse(r->at, err, "a property without '{'");
    if (take(r, "^"))
        is_negated = !is_negated;
    end = memchr(r->source + r->at, '}', r->len - r->at);
    if (!end)
        return refuse(r->at, err, "a property without '}'");
    size_t len = (size_t)(end - (r->source + r->at));
    if (add_property(r, r->source + r->at, len, &own, err)) {
        set_release(&own);
        return -1;
    }
    r->at += len + 1;
    if (is_negated)
        set_negate(&own);
    set_add_set(out, &own);
    set_release(&own);
    return 0;
}

/*
 * \s \S \d \D \w \W \h \H: the set of the letter.  Outside a class the Ruby
 * engine's \w has six characters of Latin-1 more than inside one.
 */
static int add_class_letter(struct reader *r, char letter, bool is_inside,
                            struct set *out, struct err *err)
{
    struct set own = {0};
    bool is_negated = letter >= 'A' && letter <= 'Z';

    switch (letter | 0x20) {
    case 's':
        set_add_table(&own, unicode_space, unicode_space_count);
        break;
    case 'd':
        set_add_valued(&own, unicode_category, unicode_category_count,
                       category_mask("nd"));
        break;
    case 'w':
        if (r->engine == PATTERN_RUST)
            set_add_table(&own, unicode_word, unicode_word_count);
        else
            set_add_table(&own, unicode_pattern_word,
                          unicode_pattern_word_count);
        if (r->engine == PATTERN_RUBY && !is_inside) {
            set_add(&own, 0xb2, 0xb3);
            set_add(&own, 0xb9, 0xb9);
            set_add(&own, 0xbc, 0xbe);
        }
        if (r->is_caseless) {
            set_release(&own);
            return refuse(r->at, err, "'\\w' without regard to case");
        }
        break;
    default:
        if (r->engine == PATTERN_RUST) {
            set_release(&own);
            return refuse(r->at, err, "unknown escape '\\h'");
        }
        set_add(&own, '0', '9');
        set_add(&own, 'A', 'F');
        set_add(&own, 'a', 'f');
        break;
    }
    if (is_negated)
        set_negate(&own);
    set_add_set(out, &own);
    set_release(&own);
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
    if (n < least || *out > LAST || (*out >= 0xd800 && *out < 0xe000))
        return refuse(r->at, err, "not a character's number");
    return 0;
}

/* The character an escape stands for; r->at is at the letter after '\'. */
static int read_escaped_char(struct reader *r, uint32_t *out, struct err *err)
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
        if (take(r, "{")) {
            if (!is_small && r->engine == PATTERN_RUBY)
                return refuse(at, err, "'\\u{...}'");
            if (read_hex(r, 1, 8, out, err))
                return -1;
            return take(r, "}") ? 0 : refuse(r->at, err, "'{' without '}'");
        }
        if (is_small
                ? read_hex(r, r->engine == PATTERN_RUST ? 2 : 1, 2, out, err)
                : read_hex(r, 4, 4, out, err))
            return -1;
        if (is_small && *out >= 0x80 && r->engine == PATTERN_RUBY)
            return refuse(at, err, "'\\xHH' above 7F (a byte)");
        return 0;
    }
    if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
        (c >= 'A' && c <= 'Z')) {
        char what[40] = "unknown escape '\\?'";

        what[17] = c;
        return refuse(at, err, what);
    }
    *out = utf8_get(r->source + r->at, &n);
    r->at += n;
    return 0;
}

static bool is_class_letter(char c)
{
    return c && strchr("sSdDwWhH", c);
}

/* A character without regard to case. */
static int add_caseless(struct reader *r, uint32_t c, struct set *out,
                        struct err *err)
{
    uint32_t upper;

    set_add(out, c, c);
    if (c < 0x80) {
        if ((c | 0x20) < 'a' || (c | 0x20) > 'z')
            return 0;
        upper = c & ~(uint32_t)0x20;
        set_add(out, upper, upper);
        set_add(out, upper | 0x20, upper | 0x20);
        if (upper == 'S')
            set_add(out, 0x17f, 0x17f);
        if (upper == 'K')
            set_add(out, 0x212a, 0x212a);
        return 0;
    }
    struct set safe = {0};
    set_add_valued(&safe, unicode_category, unicode_category_count,
                   category_mask("lo") | category_mask("p") |
                       category_mask("z") | category_mask("nd"));
    set_tidy(&safe);
    bool is_safe = set_holds(&safe, c, c) &&
                   !(c >= 0x10a0 && c < 0x1100); /* Georgian has case */
    set_release(&safe);
    return is_safe ? 0
                   : refuse(r->at, err,
                            "a letter outside ASCII without regard to case");
}

static int add_range(struct reader *r, uint32_t first, uint32_t last,
                     struct set *out, struct err *err)
{
    if (first > last)
        return refuse(r->at, err, "a range that runs backwards");
    if (!r->is_caseless) {
        set_add(out, first, last);
        return 0;
    }
    if (last >= 0x80 && last - first > 0x40)
        return refuse(r->at, err,
                      "a range outside ASCII without regard to case");
    for (uint32_t c = first; c <= last; c++)
        if (add_caseless(r, c, out, err))
            return -1;
    return 0;
}

/* [:name:] inside a class; r->at is behind "[:". */
static int read_posix(struct reader *r, struct set *out, struct err *err)
{
    struct set own = {0};
    size_t at = r->at;
    bool is_negated = take(r, "^");

    if (r->is_caseless || r->engine == PATTERN_RUST)
        return refuse(at, err, "a POSIX bracket here");
    if (take(r, "alpha:]")) {
        set_add_table(&own, unicode_pattern_alpha, unicode_pattern_alpha_count);
    } else if (take(r, "digit:]")) {
        add_class_letter(r, 'd', true, &own, err);
    } else if (take(r, "space:]")) {
        add_class_letter(r, 's', true, &own, err);
    } else if (take(r, "punct:]")) {
        set_add_valued(&own, unicode_category, unicode_category_count,
                       category_mask("p") | category_mask("s"));
    } else if (take(r, "xdigit:]")) {
        add_class_letter(r, 'h', true, &own, err);
    } else {
        return refuse(at, err, "unknown POSIX bracket");
    }
    if (is_negated)
        set_negate(&own);
    set_add_set(out, &own);
    set_release(&own);
    return 0;
}

static int read_class(struct reader *r, struct set *out, struct err *err);

/*
 * One item of a class, or a range.  Sets is_char when it was a single
 * character, so that a '-' after it may make a range.
 */
static int read_class_item(struct reader *r, struct set *out, bool *is_char,
                           uint32_t *c, struct err *err)
{
    size_t n;

    *is_char = false;
    if (take(r, "[:"))
        return read_posix(r, out, err);
    if (take(r, "["))
        return read_class(r, out, err);
    if (!take(r, "\\")) {
        *is_char = true;
        *c = utf8_get(r->source + r->at, &n);
        r->at += n;
        return 0;
    }
    if (r->at == r->len)
        return refuse(r->at, err, "ends in '\\'");
    char letter = r->source[r->at];
    if (is_class_letter(letter)) {
        r->at++;
        return add_class_letter(r, letter, true, out, err);
    }
    if (letter == 'p' || letter == 'P') {
        r->at++;
        return read_property(r, letter == 'P', out, err);
    }
    *is_char = true;
    if (letter == 'b' && r->engine == PATTERN_RUBY) {
        r->at++;
        *c = '\b';
        return 0;
    }
    return read_escaped_char(r, c, err);
}

/* One operand of && up to "]" or "&&". */
static int read_class_part(struct reader *r, struct set *out, struct err *err)
{
    bool is_first = true;

    while (r->at < r->len && !next_is(r, "]") && !next_is(r, "&&")) {
        bool is_char, is_end_char;
        uint32_t c = 0, end = 0;
        size_t at = r->at;

        if (next_is(r, "-") && !is_first) {
            r->at++;
            if (!next_is(r, "]") && !next_is(r, "&&"))
                return refuse(at, err, "a '-' between two items of a class");
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
        if (next_is(r, "-") && r->at + 1 < r->len &&
            r->source[r->at + 1] != ']' &&
            memcmp(r->source + r->at, "-&&", r->len - r->at < 3 ? 1 : 3) != 0) {
            r->at++;
            if (next_is(r, "["))
                return refuse(r->at, err, "a range up to a class");
            if (read_class_item(r, out, &is_end_char, &end, err))
                return -1;
            if (!is_end_char)
                return refuse(at, err, "a range up to a class");
        }
        if (add_range(r, c, end, out, err))
            return -1;
    }
    return 0;
}

/* A class; r->at is behind '['. */
static int read_class(struct reader *r, struct set *out, struct err *err)
{
    struct set whole = {0}, part = {0};
    size_t at = r->at;
    bool is_negated = take(r, "^"), is_first = true;
    int ret = -1;

    if (++r->depth > MAX_DEPTH) {
        refuse(at, err, "nested too deeply");
        goto out;
    }
    if (next_is(r, "]")) {
        refuse(at, err, "an empty class");
        goto out;
    }
    do {
        if (read_class_part(r, &part, err))
            goto out;
        set_tidy(&part);
        if (is_first)
            set_add_set(&whole, &part);
        else
            set_intersect(&whole, &part);
        set_release(&part);
        is_first = false;
    } while (take(r, "&&"));
    if (!take(r, "]")) {
        refuse(at, err, "a class without its end");
        goto out;
    }
    if (is_negated)
        set_negate(&whole);
    set_add_set(out, &whole);
    ret = 0;
out:
    r->depth--;
    set_release(&whole);
    set_release(&part);
    return ret;
}

/* -- the rest of the syntax -- */

static int read_alternatives(struct reader *r, struct err *err);

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
            return refuse(at, err,
                          "two letters that fold to one character, without "
                          "regard to case");
    return 0;
}

static int write_char(struct reader *r, uint32_t c, size_t at, struct err *err)
{
    struct set s = {0};
    int ret = -1;

    if (!r->is_caseless) {
        if ((c | 0x20) >= 'a' && (c | 0x20) <= 'z')
            buf_addch(r->out, (int)c);
        else
            buf_addf(r->out, "\\x{%x}", c);
        return 0;
    }
    if (check_folding(r, c, at, err) == 0 && add_caseless(r, c, &s, err) == 0) {
        write_set(r->out, &s);
        ret = 0;
    }
    set_release(&s);
    return ret;
}

/* A word boundary, by upstream's word. */
static void write_boundary(struct reader *r, bool is_negated, struct err *err)
{
    struct set word = {0}, other = {0};
    struct buf w = BUF_INIT, o = BUF_INIT;

    add_class_letter(r, 'w', false, &word, err);
    set_add_set(&other, &word);
    set_negate(&other);
    write_set(&w, &word);
    write_set(&o, &other);
    buf_addf(r->out,
             is_negated ? "(?:(?<=%s)(?=%s)|(?<!%s)(?!%s))"
                        : "(?:(?<=%s)(?!%s)|(?<!%s)(?=%s))",
             w.data, w.data, w.data, w.data);
    buf_release(&w);
    buf_release(&o);
    set_release(&word);
    set_release(&other);
}

/* After '\'; *is_anchor when nothing may repeat it. */
static int read_backslash(struct reader *r, bool *is_anchor, struct err *err)
{
    struct set s = {0};
    size_t at = r->at;
    uint32_t c;
    int ret;

    if (r->at == r->len)
        return refuse(r->at, err, "ends in '\\'");
    char letter = r->source[r->at];
    if (letter == 'p' || letter == 'P' || is_class_letter(letter)) {
        r->at++;
        r->last_letter = 0;
        ret = letter == 'p' || letter == 'P'
                  ? read_property(r, letter == 'P', &s, err)
                  : add_class_letter(r, letter, false, &s, err);
        if (ret == 0)
            write_set(r->out, &s);
        set_release(&s);
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
            return refuse(at, err, "a word boundary without regard to case");
        r->at++;
        *is_anchor = true;
        write_boundary(r, letter == 'B', err);
        return 0;
    }
    if (read_escaped_char(r, &c, err))
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
        return refuse(at, err, "nested too deeply");
    for (size_t i = 0; !open && i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (take(r, kinds[i].from)) {
            open = kinds[i].to;
            *is_anchor = kinds[i].is_anchor;
            if (kinds[i].is_caseless && !r->is_caseless) {
                r->is_caseless = true;
                r->last_letter = 0;
            }
        }
    if (!open && take(r, "?-i:")) {
        open = "(?:";
        r->is_caseless = false;
    }
    if (!open && next_is(r, "?"))
        return err_set(err, ERR_UNSUPPORTED,
                       "pattern, byte %zu: unknown group '(%.*s'", at + 1,
                       (int)(r->len - r->at < 3 ? r->len - r->at : 3),
                       r->source + r->at);
    buf_addstr(r->out, open ? open : "(?:"); /* nobody asks for captures */
    if (read_alternatives(r, err))
        return -1;
    if (!take(r, ")"))
        return refuse(at, err, "a group without its end");
    buf_addch(r->out, ')');
    r->is_caseless = was_caseless;
    r->depth--;
    return 0;
}

static int read_atom(struct reader *r, bool *is_anchor, struct err *err)
{
    struct set s = {0};
    size_t n, at = r->at;
    int ret = -1;

    if (take(r, "("))
        return read_group(r, is_anchor, err);
    if (take(r, "[")) {
        r->last_letter = 0;
        if (read_class(r, &s, err) == 0) {
            write_set(r->out, &s);
            ret = 0;
        }
        set_release(&s);
        return ret;
    }
    if (take(r, "\\"))
        return read_backslash(r, is_anchor, err);
    if (take(r, ".")) {
        r->last_letter = 0;
        buf_addstr(r->out, "[^\\x{a}]");
        return 0;
    }
    if (take(r, "^")) {
        *is_anchor = true;
        buf_addstr(r->out, r->engine == PATTERN_RUBY ? "^" : "\\A");
        return 0;
    }
    if (take(r, "$")) {
        *is_anchor = true;
        buf_addstr(r->out, r->engine == PATTERN_RUBY ? "$" : "\\z");
        return 0;
    }
    if (next_is(r, "*") || next_is(r, "+") || next_is(r, "?"))
        return refuse(at, err, "nothing to repeat");
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

    if (take(r, "{")) {
        bool has_least = read_count(r, least), has_most = has_least;

        *most = *least;
        *is_open = false;
        if (take(r, ",")) {
            has_most = read_count(r, most);
            *is_open = !has_most;
        }
        if ((has_least || has_most) && take(r, "}"))
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

/* What repeats the atom written from `from` on, if anything does. */
static int read_repeat(struct reader *r, size_t from, bool is_anchor,
                       struct err *err)
{
    uint32_t least, most;
    bool is_open;
    size_t at = r->at;

    if (read_interval(r, &least, &most, &is_open)) {
        bool is_exact = !memchr(r->source + at, ',', r->at - at);

        if (is_anchor)
            return refuse(at, err, "a repeated anchor");
        if (least > MAX_REPEAT || most > MAX_REPEAT ||
            (!is_open && least > most))
            return refuse(at, err, "a repeat count out of range");
        if (is_open)
            buf_addf(r->out, "{%u,}", least);
        else
            buf_addf(r->out, "{%u,%u}", least, most);
        if (next_is(r, "?") && is_exact)
            return refuse(at, err, "'{n}?'");
        if (take(r, "?")) {
            buf_addch(r->out, '?');
        } else if (take(r, "+")) {
            if (r->engine == PATTERN_RUST) {
                buf_addch(r->out, '+');
            } else {
                insert(r->out, from, "(?:");
                buf_addstr(r->out, ")+");
            }
        }
    } else if (next_is(r, "*") || next_is(r, "+") || next_is(r, "?")) {
        if (is_anchor)
            return refuse(at, err, "a repeated anchor");
        buf_addch(r->out, r->source[r->at++]);
        if (next_is(r, "?") || next_is(r, "+"))
            buf_addch(r->out, r->source[r->at++]);
    } else {
        return 0;
    }
    at = r->at;
    if (next_is(r, "*") || next_is(r, "+") || next_is(r, "?") ||
        read_interval(r, &least, &most, &is_open))
        return refuse(at, err, "a repeated repeat");
    return 0;
}

static int read_alternatives(struct reader *r, struct err *err)
{
    while (r->at < r->len && !next_is(r, ")")) {
        size_t from = r->out->len;
        bool is_anchor = false;

        if (take(r, "|")) {
            r->last_letter = 0;
            buf_addch(r->out, '|');
            continue;
        }
        if (take(r, "(?#")) {
            while (r->at < r->len && !next_is(r, ")"))
                r->at++;
            if (!take(r, ")"))
                return refuse(r->at, err, "a comment without its end");
            continue;
        }
        if (take(r, "(?i)")) { /* to the end of the group, with its bars */
            bool was_caseless = r->is_caseless;

            r->is_caseless = true;
            r->last_letter = 0;
            buf_addstr(r->out, "(?:");
            if (++r->depth > MAX_DEPTH)
                return refuse(r->at, err, "nested too deeply");
            if (read_alternatives(r, err))
                return -1;
            buf_addch(r->out, ')');
            r->depth--;
            r->is_caseless = was_caseless;
            return 0;
        }
        if (read_atom(r, &is_anchor, err) ||
            read_repeat(r, from, is_anchor, err))
            return -1;
    }
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
            return refuse(i, err, "a NUL");
    if (read_alternatives(&r, err))
        return -1;
    if (r.at < r.len)
        return refuse(r.at, err, "')' without '('");
    return 0;
}
