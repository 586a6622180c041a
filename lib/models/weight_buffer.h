#ifndef MODELS_WEIGHT_BUFFER_H
#define MODELS_WEIGHT_BUFFER_H

#include "base/err.h"

#include <stddef.h>

/*
 * The memory that a part's tensors are read into: one block, handed out front
 * to back, each piece aligned for the kernels.  Freed by free(base).
 */
struct weight_buffer {
    char *base;
    size_t size, used;
};

/* What a piece of n bytes takes of it. */
size_t weight_buffer_piece(size_t n);

/* Empties it and makes room for so many bytes of pieces; more than `cap` is
 * refused.  What was taken before is lost when there was less room. */
int weight_buffer_reserve(struct weight_buffer *b, size_t bytes, size_t cap,
                          struct err *err);

/* The next n bytes; there is room, by weight_buffer_reserve(). */
void *weight_buffer_take(struct weight_buffer *b, size_t n);
#endif
