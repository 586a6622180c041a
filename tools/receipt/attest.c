/* attest: the verdict as an in-toto test-result statement (formats.md 6.4). */
#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "cli/cli.h"
#include "hash/hash.h"
#include "verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

static json_t *resource(const char *name, const char *sha256)
{
    return json_pack("{s:s, s:{s:s}}", "name", name, "digest", "sha256",
                     sha256);
}

/* A file of the run, by its name without the folder. */
static int add_file(json_t *list, const char *data, const char *below,
                    struct err *err)
{
    char *path = path_join(data, below);
    char sha256[HASH_SHA256_HEX];
    int ret = hash_sha256_file(path, sha256, NULL, err);

    if (ret == 0)
        json_array_append_new(list, resource(path_base(below), sha256));
    free(path);
    return ret;
}

/* What was judged: the engine named as the candidate's, else our forward. */
static int add_engine(json_t *list, const char *data, struct err *err)
{
    char *path = path_join(data, "executables.json");
    json_t *root = json_read_file(path, err), *item;
    const json_t *candidate = json_object_get(root, "candidate");
    char *captures = path_join(data, "candidate");
    size_t i;

    if (candidate)
        json_array_append_new(list, resource(text_of(candidate, "file"),
                                             text_of(candidate, "sha256")));
    else if (!io_is_dir(captures))
        json_array_foreach(
            json_object_get(root, "programs"), i,
            item) if (strcmp(text_of(item, "name"), "assay-forward") == 0)
            json_array_append_new(
                list, resource(text_of(item, "name"), text_of(item, "sha256")));
    free(captures);
    free(path);
    json_decref(root);
    return root ? 0 : -1;
}

static void add_tests(const json_t *summary, json_t *passed, json_t *failed)
{
    json_t *item, *gate;
    size_t i, k;

    json_array_foreach(json_object_get(summary, "cases"), i, item)
        json_array_foreach(json_object_get(item, "gates"), k, gate)
    {
        const char *verdict = text_of(gate, "verdict");
        char *name =
            xasprintf("%s/%s", text_of(item, "name"), text_of(gate, "name"));

        if (strcmp(verdict, "pass") == 0)
            json_array_append_new(passed, json_string(name));
        else if (strcmp(verdict, "not applicable") != 0)
            json_array_append_new(failed, json_string(name));
        free(name);
    }
}

json_t *attest_json(const char *data, struct err *err)
{
    static const char *const frozen[] = {
        "inputs/protocol.json", "inputs/cases.json", "inputs/gates.json"};
    char *path = path_join(data, "compare/summary.json");
    json_t *summary = json_read_file(path, err), *root = NULL;
    json_t *subject = json_array(), *configuration = json_array();
    json_t *passed = json_array(), *failed = json_array();
    int ret = summary ? 0 : -1;

    if (ret == 0)
        ret = add_file(subject, data, "source/receipt.json", err) ||
                      add_engine(subject, data, err)
                  ? -1
                  : 0;
    for (size_t i = 0; i < 3 && ret == 0; i++)
        ret = add_file(configuration, data, frozen[i], err);
    if (ret == 0) {
        add_tests(summary, passed, failed);
        root = json_pack(
            "{s:s, s:O, s:s, s:{s:s, s:O, s:O, s:O}}", "_type",
            "https://in-toto.io/Statement/v1", "subject", subject,
            "predicateType", "https://in-toto.io/attestation/test-result/v0.1",
            "predicate", "result",
            strcmp(text_of(summary, "verdict"), "pass") == 0 ? "PASSED"
                                                             : "FAILED",
            "configuration", configuration, "passedTests", passed,
            "failedTests", failed);
        if (!root)
            err_set(err, ERR_INPUT, "%s: a name is not UTF-8", path);
    }
    json_decref(summary);
    json_decref(subject);
    json_decref(configuration);
    json_decref(passed);
    json_decref(failed);
    free(path);
    return root;
}

int verb_attest(int argc, char **argv)
{
    const char *out = NULL;
    const struct cli_opt options[] = {
        {'o', "out", "file", "where it goes; must not exist", CLI_NEEDED, &out},
        {0},
    };
    const struct cli_command command = {
        "assay-receipt",
        "attest",
        "DATA",
        "Writes a run's verdict as an in-toto test-result statement.",
        options,
        1,
        1};
    struct cli_list rest = {NULL, 0};
    struct err err = ERR_INIT;

    if (cli_parse(&command, argc, argv, &rest, &err) == 0)
        put_json(attest_json(rest.items[0], &err), out, &err);
    free(rest.items);
    return cli_finish(&command, &err);
}
