#ifndef KERNELS_LINEAR_H
#define KERNELS_LINEAR_H

#include "kernels/dense.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * y = x W^T in f32, in the order in which PyTorch's CPU backend adds it up in
 * one call (torch 2.13 with MKL on a processor with AVX-512;
 * the order depends on the number of rows):
 *
 *     parts    16 rows and more, or in < 24 rows: columns in parts, each one
 *              fma chain, the parts added up.  Parts are of 384 columns while
 *              more than 768 are left; then two halves, the first not the
 *              shorter, or up to 384 columns at once.  192 outputs and more of
 *              more than 768 columns: parts of 384 to the end
 *     lanes    2 to 15 rows otherwise: sixteen chains, column i in i mod 16;
 *              r[j] = ((l[j] + l[j + 4]) + l[j + 8]) + l[j + 12], j < 4;
 *              (r[0] + r[1]) + (r[2] + r[3])
 *     row      one row, or one output: sixteen chains from column 1 on over
 *              whole sixteens, the first of them starting from x[0] w[0];
 *              halves added pairwise down to one, which starts the first chain
 *              of what is left over
 *
 * The last outputs beyond whole fours of a single row have another order, as
 * have two or three outputs in lanes and parts of fewer than sixteen rows; they
 * are not followed.  x [rows, in], y [rows, out], not overlapping, of a call of
 * `call_rows` rows; bias [out], one more addition, or NULL.
 */
void linear_torch(float *y, const float *x, const struct dense_weight *w,
                  const float *bias, int64_t rows, int64_t call_rows);

/* The columns of the next part when so many are left; is_long: of parts of 384
 * to the end. */
int64_t linear_part(int64_t left, bool is_long);

/*
 * Products of a batch, [rows, in] by [in, out] each: below 400 values rows * in
 * * out every sum goes one after the other, product and sum rounded; else the
 * orders above (parts of 384 to the end only from 192 rows on).
 */
enum linear_order {
    LINEAR_ONE_BY_ONE,
    LINEAR_PARTS,
    LINEAR_LONG_PARTS,
    LINEAR_LANES,
    LINEAR_ROW,
};
enum linear_order linear_batch_order(int64_t rows, int64_t in, int64_t out);
float linear_dot(const float *x, const float *w, int64_t n,
                 enum linear_order order);

/*
 * y = x m of one row x [n] and a matrix m [n, columns] of a batch.  Below 400
 * values n * columns one by one; else the columns up to the last sixteen are
 *     y = (f(4, f(6, y)) + f(5, f(7, 0))) + (f(0, f(2, 0)) + f(1, f(3, 0)))
 * for every eight of x, f(i, a) = fma(x[i], m[i], a), y starting at 0; what is
 * left of x, and all of it in the columns after them, is a chain.
 */
void linear_mix(float *y, const float *x, const float *m, int64_t n,
                int64_t columns);
#endif
