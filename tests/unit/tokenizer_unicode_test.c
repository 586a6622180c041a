/*
 * Our Unicode tables against upstream's, code point by code point:
 * ../shared/data/goldens/tokenizers/unicode.json.zst (tokenizers 0.23.3).
 */
#include "archive/zstd_file.h"
#include "base/io.h"
#include "base/mem.h"
#include "tap.h"
#include "tokenizer/tokenizer_internal.h"
#include "json/json.h"

static const char golden[] =
    "../shared/data/goldens/tokenizers/unicode.json.zst";
enum { LAST = 0x10ffff, CAP = 1 << 26 };

static bool is_surrogate(uint32_t c)
{
    return c >= 0xd800 && c < 0xe000;
}

/* Marks the code points of golden ranges. */
static void mark_ranges(const json_t *ranges, bool *in)
{
    memset(in, 0, LAST + 1);
    for (size_t i = 0; i < json_array_size(ranges); i++) {
        const json_t *r = json_array_get(ranges, i);

        for (long long c = json_integer_value(json_array_get(r, 0));
             c <= json_integer_value(json_array_get(r, 1)); c++)
            if (!is_surrogate((uint32_t)c))
                in[c] = true;
    }
}

struct marking {
    const char *text;
    bool *in;
};

static int mark_match(void *arg, size_t start, size_t end, bool is_match,
                      struct err *err)
{
    const struct marking *m = arg;
    size_t n;

    (void)err;
    for (size_t i = start; is_match && i < end; i += n)
        m->in[utf8_get(m->text + i, &n)] = true;
    return 0;
}

static int differences(const bool *a, const bool *b)
{
    int n = 0;

    for (uint32_t c = 0; c <= LAST; c++)
        if (a[c] != b[c] && n++ < 3)
            diag("U+%04X: %d, wanted %d", c, a[c], b[c]);
    return n;
}

/* A pattern run over every code point. */
static void test_pattern(const char *name, const json_t *ranges,
                         const struct buf *all, bool *got, bool *want)
{
    struct err err = ERR_INIT;
    struct marking m = {all->data, got};
    struct pattern_scratch *scratch = pattern_scratch_new();
    struct pattern *p = pattern_new(name, strlen(name), PATTERN_RUBY, &err);

    mark_ranges(ranges, want);
    memset(got, 0, LAST + 1);
    if (!p) {
        bool is_refused =
            strcmp(name, "\\X{1}") == 0 || strcmp(name, "(?i:ss)") == 0;

        ok(is_refused && err.code == ERR_UNSUPPORTED, "%s is refused: %s", name,
           err.text);
    } else {
        pattern_cut(p, scratch, all->data, all->len, mark_match, &m, &err);
        is_int(differences(got, want), 0, name);
    }
    pattern_free(p);
    pattern_scratch_free(scratch);
}

static void test_table(const char *name, const json_t *ranges,
                       const struct unicode_range *table, size_t count,
                       bool *got, bool *want)
{
    mark_ranges(ranges, want);
    for (uint32_t c = 0; c <= LAST; c++)
        got[c] = unicode_has(table, count, c);
    is_int(differences(got, want), 0, name);
}

static void test_classes(const json_t *classes)
{
    struct buf all = BUF_INIT;
    bool *got = xmalloc(LAST + 1), *want = xmalloc(LAST + 1);
    const struct {
        const char *name;
        const struct unicode_range *table;
        size_t count;
    } tables[] = {
        {"Digits", unicode_numeric, unicode_numeric_count},
        {"Punctuation", unicode_punctuation, unicode_punctuation_count},
        {"WhitespaceSplit drops", unicode_space, unicode_space_count},
        {"Whitespace drops", unicode_space, unicode_space_count},
        {"Strip", unicode_space, unicode_space_count},
        {"StripAccents", unicode_accents, unicode_accents_count},
    };
    const char *name;
    json_t *ranges;
    char u[4];

    for (uint32_t c = 0; c <= LAST; c++)
        if (!is_surrogate(c))
            buf_add(&all, u, utf8_put(c, u));
    json_object_foreach((json_t *)(uintptr_t)classes, name, ranges)
    {
        bool is_table = false;

        for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
            if (strcmp(name, tables[i].name) == 0) {
                is_table = true;
                test_table(name, ranges, tables[i].table, tables[i].count, got,
                           want);
            }
        if (!is_table)
            test_pattern(name, ranges, &all, got, want);
    }
    free(got);
    free(want);
    buf_release(&all);
}

/* A normalizer on every code point alone. */
static void test_mapping(const char *name, const json_t *map,
                         enum step_kind kind)
{
    struct step step = {.kind = kind};
    const struct steps steps = {&step, 1};
    struct made made[2] = {0};
    struct err err = ERR_INIT;
    int wrong = 0;

    for (uint32_t c = 0; c <= LAST; c++) {
        char u[5] = "", key[16];
        struct piece p = {u, utf8_put(c, u), NULL, 0}, out;

        if (is_surrogate(c) || (c >= 0xac00 && c < 0xac00 + 11172))
            continue;
        snprintf(key, sizeof(key), "%X", c);
        const json_t *want = json_object_get(map, key);
        const char *text = want ? json_string_value(want) : u;
        size_t len = want ? json_string_length(want) : p.len;
        struct growth growth = growth_of(p.len);
        if (normalize(&steps, &p, made, NULL, &growth, &out, &err) ||
            out.len != len || memcmp(out.text, text, len) != 0)
            if (wrong++ < 3)
                diag("U+%04X", c);
    }
    is_int(wrong, 0, name);
    made_release(&made[0]);
    made_release(&made[1]);
}

static void test_classes_of_marks(const json_t *golden_ranges)
{
    bool *want = xmalloc(LAST + 1);
    int wrong = 0;

    mark_ranges(golden_ranges, want);
    for (uint32_t c = 0; c <= LAST; c++)
        if (!is_surrogate(c) && want[c] != (unicode_norm(c)->rank > 0))
            wrong++;
    is_int(wrong, 0, "which marks are reordered");
    free(want);
}

int main(void)
{
    static const struct {
        const char *name;
        enum step_kind kind;
    } maps[] = {
        {"lower", STEP_LOWERCASE}, {"NFC", STEP_NFC},   {"NFD", STEP_NFD},
        {"NFKC", STEP_NFKC},       {"NFKD", STEP_NFKD},
    };
    struct err err = ERR_INIT;
    struct buf text = BUF_INIT;

    if (!io_exists(golden))
        skip_all("../shared/data is not here");
    zstd_read_file(golden, CAP, &text, &err);
    json_t *root = json_parse(text.data ? text.data : "", text.len, &err);
    if (!ok(root != NULL, "the golden is readable"))
        diag("%s", err.text);
    test_classes(json_object_get(root, "classes"));
    for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++)
        test_mapping(maps[i].name, json_object_get(root, maps[i].name),
                     maps[i].kind);
    test_classes_of_marks(json_object_get(root, "ccc0_moved"));
    json_decref(root);
    buf_release(&text);
    return done();
}
