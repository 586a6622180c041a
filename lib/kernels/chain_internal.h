#ifndef KERNELS_CHAIN_INTERNAL_H
#define KERNELS_CHAIN_INTERNAL_H

#include "tensor/dtype.h"

#include <stdint.h>

/*
 * The AVX2 parts of chain128 that dense, packed and attention share.  Weights
 * go through panels [n <= CHAIN][PANEL]: PANEL columns (outputs, or keys) side
 * by side, two vectors wide, 32-byte aligned.
 */
enum { PANEL_F32 = 16, PANEL_F64 = 8 };

/*
 * Fills a panel from `count` (1 to PANEL) rows of n elements of a type, their
 * starts `stride` bytes apart: element k of row r goes to panel[k][r].  What
 * is past `count` repeats the last row.
 */
void chain_fill(float *panel, const void *rows, enum dtype dtype,
                int64_t stride, int64_t count, int64_t n);
void chain_fill_f64(double *panel, const void *rows, enum dtype dtype,
                    int64_t stride, int64_t count, int64_t n);

/*
 * One block of the order: y[t][0 .. PANEL) += the chain of x[t][k] *
 * panel[k], k < n, for `rows` rows; y and x have row strides in elements.
 */
void chain_block(float *y, int64_t y_stride, const float *x, int64_t x_stride,
                 const float *panel, int64_t n, int64_t rows);
void chain_block_f64(double *y, int64_t y_stride, const double *x,
                     int64_t x_stride, const double *panel, int64_t n,
                     int64_t rows);

/* The same, but the chain goes on from what y holds: one chain over all k. */
void chain_carry(float *y, int64_t y_stride, const float *x, int64_t x_stride,
                 const float *panel, int64_t n, int64_t rows);
void chain_carry_f64(double *y, int64_t y_stride, const double *x,
                     int64_t x_stride, const double *panel, int64_t n,
                     int64_t rows);
#endif
