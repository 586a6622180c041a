/* Learned position embeddings, stretched over an image's grid. */
#include "kernels/posembed.h"

#include "base/bug.h"
#include "kernels/round.h"

void posembed_place(const struct posembed_grid *grid, int64_t i, int64_t *row,
                    int64_t *col)
{
    int64_t merge = grid->merge, block = merge * merge;
    int64_t blocks = grid->width / merge;
    int64_t in_slice = i % (grid->height * grid->width);
    int64_t b = in_slice / block, inside = in_slice % block;

    BUG_ON(merge < 1 || grid->height % merge || grid->width % merge);
    *row = b / blocks * merge + inside / merge;
    *col = b % blocks * merge + inside % merge;
}

/* Position i of n on a side: the corner below, and the way to the next. */
static int64_t corner(int64_t i, int64_t n, int64_t side, float *way)
{
    float u = n > 1 ? (float)i / (float)(n - 1) : 0;
    float h = u * (float)(side - 1);
    int64_t below = (int64_t)h;

    *way = h - (float)below;
    return below;
}

static int64_t corner_f64(int64_t i, int64_t n, int64_t side, double *way)
{
    int64_t below = n > 1 ? i * (side - 1) / (n - 1) : 0;

    /* the exact position is a quotient of integers, the way its remainder */
    *way = n > 1 ? (double)(i * (side - 1) % (n - 1)) / (double)(n - 1) : 0;
    return below;
}

static int64_t next(int64_t below, int64_t side)
{
    return below + 1 < side ? below + 1 : side - 1;
}

void posembed_rows(float *y, const float *table, int64_t cols,
                   const struct posembed_grid *grid, int64_t first,
                   int64_t rows, enum dtype t)
{
    int64_t side = grid->side;

    for (int64_t k = 0; k < rows; k++, y += cols) {
        int64_t row, col;
        float dh, dw;

        posembed_place(grid, first + k, &row, &col);
        int64_t top = corner(row, grid->height, side, &dh);
        int64_t left = corner(col, grid->width, side, &dw);
        int64_t bottom = next(top, side), right = next(left, side);
        const float *corners[4] = {table + (top * side + left) * cols,
                                   table + (top * side + right) * cols,
                                   table + (bottom * side + left) * cols,
                                   table + (bottom * side + right) * cols};
        float uh = 1 - dh, uw = 1 - dw;
        float w[4] = {round_to(t, uh * uw), round_to(t, uh * dw),
                      round_to(t, dh * uw), round_to(t, dh * dw)};

        for (int64_t c = 0; c < cols; c++) {
            float sum = round_to(t, corners[0][c] * w[0]);

            for (int j = 1; j < 4; j++)
                sum = round_to(t, sum + round_to(t, corners[j][c] * w[j]));
            y[c] = sum;
        }
    }
}

void posembed_rows_f64(double *y, const double *table, int64_t cols,
                       const struct posembed_grid *grid, int64_t first,
                       int64_t rows)
{
    int64_t side = grid->side;

    for (int64_t k = 0; k < rows; k++, y += cols) {
        int64_t row, col;
        double dh, dw;

        posembed_place(grid, first + k, &row, &col);
        int64_t top = corner_f64(row, grid->height, side, &dh);
        int64_t left = corner_f64(col, grid->width, side, &dw);
        int64_t bottom = next(top, side), right = next(left, side);
        const double *a = table + (top * side + left) * cols;
        const double *b = table + (top * side + right) * cols;
        const double *c = table + (bottom * side + left) * cols;
        const double *d = table + (bottom * side + right) * cols;

        for (int64_t i = 0; i < cols; i++)
            y[i] = ((1 - dh) * (1 - dw) * a[i] + (1 - dh) * dw * b[i]) +
                   (dh * (1 - dw) * c[i] + dh * dw * d[i]);
    }
}
