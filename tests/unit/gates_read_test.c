/* gates.json: what is read, and what is refused by name. */
#include "base/io.h"
#include "base/mem.h"
#include "gates/gates.h"
#include "tap.h"

#include <unistd.h>

static char folder[] = "/tmp/gates-XXXXXX";

static int read_text(const char *text, struct gates *out, struct err *err)
{
    static int number;
    char *path = xasprintf("%s/%d.json", folder, number++);
    struct err ignored = ERR_INIT;

    io_write_file(path, text, strlen(text), &ignored);
    int ret = gates_read(path, out, err);
    free(path);
    return ret;
}

static void test_seed_gates(void)
{
    static const char text[] =
        "{\"gates\": ["
        "{\"name\": \"prompt_ids\", \"tensor\": \"prompt_ids\","
        " \"metric\": \"exact\"},"
        "{\"name\": \"patches\", \"tensor\": \"patches\","
        " \"metric\": \"max_abs\", \"at_most\": 1e-6, \"when\": \"images\"},"
        "{\"name\": \"likeness\", \"tensor\": \"trace.*\","
        " \"metric\": \"cosine\", \"at_least\": 0.99, \"when\": \"always\","
        " \"note\": \"why\"}]}";
    struct gates g;
    struct err err = ERR_INIT;

    is_int(read_text(text, &g, &err), 0, "sound gates are read");
    is_int((int64_t)g.count, 3, "all of them");
    is_str(g.items[1].name, "patches", "by name");
    ok(g.items[1].images_only && !g.items[2].images_only, "when they apply");
    ok(g.items[1].limit == 1e-6 && g.items[1].relation == GATE_AT_MOST,
       "with their limit");
    ok(gate_holds(&g.items[1], 1e-6) && !gate_holds(&g.items[1], 1.1e-6),
       "at_most holds at the limit and not above");
    ok(gate_holds(&g.items[2], 0.99) && !gate_holds(&g.items[2], 0.98),
       "at_least holds at the limit and not below");
    ok(!gate_holds(&g.items[1], NAN) && !gate_holds(&g.items[2], NAN) &&
           !gate_holds(&g.items[0], NAN),
       "a NaN holds no limit");
    char want[HASH_SHA256_HEX];
    hash_sha256(text, strlen(text), want);
    is_str(g.sha256, want, "the digest is that of the bytes");
    gates_release(&g);
}

#define GATE(rest) \
    "{\"gates\": [{\"name\": \"g\", \"tensor\": \"t\", " rest "}]}"

static const struct {
    const char *text;
    enum err_code code;
    const char *says;
} bad[] = {
    {"[]", ERR_INPUT, "is not an object"},
    {"{}", ERR_INPUT, "no 'gates'"},
    {"{\"gates\": []}", ERR_INPUT, "'gates' lists none"},
    {"{\"gates\": {}}", ERR_INPUT, "'gates' is not an array"},
    {"{\"gates\": [3]}", ERR_INPUT, "gate 1: is not an object"},
    {"{\"gates\": [{}]}", ERR_INPUT, "gate 1: no 'name'"},
    {GATE("\"metric\": \"nmse\", \"at_most\": 1"), ERR_UNSUPPORTED,
     "gate 'g': unknown metric 'nmse'"},
    {GATE("\"metric\": \"exact\", \"skip\": true"), ERR_UNSUPPORTED,
     "gate 'g': unknown key 'skip'"},
    {GATE("\"metric\": \"exact\", \"when\": \"never\""), ERR_UNSUPPORTED,
     "gate 'g': unknown 'when' 'never'"},
    {"{\"gates\": [{\"name\": \"g\", \"tensor\": \"t\", \"metric\": "
     "\"exact\"}], \"tolerance\": 2}",
     ERR_UNSUPPORTED, "unknown key 'tolerance'"},
    {GATE("\"metric\": \"max_abs\""), ERR_INPUT, "gate 'g': no 'at_most'"},
    {GATE("\"metric\": \"max_abs\", \"at_most\": \"1\""), ERR_INPUT,
     "gate 'g': 'at_most' is not a number"},
    {GATE("\"metric\": \"max_abs\", \"at_most\": -1"), ERR_INPUT,
     "gate 'g': 'at_most' is negative"},
    {GATE("\"metric\": \"max_abs\", \"at_least\": 1"), ERR_INPUT,
     "gate 'g': metric 'max_abs' takes at_most, not 'at_least'"},
    {GATE("\"metric\": \"cosine\", \"at_most\": 1"), ERR_INPUT,
     "gate 'g': metric 'cosine' takes at_least, not 'at_most'"},
    {GATE("\"metric\": \"cosine\", \"at_least\": 2"), ERR_INPUT,
     "gate 'g': 'at_least' of a cosine is beyond 1"},
    {GATE("\"metric\": \"exact\", \"at_most\": 5"), ERR_INPUT,
     "gate 'g': metric 'exact' takes no limit, not 'at_most'"},
    {GATE("\"metric\": \"max_abs\", \"at_most\": 1e301"), ERR_INPUT,
     "gate 'g': 'at_most' is too large"},
    {"{\"gates\": [{\"name\": \"\", \"tensor\": \"t\", \"metric\": "
     "\"exact\"}]}",
     ERR_INPUT, "gate 1: 'name' is empty"},
    {"{\"gates\": [{\"name\": \"a\\u001b\", \"tensor\": \"t\", \"metric\": "
     "\"exact\"}]}",
     ERR_INPUT, "gate 1: 'name' holds a control character"},
    {"{\"gates\": [{\"name\": \"g\", \"tensor\": \"t\", \"metric\": "
     "\"exact\"}, {\"name\": \"g\", \"tensor\": \"u\", \"metric\": "
     "\"exact\"}]}",
     ERR_INPUT, "gate 'g' is there twice"},
    {GATE("\"metric\": \"max_abs\", \"at_most\": 1, \"at_most\": 2"), ERR_INPUT,
     "duplicate"},
    {"\xef\xbb\xbf{\"gates\": []}", ERR_INPUT, "byte order mark"},
};

static void test_refusals(void)
{
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct gates g;
        struct err err = ERR_INIT;

        ok(read_text(bad[i].text, &g, &err) == -1 && err.code == bad[i].code &&
               strstr(err.text, bad[i].says),
           "refused: %s", bad[i].says);
        if (!strstr(err.text, bad[i].says))
            diag("said '%s'", err.text);
    }
}

static void test_every_cut(void)
{
    static const char text[] =
        GATE("\"metric\": \"max_abs\", \"at_most\": 1e-6");
    int wrong = 0;

    for (size_t n = 0; n + 1 < strlen(text); n++) {
        char *cut = xstrndup(text, n);
        struct gates g;
        struct err err = ERR_INIT;

        wrong += read_text(cut, &g, &err) != -1 || err.code != ERR_INPUT;
        free(cut);
    }
    is_int(wrong, 0, "a file cut short at any byte is refused");
}

int main(void)
{
    struct err err = ERR_INIT;

    if (!mkdtemp(folder))
        return 1;
    test_seed_gates();
    test_refusals();
    test_every_cut();
    io_remove_tree(folder, &err);
    return done();
}
