#ifndef KERNELS_POSEMBED_H
#define KERNELS_POSEMBED_H

#include "tensor/dtype.h"

#include <stdint.h>

/*
 * An image's grid of patches, and the learned position table [side * side,
 * cols] it is stretched over.  Patches stand in block order: block row, block
 * column, row in the block, column in the block, blocks of merge x merge;
 * height and width are multiples of merge.
 */
struct posembed_grid {
    int64_t height, width, side, merge;
};

/* Row and column of the i-th patch (of its temporal slice). */
void posembed_place(const struct posembed_grid *grid, int64_t i, int64_t *row,
                    int64_t *col);

/*
 * y [rows, cols]: embeddings of the patches first, first + 1, ..., the table
 * interpolated bilinearly, corners aligned.  In f32: u = i / (n - 1),
 * h = u * (side - 1), d = h - trunc(h) (n = 1: 0); four weights as products of
 * (1 - d) and d, rounded to t; y = t(t(t(p0 + p1) + p2) + p3), p = t(table *
 * weight), corners in the order (top left, top right, bottom left, bottom
 * right).
 */
void posembed_rows(float *y, const float *table, int64_t cols,
                   const struct posembed_grid *grid, int64_t first,
                   int64_t rows, enum dtype t);
void posembed_rows_f64(double *y, const double *table, int64_t cols,
                       const struct posembed_grid *grid, int64_t first,
                       int64_t rows);
#endif
