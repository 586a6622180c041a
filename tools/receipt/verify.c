/* verify: every file of a pack against its receipt. */
#include "base/io.h"
#include "base/path.h"
#include "base/publish.h"
#include "cli/cli.h"
#include "evidence/stage.h"
#include "receipt/receipt.h"
#include "safetensors/safetensors.h"
#include "verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_digest(const json_t *row, const char *key, const char *side,
                         const char *digest)
{
    const char *text =
        json_string_value(json_object_get(json_object_get(row, side), digest));

    if (text)
        printf("\t  %s %s %s\n", key, digest, text);
}

static void print_sizes(const json_t *expected, const json_t *found)
{
    if (json_is_integer(expected))
        printf("\t  expected size %lld, found %lld\n",
               (long long)json_integer_value(expected),
               (long long)json_integer_value(found));
    else
        printf("\t  found size %lld, none is listed\n",
               (long long)json_integer_value(found));
}

/* A tensor's name may hold anything: it is quoted as JSON does. */
static void print_tensor(const json_t *tensor)
{
    char *name = json_dumps(json_object_get(tensor, "name"), JSON_ENCODE_ANY);

    printf("\t  %s: tensor %s\n",
           json_string_value(json_object_get(tensor, "verdict")),
           name ? name : "?");
    free(name);
}

static bool has_same_tensors(const json_t *row)
{
    const json_t *want =
        json_object_get(json_object_get(row, "expected"), "tensors_sha256");

    return want &&
           json_equal(want, json_object_get(json_object_get(row, "found"),
                                            "tensors_sha256"));
}

static void print_table(const json_t *root)
{
    json_t *row, *tensor;
    size_t i, k, same = 0;

    json_array_foreach(json_object_get(root, "files"), i, row)
    {
        const char *verdict =
            json_string_value(json_object_get(row, "verdict"));

        printf("%s\t%s\n", verdict,
               json_string_value(json_object_get(row, "path")));
        same += strcmp(verdict, "same") == 0;
        if (strcmp(verdict, "differs") != 0)
            continue;
        print_sizes(json_object_get(json_object_get(row, "expected"), "size"),
                    json_object_get(json_object_get(row, "found"), "size"));
        print_digest(row, "expected", "expected", "sha256");
        print_digest(row, "found   ", "found", "sha256");
        print_digest(row, "expected", "expected", "git_blob");
        print_digest(row, "found   ", "found", "git_blob");
        print_digest(row, "found   ", "found", "cache_name");
        print_digest(row, "expected", "expected", "tensors_sha256");
        print_digest(row, "found   ", "found", "tensors_sha256");
        if (json_has(row, "unsound"))
            printf("\t  %s\n",
                   json_string_value(json_object_get(row, "unsound")));
        json_array_foreach(json_object_get(row, "tensors"), k, tensor)
            print_tensor(tensor);
        if (has_same_tensors(row))
            printf("\t  every tensor is the same: the file was only laid out "
                   "anew\n");
    }
    if (json_has(root, "index"))
        printf("the index and the shards do not fit: %s\n",
               json_string_value(json_object_get(root, "index")));
    printf("%zu of %zu files are the same; the receipt is of strength '%s'\n",
           same, json_array_size(json_object_get(root, "files")),
           json_string_value(json_object_get(root, "strength")));
    if (json_has(root, "not_hashed_again"))
        printf(
            "%lld of them were not hashed again: unchanged since they were\n",
            (long long)json_integer_value(
                json_object_get(root, "not_hashed_again")));
}

/* The source stage of a run: the receipt, what verify said, the record. */
static int write_stage(struct stage *s, const char *out, const char *receipt,
                       const json_t *root, struct err *err)
{
    struct publish p = PUBLISH_INIT;
    char *copy = NULL, *said = NULL;

    if (publish_begin(&p, out, err))
        return -1;
    copy = path_join(p.part, "receipt.json");
    said = path_join(p.part, "verify-before.json");
    int ret = io_copy_file(receipt, copy, err) ||
                      json_write_file(root, said, err) ||
                      stage_output(s, p.part, "receipt.json", err) ||
                      stage_output(s, p.part, "verify-before.json", err) ||
                      stage_write(s, p.part, err)
                  ? -1
                  : 0;
    if (ret == 0)
        ret = publish_commit(&p, err);
    else
        publish_abort(&p);
    free(copy);
    free(said);
    return ret;
}

/* The files found are the stage's inputs, by the digests just taken. */
static void add_inputs(struct stage *s, const char *pack,
                       const struct receipt_report *report)
{
    for (size_t i = 0; i < report->disk.count; i++) {
        const struct receipt_file *f = &report->disk.files[i];
        char *path = path_join(pack, f->path);

        stage_input_known(s, path, f->sha256, f->size);
        free(path);
    }
}

/* Which tensors of a file are others, when the receipt has a digest of each. */
static void explain(json_t *tensors, const char *pack, struct receipt_row *row)
{
    json_t *found = add_tensors_digest(pack, &row->found);

    if (found && row->listed.tensor_list)
        json_object_set_new(tensors, row->listed.path,
                            compare_tensors(row->listed.tensor_list, found));
    json_decref(found);
}

/* Why a file that differs cannot be read at all, when it cannot: a shard that
 * is shorter than its header says names the first tensor that is not whole. */
