/* Every rule of reading a .safetensors file, each with a crafted file. */
#include "base/io.h"
#include "base/mem.h"
#include "safetensors/safetensors.h"
#include "tap.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[] = "/tmp/safetensors-test-XXXXXX";
static char path[64];

static void put(const void *data, size_t len)
{
    FILE *f = fopen(path, "wb");

    if (!f || fwrite(data, 1, len, f) != len || fclose(f))
        exit(1);
}

/* A file with this header (n bytes of it) and `data` bytes behind. */
static size_t make_n(const char *header, size_t n, size_t data, char **out)
{
    size_t total = 8 + n + data;
    char *file = calloc(1, total + 1);

    for (int i = 0; i < 8; i++)
        file[i] = (char)(n >> (8 * i));
    memcpy(file + 8, header, n);
    *out = file;
    return total;
}

static enum err_code try_open(struct err *err)
{
    *err = (struct err)ERR_INIT;
    struct safetensors *st = safetensors_open(path, err);

    safetensors_close(st);
    return st ? ERR_NONE : err->code;
}

#define A(offsets) "\"a\":{\"dtype\":\"F32\",\"shape\":[2]," OFF(offsets) "}"
#define B(offsets) "\"b\":{\"dtype\":\"F32\",\"shape\":[2]," OFF(offsets) "}"
#define Z(offsets) "\"z\":{\"dtype\":\"F32\",\"shape\":[0,5]," OFF(offsets) "}"
#define OFF(offsets) "\"data_offsets\":[" offsets "]"
#define SHAPED(dtype, shape, offsets)                        \
    "{\"a\":{\"dtype\":\"" dtype "\",\"shape\":[" shape "]," \
    "\"data_offsets\":[" offsets "]}}"

