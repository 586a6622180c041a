/* The pull reader for large JSON documents. */
#include "base/buf.h"
#include "tap.h"
#include "json/stream.h"

/* The events as letters, with the texts of keys, strings and numbers. */
static int trace(const char *text, size_t len, bool unique, struct buf *out,
                 struct err *err)
{
    static const char letters[] = ".{}[]ksntz";
    struct json_stream s;
    enum json_event event;

    json_stream_init(&s, text, len);
    s.unique = unique;
    while ((event = json_stream_next(&s, err)) > STREAM_DONE) {
        buf_addch(out, letters[event]);
        if (event == STREAM_KEY || event == STREAM_TEXT ||
            event == STREAM_NUMBER || event == STREAM_TRUTH) {
            buf_add(out, s.text, s.len);
            buf_addch(out, ' ');
        }
    }
    json_stream_release(&s);
    return event == STREAM_DONE ? 0 : -1;
}

static const struct {
    const char *text, *want;
} good[] = {
    {"{}", "{}"},
    {" [ ] ", "[]"},
    {"{\"a\": [1, -2.5e+3, \"x\"], \"b\" : null}",
     "{ka [n1 n-2.5e+3 sx ]kb z}"},
    {"[true, false]", "[ttrue tfalse ]"},
    {"\"\\u00e9\\ud83d\\ude00\\n\\/\"", "s\xc3\xa9\xf0\x9f\x98\x80\n/ "},
    {"\"\xe2\x96\x81 \xf0\x9f\x98\x80\"", "s\xe2\x96\x81 \xf0\x9f\x98\x80 "},
    {"0", "n0 "},
    {"\n\n            \t\r  [\n                  7]", "[n7 ]"},
    {"{\"a\":{\"a\":1},\"b\":{\"a\":2}}", "{ka {ka n1 }kb {ka n2 }}"},
};

static const struct {
    const char *text, *says;
} bad[] = {
    {"", "line 1, column 1: text ends where a value is due"},
    {"\xef\xbb\xbf{}", "line 1, column 1: starts with a byte order mark"},
    {"{} x", "line 1, column 4: text after the document"},
    {"[1,]", "line 1, column 4: not a value"},
    {"[1 2]", "line 1, column 4: neither ',' nor an end"},
    {"{\"a\" 1}", "line 1, column 6: no ':' after a key"},
    {"{1: 2}", "line 1, column 2: a key must be a string"},
    {"{\"a\": 1,}", "line 1, column 9: a key must be a string"},
    {"[01]", "line 1, column 2: not a number"},
    {"[1.]", "line 1, column 2: not a number"},
    {"[-]", "line 1, column 2: not a number"},
    {"[1e]", "line 1, column 2: not a number"},
    {"[NaN]", "line 1, column 2: not a value"},
    {"[Infinity]", "line 1, column 2: not a value"},
    {"[\n\"a\tb\"]", "line 2, column 3: a control character inside a string"},
    {"[\"\\x\"]", "line 1, column 3: unknown escape"},
    {"[\"\\u12g4\"]",
     "line 1, column 3: '\\u' without four hexadecimal digits"},
    {"[\"\\ud800\"]", "line 1, column 3: a surrogate without its pair"},
    {"[\"\\ude00\"]", "line 1, column 3: a surrogate without its pair"},
    {"[\"\\ud800\\u0041\"]", "line 1, column 3: a surrogate without its pair"},
    {"[\"\xff\"]", "line 1, column 3: not UTF-8"},
    {"[\"\xc0\x80\"]", "line 1, column 3: not UTF-8"},
    {"[\"\xed\xa0\x80\"]", "line 1, column 3: not UTF-8"},
    {"[\"\xc3", "line 1, column 3: not UTF-8"},
    {"[}", "line 1, column 2: not a value"},
    {"{\"a\":1]", "line 1, column 7: neither ',' nor an end"},
    {"{\"a\": 1, \"a\": 2}", "line 1, column 10: duplicate key 'a'"},
    {"{\"a\": 1, \"\\u0061\": 2}", "line 1, column 10: duplicate key 'a'"},
};

static void test_tables(void)
{
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct err err = ERR_INIT;
        struct buf out = BUF_INIT;

        trace(good[i].text, strlen(good[i].text), true, &out, &err);
        is_str(err.code ? err.text : out.data, good[i].want, good[i].text);
        buf_release(&out);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct err err = ERR_INIT;
        struct buf out = BUF_INIT;

        int ret = trace(bad[i].text, strlen(bad[i].text), true, &out, &err);
        ok(ret == -1 && err.code == ERR_INPUT, "refused: %s", bad[i].says);
        is_str(err.text, bad[i].says, "and says so");
        buf_release(&out);
    }
}

