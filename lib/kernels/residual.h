#ifndef KERNELS_RESIDUAL_H
#define KERNELS_RESIDUAL_H

#include <stdint.h>

/*
 * Attention of a row over its own earlier states (kimi-k3.md 4.1).  A row of x
 * is [v_n | v_0 | v_1 | ... ], `stride` values; each v is `width` wide:
 *
 *     w = norm * proj;  r_j = 1 / sqrt(mean of v_j^2 + eps)      (lanes16)
 *     s_j = sum of (v_j r_j) w, one chain in double, rounded once
 *     y = sum of p_j v_j, p = softmax(s), j from 0 to n
 *
 * y [rows, width] is f32 (double in the _f64 form) and not rounded further.
 *
 * The _torch form takes the same steps as PyTorch's CPU backend does them on a
 * stack of the v: sums over columns are cascade_sum, s of (v_j r_j) * w each
 * rounded, the softmax softmax_vec_row, y cascade_column_sum of p_j v_j.
 */
void residual_mix(float *y, const float *x, const float *norm,
                  const float *proj, double eps, int64_t n, int64_t width,
                  int64_t stride, int64_t rows);
void residual_mix_torch(float *y, const float *x, const float *norm,
                        const float *proj, double eps, int64_t n, int64_t width,
                        int64_t stride, int64_t rows);
void residual_mix_f64(double *y, const double *x, const double *norm,
                      const double *proj, double eps, int64_t n, int64_t width,
                      int64_t stride, int64_t rows);

#endif
