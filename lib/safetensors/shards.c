/*
 * A pack: model.safetensors, or the shards that model.safetensors.index.json
 * names.  The index and the shards must tell the same story both ways.
 */
#include "safetensors/safetensors_internal.h"

#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "json/json.h"

#include <stdlib.h>
#include <string.h>

static const char single[] = "model.safetensors";
static const char index_name[] = "model.safetensors.index.json";

static int check_file_name(const char *name, size_t len, struct err *err)
{
    char shown[ST_SHOWN];

    if (strlen(name) != len || *name == '\0' || *name == '.' ||
        strchr(name, '/') || strchr(name, '\\') || strstr(name, ".."))
        return err_set(err, ERR_INPUT, "'%s' is no plain file name",
                       st_show(name, shown));
    return 0;
}

static int name_order(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The distinct shard names, sorted; borrowed from the map. */
static int list_shards(json_t *map, const char ***out, size_t *count,
                       struct err *err)
{
    size_t n = json_object_size(map), kept = 0;
    const char **names = mem_array(n, sizeof(*names), SIZE_MAX, err);
    const char *key;
    char shown[ST_SHOWN];
    json_t *value;

    *out = names;
    *count = 0;
    if (!names)
        return -1;
    json_object_foreach(map, key, value)
    {
        if (!json_is_string(value)) {
            err_set(err, ERR_INPUT, "the value is not a string");
            return err_in(err, "'weight_map', '%s'", st_show(key, shown));
        }
        names[kept] = json_string_value(value);
        if (check_file_name(names[kept], json_string_length(value), err))
            return err_in(err, "'weight_map', '%s'", st_show(key, shown));
        kept++;
    }
    if (kept)
        qsort(names, kept, sizeof(*names), name_order);
    for (size_t i = 0; i < kept; i++)
        if (*count == 0 || strcmp(names[*count - 1], names[i]) != 0)
            names[(*count)++] = names[i];
    return 0;
}

/* A shard that is not there: says what would be missing with it. */
static int refuse_missing(json_t *map, const char *shard, struct err *err)
{
    const char *key, *first = NULL;
    char shown[ST_SHOWN];
    json_t *value;
    size_t n = 0;

    json_object_foreach(map, key, value)
    {
        if (strcmp(json_string_value(value), shard) == 0 && n++ == 0)
            first = key;
    }
    return err_set(err, ERR_INPUT,
                   "shard '%s' is missing; the index puts %zu tensors into it, "
                   "the first is '%s'",
                   shard, n, st_show(first, shown));
}

/* Every mapped tensor in its shard, every shard tensor mapped. */
static int check_map(const struct safetensors *st, json_t *map, struct err *err)
{
    const char *key;
    char shown[ST_SHOWN];
    json_t *value;

    json_object_foreach(map, key, value)
    {
        const struct tensor_info *info = safetensors_find(st, key);
        const char *shard = json_string_value(value);

        if (!info)
            return err_set(err, ERR_INPUT,
                           "tensor '%s' is not in '%s', where the index puts "
                           "it",
                           st_show(key, shown), shard);
        if (strcmp(path_base(safetensors_path(st, info)), shard) != 0)
            return err_set(err, ERR_INPUT,
                           "tensor '%s' is in '%s', the index puts it into "
                           "'%s'",
                           st_show(key, shown),
                           path_base(safetensors_path(st, info)), shard);
    }
    for (size_t i = 0; i < st->count; i++)
        if (!json_object_get(map, st->infos[i].name))
            return err_set(err, ERR_INPUT,
                           "tensor '%s' of '%s' is not in the index",
                           st_show(st->infos[i].name, shown),
                           path_base(safetensors_path(st, &st->infos[i])));
    return 0;
}

/* total_size should be the sum of tensor bytes; some tools write file sizes. */
static void check_total(struct safetensors *st, const json_t *root)
{
    const json_t *total =
        json_object_get(json_object_get(root, "metadata"), "total_size");
    int64_t sum = 0;

    for (size_t i = 0; i < st->count; i++)
        sum += st->infos[i].bytes;
    if (json_is_integer(total) && json_integer_value(total) != sum)
        st->warning = xasprintf(
            "%s: total_size is %lld, the tensors have %lld bytes", index_name,
            (long long)json_integer_value(total), (long long)sum);
}

static struct safetensors *open_sharded(const char *dir, const char *index,
                                        struct err *err)
{
    struct safetensors *st = NULL;
    const char **shards = NULL;
    char **paths = NULL;
    json_t *root = json_read_file(index, err), *map;
    size_t count = 0;
    bool is_good = false;

    if (!root)
        return NULL;
    if (json_get_object(root, "weight_map", &map, err) ||
        list_shards(map, &shards, &count, err))
        goto out;
    if (count == 0) {
        err_set(err, ERR_INPUT, "'weight_map' is empty");
        goto out;
    }
    paths = xcalloc(count, sizeof(*paths));
    for (size_t i = 0; i < count; i++) {
        paths[i] = path_join(dir, shards[i]);
        if (!io_exists(paths[i])) {
            refuse_missing(map, shards[i], err);
            goto out;
        }
    }
    st = safetensors_open_files((const char *const *)paths, count, err);
    if (!st || check_map(st, map, err))
        goto out;
    check_total(st, root);
    is_good = true;
out:
    if (!is_good) {
        err_in(err, "%s", index);
        safetensors_close(st);
        st = NULL;
    }
    for (size_t i = 0; paths && i < count; i++)
        free(paths[i]);
    free(paths);
    free(shards);
    json_decref(root);
    return st;
}

struct safetensors *safetensors_open_pack(const char *dir, struct err *err)
{
    char *one = path_join(dir, single), *index = path_join(dir, index_name);
    bool has_one = io_exists(one), has_index = io_exists(index);
    struct safetensors *st = NULL;

    if (has_one && has_index)
        err_set(err, ERR_INPUT, "%s: both %s and %s are there", dir, single,
                index_name);
    else if (has_one)
        st = safetensors_open(one, err);
    else if (has_index)
        st = open_sharded(dir, index, err);
    else
        err_set(err, ERR_INPUT, "%s: no %s and no %s", dir, single, index_name);
    free(one);
    free(index);
    return st;
}
