/* What the machine has left. */
#include "base/room.h"
#include "tap.h"

#include <string.h>
#include <sys/resource.h>

static const struct {
    int64_t bytes;
    const char *want;
} sizes[] = {
    {0, "0 KiB"},
    {1023, "0 KiB"},
    {4096, "4 KiB"},
    {(10 << 20) - 1, "10239 KiB"},
    {10 << 20, "10 MiB"},
    {(int64_t)10 << 30, "10.0 GiB"},
    {((int64_t)10 << 30) + ((int64_t)1 << 29), "10.5 GiB"},
};

static void limited(int resource, int64_t bytes, const char *name)
{
    struct rlimit before, now;
    struct err err = ERR_INIT;
    int64_t free_bytes = 0;
    const char *limit = "";

    getrlimit((__rlimit_resource_t)resource, &before);
    now = (struct rlimit){(rlim_t)bytes, before.rlim_max};
    setrlimit((__rlimit_resource_t)resource, &now);
    is_int(room_in_memory(&free_bytes, &limit, &err), 0, "a limit is read");
    setrlimit((__rlimit_resource_t)resource, &before);
    is_str(limit, name, "the least of all limits is named");
    ok(free_bytes >= 0 && free_bytes < bytes, "and is less than itself");
}

int main(void)
{
    struct err err = ERR_INIT;
    int64_t here = 0, there = 0;
    const char *limit = "";
    char text[32];

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        room_format(sizes[i].bytes, text);
        is_str(text, sizes[i].want, "a size as a person reads it");
    }
    is_int(room_on_disk(".", &here, &err), 0, "free space here");
    is_int(room_on_disk("./no/such/folder", &there, &err), 0,
           "and of a folder that will be made");
    ok(here > 0 && there > 0, "there is some");
    is_int(room_in_memory(&there, &limit, &err), 0, "free memory");
    ok(there > 0 && limit[0], "there is some, by some limit");
    ok(room_peak() > 0, "and this process has had some");
#ifndef __SANITIZE_ADDRESS__
    limited(RLIMIT_AS, 100 << 20, "ulimit -v");
    limited(RLIMIT_DATA, 90 << 20, "ulimit -d");
#endif
    return done();
}