static const struct {
    int row; /* of the specification's table */
    const char *header;
    size_t data;
    const char *says; /* NULL: accepted */
} cases[] = {
    {4, "", 0, "the header is empty"},
    {5, "{\"\xc0\xaf\":1}", 0, "not UTF-8"},
    {5, "{\"\xed\xa0\x80\":1}", 0, "not UTF-8"},
    {5, "{\"\xf4\x90\x80\x80\":1}", 0, "not UTF-8"},
    {5, "{\"\xe2\x82", 0, "not UTF-8"},
    {6, " {}", 0, "must start with '{'"},
    {6, "\xef\xbb\xbf{}", 0, "must start with '{'"},
    {6, "[]", 0, "must start with '{'"},
    {7, "{}       ", 0, NULL},
    {8, "{}\t", 0, "bytes after"},
    {8, "{}{}", 0, "bytes after"},
    {8, "{} x", 0, "bytes after"},
    {9, "{" A("0,8"), 8, "ends early"},
    {9, "{\"a\":{\"dtype\":\"F32\"", 8, "ends early"},
    {9, "{/**/}", 0, "expected a string"},
    {9, "{" A("0,8") ",}", 8, "expected a string"},
    {9, "{\"a\":[[[[[]]]]]}", 0, "expected '{'"},
    {9, "{\"a\" {}}", 0, "expected ':'"},
    {9, "{\"a\\x\":{}}", 0, "no such escape"},
    {9, "{\"a\tb\":{}}", 0, "control character"},
    {9, "{\"\\u12g4\":{}}", 0, "four hex digits"},
    {9, "{\"\\ud800\":{}}", 0, "surrogate"},
    {9, "{\"\\ud800\\u0041\":{}}", 0, "surrogate"},
    {9, "{\"\\udc00\":{}}", 0, "surrogate"},
    {10, "{" A("0,8") "," A("8,16") "}", 16, "tensor 'a' twice"},
    {10,
     "{" A("0,8") ",\"\\u0061\":{\"dtype\":\"F32\",\"shape\":[2]," OFF(
         "8,16") "}}",
     16, "tensor 'a' twice"},
    {11, "{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}", 0, "twice"},
    {11, "{\"a\":{\"dtype\":\"F32\",\"shape\":[],\"x\":1," OFF("0,4") "}}", 4,
     "a key that is not"},
    {11, "{\"a\":{\"dtype\":\"F32\",\"shape\":[]}}", 4, "is missing"},
    {11, "{\"a\":{\"dtype\":\"F32\"," OFF("0,4") "}}", 4, "is missing"},
    {11, "{\"a\":{\"shape\":[]," OFF("0,4") "}}", 4, "is missing"},
    {11, "{\"a\":{}}", 0, "is missing"},
    {11,
     "{\"a\":{\"\\u0064type\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
     8, NULL},
    {12, "{\"__metadata__\":{},\"__metadata__\":{}}", 0, "twice"},
    {12, "{\"__metadata__\":{},\"__met\\u0061data__\":null}", 0, "twice"},
    {12, "{\"__metadata__\":{\"k\":1}}", 0, "expected a string"},
    {12, "{\"__metadata__\":{\"k\":null}}", 0, "expected a string"},
    {12, "{\"__metadata__\":{\"k\":\"v\",\"k\":\"w\"}}", 0, "key 'k' twice"},
    {12, "{\"__metadata__\":\"x\"}", 0, "expected '{'"},
    {13, "{\"__metadata__\":null," A("0,8") "}", 8, NULL},
    {13, "{\"__metadata__\":{}," A("0,8") "}", 8, NULL},
    {13, "{" A("0,8") ",\"__metadata__\":{\"format\":\"pt\"}}", 8, NULL},
    {14, SHAPED("f32", "2", "0,8"), 8, "unknown dtype 'f32'; known: U64 I64"},
    {14, SHAPED("Q4", "2", "0,8"), 8, "unknown dtype"},
    {14, "{\"a\":{\"dtype\":null,\"shape\":[2]," OFF("0,8") "}}", 8,
     "expected a string"},
    {15, SHAPED("F32", "-2", "0,8"), 8, "plain non-negative integer"},
    {15, SHAPED("F32", "2.0", "0,8"), 8, "plain non-negative integer"},
    {15, SHAPED("F32", "2e0", "0,8"), 8, "plain non-negative integer"},
    {15, SHAPED("F32", "02", "0,8"), 8, "plain non-negative integer"},
    {15, SHAPED("F32", "\"2\"", "0,8"), 8, "plain non-negative integer"},
    {15, SHAPED("F32", "9223372036854775808", "0,8"), 8, "above 2^63 - 1"},
    {15, SHAPED("U8", "18446744073709551617", "0,1"), 1, "above 2^63 - 1"},
    {15,
     SHAPED("U8",
            "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
            "1",
            "0,1"),
     1, "more than 32 dimensions"},
    {15,
     SHAPED("U8",
            "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1",
            "0,1"),
     1, NULL},
    {16, SHAPED("F32", "", "0,4"), 4, NULL},
    {17, SHAPED("F32", "0", "0,0"), 0, NULL},
    {17, "{" A("0,8") "," Z("8,8") "," B("8,16") "}", 16, NULL},
    {17, "{" Z("0,0") "," A("0,8") "}", 8, NULL},
    {17, "{" A("0,8") "," Z("8,8") "}", 8, NULL},
    {17, "{" A("0,8") "," Z("4,4") "}", 8, "overlap"},
    {18, SHAPED("F32", "2", "0"), 8, "expected ','"},
    {18, SHAPED("F32", "2", "0,8,8"), 8, "expected ']'"},
    {18, SHAPED("F32", "2", ""), 8, "plain non-negative integer"},
    {18, SHAPED("F32", "2", "8,0"), 8, "run backwards"},
    {18, SHAPED("F32", "2", "0,8.0"), 8, "plain non-negative integer"},
    {19, SHAPED("U8", "4294967296,4294967296", "0,0"), 0, "overflows"},
    {19, SHAPED("F32", "4611686018427387904", "0,0"), 0, "overflows"},
    {19, SHAPED("F64", "4611686018427387904,2", "0,0"), 0, "overflows"},
    {19, SHAPED("U8", "4294967296,4294967296,0", "0,0"), 0, NULL},
    {20, SHAPED("F4", "3", "0,1"), 1, "no whole number of bytes"},
    {20, SHAPED("F4", "4", "0,2"), 2, NULL},
    {20, SHAPED("F6_E2M3", "4", "0,3"), 3, NULL},
    {21, SHAPED("F32", "2", "0,7"), 7, "hold 7 bytes, F32 [2] needs 8"},
    {21, SHAPED("F32", "2,2", "0,12"), 12, "hold 12 bytes, F32 [2, 2] needs"},
    {22, SHAPED("F32", "2", "4,12"), 12, "starts at 4, not 0"},
    {22, SHAPED("F32", "2", "9223372036854775799,9223372036854775807"), 8,
     "not 0"},
    {23, "{" A("0,8") "," B("12,20") "}", 20, "leave a gap"},
    {23, "{" A("0,8") "," B("4,12") "}", 12,
     "'a' [0, 8) and 'b' [4, 12) overlap"},
    {23, "{" A("0,8") "," B("0,8") "}", 8, "overlap"},
    {24, SHAPED("F32", "2", "0,8"), 7,
     "cut short: the header needs 8 bytes of data, the file has 7; tensor 'a'"},
    {24, SHAPED("F32", "2", "0,8"), 9, "1 bytes after the last tensor's end"},
    {24, "{}", 1, "1 bytes after"},
    {25, "{}", 0, NULL},
    {26, "{\"\":{\"dtype\":\"U8\",\"shape\":[]," OFF("0,1") "}}", 1, NULL},
    {26,
     "{\"a/b\\u0001\\n\\ud83d\\ude00\":{\"dtype\":\"U8\",\"shape\":[]," OFF(
         "0,1") "}}",
     1, NULL},
    {26, "{\"a\\u0000\":{\"dtype\":\"U8\",\"shape\":[]," OFF("0,1") "}}", 1,
     "U+0000"},
};

