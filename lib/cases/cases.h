#ifndef CASES_CASES_H
#define CASES_CASES_H

#include "base/buf.h"
#include "base/err.h"
#include "hash/hash.h"
#include "json/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The frozen cases of a qualification (case(5)):
 *
 *     {"cases": [{"name": "chart", "messages": [...], "thinking": false,
 *                 "max_new_tokens": 64, "now": "2026-02-03T04:05:06Z",
 *                 "images": [{"file": "images/chart.png", "sha256": "..."}],
 *                 "tools": [...], "documents": [...], "template": {...}}]}
 *
 * or the bare list.  Only name and messages are required.  Images are taken in
 * the order in which they occur in the messages, one entry each; their paths
 * are relative to the file.  Any other key is refused by its name.
 */
struct case_image {
    const char *file; /* as written */
    char *path;       /* where it lies */
    char sha256[HASH_SHA256_HEX];
};

struct test_case {
    const char *name;
    json_t *messages;          /* objects, each with a string 'role' */
    json_t *tools, *documents; /* arrays, or NULL */
    json_t *arguments;         /* 'template': an object, or NULL */
    bool has_thinking, thinking;
    int64_t max_new_tokens; /* -1 when the case does not say */
    const char *now;        /* NULL when the case does not say */
    struct case_image *images;
    size_t image_count;
};

struct case_list {
    struct test_case *cases;
    size_t count;
    char *path;
    char sha256[HASH_SHA256_HEX]; /* of the file */
    int64_t size;
    json_t *root; /* owns what the cases point at */
};

#define CASE_LIST_INIT              \
    {                               \
        NULL, 0, NULL, {0}, 0, NULL \
    }

/* Errors name file, case and key.  Release with case_list_release(). */
int case_list_read(const char *path, struct case_list *out, struct err *err);
void case_list_release(struct case_list *list);

/* The case of that name; NULL with ERR_INPUT, listing those there are. */
const struct test_case *case_list_find(const struct case_list *list,
                                       const char *name, struct err *err);

/* The image file's bytes, which must have the digest that the case names. */
int case_image_read(const struct case_image *image, struct buf *out,
                    struct err *err);

/* Is it "YYYY-MM-DDTHH:MM:SSZ", and a time that exists? */
bool case_is_time(const char *text);
#endif
