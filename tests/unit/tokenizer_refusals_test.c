/*
 * What a tokenizer.json or tiktoken.model must not be, each with its status and
 * one line; files cut short; long pieces; several threads.
 */
#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "tap.h"
#include "tokenizer/tokenizer_internal.h"

#include <pthread.h>
#include <unistd.h>

static char folder[] = "/tmp/assay-tokenizer-XXXXXX";

static void put_file(const char *name, const char *text, size_t len)
{
    char *path = path_join(folder, name);
    struct err err = ERR_INIT;

    unlink(path);
    if (io_write_file(path, text, len, &err))
        diag("%s", err.text);
    free(path);
}

static struct tokenizer *open_text(const char *text, size_t len,
                                   struct err *err)
{
    char *path = path_join(folder, "tokenizer.json");

    put_file("tokenizer.json", text, len);
    struct tokenizer *t = tokenizer_open(path, NULL, err);
    free(path);
    return t;
}

#define VOCAB "\"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2}"
#define MODEL                                                \
    "\"model\": {\"type\": \"BPE\", " VOCAB ", \"merges\": " \
    "[[\"a\", \"b\"]]}"
#define FLAGS                                                        \
    "\"single_word\": false, \"lstrip\": false, \"rstrip\": false, " \
    "\"normalized\": false, \"special\": true"
#define SOME(key, value) \
    "{\"version\": \"1.0\", \"" key "\": " value ", " MODEL "}"
#define OF_MODEL(text) "{\"version\": \"1.0\", \"model\": {" text "}}"

#define A "{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}"
#define B "{\"Sequence\": {\"id\": \"B\", \"type_id\": 1}}"
#define TEMPLATE(single, pair, specials)                           \
    SOME("post_processor",                                         \
         "{\"type\": \"TemplateProcessing\", \"single\": [" single \
         "], \"pair\": [" pair "], \"special_tokens\": {" specials "}}")

#define PADDING(strategy, id)                                                \
    "{\"strategy\": " strategy ", \"direction\": \"Right\", \"pad_id\": " id \
    ", \"pad_to_multiple_of\": null, \"pad_type_id\": 0, \"pad_token\": \"\"}"

