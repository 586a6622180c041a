/*
 * receive: one file of a receipt into a pack, from a command that fetches it,
 * judged while it arrives.  Until it is whole and right it is .NAME.part beside
 * its place; what a part holds already is hashed first, and the command asked
 * for the rest.
 */
#include "answer.h"
#include "arriving.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { STEP = 256 << 10, MAX_WORDS = 64 };

struct receive {
    const struct receipt_file *listed;
    enum hash_kind hash;
    char *file, *part; /* where it goes; where it is until then */
    int fd;            /* of the part */
    int64_t at;        /* bytes of it */
    struct arriving *arriving;
    const char *const *command;
    size_t words;
    char *block;
    struct progress progress;
};

/* From nothing: an empty part. */
static int begin_anew(struct receive *r, struct err *err)
{
    arriving_free(r->arriving);
    r->arriving = arriving_new(r->listed, r->hash);
    r->at = 0;
    return ftruncate(r->fd, 0) || lseek(r->fd, 0, SEEK_SET)
               ? err_sys(err, "%s", r->part)
               : 0;
}

/* The bytes that an earlier transfer left; those of something else are let go.
 * Leaves the place of writing behind them. */
static int take_part(struct receive *r, struct err *err)
{
    int64_t size = arriving_size(r->listed);
    struct stat st;
    struct err why = ERR_INIT;

    r->fd = open(r->part,
                 O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
    if (r->fd < 0 || fstat(r->fd, &st))
        return err_sys(err, "%s", r->part);
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_INPUT, "%s: not a regular file", r->part);
    if (flock(r->fd, LOCK_EX | LOCK_NB))
        return err_set(err, ERR_SYSTEM, "%s: is being fetched by another",
                       r->part);
    r->arriving = arriving_new(r->listed, r->hash);
    if (size >= 0 && st.st_size > size)
        return begin_anew(r, err);
    while (r->at < st.st_size) {
        size_t n = st.st_size - r->at < STEP ? (size_t)(st.st_size - r->at)
                                             : (size_t)STEP;

        if (io_pread(r->fd, r->part, r->block, n, r->at, err))
            return -1;
        if (arriving_add(r->arriving, r->block, n, &why))
            return begin_anew(r, err);
        r->at += (int64_t)n;
    }
    return lseek(r->fd, r->at, SEEK_SET) < 0 ? err_sys(err, "%s", r->part) : 0;
}

/* Starts the command; *from is what it writes. */
static int start(struct receive *r, pid_t *child, int *from, struct err *err)
{
    const char *words[MAX_WORDS + 3];
    char range[32];
    posix_spawn_file_actions_t files;
    size_t n = r->words;
    int ends[2];

    memcpy(words, r->command, n * sizeof(*words));
    snprintf(range, sizeof(range), "%lld-", (long long)r->at);
    if (r->at > 0) {
        words[n++] = "-r";
        words[n++] = range;
    }
    words[n] = NULL;
    if (pipe2(ends, O_CLOEXEC))
        return err_sys(err, "pipe");
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
    errno =
        posix_spawnp(child, words[0], &files, NULL, (char **)words, environ);
    posix_spawn_file_actions_destroy(&files);
    close(ends[1]);
    if (errno) {
        err_sys(err, "%s", words[0]);
        close(ends[0]);
        return -1;
    }
    *from = ends[0];
    return 0;
}

/* Up to STEP bytes; 0 at the end. */
static ssize_t get(int from, char *to, struct err *err)
{
    ssize_t n;

    do {
        n = read(from, to, STEP);
    } while (n < 0 && errno == EINTR);
    return n < 0 ? err_sys(err, "read") : n;
}

static int put(struct receive *r, const char *data, size_t len, struct err *err)
{
    if (arriving_add(r->arriving, data, len, err) ||
        io_write(r->fd, r->part, data, len, err))
        return -1;
    r->at += (int64_t)len;
    progress_at(&r->progress, r->at);
    return 0;
}

/* Can the body be what we ask for?  A server that knows no ranges sends all. */
static int judge_answer(struct receive *r, const struct answer *a,
                        struct err *err)
{
    int64_t size = arriving_size(r->listed);

    if (a->status == 416 && r->at > 0) {
        /* there is no more: what we have is of something else */
        if (begin_anew(r, err) == 0)
            err_set(err, ERR_SYSTEM, "the part was of something else");
        return -1;
    }
    if (a->status && (a->status < 200 || a->status > 299)) {
        bool may_pass =
            a->status >= 500 || a->status == 408 || a->status == 429;

        return err_set(err, may_pass ? ERR_SYSTEM : ERR_INPUT,
                       "the server answers %d", a->status);
    }
    if (size >= 0 && a->whole >= 0 && a->whole != size)
        return err_set(err, ERR_NO,
                       "the source has %lld bytes, the receipt's has %lld",
                       (long long)a->whole, (long long)size);
    if (a->first == r->at)
        return 0;
    return a->first == 0 ? begin_anew(r, err)
                         : err_set(err, ERR_SYSTEM,
                                   "the server sends from byte %lld, not %lld",
                                   (long long)a->first, (long long)r->at);
}

