/* What a .safetensors file holds, however it is laid out. */
#include "base/mem.h"
#include "base/path.h"
#include "safetensors/safetensors.h"
#include "verbs.h"

#include <stdlib.h>
#include <string.h>

enum { STEP = 1 << 20 };

static int hash_tensor(const struct safetensors *st,
                       const struct tensor_info *info, void *block,
                       char out[HASH_SHA256_HEX], struct err *err)
{
    struct hash *h = hash_new(HASH_SHA256);
    int ret = 0;

    for (int64_t at = 0; at < info->bytes && ret == 0; at += STEP) {
        size_t n = info->bytes - at < STEP ? (size_t)(info->bytes - at) : STEP;

        ret = safetensors_read(st, info, at, n, block, err);
        if (ret == 0)
            hash_add(h, block, n);
    }
    hash_hex(h, out);
    hash_free(h);
    return ret;
}

/*
 * SHA-256 over one line a tensor, in byte order of names:
 *     NAME NUL DTYPE NUL SHAPE NUL SHA-256 of its bytes LF
 */
static int hash_tensors(const struct safetensors *st, char out[HASH_SHA256_HEX],
                        json_t *list, struct err *err)
{
    struct hash *h = hash_new(HASH_SHA256);
    void *block = xmalloc(STEP);
    int ret = 0;

    for (size_t i = 0; i < safetensors_count(st) && ret == 0; i++) {
        const struct tensor_info *info = safetensors_at(st, i);
        const char *dtype = dtype_name(info->dtype);
        char shape[1024], sha256[HASH_SHA256_HEX];

        ret = hash_tensor(st, info, block, sha256, err);
        shape_format(&info->shape, shape, sizeof(shape));
        hash_add(h, info->name, strlen(info->name) + 1);
        hash_add(h, dtype, strlen(dtype) + 1);
        hash_add(h, shape, strlen(shape) + 1);
        hash_add(h, sha256, strlen(sha256));
        hash_add(h, "\n", 1);
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:s, s:s}", "name", info->name, "dtype",
                            dtype, "shape", shape, "sha256", sha256));
    }
    hash_hex(h, out);
    hash_free(h);
    free(block);
    return ret;
}

json_t *add_tensors_digest(const char *pack, struct receipt_file *f)
{
    static const char end[] = ".safetensors";
    size_t n = strlen(f->path);
    struct err ignored = ERR_INIT;

    if (n < sizeof(end) || strcmp(f->path + n - sizeof(end) + 1, end) != 0)
        return NULL;
    char *path = path_join(pack, f->path);
    struct safetensors *st = safetensors_open(path, &ignored);
    json_t *list = json_array();

    if (!st || hash_tensors(st, f->tensors, list, &ignored)) {
        f->tensors[0] = '\0';
        json_decref(list);
        list = NULL;
    }
    safetensors_close(st);
    free(path);
    return list;
}

static const json_t *find(const json_t *list, const json_t *tensor)
{
    json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
    {
        if (json_equal(json_object_get(item, "name"),
                       json_object_get(tensor, "name")))
            return item;
    }
    return NULL;
}

static void add_verdict(json_t *out, const json_t *tensor, const char *verdict)
{
    json_array_append_new(out, json_pack("{s:O?, s:s}", "name",
                                         json_object_get(tensor, "name"),
                                         "verdict", verdict));
}

json_t *compare_tensors(const json_t *want, const json_t *got)
{
    json_t *out = json_array(), *tensor;
    size_t i;

    /* both are in byte order of names, and mostly equal */
    json_array_foreach(want, i, tensor)
    {
        const json_t *other = json_array_get(got, i);

        if (json_equal(tensor, other))
            continue;
        other = find(got, tensor);
        if (!other || !json_equal(tensor, other))
            add_verdict(out, tensor, other ? "differs" : "missing");
    }
    json_array_foreach(got, i, tensor)
    {
        if (!json_equal(json_object_get(json_array_get(want, i), "name"),
                        json_object_get(tensor, "name")) &&
            !find(want, tensor))
            add_verdict(out, tensor, "extra");
    }
    return out;
}