static const struct {
    enum err_code code;
    const char *text, *says;
} bad[] = {
    {ERR_INPUT, "", "line 1, column 1: text ends where a value is due"},
    {ERR_INPUT, "\xef\xbb\xbf{}",
     "line 1, column 1: starts with a byte order mark"},
    {ERR_INPUT, "[]", "not an object"},
    {ERR_INPUT, "{" MODEL "}", "no 'version'"},
    {ERR_INPUT, "{\"version\": \"1.0\"}", "no 'model'"},
    {ERR_UNSUPPORTED, "{\"version\": \"2.0\", " MODEL "}",
     "version: line 1, column 13: not \"1.0\""},
    {ERR_INPUT, "{\"version\": \"1.0\", \"version\": \"1.0\", " MODEL "}",
     "line 1, column 20: duplicate key 'version'"},
    {ERR_INPUT, SOME("normalizer", "{\"type\": \"NFC\", \"type\": \"NFD\"}"),
     "normalizer: line 1, column 50: duplicate key 'type'"},
    {ERR_UNSUPPORTED, SOME("normalizer", "{\"type\": \"Precompiled\"}"),
     "normalizer: unknown type 'Precompiled'"},
    {ERR_INPUT, SOME("normalizer", "{\"x\": 1}"), "normalizer: no 'type'"},
    {ERR_INPUT, SOME("normalizer", "3"), "normalizer: not an object"},
    {ERR_UNSUPPORTED,
     SOME("normalizer", "{\"type\": \"Sequence\", \"normalizers\": "
                        "[{\"type\": \"NFC\"}, {\"type\": \"Nmt\"}]}"),
     "normalizer: normalizers[1]: unknown type 'Nmt'"},
    {ERR_UNSUPPORTED, SOME("pre_tokenizer", "{\"type\": \"BertPreTokenizer\"}"),
     "pre_tokenizer: unknown type 'BertPreTokenizer'"},
    {ERR_UNSUPPORTED,
     SOME("pre_tokenizer",
          "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"(a)\\\\1\"}, "
          "\"behavior\": \"Isolated\", \"invert\": false}"),
     "pre_tokenizer: pattern, byte 5: unknown escape '\\1'"},
    {ERR_INPUT,
     SOME("pre_tokenizer", "{\"type\": \"Split\", \"pattern\": {\"X\": \"a\"}, "
                           "\"behavior\": \"Isolated\", \"invert\": false}"),
     "pre_tokenizer: 'pattern' is neither a String nor a Regex"},
    {ERR_UNSUPPORTED,
     SOME("pre_tokenizer",
          "{\"type\": \"Split\", \"pattern\": {\"String\": \"a\"}, "
          "\"behavior\": \"Sideways\", \"invert\": false}"),
     "pre_tokenizer: unknown behavior 'Sideways'"},
    {ERR_INPUT,
     SOME("pre_tokenizer",
          "{\"type\": \"Metaspace\", \"replacement\": \"_\", "
          "\"add_prefix_space\": false, \"prepend_scheme\": \"always\"}"),
     "'add_prefix_space' is false, but 'prepend_scheme' is not 'never'"},
    {ERR_INPUT,
     SOME("pre_tokenizer",
          "{\"type\": \"Metaspace\", \"replacement\": \"__\"}"),
     "'replacement' is not one character"},
    {ERR_UNSUPPORTED, SOME("decoder", "{\"type\": \"WordPiece\"}"),
     "decoder: unknown type 'WordPiece'"},
    {ERR_UNSUPPORTED, SOME("post_processor", "{\"type\": \"BertProcessing\"}"),
     "post_processor: unknown type 'BertProcessing'"},
    {ERR_UNSUPPORTED, TEMPLATE(B, A ", " B, ""),
     "post_processor: single[0]: sequence 'B' in the template of a single "
     "text"},
    {ERR_UNSUPPORTED, TEMPLATE(A ", " A, A, ""),
     "post_processor: sequence 'A' 2 times in the template"},
    {ERR_UNSUPPORTED, TEMPLATE("", A, ""),
     "post_processor: sequence 'A' 0 times in the template"},
    {ERR_INPUT,
     TEMPLATE("{\"Sequence\": {\"id\": \"C\", \"type_id\": 0}}", A, ""),
     "post_processor: single[0]: sequence 'C' is neither A nor B"},
    {ERR_INPUT, TEMPLATE("\"$A\"", A, ""),
     "post_processor: single[0]: neither a SpecialToken nor a Sequence"},
    {ERR_INPUT,
     TEMPLATE("{\"SpecialToken\": {\"id\": \"S\", \"type_id\": 0}}, " A, A,
              "\"S\": {\"id\": \"S\", \"ids\": [-1], \"tokens\": []}"),
     "post_processor: special_tokens: 'S': an id is not a number"},
    {ERR_INPUT,
     TEMPLATE(A, A, "\"S\": {\"id\": \"S\", \"ids\": [0], \"tokens\": [1]}"),
     "post_processor: special_tokens: 'S': a token is not a string"},
    {ERR_INPUT, TEMPLATE(A, A, "\"S\": {\"id\": \"S\", \"ids\": [0]}"),
     "post_processor: special_tokens: 'S': no 'tokens'"},
    {ERR_INPUT, TEMPLATE("{\"Sequence\": {\"id\": \"A\"}}", A, ""),
     "post_processor: single[0]: 'type_id' is not a number"},
    {ERR_INPUT,
     TEMPLATE(A, "{\"Sequence\": {\"id\": \"A\", \"type_id\": 1.0}}", ""),
     "post_processor: pair[0]: 'type_id' is not a number"},
    {ERR_INPUT, TEMPLATE(A, A ", {}", ""),
     "post_processor: pair[1]: neither a SpecialToken nor a Sequence"},
    {ERR_INPUT,
     SOME("post_processor", "{\"type\": \"TemplateProcessing\", \"single\": [" A
                            "], \"special_tokens\": {}}"),
     "post_processor: no 'pair'"},
    {ERR_INPUT,
     SOME("post_processor", "{\"type\": \"ByteLevel\", \"add_prefix_space\": "
                            "true, \"trim_offsets\": 1}"),
     "post_processor: 'trim_offsets' is not true or false"},
    {ERR_INPUT, SOME("post_processor", "{\"type\": \"ByteLevel\"}"),
     "post_processor: no 'add_prefix_space'"},
    {ERR_INPUT,
     SOME("decoder", "{\"type\": \"ByteLevel\", \"add_prefix_space\": true}"),
     "decoder: no 'trim_offsets'"},
    {ERR_INPUT,
     SOME("pre_tokenizer",
          "{\"type\": \"ByteLevel\", \"add_prefix_space\": true}"),
     "pre_tokenizer: no 'trim_offsets'"},
    {ERR_INPUT,
     SOME("pre_tokenizer", "{\"type\": \"ByteLevel\", \"add_prefix_space\": "
                           "true, \"trim_offsets\": \"no\"}"),
     "pre_tokenizer: 'trim_offsets' is not true or false"},
    {ERR_INPUT,
     SOME("decoder", "{\"type\": \"ByteLevel\", \"add_prefix_space\": true, "
                     "\"trim_offsets\": true, \"use_regex\": null}"),
     "decoder: 'use_regex' is not true or false"},
    {ERR_INPUT, SOME("pre_tokenizer", "{\"type\": \"Digits\"}"),
     "pre_tokenizer: no 'individual_digits'"},
    {ERR_INPUT, SOME("truncation", "false"), "truncation: not an object"},
    {ERR_INPUT, SOME("padding", "[]"), "padding: not an object"},
    {ERR_INPUT, SOME("truncation", "{\"max_length\": 3, \"stride\": 0}"),
     "truncation: no 'strategy'"},
    {ERR_INPUT,
     SOME("truncation", "{\"max_length\": -3, \"stride\": 0, \"strategy\": "
                        "\"OnlyFirst\"}"),
     "truncation: 'max_length' is not what upstream takes"},
    {ERR_INPUT,
     SOME("truncation", "{\"max_length\": 3, \"stride\": 0, \"strategy\": "
                        "\"OnlyFirst\", \"direction\": null}"),
     "truncation: 'direction' is not what upstream takes"},
    {ERR_INPUT, SOME("padding", PADDING("\"Left\"", "0")),
     "padding: 'strategy' is not what upstream takes"},
    {ERR_INPUT, SOME("padding", PADDING("{\"Fixed\": -1}", "0")),
     "padding: 'strategy' is not what upstream takes"},
    {ERR_INPUT, SOME("padding", PADDING("{\"Fixed\": 9}", "4294967296")),
     "padding: 'pad_id' is not what upstream takes"},
    {ERR_INPUT, OF_MODEL("\"type\": null, " VOCAB ", \"merges\": []"),
     "model: type: line 1, column 38: is null"},
    {ERR_INPUT,
     OF_MODEL("\"type\": \"Unigram\", \"vocab\": [[\"a\", -1]], \"unk_id\": 0, "
              "\"byte_fallback\": null"),
     "model: 'byte_fallback' is null"},
    {ERR_INPUT, SOME("added_tokens", "null"), "added_tokens: not a list"},
    {ERR_INPUT,
     SOME("decoder", "{\"type\": \"Metaspace\", \"replacement\": \"_\", "
                     "\"prepend_scheme\": null}"),
     "decoder: 'prepend_scheme' is not a string"},
    {ERR_INPUT,
     OF_MODEL("\"type\": \"BPE\", " VOCAB ", \"merges\": [\"a b\", [\"a\", "
              "\"b\"]]"),
     "merges are strings or pairs, not both"},
    {ERR_INPUT,
     TEMPLATE("{\"SpecialToken\": {\"id\": \"S\", \"type_id\": 0}}", "", ""),
     "post_processor: single[0]: special_tokens: no 'S'"},
    {ERR_INPUT,
     SOME("added_tokens", "[{\"id\": 7, \"content\": \"<x>\", " FLAGS "}]"),
     "added_tokens: [0]: '<x>' has id 7 in the file, but upstream gives it 3"},
    {ERR_INPUT,
     SOME("added_tokens", "[{\"id\": 3, \"content\": \"ab\", " FLAGS "}]"),
     "'ab' has id 3 in the file, but upstream gives it 2"},
    {ERR_INPUT,
     SOME("added_tokens", "[{\"id\": 3, \"content\": \"\", " FLAGS "}]"),
     "added_tokens: [0]: 'content' is empty"},
    {ERR_INPUT, SOME("added_tokens", "[{\"id\": 3, \"content\": \"<x>\"}]"),
     "added_tokens: [0]: no 'single_word'"},
    {ERR_INPUT,
     SOME("added_tokens", "[{\"id\": 3, \"content\": \"x\", " FLAGS
                          "}, {\"id\": 4, \"content\": \"x\", " FLAGS "}]"),
     "added_tokens: [1]: 'x' has id 4 in the file, but upstream gives it 3"},
    {ERR_UNSUPPORTED, OF_MODEL("\"type\": \"WordPiece\", " VOCAB),
     "model: unknown type 'WordPiece'"},
    {ERR_UNSUPPORTED, OF_MODEL(VOCAB),
     "model: neither a 'type' nor 'merges' say which model it is"},
    {ERR_INPUT, OF_MODEL("\"type\": \"BPE\", \"merges\": []"),
     "model: no 'vocab'"},
    {ERR_INPUT, OF_MODEL("\"type\": \"BPE\", " VOCAB), "model: no 'merges'"},
    {ERR_INPUT, OF_MODEL("\"type\": \"Unigram\", " VOCAB),
     "model: 'vocab' is not what the type needs"},
    {ERR_INPUT, OF_MODEL("\"type\": \"Unigram\", \"vocab\": []"),
     "empty vocabulary"},
    {ERR_INPUT,
     OF_MODEL("\"type\": \"Unigram\", \"unk_id\": 3, \"vocab\": [[\"a\", 0]]"),
     "model: unk_id 3 is not in the vocabulary"},
    {ERR_UNSUPPORTED,
     OF_MODEL("\"type\": \"BPE\", \"dropout\": 0.1, " VOCAB ", \"merges\": []"),
     "model: dropout: line 1, column 56: a dropout of 0.1"},
    {ERR_INPUT,
     OF_MODEL(
         "\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"a\": 1}, \"merges\": []"),
     "model: vocab: ids 0 and 1 are one token"},
    {ERR_INPUT,
     OF_MODEL(
         "\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 0}, \"merges\": []"),
     "id 0 stands for two tokens"},
    {ERR_INPUT,
     OF_MODEL("\"type\": \"BPE\", \"vocab\": {\"a\": -1}, \"merges\": []"),
     "an id is not a small whole number"},
    {ERR_INPUT,
     OF_MODEL(
         "\"type\": \"BPE\", \"vocab\": {\"a\": 99999999}, \"merges\": []"),
     "id 99999999 is above the limit"},
    {ERR_INPUT,
     OF_MODEL("\"type\": \"BPE\", \"vocab\": {\"a\": \"0\"}, \"merges\": []"),
     "model: vocab: line 1, column 60: an id is not a number"},
    {ERR_INPUT,
     OF_MODEL("\"type\": \"BPE\", " VOCAB ", \"merges\": [\"a  b\"]"),
     "a merge has not exactly one space"},
    {ERR_INPUT, OF_MODEL("\"type\": \"BPE\", " VOCAB ", \"merges\": [\"ab\"]"),
     "a merge has not exactly one space"},
    {ERR_INPUT, OF_MODEL("\"type\": \"BPE\", " VOCAB ", \"merges\": [[\"a\"]]"),
     "a merge is not two strings"},
    {ERR_INPUT,
     OF_MODEL("\"type\": \"BPE\", " VOCAB ", \"merges\": [[\"a\", \"c\"]]"),
     "model: merges: item 0: 'c' is not in the vocabulary"},
    {ERR_INPUT,
     OF_MODEL("\"type\": \"BPE\", " VOCAB ", \"merges\": [[\"b\", \"a\"]]"),
     "model: merges: item 0: 'ba' is not in the vocabulary"},
    {ERR_UNSUPPORTED,
     OF_MODEL("\"type\": \"BPE\", \"continuing_subword_prefix\": "
              "\"\xe2\x96\x81\", " VOCAB ", \"merges\": []"),
     "model: a continuing_subword_prefix outside ASCII"},
    {ERR_INPUT,
     OF_MODEL("\"type\": \"BPE\", \"byte_fallback\": 1, " VOCAB
              ", \"merges\": []"),
     "not true or false"},
    {ERR_INPUT,
     "{\"version\": \"1.0\", \"model\": {\"type\": \"BPE\", \"type\": "
     "\"BPE\"}}",
     "model: line 1, column 45: duplicate key 'type'"},
};

