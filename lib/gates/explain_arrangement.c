/* Another order of patches, or another normalisation of their values. */
#include "base/buf.h"
#include "base/mem.h"
#include "gates/explain_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Places of a channel's smallest and largest element; -1: it has none. */
struct extremes {
    int64_t low, high;
};

/* Orders of rows: the row at which a candidate in that order holds the patch
 * that the reference (merge-block order) holds at row n. */
static int64_t row_raster(const struct layout *l, int64_t n)
{
    struct spot s = layout_spot(l, n);

    return s.first + (s.t * s.gh + s.y) * s.gw + s.x;
}
static int64_t row_columns(const struct layout *l, int64_t n)
{
    struct spot s = layout_spot(l, n);

    return s.first + (s.t * s.gw + s.x) * s.gh + s.y;
}
static int64_t row_blocks_by_column(const struct layout *l, int64_t n)
{
    struct spot s = layout_spot(l, n);
    int64_t m = l->merge, bh = s.gh / m, bw = s.gw / m;
    int64_t block = (s.t * bw + s.x / m) * bh + s.y / m;

    return s.first + (block * m + s.y % m) * m + s.x % m;
}
static int64_t row_inside_by_column(const struct layout *l, int64_t n)
{
    struct spot s = layout_spot(l, n);
    int64_t m = l->merge;
    int64_t block = (s.t * (s.gh / m) + s.y / m) * (s.gw / m) + s.x / m;

    return s.first + (block * m + s.x % m) * m + s.y % m;
}
static int64_t row_same(const struct layout *l, int64_t n)
{
    (void)l;
    return n;
}

static const struct {
    int64_t (*row)(const struct layout *l, int64_t n);
    const char *says;
} row_orders[] = {
    {row_same, ""},
    {row_raster, "rows are in raster order, not in merge-block order"},
    {row_columns, "rows run down the columns, not in merge-block order"},
    {row_blocks_by_column, "merge blocks run down the columns"},
    {row_inside_by_column, "rows inside a merge block run down the columns"},
};

/* Orders of features: the axes from the outermost in, channels as they are due
 * or blue first.  Those that others were seen to make come first. */
enum { ROW_ORDERS = sizeof(row_orders) / sizeof(row_orders[0]), AXES = 24 };
enum axis { CHANNEL, FRAME, Y, X };
static const struct {
    enum axis axes[4];
    const char *says; /* NULL: the axes by name */
} axis_orders[AXES] = {
    {{CHANNEL, FRAME, Y, X}, ""},
    {{FRAME, Y, X, CHANNEL}, "features have the channel last"},
    {{FRAME, CHANNEL, Y, X}, "features have the frame before the channel"},
    {{CHANNEL, FRAME, X, Y}, "features have x and y exchanged"},
    {{CHANNEL, Y, X, FRAME}, "features have the frame last"},
    {{Y, X, CHANNEL, FRAME}, NULL},
    {{Y, X, FRAME, CHANNEL}, NULL},
    {{FRAME, CHANNEL, X, Y}, NULL},
    {{FRAME, X, Y, CHANNEL}, NULL},
    {{CHANNEL, X, Y, FRAME}, NULL},
    {{CHANNEL, X, FRAME, Y}, NULL},
    {{CHANNEL, Y, FRAME, X}, NULL},
    {{FRAME, Y, CHANNEL, X}, NULL},
    {{FRAME, X, CHANNEL, Y}, NULL},
    {{Y, CHANNEL, FRAME, X}, NULL},
    {{Y, CHANNEL, X, FRAME}, NULL},
    {{Y, FRAME, CHANNEL, X}, NULL},
    {{Y, FRAME, X, CHANNEL}, NULL},
    {{X, CHANNEL, FRAME, Y}, NULL},
    {{X, CHANNEL, Y, FRAME}, NULL},
    {{X, FRAME, CHANNEL, Y}, NULL},
    {{X, FRAME, Y, CHANNEL}, NULL},
    {{X, Y, CHANNEL, FRAME}, NULL},
    {{X, Y, FRAME, CHANNEL}, NULL},
};

static bool is_due(const struct arrangement *a)
{
    return a->row == 0 && a->axes == 0 && !a->is_blue_first;
}

