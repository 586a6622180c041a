/* A file's bytes against the receipt, as they arrive. */
#include "arriving.h"
#include "base/mem.h"
#include "safetensors/stream.h"

#include <stdlib.h>
#include <string.h>

enum { POINTER = 1024 }; /* an LFS pointer is shorter */

struct arriving {
    const struct receipt_file *listed;
    enum hash_kind kind;
    int64_t size, got;
    struct hash *whole;
    struct safetensors_stream *stream; /* NULL: no tensors are listed */
    struct safetensors_visitor visitor;
    struct hash *tensor; /* the one at hand, or NULL */
    json_t *wanted;      /* SHA-256 by name */
};

static int tensor_data(void *context, const struct tensor_info *info,
                       const void *data, size_t len, struct err *err)
{
    struct arriving *a = context;

    (void)info;
    (void)err;
    if (!a->tensor)
        a->tensor = hash_new(HASH_SHA256);
    hash_add(a->tensor, data, len);
    return 0;
}

static int tensor_end(void *context, const struct tensor_info *info,
                      struct err *err)
{
    struct arriving *a = context;
    const char *want =
        json_string_value(json_object_get(a->wanted, info->name));
    char sha256[HASH_SHA256_HEX];

    if (a->tensor)
        hash_hex(a->tensor, sha256);
    else
        hash_sha256("", 0, sha256);
    hash_free(a->tensor);
    a->tensor = NULL;
    if (want && strcmp(want, sha256) == 0)
        return 0;
    json_t *text = json_string(info->name);
    char *name = json_dumps(text, JSON_ENCODE_ANY);
    err_set(err, ERR_NO, "tensor %s is not the receipt's", name ? name : "?");
    free(name);
    json_decref(text);
    return -1;
}

int64_t arriving_size(const struct receipt_file *listed)
{
    /* -1 when no size is listed at all */
    return listed->sha256[0] || listed->size >= POINTER ? listed->size : -1;
}

struct arriving *arriving_new(const struct receipt_file *listed,
                              enum hash_kind hash)
{
    struct arriving *a = xcalloc(1, sizeof(*a));
    json_t *item;
    size_t i;

    a->listed = listed;
    a->kind = hash;
    a->size = arriving_size(listed);
    a->whole = hash_new(HASH_SHA256);
    if (!listed->tensor_list || a->size < 0)
        return a;
    a->wanted = json_object();
    json_array_foreach(listed->tensor_list, i, item)
    {
        const char *name = json_string_value(json_object_get(item, "name"));

        if (name)
            json_object_set(a->wanted, name, json_object_get(item, "sha256"));
    }
    a->visitor = (struct safetensors_visitor){a, tensor_data, tensor_end};
    a->stream = safetensors_stream_new(a->size, &a->visitor);
    return a;
}

void arriving_free(struct arriving *a)
{
    if (!a)
        return;
    safetensors_stream_free(a->stream);
    hash_free(a->tensor);
    hash_free(a->whole);
    json_decref(a->wanted);
    free(a);
}

int arriving_add(struct arriving *a, const void *data, size_t len,
                 struct err *err)
{
    a->got += (int64_t)len;
    if (a->size >= 0 && a->got > a->size)
        return err_set(err, ERR_NO, "more than the receipt's %lld bytes",
                       (long long)a->size);
    hash_add(a->whole, data, len);
    /* an unsound header is that of another file, too */
    struct err why = ERR_INIT;
    return a->stream && safetensors_stream_add(a->stream, data, len, &why)
               ? err_set(err, ERR_NO, "%s", why.text)
               : 0;
}

int arriving_end(struct arriving *a, const char *path, bool *is_same,
                 struct err *err)
{
    struct receipt_file found = {.size = a->got};
    int64_t size;

    hash_hex(a->whole, found.sha256);
    *is_same = receipt_is_same(a->listed, a->kind, &found);
    if (*is_same || !a->listed->git_blob[0])
        return 0;
    /* not the pointer's id: the content's own needs its length first */
    if (hash_file(path, a->kind, found.sha256, found.git_blob, &size, err))
        return -1;
    *is_same = receipt_is_same(a->listed, a->kind, &found);
    return 0;
}