static void test_refusals(void)
{
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct err err = ERR_INIT;
        struct tokenizer *t = open_text(bad[i].text, strlen(bad[i].text), &err);

        if (!ok(!t && err.code == bad[i].code &&
                    strstr(err.text, bad[i].says) &&
                    strstr(err.text, "tokenizer.json") &&
                    !strchr(err.text, '\n'),
                "refused: %s", bad[i].says))
            diag("%d: %s", err.code, err.text);
        tokenizer_free(t);
    }
}

#define ONLY_FIRST \
    "{\"max_length\": 3, \"stride\": 0, \"strategy\": \"OnlyFirst\"}"
#define BATCH_LONGEST PADDING("\"BatchLongest\"", "0")

static const char sound[] =
    "{\"version\": \"1.0\", \"truncation\": " ONLY_FIRST
    ", \"padding\": " BATCH_LONGEST
    ", \"added_tokens\": [{\"id\": 3, \"content\": \"<x>\", " FLAGS "}], "
    "\"normalizer\": {\"type\": \"NFC\"}, \"pre_tokenizer\": {\"type\": "
    "\"Split\", "
    "\"pattern\": {\"Regex\": \"\\\\s\"}, \"behavior\": \"Isolated\", "
    "\"invert\": false}, \"post_processor\": null, \"decoder\": {\"type\": "
    "\"Fuse\"}, "
    "\"extra\": 1, " MODEL "}";

