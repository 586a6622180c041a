/* room: is there the storage and the memory that a run will need? */
#include "base/room.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "cli/cli.h"
#include "gates/gates.h"
#include "verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    BLOCK = 4096,      /* of storage, to which files are rounded up */
    A_RUN = 128 << 10, /* manifests, executables, records of no case */
    A_CASE = 16 << 10, /* compare's files, without their gates */
    A_GATE = 3 << 10,  /* of a case, in compare's files */
    LISTED = 8,        /* times a receipt: copied, and verified twice */
};

struct room {
    struct cli_list plans, copies, have;
    const char *gates, *receipt, *dir;
    bool json;
    int64_t bytes, memory; /* needed */
    size_t cases, gate_count;
};

/* A file's whole blocks, or those of all below a folder; links followed. */
static int add_size(const char *path, int64_t *bytes, int depth,
                    struct err *err)
{
    struct io_list list;
    struct stat st;
    int ret = 0;

    if (stat(path, &st))
        return err_sys(err, "%s", path);
    if (!S_ISDIR(st.st_mode)) {
        *bytes += (st.st_size + BLOCK - 1) / BLOCK * BLOCK;
        return 0;
    }
    *bytes += BLOCK;
    if (depth > 8 || io_list(path, &list, err))
        return depth > 8 ? err_set(err, ERR_INPUT, "%s: too deep", path) : -1;
    for (size_t i = 0; i < list.count && ret == 0; i++) {
        char *entry = path_join(path, list.names[i]);

        ret = add_size(entry, bytes, depth + 1, err);
        free(entry);
    }
    io_list_release(&list);
    return ret;
}

static int add_plan(struct room *r, const char *path, struct err *err)
{
    json_t *root = json_read_file(path, err), *cases;
    int64_t bytes = 0, memory = 0;
    int ret = -1;

    if (!root)
        return -1;
    if (json_get_int(root, "bytes", &bytes, err) ||
        json_get_int(root, "memory", &memory, err) ||
        json_get_array(root, "cases", &cases, err)) {
        err_in(err, "%s", path);
        goto out;
    }
    r->bytes += bytes;
    r->memory = memory > r->memory ? memory : r->memory;
    if (json_array_size(cases) > r->cases)
        r->cases = json_array_size(cases);
    ret = 0;
out:
    json_decref(root);
    return ret;
}

static int add_all(struct room *r, struct err *err)
{
    for (size_t i = 0; i < r->plans.count; i++)
        if (add_plan(r, r->plans.items[i], err))
            return -1;
    for (size_t i = 0; i < r->copies.count; i++)
        if (add_size(r->copies.items[i], &r->bytes, 0, err))
            return -1;
    if (r->gates) {
        struct gates gates = {0};

        if (gates_read(r->gates, &gates, err))
            return -1; /* rather now than after the pass */
        r->gate_count = gates.count;
        gates_release(&gates);
    }
    for (int i = 0; r->receipt && i < LISTED; i++)
        if (add_size(r->receipt, &r->bytes, 0, err))
            return -1;
    r->bytes +=
        A_RUN + (int64_t)r->cases * (A_CASE + (int64_t)r->gate_count * A_GATE);
    return 0;
}

static int tell(const struct room *r, int64_t disk, int64_t memory,
                const char *limit, struct err *err)
{
    char need[32], have[32], need_memory[32], have_memory[32];

    room_format(r->bytes, need);
    room_format(disk, have);
    room_format(r->memory, need_memory);
    room_format(memory, have_memory);
    if (r->bytes > disk)
        return err_set(err, ERR_SYSTEM,
                       "%s: the run needs %s of storage, %s are free", r->dir,
                       need, have);
    if (r->memory > memory)
        return err_set(err, ERR_SYSTEM,
                       "the run needs %s of memory, %s are available (%s)",
                       need_memory, have_memory, limit);
    if (!r->json)
        printf("storage: %s needed, %s free\nmemory: %s needed, %s available "
               "(%s)\n",
               need, have, need_memory, have_memory, limit);
    return 0;
}

static int room(struct room *r, struct err *err)
{
    int64_t disk = 0, memory = 0, there = 0;
    const char *limit = "";

    if (add_all(r, err) || room_on_disk(r->dir, &disk, err) ||
        room_in_memory(&memory, &limit, err))
        return -1;
    for (size_t i = 0; i < r->have.count; i++)
        if (add_size(r->have.items[i], &there, 0, err))
            return -1;
    disk = disk > INT64_MAX - there ? INT64_MAX : disk + there;
    if (r->json) {
        json_t *root =
            json_pack("{s:{s:I, s:I}, s:{s:I, s:I, s:s}}", "storage", "needed",
                      (json_int_t)r->bytes, "free", (json_int_t)disk, "memory",
                      "needed", (json_int_t)r->memory, "available",
                      (json_int_t)memory, "limit", limit);

        cli_print_json(root);
        json_decref(root);
    }
    return tell(r, disk, memory, limit, err);
}

int verb_room(int argc, char **argv)
{
    struct room r = {.bytes = 0};
    const struct cli_opt options[] = {
        {'p', "plan", "file", "what a stage's --predict printed", CLI_LIST,
         &r.plans},
        {'c', "copy", "path", "what the run will copy", CLI_LIST, &r.copies},
        {'g', "gates", "file", "the limits", CLI_STR, &r.gates},
        {'r', "receipt", "file", "the source receipt", CLI_STR, &r.receipt},
        {0, "have", "path", "what is there already of the run", CLI_LIST,
         &r.have},
        {'j', "json", NULL, "print one JSON document", CLI_FLAG, &r.json},
        {0},
    };
    const struct cli_command command = {
        "assay-receipt",
        "room",
        "DIR",
        "Tells whether there is room for a run: storage and memory.",
        options,
        1,
        1};
    struct cli_list rest = {NULL, 0};
    struct err err = ERR_INIT;

    if (cli_parse(&command, argc, argv, &rest, &err) == 0) {
        r.dir = rest.items[0];
        room(&r, &err);
    }
    free(r.plans.items);
    free(r.copies.items);
    free(r.have.items);
    free(rest.items);
    return cli_finish(&command, &err);
}
