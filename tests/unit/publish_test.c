/* A folder that appears whole or not at all: locks, across processes too. */
#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/publish.h"
#include "tap.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char root[] = "/tmp/publish_test.XXXXXX";

static char *at(const char *name)
{
    return path_join(root, name);
}

static void put(const char *dir, const char *name)
{
    char *path = path_join(dir, name);
    struct err err = ERR_INIT;

    is_int(io_write_file(path, "x", 1, &err), 0, "a file is written");
    free(path);
}

/* Another process that holds the part folder of `path` until it is killed. */
static pid_t hold(const char *path)
{
    int ready[2];
    char c;

    if (pipe(ready))
        return -1;
    pid_t child = fork();
    if (child == 0) {
        struct publish p = PUBLISH_INIT;
        struct err err = ERR_INIT;
        char *file = NULL;

        if (publish_begin(&p, path, &err) == 0) {
            file = path_join(p.part, "half");
            io_write_file(file, "x", 1, &err);
        }
        if (write(ready[1], "x", 1) == 1)
            pause();
        _exit(1);
    }
    close(ready[1]);
    is_int(read(ready[0], &c, 1), 1, "another process writes");
    close(ready[0]);
    return child;
}

static void test_locks(void)
{
    char *path = at("run"), *half = at(".run.part/half");
    struct publish p = PUBLISH_INIT, other = PUBLISH_INIT;
    struct err err = ERR_INIT;
    pid_t child = hold(path);

    is_int(publish_begin(&p, path, &err), -1, "a living one is left alone");
    is_int(err.code, ERR_EXISTS, "as what would be overwritten");
    ok(io_exists(half), "and not touched");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    err_clear(&err);
    is_int(publish_begin(&p, path, &err), 0, "a dead one is taken over");
    ok(p.took_over && !io_exists(half), "and emptied");
    is_int(publish_begin(&other, path, &err), -1, "not twice in one process");
    put(p.part, "whole");
    err_clear(&err);
    is_int(publish_commit(&p, &err), 0, "it gets its name");
    is_int(publish_begin(&p, path, &err), -1, "which is never given again");
    is_int(err.code, ERR_EXISTS, "as what would be overwritten");
    free(half);
    free(path);
}

static void test_races(void)
{
    char *path = at("raced"), *file = at("raced/file");
    struct publish p = PUBLISH_INIT;
    struct err err = ERR_INIT;

    is_int(publish_begin(&p, path, &err), 0, "begun");
    put(p.part, "file");
    mkdir(path, 0755); /* somebody else's, meanwhile */
    is_int(publish_commit(&p, &err), -1, "a name taken meanwhile");
    is_int(err.code, ERR_EXISTS, "is not overwritten");
    ok(!io_exists(file), "and stays as it is");
    free(file);
    free(path);
}

static void test_adoption(void)
{
    char *from = at("earlier"), *to = at("deep/er/later"), *file;
    struct err err = ERR_INIT;

    mkdir(from, 0755);
    put(from, "file");
    is_int(publish_adopt(from, to, &err), 0, "a whole folder moves");
    file = path_join(to, "file");
    ok(io_exists(file) && !io_exists(from), "with what it holds");
    mkdir(from, 0755);
    is_int(publish_adopt(from, to, &err), -1, "but over nothing");
    is_int(err.code, ERR_EXISTS, "as what would be overwritten");
    err_clear(&err);
    rmdir(from);
    free(to);
    to = at("nothing");
    is_int(publish_adopt(from, to, &err), -1, "nothing does not move");
    free(file);
    free(to);
    free(from);
}

int main(void)
{
    struct err err = ERR_INIT;

    if (!mkdtemp(root))
        return 1;
    test_locks();
    test_races();
    test_adoption();
    io_remove_tree(root, &err);
    return done();
}