static void test_every_cut(void)
{
    int wrong = 0;

    for (size_t n = 0; n < sizeof(sound) - 1; n++) {
        struct err err = ERR_INIT;
        struct tokenizer *t = open_text(sound, n, &err);

        if (t || err.code != ERR_INPUT)
            wrong++;
        tokenizer_free(t);
    }
    is_int(wrong, 0, "a file cut at any byte is refused");
}

static void test_questions(void)
{
    struct err err = ERR_INIT;
    struct tokenizer *t = open_text(sound, sizeof(sound) - 1, &err);
    struct token_ids ids;
    size_t len;

    if (!ok(t != NULL, "a sound file opens"))
        diag("%s", err.text);
    is_str(tokenizer_warning(t, 0), "'truncation' does not apply here",
           "truncation is told");
    is_str(tokenizer_warning(t, 1), "'padding' does not apply here",
           "so is padding");
    is_str(tokenizer_warning(t, 2), "unknown key 'extra'", "so is another key");
    ok(!tokenizer_warning(t, 3), "and that is all");
    is_int(tokenizer_id(t, "ab"), 2, "a token's id");
    is_int(tokenizer_id(t, "<x>"), 3, "an added token's id");
    is_int(tokenizer_id(t, "zz"), -1, "no token's id");
    is_str(tokenizer_piece(t, 2, &len), "ab", "how an id is spelled");
    is_str(tokenizer_piece(t, 3, &len), "<x>", "an added one");
    ok(!tokenizer_piece(t, 4, &len) && !tokenizer_piece(t, -1, &len),
       "no such");
    is_int((int64_t)tokenizer_size(t), 4, "one more than the highest id");
    token_ids_init(&ids);
    ids.want_places = true;
    tokenizer_encode(t, "ab<x>a", 6, false, &ids, &err);
    ok(ids.count == 3 && ids.starts[1] == 2 && ids.ends[1] == 5 &&
           ids.starts[2] == 5 && ids.ends[2] == 6,
       "tokens know their bytes");
    is_int(tokenizer_encode(t, "a\xff", 2, false, &ids, &err), -1,
           "text that is not UTF-8 is refused");
    is_str(err.text, "text is not UTF-8 at byte 1", "with the place");
    token_ids_release(&ids);
    tokenizer_free(t);
}

