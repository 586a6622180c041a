#ifndef KERNELS_CASCADE_H
#define KERNELS_CASCADE_H

#include "tensor/dtype.h"

#include <stdint.h>

/*
 * The order in which PyTorch's CPU backend adds up a contiguous row of floats,
 * cascade8 v1 (the same with AVX2 and AVX-512):
 *
 *     a row of steps: s[0..4) from 0, step i goes to s[i mod 4], i ascending,
 *         those beyond the last whole four to s[0]; then ((s0 + s1) + s2) + s3
 *     n >= 8: the steps are whole eights, side by side in 8 lanes; y starts at
 *         0; then the values beyond the last eight, then the 8 lanes, each
 *         added to y in order
 *     n < 8: the steps are the values
 *
 * A long chain s[j] is cut: 2^p steps (p the larger of 4 and a quarter of
 * ceil(log2 of its length)) are summed from 0 and go to a sum of the next level,
 * which is cut likewise; at the end the levels are added, lowest first.
 */
float cascade_sum(const float *x, int64_t n);

/*
 * A sum over the rows of a matrix of `columns` columns: x [n] are the values of
 * column `column`.  Columns in whole 32s (in whole fours when there are fewer
 * than 8) are one chain each, cut like s[j] above; the others are four.
 */
float cascade_column_sum(const float *x, int64_t n, int64_t column,
                         int64_t columns);

/*
 * PyTorch's RMS norm of rows: m = cascade_sum(x^2) / cols;
 * r = 1 / sqrt(m + eps); y = t(w * t(x * r)), w NULL: y = t(x * r).  y may be x.
 */
void cascade_rms_norm(float *y, const float *x, const float *weight,
                      int64_t rows, int64_t cols, double eps, enum dtype t);
#endif
