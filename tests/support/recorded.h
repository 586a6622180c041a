#ifndef SUPPORT_RECORDED_H
#define SUPPORT_RECORDED_H

/* What upstream computed, a safetensors file of tensors by name. */
#include "safetensors/safetensors.h"
#include "tap.h"
#include "tensor/dtype.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* The file that load() reads. */
__attribute__((unused)) static struct safetensors *recorded;

/* A file, or the end of the test. */
static struct safetensors *recorded_open(const char *path)
{
    struct err err = ERR_INIT;
    struct safetensors *st = safetensors_open(path, &err);

    if (!st) {
        ok(false, "%s", err.text);
        exit(1);
    }
    return st;
}

static float *load_named(const struct safetensors *st, int64_t *count,
                         const char *format, va_list args)
{
    struct err err = ERR_INIT;
    struct tensor t = {0};
    char name[64];

    vsnprintf(name, sizeof(name), format, args);
    if (safetensors_load(st, name, 1 << 28, &t, &err)) {
        ok(false, "%s", err.text);
        exit(1);
    }
    *count = shape_count(&t.shape);
    float *x = calloc((size_t)*count + 1, sizeof(*x));
    if (!x)
        exit(1);
    dtype_to_f32(t.dtype, t.data, (size_t)*count, x);
    tensor_release(&t);
    return x;
}

/* A tensor as floats, freed by the caller; *count of them. */
__attribute__((format(printf, 2, 3), unused)) static float *
load(int64_t *count, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    float *x = load_named(recorded, count, format, args);
    va_end(args);
    return x;
}

/* The same of another file. */
__attribute__((format(printf, 3, 4), unused)) static float *
load_from(const struct safetensors *st, int64_t *count, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    float *x = load_named(st, count, format, args);
    va_end(args);
    return x;
}

/* How many are not the same; a NaN is the same as another. */
__attribute__((unused)) static int64_t differing(const float *a, const float *b,
                                                 int64_t n)
{
    int64_t wrong = 0;

    for (int64_t i = 0; i < n; i++)
        wrong += !(a[i] == b[i] || (a[i] != a[i] && b[i] != b[i]));
    return wrong;
}
#endif