static struct buf times(const char *text, size_t n)
{
    struct buf b = BUF_INIT;

    for (size_t i = 0; i < n; i++)
        buf_addstr(&b, text);
    return b;
}

/* What a hostile file would make of n times `letters`. */
static void is_bounded(const char *parts, const char *letters, size_t n,
                       enum err_code code, const char *says, const char *name)
{
    struct buf file = BUF_INIT, text = times(letters, n);
    struct err err = ERR_INIT;
    struct token_ids ids;

    buf_addf(&file, "{\"version\": \"1.0\", %s}", parts);
    struct tokenizer *t = open_text(file.data, file.len, &err);
    token_ids_init(&ids);
    if (t)
        tokenizer_encode(t, text.data, text.len, false, &ids, &err);
    if (!ok(err.code == code && strstr(err.text, says), "%s", name))
        diag("%d: %s", err.code, err.text);
    token_ids_release(&ids);
    tokenizer_free(t);
    buf_release(&file);
    buf_release(&text);
}

#define GROW                                                     \
    "{\"type\": \"Replace\", \"pattern\": {\"String\": \"a\"}, " \
    "\"content\": \"aa\"}"
#define WIDE                                                 \
    "{\"type\": \"ByteLevel\", \"add_prefix_space\": true, " \
    "\"trim_offsets\": true, \"use_regex\": false}"

static void test_budgets(void)
{
    struct buf grow = times(GROW ", ", 40),
               nfc = times("{\"type\": \"NFC\"}, ", 64),
               wide = times(WIDE ", ", 11), deep = times("a", 2000),
               text = BUF_INIT;

    buf_addf(&text,
             "\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": "
             "[%s{\"type\": \"NFC\"}]}, " MODEL,
             grow.data);
    is_bounded(text.data, "a", 100, ERR_INPUT, "text grows past",
               "a text that each of 40 steps doubles");
    buf_clear(&text);
    buf_addf(&text,
             "\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": "
             "[%s{\"type\": \"NFC\"}]}, " MODEL,
             nfc.data);
    is_bounded(text.data, "a", 1, ERR_UNSUPPORTED, "more than 64 steps",
               "a chain of 65 steps");
    buf_clear(&text);
    buf_addf(
        &text,
        "\"pre_tokenizer\": {\"type\": \"Sequence\", "
        "\"pretokenizers\": [{\"type\": \"Split\", \"pattern\": {\"Regex\": "
        "\".\"}, \"behavior\": \"Isolated\", \"invert\": false}, %s" WIDE
        "]}, " MODEL,
        wide.data);
    is_bounded(text.data, "a", 20000, ERR_INPUT, "text grows past",
               "many pieces that each grow within their own bound");
    buf_clear(&text);
    buf_addf(&text,
             "\"model\": {\"type\": \"Unigram\", \"unk_id\": 0, \"vocab\": "
             "[[\"a\", -1], [\"%s\", -1]]}",
             deep.data);
    is_bounded(text.data, "a", 100000, ERR_INPUT, "takes more than",
               "a Unigram vocabulary that makes every place a long walk");
    buf_clear(&text);
    deep.len = 1000;
    deep.data[1000] = '\0';
    buf_addf(&text,
             "\"added_tokens\": [{\"id\": 3, \"content\": \"%s\", " FLAGS
             "}], " MODEL,
             deep.data);
    is_bounded(text.data, "aaaaaaaaab", 1, 0, "", "a long added token");
    buf_clear(&text);
    buf_addf(
        &text,
        "\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": "
        "{\"Regex\": \"(a|aa)+$\"}, \"behavior\": \"Isolated\", \"invert\": "
        "false}, " MODEL);
    buf_addstr(&deep, "b");
    is_bounded(text.data, deep.data, 1, ERR_UNSUPPORTED, "gives up",
               "an expression that goes back and back");
    buf_release(&grow);
    buf_release(&nfc);
    buf_release(&wide);
    buf_release(&deep);
    buf_release(&text);
}

