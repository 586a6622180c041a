/* Lists of files with a digest each, and the manifests that spell them. */
#include "evidence/bag_internal.h"

#include "base/hex.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void bag_files_release(struct bag_files *files)
{
    for (size_t i = 0; i < files->count; i++)
        free(files->items[i].path);
    free(files->items);
    *files = (struct bag_files)BAG_FILES_INIT;
}

struct bag_file *bag_add(struct bag_files *files, const char *path)
{
    if ((files->count & (files->count - 1)) == 0)
        files->items =
            xrealloc(files->items, (files->count ? files->count * 2 : 1) *
                                       sizeof(*files->items));
    struct bag_file *f = &files->items[files->count++];

    *f = (struct bag_file){xstrdup(path), "", 0};
    return f;
}

static int by_path(const void *a, const void *b)
{
    const struct bag_file *x = a, *y = b;

    return strcmp(x->path, y->path);
}

void bag_sort(struct bag_files *files)
{
    if (files->count)
        qsort(files->items, files->count, sizeof(*files->items), by_path);
}

const struct bag_file *bag_find(const struct bag_files *files, const char *path)
{
    struct bag_file key = {(char *)path, "", 0};

    return files->count ? bsearch(&key, files->items, files->count,
                                  sizeof(*files->items), by_path)
                        : NULL;
}

void bag_fault(json_t *faults, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    json_append_line(faults, format, ap);
    va_end(ap);
}

static int by_folded_path(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;

    return strcasecmp(*x, *y);
}

void bag_check_folded(const struct bag_files *files, json_t *faults)
{
    const char **paths = xcalloc(files->count + 1, sizeof(*paths));

    for (size_t i = 0; i < files->count; i++)
        paths[i] = files->items[i].path;
    if (files->count)
        qsort(paths, files->count, sizeof(*paths), by_folded_path);
    for (size_t i = 1; i < files->count; i++)
        if (strcasecmp(paths[i - 1], paths[i]) == 0)
            bag_fault(faults, "%s and %s differ only in case", paths[i - 1],
                      paths[i]);
    free(paths);
}

/* "%0A", "%0D" and "%25" decoded in place. */
static void decode_path(char *path)
{
    char *to = path;

    for (const char *at = path; *at; at++) {
        int c = *at;

        if (c == '%' &&
            (strncasecmp(at, "%0a", 3) == 0 || strncasecmp(at, "%0d", 3) == 0 ||
             strncmp(at, "%25", 3) == 0)) {
            c = hex_digit(at[1]) * 16 + hex_digit(at[2]);
            at += 2;
        }
        *to++ = (char)c;
    }
    *to = '\0';
}

/* One line: digest, blanks or tabs, perhaps '*', path. */
static bool parse_line(char *line, char sha256[HASH_SHA256_HEX], char **path)
{
    size_t i = 0;

    for (; i < HASH_SHA256_HEX - 1; i++) {
        if (hex_digit(line[i]) < 0)
            return false;
        sha256[i] = "0123456789abcdef"[hex_digit(line[i])];
    }
    sha256[i] = '\0';
    size_t blanks = strspn(line + i, " \t");
    if (blanks == 0)
        return false;
    *path = line + i + blanks;
    if (**path == '*')
        ++*path;
    decode_path(*path);
    return **path != '\0';
}

void bag_manifest_parse(char *text, size_t len, const char *name,
                        struct bag_files *out, json_t *faults)
{
    char *save = NULL;
    size_t number = 0;

    if (memchr(text, '\0', len)) {
        bag_fault(faults, "%s: holds a NUL", name);
        return;
    }
    for (char *line = strtok_r(text, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        char sha256[HASH_SHA256_HEX], *file;

        number++;
        line[strcspn(line, "\r")] = '\0';
        if (!parse_line(line, sha256, &file))
            bag_fault(faults, "%s: line %zu is no 'digest  path'", name,
                      number);
        else
            memcpy(bag_add(out, file)->sha256, sha256, sizeof(sha256));
    }
    bag_sort(out);
    for (size_t i = 1; i < out->count; i++)
        if (strcmp(out->items[i - 1].path, out->items[i].path) == 0)
            bag_fault(faults, "%s: '%s' stands twice", name,
                      out->items[i].path);
}

void bag_oxum(const struct bag_files *files, char out[64])
{
    int64_t bytes = 0;

    for (size_t i = 0; i < files->count; i++)
        bytes += files->items[i].size;
    snprintf(out, 64, "%lld.%zu", (long long)bytes, files->count);
}
