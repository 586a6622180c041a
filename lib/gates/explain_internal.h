#ifndef GATES_EXPLAIN_INTERNAL_H
#define GATES_EXPLAIN_INTERNAL_H

#include "gates/explain.h"

/* A whole tensor as f64, freed by the caller; NULL when it has more than `max`
 * elements or cannot be read. */
double *explain_load(const struct tensor_source *s, int64_t max);

enum { PATCHES_MAX = 1 << 25 /* elements of a patch tensor we look into */ };

/* How patches of this width are laid out: [channel][frame][y][x]. */
struct layout {
    int64_t channels, frames, patch;
    int64_t rows, features;
    double *grid; /* [images, 3]: frames, rows and columns in patches */
    int64_t images;
    int64_t merge;
};

/* Reads it off the grid and the width; false when they do not tell.  Close it
 * in either case. */
bool layout_open(struct layout *l, const struct capture *reference,
                 const struct tensor_source *patches);
void layout_close(struct layout *l);

/* Where a patch lies in its image. */
struct spot {
    int64_t image, first; /* first row of the image */
    int64_t t, y, x;      /* frame group, patch row and column */
    int64_t gt, gh, gw;
};

/* The patch of row n in merge-block order: blocks of merge x merge patches in
 * raster order, raster inside a block. */
struct spot layout_spot(const struct layout *l, int64_t n);

/* c = slope * r + offset. */
struct line {
    double slope, offset;
};

/* The line through a channel's smallest and largest value, if every element
 * lies on it within `room` (times the slope, when that is above 1). */
bool layout_fit(const struct layout *l, const double *r, const double *c,
                int64_t channel, double room, struct line *out);
#endif
