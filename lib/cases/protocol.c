/* protocol.json: every key known, typed and within its range. */
#include "cases/protocol.h"

#include "base/buf.h"
#include "base/io.h"
#include "cases/cases.h"

#include <stddef.h>
#include <string.h>

enum { MAX_TOKENS = 1 << 24 };

static const struct {
    const char *key;
    size_t offset;
    int64_t least;
} counts[] = {
    {"context", offsetof(struct protocol, context), 1},
    {"prefill_chunk", offsetof(struct protocol, prefill_chunk), 1},
    {"max_new_tokens", offsetof(struct protocol, max_new_tokens), 0},
};

static const struct {
    const char *key;
    size_t offset;
    const char *words[5]; /* none: any text */
} texts[] = {
    {"tail", 0, {"all", "one"}},
    {"compute",
     offsetof(struct protocol, compute),
     {"f16", "bf16", "f32", "f64"}},
    {"sums", offsetof(struct protocol, sums), {"written", "torch", "torch-f32", "chain"}},
    {"image_library", offsetof(struct protocol, image_library), {0}},
    {"transformers", offsetof(struct protocol, transformers), {0}},
    {"tokenizer", offsetof(struct protocol, tokenizer), {"file", "class"}},
    {"now", offsetof(struct protocol, now), {0}},
};

static int read_count(struct protocol *p, size_t i, struct err *err)
{
    int64_t *to = (int64_t *)((char *)p + counts[i].offset);

    if (json_get_int(p->root, counts[i].key, to, err))
        return -1;
    if (*to < counts[i].least || *to > MAX_TOKENS)
        return err_set(err, ERR_INPUT, "'%s' is %lld", counts[i].key,
                       (long long)*to);
    return 0;
}

static int read_text(struct protocol *p, size_t i, struct err *err)
{
    const char *const *words = texts[i].words;
    const char *text;
    int chosen = -1;

    if (json_get_str(p->root, texts[i].key, &text, err))
        return -1;
    for (int k = 0; k < 5 && words[k]; k++)
        if (strcmp(words[k], text) == 0)
            chosen = k;
    if (words[0] && chosen < 0)
        return err_set(err, ERR_UNSUPPORTED, "'%s' is '%s'", texts[i].key,
                       text);
    if (strcmp(texts[i].key, "tail") == 0)
        p->tail = chosen ? PROTOCOL_TAIL_ONE : PROTOCOL_TAIL_ALL;
    else
        *(const char **)((char *)p + texts[i].offset) = text;
    return 0;
}

static int read_keys(struct protocol *p, struct err *err)
{
    const char *key;
    json_t *value;

    if (!json_is_object(p->root))
        return err_set(err, ERR_INPUT, "not an object");
    json_object_foreach(p->root, key, value)
    {
        bool is_known = false;

        for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
            if (strcmp(key, counts[i].key) == 0) {
                is_known = true;
                if (read_count(p, i, err))
                    return -1;
            }
        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
            if (strcmp(key, texts[i].key) == 0) {
                is_known = true;
                if (read_text(p, i, err))
                    return -1;
            }
        if (!is_known)
            return err_set(err, ERR_UNSUPPORTED, "unknown key '%s'", key);
    }
    if (p->now && !case_is_time(p->now))
        return err_set(err, ERR_INPUT, "'now' is not YYYY-MM-DDTHH:MM:SSZ");
    return 0;
}

int protocol_read(const char *path, struct protocol *out, struct err *err)
{
    struct buf text = BUF_INIT;
    int ret = -1;

    *out = (struct protocol){
        .prefill_chunk = 512,
        .max_new_tokens = 64,
        .image_library = "pillow 12.3",
        .transformers = "5.5.0",
    };
    if (!path)
        return 0;
    if (io_read_file(path, IO_JSON_CAP, &text, err))
        goto out;
    hash_sha256(text.data, text.len, out->sha256);
    out->size = (int64_t)text.len;
    out->root = json_parse(text.data, text.len, err);
    if (!out->root || read_keys(out, err)) {
        err_in(err, "%s", path);
        goto out;
    }
    ret = 0;
out:
    if (ret)
        protocol_release(out);
    buf_release(&text);
    return ret;
}

void protocol_release(struct protocol *p)
{
    if (!p)
        return;
    json_decref(p->root);
    *p = (struct protocol){0};
}