/* Steps of merging one piece of n letters. */
static uint64_t operations(const struct tokenizer *t, size_t n)
{
    struct model_work work = {0};
    struct err err = ERR_INIT;
    char *text = xmalloc(n);

    for (size_t i = 0; i < n; i++)
        text[i] = i % 3 ? 'a' : 'b';
    model_encode(t->model, &work, text, n, &err);
    uint64_t count = work.operations;
    model_work_release(&work);
    free(text);
    return count;
}

static void test_long_piece(void)
{
    static const char doubling[] = OF_MODEL(
        "\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"aa\": 2, \"ab\": "
        "3, \"baa\": 4, \"baabaa\": 5}, \"merges\": [\"a a\", \"b aa\", \"baa "
        "baa\", \"a b\"]");
    struct err err = ERR_INIT;
    struct tokenizer *t = open_text(doubling, sizeof(doubling) - 1, &err);

    uint64_t small = operations(t, 1000), large = operations(t, 100000);
    ok(small > 0 && large < small * 100 * 3,
       "a piece of 100 KB takes n log n steps: %llu against %llu for 1 KB",
       (unsigned long long)large, (unsigned long long)small);
    tokenizer_free(t);
}

struct job {
    const struct tokenizer *t;
    int wrong;
};

static void *encode_often(void *arg)
{
    struct job *job = arg;
    struct token_ids ids;

    token_ids_init(&ids);
    for (int i = 0; i < 2000; i++) {
        struct err err = ERR_INIT;

        if (tokenizer_encode(job->t, "ab e\xcc\x81<x>ba", 11, false, &ids,
                             &err) ||
            ids.count != 4 || ids.ids[0] != 2 || ids.ids[1] != 3)
            job->wrong++;
    }
    token_ids_release(&ids);
    return NULL;
}

static void test_threads(void)
{
    struct err err = ERR_INIT;
    struct tokenizer *t = open_text(sound, sizeof(sound) - 1, &err);
    struct job jobs[4];
    pthread_t threads[4];
    int wrong = 0;

    for (int i = 0; i < 4; i++) {
        jobs[i] = (struct job){t, 0};
        pthread_create(&threads[i], NULL, encode_often, &jobs[i]);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        wrong += jobs[i].wrong;
    }
    is_int(wrong, 0, "four threads share one tokenizer");
    tokenizer_free(t);
}

#define CONFIG                                                     \
    "{\"added_tokens_decoder\": {\"300\": {\"content\": \"[E]\", " \
    "\"special\": true}}}"

/* 256 bytes as ranks, then "ab" and what the caller adds. */
static void put_ranks(const char *more)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    struct buf text = BUF_INIT;

    for (int i = 0; i < 256; i++)
        buf_addf(&text, "%c%c== %d\n", digits[i >> 2], digits[(i & 3) << 4], i);
    buf_addstr(&text, "YWI= 256\n"); /* ab */
    buf_addstr(&text, more);
    put_file("tiktoken.model", text.data, text.len);
    buf_release(&text);
}

