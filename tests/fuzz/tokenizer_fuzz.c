/*
 * A tokenizer.json, a NUL and a text: whatever they are, opening, encoding and
 * decoding end in an answer or a clean error.  Run by make fuzz, with seeds
 * from the fixtures.
 */
#include "memory_file.h"
#include "tokenizer/tokenizer.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_text(const struct tokenizer *t, const char *text, size_t len)
{
    struct err err = ERR_INIT;
    struct token_ids ids;
    struct buf out = BUF_INIT;

    token_ids_init(&ids);
    ids.want_places = true;
    if (tokenizer_encode(t, text, len, true, &ids, &err) == 0) {
        for (size_t i = 0; i < ids.count; i++)
            if (ids.starts[i] > ids.ends[i] || ids.ends[i] > len)
                abort();
        tokenizer_decode(t, ids.ids, ids.count, false, &out, &err);
    } else if (err.code == ERR_NONE || !*err.text) {
        abort();
    }
    buf_release(&out);
    token_ids_release(&ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    const uint8_t *end = size ? memchr(data, '\0', size) : NULL;
    size_t len = end ? (size_t)(end - data) : size;
    struct err err = ERR_INIT;

    int fd = memory_file(data, len, path);
    struct tokenizer *t = tokenizer_open(path, NULL, &err);
    if (t)
        try_text(t, (const char *)data + len + (end != NULL),
                 size - len - (end != NULL));
    else if (err.code == ERR_NONE || !*err.text)
        abort();
    tokenizer_free(t);
    close(fd);
    return 0;
}
