#ifndef KERNELS_PACKED_H
#define KERNELS_PACKED_H

#include "base/err.h"

#include <stdint.h>

/*
 * Ternary weights in two bits: a word holds 16 codes, least significant
 * first; codes 0, 1, 2 are -s, 0, +s with s the f16 scale of a row's group of
 * 128 columns.
 */
struct packed_weight {
    int64_t out, in;        /* in is a multiple of 128 */
    const uint32_t *codes;  /* [out, in / 16] */
    const uint16_t *scales; /* [out, in / 128], f16 */
};

/*
 * Refuses (ERR_INPUT, naming row and group) a code 3, a scale that is negative
 * or not finite, and a bias whose bits are not those of the negated scale.
 * The kernels below may be given checked weights only.
 */
int packed_check(const struct packed_weight *w, const uint16_t *biases,
                 struct err *err);

/* The same weights from output row `first` on, `count` of them. */
struct packed_weight packed_rows(const struct packed_weight *w, int64_t first,
                                 int64_t count);

/*
 * The written orders grid24 v1 and grid32 v1.  For one row x and one group:
 *   m = max |x[k]|; E = floor(log2 m), at least -80 (m = 0: E = 0);
 *   u = 2^(E - 22), or 2^(E - 30) for grid32;
 *   q[k] = x[k] / u to the nearest even integer, at most 2^23 - 1 (2^31 - 1);
 *   D = sum of (code - 1) * q[k], exact;
 *   y = fma(s * u, (float)D, y), groups ascending, y starting at 0.
 * A row with a non-finite x gives the canonical NaN everywhere.
 * grid32 is for modules without rotation and f32 activations.
 *
 * PACKED_CHAIN is no grid: the decoded weights in the order chain v1
 * (kernels/dense.h), as MLX's CPU backend sums them.
 */
enum packed_grid { PACKED_GRID24, PACKED_GRID32, PACKED_CHAIN };

/* y[t, o] = sum over i of x[t, i] * w[o, i]; x [rows, in], y [rows, out],
 * not overlapping. */
void packed_matmul(float *y, const float *x, const struct packed_weight *w,
                   enum packed_grid grid, int64_t rows);

/* The same in double: chain128 (kernels/dense.h) over the decoded weights. */
void packed_matmul_f64(double *y, const double *x,
                       const struct packed_weight *w, int64_t rows);

/* Weight row `row` decoded, exactly: -s, +0 or s.  y [in]. */
void packed_row(float *y, const struct packed_weight *w, int64_t row);
void packed_row_f64(double *y, const struct packed_weight *w, int64_t row);
#endif