static void test_tiktoken(void)
{
    static const struct {
        const char *more, *config, *says;
    } rows[] = {
        {"YWJj\n", CONFIG,
         "tiktoken.model: line 258: no space before the rank"},
        {"YW!j 257\n", CONFIG, "line 258: not base64"},
        {"YWJ 257\n", CONFIG, "line 258: not base64"},
        {"YW\tJi 257\n", CONFIG, "line 258: not base64"},
        {"YWJj x\n", CONFIG, "line 258: not a rank"},
        {"YWJj 256\n", CONFIG, "line 258: id 256 stands for two tokens"},
        {"YWI= 257\n", CONFIG, "ids 256 and 257 are one token"},
        {"", "{}",
         "tokenizer_config.json: added_tokens_decoder: no "
         "'added_tokens_decoder'"},
        {"", "{\"added_tokens_decoder\": {\"x\": {\"content\": \"a\"}}}",
         "'x' is not an id"},
        {"", "{\"added_tokens_decoder\": {\"7\": {\"content\": \"a\"}}}",
         "'7' is the rank of another token"},
        {"", "{\"added_tokens_decoder\": {\"300\": {}}}", "no 'content'"},
    };
    struct err err = ERR_INIT;
    struct token_ids ids;
    struct buf text = BUF_INIT;
    char *json = path_join(folder, "tokenizer.json");

    unlink(json);
    free(json);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        err_clear(&err);
        put_ranks(rows[i].more);
        put_file("tokenizer_config.json", rows[i].config,
                 strlen(rows[i].config));
        struct tokenizer *t = tokenizer_open(folder, NULL, &err);
        if (!ok(!t && err.code == ERR_INPUT && strstr(err.text, rows[i].says),
                "refused: %s", rows[i].says))
            diag("%s", err.text);
        tokenizer_free(t);
    }
    err_clear(&err);
    put_ranks("");
    put_file("tokenizer_config.json", CONFIG, strlen(CONFIG));
    struct tokenizer *t = tokenizer_open(folder, NULL, &err);
    if (!ok(t != NULL, "a folder with tiktoken.model opens"))
        diag("%s", err.text);
    token_ids_init(&ids);
    tokenizer_encode(t, "ab[E]\xc3\xa9", 7, false, &ids, &err);
    ok(ids.count == 4 && ids.ids[0] == 256 && ids.ids[1] == 300 &&
           ids.ids[2] == 0xc3 && ids.ids[3] == 0xa9,
       "ranks are ids, special tokens are found");
    tokenizer_decode(t, ids.ids, ids.count, true, &text, &err);
    is_str(text.data, "ab\xc3\xa9", "and back, without the special one");

    /* Upstream's class reserves 256 ids behind the ranks (tiktoken 0.14 with
     * its special_tokens). */
    tokenizer_encode(t, "<|reserved_token_257|>b<|reserved_token_300|>", 45,
                     false, &ids, &err);
    ok(ids.count > 3 && ids.ids[0] == 257 && ids.ids[1] == 'b' &&
           ids.ids[2] == '<',
       "a reserved id has a name, but for one that has its own");
    is_int(tokenizer_id(t, "<|reserved_token_512|>"), 512, "256 of them");
    is_int(tokenizer_id(t, "<|reserved_token_513|>"), -1, "and no more");

    /* Runs of more than 25,000 are cut: 'ab' across the cut is not joined. */
    struct buf run = BUF_INIT;
    for (int i = 0; i < 24999; i++)
        buf_addch(&run, 'x');
    buf_addstr(&run, "ab");
    tokenizer_encode(t, run.data, run.len, false, &ids, &err);
    is_int((int64_t)ids.count, 25001, "a run is cut after 25,000 characters");
    buf_release(&run);
    buf_release(&text);
    token_ids_release(&ids);
    tokenizer_free(t);
}

/* Two added tokens that Lowercase makes alike: tokenizers 0.22.2 finds the
 * special one, 0.23.3 now this one, now that one. */
static void test_alike_when_normalized(void)
{
    static const char alike[] =
        "{\"version\": \"1.0\", \"added_tokens\": [{\"id\": 3, \"content\": "
        "\"AB\", "
        "\"single_word\": false, \"lstrip\": false, \"rstrip\": false, "
        "\"normalized\": true, \"special\": false}, {\"id\": 4, \"content\": "
        "\"Ab\", "
        "\"single_word\": false, \"lstrip\": false, \"rstrip\": false, "
        "\"normalized\": true, \"special\": true}], \"normalizer\": {\"type\": "
        "\"Lowercase\"}, " MODEL "}";
    struct tokenizer_options options = {.transformers = "5.5.0"};
    struct err err = ERR_INIT;
    struct token_ids ids;

    token_ids_init(&ids);
    put_file("tokenizer.json", alike, sizeof(alike) - 1);
    struct tokenizer *t = tokenizer_open(folder, &options, &err);
    ok(t && tokenizer_encode(t, "aB", 2, false, &ids, &err) == 0 &&
           ids.count == 1 && ids.ids[0] == 4,
       "added tokens that are alike when normalized: the special one");
    tokenizer_free(t);
    options.transformers = "5.24.0";
    t = tokenizer_open(folder, &options, &err);
    ok(!t && err.code == ERR_UNSUPPORTED, "or a refusal, where chance decides");
    ok(strstr(err.text, "is like another when normalized") != NULL, "%s",
       err.text);
    tokenizer_free(t);
    token_ids_release(&ids);
}

