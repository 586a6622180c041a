/* The steps of a run that a shell cannot do safely: freeze, cases, keep,
 * executables, seal, publish. */
#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/publish.h"
#include "cases/cases.h"
#include "cases/protocol.h"
#include "cli/cli.h"
#include "evidence/bag.h"
#include "verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* -------------------------------------------------------------- freeze */

static int put_file(const char *dir, const char *name, const char *data,
                    size_t len, struct err *err)
{
    char *path = path_join(dir, name);
    int ret = io_write_file(path, data, len, err);

    free(path);
    return ret;
}

static int freeze_file(const char *from, const char *dir, const char *name,
                       struct err *err)
{
    char *to = path_join(dir, name);
    int ret = io_copy_file(from, to, err);

    free(to);
    return ret;
}

/* The image's bytes, which have the digest that the case names. */
static int freeze_image(const struct case_image *image, const char *dir,
                        struct err *err)
{
    struct buf bytes = BUF_INIT;
    char *to = path_join(dir, image->file);
    int ret = -1;

    if (path_check(image->file, err))
        goto out;
    ret = case_image_read(image, &bytes, err);
    if (ret == 0 && !io_exists(to))
        ret = put_file(dir, image->file, bytes.data, bytes.len, err);
out:
    free(to);
    buf_release(&bytes);
    return ret;
}

static int freeze_cases(const struct case_list *list, const char *dir,
                        struct err *err)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct test_case *c = &list->cases[i];

        if (path_check_name(c->name, err))
            return -1;
        for (size_t k = 0; k < c->image_count; k++)
            if (freeze_image(&c->images[k], dir, err))
                return err_in(err, "case '%s'", c->name);
    }
    return 0;
}

static int freeze(const char *cases, const char *protocol, const char *gates,
                  const char *out, struct err *err)
{
    struct case_list list = CASE_LIST_INIT;
    struct protocol rules = {0};
    struct publish p = PUBLISH_INIT;
    int ret = -1;

    if (case_list_read(cases, &list, err) ||
        protocol_read(protocol, &rules, err) || publish_begin(&p, out, err))
        goto out;
    if (freeze_file(cases, p.part, "cases.json", err) ||
        freeze_file(protocol, p.part, "protocol.json", err) ||
        freeze_file(gates, p.part, "gates.json", err) ||
        freeze_cases(&list, p.part, err))
        publish_abort(&p);
    else
        ret = publish_commit(&p, err);
out:
    protocol_release(&rules);
    case_list_release(&list);
    return ret;
}

int verb_freeze(int argc, char **argv)
{
    const char *cases = NULL, *protocol = NULL, *gates = NULL, *out = NULL;
    const struct cli_opt options[] = {
        {'c', "cases", "file", "the cases, beside their images", CLI_NEEDED,
         &cases},
        {'p', "protocol", "file", "the rules", CLI_NEEDED, &protocol},
        {'g', "gates", "file", "the limits", CLI_NEEDED, &gates},
        {'o', "out", "dir", "where the copies go; must not exist", CLI_NEEDED,
         &out},
        {0},
    };
    const struct cli_command command = {
        "assay-receipt",
        "freeze",
        "",
        "Copies what a run freezes: cases, images, protocol and gates.",
        options,
        0,
        0};
    struct cli_list rest = {NULL, 0};
    struct err err = ERR_INIT;

    if (cli_parse(&command, argc, argv, &rest, &err) == 0)
        freeze(cases, protocol, gates, out, &err);
    free(rest.items);
    return cli_finish(&command, &err);
}

int verb_cases(int argc, char **argv)
{
    const struct cli_command command = {"assay-receipt",
                                        "cases",
                                        "CASES",
                                        "Prints the names of the cases.",
                                        NULL,
                                        1,
                                        1};
    struct cli_list rest = {NULL, 0};
    struct case_list list = CASE_LIST_INIT;
    struct err err = ERR_INIT;

    if (cli_parse(&command, argc, argv, &rest, &err) == 0 &&
        case_list_read(rest.items[0], &list, &err) == 0)
        for (size_t i = 0; i < list.count; i++)
            printf("%s\n", list.cases[i].name);
    case_list_release(&list);
    free(rest.items);
    return cli_finish(&command, &err);
}

/* ---------------------------------------------------------------- keep */

/* A file's identity, links followed. */
struct place {
    dev_t device;
    ino_t inode;
};

struct keep {
    const char *from, *unlike;
    char *to;
    struct place *others; /* every file in the folders of `unlike` */
    size_t other_count;
    bool digests;
    json_t *list; /* of the case at hand */
};

