#ifndef MODELS_PART_H
#define MODELS_PART_H

#include "models/weight_names.h"
#include "models/weights.h"
#include "tensor/tensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A part of a model (a layer, an expert) as a list of the tensors it wants, by
 * canonical name, and where each goes.  The same list checks names, dtypes and
 * shapes when the checkpoint is opened, sizes the buffer and reads it
 * (models/checkpoint.h).
 */
enum wanted_kind { WANTED_DENSE, WANTED_PARAM, WANTED_INTS };

/* Elements [offset, offset + count) of a tensor. */
struct wanted {
    enum wanted_kind kind;
    char name[WEIGHT_NAME_SIZE];
    struct tensor_shape shape; /* of the whole; of a param any of that count */
    int64_t offset, count;
    int64_t out, in; /* of a matrix */
    bool is_kept;
    bool is_prefix; /* may the tensor be longer? */
    void *target;   /* dense_weight, param or const int64_t *, by kind */
};

struct part {
    struct wanted *items; /* released with part_release() */
    size_t count, capacity;
    bool is_kept; /* of what is added from now on */
};
#define PART_INIT         \
    {                     \
        NULL, 0, 0, false \
    }
void part_clear(struct part *p); /* empty, is_kept false */
void part_release(struct part *p);

/*
 * A matrix [out, in] for products: F32, BF16 or F16, or quantised, which
 * becomes BF16 (models/quantized.h):
 *
 *     NAME F8_E4M3, NAME_scale_inv       blocks of 128 x 128 or an even grid
 *     NAME I8, NAME_scale_inv            fp4, as NAME_packed U8, NAME_scale
 *     NAME_packed I32, NAME_scale, NAME_shape    int4
 *
 * Scales are F32, BF16, F16, or powers of two (F8_E8M0, U8).
 */
void part_dense(struct part *p, struct dense_weight *target, int64_t out,
                int64_t in, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Rows [first, first + out) of matrix `index` of a tensor [count, rows, in]. */
void part_slice(struct part *p, struct dense_weight *target, int64_t count,
                int64_t index, int64_t rows, int64_t first, int64_t out,
                int64_t in, const char *format, ...)
    __attribute__((format(printf, 9, 10)));

/* Rows [first, first + count) of a matrix [out, in]. */
void part_rows(struct part *p, struct dense_weight *target, int64_t out,
               int64_t first, int64_t count, int64_t in, const char *format,
               ...) __attribute__((format(printf, 7, 8)));

/* A small tensor of `count` numbers, of any shape. */
void part_param(struct part *p, struct param *target, int64_t count,
                const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Its numbers [first, first + count) of `total`. */
void part_params(struct part *p, struct param *target, int64_t total,
                 int64_t first, int64_t count, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

/* The first `count` numbers of a small tensor that may hold more. */
void part_prefix(struct part *p, struct param *target, int64_t count,
                 const char *format, ...) __attribute__((format(printf, 4, 5)));

/* A small tensor of integers, I64 or I32. */
void part_ints(struct part *p, const int64_t **target, int64_t count,
               const char *format, ...) __attribute__((format(printf, 4, 5)));
#endif