/* The whole answer: 0 when the command has ended its body. */
static int take_answer(struct receive *r, int from, struct err *err)
{
    struct buf head = BUF_INIT;
    struct answer answer = {0};
    size_t body = 0;
    int state = 0, ret = -1;
    ssize_t n;

    while (state == 0) {
        n = get(from, r->block, err);
        if (n < 0)
            goto out;
        if (n == 0 && head.len == 0) {
            ret = err_set(err, ERR_SYSTEM, "no answer");
            goto out;
        }
        buf_add(&head, r->block, (size_t)n);
        state = answer_read(&answer, head.data, head.len, r->at, &body, err);
        if (state == 0 && n == 0) {
            err_set(err, ERR_SYSTEM, "the server answers %d, and no more",
                    answer.status);
            goto out;
        }
    }
    if (state < 0 || judge_answer(r, &answer, err) ||
        put(r, head.data + body, head.len - body, err))
        goto out;
    while ((n = get(from, r->block, err)) > 0)
        if (put(r, r->block, (size_t)n, err))
            goto out;
    ret = n < 0 ? -1 : 0;
out:
    buf_release(&head);
    return ret;
}

/* One run of the command, from r->at to the end. */
static int transfer(struct receive *r, struct err *err)
{
    int64_t size = arriving_size(r->listed);
    int from = -1, status, ret;
    pid_t child;

    if (start(r, &child, &from, err))
        return -1;
    progress_begin(&r->progress, r->listed->path, size > 0 ? size : 0);
    ret = take_answer(r, from, err);
    progress_end(&r->progress);
    close(from);
    if (ret) /* it need not send the rest */
        kill(child, SIGTERM);
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return err_sys(err, "%s", r->command[0]);
    bool is_whole = size < 0 ? status == 0 : r->at == size;
    if (ret == 0 && !is_whole)
        ret = err_set(err, ERR_SYSTEM,
                      "the transfer ended after %lld bytes (%s: status %d)",
                      (long long)r->at, path_base(r->command[0]),
                      WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    return ret;
}

/* A whole part becomes the file when it is the receipt's; *is_same says so. */
static int finish(struct receive *r, bool *is_same, struct err *err)
{
    if (arriving_end(r->arriving, r->part, is_same, err))
        return -1;
    if (!*is_same)
        return 0;
    char *dir = path_dir(r->file);
    int ret = 0, at = -1;

    if (fsync(r->fd))
        ret = err_sys(err, "%s: fsync", r->part);
    else if (renameat2(AT_FDCWD, r->part, AT_FDCWD, r->file, RENAME_NOREPLACE))
        ret = err_sys(err, "%s", r->file);
    else if ((at = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0 ||
             fsync(at))
        ret = err_sys(err, "%s", dir);
    if (at >= 0)
        close(at);
    free(dir);
    return ret;
}

static int get_file(struct receive *r, struct err *err)
{
    int64_t size = arriving_size(r->listed);
    bool is_resumed, is_same = false;

    if (take_part(r, err))
        return -1;
    is_resumed = r->at > 0;
    for (;;) {
        if (r->at == size || transfer(r, err) == 0) {
            if (finish(r, &is_same, err))
                return -1;
            if (is_same)
                return 0;
            err_set(err, ERR_NO, "what came is not the receipt's");
        }
        if (err->code != ERR_NO || !is_resumed)
            break;
        /* the part may have been of something else: once more, from nothing */
        is_resumed = false;
        err_clear(err);
        if (begin_anew(r, err))
            return -1;
    }
    /* what can still become the file stays */
    if (err->code == ERR_NO || r->at == 0)
        unlink(r->part);
    return -1;
}

static int receive(struct receive *r, struct err *err)
{
    struct receipt_file found = {.size = 0};
    char *dir = path_dir(r->file);
    int ret = -1;

    if (io_exists(r->file)) {
        if (hash_file(r->file, r->hash, found.sha256, found.git_blob,
                      &found.size, err) == 0)
            ret = receipt_is_same(r->listed, r->hash, &found)
                      ? 0
                      : err_set(err, ERR_NO,
                                "%s: is there, and is not the receipt's",
                                r->file);
    } else if (io_make_dirs(dir, err) == 0) {
        ret = get_file(r, err) ? err_in(err, "%s", r->listed->path) : 0;
    }
    free(dir);
    return ret;
}

static const struct receipt_file *find(const struct receipt *r,
                                       const char *path)
{
    for (size_t i = 0; i < r->count; i++)
        if (strcmp(r->files[i].path, path) == 0)
            return &r->files[i];
    return NULL;
}

static void receive_release(struct receive *r)
{
    arriving_free(r->arriving);
    if (r->fd >= 0)
        close(r->fd);
    free(r->file);
    free(r->part);
    free(r->block);
}

int verb_receive(int argc, char **argv)
{
    const struct cli_command command = {
        "assay-receipt",
        "receive",
        "RECEIPT PACK PATH -- COMMAND...",
        "Gets one file of a pack from a command, judged as it arrives.",
        NULL,
        4,
        MAX_WORDS};
    struct cli_list rest = {NULL, 0};
    struct receipt receipt = RECEIPT_INIT;
    struct receive r = {.fd = -1};
    struct err err = ERR_INIT;

    if (cli_parse(&command, argc, argv, &rest, &err) == 0 &&
        receipt_read(&receipt, rest.items[0], &err) == 0) {
        const char *pack = rest.items[1], *path = rest.items[2];

        r.listed = find(&receipt, path);
        r.hash = receipt_hash(&receipt);
        r.command = rest.items + 3;
        r.words = rest.count - 3;
        if (!r.listed) {
            err_set(&err, ERR_USAGE, "%s: lists no '%s'", rest.items[0], path);
        } else {
            char *dir;

            r.file = path_join(pack, path);
            dir = path_dir(r.file);
            r.part = xasprintf("%s/.%s.part", dir, path_base(path));
            r.block = xmalloc(STEP);
            receive(&r, &err);
            free(dir);
        }
    }
    receive_release(&r);
    receipt_release(&receipt);
    free(rest.items);
    return cli_finish(&command, &err);
}