static bool is_other(const struct keep *k, const char *path)
{
    struct stat st;

    if (k->other_count == 0 || stat(path, &st))
        return false;
    for (size_t i = 0; i < k->other_count; i++)
        if (k->others[i].device == st.st_dev && k->others[i].inode == st.st_ino)
            return true;
    return false;
}

/* Files of a folder and of the folders in it: a capture is no deeper. */
static int list_others(struct keep *k, const char *dir, int depth,
                       struct err *err)
{
    struct io_list list;
    int ret = 0;

    if (io_list(dir, &list, err))
        return -1;
    for (size_t i = 0; i < list.count && ret == 0; i++) {
        char *path = path_join(dir, list.names[i]);
        struct stat st;

        if (stat(path, &st) == 0 && S_ISDIR(st.st_mode) && depth == 0) {
            ret = list_others(k, path, 1, err);
        } else if (stat(path, &st) == 0 && S_ISREG(st.st_mode)) {
            k->others =
                xrealloc(k->others, (k->other_count + 1) * sizeof(*k->others));
            k->others[k->other_count++] = (struct place){st.st_dev, st.st_ino};
        }
        free(path);
    }
    io_list_release(&list);
    return ret;
}

static int keep_file(struct keep *k, const char *name, const char *file,
                     struct err *err)
{
    char *below = xasprintf("%s/%s", name, file);
    char *from = path_join(k->from, below), *to = path_join(k->to, below);
    char sha256[HASH_SHA256_HEX];
    int64_t size;
    int ret = -1;

    if (is_other(k, from)) {
        err_set(err, ERR_INPUT, "%s: the same file on both sides, one is in %s",
                from, k->unlike);
    } else if (k->digests) {
        ret = hash_sha256_file(from, sha256, &size, err);
        if (ret == 0)
            json_array_append_new(
                k->list, json_pack("{s:s, s:I, s:s}", "path", file, "size",
                                   (json_int_t)size, "sha256", sha256));
    } else {
        char *dir = path_dir(to);

        ret = io_make_dirs(dir, err) || io_copy_file(from, to, err) ? -1 : 0;
        free(dir);
    }
    free(to);
    free(from);
    free(below);
    return ret;
}

static int keep_case(struct keep *k, const char *name, struct err *err)
{
    char *dir = path_join(k->from, name);
    struct io_list list = {NULL, 0};
    int ret = io_list(dir, &list, err);

    k->list = json_array();
    for (size_t i = 0; i < list.count && ret == 0; i++) {
        char *path = path_join(dir, list.names[i]);
        struct stat st;

        if (path_is_portable(list.names[i]) && stat(path, &st) == 0 &&
            S_ISREG(st.st_mode))
            ret = keep_file(k, name, list.names[i], err);
        free(path);
    }
    if (ret == 0 && json_array_size(k->list)) {
        char *to = xasprintf("%s/%s/digests.json", k->to, name);
        json_t *root = json_pack("{s:O}", "files", k->list);

        ret = json_write_file(root, to, err);
        json_decref(root);
        free(to);
    }
    json_decref(k->list);
    io_list_release(&list);
    free(dir);
    return ret;
}

static int keep_all(struct keep *k, struct err *err)
{
    struct io_list list;
    size_t kept = 0;
    int ret = 0;

    if (io_list(k->from, &list, err))
        return -1;
    for (size_t i = 0; i < list.count && ret == 0; i++) {
        char *dir = path_join(k->from, list.names[i]);

        if (io_is_dir(dir) && path_is_portable(list.names[i])) {
            ret = keep_case(k, list.names[i], err);
            kept++;
        }
        free(dir);
    }
    io_list_release(&list);
    if (ret == 0 && kept == 0)
        ret = err_set(err, ERR_INPUT, "%s: holds no folder of a case", k->from);
    return ret;
}

static int keep(struct keep *k, const char *out, struct err *err)
{
    struct publish p = PUBLISH_INIT;

    if (!io_is_dir(k->from))
        return err_set(err, ERR_INPUT, "%s: no such folder of captures",
                       k->from);
    if (k->unlike && list_others(k, k->unlike, 0, err))
        return -1;
    if (publish_begin(&p, out, err))
        return -1;
    k->to = p.part;
    if (keep_all(k, err) == 0)
        return publish_commit(&p, err);
    publish_abort(&p);
    return -1;
}

