/* Paths as roles: where a file lies does not stand in a record. */
#include "evidence/stage_internal.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/path.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Absolute, without "." and "..", by spelling alone. */
static char *plain_path(const char *path)
{
    char cwd[PATH_MAX] = "";
    struct buf out = BUF_INIT;

    if (path[0] != '/' && !getcwd(cwd, sizeof(cwd)))
        cwd[0] = '\0';
    char *whole = xasprintf("%s/%s", cwd, path), *save = NULL;
    for (char *part = strtok_r(whole, "/", &save); part;
         part = strtok_r(NULL, "/", &save)) {
        if (strcmp(part, ".") == 0)
            continue;
        if (strcmp(part, "..") == 0) {
            while (out.len > 0 && out.data[--out.len] != '/')
                continue;
            if (out.data)
                out.data[out.len] = '\0';
            continue;
        }
        buf_addch(&out, '/');
        buf_addstr(&out, part);
    }
    if (out.len == 0)
        buf_addch(&out, '/');
    free(whole);
    return buf_detach(&out);
}

/* Links followed as far as the path exists. */
static char *real_path(const char *plain)
{
    char *real = realpath(plain, NULL);

    if (real || strcmp(plain, "/") == 0)
        return real ? real : xstrdup(plain);
    char *dir = path_dir(plain), *real_dir = real_path(dir);
    real = path_join(real_dir, path_base(plain));
    free(dir);
    free(real_dir);
    return real;
}

/* What follows `folder` in `path`: "" or "/rest"; NULL when it lies elsewhere.
 */
static const char *rest_below(const char *path, const char *folder)
{
    size_t n = strlen(folder);

    if (strcmp(folder, "/") == 0)
        return path;
    if (strncmp(path, folder, n) != 0 || (path[n] != '/' && path[n] != '\0'))
        return NULL;
    return path + n;
}

static char *name_by_roles(const struct stage *s, const char *path,
                           bool is_plain)
{
    const struct role *best = NULL;
    const char *best_rest = NULL;

    for (size_t i = 0; i < s->role_count; i++) {
        const struct role *r = &s->roles[i];
        const char *rest = rest_below(path, is_plain ? r->plain : r->real);

        if (!rest || (best && best->is_given && !r->is_given))
            continue;
        if (!best || (r->is_given && !best->is_given) ||
            strlen(rest) < strlen(best_rest)) {
            best = r;
            best_rest = rest;
        }
    }
    if (!best)
        return NULL;
    return strcmp(best_rest, "/") == 0
               ? xstrdup(best->name)
               : xasprintf("%s%s", best->name, best_rest);
}

char *stage_name(const struct stage *s, const char *path)
{
    char *plain = plain_path(path);
    char *name = name_by_roles(s, plain, true);

    if (!name) {
        char *dir = path_dir(plain), *real_dir = real_path(dir);
        char *real = path_join(real_dir, path_base(plain));

        name = name_by_roles(s, real, false);
        free(real);
        free(real_dir);
        free(dir);
    }
    if (!name)
        name = xasprintf("ELSEWHERE/%s", path_base(plain));
    free(plain);
    return name;
}

void stage_add_role(struct stage *s, const char *name, size_t name_len,
                    const char *path, bool is_given)
{
    s->roles = xrealloc(s->roles, (s->role_count + 1) * sizeof(*s->roles));
    struct role *r = &s->roles[s->role_count++];

    r->name = xstrndup(name, name_len);
    r->spelled = xstrdup(path);
    r->plain = plain_path(path);
    r->real = real_path(r->plain);
    r->is_given = is_given;
}

void stage_role(struct stage *s, const char *name, const char *path)
{
    if (path)
        stage_add_role(s, name, strlen(name), path, false);
}

int stage_give_role(struct stage *s, const char *word, struct err *err)
{
    size_t len = strcspn(word, "=");

    if (word[len] != '=' || len == 0 || !word[len + 1])
        return err_set(err, ERR_USAGE, "--role takes NAME=PATH, not '%s'",
                       word);
    for (size_t i = 0; i < len; i++)
        if (!((word[i] >= 'A' && word[i] <= 'Z') || word[i] == '_' ||
              (i > 0 && word[i] >= '0' && word[i] <= '9')))
            return err_set(err, ERR_USAGE,
                           "--role: a name is capital letters, not '%.*s'",
                           (int)len, word);
    stage_add_role(s, word, len, word + len + 1, true);
    return 0;
}
