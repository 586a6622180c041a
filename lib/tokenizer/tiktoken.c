/*
 * A tiktoken.model as Kimi has it: lines of a token's bytes in base64, a space
 * and its rank, which is its id.  The special tokens' names stand in
 * tokenizer_config.json; the split expression is Kimi's own.
 */
#include "base/base64.h"
#include "base/io.h"
#include "base/mem.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/class.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FILE_CAP = 1 << 28,
    CHUNK = 400000,
    RUN = 25000,
    MAX_ADDED_LEN = 1024,
    RESERVED = 256
};

#define KIMI_UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]"
#define KIMI_LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]"
#define KIMI_TAIL "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
static const char kimi_pattern[] =
    "[\\p{Han}]+"
    "|[^\\r\\n\\p{L}\\p{N}]?" KIMI_UPPER "*" KIMI_LOWER "+" KIMI_TAIL
    "|[^\\r\\n\\p{L}\\p{N}]?" KIMI_UPPER "+" KIMI_LOWER "*" KIMI_TAIL
    "|\\p{N}{1,3}| "
    "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

/* White space as Python's str.isspace() has it. */
static bool is_python_space(uint32_t c)
{
    return unicode_has(unicode_space, unicode_space_count, c) ||
           (c >= 0x1c && c <= 0x1f);
}

int tiktoken_cut(const char *text, size_t len, tiktoken_each *each, void *arg,
                 struct err *err)
{
    size_t start = 0, in_chunk = 0, in_run = 0, n;
    bool was_space = false;

    for (size_t at = 0; at < len; at += n, in_chunk++) {
        bool is_space = is_python_space(utf8_get(text + at, &n));

        if (in_chunk == CHUNK) {
            if (each(arg, start, at, err))
                return -1;
            start = at;
            in_chunk = in_run = 0;
        }
        in_run = in_run > 0 && is_space == was_space ? in_run + 1 : 1;
        was_space = is_space;
        if (in_run > RUN) {
            if (each(arg, start, at, err))
                return -1;
            start = at;
            in_run = 1;
        }
    }
    return start < len ? each(arg, start, len, err) : 0;
}

/* A token's bytes go into token[0], as ByteLevel spells them into token[1]. */
static int read_line(struct model *m, const char *line, size_t len,
                     struct buf token[2], struct err *err)
{
    const char *gap = memchr(line, ' ', len);
    size_t id = 0, i;

    if (!gap)
        return err_set(err, ERR_INPUT, "no space before the rank");
    buf_clear(&token[0]);
    buf_clear(&token[1]);
    if (!base64_decode(line, (size_t)(gap - line), &token[0]) ||
        token[0].len == 0)
        return err_set(err, ERR_INPUT, "not base64");
    byte_level_spell(token[0].data, token[0].len, &token[1]);
    i = (size_t)(gap - line) + 1;
    if (i == len || len - i > 8)
        return err_set(err, ERR_INPUT, "not a rank");
    for (; i < len; i++) {
        if (line[i] < '0' || line[i] > '9')
            return err_set(err, ERR_INPUT, "not a rank");
        id = id * 10 + (size_t)(line[i] - '0');
    }
    if (token[0].len > m->longest)
        m->longest = token[0].len;
    for (int k = 0; k < 2; k++) {
        struct vocab *v = k ? &m->vocab : &m->bytes;
        size_t at = vocab_add_text(v, token[k].data, token[k].len);

        if (vocab_put(v, id, at, token[k].len, err))
            return -1;
    }
    return 0;
}

static int read_ranks(struct model *m, const char *path, struct err *err)
{
    struct buf file = BUF_INIT, token[2] = {BUF_INIT, BUF_INIT};
    size_t number = 1;
    int ret = io_read_file(path, FILE_CAP, &file, err);

    for (size_t at = 0; ret == 0 && at < file.len; number++) {
        const char *line = file.data + at;
        const char *end = memchr(line, '\n', file.len - at);
        size_t len = end ? (size_t)(end - line) : file.len - at;

        at += len + 1;
        if (len == 0)
            continue;
        ret = read_line(m, line, len, token, err);
        if (ret)
            err_in(err, "%s: line %zu", path, number);
    }
    buf_release(&file);
    buf_release(&token[0]);
    buf_release(&token[1]);
    if (ret)
        return -1;
    if (m->vocab.count == 0)
        return err_set(err, ERR_INPUT, "%s: no tokens", path);
    if (vocab_index(&m->bytes, err))
        return err_in(err, "%s", path);
    model_finish_bpe(m);
    for (int i = 0; i < 256; i++)
        if (m->byte_ids[i] < 0)
            return err_set(err, ERR_INPUT, "%s: no token for byte %02x", path,
                           i);
    return 0;
}

