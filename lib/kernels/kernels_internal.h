#ifndef KERNELS_KERNELS_INTERNAL_H
#define KERNELS_KERNELS_INTERNAL_H

#include "kernels/attention.h"
#include "kernels/blocks32.h"
#include "kernels/dense.h"
#include "kernels/gated_delta.h"
#include "kernels/kernels.h"
#include "kernels/packed.h"

#include <math.h>
#include <stdbool.h>

enum {
    CHAIN = 128,        /* the block of chain128 */
    PACKED_GROUP = 128, /* columns that share a scale */
    PACKED_WORDS = 8    /* words of codes in a group */
};

/* Whatever the NaN, the one NaN. */
static inline float canonical_f32(float x)
{
    return x == x ? x : __builtin_nanf("");
}
static inline double canonical_f64(double x)
{
    return x == x ? x : __builtin_nan("");
}

/*
 * One form of every heavy kernel.  An entry does what the public function of
 * its name promises, its arguments checked; threads and scratch are its own
 * affair.  KERNEL_FORM declares the functions of a form, KERNEL_TABLE is its
 * table: a new entry stands in all three lists.
 */
/* Columns of a chunk (never 0), of a block, and of a block of the last chunk
 * where that is a shorter one; is y added to? */
struct blocks32 {
    int64_t block, last_block, chunk;
    bool is_added;
};

struct kernel_table {
    enum kernel_form form;
    const char *name;
    void (*packed_matmul)(float *y, const float *x,
                          const struct packed_weight *w, enum packed_grid grid,
                          int64_t rows);
    void (*packed_matmul_f64)(double *y, const double *x,
                              const struct packed_weight *w, int64_t rows);
    void (*dense_matmul)(float *y, const float *x, const struct dense_weight *w,
                         const float *bias, enum dense_order order,
                         int64_t rows);
    void (*dense_matmul_f64)(double *y, const double *x,
                             const struct dense_weight *w, const double *bias,
                             enum dense_order order, int64_t rows);
    void (*hadamard)(float *x, const float *signs, int64_t width, int64_t block,
                     int64_t rows, bool is_inverse);
    void (*hadamard_f64)(double *x, const double *signs, int64_t width,
                         int64_t block, int64_t rows, bool is_inverse);
    void (*attention)(float *y, const float *q, const float *k, const float *v,
                      const struct attention *a, int64_t rows, int64_t keys);
    void (*attention_f64)(double *y, const double *q, const double *k,
                          const double *v, const struct attention *a,
                          int64_t rows, int64_t keys);
    void (*gated_delta)(float *y, float *state, const float *q, const float *k,
                        const float *v, const float *g, const float *beta,
                        const struct gated_delta *shape, int64_t tokens);
    void (*gated_delta_f64)(double *y, double *state, const double *q,
                            const double *k, const double *v, const double *g,
                            const double *beta, const struct gated_delta *shape,
                            int64_t tokens);
    void (*blocks32_matmul)(float *y, const float *x,
                            const struct dense_weight *w, const float *bias,
                            int64_t rows, struct blocks32 how);
};

#define KERNEL_FORM(form)                                                     \
    void packed_matmul_##form(float *y, const float *x,                       \
                              const struct packed_weight *w,                  \
                              enum packed_grid grid, int64_t rows);           \
    void packed_matmul_f64_##form(double *y, const double *x,                 \
                                  const struct packed_weight *w,              \
                                  int64_t rows);                              \
    void dense_matmul_##form(float *y, const float *x,                        \
                             const struct dense_weight *w, const float *bias, \
                             enum dense_order order, int64_t rows);           \
    void dense_matmul_f64_##form(                                             \
        double *y, const double *x, const struct dense_weight *w,             \
        const double *bias, enum dense_order order, int64_t rows);            \
    void hadamard_##form(float *x, const float *signs, int64_t width,         \
                         int64_t block, int64_t rows, bool is_inverse);       \
    void hadamard_f64_##form(double *x, const double *signs, int64_t width,   \
                             int64_t block, int64_t rows, bool is_inverse);   \
    void attention_##form(float *y, const float *q, const float *k,           \
                          const float *v, const struct attention *a,          \
                          int64_t rows, int64_t keys);                        \
    void attention_f64_##form(double *y, const double *q, const double *k,    \
                              const double *v, const struct attention *a,     \
                              int64_t rows, int64_t keys);                    \
    void gated_delta_##form(float *y, float *state, const float *q,           \
                            const float *k, const float *v, const float *g,   \
                            const float *beta,                                \
                            const struct gated_delta *shape, int64_t tokens); \
    void gated_delta_f64_##form(                                              \
        double *y, double *state, const double *q, const double *k,           \
        const double *v, const double *g, const double *beta,                 \
        const struct gated_delta *shape, int64_t tokens);                     \
    void blocks32_matmul_##form(                                              \
        float *y, const float *x, const struct dense_weight *w,               \
        const float *bias, int64_t rows, struct blocks32 how)

#define KERNEL_TABLE(FORM, form)                                               \
    {                                                                          \
        FORM, #form, packed_matmul_##form, packed_matmul_f64_##form,           \
            dense_matmul_##form, dense_matmul_f64_##form, hadamard_##form,     \
            hadamard_f64_##form, attention_##form, attention_f64_##form,       \
            gated_delta_##form, gated_delta_f64_##form, blocks32_matmul_##form \
    }

KERNEL_FORM(plain);
KERNEL_FORM(avx2);

/* The table of the form in use. */
const struct kernel_table *kernels_table(void);
#endif
