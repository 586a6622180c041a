/*
 * audit --recompute: the pack through export and forward again, by the programs
 * beside this one, and the outputs' digests against those in the evidence.
 * What the records say is hostile: of their arguments only plain values of
 * known options are used again; all paths are ours.
 */
#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "receipt/receipt.h"
#include "verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

struct recompute {
    const char *data, *pack;
    char *out, *bin; /* where results go; the folder of the programs */
    json_t *faults;
    size_t same;
};

enum { MAX_ARGS = 32 };
struct args {
    char *words[MAX_ARGS + 1];
    size_t count;
};

static void add(struct args *a, char *word)
{
    if (a->count < MAX_ARGS)
        a->words[a->count++] = word;
    else
        free(word);
}

static void args_release(struct args *a)
{
    for (size_t i = 0; i < a->count; i++)
        free(a->words[i]);
}

__attribute__((format(printf, 2, 3))) static void fault(struct recompute *r,
                                                        const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    json_append_line(r->faults, format, ap);
    va_end(ap);
}

/* Its status; -1 when it could not be run.  Its result goes nowhere. */
static int run(struct args *a, struct err *err)
{
    posix_spawn_file_actions_t files;
    pid_t child;
    int status;

    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null",
                                     O_WRONLY, 0);
    errno = posix_spawn(&child, a->words[0], &files, NULL, a->words, environ);
    posix_spawn_file_actions_destroy(&files);
    if (errno)
        return err_sys(err, "%s", a->words[0]);
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return err_sys(err, "%s", a->words[0]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : ERR_SYSTEM;
}

/* The stage's options that change a bit, as its record has them. */
static int add_options(struct recompute *r, struct args *a, const char *stage,
                       const json_t *record)
{
    static const char *const known[] = {"--files", "--precision", "--sums",
                                        "--attn"};
    static const char *const ours[] = {
        "--pack",   "--model",   "--cases", "--case",   "--protocol",
        "--out",    "--after",   "--role",  "--frozen", "--inputs",
        "--prefix", "--threads", "--chunk", "--kernel"};
    json_t *list = json_object_get(record, "arguments"), *item;
    size_t i, k;

    json_array_foreach(list, i, item)
    {
        const char *word = json_string_value(item), *value;
        size_t n;
        bool is_ours = false;

        if (!word || word[0] != '-')
            continue;
        n = strcspn(word, "=");
        for (k = 0; k < sizeof(ours) / sizeof(ours[0]); k++)
            is_ours |= strlen(ours[k]) == n && strncmp(word, ours[k], n) == 0;
        if (is_ours)
            continue;
        value = word[n] ? word + n + 1
                        : json_string_value(json_array_get(list, i + 1));
        for (k = 0; k < sizeof(known) / sizeof(known[0]); k++)
            if (strlen(known[k]) == n && strncmp(word, known[k], n) == 0)
                break;
        if (k == sizeof(known) / sizeof(known[0]) || !value ||
            strchr(value, '/') || value[0] == '-') {
            fault(r, "%s/stage.json: ran with %s, which is not done again",
                  stage, word);
            return -1;
        }
        add(a, xasprintf("%s=%s", known[k], value));
    }
    return 0;
}

/* Every output of a stage's record against the one made again. */
static void compare_outputs(struct recompute *r, const char *stage,
                            const json_t *record)
{
    json_t *item;
    size_t i;

    json_array_foreach(json_object_get(record, "outputs"), i, item)
    {
        const char *name = json_string_value(json_object_get(item, "path"));
        const char *sha = json_string_value(json_object_get(item, "sha256"));
        char digest[HASH_SHA256_HEX], *path;
        struct err err = ERR_INIT;

        if (!name || !sha || !path_is_portable(name))
            continue;
        path = xasprintf("%s/%s/%s", r->out, stage, name);
        if (hash_sha256_file(path, digest, NULL, &err))
            fault(r, "%s/%s: not made again", stage, name);
        else if (strcmp(digest, sha) != 0)
            fault(r,
                  "%s/%s: made again from the pack, it has SHA-256 %s, not "
                  "%s",
                  stage, name, digest, sha);
        else
            r->same++;
        free(path);
    }
}

static json_t *read_record(struct recompute *r, const char *stage)
{
    char *path = xasprintf("%s/%s/stage.json", r->data, stage);
    struct err err = ERR_INIT;
    json_t *record = json_read_file(path, &err);

    if (!record)
        fault(r, "%s/stage.json: cannot be read", stage);
    free(path);
    return record;
}

