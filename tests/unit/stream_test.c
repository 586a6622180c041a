/* The pull reader for large JSON documents. */
#include "base/buf.h"
#include "memory_file.h"
#include "tap.h"
#include "json/stream.h"

/* A stream over a file of its own; release() closes both. */
static int open_text(struct json_stream *s, const char *text, size_t len,
                     size_t window)
{
    struct err err = ERR_INIT;
    char path[64];
    int fd = memory_file(text, len, path);

    if (json_stream_open(s, path, window, &err)) {
        printf("Bail out! %s\n", err.text);
        exit(1);
    }
    return fd;
}

/* Is it written like this?  Releases it. */
static bool is_tree(json_t *tree, const char *want)
{
    char *text = tree ? json_dumps(tree, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    bool good = text && strcmp(text, want) == 0;

    if (!good)
        diag("got %s", text ? text : "nothing");
    free(text);
    json_decref(tree);
    return good;
}

static void release(struct json_stream *s, int fd)
{
    json_stream_release(s);
    close(fd);
}

/* The events as letters, with the texts of keys, strings and numbers. */
static int trace_by(size_t window, const char *text, size_t len,
                    struct buf *out, struct err *err)
{
    static const char letters[] = ".{}[]ksntz";
    struct json_stream s;
    enum json_event event;
    int fd = open_text(&s, text, len, window);

    while ((event = json_stream_next(&s, err)) > STREAM_DONE) {
        buf_addch(out, letters[event]);
        if (event == STREAM_KEY || event == STREAM_TEXT ||
            event == STREAM_NUMBER || event == STREAM_TRUTH) {
            buf_add(out, s.text, s.len);
            buf_addch(out, ' ');
        }
    }
    release(&s, fd);
    return event == STREAM_DONE ? 0 : -1;
}

static int trace(const char *text, size_t len, struct buf *out, struct err *err)
{
    return trace_by(JSON_WINDOW, text, len, out, err);
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
};

static void test_tables(void)
{
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct err err = ERR_INIT;
        struct buf out = BUF_INIT;

        trace(good[i].text, strlen(good[i].text), &out, &err);
        is_str(err.code ? err.text : out.data, good[i].want, good[i].text);
        buf_release(&out);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct err err = ERR_INIT;
        struct buf out = BUF_INIT;

        int ret = trace(bad[i].text, strlen(bad[i].text), &out, &err);
        ok(ret == -1 && err.code == ERR_INPUT, "refused: %s", bad[i].says);
        is_str(err.text, bad[i].says, "and says so");
        buf_release(&out);
    }
}

/* However little of it is held at a time, a text means the same. */
static int wrong_windows(const char *text, const char *want)
{
    size_t len = strlen(text);
    int wrong = 0;

    for (size_t window = 1; window <= len; window++) {
        struct err err = ERR_INIT;
        struct buf out = BUF_INIT;

        trace_by(window, text, len, &out, &err);
        wrong += strcmp(err.code ? err.text : out.data, want) != 0;
        buf_release(&out);
    }
    return wrong;
}

static void test_windows(void)
{
    int wrong = 0;

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        wrong += wrong_windows(good[i].text, good[i].want);
    is_int(wrong, 0, "sound texts read the same through windows of any size");
    wrong = 0;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        wrong += wrong_windows(bad[i].text, bad[i].says);
    is_int(wrong, 0, "bad ones are refused in the same words and place");
}

/* A document of many windows, a line an item: the errors' places are those in
 * the file, what is skipped stays together, and one may go back. */
static void test_long_document(void)
{
    enum { ITEMS = 5000, SKIPPED = 1234, WINDOW = 512 };
    struct err err = ERR_INIT;
    struct buf text = BUF_INIT;
    struct json_stream s;
    size_t offset = 0;
    int wrong = 0;

    for (int i = 0; i < ITEMS; i++)
        buf_addf(&text, "%s[%d, \"caf\u00e9 %d\"]", i ? ",\n  " : "[", i, i);
    buf_addstr(&text, ",\n  \t 01]");
    int fd = open_text(&s, text.data, text.len, WINDOW);
    json_stream_next(&s, &err);
    for (int i = 0; i < ITEMS; i++) {
        char want[64];

        if (i == SKIPPED) {
            offset = json_stream_offset(&s);
            wrong += json_stream_skip(&s, &err) != 0;
            continue;
        }
        snprintf(want, sizeof(want), "[%d,\"caf\u00e9 %d\"]", i, i);
        wrong += !is_tree(json_stream_tree(&s, &err), want);
    }
    is_int(wrong, 0, "5000 items are read, one of them skipped");
    ok(s.in.cap == WINDOW, "through the window it began with");
    ok(json_stream_next(&s, &err) == STREAM_BAD, "what is bad is refused");
    is_str(err.text, "line 5001, column 5: not a number",
           "at its place in the file");

    json_stream_seek(&s, offset + 1); /* behind the comma */
    ok(json_stream_next(&s, &err) == STREAM_LIST &&
           json_stream_next(&s, &err) == STREAM_NUMBER && s.len == 4 &&
           memcmp(s.text, "1234", 4) == 0,
       "one may go back to an item");
    release(&s, fd);
    buf_release(&text);
}

