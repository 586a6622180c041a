/*
 * Where oneDNN cuts the rows of a bf16 product on a processor with AMX.  Its
 * blocking keeps a band of activations and a strip of weights in the L1 and one
 * of the two operands in the L2; what it sums before it goes to memory is one
 * chunk.  Followed here for one thread, in its own integer and float
 * arithmetic, and compared with torch 2.13 over hundreds of shapes
 * (tests/oracle/blocking.py).
 */
#include "kernels/torch_blocking.h"

enum {
    TILE = 16, /* rows and columns of a tile of results */
    STEP = 32, /* columns of a row that one tile step takes */
    L1 = 5 * (48 << 10) / 6,
    L2 = 3 * (2 << 20) / 4,
    L2_WAY = 128 << 10, /* bytes a way, of which 16 */
    L2_WAYS = 12,
    LINE = 64,
    PAGE = 4096,
    HALF = 2, /* bytes of operand and result */
    FULL = 4, /* of a sum */
};

/* A product, and the tiles of results that are computed together. */
struct shape {
    int64_t rows, out, in;
    int64_t band, strip; /* rows and columns of those */
};

/* Which operand stays in the L2: the weights, bands of rows passing by, or the
 * activations, strips of columns passing by. */
enum kept { WEIGHTS, ACTIVATIONS };

static int64_t up(int64_t n, int64_t by)
{
    return (n + by - 1) / by;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Bytes of a band by a strip of results as they are stored. */
static int64_t stored(int64_t rows, int64_t cols)
{
    return rows * up(cols * HALF, LINE) * LINE;
}

/* Columns whose operands, `wide` rows of them, fit the L1: even pieces. */
static int64_t l1_columns(const struct shape *s, int64_t wide)
{
    int64_t room =
        L1 - (2 * s->band * s->strip * FULL + stored(s->band, s->strip));
    int64_t step = least(STEP, s->in), steps = up(s->in, step);
    int64_t most = room / (wide * HALF) / step;

    return least(up(steps, up(steps, most)) * step, s->in);
}

/* A candidate: `size` rows or columns of the kept operand, by `depth` columns
 * of the row, taken `piece` at a time. */
struct candidate {
    int64_t size, depth, piece;
};

static bool fits_l2(const struct shape *s, enum kept kept,
                    const struct candidate *c)
{
    int64_t passing = kept == WEIGHTS ? s->band : s->strip;
    int64_t results = kept == WEIGHTS ? 2 * stored(s->band, c->size)
                                      : 2 * stored(c->size, s->strip);
    int64_t sums = c->piece == s->in ? 2 * s->band * s->strip * FULL
                                     : 2 * passing * c->size * FULL;

    return 2 * passing * c->depth * HALF + c->size * c->depth * HALF + sums +
               results <=
           L2;
}

/* Products a byte moved; 0 when it does not fit. */
static float worth(const struct shape *s, enum kept kept,
                   const struct candidate *c)
{
    int64_t rows = kept == WEIGHTS ? s->band : c->size;
    int64_t cols = kept == WEIGHTS ? c->size : s->strip;
    int64_t passing = kept == WEIGHTS ? s->rows : s->out;
    int64_t bytes = (rows + cols) * c->depth * HALF;

    if (!fits_l2(s, kept, c))
        return 0;
    if (c->depth != s->in &&
        2 * (passing + c->size) * c->depth * HALF + passing * c->size * FULL >=
            L2)
        bytes += rows * cols * FULL;
    return (float)(rows * c->depth * cols) / (float)bytes;
}

/* The next smaller share of n things: ceil(n / groups) for more groups. */
static int64_t smaller(int64_t n, int64_t share)
{
    if (share <= 1)
        return 0;
    return up(n, up(n, share - 1));
}

/* The best candidate of at least `from` pieces of `piece` columns; of size 0
 * when none fits. */
static struct candidate best_of(const struct shape *s, enum kept kept,
                                int64_t piece, int64_t from)
{
    const int64_t unit = kept == WEIGHTS ? s->strip : s->band;
    const int64_t units = up(kept == WEIGHTS ? s->out : s->rows, unit);
    const int64_t pieces = up(s->in, piece);
    struct candidate best = {0};
    float most = 0;

    for (int64_t u = units; u > 0; u = smaller(units, u))
        for (int64_t p = pieces; p > 0; p = smaller(pieces, p)) {
            struct candidate c = {u * unit, least(p * piece, s->in), piece};
            float value = worth(s, kept, &c);

            if (value > most && p >= from) {
                most = value;
                best = c;
            }
        }
    return best;
}

/* Are rows of results so far apart that they displace one another in the L2? */
static bool is_displacing(const struct shape *s)
{
    int64_t stride = s->out * HALF % PAGE;

    if (stride == 0)
        stride = PAGE;
    return L2_WAY % stride == 0 && up(stride * s->rows, L2_WAY) >= L2_WAYS;
}

static bool keeps_activations(const struct shape *s, int64_t piece)
{
    struct candidate best = best_of(s, ACTIVATIONS, piece, 0);

    if (best.depth < s->in || is_displacing(s))
        return false;
    return s->out < 2 * TILE || s->rows < s->out;
}

/* The weights stay in the L2: the L1 holds pieces of a band, or nothing when
 * they would displace one another.  Bands that are read often enough are copied
 * to whole blocks first. */
static struct torch_blocking by_bands(const struct shape *s)
{
    int64_t piece = l1_columns(s, s->band);
    struct candidate best = best_of(s, WEIGHTS, piece, 0);

    if (piece < s->in && up(s->in, piece) * piece * s->band * HALF +
                                 2 * s->strip * s->band * FULL +
                                 stored(s->band, s->strip) >
                             L1) {
        best = best_of(s, WEIGHTS, STEP, piece / STEP);
        piece = best.depth;
    }
    return (struct torch_blocking){
        piece, least(best.size, s->out) < 3 * s->strip || piece < 4 * STEP};
}

struct torch_blocking torch_blocking(int64_t rows, int64_t out, int64_t in)
{
    struct torch_blocking whole = {in, true}, y;
    int64_t bands = up(rows, TILE), piece;
    struct shape s = {rows, out, in, least(rows, 2 * up(rows, bands)),
                      least(out, 2 * TILE)};

    if (rows <= 2 * TILE)
        return whole;
    piece = l1_columns(&s, s.strip);
    y = keeps_activations(&s, piece) ? (struct torch_blocking){piece, true}
                                     : by_bands(&s);
    return y.chunk > 0 && y.chunk < in ? y
                                       : (struct torch_blocking){in, y.is_even};
}
