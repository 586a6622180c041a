/* config.json: modules, the packed linear layers of a Bonsai 2 pack. */
#include "models/bonsai_config_internal.h"

#include <stdlib.h>
#include <string.h>

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct bonsai_module *)a)->path,
                  ((const struct bonsai_module *)b)->path);
}

static int read_module(struct bonsai_config *c, const json_t *record,
                       struct bonsai_module *out, struct err *err)
{
    const char *path, *dtype;

    if (!json_is_object(record))
        return err_set(err, ERR_INPUT, "is not an object");
    if (json_get_str(record, "path", &path, err) ||
        json_get_int(record, "block", &out->block, err) ||
        json_get_bool(record, "embedding", &out->is_embedding, err) ||
        json_get_str(record, "dtype", &dtype, err))
        return -1;
    if (strcmp(dtype, "float16") != 0)
        return err_set(err, ERR_UNSUPPORTED,
                       "'dtype' is '%s'; only 'float16' is supported", dtype);
    if (json_object_size(record) != 4)
        return err_set(err, ERR_UNSUPPORTED,
                       "holds more than path, block, embedding and dtype");
    out->path = arena_strdup(&c->arena, path);
    int64_t b = out->block;
    if (b != 0 && b != 512 && b != 1024 && b != 2048 && b != 4096)
        return err_set(err, ERR_INPUT,
                       "'%s': block %lld is none of 0, 512, 1024, 2048, 4096",
                       path, (long long)b);
    if (out->is_embedding != (strcmp(path, "model.embed_tokens") == 0))
        return err_set(err, ERR_INPUT,
                       "'%s': only model.embed_tokens is an embedding", path);
    return 0;
}

int bonsai_read_modules(struct bonsai_config *c, const struct section *root,
                        struct err *err)
{
    json_t *list;

    if (config_get_list(root, "modules", &list, err))
        return -1;
    size_t n = json_array_size(list);
    c->modules = arena_alloc(&c->arena, n * sizeof(*c->modules));
    c->module_count = (int64_t)n;
    for (size_t i = 0; i < n; i++)
        if (read_module(c, json_array_get(list, i), &c->modules[i], err))
            return err_in(err, "modules[%zu]", i);
    qsort(c->modules, n, sizeof(*c->modules), by_path);
    for (size_t i = 1; i < n; i++)
        if (by_path(&c->modules[i - 1], &c->modules[i]) == 0)
            return err_set(err, ERR_INPUT, "modules: '%s' stands twice",
                           c->modules[i].path);
    return 0;
}

const struct bonsai_module *bonsai_module(const struct bonsai_config *config,
                                          const char *path)
{
    struct bonsai_module key = {.path = path};

    return bsearch(&key, config->modules, (size_t)config->module_count,
                   sizeof(key), by_path);
}