static int add_special(struct added *a, const char *text, size_t len,
                       int64_t id, bool is_special, struct err *err)
{
    struct added_token *token;

    if (added_find(a, text, len))
        return err_set(err, ERR_INPUT, "'%s' is the name of two ids", text);
    token = added_take(a, text, len);
    token->id = id;
    token->special = is_special;
    token->is_raw = true;
    return 0;
}

static int read_special(struct tokenizer *t, const char *key, json_t *value,
                        struct err *err)
{
    const char *content;
    bool is_special = true;
    size_t len, rank_len;
    char *end;

    errno = 0;
    long long id = strtoll(key, &end, 10);
    if (*key < '0' || *key > '9' || *end || errno || id >= VOCAB_MAX_ID)
        return err_set(err, ERR_INPUT, "'%s' is not an id", key);
    if (json_get_str(value, "content", &content, err))
        return -1;
    len = json_string_length(json_object_get(value, "content"));
    if (len == 0 || len > MAX_ADDED_LEN)
        return err_set(err, ERR_INPUT,
                       "'%s': 'content' is empty or longer "
                       "than %d bytes",
                       key, MAX_ADDED_LEN);
    if (json_has(value, "special") &&
        json_get_bool(value, "special", &is_special, err))
        return -1;
    if (vocab_text(&t->model->vocab, id, &rank_len))
        return err_set(err, ERR_INPUT, "'%s' is the rank of another token",
                       key);
    return add_special(&t->added, content, len, id, is_special, err);
}

/* The ids behind the ranks are special, with or without a name of their own:
 * Kimi's tokenizer reserves so many. */
static int add_reserved(struct tokenizer *t, struct err *err)
{
    const int64_t first = (int64_t)t->model->vocab.count;
    bool is_named[RESERVED] = {false};
    int ret = 0;

    for (size_t i = 0; i < t->added.count; i++)
        if (t->added.items[i].id >= first &&
            t->added.items[i].id < first + RESERVED)
            is_named[t->added.items[i].id - first] = true;
    for (int i = 0; ret == 0 && i < RESERVED; i++) {
        char name[64];

        if (is_named[i])
            continue;
        int len = snprintf(name, sizeof(name), "<|reserved_token_%lld|>",
                           (long long)(first + i));
        ret = add_special(&t->added, name, (size_t)len, first + i, true, err);
    }
    return ret;
}

static int read_specials(struct tokenizer *t, struct err *err)
{
    const struct section *config;
    json_t *tokens, *value;
    const char *key;
    int ret = -1;

    if (ledger_need(t->ledger, "tokenizer_config.json", &config, err) ||
        class_check(config, class_version(t->transformers), err))
        return -1;
    config_value(config, "added_tokens_decoder");
    if (json_get_object(config_object(config), "added_tokens_decoder", &tokens,
                        err) == 0) {
        ret = 0;
        json_object_foreach(tokens, key, value)
        {
            if (ret == 0)
                ret = read_special(t, key, value, err);
        }
        if (ret == 0)
            ret = add_reserved(t, err);
    }
    return ret ? err_in(err, "%s: added_tokens_decoder", config_path(config))
               : 0;
}

int tokenizer_load_tiktoken(struct tokenizer *t, const char *model_path,
                            struct err *err)
{
    struct steps *steps = &t->chain.pre_tokenizer;

    t->model = xcalloc(1, sizeof(*t->model));
    t->model->kind = MODEL_TIKTOKEN;
    t->model->is_byte_level = t->chain.is_byte_level = true;
    t->model->ignore_merges = true; /* a whole piece that is a token is one */
    t->is_cut = t->chain.has_decoder = true;
    steps_add(steps, STEP_SPLIT)->behavior = SPLIT_ISOLATED;
    steps_add(steps, STEP_BYTE_LEVEL);
    steps_add(&t->chain.decoder, STEP_DECODE_BYTE_LEVEL);
    steps->items[0].pattern =
        pattern_new(kimi_pattern, sizeof(kimi_pattern) - 1, PATTERN_RUST, err);
    if (!steps->items[0].pattern || read_ranks(t->model, model_path, err) ||
        read_specials(t, err))
        return -1;
    return added_index(&t->added, &t->chain.normalizer, err);
}
