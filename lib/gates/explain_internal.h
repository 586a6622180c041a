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

/* An order or a normalisation explains a difference when this much is left: ten
 * times what two correct roundings of one pixel differ by. */
#define EXPLAINED 1e-5

/* c = slope * r + offset.  Where a channel has one value, `at`, throughout, any
 * slope goes through it: it is free. */
struct line {
    double slope, offset;
    bool is_free;
    double at;
};

/* How a candidate may hold what is due: another order of rows, of the axes of a
 * patch or of the channels, its values on a line each channel. */
struct arrangement {
    size_t row, axes; /* 0: as is due */
    bool is_blue_first;
    struct line lines[3]; /* by channel of r */
};

/*
 * The arrangement with the fewest changes that makes r (in the order that is
 * due) the candidate, every element within `room` (times the slope, when that
 * is above 1); on the lines given or, when these are NULL, on any.
 */
bool arrangement_find(const struct layout *l, const double *r, const double *c,
                      const struct line *lines, double room,
                      struct arrangement *out);

/* The same of a candidate whose values are rounded to so many significant bits:
 * on r's own lines, or on those of a known normalisation.  `due` as below. */
bool arrangement_find_coarse(const struct layout *l, const double *r,
                             const double *c, const struct line due[3],
                             int bits, struct arrangement *out);

/* "rows are in raster order ...; ...", NULL when the order is the one that is
 * due.  Freed by the caller. */
char *arrangement_say(const struct arrangement *a);

/*
 * The normalisation that its lines come to, by name where it is a known one.
 * `due` are the lines that take bytes to r; NULL: unknown, r is then taken for
 * values of mean 0.5 and deviation 0.5, and this said.  The second: of r
 * itself.  ? stands where a line is free; NULL when all are and no known
 * normalisation goes through their values.  Freed by the caller.
 */
char *say_normalisation(const struct arrangement *a, const struct line due[3]);
char *say_own_normalisation(const struct line due[3]);

/* Gives free lines that take bytes to values the slopes of the known
 * normalisation that agrees with all three.  False: none does, and all are
 * free. */
bool lines_settle(struct line lines[3]);

/* A case's image files, read and cut again (explain_resampling.c). */
struct resampling;

/* NULL when they cannot be read, or do not make the reference r. */
struct resampling *resampling_open(const struct test_case *planned,
                                   const struct layout *l, const double *r);
void resampling_close(struct resampling *s); /* NULL is fine */

/* The lines that take its bytes to r. */
const struct line *resampling_lines(const struct resampling *s);

/* Another resampling that makes c of the images; else how near one comes. */
char *resampling_explain(struct resampling *s, const double *c);
#endif
