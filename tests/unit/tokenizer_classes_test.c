/*
 * What upstream's AutoTokenizer made of small packs: with transformers 5.5.0
 * (tokenizers 0.22.2) and 5.24.0 (0.23.3).  tests/oracle/tokenizer_classes.py
 * recorded them in fixtures/tokenizer/classes.jsonl.
 */
#include "base/path.h"
#include "jsonl.h"
#include "tokenizer/tokenizer.h"

#include <stdlib.h>
#include <unistd.h>

static char folder[] = "/tmp/assay-classes-XXXXXX";
static const char *const names[] = {"tokenizer.json", "tokenizer_config.json",
                                    "config.json", "special_tokens_map.json",
                                    "added_tokens.json"};
enum { NAMES = sizeof(names) / sizeof(names[0]) };

static bool put_tree(const char *path, const json_t *tree, int blanks)
{
    struct err err = ERR_INIT;
    struct buf text = BUF_INIT;
    char *dumped = json_dumps(tree, JSON_COMPACT);

    buf_addf(&text, "%*s%s", blanks, "", dumped);
    bool good = io_write_file(path, text.data, text.len, &err) == 0;
    buf_release(&text);
    free(dumped);
    return good;
}

/* NULL files: empties the folder. */
static bool put_files(const json_t *files)
{
    bool good = true;

    for (int i = 0; i < NAMES; i++) {
        const json_t *tree = json_object_get(files, names[i]);
        char *path = path_join(folder, names[i]);

        unlink(path);
        if (tree)
            good = put_tree(path, tree, 0) && good;
        free(path);
    }
    return good;
}

/* Puts tokenizer.json anew, without decoder, and with blanks before it that
 * leave the name of its byte level across the end of the first 64 KiB; false
 * when it has none. */
static bool put_far(const json_t *files)
{
    enum { END = 64 << 10 };
    json_t *tree = json_copy(json_object_get(files, names[0]));
    char *path = path_join(folder, names[0]);

    json_object_set_new(tree, "decoder", json_null());
    char *text = json_dumps(tree, JSON_COMPACT);
    const char *name = strstr(text, "\"ByteLevel\"");

    bool is_put = name && unlink(path) == 0 &&
                  put_tree(path, tree, END - (int)(name - text) - 5);
    free(text);
    free(path);
    json_decref(tree);
    return is_put;
}

static bool is_encoded(const struct tokenizer *t, const json_t *text,
                       const json_t *want, bool add_special, bool may_refuse)
{
    struct err err = ERR_INIT;
    struct token_ids ids;

    token_ids_init(&ids);
    int failed =
        tokenizer_encode(t, json_string_value(text), json_string_length(text),
                         add_special, &ids, &err);
    bool good = failed ? may_refuse && err.code == ERR_UNSUPPORTED
                       : ids.count == json_array_size(want);
    for (size_t i = 0; good && !failed && i < ids.count; i++)
        good = ids.ids[i] == json_integer_value(json_array_get(want, i));
    if (!good)
        diag("%s: %s", json_string_value(text), err.text);
    token_ids_release(&ids);
    return good;
}

static bool is_decoded(const struct tokenizer *t, const json_t *list,
                       const json_t *want)
{
    struct err err = ERR_INIT;
    struct buf got = BUF_INIT;
    int64_t ids[64];
    size_t n = json_array_size(list);

    for (size_t i = 0; i < n && i < 64; i++)
        ids[i] = json_integer_value(json_array_get(list, i));
    bool good = n <= 64 &&
                tokenizer_decode(t, ids, n, false, &got, &err) == 0 &&
                got.len == json_string_length(want) &&
                (got.len == 0 ||
                 memcmp(got.data, json_string_value(want), got.len) == 0);
    if (!good)
        diag("wanted '%s', got '%s' %s", json_string_value(want),
             got.data ? got.data : "", err.text);
    buf_release(&got);
    return good;
}

/* The pack in the folder; says why not. */
static struct tokenizer *open_pack(const char *version,
                                   enum tokenizer_rule rule)
{
    const struct tokenizer_options options = {.rule = rule,
                                              .transformers = version};
    struct err err = ERR_INIT;
    struct tokenizer *t = tokenizer_open(folder, &options, &err);

    if (!t)
        diag("%s", err.text);
    return t;
}

static bool has_ids(const struct tokenizer *t, const json_t *line,
                    const char *version, bool may_refuse)
{
    const json_t *texts = json_object_get(line, "texts");
    const json_t *ids = json_object_get(json_object_get(line, version), "ids");
    bool good = t != NULL;

    for (size_t i = 0; t && i < json_array_size(texts); i++)
        good = is_encoded(t, json_array_get(texts, i), json_array_get(ids, i),
                          false, may_refuse) &&
               good;
    return good;
}

/* Asked for the class: upstream's. */
static bool check_class(const json_t *line, const char *version)
{
    const json_t *want = json_object_get(line, version);
    const json_t *lists = json_object_get(line, "lists");
    struct tokenizer *t = open_pack(version, TOKENIZER_CLASS);
    bool good = has_ids(t, line, version, false);

    if (t)
        good = is_encoded(t, json_array_get(json_object_get(line, "texts"), 0),
                          json_object_get(want, "special"), true, false) &&
               good;
    for (size_t i = 0; t && i < json_array_size(lists); i++)
        good = is_decoded(t, json_array_get(lists, i),
                          json_array_get(json_object_get(want, "decode"), i)) &&
               good;
    tokenizer_free(t);
    return good;
}

/* The ids alone; where nothing was asked they may be refused. */
static bool check_ids(const json_t *line, const char *version,
                      enum tokenizer_rule rule)
{
    struct tokenizer *t = open_pack(version, rule);
    bool good = has_ids(t, line, version, rule == TOKENIZER_UNSAID);

    tokenizer_free(t);
    return good;
}

static int far;

static void check_pack(const json_t *line)
{
    static const char *const versions[] = {"5.5.0", "5.24.0"};
    const json_t *files = json_object_get(line, "files");

    for (int i = 0; i < 2; i++) {
        if (!json_object_get(line, versions[i]))
            continue; /* upstream refused it */
        put_files(files);
        bool good = check_class(line, versions[i]);
        good = check_ids(line, versions[i], TOKENIZER_UNSAID) && good;
        if (put_far(files)) {
            good = check_ids(line, versions[i], TOKENIZER_CLASS) && good;
            far++;
        }
        ok(good, "pack %s as transformers %s makes it",
           json_string_value(json_object_get(line, "name")), versions[i]);
    }
}

int main(void)
{
    if (!mkdtemp(folder))
        return 1;
    each_line("fixtures/tokenizer/classes.jsonl", check_pack);
    ok(far > 20, "%d of them the same where the text lies far into the file",
       far);
    put_files(NULL);
    rmdir(folder);
    return done();
}
