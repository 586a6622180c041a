#ifndef CASES_PROTOCOL_H
#define CASES_PROTOCOL_H

#include "base/err.h"
#include "hash/hash.h"
#include "json/json.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * The frozen rules of a qualification, protocol.json (case(5)).  Every key may
 * be absent; any other key is refused by its name.
 *
 *     {"context": 16384, "prefill_chunk": 512, "tail": "all",
 *      "max_new_tokens": 64, "compute": "f16", "sums": "chain",
 *      "image_library": "pillow 12.3", "transformers": "5.5.0",
 *      "tokenizer": "file", "now": "2026-02-03T04:05:06Z"}
 */
enum protocol_tail {
    PROTOCOL_TAIL_ALL, /* the prompt's last token lies in the last chunk */
    PROTOCOL_TAIL_ONE, /* it is a call of its own */
};

struct protocol {
    int64_t context;           /* most tokens of a prompt; 0: any */
    int64_t prefill_chunk;     /* 512 */
    enum protocol_tail tail;   /* all */
    int64_t max_new_tokens;    /* 64 */
    const char *compute;       /* "f16", "bf16", "f32", "f64"; NULL: not said */
    const char *sums;          /* as --sums; NULL: the family's */
    const char *image_library; /* "pillow 12.3" */
    const char *transformers;  /* "5.5.0" */
    const char *tokenizer;     /* "file", "class"; NULL: not said */
    const char *now;           /* NULL: not said */
    char sha256[HASH_SHA256_HEX]; /* of the file; "" for the defaults */
    int64_t size;
    json_t *root; /* owns the strings */
};

/* path NULL gives the defaults.  Release with protocol_release(). */
int protocol_read(const char *path, struct protocol *out, struct err *err);
void protocol_release(struct protocol *p);
#endif
