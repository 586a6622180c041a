/* Stage records: roles, order, chain, and the same bytes in two places. */
#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "evidence/stage.h"
#include "hash/hash.h"
#include "tap.h"

#include <unistd.h>

static void put(const char *dir, const char *name, const char *text)
{
    struct err err = ERR_INIT;
    char *path = path_join(dir, name);

    if (io_write_file(path, text, strlen(text), &err))
        diag("%s", err.text);
    free(path);
}

/* A record made in `root`, as a tool would; its text, freed by the caller. */
static char *record_in(const char *root, const char *out_name)
{
    struct err err = ERR_INIT;
    char *role = xasprintf("RUN=%s/run", root);
    char *after = xasprintf("%s/run/source/stage.json", root);
    char *frozen = xasprintf("%s/run/inputs", root);
    char *pack = xasprintf("%s/pack/", root);
    char *config = xasprintf("%s/pack/config.json", root);
    char *cases = xasprintf("--cases=%s/run/inputs/cases.json", root);
    char *out = xasprintf("%s/run/%s", root, out_name);
    char *given = xasprintf("--role=%s", role);
    char *argv[] = {"/somewhere/assay-export",
                    "--pack",
                    pack,
                    given,
                    cases,
                    "--case",
                    "chart",
                    "-n1",
                    NULL};
    const char *roles[] = {role}, *afters[] = {after};
    struct stage_options options = {
        .roles = {roles, 1}, .after = {afters, 1}, .frozen = frozen};
    struct buf text = BUF_INIT;

    put(root, "run/inputs/protocol.json", "{}\n");
    put(root, "run/inputs/cases.json", "[]\n");
    put(root, "run/inputs/gates.json", "{}\n");
    put(root, "run/source/stage.json", "{}\n");
    put(root, "pack/config.json", "{\"a\": 1}\n");
    put(out, "prompt.txt", "hello\n");
    struct stage *s = stage_new("assay-export", 8, argv, &options, &err);
    ok(s != NULL, "a record begins: %s", err.text);
    stage_role(s, "PACK", pack);
    stage_role(s, "OUT", NULL);
    stage_set(s, "image_library", json_string("pillow 12.3"));
    struct stage *copy = stage_copy(s);
    stage_free(s);
    ok(stage_input(copy, config, &err) == 0 &&
           stage_input(copy, config, &err) == 0 &&
           stage_output(copy, out, "prompt.txt", &err) == 0 &&
           stage_write(copy, out, &err) == 0,
       "inputs, outputs and the file: %s", err.text);
    stage_free(copy);
    char *path = path_join(out, "stage.json");
    io_read_file(path, 1 << 20, &text, &err);
    free(path);
    free(role);
    free(after);
    free(frozen);
    free(pack);
    free(config);
    free(cases);
    free(out);
    free(given);
    return buf_detach(&text);
}

static const char *at(const json_t *root, const char *key, size_t i,
                      const char *field)
{
    json_t *item = json_array_get(json_object_get(root, key), i);

    return json_string_value(field ? json_object_get(item, field) : item);
}

static void check_names(const char *root)
{
    struct err err = ERR_INIT;
    char *argv[] = {"x", NULL};
    char *deep = xasprintf("%s/pack/sub", root);
    struct stage *s = stage_new("x", 1, argv, NULL, &err);

    stage_role(s, "ROOT", root);
    stage_role(s, "SUB", deep);
    const struct {
        const char *path, *want;
    } names[] = {
        {"", "ROOT"},
        {"/pack/config.json", "ROOT/pack/config.json"},
        {"/pack/sub", "SUB"},
        {"/pack/sub/../x", "ROOT/pack/x"},
        {"/pack/./sub//y", "SUB/y"},
        {"/pack/subway", "ROOT/pack/subway"},
        {"/../z", "ELSEWHERE/z"},
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char *path = xasprintf("%s%s", root, names[i].path);
        char *name = stage_name(s, path);

        is_str(name, names[i].want, names[i].want);
        free(name);
        free(path);
    }
    char *link = xasprintf("%s-link", root);
    ok(symlink(root, link) == 0, "a link to the folder");
    char *through = path_join(link, "pack/config.json");
    char *name = stage_name(s, through);
    is_str(name, "ROOT/pack/config.json", "links are followed");
    unlink(link);
    free(name);
    free(through);
    free(link);
    free(deep);
    stage_free(s);
}

static void check_refusals(void)
{
    static const char *const bad[] = {"RUN", "=x", "RUN=", "run=x", "R N=x"};
    char *argv[] = {"x", NULL};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const char *roles[] = {bad[i]};
        struct stage_options options = {.roles = {roles, 1}};
        struct err err = ERR_INIT;

        ok(stage_new("x", 1, argv, &options, &err) == NULL &&
               err.code == ERR_USAGE,
           "refused: --role=%s", bad[i]);
    }
    struct stage_options options = {.frozen = "/nowhere/at/all"};
    struct err err = ERR_INIT;
    ok(stage_new("x", 1, argv, &options, &err) == NULL && err.code == ERR_INPUT,
       "refused: a frozen folder that is not there");
}

int main(void)
{
    char dir[] = "/tmp/stage_test.XXXXXX";
    struct err err = ERR_INIT;

    if (!mkdtemp(dir))
        return 1;
    char *first = path_join(dir, "a"), *second = path_join(dir, "b/c");
    char *x = record_in(first, "export/chart");
    char *y = record_in(second, "export/chart");
    is_str(x, y, "two places, the same bytes");
    json_t *root = json_parse(x, strlen(x), &err);
    is_str(at(root, "arguments", 1, NULL), "PACK", "an argument as a role");
    is_str(at(root, "arguments", 2, NULL), "--cases=RUN/inputs/cases.json",
           "--name=path too, and no --role");
    is_str(at(root, "arguments", 4, NULL), "chart", "a plain word stays");
    is_str(at(root, "inputs", 0, "path"), "PACK/config.json", "first input");
    is_str(at(root, "inputs", 1, "path"), "RUN/source/stage.json",
           "--after is an input");
    is_int((int)json_array_size(json_object_get(root, "inputs")), 2,
           "the same input twice counts once");
    is_str(at(root, "outputs", 0, "path"), "prompt.txt", "output");
    is_str(at(root, "outputs", 0, "sha256"),
           "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03",
           "its digest (sha256sum)");
    json_t *frozen = json_object_get(root, "frozen");
    is_int((int)json_object_size(frozen), 3, "three frozen files");
    ok(!strstr(x, dir), "no absolute path");
    json_decref(root);
    check_names(first);
    check_refusals();
    free(x);
    free(y);
    free(first);
    free(second);
    io_remove_tree(dir, &err);
    return done();
}
