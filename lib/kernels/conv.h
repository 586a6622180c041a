#ifndef KERNELS_CONV_H
#define KERNELS_CONV_H

#include <stdint.h>

/*
 * Causal depthwise convolution: with the rows of `state` [taps - 1, channels]
 * before those of x [tokens, channels],
 *     y[t][c] = sum over i = 0 .. taps - 1 of row[t + i][c] * w[c][i],
 * w [channels, taps]; the last tap multiplies the token itself.  The sum
 * starts at 0 and goes up in i; each product and each addition is rounded.
 * y [tokens, channels] is not rounded further and overlaps nothing.
 */
void conv_causal(float *y, const float *state, const float *x, const float *w,
                 int64_t channels, int64_t taps, int64_t tokens);
void conv_causal_f64(double *y, const double *state, const double *x,
                     const double *w, int64_t channels, int64_t taps,
                     int64_t tokens);

/* The same with one rounding for a product and its addition, as PyTorch's CPU
 * backend computes it. */
void conv_causal_fused(float *y, const float *state, const float *x,
                       const float *w, int64_t channels, int64_t taps,
                       int64_t tokens);

/* Makes state the last taps - 1 rows of state and x. */
void conv_advance(float *state, const float *x, int64_t channels, int64_t taps,
                  int64_t tokens);
void conv_advance_f64(double *state, const double *x, int64_t channels,
                      int64_t taps, int64_t tokens);
#endif
