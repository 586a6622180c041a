/* executables: every program and library that a run's stage records name. */
#include "base/io.h"
#include "base/path.h"
#include "cli/cli.h"
#include "hash/hash.h"
#include "verbs.h"

#include <stdlib.h>
#include <string.h>

/* Puts an object into a list that is sorted by `key`, once. */
static void merge(json_t *list, const json_t *item, const char *key)
{
    const char *name = json_string_value(json_object_get(item, key));
    size_t i;
    json_t *other;

    if (!name)
        return;
    json_array_foreach(list, i, other)
    {
        const char *theirs = json_string_value(json_object_get(other, key));

        if (json_equal(other, item))
            return;
        if (strcmp(name, theirs) < 0)
            break;
    }
    json_array_insert(list, i, (json_t *)item);
}

/* "libjansson.so.4.14.0": what stands behind ".so.". */
static void merge_library(json_t *list, const json_t *library)
{
    const char *file = json_string_value(json_object_get(library, "file"));
    const char *version = file ? strstr(file, ".so.") : NULL;
    json_t *item =
        json_pack("{s:O?, s:s, s:O?}", "file", json_object_get(library, "file"),
                  "version", version ? version + 4 : "", "sha256",
                  json_object_get(library, "sha256"));

    merge(list, item, "file");
    json_decref(item);
}

static int collect(const char *dir, json_t *programs, json_t *libraries,
                   struct err *err)
{
    struct io_list list;
    int ret = 0;

    if (io_list(dir, &list, err))
        return -1;
    for (size_t i = 0; i < list.count && ret == 0; i++) {
        char *path = path_join(dir, list.names[i]);

        if (io_is_dir(path)) {
            ret = collect(path, programs, libraries, err);
        } else if (strcmp(list.names[i], "stage.json") == 0) {
            json_t *root = json_read_file(path, err), *library;
            size_t n;

            ret = root ? 0 : -1;
            merge(programs, json_object_get(root, "program"), "name");
            json_array_foreach(json_object_get(root, "libraries"), n, library)
                merge_library(libraries, library);
            json_decref(root);
        }
        free(path);
    }
    io_list_release(&list);
    return ret;
}

json_t *executables_json(const char *data, const char *candidate,
                         struct err *err)
{
    json_t *root = json_object(), *programs = json_array(),
           *libraries = json_array();
    char sha256[HASH_SHA256_HEX];
    int64_t size;
    int ret = collect(data, programs, libraries, err);

    json_object_set_new(root, "programs", programs);
    json_object_set_new(root, "libraries", libraries);
    if (ret == 0 && candidate) {
        ret = hash_sha256_file(candidate, sha256, &size, err);
        if (ret == 0)
            json_object_set_new(root, "candidate",
                                json_pack("{s:s, s:I, s:s}", "file",
                                          path_base(candidate), "size",
                                          (json_int_t)size, "sha256", sha256));
    }
    if (ret == 0)
        return root;
    json_decref(root);
    return NULL;
}

int verb_executables(int argc, char **argv)
{
    const char *candidate = NULL, *out = NULL;
    const struct cli_opt options[] = {
        {'c', "candidate", "file", "the engine that made the candidate",
         CLI_STR, &candidate},
        {'o', "out", "file", "where it goes; must not exist", CLI_NEEDED, &out},
        {0},
    };
    const struct cli_command command = {
        "assay-receipt",
        "executables",
        "DATA",
        "Lists every program and library that the stage records name.",
        options,
        1,
        1};
    struct cli_list rest = {NULL, 0};
    struct err err = ERR_INIT;

    if (cli_parse(&command, argc, argv, &rest, &err) == 0)
        put_json(executables_json(rest.items[0], candidate, &err), out, &err);
    free(rest.items);
    return cli_finish(&command, &err);
}