int verb_keep(int argc, char **argv)
{
    struct keep k = {0};
    const struct cli_opt options[] = {
        {'d', "digests", NULL, "their digests only", CLI_FLAG, &k.digests},
        {0, "unlike", "dir", "refuse a file that is the same one there",
         CLI_STR, &k.unlike},
        {0},
    };
    const struct cli_command command = {
        "assay-receipt",
        "keep",
        "FROM TO",
        "Copies captures, a folder a case, into a run.",
        options,
        2,
        2};
    struct cli_list rest = {NULL, 0};
    struct err err = ERR_INIT;

    if (cli_parse(&command, argc, argv, &rest, &err) == 0) {
        k.from = rest.items[0];
        keep(&k, rest.items[1], &err);
    }
    free(k.others);
    free(rest.items);
    return cli_finish(&command, &err);
}

/* --------------------------------------------------------- executables */

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

    if (cli_parse(&command, argc, argv, &rest, &err) == 0) {
        json_t *root = executables_json(rest.items[0], candidate, &err);
        if (root)
            json_write_file(root, out, &err);
        json_decref(root);
    }
    free(rest.items);
    return cli_finish(&command, &err);
}

/* ------------------------------------------------------ seal, publish */

/* The day that the protocol's clock says; "" when it says none. */
static int protocol_date(const char *run, char out[11], struct err *err)
{
    char *path = path_join(run, "data/inputs/protocol.json");
    struct protocol rules;
    int ret = 0;

    out[0] = '\0';
    if (io_exists(path)) {
        ret = protocol_read(path, &rules, err);
        if (ret == 0 && rules.now)
            snprintf(out, 11, "%.10s", rules.now);
        if (ret == 0)
            protocol_release(&rules);
    }
    free(path);
    return ret;
}

/* The day of SOURCE_DATE_EPOCH. */
static int epoch_date(char out[11], struct err *err)
{
    const char *text = getenv("SOURCE_DATE_EPOCH");
    char *end;
    struct tm day;

    if (!text)
        return 0;
    time_t at = (time_t)strtoll(text, &end, 10);
    if (*end || !*text || !gmtime_r(&at, &day) ||
        strftime(out, 11, "%Y-%m-%d", &day) != 10)
        return err_set(err, ERR_USAGE, "SOURCE_DATE_EPOCH '%s' is no time",
                       text);
    return 0;
}

int verb_seal(int argc, char **argv)
{
    const struct cli_command command = {
        "assay-receipt",
        "seal",
        "RUN",
        "Makes a run a bag: manifests, the last act of a run.",
        NULL,
        1,
        1};
    struct cli_list rest = {NULL, 0};
    struct err err = ERR_INIT;
    char date[11];

    if (cli_parse(&command, argc, argv, &rest, &err) == 0 &&
        protocol_date(rest.items[0], date, &err) == 0 &&
        (date[0] || epoch_date(date, &err) == 0))
        bag_seal(rest.items[0], date[0] ? date : NULL, &err);
    free(rest.items);
    return cli_finish(&command, &err);
}

/* What a finished run holds is not to be written again; its own folder stays
 * open for a signature. */
static int protect(const char *path, bool is_top, struct err *err)
{
    struct io_list list;
    int ret = 0;

    if (!io_is_dir(path))
        return chmod(path, 0444) ? err_sys(err, "%s", path) : 0;
    if (io_list(path, &list, err))
        return -1;
    for (size_t i = 0; i < list.count && ret == 0; i++) {
        char *entry = path_join(path, list.names[i]);

        ret = protect(entry, false, err);
        free(entry);
    }
    io_list_release(&list);
    if (ret == 0 && !is_top && chmod(path, 0555))
        ret = err_sys(err, "%s", path);
    return ret;
}

int verb_publish(int argc, char **argv)
{
    const struct cli_command command = {
        "assay-receipt",
        "publish",
        "PART FINAL",
        "Flushes a finished folder to storage and gives it its name.",
        NULL,
        2,
        2};
    struct cli_list rest = {NULL, 0};
    struct err err = ERR_INIT;

    if (cli_parse(&command, argc, argv, &rest, &err) == 0) {
        const char *part = rest.items[0], *final = rest.items[1];

        if (io_exists(final)) {
            err_set(&err, ERR_EXISTS, "%s: is there already", final);
        } else if (protect(part, true, &err) == 0) {
            struct publish p = {xstrdup(final), xstrdup(part), -1, 0};

            publish_commit(&p, &err);
        }
    }
    free(rest.items);
    return cli_finish(&command, &err);
}
