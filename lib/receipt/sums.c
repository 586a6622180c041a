/* Listings of digests alone: what sha256sum prints, and what a download keeps
 * of each file. */
#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "receipt/receipt_internal.h"

#include <stdlib.h>
#include <string.h>

enum { LINE_CAP = 4096, MAX_DEPTH = 64 };

static const char tag[] = "SHA256 (";

/* ------------------------------------------------------------- sha256sum */

bool receipt_is_sums(const char *text)
{
    size_t n;

    while (*text == '#') /* a remark */
        text += strcspn(text, "\n") + (text[strcspn(text, "\n")] == '\n');
    text += *text == '\\';
    n = strspn(text, "0123456789abcdefABCDEF");
    return strncmp(text, tag, sizeof(tag) - 1) == 0 ||
           (n == 64 && (text[n] == ' ' || text[n] == '\t'));
}

/* A name with a backslash in it: the line starts with one, and "\\\\" and
 * "\\n" stand for two characters. */
static void unescape(char *name)
{
    char *to = name;

    for (const char *at = name; *at; at++) {
        if (at[0] == '\\' && (at[1] == '\\' || at[1] == 'n'))
            *to++ = *++at == 'n' ? '\n' : '\\';
        else
            *to++ = *at;
    }
    *to = '\0';
}

/* "HEX  NAME", "HEX *NAME" or "SHA256 (NAME) = HEX", cut in place. */
static int sums_line(struct receipt *r, char *line, struct err *err)
{
    bool is_escaped = *line == '\\';
    char *hex = line + is_escaped, *name, *end;

    if (strncmp(hex, tag, sizeof(tag) - 1) == 0) {
        name = hex + sizeof(tag) - 1;
        end = strstr(name, ") = ");
        for (char *more = end; more; more = strstr(more + 1, ") = "))
            end = more;
        if (!end)
            return err_set(err, ERR_INPUT, "not 'SHA256 (name) = digest'");
        *end = '\0';
        hex = end + 4;
    } else {
        size_t n = strcspn(hex, " \t");

        if (!hex[n])
            return err_set(err, ERR_INPUT, "not 'digest  name'");
        hex[n] = '\0';
        name = hex + n + 1;
        name += *name == ' ' || *name == '*';
    }
    if (is_escaped)
        unescape(name);
    while (strncmp(name, "./", 2) == 0)
        name += 2;
    struct receipt_file *f = receipt_add(r, name);
    f->size = -1;
    return receipt_set_hex(f->sha256, sizeof(f->sha256), hex, err);
}

int receipt_import_sums(struct receipt *r, const char *text, struct err *err)
{
    char *copy = xstrdup(text), *save = NULL;
    size_t number = 0;
    int ret = 0;

    for (char *line = strtok_r(copy, "\n", &save); line && ret == 0;
         line = strtok_r(NULL, "\n", &save)) {
        number++;
        line[strcspn(line, "\r")] = '\0';
        if (*line && *line != '#' && sums_line(r, line, err))
            ret = err_in(err, "line %zu", number);
    }
    free(copy);
    return ret;
}

/* --------------------------------------------------------------- metadata */

/* Three lines: the commit, the etag (a blob id, or the SHA-256 of a file in
 * LFS), when it came. */
static int read_metadata(struct receipt *r, const char *file, const char *path,
                         struct err *err)
{
    struct buf text = BUF_INIT;
    char *save = NULL, *commit, *etag;
    int ret = -1;

    if (io_read_file(file, LINE_CAP, &text, err))
        goto out;
    commit = text.len ? strtok_r(text.data, "\r\n", &save) : NULL;
    etag = commit ? strtok_r(NULL, "\r\n", &save) : NULL;
    if (!etag) {
        err_set(err, ERR_INPUT, "not a commit and an etag, a line each");
    } else if (r->revision && strcmp(commit, r->revision) != 0) {
        err_set(err, ERR_INPUT, "is of revision '%.80s', not '%s'", commit,
                r->revision);
    } else {
        struct receipt_file *f = receipt_add(r, path);

        f->size = -1;
        ret = strlen(etag) == 64
                  ? receipt_set_hex(f->sha256, sizeof(f->sha256), etag, err)
                  : receipt_set_hex(f->git_blob, 41, etag, err);
    }
out:
    buf_release(&text);
    return ret ? err_in(err, "%s", file) : 0;
}

static int walk_metadata(struct receipt *r, const char *dir, const char *below,
                         int depth, struct err *err)
{
    static const char suffix[] = ".metadata";
    char *here = below[0] ? path_join(dir, below) : xstrdup(dir);
    struct io_list list = {NULL, 0};
    int ret = depth > MAX_DEPTH
                  ? err_set(err, ERR_INPUT, "%s: nested deeper than %d", dir,
                            (int)MAX_DEPTH)
                  : io_list(here, &list, err);

    for (size_t i = 0; i < list.count && ret == 0; i++) {
        char *path = below[0] ? xasprintf("%s/%s", below, list.names[i])
                              : xstrdup(list.names[i]);
        char *file = path_join(dir, path);
        size_t n = strlen(path), m = sizeof(suffix) - 1;

        if (io_is_dir(file)) {
            ret = walk_metadata(r, dir, path, depth + 1, err);
        } else if (n > m && strcmp(path + n - m, suffix) == 0) {
            path[n - m] = '\0';
            ret = read_metadata(r, file, path, err);
        }
        free(file);
        free(path);
    }
    io_list_release(&list);
    free(here);
    return ret;
}

int receipt_import_metadata(struct receipt *r, const char *dir, struct err *err)
{
    return walk_metadata(r, dir, "", 0, err);
}
