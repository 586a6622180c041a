/* What the machine has left: free space, free memory. */
#include "base/room.h"

#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

int room_on_disk(const char *path, int64_t *bytes, struct err *err)
{
    char *at = xstrdup(path);
    struct statvfs fs;
    int ret = -1;

    while (!io_exists(at) && strcmp(at, "/") != 0 && strcmp(at, ".") != 0) {
        char *dir = path_dir(at);

        free(at);
        at = dir;
    }
    if (statvfs(at, &fs)) {
        err_sys(err, "%s", at);
    } else {
        *bytes = fs.f_bavail > INT64_MAX / fs.f_frsize
                     ? INT64_MAX
                     : (int64_t)(fs.f_bavail * fs.f_frsize);
        ret = 0;
    }
    free(at);
    return ret;
}

/* The number behind `key` in a file of "key value" or "key: value" lines; with
 * an empty key the file's first word.  -1: there is none. */
static int64_t number_of(const char *path, const char *key)
{
    char line[256];
    int64_t found = -1;
    size_t n = strlen(key);
    FILE *f = fopen(path, "re");

    while (f && found < 0 && fgets(line, sizeof(line), f))
        if (strncmp(line, key, n) == 0 &&
            sscanf(line + n, "%*[: \t]%" SCNd64, &found) != 1 &&
            sscanf(line + n, "%" SCNd64, &found) != 1)
            found = -1;
    if (f)
        fclose(f);
    return found;
}

struct least {
    int64_t bytes;
    const char *limit;
};

static void take(struct least *l, int64_t bytes, const char *limit)
{
    if (bytes < l->bytes) {
        l->bytes = bytes < 0 ? 0 : bytes;
        l->limit = limit;
    }
}

/* One control group's folder: "max" and an absent file are no limit. */
static void take_group(struct least *l, const char *dir, bool is_second)
{
    char *limit =
        path_join(dir, is_second ? "memory.max" : "memory.limit_in_bytes");
    char *used =
        path_join(dir, is_second ? "memory.current" : "memory.usage_in_bytes");
    char *stat = path_join(dir, "memory.stat");
    int64_t most = number_of(limit, ""), now = number_of(used, "");
    int64_t cache = number_of(stat, "inactive_file ");

    if (most >= 0 && now >= 0)
        take(l, most - now + (cache > 0 ? cache : 0),
             "the control group's limit");
    free(stat);
    free(used);
    free(limit);
}

/* The group that a line of /proc/self/cgroup names, and those above it. */
static void take_groups(struct least *l, const char *root, const char *group,
                        bool is_second)
{
    char *at = xasprintf("%s%s", root, group);

    while (strlen(at) >= strlen(root)) {
        take_group(l, at, is_second);
        char *dir = path_dir(at);
        free(at);
        at = dir;
    }
    free(at);
}

static void take_control_groups(struct least *l)
{
    char line[PATH_MAX + 64];
    FILE *f = fopen("/proc/self/cgroup", "re");

    while (f && fgets(line, sizeof(line), f)) {
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;

        line[strcspn(line, "\n")] = '\0';
        if (!group || strstr(group, ".."))
            continue;
        *group++ = '\0';
        if (strcmp(controllers, ":") == 0)
            take_groups(l, "/sys/fs/cgroup", group, true);
        else if (strstr(controllers, "memory"))
            take_groups(l, "/sys/fs/cgroup/memory", group, false);
    }
    if (f)
        fclose(f);
}

/* Address space that is taken and never touched: libraries, stacks. */
static int64_t unused_space(void)
{
    enum { LIBRARIES = 24 << 20, STACK = 8 << 20 };
    long threads = sysconf(_SC_NPROCESSORS_ONLN);

    return LIBRARIES + (threads > 1 ? threads - 1 : 0) * (int64_t)STACK;
}

static void take_rlimit(struct least *l, __rlimit_resource_t resource,
                        const char *name)
{
    struct rlimit r;

    if (getrlimit(resource, &r) == 0 && r.rlim_cur != RLIM_INFINITY &&
        r.rlim_cur < INT64_MAX)
        take(l, (int64_t)r.rlim_cur - unused_space(), name);
}

int room_in_memory(int64_t *bytes, const char **limit, struct err *err)
{
    int64_t kib = number_of("/proc/meminfo", "MemAvailable");
    struct least l = {kib < 0 ? INT64_MAX : kib * 1024, "RAM"};

    take_control_groups(&l);
    take_rlimit(&l, RLIMIT_AS, "ulimit -v");
    take_rlimit(&l, RLIMIT_DATA, "ulimit -d");
    if (l.bytes == INT64_MAX)
        return err_set(err, ERR_SYSTEM, "/proc/meminfo: tells no memory");
    *bytes = l.bytes;
    *limit = l.limit;
    return 0;
}

int64_t room_peak(void)
{
    int64_t kib = number_of("/proc/self/status", "VmHWM");

    return kib < 0 ? 0 : kib * 1024;
}

void room_format(int64_t bytes, char out[32])
{
    if (bytes < 10 << 20)
        snprintf(out, 32, "%" PRId64 " KiB", bytes / 1024);
    else if (bytes < (int64_t)10 << 30)
        snprintf(out, 32, "%" PRId64 " MiB", bytes >> 20);
    else
        snprintf(out, 32, "%.1f GiB", (double)bytes / (1 << 30));
}