static void test_depth(void)
{
    for (int depth = 64; depth <= 65; depth++) {
        struct err err = ERR_INIT;
        struct buf text = BUF_INIT, out = BUF_INIT;

        for (int i = 0; i < depth; i++)
            buf_addch(&text, '[');
        for (int i = 0; i < depth; i++)
            buf_addch(&text, ']');
        int ret = trace(text.data, text.len, false, &out, &err);
        ok(depth == 64 ? ret == 0 : ret == -1 && err.code == ERR_INPUT,
           "%d levels are %s", depth, depth == 64 ? "read" : "refused");
        buf_release(&text);
        buf_release(&out);
    }
}

static void test_duplicates_are_the_callers(void)
{
    static const char text[] = "{\"a\": 1, \"a\": {\"b\": 1, \"b\": 2}}";
    struct err err = ERR_INIT;
    struct buf out = BUF_INIT;

    is_int(trace(text, sizeof(text) - 1, false, &out, &err), 0,
           "without `unique` duplicate keys are the caller's to find");
    is_str(out.data, "{ka n1 ka {kb n1 kb n2 }}", "who sees both");
    buf_release(&out);

    struct json_stream s;
    json_stream_init(&s, text, sizeof(text) - 1);
    for (int i = 0; i < 4; i++) /* { "a" 1 "a" */
        json_stream_next(&s, &err);
    s.unique = true;
    is_int(json_stream_skip(&s, NULL, NULL, &err), -1,
           "switched on, it holds for what is opened from there on");
    ok(strstr(err.text, "duplicate key 'b'") != NULL, "%s", err.text);
    json_stream_release(&s);
}

/* Objects within objects, all with the same keys, and many of them. */
static void test_keys_of_open_objects(void)
{
    struct err err = ERR_INIT;
    struct buf text = BUF_INIT, out = BUF_INIT;

    buf_addch(&text, '{');
    for (int i = 0; i < 300; i++) {
        buf_addf(&text, "\"k%d\": {", i);
        for (int k = 0; k <= i; k += 7)
            buf_addf(&text, "\"k%d\": {\"k0\": 1}, ", k);
        buf_addf(&text, "\"k%d\": 1}, ", i + 1);
    }
    size_t len = text.len - 2;
    text.data[len] = '}';
    is_int(trace(text.data, len + 1, true, &out, &err), 0,
           "keys are looked for in their own object alone");
    text.data[len] = ',';
    buf_addstr(&text, "\"k7\": 1}");
    is_int(trace(text.data, text.len, true, &out, &err), -1,
           "and found again behind 300 others");
    ok(strstr(err.text, "duplicate key 'k7'") != NULL, "%s", err.text);
    buf_release(&text);
    buf_release(&out);
}

static void test_skip(void)
{
    static const char text[] = "{\"a\": [1, {\"b\": \"}\"}], \"c\": 2}";
    struct err err = ERR_INIT;
    struct json_stream s;
    size_t from, to;

    json_stream_init(&s, text, sizeof(text) - 1);
    json_stream_next(&s, &err);
    json_stream_next(&s, &err);
    is_int(json_stream_skip(&s, &from, &to, &err), 0, "skips a value");
    ok(to - from == 15 && memcmp(text + from, "[1, {\"b\": \"}\"}]", 15) == 0,
       "and says where it lies");
    ok(json_stream_next(&s, &err) == STREAM_KEY && s.text[0] == 'c',
       "then goes on behind it");
    json_stream_release(&s);
}

static void test_many_keys(void)
{
    struct err err = ERR_INIT;
    struct buf text = BUF_INIT, out = BUF_INIT;

    buf_addch(&text, '{');
    for (int i = 0; i < 5000; i++)
        buf_addf(&text, "%s\"key %d\": {\"x\": 1}", i ? ", " : "", i);
    buf_addch(&text, '}');
    is_int(trace(text.data, text.len, true, &out, &err), 0,
           "five thousand keys are all different");
    text.len--;
    buf_addstr(&text, ", \"key 17\": 1}");
    is_int(trace(text.data, text.len, true, &out, &err), -1,
           "until one comes again");
    buf_release(&text);
    buf_release(&out);
}

static void test_every_cut(void)
{
    static const char text[] = "{\"a\u00e9\": [1.5e3, \"\\u00e9\\n\", true, "
                               "null, {\"b\": \"\xf0\x9f\x98\x80\"}]}";
    int wrong = 0;

    for (size_t n = 0; n + 1 < sizeof(text) - 1; n++) {
        struct err err = ERR_INIT;
        struct buf out = BUF_INIT;
        char *cut = malloc(n ? n : 1); /* its own, for the sanitizer */

        memcpy(cut, text, n);
        if (trace(cut, n, true, &out, &err) == 0 || err.code != ERR_INPUT)
            wrong++;
        free(cut);
        buf_release(&out);
    }
    is_int(wrong, 0, "cut at every byte it is refused");
}

int main(void)
{
    test_tables();
    test_depth();
    test_duplicates_are_the_callers();
    test_keys_of_open_objects();
    test_skip();
    test_many_keys();
    test_every_cut();
    return done();
}
