#ifndef KERNELS_ROPE_H
#define KERNELS_ROPE_H

#include "kernels/posembed.h"
#include "tensor/dtype.h"

#include <stdint.h>

/*
 * Rotary embeddings.  Frequencies are those of mlx: for i < dims / 2
 *
 *     f[i] = 1 / theta^(2i / dims)
 *
 * where the quotient, the power (correctly rounded) and the reciprocal each
 * round to f32.  Angles are position * f, rounded to f32; cosine and sine are
 * taken in f32 and never rounded further.  The _f64 forms do all in double.
 * Rows are divided among the threads (kernels/threads.h).
 */
void rope_inv_freq(float *f, int64_t dims, double theta);
void rope_inv_freq_f64(double *f, int64_t dims, double theta);

/*
 * Text: the first `dims` of each head are rotated, in pairs (d, d + dims / 2);
 * the rest passes.  Interleaved mRoPE: pair d takes the position of an axis,
 * 0 temporal, 1 height, 2 width; axis a in {1, 2} has the pairs a, a + 3, ...
 * below min(3 * sections[a], dims / 2), temporal the rest.
 */
struct rope_text {
    int64_t dims; /* even; at most the head's */
    double theta;
    int64_t sections[3];
};
int rope_text_axis(const struct rope_text *rope, int64_t pair);

/*
 * x [rows, heads, head_dim] in place; positions[axis][row].  The form of the
 * Metal kernel: t(xa * c - xb * s) and t(xb * c + xa * s), products and sum
 * each rounded to f32, one rounding to t.
 */
void rope_text_rows(float *x, const struct rope_text *rope,
                    const int64_t *const positions[3], int64_t rows,
                    int64_t heads, int64_t head_dim, enum dtype t);
void rope_text_rows_f64(double *x, const struct rope_text *rope,
                        const int64_t *const positions[3], int64_t rows,
                        int64_t heads, int64_t head_dim);

/*
 * Vision: angles [rows, cols] of the patches first, first + 1, ... of a grid
 * in block order (temporal slices repeat); cols = head_dim / 2, of which the
 * first half belongs to the patch's row, the second to its column, each with
 * the frequencies of dims = cols.
 */
void rope_vision_angles(float *angles, int64_t cols, double theta,
                        const struct posembed_grid *grid, int64_t first,
                        int64_t rows);
void rope_vision_angles_f64(double *angles, int64_t cols, double theta,
                            const struct posembed_grid *grid, int64_t first,
                            int64_t rows);

/*
 * x [rows, heads, head_dim] in place by angles [rows, head_dim / 2], pairs
 * (d, d + head_dim / 2): t((xa * c) + (-xb * s)) and t((xb * c) + (xa * s)) in
 * separate f32 operations.
 */
void rope_vision_rows(float *x, const float *angles, int64_t rows,
                      int64_t heads, int64_t head_dim, enum dtype t);
void rope_vision_rows_f64(double *x, const double *angles, int64_t rows,
                          int64_t heads, int64_t head_dim);
#endif
