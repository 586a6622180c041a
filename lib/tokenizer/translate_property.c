/* Sets that have names: \p{...}, \s and its like; and what a letter is alike
 * without regard to case. */
#include "tokenizer/translate.h"

#include <string.h>

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

uint32_t translate_categories(const char *plain)
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
    mask = translate_categories(plain);
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
                            translate_categories("nd"));
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
                        translate_categories("lo") | translate_categories("p") |
                            translate_categories("z") |
                            translate_categories("nd"));
    char_set_tidy(&safe);
    bool is_safe = char_set_holds(&safe, c, c) &&
                   !(c >= 0x10a0 && c < 0x1100); /* Georgian has case */
    char_set_release(&safe);
    return is_safe
               ? 0
               : reader_refuse(r->at, err,
                               "a letter outside ASCII without regard to case");
}