static void add_unsound(json_t *row, const char *pack)
{
    const char *name = json_string_value(json_object_get(row, "path"));
    const char *verdict = json_string_value(json_object_get(row, "verdict"));
    static const char end[] = ".safetensors";
    size_t n = strlen(name), m = sizeof(end) - 1;
    struct err why = ERR_INIT;
    char *path;

    if (strcmp(verdict, "differs") != 0 || n <= m ||
        strcmp(name + n - m, end) != 0)
        return;
    path = path_join(pack, name);
    struct safetensors *st = safetensors_open(path, &why);
    if (!st) {
        size_t skip = strncmp(why.text, path, strlen(path)) == 0
                          ? strlen(path) + strspn(why.text + strlen(path), ": ")
                          : 0;

        json_object_set_new(row, "unsound", json_string(why.text + skip));
    }
    safetensors_close(st);
    free(path);
}

/* The index against the shards, both ways: which tensors a missing or short
 * shard takes with it. */
static void add_pack_fault(json_t *root, const char *pack)
{
    char *index = path_join(pack, "model.safetensors.index.json");
    struct err why = ERR_INIT;
    struct safetensors *st =
        io_exists(index) ? safetensors_open_pack(pack, &why) : NULL;

    if (why.code == ERR_INPUT)
        json_object_set_new(root, "index", json_string(why.text));
    safetensors_close(st);
    free(index);
}

static void add_explained(json_t *root, const json_t *tensors, const char *pack)
{
    json_t *row;
    size_t i;

    json_array_foreach(json_object_get(root, "files"), i, row)
    {
        json_t *list = json_object_get(
            tensors, json_string_value(json_object_get(row, "path")));

        if (list)
            json_object_set(row, "tensors", list);
        add_unsound(row, pack);
    }
}

struct verify_options {
    const char *out, *revision, *cache;
    bool json, full;
    struct stage_options stage;
};

static int verify(const struct verify_options *opt, const char *receipt,
                  const char *pack, int argc, char **argv, struct err *err)
{
    struct receipt r = RECEIPT_INIT;
    struct receipt_report report = {.disk = RECEIPT_INIT};
    struct receipt_cache cache = RECEIPT_CACHE_INIT;
    struct stage *s = NULL;
    char sha256[HASH_SHA256_HEX];
    json_t *root = NULL, *tensors = NULL;
    int ret = -1;

    if (io_check_new(opt->out, err) || receipt_read(&r, receipt, err) ||
        hash_sha256_file(receipt, sha256, NULL, err))
        goto out;
    if (opt->revision &&
        (!r.revision || strcmp(r.revision, opt->revision) != 0)) {
        err_set(err, ERR_INPUT, "%s: is of revision '%s', not '%s'", receipt,
                r.revision ? r.revision : "(none)", opt->revision);
        goto out;
    }
    if (opt->out) {
        /* the verb is an argument of the program */
        s = stage_new("assay-receipt", argc + 1, argv - 1, &opt->stage, err);
        if (!s)
            goto out;
        stage_role(s, "PACK", pack);
        stage_role(s, "RECEIPT", receipt);
        stage_role(s, "OUT", opt->out);
        if (stage_input(s, receipt, err))
            goto out;
    }
    if (opt->cache && receipt_cache_open(&cache, opt->cache, err))
        goto out;
    cache.full = opt->full;
    if (receipt_verify_cached(&r, pack, opt->cache ? &cache : NULL, &report,
                              err) ||
        (opt->cache && receipt_cache_save(&cache, err)))
        goto out;
    tensors = json_object();
    for (size_t i = 0; i < report.count; i++)
        if (report.rows[i].state == RECEIPT_DIFFERS &&
            report.rows[i].listed.tensors[0])
            explain(tensors, pack, &report.rows[i]);
    root = receipt_report_json(&r, sha256, &report);
    if (cache.skipped)
        json_object_set_new(root, "not_hashed_again",
                            json_integer((json_int_t)cache.skipped));
    if (s) {
        add_inputs(s, pack, &report);
        if (write_stage(s, opt->out, receipt, root, err))
            goto out;
    }
    add_explained(root, tensors, pack);
    if (report.same != report.count)
        add_pack_fault(root, pack);
    if (opt->json)
        cli_print_json(root);
    else
        print_table(root);
    if (report.same != report.count)
        err->code = ERR_NO; /* the answer is no; the table says why */
    ret = 0;
out:
    json_decref(root);
    json_decref(tensors);
    receipt_cache_release(&cache);
    stage_free(s);
    receipt_report_release(&report);
    receipt_release(&r);
    return ret;
}

int verb_verify(int argc, char **argv)
{
    struct verify_options opt = {0};
    const struct cli_opt options[] = {
        {'j', "json", NULL, "print one JSON document", CLI_FLAG, &opt.json},
        {'r', "revision", "rev", "the revision that the receipt must name",
         CLI_STR, &opt.revision},
        {'o', "out", "dir", "also write a run's source stage there", CLI_STR,
         &opt.out},
        {'c', "cache", "file",
         "do not hash again what this file knows, and "
         "is unchanged",
         CLI_STR, &opt.cache},
        {'f', "full", NULL, "hash every file, whatever the cache knows",
         CLI_FLAG, &opt.full},
        STAGE_OPTIONS(opt.stage),
        {0},
    };
    const struct cli_command command = {
        "assay-receipt",
        "verify",
        "RECEIPT PACK",
        "Compares every file of a pack with its receipt.",
        options,
        2,
        2};
    struct cli_list rest = {NULL, 0};
    struct err err = ERR_INIT;

    int parsed = cli_parse(&command, argc, argv, &rest, &err);

    if (parsed == 0 && opt.cache && opt.out)
        err_set(&err, ERR_USAGE,
                "a run's source stage hashes every file: "
                "--cache does not go with --out");
    else if (parsed == 0)
        verify(&opt, rest.items[0], rest.items[1], argc, argv, &err);
    free(rest.items);
    free(opt.stage.roles.items);
    free(opt.stage.after.items);
    return cli_finish(&command, &err);
}
