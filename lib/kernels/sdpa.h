#ifndef KERNELS_SDPA_H
#define KERNELS_SDPA_H

#include <stdint.h>

/*
 * Scaled dot product attention as PyTorch's CPU backend computes it, over keys
 * 0, 1, 2 ... of one sequence.  Query head h reads key/value head
 * h / (heads / kv_heads).
 *
 * SDPA_MATH, in f32 (or double), the backend's separate operations:
 *     s = (q sqrt(scale)) . (k sqrt(scale)); p = softmax(s) (softmax.h);
 *     y = sum of p v.  Sums are chain128 over the keys a row sees, from the
 *     first of them.
 * SDPA_MATH_VEC in f32 as on a processor with AVX-512 and MKL: the softmax
 *     is the vectorised one (softmax_vec_row) over all keys, those that a row
 *     does not see at -infinity; sums are linear.h's parts of columns or of all
 *     keys; scores of fewer than 16 rows, 24 times wider, linear.h's lanes.
 * SDPA_BATCH in f32, the operations that a graph spells out: s = (q . k) scale,
 *     the vectorised softmax over all keys, the sum of p v; both products are
 *     those of a batch (linear_batch_order()).  Without a window.
 * SDPA_FLASH and SDPA_FLASH_EXACT, the fused kernel on bf16 operands
 * (minimax-m2.md 9): keys in blocks of 512 from key 0, running maximum m (from
 *     -infinity), sum l and accumulator O; a block gives
 *     s = (q . k) scale; m' = max(m, max s); r = exp(m - m');
 *     p = fexp(s - m'); l = l r + sum of p; O = O r + bf(p) v (the sum
 *     starts at O r);
 *     m = m'; at the end y = O (1 / l).
 *     Queries are taken in blocks of 32 rows, 64 from 192 rows on, 256 from
 *     768. Products are blocks32; from 64 rows and 64 keys on, which the
 *     kernel packs, in blocks of the largest even part, at most 32, of the
 *     columns of q or of all keys of the block, seen or not, each rounded up
 *     to even. Of a block of one row that is not packed q . k has 16 lanes
 *     of pairs (the second of a pair before the first; lanes i and i + 8,
 *     then neighbours), and the values are added eight keys at a time, one
 *     chain of pairs each. The sum of p has 32 lanes over whole sixteens of
 *     the keys taken up (lane k mod 32, then l[i] + l[i + 16], 8, 4, 2, 1),
 *     then the others are added one by one. fexp is the cubic that PyTorch
 *     uses with AVX2 or AVX-512 (flash_exp) on those sixteens, exp on the
 *     others; or exp on all. With a mask all keys are taken up, else those
 *     that the last row of the block of queries sees.
 *
 * y is not rounded.  In double there is SDPA_MATH alone.
 */
enum sdpa_kind {
    SDPA_MATH,
    SDPA_MATH_VEC,
    SDPA_BATCH,
    SDPA_FLASH,
    SDPA_FLASH_EXACT,
};

struct sdpa {
    enum sdpa_kind kind;
    int64_t heads, kv_heads;    /* heads is a multiple of kv_heads */
    int64_t key_dim, value_dim; /* of a head of q and k, of v and y */
    double scale;
    const unsigned char *visible; /* [rows, keys], 0: not seen; NULL: causal,
                                     row t sees the first keys - rows + 1 + t */
    int64_t window; /* without visible: of these the last `window`; 0: all */
};

/*
 * q [rows, heads, key_dim], k [keys, kv_heads, key_dim], v [keys, kv_heads,
 * value_dim], y [rows, heads, value_dim].  keys >= rows >= 1; every row sees a
 * key.  Rows and heads are divided among the threads.
 */
void sdpa(float *y, const float *q, const float *k, const float *v,
          const struct sdpa *how, int64_t rows, int64_t keys);
void sdpa_f64(double *y, const double *q, const double *k, const double *v,
              const struct sdpa *how, int64_t rows, int64_t keys);

/* The cubic fast exponential of x <= 0; 0 below -87.33654. */
float flash_exp(float x);
#endif
