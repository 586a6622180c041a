#ifndef KERNELS_VEC_ELEMENTARY_H
#define KERNELS_VEC_ELEMENTARY_H

/*
 * Functions of f32 as PyTorch's vectors compute them (SLEEF's with fma, within
 * 1 unit of the last place), on pairs of floats; beside vec_exp() (softmax.h).
 * PyTorch takes whole 32s of a tensor so, VEC_WHOLE, and what is left over with
 * the C library's functions; glibc 2.36's powf is elementary.h's but for one
 * value in 1,700, its log1pf for one in 19.
 *
 * vec_pow: x^y = e^(y ln x).  x = m 2^e, m from 3/4 to 3/2, ln m = 2 atanh(a),
 * a = (m - 1) / (m + 1), by a polynomial in a^2; the exponential as in
 * vec_exp(), with a polynomial of its own.  x normal and above 0, y ln x
 * between -87 and 88.
 *
 * vec_log1p: ln(1 + x), likewise but with a shorter polynomial in one float;
 * x at least 0 and below 1e38, or a NaN.
 */
float vec_pow(float x, float y);
float vec_log1p(float x);
enum { VEC_WHOLE = 32 };
#endif
