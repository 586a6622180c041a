#ifndef GATES_CAPTURE_INTERNAL_H
#define GATES_CAPTURE_INTERNAL_H

#include "gates/capture.h"

#include <sys/types.h>

/* Shared by capture_set.c (which files there are) and capture.c (those of one
 * case, open); nobody else includes it. */
struct file {
    char *path, *role;
    size_t layer; /* which path of the command line it came with */
    dev_t dev;
    ino_t ino;
    bool has_id;
};

struct one_case {
    char *name;
    struct file *files;
    size_t count;
    size_t layers; /* how many paths have a folder or file for it */
    char *remark;
};

struct capture_set {
    bool is_single, may_fail;
    struct one_case *cases; /* sorted by name */
    size_t count;
    char *trouble;
};

/* Adds text to a "; "-separated list. */
void capture_add_remark(char **list, const char *text);

/* err's text with `path` in front replaced by `role`. */
char *capture_by_role(const struct err *why, const char *path,
                      const char *role);

/* NULL when there is none of that name. */
struct one_case *capture_set_find(const struct capture_set *set,
                                  const char *name);
#endif