/* "rows ...; features ...; channels ...": freed by the caller. */
static char *say_order(const struct arrangement *a)
{
    static const char *const names[] = {"channel", "frame", "y", "x"};
    struct buf out = BUF_INIT;
    const enum axis *axes = axis_orders[a->axes].axes;

    buf_addstr(&out, row_orders[a->row].says);
    if (a->axes)
        buf_addstr(&out, out.len ? "; " : "");
    if (a->axes && axis_orders[a->axes].says)
        buf_addstr(&out, axis_orders[a->axes].says);
    else if (a->axes)
        buf_addf(&out, "features run by %s, %s, %s, %s", names[axes[0]],
                 names[axes[1]], names[axes[2]], names[axes[3]]);
    if (a->is_blue_first)
        buf_addf(&out, "%schannels are in the order blue, green, red",
                 out.len ? "; " : "");
    return buf_detach(&out);
}

/* Where a candidate so arranged holds feature f. */
static void fill_features(const struct layout *l, const struct arrangement *a,
                          int64_t *where)
{
    const int64_t sizes[4] = {l->channels, l->frames, l->patch, l->patch};
    const enum axis *axes = axis_orders[a->axes].axes;

    for (int64_t f = 0; f < l->features; f++) {
        int64_t at[4] = {f / (l->patch * l->patch * l->frames),
                         f / (l->patch * l->patch) % l->frames,
                         f / l->patch % l->patch, f % l->patch};
        int64_t index = 0;

        if (a->is_blue_first)
            at[CHANNEL] = l->channels - 1 - at[CHANNEL];
        for (int k = 0; k < 4; k++)
            index = index * sizes[axes[k]] + at[axes[k]];
        where[f] = index;
    }
}

/* The smallest and the largest element of a channel. */
static void find_extremes(const struct layout *l, const double *r,
                          struct extremes e[3])
{
    int64_t size = l->features / l->channels;

    for (int k = 0; k < 3; k++)
        e[k] = (struct extremes){-1, -1};
    for (int64_t i = 0; i < l->rows * l->channels; i++) {
        struct extremes *x = &e[i % l->channels];

        for (int64_t at = i * size; at < (i + 1) * size; at++) {
            if (x->low < 0 || r[at] < r[x->low])
                x->low = at;
            if (x->high < 0 || r[at] > r[x->high])
                x->high = at;
        }
    }
}

static double arranged(const struct layout *l, const double *c, size_t row,
                       const int64_t *where, int64_t at)
{
    return c[row_orders[row].row(l, at / l->features) * l->features +
             where[at % l->features]];
}

/* The lines that take r's channels to the candidate so arranged, through each
 * channel's extremes; a free one has the slope of another. */
static bool find_lines(const struct layout *l, const double *r, const double *c,
                       const struct extremes e[3], struct arrangement *a,
                       const int64_t *where)
{
    const double one_value = 1e-6; /* far below a byte's step */
    double slope = 1 / 127.5;      /* of mean 0.5, deviation 0.5 */

    for (int pass = 0; pass < 2; pass++)
        for (int k = 0; k < 3; k++) {
            struct line *line = &a->lines[k];

            if (e[k].low < 0)
                return false;
            double from = r[e[k].low], span = r[e[k].high] - from;
            double low = arranged(l, c, a->row, where, e[k].low);
            double high = arranged(l, c, a->row, where, e[k].high);
            bool is_free = !(span > one_value);
            if (is_free != (pass == 1))
                continue;
            if (!is_free)
                slope = (high - low) / span;
            *line = (struct line){slope, low - slope * from, is_free, from};
            if (!(fabs(slope) > 0) || !isfinite(slope))
                return false;
        }
    return true;
}

/* Half the last place of a value of so many significant bits; 0: of all. */
static double half_place(double v, int bits)
{
    int exponent;

    frexp(v, &exponent);
    return bits ? ldexp(0.5, exponent - bits) : 0;
}

static bool fits(const struct layout *l, const double *r, const double *c,
                 const struct arrangement *a, const int64_t *where, double room,
                 int bits)
{
    int64_t size = l->features / l->channels;

    for (int64_t n = 0; n < l->rows; n++) {
        const double *x = r + n * l->features;
        const double *y = c + row_orders[a->row].row(l, n) * l->features;

        for (int64_t f = 0; f < l->features; f++) {
            const struct line *line = &a->lines[f / size];
            double most = room * fmax(1, fabs(line->slope));

            const double v = y[where[f]];

            if (!(fabs(line->slope * x[f] + line->offset - v) <=
                  most + half_place(v, bits)))
                return false;
        }
    }
    return true;
}

