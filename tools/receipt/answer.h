#ifndef TOOLS_RECEIPT_ANSWER_H
#define TOOLS_RECEIPT_ANSWER_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A server's answer as `curl -i` writes it: header blocks, of redirections too,
 * then the body of the last.  What is not HTTP (a file: address) has a block
 * without a status line.
 */
struct answer {
    int status;    /* 0: none */
    int64_t first; /* place of the body's first byte in the whole; 0 mostly */
    int64_t whole; /* length of the whole; -1: not told */
    bool is_range;
};

/*
 * Finds the end of the header in what has been read so far: 1 with the body's
 * place in *body, 0 when more is needed, -1 (ERR_SYSTEM) when it is no header.
 * `asked` is the place from which bytes were asked for.
 */
int answer_read(struct answer *a, const char *text, size_t len, int64_t asked,
                size_t *body, struct err *err);
#endif
