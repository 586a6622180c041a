#ifndef TENSOR_TENSOR_H
#define TENSOR_TENSOR_H

#include "base/err.h"
#include "tensor/dtype.h"

#include <stdint.h>

/*
 * A dense row-major tensor that owns its bytes, or the description of one.
 */
enum { TENSOR_MAX_DIMS = 32 };

struct tensor_shape {
    int dims; /* 0: a scalar, one element */
    int64_t size[TENSOR_MAX_DIMS];
};

struct tensor {
    enum dtype dtype;
    struct tensor_shape shape;
    void *data; /* owned; 64-byte aligned */
};

/* Number of elements, and of bytes; -1 when it does not fit 63 bits or the
 * bits are no whole number of bytes. */
int64_t shape_count(const struct tensor_shape *shape);
int64_t shape_bytes(const struct tensor_shape *shape, enum dtype dtype);
bool shape_equal(const struct tensor_shape *a, const struct tensor_shape *b);

/* "[3, 94]" */
void shape_format(const struct tensor_shape *shape, char *out, size_t cap);

/* SHAPE(3, 94) as a value */
#define SHAPE(...)                                        \
    shape_of((int)(sizeof((int64_t[]){__VA_ARGS__}) / 8), \
             (const int64_t[]){__VA_ARGS__})
struct tensor_shape shape_of(int dims, const int64_t *size);

/* Zeroed; at most `cap` bytes. */
int tensor_init(struct tensor *t, enum dtype dtype, struct tensor_shape shape,
                size_t cap, struct err *err);
void tensor_release(struct tensor *t);
#endif