static bool find(const struct layout *l, const double *r, const double *c,
                 const struct line *lines, double room, int bits,
                 struct arrangement *out)
{
    int64_t *where = xcalloc((size_t)l->features, sizeof(*where));
    struct extremes e[3];
    bool found = false;

    find_extremes(l, r, e);
    /* the fewer things differ, the sooner */
    for (int changes = 0; changes <= 3 && !found; changes++) {
        for (size_t i = 0; i < AXES * 2 * ROW_ORDERS && !found; i++) {
            struct arrangement a = {.axes = i / 2 / ROW_ORDERS,
                                    .is_blue_first = i / ROW_ORDERS % 2,
                                    .row = i % ROW_ORDERS};

            if ((a.axes != 0) + a.is_blue_first + (a.row != 0) != changes)
                continue;
            fill_features(l, &a, where);
            if (lines)
                memcpy(a.lines, lines, sizeof(a.lines));
            else if (!find_lines(l, r, c, e, &a, where))
                continue;
            found = fits(l, r, c, &a, where, room, bits);
            *out = a;
        }
    }
    free(where);
    return found;
}

bool arrangement_find(const struct layout *l, const double *r, const double *c,
                      const struct line *lines, double room,
                      struct arrangement *out)
{
    return find(l, r, c, lines, room, 0, out);
}

char *arrangement_say(const struct arrangement *a)
{
    return is_due(a) ? NULL : say_order(a);
}

/* Normalisations that packs and processors are known to use, and what becomes
 * of one when the bytes are not divided by 255 as they should be. */
static const struct {
    const char *name;
    double mean[3], deviation[3];
} known[] = {
    {"0.5", {0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}},
    {"CLIP's",
     {0.48145466, 0.4578275, 0.40821073},
     {0.26862954, 0.26130258, 0.27577711}},
    {"ImageNet's", {0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}},
    {"values from 0 to 1, not normalised", {0, 0, 0}, {1, 1, 1}},
    {"values from 0 to 255, not rescaled",
     {0, 0, 0},
     {1 / 255.0, 1 / 255.0, 1 / 255.0}},
};
static const struct {
    double scale; /* of what stands for a byte / 255 */
    const char *says;
} rescalings[] = {
    {1, ""},
    {255, ", of bytes that were not divided by 255"},
    {1 / 255.0, ", of bytes that were divided by 255 twice"},
    {255 / 256.0, ", of bytes that were divided by 256"},
    {255 / 127.5, ", of bytes that were divided by 127.5"},
};

/* What lines of bytes come to: (x - mean) / deviation of x from 0 to 1. */
struct normalisation {
    double mean[3], deviation[3];
    bool is_free[3];
    double at[3]; /* x where it is free */
};

/* One of the known, or what became of it. */
struct name {
    size_t which, scale;
    bool is_blue_first;
};

static double known_deviation(const struct name *n, int k)
{
    return known[n->which].deviation[n->is_blue_first ? 2 - k : k] /
           rescalings[n->scale].scale;
}

static double known_mean(const struct name *n, int k)
{
    return known[n->which].mean[n->is_blue_first ? 2 - k : k] /
           rescalings[n->scale].scale;
}

static bool is_called(const struct normalisation *of, const struct name *n)
{
    for (int k = 0; k < 3; k++) {
        const double d = known_deviation(n, k), mean = known_mean(n, k);

        /* in both: how far the values lie apart */
        if (of->is_free[k]
                ? !(fabs((of->at[k] - mean) / d -
                         (of->at[k] - of->mean[k]) / of->deviation[k]) < 4e-4)
                : !(fabs(of->mean[k] - mean) < 4e-4 * d) ||
                      !(fabs(of->deviation[k] / d - 1) < 1e-4))
            return false;
    }
    return true;
}

enum {
    KNOWN = sizeof(known) / sizeof(known[0]),
    NAMES = sizeof(rescalings) / sizeof(rescalings[0]) * KNOWN * 2
};

static struct name name_at(size_t n)
{
    return (struct name){n / 2 % KNOWN, n / 2 / KNOWN, n % 2};
}

static bool find_name(const struct normalisation *of, struct name *out)
{
    for (size_t n = 0; n < NAMES; n++) {
        *out = name_at(n);
        if (is_called(of, out))
            return true;
    }
    return false;
}

