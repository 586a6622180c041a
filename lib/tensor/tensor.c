/* Dense tensors: shape, and owned bytes. */
#include "tensor/tensor.h"

#include "base/bug.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t shape_count(const struct tensor_shape *shape)
{
    int64_t n = 1;
    bool has_zero = false;

    for (int i = 0; i < shape->dims; i++)
        has_zero |= shape->size[i] == 0;
    if (has_zero)
        return 0;
    for (int i = 0; i < shape->dims; i++)
        if (shape->size[i] < 0 || __builtin_mul_overflow(n, shape->size[i], &n))
            return -1;
    return n;
}

int64_t shape_bytes(const struct tensor_shape *shape, enum dtype dtype)
{
    int64_t bits;
    int64_t n = shape_count(shape);

    if (n < 0 || __builtin_mul_overflow(n, (int64_t)dtype_bits(dtype), &bits) ||
        bits % 8 != 0)
        return -1;
    return bits / 8;
}

bool shape_equal(const struct tensor_shape *a, const struct tensor_shape *b)
{
    return a->dims == b->dims &&
           memcmp(a->size, b->size, (size_t)a->dims * sizeof(a->size[0])) == 0;
}

void shape_format(const struct tensor_shape *shape, char *out, size_t cap)
{
    size_t at = 0;

    BUG_ON(cap < 8);
    at += (size_t)snprintf(out, cap, "[");
    for (int i = 0; i < shape->dims && at + 28 < cap; i++)
        at += (size_t)snprintf(out + at, cap - at, "%s%lld", i ? ", " : "",
                               (long long)shape->size[i]);
    snprintf(out + at, cap - at, "]");
}

struct tensor_shape shape_of(int dims, const int64_t *size)
{
    struct tensor_shape shape = {.dims = dims};

    BUG_ON(dims < 0 || dims > TENSOR_MAX_DIMS);
    memcpy(shape.size, size, (size_t)dims * sizeof(*size));
    return shape;
}

int tensor_init(struct tensor *t, enum dtype dtype, struct tensor_shape shape,
                size_t cap, struct err *err)
{
    int64_t bytes = shape_bytes(&shape, dtype);

    BUG_ON(bytes < 0);
    t->dtype = dtype;
    t->shape = shape;
    t->data = mem_array((size_t)bytes, 1, cap, err);
    return t->data ? 0 : -1;
}

void tensor_release(struct tensor *t)
{
    free(t->data);
    t->data = NULL;
}
