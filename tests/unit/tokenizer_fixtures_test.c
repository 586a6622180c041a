/*
 * Small tokenizers against what upstream's library made of them: one rule each,
 * and random ones.  fixtures/tokenizer/make.py recorded them with tokenizers
 * 0.22.2.
 */
#include "jsonl.h"
#include "tokenizer/tokenizer.h"

#include <unistd.h>

static char path[] = "/tmp/assay-tokenizer-XXXXXX";

static void show(const char *what, const json_t *want)
{
    char *text = json_dumps(want, JSON_COMPACT | JSON_ENCODE_ANY);

    diag("%s: wanted %.300s", what, text);
    free(text);
}

static bool check_encode(const struct tokenizer *t, const json_t *row,
                         bool add_special)
{
    const json_t *text = json_array_get(row, 0), *want = json_array_get(row, 1);
    struct err err = ERR_INIT;
    struct token_ids got;
    size_t len = json_string_length(text);

    token_ids_init(&got);
    got.want_places = true;
    bool good = tokenizer_encode(t, json_string_value(text), len, add_special,
                                 &got, &err) == 0 &&
                got.count == json_array_size(want);
    for (size_t i = 0; good && i < got.count; i++)
        good = got.ids[i] == json_integer_value(json_array_get(want, i)) &&
               got.starts[i] <= got.ends[i] && got.ends[i] <= len;
    if (!good)
        show(err.text, row);
    token_ids_release(&got);
    return good;
}

static bool check_decode(const struct tokenizer *t, const json_t *row)
{
    const json_t *list = json_array_get(row, 0), *want = json_array_get(row, 2);
    struct err err = ERR_INIT;
    struct buf got = BUF_INIT;
    int64_t ids[64];
    size_t n = json_array_size(list);

    for (size_t i = 0; i < n && i < 64; i++)
        ids[i] = json_integer_value(json_array_get(list, i));
    bool good =
        tokenizer_decode(t, ids, n, json_is_true(json_array_get(row, 1)), &got,
                         &err) == 0 &&
        got.len == json_string_length(want) &&
        (got.len == 0 ||
         memcmp(got.data, json_string_value(want), got.len) == 0);
    if (!good)
        show(err.text, row);
    buf_release(&got);
    return good;
}

static bool check_rows(const struct tokenizer *t, const json_t *line)
{
    const json_t *texts = json_object_get(line, "texts");
    const json_t *special = json_object_get(line, "special");
    const json_t *decode = json_object_get(line, "decode");
    bool good = json_array_size(texts) > 0;

    for (size_t i = 0; i < json_array_size(texts); i++)
        good = check_encode(t, json_array_get(texts, i), false) && good;
    for (size_t i = 0; i < json_array_size(special); i++)
        good = check_encode(t, json_array_get(special, i), true) && good;
    for (size_t i = 0; i < json_array_size(decode); i++)
        good = check_decode(t, json_array_get(decode, i)) && good;
    return good;
}

static void check_line(const json_t *line)
{
    struct err err = ERR_INIT;
    char *text = json_dumps(json_object_get(line, "tokenizer"), JSON_COMPACT);
    struct tokenizer *t;
    bool good = false;

    unlink(path);
    if (io_write_file(path, text, strlen(text), &err) == 0) {
        t = tokenizer_open(path, NULL, &err);
        good = t && check_rows(t, line);
        tokenizer_free(t);
    }
    free(text);
    if (!ok(good, "%s", json_string_value(json_object_get(line, "name"))))
        diag("%s", err.text);
}

int main(void)
{
    int fd = mkstemp(path);

    close(fd);
    each_line("fixtures/tokenizer/rules.jsonl", check_line);
    each_line("fixtures/tokenizer/random.jsonl", check_line);
    each_line("fixtures/tokenizer/whole.jsonl", check_line);
    unlink(path);
    return done();
}