bool arrangement_find_coarse(const struct layout *l, const double *r,
                             const double *c, const struct line due[3],
                             int bits, struct arrangement *out)
{
    static const struct line half = {.slope = 1 / 127.5, .offset = -1};
    struct line lines[3] = {{.slope = 1}, {.slope = 1}, {.slope = 1}};
    struct name name;

    if (find(l, r, c, lines, EXPLAINED, bits, out))
        return true;
    for (size_t n = 0; n < NAMES; n++) {
        name = name_at(n);
        for (int k = 0; k < 3; k++) {
            const struct line *from = due ? &due[k] : &half;
            const double d = known_deviation(&name, k);

            lines[k].slope = 1 / (255 * d * from->slope);
            lines[k].offset =
                -known_mean(&name, k) / d - from->offset * lines[k].slope;
        }
        if (find(l, r, c, lines, EXPLAINED, bits, out))
            return true;
    }
    return false;
}

/* Of lines that take values v, x = per_byte * v + middle. */
static struct normalisation of_lines(const struct line lines[3],
                                     double per_byte, double middle)
{
    struct normalisation n;

    for (int k = 0; k < 3; k++) {
        n.deviation[k] = per_byte / lines[k].slope;
        n.mean[k] = middle - lines[k].offset * n.deviation[k];
        if (fabs(n.mean[k]) <
            EXPLAINED * fabs(n.deviation[k])) /* but for rounding */
            n.mean[k] = 0;
        n.is_free[k] = lines[k].is_free;
        n.at[k] = per_byte * lines[k].at + middle;
    }
    return n;
}

bool lines_settle(struct line lines[3])
{
    const struct normalisation of = of_lines(lines, 1 / 255.0, 0);
    struct name name;

    if (!find_name(&of, &name))
        return !lines[0].is_free || !lines[1].is_free || !lines[2].is_free;
    for (int k = 0; k < 3; k++)
        if (lines[k].is_free) {
            lines[k].slope = 1 / 255.0 / known_deviation(&name, k);
            lines[k].offset = -known_mean(&name, k) / known_deviation(&name, k);
        }
    return true;
}

static void add_values(struct buf *out, const char *what,
                       const double values[3], const bool is_free[3])
{
    buf_addf(out, "%s [", what);
    for (int k = 0; k < 3; k++) {
        buf_addstr(out, k ? ", " : "");
        if (is_free[k])
            buf_addch(out, '?');
        else
            buf_addf(out, "%.4g", values[k]);
    }
    buf_addch(out, ']');
}

/* "mean [...] and deviation [...] (CLIP's, ...)": the name where it is a known
 * one, of the commonest only what became of it; ? where a channel tells
 * nothing.  False: none tells. */
static bool add_normalisation(struct buf *out, struct normalisation n)
{
    struct name name;
    bool is_named = find_name(&n, &name);

    if (!is_named && n.is_free[0] && n.is_free[1] && n.is_free[2])
        return false;
    for (int k = 0; k < 3 && is_named; k++)
        if (n.is_free[k]) {
            n.mean[k] = known_mean(&name, k);
            n.deviation[k] = known_deviation(&name, k);
            n.is_free[k] = false;
        }
    add_values(out, "mean", n.mean, n.is_free);
    add_values(out, " and deviation", n.deviation, n.is_free);
    if (is_named && (name.which || name.scale))
        buf_addf(out, " (%s%s%s)", known[name.which].name,
                 name.is_blue_first ? " in the order blue, green, red" : "",
                 rescalings[name.scale].says);
    return true;
}

/* The words before, and the normalisation; NULL when it is not known. */
static char *say_lines(const char *before, const struct line lines[3],
                       double per_byte, double middle)
{
    struct buf out = BUF_INIT;

    buf_addstr(&out, before);
    if (add_normalisation(&out, of_lines(lines, per_byte, middle)))
        return buf_detach(&out);
    buf_release(&out);
    return NULL;
}

char *say_normalisation(const struct arrangement *a, const struct line due[3])
{
    struct line whole[3];

    if (!due)
        return say_lines("if the reference has mean 0.5 and deviation 0.5, the "
                         "candidate has ",
                         a->lines, 0.5, 0.5);
    for (int k = 0; k < 3; k++)
        whole[k] = (struct line){
            a->lines[k].slope * due[k].slope,
            a->lines[k].slope * due[k].offset + a->lines[k].offset,
            a->lines[k].is_free,
            (a->lines[k].at - due[k].offset) / due[k].slope,
        };
    return say_lines("the candidate has ", whole, 1 / 255.0, 0);
}

char *say_own_normalisation(const struct line due[3])
{
    return say_lines("", due, 1 / 255.0, 0);
}
