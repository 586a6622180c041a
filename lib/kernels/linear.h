#ifndef KERNELS_LINEAR_H
#define KERNELS_LINEAR_H

#include "kernels/dense.h"

#include <stdint.h>

/*
 * y = x W^T in f32, in the order in which PyTorch's CPU backend adds it up in
 * one call of `rows` rows (torch 2.13 with MKL on a processor with AVX-512;
 * the order depends on the number of rows):
 *
 *     parts    16 rows and more, or in < 24 rows: columns in parts, each one
 *              fma chain, the parts added up.  Parts are of 384 columns while
 *              more than 768 are left; then two halves, the first not the
 *              shorter, or up to 384 columns at once
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
 * are not followed.  x [rows, in], y [rows, out], not overlapping.
 */
void linear_torch(float *y, const float *x, const struct dense_weight *w,
                  int64_t rows);

/* The columns of the next part when so many are left. */
int64_t linear_part(int64_t left);
#endif
