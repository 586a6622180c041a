/* A folder that exists in this process alone. */
#include "base/io.h"
#include "base/mount.h"
#include "tap.h"

#include <string.h>
#include <unistd.h>

static const char *listed(const char *path)
{
    static char text[256];
    struct io_list list;
    struct err err = ERR_INIT;

    text[0] = '\0';
    if (io_list(path, &list, &err))
        return "error";
    for (size_t i = 0; i < list.count; i++) {
        strcat(text, list.names[i]);
        strcat(text, " ");
    }
    io_list_release(&list);
    return text;
}

static const char *read_text(const char *path)
{
    static char text[256];
    struct buf bytes = BUF_INIT;
    struct err err = ERR_INIT;

    if (io_read_file(path, 100, &bytes, &err))
        snprintf(text, sizeof(text), "%s", err.text);
    else
        snprintf(text, sizeof(text), "%.*s", (int)bytes.len, bytes.data);
    buf_release(&bytes);
    return text;
}

int main(void)
{
    struct err err = ERR_INIT;
    struct mount *m = mount_new("no/such.tar");
    int fd = mount_spill(&err);

    ok(fd >= 0, "a file without a name");
    mount_declare(m, "data/a/x");
    mount_declare(m, "data/a-b");
    mount_declare(m, "data/a.txt");
    mount_declare(m, "top");
    is_str(listed("no/such.tar"), "data top ", "the root's entries");
    is_str(listed("no/such.tar/data"), "a a-b a.txt ", "sorted by bytes");
    ok(io_is_dir("no/such.tar/data/a"), "a folder is one");
    ok(!io_is_dir("no/such.tar/data/a-b"), "a file is none");
    ok(io_exists("no/such.tar/data/a-b"), "a declared file exists");
    ok(!io_exists("no/such.tar/data/a-"), "part of a name is no file");
    ok(!io_exists("no/such.tar.zst"), "another path is not its");
    is_str(read_text("no/such.tar/top"), "no/such.tar/top: was not kept",
           "a declared file cannot be read before it is given");
    mount_bytes(m, "top", "hello", 5);
    is_str(read_text("no/such.tar/top"), "hello", "bytes");
    is_str(read_text("no/such.tar/top"), "hello", "and again");
    mount_bytes(m, "data/a-b", "", 0);
    is_str(read_text("no/such.tar/data/a-b"), "", "an empty file");
    ok(write(fd, "spilled", 7) == 7, "written");
    mount_fd(m, "data/a/x", fd);
    is_str(read_text("no/such.tar/data/a/x"), "spilled", "a descriptor");
    is_str(read_text("no/such.tar/data/a/x"), "spilled",
           "each reader has a place of his own");
    is_str(read_text("no/such.tar/data/y"),
           "no/such.tar/data/y: No such file or directory", "no such file");
    is_str(listed("no/such.tar/data/y"), "error", "no such folder");
    mount_drop(m, "data/a/x");
    is_str(read_text("no/such.tar/data/a/x"),
           "no/such.tar/data/a/x: was not kept", "let go");
    ok(io_exists("no/such.tar/data/a/x"), "it still exists");
    mount_free(m);
    ok(!io_exists("no/such.tar/top"), "gone with the mount");
    return done();
}
