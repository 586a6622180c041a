/* cases.json and protocol.json: what is read, and what is refused by name. */
#include "cases/cases.h"
#include "cases/protocol.h"

#include "base/io.h"
#include "base/mem.h"
#include "tap.h"

#include <unistd.h>

static char *folder, *file;

static void put(const char *text)
{
    struct err err = ERR_INIT;

    unlink(file);
    if (io_write_file(file, text, strlen(text), &err))
        ok(false, "%s", err.text);
}

#define HEX "AB00000000000000000000000000000000000000000000000000000000000000"
#define MESSAGE "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]"
#define IMAGES                                                            \
    "\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image\"}," \
    "{\"type\":\"text\",\"text\":\"x\"},{\"image\":\"y\"}]}]"

static const struct {
    const char *text, *says;
    enum err_code code;
} bad_cases[] = {
    {"[]", "no cases", ERR_INPUT},
    {"3", "neither a list nor an object", ERR_INPUT},
    {"{\"cases\":[],\"x\":1}", "unknown key 'x'", ERR_UNSUPPORTED},
    {"{}", "no 'cases'", ERR_INPUT},
    {"[3]", "case 0: not an object", ERR_INPUT},
    {"[{" MESSAGE "}]", "case 0: no 'name'", ERR_INPUT},
    {"[{\"name\":\"../x\"," MESSAGE "}]", "case 0: ", ERR_INPUT},
    {"[{\"name\":\".a\"," MESSAGE "}]", "case 0: ", ERR_INPUT},
    {"[{\"name\":\"a\"}]", "case 'a': no 'messages'", ERR_INPUT},
    {"[{\"name\":\"a\",\"messages\":[]}]", "'messages' is empty", ERR_INPUT},
    {"[{\"name\":\"a\",\"messages\":[1]}]", "message 0 is not an object",
     ERR_INPUT},
    {"[{\"name\":\"a\",\"messages\":[{}]}]", "message 0: no 'role'", ERR_INPUT},
    {"[{\"name\":\"a\"," MESSAGE ",\"think\":true}]", "unknown key 'think'",
     ERR_UNSUPPORTED},
    {"[{\"name\":\"a\"," MESSAGE ",\"thinking\":1}]",
     "'thinking' is not true or false", ERR_INPUT},
    {"[{\"name\":\"a\"," MESSAGE ",\"max_new_tokens\":-1}]", "is negative",
     ERR_INPUT},
    {"[{\"name\":\"a\"," MESSAGE ",\"now\":\"2026-02-30T00:00:00Z\"}]",
     "'now' is not YYYY", ERR_INPUT},
    {"[{\"name\":\"a\"," MESSAGE ",\"tools\":{}}]", "'tools' is not a",
     ERR_INPUT},
    {"[{\"name\":\"a\"," MESSAGE ",\"template\":[]}]", "'template' is not a",
     ERR_INPUT},
    {"[{\"name\":\"a\"," MESSAGE
     ",\"thinking\":true,\"template\":{\"enable_thinking\":false}}]",
     "'template' has 'enable_thinking' too", ERR_INPUT},
    {"[{\"name\":\"a\"," MESSAGE "},{\"name\":\"A\"," MESSAGE "}]",
     "two cases are named 'A' but for case", ERR_INPUT},
    {"[{\"name\":\"a\"," IMAGES "}]",
     "the messages hold 2 images, 'images' lists 0", ERR_INPUT},
    {"[{\"name\":\"a\"," MESSAGE ",\"images\":[{\"file\":\"x\",\"sha256\":"
     "\"" HEX "\"}]}]",
     "the messages hold 0 images, 'images' lists 1", ERR_INPUT},
    {"[{\"name\":\"a\"," IMAGES ",\"images\":[{\"file\":\"/x\",\"sha256\":"
     "\"" HEX "\"},{}]}]",
     "case 'a': image 0: ", ERR_INPUT},
    {"[{\"name\":\"a\"," IMAGES ",\"images\":[{\"file\":\"x/../y\","
     "\"sha256\":\"" HEX "\"},{}]}]",
     "case 'a': image 0: ", ERR_INPUT},
    {"[{\"name\":\"a\"," IMAGES ",\"images\":[{\"file\":\"x\",\"sha256\":"
     "\"12\"},{}]}]",
     "image 0: 'sha256' is not 64 hex digits", ERR_INPUT},
    {"[{\"name\":\"a\"," IMAGES ",\"images\":[{\"file\":\"x\",\"sha256\":"
     "\"" HEX "\",\"md5\":\"\"},{}]}]",
     "image 0: unknown key 'md5'", ERR_UNSUPPORTED},
    {"[{\"name\":\"a\",\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":"
     "\"video\"}]}]}]",
     "videos are not supported", ERR_UNSUPPORTED},
    {"[{\"name\":\"a\",\"name\":\"b\"," MESSAGE "}]", "line 1", ERR_INPUT},
    {"\xef\xbb\xbf[]", "byte order mark", ERR_INPUT},
    {"[", "line 1", ERR_INPUT},
    {"", "line 1", ERR_INPUT},
};

static void test_bad_cases(void)
{
    for (size_t i = 0; i < sizeof(bad_cases) / sizeof(bad_cases[0]); i++) {
        struct case_list list;
        struct err err = ERR_INIT;

        put(bad_cases[i].text);
        int ret = case_list_read(file, &list, &err);
        if (!ok(ret == -1 && err.code == bad_cases[i].code &&
                    strstr(err.text, bad_cases[i].says) &&
                    strstr(err.text, "c.json"),
                "cases %s", bad_cases[i].text))
            diag("%d: %s", err.code, err.text);
        case_list_release(&list);
    }
}

