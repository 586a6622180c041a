/* A file in pieces says what the file says that is read from disk. */
#include "safetensors/stream.h"

#include "base/buf.h"
#include "base/io.h"
#include "base/mem.h"
#include "hash/hash.h"
#include "tap.h"

static const char path[] = "fixtures/tiny/pack/model.safetensors";

struct seen {
    struct buf text;
    struct hash *hash;
};

static int take(void *context, const struct tensor_info *info, const void *data,
                size_t len, struct err *err)
{
    struct seen *s = context;

    (void)info;
    (void)err;
    if (!s->hash)
        s->hash = hash_new(HASH_SHA256);
    hash_add(s->hash, data, len);
    return 0;
}

static int end(void *context, const struct tensor_info *info, struct err *err)
{
    struct seen *s = context;
    char sha256[HASH_SHA256_HEX];

    (void)err;
    if (!s->hash)
        s->hash = hash_new(HASH_SHA256);
    hash_hex(s->hash, sha256);
    hash_free(s->hash);
    s->hash = NULL;
    buf_addf(&s->text, "%s %s\n", info->name, sha256);
    return 0;
}

/* What the stream saw, in its order, is what a reader finds by name. */
static bool matches(const struct seen *s)
{
    struct err err = ERR_INIT;
    struct safetensors *st = safetensors_open(path, &err);
    size_t found = 0, lines = 0;

    for (size_t i = 0; st && i < safetensors_count(st); i++) {
        const struct tensor_info *info = safetensors_at(st, i);
        void *bytes = xmalloc((size_t)info->bytes + 1);
        char sha256[HASH_SHA256_HEX], *line;

        if (safetensors_read(st, info, 0, (size_t)info->bytes, bytes, &err))
            return false;
        hash_sha256(bytes, (size_t)info->bytes, sha256);
        line = xasprintf("%s %s\n", info->name, sha256);
        found += strstr(s->text.data, line) != NULL;
        free(line);
        free(bytes);
    }
    for (const char *at = s->text.data; at && *at; at++)
        lines += *at == '\n';
    bool all = st && found == safetensors_count(st) && lines == found;
    safetensors_close(st);
    return all;
}

int main(void)
{
    static const size_t steps[] = {1, 7, 4096, 1 << 20};
    struct buf file = BUF_INIT;
    struct err err = ERR_INIT;

    if (io_read_file(path, 64 << 20, &file, &err)) {
        printf("1..0 # SKIP %s\n", err.text);
        return 0;
    }
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        struct seen s = {BUF_INIT, NULL};
        struct safetensors_visitor v = {&s, take, end};
        struct safetensors_stream *st =
            safetensors_stream_new((int64_t)file.len, &v);
        int ret = 0;

        for (size_t at = 0; at < file.len && ret == 0; at += steps[i])
            ret = safetensors_stream_add(
                st, file.data + at,
                file.len - at < steps[i] ? file.len - at : steps[i], &err);
        is_int(ret, 0, "pieces are taken");
        ok(matches(&s), "pieces of %zu: every tensor as on disk", steps[i]);
        if (i == 0) {
            is_int(safetensors_stream_add(st, "x", 1, &err), -1, "a byte more");
            is_int(err.code, ERR_INPUT, "is refused");
        }
        safetensors_stream_free(st);
        buf_release(&s.text);
    }
    static const struct {
        const char *bytes;
        size_t len;
        const char *why;
    } bad[] = {
        {"\xff\xff\xff\xff\xff\xff\xff\xff", 8, "at most"},
        {"\x10\0\0\0\0\0\0\0", 8, "cut short"},
        {"\3\0\0\0\0\0\0\0[] ", 11, "must start with '{'"},
        {"\2\0\0\0\0\0\0\0{}x", 11, "1 bytes after"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct seen s = {BUF_INIT, NULL};
        struct safetensors_visitor v = {&s, take, end};
        struct safetensors_stream *st = safetensors_stream_new(11, &v);
        struct err why = ERR_INIT;

        ok(safetensors_stream_add(st, bad[i].bytes, bad[i].len, &why) == -1 &&
               why.code == ERR_INPUT && strstr(why.text, bad[i].why),
           "refused as on disk: %s", bad[i].why);
        safetensors_stream_free(st);
    }
    buf_release(&file);
    return done();
}
