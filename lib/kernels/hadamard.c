/* The normalized Walsh-Hadamard transform around packed products. */
#include "kernels/hadamard.h"

#include "base/bug.h"
#include "kernels/kernels_internal.h"
#include "kernels/threads.h"

#include <math.h>

#include "kernels/real_f32.inc"

#include "kernels/hadamard_plain.inc"

#include "kernels/real_f64.inc"

#include "kernels/hadamard_plain.inc"

static void check(int64_t width, int64_t block, int64_t rows)
{
    BUG_ON(block < 1 || (block & (block - 1)) != 0);
    BUG_ON(width < 0 || width % block != 0 || rows < 0);
}

void hadamard_rotate(float *x, const float *signs, int64_t width, int64_t block,
                     int64_t rows)
{
    check(width, block, rows);
    kernels_table()->hadamard(x, signs, width, block, rows, false);
}

void hadamard_inverse(float *x, const float *signs, int64_t width,
                      int64_t block, int64_t rows)
{
    check(width, block, rows);
    kernels_table()->hadamard(x, signs, width, block, rows, true);
}

void hadamard_rotate_f64(double *x, const double *signs, int64_t width,
                         int64_t block, int64_t rows)
{
    check(width, block, rows);
    kernels_table()->hadamard_f64(x, signs, width, block, rows, false);
}

void hadamard_inverse_f64(double *x, const double *signs, int64_t width,
                          int64_t block, int64_t rows)
{
    check(width, block, rows);
    kernels_table()->hadamard_f64(x, signs, width, block, rows, true);
}
