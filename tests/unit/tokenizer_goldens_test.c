/*
 * Every golden text of ../shared/data/goldens/tokenizers (recorded with
 * tokenizers 0.23.3, which gives what 0.22.2 gives): ids and decoded texts.
 */
#include "archive/zstd_file.h"
#include "base/io.h"
#include "base/mem.h"
#include "tap.h"
#include "tokenizer/tokenizer.h"
#include "json/json.h"

#include <unistd.h>

static const char root[] = "../shared/data";
enum { CAP = 1 << 28, SHOWN = 5 };

static int64_t *read_ids(const json_t *list, size_t *n)
{
    int64_t *ids = xcalloc(json_array_size(list), sizeof(*ids));

    *n = json_array_size(list);
    for (size_t i = 0; i < *n; i++)
        ids[i] = json_integer_value(json_array_get(list, i));
    return ids;
}

static bool encodes_to(const struct tokenizer *t, const json_t *text,
                       const json_t *want, bool add_special)
{
    struct err err = ERR_INIT;
    struct token_ids got;
    size_t n;
    int64_t *ids = read_ids(want, &n);

    token_ids_init(&got);
    int ret =
        tokenizer_encode(t, json_string_value(text), json_string_length(text),
                         add_special, &got, &err);
    bool is_same = ret == 0 && got.count == n &&
                   (n == 0 || memcmp(got.ids, ids, n * sizeof(*ids)) == 0);
    if (ret)
        diag("%s", err.text);
    free(ids);
    token_ids_release(&got);
    return is_same;
}

static bool decodes_to(const struct tokenizer *t, const json_t *list,
                       const json_t *want, bool skip_special)
{
    struct err err = ERR_INIT;
    struct buf got = BUF_INIT;
    size_t n;
    int64_t *ids = read_ids(list, &n);
    int ret = tokenizer_decode(t, ids, n, skip_special, &got, &err);
    bool is_same = ret == 0 && got.len == json_string_length(want) &&
                   (got.len == 0 ||
                    memcmp(got.data, json_string_value(want), got.len) == 0);

    if (ret)
        diag("%s", err.text);
    free(ids);
    buf_release(&got);
    return is_same;
}

static bool check_row(const struct tokenizer *t, const json_t *row,
                      bool is_decode)
{
    const json_t *text = json_object_get(row, "text");
    const json_t *ids = json_object_get(row, "ids");

    if (is_decode) {
        const json_t *skip = json_object_get(row, "text_skip");

        return decodes_to(t, ids, text, false) &&
               decodes_to(t, ids, skip ? skip : text, true);
    }
    const json_t *special = json_object_get(row, "ids_special");
    return encodes_to(t, text, ids, false) &&
           encodes_to(t, text, special ? special : ids, true);
}

static void check_file(const struct tokenizer *t, const char *name,
                       const char *suffix)
{
    struct err err = ERR_INIT;
    struct buf text = BUF_INIT;
    char *path = xasprintf("%s/goldens/tokenizers/%s%s", root, name, suffix);
    int rows = 0, wrong = 0;

    if (!ok(zstd_read_file(path, CAP, &text, &err) == 0, "%s%s is readable",
            name, suffix))
        diag("%s", err.text);
    for (size_t at = 0; at < text.len;) {
        const char *line = text.data + at;
        const char *end = memchr(line, '\n', text.len - at);
        size_t len = end ? (size_t)(end - line) : text.len - at;
        json_t *row = json_parse(line, len, &err);

        at += len + 1;
        rows++;
        if (!row || !check_row(t, row, strstr(suffix, "decode") != NULL)) {
            if (wrong++ < SHOWN)
                diag("row %d differs: %.*s", rows, (int)(len < 300 ? len : 300),
                     line);
        }
        json_decref(row);
    }
    ok(rows > 0 && wrong == 0, "%s%s: %d of %d rows equal", name, suffix,
       rows - wrong, rows);
    buf_release(&text);
    free(path);
}

int main(void)
{
    static const char *const names[] = {"qwen3", "qwen3_5", "deepseek_v3",
                                        "gptoss"};

    if (!io_is_dir(root))
        skip_all("../shared/data is not here");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct err err = ERR_INIT;
        struct buf json = BUF_INIT;
        char *path =
            xasprintf("%s/tokenizers/%s/tokenizer.json.zst", root, names[i]);
        char name[] = "/tmp/assay-tokenizer-XXXXXX";
        int fd = mkstemp(name);

        ok(zstd_read_file(path, CAP, &json, &err) == 0 &&
               io_write(fd, name, json.data, json.len, &err) == 0,
           "%s: the tokenizer is there", names[i]);
        close(fd);
        buf_release(&json);
        struct tokenizer *t = tokenizer_open(name, NULL, &err);
        unlink(name);
        free(path);
        if (!ok(t != NULL, "%s opens", names[i])) {
            diag("%s", err.text);
            continue;
        }
        check_file(t, names[i], ".jsonl.zst");
        check_file(t, names[i], ".decode.jsonl.zst");
        tokenizer_free(t);
    }
    return done();
}