static void test_rules(void)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err;
        char *file;
        size_t n = make_n(cases[i].header, strlen(cases[i].header),
                          cases[i].data, &file);
        enum err_code want = cases[i].says ? ERR_INPUT : ERR_NONE;

        put(file, n);
        free(file);
        enum err_code got = try_open(&err);
        bool good = got == want &&
                    (!cases[i].says || strstr(err.text, cases[i].says)) &&
                    !strchr(err.text, '\n');

        if (!ok(good, "row %d: %.60s", cases[i].row, cases[i].header))
            diag("status %d: '%s'", got, err.text);
    }
}

static void test_lengths(void)
{
    static const struct {
        const char *bytes;
        size_t len;
        const char *says, *name;
    } files[] = {
        {"", 0, "shorter than", "row 1: an empty file"},
        {"\2\0\0\0\0\0\0", 7, "shorter than", "row 1: seven bytes"},
        {"\1\xe1\xf5\5\0\0\0\0{}", 10, "at most 100000000",
         "row 2: a header of 100,000,001 bytes"},
        {"\xff\xff\xff\xff\xff\xff\xff\xff{}", 10, "at most",
         "row 3: a header of 2^64 - 1 bytes"},
        {"\3\0\0\0\0\0\0\0{}", 10, "cut short", "row 3: one byte too few"},
    };

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        struct err err;

        put(files[i].bytes, files[i].len);
        ok(try_open(&err) == ERR_INPUT && strstr(err.text, files[i].says), "%s",
           files[i].name);
    }
}

static void test_nul_in_header(void)
{
    struct err err;
    char *file;
    size_t n = make_n("{}\0\0", 4, 0, &file);

    put(file, n);
    free(file);
    ok(try_open(&err) == ERR_INPUT && strstr(err.text, "bytes after"),
       "row 8: NUL bytes after the object");
}

static void test_long_names(void)
{
    for (size_t len = 65536; len <= 65537; len++) {
        struct err err;
        struct buf header = BUF_INIT;
        char *file;

        buf_addstr(&header, "{\"");
        for (size_t i = 0; i < len; i++)
            buf_addch(&header, 'n');
        buf_addstr(&header,
                   "\":{\"dtype\":\"U8\",\"shape\":[]," OFF("0,1") "}}");
        size_t n = make_n(header.data, header.len, 1, &file);
        put(file, n);
        free(file);
        buf_release(&header);
        ok(try_open(&err) == (len > 65536 ? ERR_INPUT : ERR_NONE),
           "row 26: a name of %zu bytes", len);
    }
}

