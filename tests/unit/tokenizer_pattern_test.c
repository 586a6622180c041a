/*
 * The translator of split expressions: what it refuses, and where others cut.
 * Cuts recorded with tokenizers 0.22.2: pre_tokenizers.Split(Regex(pattern),
 * "isolated").pre_tokenize_str(text), pieces joined with '|'.
 */
#include "tap.h"
#include "tokenizer/pattern.h"

static int add_piece(void *arg, size_t start, size_t end, bool is_match,
                     struct err *err)
{
    struct {
        const char *text;
        struct buf out;
    } *cut = arg;

    (void)is_match;
    (void)err;
    if (start == end)
        return 0;
    if (cut->out.len)
        buf_addch(&cut->out, '|');
    buf_add(&cut->out, cut->text + start, end - start);
    return 0;
}

static void cuts(enum pattern_engine engine, const char *pattern,
                 const char *text, const char *want)
{
    struct err err = ERR_INIT;
    struct pattern_scratch *scratch = pattern_scratch_new();
    struct pattern *p = pattern_new(pattern, strlen(pattern), engine, &err);
    struct {
        const char *text;
        struct buf out;
    } cut = {text, BUF_INIT};

    if (p)
        pattern_cut(p, scratch, text, strlen(text), add_piece, &cut, &err);
    is_str(err.code ? err.text : cut.out.data, want, pattern);
    buf_release(&cut.out);
    pattern_free(p);
    pattern_scratch_free(scratch);
}

static const struct {
    const char *pattern, *text, *want;
} ruby[] = {
    {"(?=(\\d{3})+(?!\\d))", "1234567", "1|234|567"},
    {"a{2}+", "aaaaab", "aaaa|ab"},
    {"a{1,2}+b", "aaab", "aaab"},
    {"a++ab|a", "aab", "a|a|b"},
    {"x?+x|y", "xxy", "xx|y"},
    {"a*?b", "aab", "aab"},
    {"a{,2}", "aaab", "aa|a|b"},
    {"{", "a{b", "a|{|b"},
    {"[a&&[^b]]|b", "ab", "a|b"},
    {"[a-z&&[^aeiou]]+", "hello", "h|e|ll|o"},
    {"[^a-c&&[b-z]]+", "abxc", "a|b|x|c"},
    {"^.", "a\nb\n", "a|\n|b|\n"},
    {".$", "ab\ncd", "a|b|\nc|d"},
    {"\\h+", "xfg0", "x|f|g|0"},
    {"\\w", "\xc2\xbd-", "\xc2\xbd|-"},
    {"[\\w]", "\xc2\xbd-", "\xc2\xbd-"},
    {"[^\\W_]+", "a_b", "a|_|b"},
    {"\\s",
     "a\xe1\xa0\x8e"
     "b c",
     "a\xe1\xa0\x8e"
     "b| |c"},
    {"(?i:s)", "aSs\xc5\xbf", "a|S|s|\xc5\xbf"},
    {"(?i:[k])", "kK\xe2\x84\xaa", "k|K|\xe2\x84\xaa"},
    {"a(?i)b|c", "aBac", "aB|ac"},
    {"(?i:a(?-i:b))", "AbAB", "Ab|AB"},
    {"\\p{Han}+", "a\xe3\x80\x85\xe4\xb8\x80", "a|\xe3\x80\x85\xe4\xb8\x80"},
    {"\\p{^L}+|\\P{N}", "a1b", "a|1|b"},
    {"[[:punct:]]+", "a$.b", "a|$.|b"},
    {"[\\p{Lu}\\p{Lt}]", "aB\xc7\x85", "a|B|\xc7\x85"},
    {"\\bab", "ab cab", "ab| cab"},
    {"(?<=a)b|(?<!a)c", "abcac", "a|b|c|ac"},
    {"(?#comment)a", "ba", "b|a"},
    {"(?:a?b?)*1", "ab1c1", "ab1|c|1"},
    {"(?:a|b){2}", "abba", "ab|ba"},
    {"\\u0061|\\x62|\\x{63}|\\t", "abc\t", "a|b|c|\t"},
    {"\\Aa|b\\z", "aabb", "a|ab|b"},
};

