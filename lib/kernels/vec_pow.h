#ifndef KERNELS_VEC_POW_H
#define KERNELS_VEC_POW_H

/*
 * x^y in f32 as PyTorch's vectors compute it (SLEEF's powf with fma), within 1
 * unit of the last place: e^(y ln x) on pairs of floats.  x = m 2^e, m from 3/4
 * to 3/2, ln m = 2 atanh(a), a = (m - 1) / (m + 1), by a polynomial in a^2; the
 * exponential as in vec_exp() (softmax.h), with a polynomial of its own.  x
 * normal and above 0, y ln x between -87 and 88.
 *
 * PyTorch takes whole 32s of a tensor so, and what is left over with the C
 * library's powf, which elem_pow_f32() is but for one value in 1,700.
 */
float vec_pow(float x, float y);
enum { VEC_POW_WHOLE = 32 };
#endif