static void test_names_in_messages(void)
{
    struct err err;
    char *file;
    size_t n = make_n("{\"\\u001b[2J\\n\":{\"dtype\":\"U8\"}}", 31, 0, &file);

    put(file, n);
    free(file);
    try_open(&err);
    ok(strstr(err.text, "tensor '\\u001b[2J\\u000a'") != NULL,
       "row 26: a name is escaped when printed");
}

static void test_many_tensors(void)
{
    enum { COUNT = 100000 };
    for (int is_shared = 0; is_shared < 2; is_shared++) {
        struct buf header = BUF_INIT;
        struct err err;
        char *file;

        for (int i = 0; i < COUNT; i++) {
            int at = is_shared ? 0 : i;

            buf_addf(&header,
                     "%s\"layer.%d.weight\":{\"dtype\":\"U8\",\"shape\":[1],"
                     "\"data_offsets\":[%d,%d]}",
                     i ? "," : "{", (i * 7919) % COUNT, at, at + 1);
        }
        buf_addch(&header, '}');
        size_t n =
            make_n(header.data, header.len, is_shared ? 1 : COUNT, &file);
        put(file, n);
        free(file);
        buf_release(&header);
        enum err_code got = try_open(&err); /* quadratic would not end */

        ok(is_shared ? got == ERR_INPUT && strstr(err.text, "overlap")
                     : got == ERR_NONE,
           "row 28: 100,000 tensors %s",
           is_shared ? "over one range are refused" : "side by side are read");
    }
}

static void test_not_regular(void)
{
    struct err err;

    unlink(path);
    ok(try_open(&err) == ERR_INPUT, "no file is input trouble");
    mkdir(path, 0755);
    ok(try_open(&err) == ERR_INPUT, "row 30: a directory is refused");
    rmdir(path);
    if (mkfifo(path, 0644))
        exit(1);
    ok(try_open(&err) == ERR_INPUT && strstr(err.text, "not a regular file"),
       "row 30: a FIFO is refused, without waiting");
    unlink(path);
}

static const char good_header[] =
    "{\"__metadata__\":{\"format\":\"np\",\"a\":\"\\u00e9\"}," //
    "\"w\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[2,14]},"
    "\"h\":{\"dtype\":\"U8\",\"shape\":[1,2],\"data_offsets\":[0,2]}} ";

static void test_values(void)
{
    static const float want[3] = {1.5f, -2.0f, NAN};
    struct err err = ERR_INIT;
    struct tensor t;
    char *file;
    size_t n = make_n(good_header, strlen(good_header), 14, &file);

    memcpy(file + n - 12, want, 12);
    memcpy(file + n - 14, "\7\10", 2);
    put(file, n);
    struct safetensors *st = safetensors_open(path, &err);
    if (!ok(st != NULL, "an unaligned file with NaN is opened (row 27)"))
        exit(1);
    is_int((int64_t)safetensors_count(st), 2, "two tensors");
    is_str(safetensors_at(st, 0)->name, "h", "in byte order of names");
    is_str(safetensors_metadata(st, "format"), "np", "metadata");
    is_str(safetensors_metadata(st, "a"), "\xc3\xa9", "metadata, unescaped");
    ok(!safetensors_metadata(st, "x"), "no such metadata");
    ok(!safetensors_find(st, "x"), "no such tensor");
    ok(!safetensors_warning(st), "nothing to warn of");
    ok(safetensors_load(st, "w", 12, &t, &err) == 0 && t.shape.dims == 1 &&
           t.shape.size[0] == 3 && t.dtype == DTYPE_F32,
       "loaded with its shape");
    is_mem(t.data, want, 12, "and its bytes");
    tensor_release(&t);
    ok(safetensors_load(st, "w", 11, &t, &err) && err.code == ERR_INPUT,
       "more bytes than the cap are refused");
    err_clear(&err);
    ok(safetensors_load(st, "none", 99, &t, &err) && err.code == ERR_INPUT,
       "a tensor that is not there");
    err_clear(&err);
    unsigned char two[2];
    const struct tensor_info *h = safetensors_find(st, "h");
    ok(safetensors_read(st, h, 1, 1, two, &err) == 0 && two[0] == 8,
       "one byte of it");
    if (truncate(path, (off_t)n - 4))
        exit(1);
    ok(safetensors_load(st, "w", 12, &t, &err) && err.code == ERR_INPUT,
       "row 29: a file cut short under us is an error");
    safetensors_close(st);
    free(file);
}

