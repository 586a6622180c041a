#ifndef KERNELS_COMPRESSED_H
#define KERNELS_COMPRESSED_H

#include "tensor/dtype.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Attention over a window of keys and over compressed entries, as Transformers'
 * eager graph of DeepSeek-V4 computes it (deepseek-v4.md 6).  t is the compute
 * dtype: inputs are exact in it and results rounded to it (F32: not); the _f64
 * forms round nothing.  Products in BF16 are blocks32 or even32 as
 * torch_blocking.h has it, else chain128.  Rows are divided among the threads.
 */

/*
 * Rotates the pairs (2i, 2i + 1) of the last `dims` columns of every head of x
 * [rows, heads, width], in place: a' = t(a c - b s), b' = t(b c + a s), by
 * tables [rows, dims / 2].  is_back: by minus the angle.
 */
struct turn {
    int64_t heads, width, dims;
    bool is_back;
};
void compressed_turn(float *x, const float *cosine, const float *sine,
                     const struct turn *turn, int64_t rows, enum dtype t);
void compressed_turn_f64(double *x, const double *cosine, const double *sine,
                         const struct turn *turn, int64_t rows);

/* y = t(x * t(1 / sqrt(mean of x^2 + eps))): the factor is rounded first; the
 * mean is cascade8 (kernels/cascade.h; lanes16 in double).  y may be x. */
void compressed_norm(float *y, const float *x, int64_t rows, int64_t cols,
                     double eps, enum dtype t);
void compressed_norm_f64(double *y, const double *x, int64_t rows, int64_t cols,
                         double eps);

/*
 * Entry w of a window of `rate` tokens, channel by channel (6.1, 6.2): a =
 * t(softmax over the slots of (gate + bias)), the softmax in f32;
 * y = t(sum of t(kv * a)), sixteen slots at a time.
 *     plain         kv and gate [tokens, width], bias [rate, width]: the slots
 *                   are the window's tokens
 *     overlapping   [tokens, 2 width] and [rate, 2 width]: before them stand
 *                   those of the window before, which lend their first half of
 *                   the channels; the window's own lend the second
 */
struct windows {
    int64_t rate, width;
    bool is_overlapping;
};
void compressed_windows(float *y, const float *kv, const float *gate,
                        const float *bias, const struct windows *how,
                        int64_t count, enum dtype t);
void compressed_windows_f64(double *y, const double *kv, const double *gate,
                            const double *bias, const struct windows *how,
                            int64_t count);

/*
 * The indexer (6.3): the entries that token t may read, at most `most`, those
 * of the highest scores among w < (t + 1) / rate, in f32: score = sum over h of
 * (max(0, q[h] . key[w]) / sqrt(width)) (weight[h] / sqrt(heads)) q [rows,
 * heads, width], key [entries, width], weight [rows, heads].  Which of equal
 * scores: kernels/topk.h, over all `entries`, those to come at -infinity.
 * picked [rows, most]: ascending, -1 after the last.
 */
struct picking {
    int64_t heads, width, rate, most;
};
void compressed_pick(int64_t *picked, const float *q, const float *key,
                     const float *weight, const struct picking *how,
                     int64_t rows, int64_t entries);
void compressed_pick_f64(int64_t *picked, const double *q, const double *key,
                         const double *weight, const struct picking *how,
                         int64_t rows, int64_t entries);

/*
 * Attention (6): token t sees keys (t - window, t] of its own sequence and
 * compressed entries, those picked, or with picked NULL all w < (t + 1) / rate.
 * kv [rows + entries, dim] are keys and values of all heads; q and y
 * [rows, heads, dim].
 *     s = t(t(q . k) scale); p = t(softmax over s and the head's sink), f32;
 *     y = t(sum of p kv)
 * Columns are the rows of kv and the sink after them: the denominator is
 * lanes16 over the column's number (one after the other when there are
 * fewer than 16), and the last sum goes over those whole blocks in which a
 * column is seen.
 */
struct seeing {
    int64_t heads, dim, window, entries, rate;
    const int64_t *picked;
    int64_t most;
    double scale;
};
void compressed_attend(float *y, const float *q, const float *kv,
                       const float *sinks, const struct seeing *how,
                       int64_t rows, enum dtype t);
void compressed_attend_f64(double *y, const double *q, const double *kv,
                           const double *sinks, const struct seeing *how,
                           int64_t rows);
#endif