static int export_case(struct recompute *r, const char *name, struct err *err)
{
    char *stage = xasprintf("export/%s", name);
    json_t *record = read_record(r, stage);
    struct args a = {{NULL}, 0};
    int status = 0;

    if (record) {
        add(&a, path_join(r->bin, "assay-export"));
        add(&a, xasprintf("--pack=%s", r->pack));
        add(&a, xasprintf("--cases=%s/inputs/cases.json", r->data));
        add(&a, xasprintf("--case=%s", name));
        add(&a, xasprintf("--protocol=%s/inputs/protocol.json", r->data));
        add(&a, xasprintf("--out=%s/%s", r->out, stage));
        if (add_options(r, &a, stage, record) == 0)
            status = run(&a, err);
        if (status == ERR_SYSTEM)
            status = err_set(err, ERR_SYSTEM, "%s: export could not be run",
                             stage);
        else if (status > 0)
            fault(r, "%s: export ends with status %d", stage, status);
        else if (status == 0)
            compare_outputs(r, stage, record);
    }
    args_release(&a);
    json_decref(record);
    free(stage);
    return status < 0 ? -1 : 0;
}

/* One pass for all cases; the first case's record tells the options. */
static int forward(struct recompute *r, const char *folder,
                   const struct io_list *cases, struct err *err)
{
    struct args a = {{NULL}, 0};
    char *first = xasprintf("%s/%s", folder, cases->names[0]);
    json_t *record = read_record(r, first);
    int status = 0;

    if (record) {
        add(&a, path_join(r->bin, "assay-forward"));
        add(&a, xasprintf("--pack=%s", r->pack));
        add(&a, xasprintf("--inputs=%s/export", r->data));
        add(&a, xasprintf("--prefix=%s/reference", r->data));
        add(&a, xasprintf("--protocol=%s/inputs/protocol.json", r->data));
        add(&a, xasprintf("--out=%s/%s", r->out, folder));
        if (add_options(r, &a, first, record))
            status = -2;
        else
            status = run(&a, err);
        if (status == ERR_SYSTEM)
            status = err_set(err, ERR_SYSTEM, "%s: forward could not be run",
                             folder);
        else if (status > 0)
            fault(r, "%s: forward ends with status %d", folder, status);
    }
    for (size_t i = 0; record && status == 0 && i < cases->count; i++) {
        char *stage = xasprintf("%s/%s", folder, cases->names[i]);
        json_t *own = read_record(r, stage);

        if (own)
            compare_outputs(r, stage, own);
        json_decref(own);
        free(stage);
    }
    args_release(&a);
    json_decref(record);
    free(first);
    return status == -1 ? -1 : 0;
}

static int stages(struct recompute *r, struct err *err)
{
    static const char *const folders[] = {"forward", "adjudicator"};
    struct io_list cases = {NULL, 0};
    char *exported = path_join(r->data, "export");
    int ret = io_is_dir(exported) ? io_list(exported, &cases, err) : 0;

    if (ret == 0 && cases.count == 0)
        fault(r, "export: no cases");
    for (size_t i = 0; i < cases.count && ret == 0; i++)
        if (path_is_portable(cases.names[i]))
            ret = export_case(r, cases.names[i], err);
    for (size_t i = 0; cases.count && ret == 0 && i < 2; i++) {
        char *dir = path_join(r->data, folders[i]);

        if (io_is_dir(dir))
            ret = forward(r, folders[i], &cases, err);
        free(dir);
    }
    io_list_release(&cases);
    free(exported);
    return ret;
}

/* The pack given is the one that the run's receipt lists. */
static int check_pack(struct recompute *r, struct err *err)
{
    struct receipt receipt = RECEIPT_INIT;
    struct receipt_report report;
    struct err why = ERR_INIT;
    char *path = path_join(r->data, "source/receipt.json");
    int ret = -1;

    if (receipt_read(&receipt, path, &why)) {
        fault(r, "source/receipt.json: cannot be read");
        ret = 0;
    } else if (receipt_verify(&receipt, r->pack, &report, err) == 0) {
        for (size_t i = 0; i < report.count; i++)
            if (report.rows[i].state != RECEIPT_SAME)
                fault(r, "the pack given: '%s': %s",
                      report.rows[i].listed.path ? report.rows[i].listed.path
                                                 : report.rows[i].found.path,
                      receipt_state_name(report.rows[i].state));
        receipt_report_release(&report);
        ret = 0;
    }
    receipt_release(&receipt);
    free(path);
    return ret;
}

int recompute_run(const char *data, const char *pack, char **by, json_t *faults,
                  struct err *err)
{
    const char *tmp = getenv("TMPDIR");
    struct recompute r = {.data = data, .pack = pack, .faults = faults};
    struct err ignored = ERR_INIT;
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    int ret;

    if (n <= 0)
        return err_sys(err, "/proc/self/exe");
    self[n] = '\0';
    r.bin = path_dir(self);
    r.out = xasprintf("%s/assay-again.XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(r.out)) {
        ret = err_sys(err, "%s", r.out);
    } else {
        ret = check_pack(&r, err) || stages(&r, err) ? -1 : 0;
        io_remove_tree(r.out, &ignored);
    }
    *by = xasprintf("%zu outputs of export and forward are the same bytes",
                    r.same);
    free(r.out);
    free(r.bin);
    return ret;
}
