/* Paths, and the names that evidence may hold. */
#include "base/path.h"

#include "base/mem.h"

#include <string.h>

char *path_join(const char *dir, const char *name)
{
    size_t n = strlen(dir);

    if (name[0] == '/' || n == 0)
        return xstrdup(name);
    return xasprintf("%s%s%s", dir, dir[n - 1] == '/' ? "" : "/", name);
}

const char *path_base(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

char *path_dir(const char *path)
{
    const char *slash = strrchr(path, '/');

    if (!slash)
        return xstrdup(".");
    return slash == path ? xstrdup("/")
                         : xstrndup(path, (size_t)(slash - path));
}

static bool is_portable_char(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

static const char *name_fault(const char *name, size_t len)
{
    if (len == 0)
        return "an empty component";
    if (len > 255)
        return "a component longer than 255 bytes";
    if (name[0] == '.' || name[0] == '-')
        return "a component that starts with '.' or '-'";
    for (size_t i = 0; i < len; i++)
        if (!is_portable_char(name[i]))
            return "a character outside [A-Za-z0-9._-]";
    return NULL;
}

static const char *path_fault(const char *path)
{
    if (strlen(path) > 1000)
        return "more than 1,000 bytes";
    for (;;) {
        size_t len = strcspn(path, "/");
        const char *fault = name_fault(path, len);

        if (fault)
            return fault;
        if (!path[len])
            return NULL;
        path += len + 1;
    }
}

bool path_is_portable(const char *path)
{
    return path_fault(path) == NULL;
}

int path_check(const char *path, struct err *err)
{
    const char *fault = path_fault(path);

    return fault ? err_set(err, ERR_INPUT, "name '%s' has %s", path, fault) : 0;
}

int path_check_name(const char *name, struct err *err)
{
    const char *fault = name_fault(name, strlen(name));

    return fault ? err_set(err, ERR_INPUT, "name '%s' has %s", name, fault) : 0;
}
