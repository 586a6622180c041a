/* The writer's bytes are upstream's, and what is written reads back. */
#include "base/io.h"
#include "safetensors/safetensors.h"
#include "tap.h"

#include <unistd.h>

static char dir[] = "/tmp/safetensors-write-XXXXXX";
static char path[64];

static void test_same_bytes(const char *want_path, const char *name)
{
    struct buf want = BUF_INIT, got = BUF_INIT;
    struct err err = ERR_INIT;

    if (io_read_file(want_path, 1 << 20, &want, &err) ||
        io_read_file(path, 1 << 20, &got, &err))
        ok(false, "%s: %s", name, err.text);
    else
        ok(want.len == got.len && memcmp(want.data, got.data, got.len) == 0,
           "%s", name);
    buf_release(&want);
    buf_release(&got);
    unlink(path);
}

/* Copies a file by way of the reader: what was read, declared in reverse and
 * written in pieces from the back, must give the same bytes again. */
static void copy(const char *from)
{
    struct err err = ERR_INIT;
    struct safetensors *st = safetensors_open(from, &err);
    struct safetensors_writer *w = safetensors_create(path, &err);
    int handles[64];

    if (!st || !w) {
        ok(false, "%s: %s", from, err.text);
        exit(1);
    }
    size_t count = safetensors_count(st);
    const char *format = safetensors_metadata(st, "format");
    if (format)
        safetensors_set_metadata(w, "format", format, &err);
    for (size_t i = count; i-- > 0;) {
        const struct tensor_info *info = safetensors_at(st, i);

        handles[i] =
            safetensors_declare(w, info->name, info->dtype, info->shape, &err);
    }
    for (size_t i = 0; i < count; i++) {
        const struct tensor_info *info = safetensors_at(st, i);

        for (int64_t at = info->bytes; at > 0;) {
            int64_t n = at > 3 ? 3 : at;
            char piece[3];

            at -= n;
            if (safetensors_read(st, info, at, (size_t)n, piece, &err) ||
                safetensors_write(w, handles[i], at, piece, (size_t)n, &err))
                exit(1);
        }
    }
    ok(safetensors_finish(w, &err) == 0, "%s is written again", from);
    safetensors_close(st);
}

static void test_recorded(void)
{
    static const char *const files[] = {
        "fixtures/safetensors/good-dtypes.safetensors",
        "fixtures/safetensors/good-names.safetensors",
        "fixtures/safetensors/good-empty.safetensors",
    };

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        copy(files[i]);
        test_same_bytes(files[i], files[i]);
    }
}

/* The values that fixtures/safetensors/record.py gave its tensors. */
static void test_values(void)
{
    struct err err = ERR_INIT;
    struct tensor t;
    struct safetensors *st =
        safetensors_open("fixtures/safetensors/good-dtypes.safetensors", &err);

    if (!ok(st != NULL, "%s", err.text))
        return;
    if (safetensors_load(st, "t8.float32", 1 << 20, &t, &err))
        exit(1);
    is_mem(t.data, (float[]){8, 15, 22}, 12, "F32 values");
    tensor_release(&t);
    if (safetensors_load(st, "t10.int64", 1 << 20, &t, &err))
        exit(1);
    is_mem(t.data, (int64_t[]){10, 17}, 16, "I64 values");
    tensor_release(&t);
    if (safetensors_load(st, "t4.uint16", 1 << 20, &t, &err))
        exit(1);
    ok(t.shape.dims == 2 && t.shape.size[0] == 0 && t.shape.size[1] == 4,
       "an empty tensor has its shape");
    tensor_release(&t);
    safetensors_close(st);
}

static void test_refusals(void)
{
    struct err err = ERR_INIT;
    struct safetensors_writer *w = safetensors_create(path, &err);
    struct tensor_shape two = SHAPE(2);

    ok(safetensors_declare(w, "\xff", DTYPE_F32, two, &err) == -1 &&
           err.code == ERR_INPUT,
       "a name that is not UTF-8");
    err_clear(&err);
    ok(safetensors_declare(w, "__metadata__", DTYPE_F32, two, &err) == -1,
       "a tensor called __metadata__");
    err_clear(&err);
    ok(safetensors_declare(w, "a", DTYPE_F4, SHAPE(3), &err) == -1,
       "half a byte");
    err_clear(&err);
    ok(safetensors_declare(w, "a", DTYPE_U8, SHAPE(INT64_MAX, 2), &err) == -1,
       "a size that overflows");
    err_clear(&err);
    ok(safetensors_set_metadata(w, "k", "\xc0\x80", &err) == -1,
       "metadata that is not UTF-8");
    err_clear(&err);
    safetensors_declare(w, "a", DTYPE_F32, two, &err);
    safetensors_declare(w, "a", DTYPE_F16, two, &err);
    ok(safetensors_finish(w, &err) == -1 && strstr(err.text, "'a' twice"),
       "one name twice");
    ok(!io_exists(path), "and no file is left");

    err_clear(&err);
    w = safetensors_create(path, &err);
    int a = safetensors_declare(w, "a", DTYPE_F32, SHAPE(4), &err);
    float values[4] = {1, 2, 3, 4};
    safetensors_write(w, a, 0, values, 4, &err);
    safetensors_write(w, a, 12, values + 3, 4, &err);
    safetensors_write(w, a, 8, values + 2, 4, &err);
    ok(safetensors_finish(w, &err) == -1 && err.code == ERR_INPUT &&
           strstr(err.text, "not written in full"),
       "a tensor with a hole");
    ok(!io_exists(path), "and no file is left");

    err_clear(&err);
    w = safetensors_create(path, &err);
    safetensors_declare(w, "a", DTYPE_F32, SHAPE(4), &err);
    ok(!safetensors_create(path, &err) && err.code == ERR_EXISTS,
       "a file that is there is not overwritten");
    safetensors_abort(w);
    ok(!io_exists(path), "abort leaves nothing");
}

static void test_metadata_order(void)
{
    struct err err = ERR_INIT;
    struct buf got = BUF_INIT;
    struct safetensors_writer *w = safetensors_create(path, &err);

    safetensors_set_metadata(w, "z", "1", &err);
    safetensors_set_metadata(w, "a", "2", &err);
    safetensors_set_metadata(w, "z", "3\n", &err);
    if (safetensors_finish(w, &err) || io_read_file(path, 999, &got, &err))
        exit(1);
    is_str(got.data + 8, "{\"__metadata__\":{\"a\":\"2\",\"z\":\"3\\n\"}}    ",
           "metadata keys are sorted, the last value stands");
    buf_release(&got);
    unlink(path);
}

int main(void)
{
    if (!mkdtemp(dir))
        return 1;
    snprintf(path, sizeof(path), "%s/x.safetensors", dir);
    test_recorded();
    test_values();
    test_refusals();
    test_metadata_order();
    rmdir(dir);
    return done();
}
