#ifndef MODELS_POSITIONS_H
#define MODELS_POSITIONS_H

#include "base/buf.h"
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/*
 * Where the images of a prompt lie, in text and in rotary positions, for the
 * Qwen3.5 vision models (mlx-vlm 0.6.3, processor and get_rope_index).
 *
 * A grid is {t, h, w} in patches; an image makes t * (h / merge) * (w / merge)
 * tokens.
 */
struct image_tokens {
    int64_t image, video, vision_start; /* ids, of config.json */
    int64_t merge;                      /* merge_size */
};

/* Tokens of one image; -1 with ERR_INPUT when merge does not divide the grid.
 */
int64_t positions_image_rows(const int64_t grid[3], int64_t merge,
                             struct err *err);

/*
 * Appends the text to `out` with the k-th `pad` ("<|image_pad|>") written as
 * many times as image k has tokens.  ERR_INPUT when there are more or fewer
 * pads than images; ERR_UNSUPPORTED for a text with images that holds
 * upstream's own placeholder "<|placeholder|>", which it would replace too.
 */
int positions_expand(const char *text, size_t len, const char *pad,
                     const int64_t *grids, size_t images, int64_t merge,
                     struct buf *out, struct err *err);

/*
 * Three axes (time, height, width) of n positions each into out[3 * n]: text
 * counts on; an image's tokens share a base and add their place in the merged
 * grid; what follows goes on after the largest.  *delta is the largest position
 * + 1 - n: a token generated at length c has position c + delta.
 *
 * ERR_INPUT when the image tokens are not, piece by piece, those of the grids,
 * each piece behind a vision_start; ERR_UNSUPPORTED for a video.
 */
int positions_rope_index(const int64_t *ids, int64_t n, const int64_t *grids,
                         size_t images, const struct image_tokens *tokens,
                         int64_t *out, int64_t *delta, struct err *err);
#endif