static const struct {
    const char *pattern, *want;
} refused[] = {
    {"(a)\\1", "pattern, byte 5: unknown escape '\\1'"},
    {"\\k<n>", "pattern, byte 2: unknown escape '\\k'"},
    {"\\X", "pattern, byte 2: unknown escape '\\X'"},
    {"\\R", "pattern, byte 2: unknown escape '\\R'"},
    {"\\K", "pattern, byte 2: unknown escape '\\K'"},
    {"\\G", "pattern, byte 2: unknown escape '\\G'"},
    {"\\xe9", "pattern, byte 2: '\\xHH' above 7F (a byte)"},
    {"\\u{41}", "pattern, byte 2: '\\u{...}'"},
    {"\\p{InLatin1Supplement}",
     "pattern, byte 4: unknown property 'InLatin1Supplement'"},
    {"\\p{Klingon}", "pattern, byte 4: unknown property 'Klingon'"},
    {"\\pL", "pattern, byte 3: a property without '{'"},
    {"\\p{L", "pattern, byte 4: a property without '}'"},
    {"(?m:.)", "pattern, byte 1: unknown group '(?m:'"},
    {"(?x)a", "pattern, byte 1: unknown group '(?x)'"},
    {"(?<n>a)", "pattern, byte 1: unknown group '(?<n'"},
    {"(?~a)", "pattern, byte 1: unknown group '(?~a'"},
    {"(?(1)a)", "pattern, byte 1: unknown group '(?(1'"},
    {"(?i:ss)", "pattern, byte 6: two letters that fold to one character, "
                "without regard to case"},
    {"(?i:fi)", NULL},
    {"(?i:fl)", NULL},
    {"(?i:st)", NULL},
    {"(?i:ff)", NULL},
    {"(?i:\xc3\xa9)", NULL},
    {"(?i:\\p{L})", NULL},
    {"(?i:\\w)", NULL},
    {"(?i:[\xc3\xa0-\xc4\xbf])", NULL},
    {"[[:word:]]", "pattern, byte 4: unknown POSIX bracket"},
    {"[b-a]", NULL},
    {"[]a]", "pattern, byte 2: an empty class"},
    {"[a", "pattern, byte 2: a class without its end"},
    {"[\\s-x]", "pattern, byte 4: a '-' between two items of a class"},
    {"[a-\\s]", NULL},
    {"(a", "pattern, byte 1: a group without its end"},
    {"a)", "pattern, byte 2: ')' without '('"},
    {"*a", "pattern, byte 1: nothing to repeat"},
    {"a**", "pattern, byte 3: a repeated repeat"},
    {"a{2}{3}", "pattern, byte 5: a repeated repeat"},
    {"a{2}?", "pattern, byte 2: '{n}?'"},
    {"a{3,2}", "pattern, byte 2: a repeat count out of range"},
    {"a{5000}", "pattern, byte 2: a repeat count out of range"},
    {"(?=a)+", "pattern, byte 6: a repeated anchor"},
    {"(?:\\ba?){2}", "pattern, byte 9: a count of what may match nothing"},
    {"(?:a|b*){1,3}", "pattern, byte 9: a count of what may match nothing"},
    {"a?(?#c)+", "pattern, byte 8: a repeat behind a comment"},
    {"a(?#\\)b)", "pattern, byte 5: '\\' in a comment"},
    {"(?i){2}", "pattern, byte 5: nothing to repeat"},
    {"^*", "pattern, byte 2: a repeated anchor"},
    {"a\\", "pattern, byte 3: ends in '\\'"},
    {"(?<=a+)b", NULL},
};

static void test_refusals(void)
{
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        const char *pattern = refused[i].pattern;
        struct err err = ERR_INIT;
        struct pattern *p =
            pattern_new(pattern, strlen(pattern), PATTERN_RUBY, &err);

        ok(!p && err.code == ERR_UNSUPPORTED, "'%s' is refused", pattern);
        if (refused[i].want)
            is_str(err.text, refused[i].want, "by name and place");
        else
            ok(*err.text, "%s", err.text);
        pattern_free(p);
    }
}

static void test_every_cut(void)
{
    static const char whole[] =
        "(?i:'s|'t)|[^\\r\\n\\p{L}&&[\\x{41}-z]]?\\p{Lu}+| ?[[:punct:]]{1,3}+"
        "|(?<=a)\\s+(?!\\S)|\\u0041*?";
    int bad_codes = 0;

    for (size_t n = 0; n < sizeof(whole); n++) {
        struct err err = ERR_INIT;
        char *cut = malloc(n ? n : 1);

        memcpy(cut, whole, n);
        struct pattern *p = pattern_new(cut, n, PATTERN_RUBY, &err);
        if (!p && err.code != ERR_UNSUPPORTED)
            bad_codes++;
        pattern_free(p);
        free(cut);
    }
    is_int(bad_codes, 0, "cut at every byte it is read or refused");
}

static void test_limits(void)
{
    struct err err = ERR_INIT;
    struct buf nested = BUF_INIT;

    for (int i = 0; i < 200; i++)
        buf_addch(&nested, '(');
    struct pattern *p =
        pattern_new(nested.data, nested.len, PATTERN_RUBY, &err);
    ok(!p && err.code == ERR_UNSUPPORTED, "deep nesting is refused: %s",
       err.text);
    buf_release(&nested);

    err_clear(&err);
    p = pattern_new("(?:a|aa)+(?:a|aa)+(?:a|aa)+$", 28, PATTERN_RUBY, &err);
    struct pattern_scratch *scratch = pattern_scratch_new();
    char text[101];
    size_t start, end;
    memset(text, 'a', 99);
    text[99] = 'b';
    text[100] = '\0';
    int ret =
        pattern_find(p, scratch, text, strlen(text), 0, &start, &end, &err);
    ok(ret == -1 && err.code == ERR_UNSUPPORTED,
       "a pattern that would never end gives up: %s", err.text);
    pattern_free(p);
    pattern_scratch_free(scratch);
}

int main(void)
{
    for (size_t i = 0; i < sizeof(ruby) / sizeof(ruby[0]); i++)
        cuts(PATTERN_RUBY, ruby[i].pattern, ruby[i].text, ruby[i].want);
    cuts(PATTERN_RUST, "a{1,2}+a", "aaab", "aaa|b");
    cuts(PATTERN_RUST, "a{2}+", "aaaaab", "aa|aa|ab");
    cuts(PATTERN_RUST, "^.", "a\nb", "a|\nb");
    cuts(PATTERN_RUST, "(?i:ss)", "ssSs\xc3\x9f", "ss|Ss|\xc3\x9f");
    test_refusals();
    test_every_cut();
    test_limits();
    return done();
}