static void test_good_cases(void)
{
    struct case_list list;
    struct err err = ERR_INIT;
    struct buf bytes = BUF_INIT;

    put("{\"cases\":[{\"name\":\"a\"," IMAGES
        ",\"thinking\":true,\"max_new_tokens\":7,\"now\":"
        "\"2024-02-29T23:59:59Z\",\"tools\":[1],\"documents\":[],\"template\":"
        "{\"k\":1},\"images\":[{\"file\":\"i/x.png\",\"sha256\":\"" HEX
        "\"},{\"file\":\"c.json\",\"sha256\":\"" HEX
        "\"}]},{\"name\":\"b\"," MESSAGE "}]}");
    is_int(case_list_read(file, &list, &err), 0, "two cases are read");
    is_int((int64_t)list.count, 2, "both are there");
    const struct test_case *a = case_list_find(&list, "a", &err);
    const struct test_case *b = case_list_find(&list, "b", &err);
    ok(a && a->has_thinking && a->thinking && a->max_new_tokens == 7 &&
           a->tools && a->documents && a->arguments && a->image_count == 2,
       "every key of the first");
    is_str(a->now, "2024-02-29T23:59:59Z", "its clock");
    char *path = xasprintf("%s/i/x.png", folder);
    is_str(a->images[0].path, path, "images lie beside the file");
    free(path);
    ok(a->images[0].sha256[0] == 'a' && a->images[0].sha256[1] == 'b',
       "digests are lower case");
    ok(b && !b->has_thinking && b->max_new_tokens == -1 && !b->now &&
           !b->tools && b->image_count == 0,
       "the second says only what it must");
    ok(case_image_read(&a->images[1], &bytes, &err) == -1 &&
           err.code == ERR_INPUT && strstr(err.text, "the case names ab00"),
       "a file with another digest is refused");
    err_clear(&err);
    ok(!case_list_find(&list, "c", &err) &&
           strstr(err.text, "no case 'c'; there are: a, b"),
       "a case that is not there");
    buf_release(&bytes);
    case_list_release(&list);
}

static void test_protocol(void)
{
    static const struct {
        const char *text, *says;
        enum err_code code;
    } bad[] = {
        {"[]", "not an object", ERR_INPUT},
        {"{\"contxt\":1}", "unknown key 'contxt'", ERR_UNSUPPORTED},
        {"{\"context\":0}", "'context' is 0", ERR_INPUT},
        {"{\"context\":1.5}", "'context' is not", ERR_INPUT},
        {"{\"prefill_chunk\":-1}", "'prefill_chunk' is -1", ERR_INPUT},
        {"{\"tail\":\"two\"}", "'tail' is 'two'", ERR_UNSUPPORTED},
        {"{\"compute\":\"f8\"}", "'compute' is 'f8'", ERR_UNSUPPORTED},
        {"{\"sums\":\"any\"}", "'sums' is 'any'", ERR_UNSUPPORTED},
        {"{\"tokenizer\":\"x\"}", "'tokenizer' is 'x'", ERR_UNSUPPORTED},
        {"{\"now\":\"yesterday\"}", "'now' is not YYYY", ERR_INPUT},
        {"{\"now\":null}", "'now' is not a string", ERR_INPUT},
    };
    struct protocol p;
    struct err err = ERR_INIT;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        err_clear(&err);
        put(bad[i].text);
        if (!ok(protocol_read(file, &p, &err) == -1 &&
                    err.code == bad[i].code && strstr(err.text, bad[i].says),
                "protocol %s", bad[i].text))
            diag("%d: %s", err.code, err.text);
        protocol_release(&p);
    }
    err_clear(&err);
    put("{\"context\":16384,\"prefill_chunk\":256,\"tail\":\"one\","
        "\"max_new_tokens\":0,\"compute\":\"bf16\",\"sums\":\"chain\",\"image_"
        "library\":\"pillow "
        "13.0\",\"transformers\":\"5.24.0\",\"tokenizer\":\"class\",\"now\":"
        "\"2026-02-03T04:05:06Z\"}");
    ok(protocol_read(file, &p, &err) == 0 && p.context == 16384 &&
           p.prefill_chunk == 256 && p.tail == PROTOCOL_TAIL_ONE &&
           p.max_new_tokens == 0 && strcmp(p.compute, "bf16") == 0 &&
           strcmp(p.sums, "chain") == 0 &&
           strcmp(p.image_library, "pillow 13.0") == 0 &&
           strcmp(p.transformers, "5.24.0") == 0 &&
           strcmp(p.tokenizer, "class") == 0 && p.now && p.sha256[0],
       "every key of a protocol");
    protocol_release(&p);
    ok(protocol_read(NULL, &p, &err) == 0 && p.context == 0 &&
           p.prefill_chunk == 512 && p.tail == PROTOCOL_TAIL_ALL &&
           p.max_new_tokens == 64 && !p.compute && !p.sums && !p.tokenizer &&
           !p.now,
       "the defaults");
    protocol_release(&p);
}

int main(void)
{
    struct err err = ERR_INIT;
    char template[] = "/tmp/assay-cases-XXXXXX";

    folder = mkdtemp(template);
    if (!folder)
        return 1;
    file = xasprintf("%s/c.json", folder);
    test_bad_cases();
    test_good_cases();
    test_protocol();
    ok(io_remove_tree(folder, &err) == 0, "the scratch folder is removed");
    free(file);
    return done();
}
