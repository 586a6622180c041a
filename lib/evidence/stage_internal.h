#ifndef EVIDENCE_STAGE_INTERNAL_H
#define EVIDENCE_STAGE_INTERNAL_H

#include "evidence/stage.h"
#include "hash/hash.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One name for one place: as spelled, made absolute, and links followed. */
struct role {
    char *name, *spelled, *plain, *real;
    bool is_given; /* by --role: wins over the tool's own */
};

/* A file that was hashed. */
struct entry {
    char *path, *name; /* as given (NULL for an output), and as recorded */
    char sha256[HASH_SHA256_HEX];
    int64_t size;
};

struct entries {
    struct entry *items;
    size_t count;
};

struct stage {
    const char *program;
    int argc;
    char **argv;
    struct role *roles;
    size_t role_count;
    struct entries inputs, outputs;
    json_t *identity; /* program and libraries */
    json_t *frozen;
    json_t *record;
};

void stage_add_role(struct stage *s, const char *name, size_t name_len,
                    const char *path, bool is_given);

/* A role of the command line, "NAME=PATH". */
int stage_give_role(struct stage *s, const char *word, struct err *err);

/* The record as it would be written now. */
json_t *stage_json(struct stage *s);
#endif
