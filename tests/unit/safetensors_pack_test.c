/* Packs: one file, or shards and an index that must agree. */
#include "base/io.h"
#include "base/path.h"
#include "safetensors/safetensors.h"
#include "tap.h"

#include <unistd.h>

static char dir[] = "/tmp/safetensors-pack-XXXXXX";

static void put_text(const char *name, const char *text)
{
    struct err err = ERR_INIT;
    char *path = path_join(dir, name);

    if (io_write_file(path, text, strlen(text), &err))
        exit(1);
    free(path);
}

/* A shard with one F32 [2] tensor for each letter of `names`. */
static void put_shard(const char *name, const char *names)
{
    struct err err = ERR_INIT;
    char *path = path_join(dir, name);
    struct safetensors_writer *w = safetensors_create(path, &err);
    float values[2] = {1, 2};

    for (int i = 0; names[i]; i++)
        safetensors_declare(w, (char[]){names[i], 0}, DTYPE_F32, SHAPE(2),
                            &err);
    for (int i = 0; names[i]; i++)
        safetensors_write(w, i, 0, values, 8, &err);
    if (safetensors_finish(w, &err))
        exit(1);
    free(path);
}

static void empty(void)
{
    struct err err = ERR_INIT;

    io_remove_tree(dir, &err);
    io_make_dirs(dir, &err);
}

#define INDEX(total, map) \
    "{\"metadata\":{\"total_size\":" total "},\"weight_map\":{" map "}}"
#define MAP_A "\"a\":\"1.safetensors\""
#define MAP_B "\"b\":\"2.safetensors\""

static const struct {
    const char *index, *first, *second;
    const char *says; /* NULL: accepted */
    const char *warning;
} cases[] = {
    {INDEX("16", MAP_A "," MAP_B), "a", "b", NULL, NULL},
    {"{\"weight_map\":{" MAP_A "," MAP_B "}}", "a", "b", NULL, NULL},
    {INDEX("17", MAP_A "," MAP_B), "a", "b", NULL,
     "total_size is 17, the tensors have 16"},
    {INDEX("16.5", MAP_A "," MAP_B), "a", "b", NULL, NULL},
    {INDEX("16", MAP_A "," MAP_B ",\"c\":\"2.safetensors\""), "a", NULL,
     "shard '2.safetensors' is missing; the index puts 2 tensors into it, the "
     "first is 'b'",
     NULL},
    {INDEX("16", MAP_A "," MAP_B), "a", "c", "'b' is not in '2.safetensors'",
     NULL},
    {INDEX("16", MAP_A "," MAP_B), "a", "bc", "'c' of '2.safetensors' is not",
     NULL},
    {INDEX("16", MAP_A "," MAP_B), "ab", "b", "'b' is in ", NULL},
    {INDEX("16", MAP_A "," MAP_B), "b", "a",
     "'a' is in '2.safetensors', the index puts it into '1.safetensors'", NULL},
    {INDEX("8", "\"a\":\"../1.safetensors\""), "a", NULL, "plain file name",
     NULL},
    {INDEX("8", "\"a\":\"x/1.safetensors\""), "a", NULL, "plain file name",
     NULL},
    {INDEX("8", "\"a\":\"x\\\\1.safetensors\""), "a", NULL, "plain file name",
     NULL},
    {INDEX("8", "\"a\":\"1..safetensors\""), "a", NULL, "plain file name",
     NULL},
    {INDEX("8", "\"a\":\".1.safetensors\""), "a", NULL, "plain file name",
     NULL},
    {INDEX("8", "\"a\":\"1.safetensors\\u0000\""), "a", NULL, "plain file name",
     NULL},
    {INDEX("8", "\"a\":\"\""), "a", NULL, "plain file name", NULL},
    {INDEX("8", "\"a\":1"), "a", NULL, "not a string", NULL},
    {INDEX("0", ""), "a", NULL, "'weight_map' is empty", NULL},
    {"{}", "a", NULL, "weight_map", NULL},
    {INDEX("8", MAP_A "," MAP_A), "a", NULL, "index.json", NULL},
};

static void test_indexes(void)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = ERR_INIT;

        empty();
        put_text("model.safetensors.index.json", cases[i].index);
        put_shard("1.safetensors", cases[i].first);
        if (cases[i].second)
            put_shard("2.safetensors", cases[i].second);
        struct safetensors *st = safetensors_open_pack(dir, &err);
        if (!ok(cases[i].says ? !st && err.code == ERR_INPUT &&
                                    strstr(err.text, cases[i].says)
                              : st != NULL,
                "%s", cases[i].says ? cases[i].says : cases[i].index))
            diag("'%s'", err.text);
        if (st) {
            const char *warning = safetensors_warning(st);

            ok(cases[i].warning ? warning && strstr(warning, cases[i].warning)
                                : !warning,
               "%s", cases[i].warning ? cases[i].warning : "no warning");
            is_str(path_base(safetensors_path(st, safetensors_find(st, "b"))),
                   "2.safetensors", "a tensor knows its file");
        }
        safetensors_close(st);
    }
}

static void test_truncated_shard(void)
{
    struct err err = ERR_INIT;
    char *path = path_join(dir, "2.safetensors");
    int64_t size;

    empty();
    put_text("model.safetensors.index.json", cases[0].index);
    put_shard("1.safetensors", "a");
    put_shard("2.safetensors", "b");
    close(io_open(path, &size, &err));
    if (truncate(path, size - 3))
        exit(1);
    ok(!safetensors_open_pack(dir, &err) && err.code == ERR_INPUT &&
           strstr(err.text, "2.safetensors: cut short: the header needs 8 "
                            "bytes of data, the file has 5; tensor 'b'"),
       "a shard shorter than its header: shard, tensor, bytes");
    diag("%s", err.text);
    free(path);
}

static void test_single(void)
{
    struct err err = ERR_INIT;
    struct safetensors *st;

    empty();
    ok(!safetensors_open_pack(dir, &err) && err.code == ERR_INPUT,
       "a folder without tensors");
    err_clear(&err);
    put_shard("model.safetensors", "a");
    st = safetensors_open_pack(dir, &err);
    ok(st != NULL, "one file");
    safetensors_close(st);
    put_text("model.safetensors.index.json", cases[0].index);
    ok(!safetensors_open_pack(dir, &err) && strstr(err.text, "both"),
       "one file and an index: refused");
    err_clear(&err);
    empty();
    ok(!safetensors_open_pack("/dev/null", &err) && err.code == ERR_INPUT,
       "no folder");
}

static void test_many(void)
{
    struct err err = ERR_INIT;
    char *path = path_join(dir, "model.safetensors");
    struct safetensors_writer *w = safetensors_create(path, &err);

    for (int i = 0; i < 2000; i++) {
        char name[80];

        snprintf(name, sizeof(name), "language_model.layers.%d.mlp.weight", i);
        safetensors_declare(w, name, DTYPE_F16, SHAPE(3, 5), &err);
    }
    for (int i = 0; i < 2000; i++)
        safetensors_write(w, i, 0, (char[30]){0}, 30, &err);
    if (safetensors_finish(w, &err))
        exit(1);
    struct safetensors *st = safetensors_open_pack(dir, &err);

    is_int(st ? (int64_t)safetensors_count(st) : -1, 2000, "2,000 tensors");
    safetensors_close(st);
    free(path);
}

int main(void)
{
    struct err err = ERR_INIT;

    if (!mkdtemp(dir))
        return 1;
    test_indexes();
    test_truncated_shard();
    test_single();
    test_many();
    io_remove_tree(dir, &err);
    return done();
}