static void test_file_cut_meanwhile(void)
{
    struct err err = ERR_INIT;
    struct buf text = BUF_INIT;
    struct json_stream s;
    enum json_event event;

    buf_addch(&text, '[');
    for (int i = 0; i < 1000; i++)
        buf_addstr(&text, "1, ");
    buf_addstr(&text, "1]");
    int fd = open_text(&s, text.data, text.len, 256);
    json_stream_next(&s, &err);
    ok(ftruncate(fd, 1000) == 0, "a file is cut while it is read");
    while ((event = json_stream_next(&s, &err)) > STREAM_DONE)
        ;
    ok(event == STREAM_BAD && err.code == ERR_INPUT, "that is an error");
    ok(strstr(err.text, "bytes early, at offset 1000") != NULL, "%s", err.text);
    release(&s, fd);
    buf_release(&text);
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
        int ret = trace(text.data, text.len, &out, &err);
        ok(depth == 64 ? ret == 0 : ret == -1 && err.code == ERR_INPUT,
           "%d levels are %s", depth, depth == 64 ? "read" : "refused");
        buf_release(&text);
        buf_release(&out);
    }
}

static void test_skip(void)
{
    static const char text[] = "{\"a\": [1, {\"b\": \"}\"}], \"c\": 2}";
    struct err err = ERR_INIT;
    struct json_stream s;
    int fd = open_text(&s, text, sizeof(text) - 1, JSON_WINDOW);

    json_stream_next(&s, &err);
    json_stream_next(&s, &err);
    is_int(json_stream_skip(&s, &err), 0, "skips a value");
    ok(json_stream_next(&s, &err) == STREAM_KEY && s.text[0] == 'c',
       "then goes on behind it");
    release(&s, fd);
}

static json_t *read_tree(const char *text, size_t len, struct err *err)
{
    struct json_stream s;
    int fd = open_text(&s, text, len, JSON_WINDOW);
    json_t *tree = json_stream_tree(&s, err);

    release(&s, fd);
    return tree;
}

/* What a value is written like again, or why it is refused. */
static void test_trees(void)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"{\"a\": [1, -2.5e+3, \"x\\u0000y\"], \"\\u00e9\": {\"b\": null}}",
         "{\"a\":[1,-2500.0,\"x\\u0000y\"],\"\u00e9\":{\"b\":null}}"},
        {"[true, false, [], {}]", "[true,false,[],{}]"},
        {"-9223372036854775808", "-9223372036854775808"},
        {"9223372036854775808", "line 1, column 1: too big integer"},
        {"[1e400]", "line 1, column 2: real number overflow near '1e400'"},
        {"{\"a\": 1, \"b\": {\"a\": 1, \"a\": 2}}",
         "line 1, column 24: duplicate key 'a'"},
        {"{\"\\u0000\": 1}", "line 1, column 2: a key with a NUL"},
        {"[1, {\"a\": [2", "line 1, column 13: text ends too early"},
        {"[1, {\"a\": ]", "line 1, column 11: not a value"},
        {"{\"a\": 1, \"\\u0061\": 2}", "line 1, column 10: duplicate key 'a'"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct err err = ERR_INIT;
        json_t *tree = read_tree(rows[i].text, strlen(rows[i].text), &err);

        if (tree)
            ok(is_tree(tree, rows[i].want), "tree of %s", rows[i].text);
        else
            is_str(err.text, rows[i].want, rows[i].text);
    }
}

/* Objects within objects, all with the same keys, and many of them. */
static void test_many_keys(void)
{
    struct err err = ERR_INIT;
    struct buf text = BUF_INIT;

    buf_addch(&text, '{');
    for (int i = 0; i < 5000; i++)
        buf_addf(&text, "\"k%d\": {\"k%d\": {\"k0\": 1}}, ", i, i / 2);
    size_t len = text.len - 2;
    text.data[len] = '}';
    json_t *tree = read_tree(text.data, len + 1, &err);
    is_int((int64_t)json_object_size(tree), 5000,
           "keys are looked for in their own object alone");
    json_decref(tree);
    text.data[len] = ',';
    buf_addstr(&text, "\"k17\": 1}");
    ok(!read_tree(text.data, text.len, &err), "and found again behind 4982");
    ok(strstr(err.text, "duplicate key 'k17'") != NULL, "%s", err.text);
    buf_release(&text);
}

static void test_every_cut(void)
{
    static const char text[] = "{\"a\u00e9\": [1.5e3, \"\\u00e9\\n\", true, "
                               "null, {\"b\": \"\xf0\x9f\x98\x80\"}]}";
    int wrong = 0;

    for (size_t n = 0; n + 1 < sizeof(text) - 1; n++) {
        struct err err = ERR_INIT;
        struct buf out = BUF_INIT;

        if (trace(text, n, &out, &err) == 0 || err.code != ERR_INPUT)
            wrong++;
        buf_release(&out);
    }
    is_int(wrong, 0, "cut at every byte it is refused");
}

int main(void)
{
    test_tables();
    test_windows();
    test_long_document();
    test_file_cut_meanwhile();
    test_depth();
    test_skip();
    test_trees();
    test_many_keys();
    test_every_cut();
    return done();
}