/* A Qwen3.5-like file whose class splits marks off letters. */
static void test_class(void)
{
    static const char marks[] =
        "{\"version\": \"1.0\", \"normalizer\": {\"type\": \"NFC\"}, "
        "\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": "
        "[{\"type\": \"Split\", \"pattern\": {\"Regex\": "
        "\"[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?[\\\\p{L}\\\\p{M}]+|.\"}, "
        "\"behavior\": \"Isolated\", \"invert\": false}, {\"type\": "
        "\"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": false, "
        "\"use_regex\": false}]}, \"decoder\": " WIDE ", \"model\": {\"type\": "
        "\"BPE\", \"vocab\": {\"a\": 0, \"\xc3\x8c\": 1, \"\xc4\xbb\": 2, "
        "\"\xc3\x8c\xc4\xbb\": 3, \"a\xc3\x8c\xc4\xbb\": 4}, \"merges\": "
        "[\"\xc3\x8c \xc4\xbb\", \"a \xc3\x8c\xc4\xbb\"]}}";
    static const char text[] = "a\xcc\x99"; /* U+0319 */
    static const char qwen2[] = "{\"tokenizer_class\": \"Qwen2Tokenizer\"}";
    static const char plain[] =
        "{\"tokenizer_class\": \"PreTrainedTokenizerFast\", "
        "\"model_max_length\": 1000000000000000019884624838656}";
    static const char other[] = "{\"tokenizer_class\": \"T5TokenizerFast\"}";
    static const char nobody[] = "{\"tokenizer_class\": \"NobodysTokenizer\"}";
    struct tokenizer_options options = {.rule = TOKENIZER_UNSAID};
    struct err err = ERR_INIT;
    struct token_ids ids;
    struct tokenizer *t;

    token_ids_init(&ids);
    put_file("tokenizer.json", marks, sizeof(marks) - 1);
    put_file("tokenizer_config.json", qwen2, sizeof(qwen2) - 1);
    t = tokenizer_open(folder, &options, &err);
    if (!ok(t != NULL, "a pack of class Qwen2Tokenizer opens"))
        diag("%s", err.text);
    is_int(tokenizer_encode(t, "a", 1, false, &ids, &err), 0,
           "text that both read alike is encoded");
    is_int(tokenizer_encode(t, text, 3, false, &ids, &err), -1,
           "text that they read otherwise is refused");
    ok(err.code == ERR_UNSUPPORTED, "as unsupported");
    is_str(err.text,
           "tokenizer.json gives 1 ids, tokenizer_class 'Qwen2Tokenizer' gives "
           "2; first difference at token 0: 4 against 0; the protocol must say "
           "'tokenizer': 'file' or 'class'",
           "with both");
    tokenizer_free(t);
    for (int rule = TOKENIZER_FILE; rule <= TOKENIZER_CLASS; rule++) {
        err_clear(&err);
        options.rule = (enum tokenizer_rule)rule;
        t = tokenizer_open(folder, &options, &err);
        tokenizer_encode(t, text, 3, false, &ids, &err);
        is_int((int64_t)ids.count, rule == TOKENIZER_FILE ? 1 : 2,
               rule == TOKENIZER_FILE ? "said 'file'" : "said 'class'");
        tokenizer_free(t);
    }
    put_file("tokenizer_config.json", plain, sizeof(plain) - 1);
    t = tokenizer_open(folder, &options, &err);
    tokenizer_encode(t, text, 3, false, &ids, &err);
    is_int((int64_t)ids.count, 1, "PreTrainedTokenizerFast takes the file");
    tokenizer_free(t);
    put_file("tokenizer_config.json", other, sizeof(other) - 1);
    t = tokenizer_open(folder, &options, &err);
    ok(!t && err.code == ERR_UNSUPPORTED && strstr(err.text, "'T5Tokenizer'"),
       "a class that we do not build cannot be followed: %s", err.text);
    err_clear(&err);
    options.rule = TOKENIZER_UNSAID;
    t = tokenizer_open(folder, &options, &err);
    ok(t && tokenizer_warning(t, 0) &&
           strstr(tokenizer_warning(t, 0), "T5Tokenizer"),
       "unsaid, the file is taken with a warning");
    tokenizer_free(t);
    put_file("tokenizer_config.json", nobody, sizeof(nobody) - 1);
    options.rule = TOKENIZER_CLASS;
    t = tokenizer_open(folder, &options, &err);
    tokenizer_encode(t, text, 3, false, &ids, &err);
    ok(t && ids.count == 1 && !tokenizer_warning(t, 0),
       "a class that upstream does not know takes the file: %s", err.text);
    tokenizer_free(t);
    is_int(tokenizer_rule_parse("fast", &options.rule, &err), -1,
           "another word for the rule is refused");
    token_ids_release(&ids);
}

int main(void)
{
    struct err err = ERR_INIT;

    if (!mkdtemp(folder))
        return 1;
    test_refusals();
    test_every_cut();
    test_questions();
    test_budgets();
    test_long_piece();
    test_threads();
    test_tiktoken();
    test_alike_when_normalized();
    test_class();
    ok(!tokenizer_open("/nonexistent/tokenizer.json", NULL, &err) &&
           err.code == ERR_INPUT,
       "a missing file: %s", err.text);
    err_clear(&err);
    io_remove_tree(folder, &err);
    return done();
}