static void test_every_cut(void)
{
    char *file;
    size_t n = make_n(good_header, strlen(good_header), 14, &file);
    int wrong = 0;

    for (size_t len = 0; len < n; len++) {
        struct err err;

        put(file, len);
        if (try_open(&err) != ERR_INPUT) {
            diag("%zu bytes were accepted", len);
            wrong++;
        }
    }
    is_int(wrong, 0, "a good file cut short at every byte is refused");
    wrong = 0;
    for (size_t i = 8; i < n - 14; i++) { /* any byte of the header */
        struct err err;
        char was = file[i];

        for (int bit = 0; bit < 8; bit++) {
            file[i] = (char)(was ^ 1 << bit);
            put(file, n);
            enum err_code got = try_open(&err);

            if (got != ERR_NONE && got != ERR_INPUT)
                wrong++;
        }
        file[i] = was;
    }
    is_int(wrong, 0, "a header with one bit changed is read or refused");
    free(file);
}

static void test_failed_allocations(void)
{
    char *file;
    size_t n = make_n(good_header, strlen(good_header), 14, &file);
    int failed = 0;

    put(file, n);
    free(file);
    /* The x functions end the program, so only mem_array's turns count. */
    for (uint64_t i = 1; i < 40; i++) {
        fflush(stdout);
        pid_t child = fork();

        if (child == 0) {
            struct err err;

            if (!freopen("/dev/null", "w", stderr))
                _exit(1);
            mem_fail_at(i);
            _exit((int)try_open(&err));
        }
        int status = 0;
        if (waitpid(child, &status, 0) < 0)
            exit(1);
        if (!WIFEXITED(status) || (WEXITSTATUS(status) != ERR_NONE &&
                                   WEXITSTATUS(status) != ERR_SYSTEM)) {
            ok(false, "allocation %d fails: status %d", (int)i, status);
            return;
        }
        failed += WEXITSTATUS(status) == ERR_SYSTEM;
    }
    ok(failed >= 5, "each failed allocation is a clean status 6 (%d)", failed);
}

static void test_recorded(void)
{
    static const struct {
        const char *path;
        int64_t count;
    } files[] = {
        {"../shared/data/bonsai-tiny-a/pack/model.safetensors", 0},
        {"../shared/data/families/kimi-k3-a/model.safetensors", 0},
        {"../shared/data/bonsai-tiny-a/captures/chart/inputs.safetensors", 0},
        {"fixtures/safetensors/good-names.safetensors", 9},
        {"fixtures/safetensors/good-dtypes.safetensors", 12},
        {"fixtures/safetensors/good-empty.safetensors", 0},
    };

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        struct err err = ERR_INIT;

        if (!io_exists(files[i].path)) {
            diag("not here: %s", files[i].path);
            continue;
        }
        struct safetensors *st = safetensors_open(files[i].path, &err);
        ok(st && (files[i].count == 0 ||
                  (int64_t)safetensors_count(st) == files[i].count),
           "%s is read", files[i].path);
        safetensors_close(st);
    }
}

int main(void)
{
    if (!mkdtemp(dir))
        return 1;
    snprintf(path, sizeof(path), "%s/x.safetensors", dir);
    test_lengths();
    test_rules();
    test_nul_in_header();
    test_long_names();
    test_names_in_messages();
    test_many_tensors();
    test_not_regular();
    test_values();
    test_every_cut();
    test_failed_allocations();
    test_recorded();
    unlink(path);
    rmdir(dir);
    return done();
}
