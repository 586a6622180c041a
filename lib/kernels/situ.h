#ifndef KERNELS_SITU_H
#define KERNELS_SITU_H

#include "tensor/dtype.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * The gated unit SiTU (kimi-k3.md 8.1), in f32 and rounded once to t:
 *     y = beta tanh(gate / beta) * sigmoid(gate) * u
 *     u = linear tanh(up / linear); up itself when linear is 0
 * y may be an input.  The _f64 form rounds nothing.  is_torch: the sigmoid of
 * one of PyTorch's calls on n values (eager.h), else the exact one.
 */
void situ(float *y, const float *gate, const float *up, double beta,
          double linear, bool is_torch, int64_t n, enum dtype t);
void situ_f64(double *y, const double *gate, const double *up, double beta,
              double linear, int64_t n);
#endif
