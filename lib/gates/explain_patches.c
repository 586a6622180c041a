/* Why patches differ: their order, or their normalisation. */
#include "base/buf.h"
#include "base/mem.h"
#include "gates/explain_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { IMAGES_MAX = 1 << 16 };
/* An order or a normalisation explains a difference when this much is left: ten
 * times what two correct roundings of one pixel differ by. */
static const double EXPLAINED = 1e-5;

/* Places of a channel's smallest and largest element; -1: it has none. */
struct extremes {
    int64_t low, high;
};

static int64_t square_root(int64_t n)
{
    int64_t root = (int64_t)sqrt((double)n);

    while (root * root > n)
        root--;
    while ((root + 1) * (root + 1) <= n)
        root++;
    return root * root == n ? root : 0;
}

bool layout_open(struct layout *l, const struct capture *reference,
                 const struct tensor_source *patches)
{
    struct tensor_source grid;
    int64_t rows = 0;

    *l = (struct layout){.channels = 3, .merge = 2};
    if (patches->shape.dims != 2 ||
        !capture_find(reference, "image_grid_thw", &grid) ||
        grid.shape.dims != 2 || grid.shape.size[1] != 3 ||
        grid.shape.size[0] > IMAGES_MAX || !dtype_is_int(grid.dtype))
        return false;
    l->rows = patches->shape.size[0];
    l->features = patches->shape.size[1];
    for (l->frames = 2; l->frames >= 1 && !l->patch; l->frames--)
        if (l->features % (l->channels * l->frames) == 0)
            l->patch = square_root(l->features / (l->channels * l->frames));
    l->frames++;
    l->grid = explain_load(&grid, 3 * IMAGES_MAX);
    if (!l->patch || !l->grid)
        return false;
    l->images = grid.shape.size[0];
    for (int64_t i = 0; i < l->images; i++) {
        const double *g = l->grid + 3 * i;

        for (int d = 0; d < 3; d++)
            if (!(g[d] >= 1 && g[d] <= 1e6))
                return false;
        if (fmod(g[1], 2) != 0 || fmod(g[2], 2) != 0)
            l->merge = 1;
        if (g[0] * g[1] * g[2] > 1e12)
            return false;
        rows += (int64_t)(g[0] * g[1] * g[2]);
    }
    return rows == l->rows;
}

void layout_close(struct layout *l)
{
    free(l->grid);
}

struct spot layout_spot(const struct layout *l, int64_t n)
{
    struct spot s = {0};
    const double *g = l->grid;
    int64_t m = l->merge;

    while (n - s.first >= (int64_t)(g[0] * g[1] * g[2])) {
        s.first += (int64_t)(g[0] * g[1] * g[2]);
        s.image++;
        g += 3;
    }
    s.gt = (int64_t)g[0];
    s.gh = (int64_t)g[1];
    s.gw = (int64_t)g[2];
    n -= s.first;
    int64_t ix = n % m, iy = n / m % m, block = n / (m * m);
    s.x = block % (s.gw / m) * m + ix;
    s.y = block / (s.gw / m) % (s.gh / m) * m + iy;
    s.t = block / ((s.gw / m) * (s.gh / m));
    return s;
}

json_t *explain_patch_place(const struct capture *reference,
                            const struct tensor_source *patches, int64_t at)
{
    struct layout l;
    json_t *out = NULL;

    if (layout_open(&l, reference, patches)) {
        struct spot s = layout_spot(&l, at / l.features);
        int64_t f = at % l.features, p = l.patch;
        json_t *patch = json_array(), *pixel = json_array();

        json_array_append_new(patch, json_integer(s.y));
        json_array_append_new(patch, json_integer(s.x));
        json_array_append_new(pixel, json_integer(s.y * p + f / p % p));
        json_array_append_new(pixel, json_integer(s.x * p + f % p));
        out = json_object();
        json_object_set_new(out, "image", json_integer(s.image));
        json_object_set_new(out, "patch", patch);
        json_object_set_new(out, "pixel", pixel);
        json_object_set_new(out, "channel",
                            json_integer(f / (p * p * l.frames)));
        json_object_set_new(
            out, "frame",
            json_integer(s.t * l.frames + f / (p * p) % l.frames));
    }
    layout_close(&l);
    return out;
}

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
    for (int64_t at = 0; at < l->rows * l->features; at++) {
        struct extremes *x = &e[at % l->features / size];

        if (x->low < 0 || r[at] < r[x->low])
            x->low = at;
        if (x->high < 0 || r[at] > r[x->high])
            x->high = at;
    }
}

static double arranged(const struct layout *l, const double *c, size_t row,
                       const int64_t *where, int64_t at)
{
    return c[row_orders[row].row(l, at / l->features) * l->features +
             where[at % l->features]];
}

/* The lines that take r's channels to the candidate so arranged, through each
 * channel's extremes. */
static bool find_lines(const struct layout *l, const double *r, const double *c,
                       const struct extremes e[3], struct arrangement *a,
                       const int64_t *where)
{
    for (int k = 0; k < 3; k++) {
        struct line *line = &a->lines[k];

        if (e[k].low < 0 || !(r[e[k].high] > r[e[k].low]))
            return false;
        double low = arranged(l, c, a->row, where, e[k].low);
        double high = arranged(l, c, a->row, where, e[k].high);
        line->slope = (high - low) / (r[e[k].high] - r[e[k].low]);
        line->offset = low - line->slope * r[e[k].low];
        if (!(fabs(line->slope) > 0) || !isfinite(line->slope))
            return false;
    }
    return true;
}

static bool fits(const struct layout *l, const double *r, const double *c,
                 const struct arrangement *a, const int64_t *where, double room)
{
    int64_t size = l->features / l->channels;

    for (int64_t n = 0; n < l->rows; n++) {
        const double *x = r + n * l->features;
        const double *y = c + row_orders[a->row].row(l, n) * l->features;

        for (int64_t f = 0; f < l->features; f++) {
            const struct line *line = &a->lines[f / size];
            double most = room * fmax(1, fabs(line->slope));

            if (!(fabs(line->slope * x[f] + line->offset - y[where[f]]) <=
                  most))
                return false;
        }
    }
    return true;
}

bool arrangement_find(const struct layout *l, const double *r, const double *c,
                      const struct line *lines, double room,
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
            found = fits(l, r, c, &a, where, room);
            *out = a;
        }
    }
    free(where);
    return found;
}

char *arrangement_say(const struct arrangement *a)
{
    return is_due(a) ? NULL : say_order(a);
}

/* Normalisations that packs and processors are known to use. */
static const struct {
    const char *name;
    double mean[3], deviation[3];
} known[] = {
    {"CLIP's",
     {0.48145466, 0.4578275, 0.40821073},
     {0.26862954, 0.26130258, 0.27577711}},
    {"ImageNet's", {0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}},
    {"values from 0 to 1, not normalised", {0, 0, 0}, {1, 1, 1}},
    {"values from 0 to 255, not rescaled",
     {0, 0, 0},
     {1 / 255.0, 1 / 255.0, 1 / 255.0}},
    {"0.5 and 0.5", {0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}},
};

char *say_normalisation(const struct arrangement *a, bool of_bytes)
{
    double mean[3], deviation[3];
    const char *name = NULL;

    for (int k = 0; k < 3; k++) {
        const struct line *line = &a->lines[k];

        deviation[k] = (of_bytes ? 1 / 255.0 : 0.5) / line->slope;
        mean[k] = (of_bytes ? 0 : 0.5) - line->offset * deviation[k];
        if (fabs(mean[k]) < EXPLAINED) /* 0 but for rounding */
            mean[k] = 0;
    }
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]) && !name; i++) {
        bool is_it = true;

        for (int k = 0; k < 3; k++)
            is_it &= fabs(mean[k] - known[i].mean[k]) < 1e-4 &&
                     fabs(deviation[k] / known[i].deviation[k] - 1) < 1e-4;
        if (is_it)
            name = known[i].name;
    }
    return xasprintf("%sthe candidate has mean [%.4g, %.4g, %.4g] and "
                     "deviation [%.4g, %.4g, %.4g]%s%s%s",
                     of_bytes ? ""
                              : "if the reference has mean 0.5 and deviation "
                                "0.5, ",
                     mean[0], mean[1], mean[2], deviation[0], deviation[1],
                     deviation[2], name ? " (" : "", name ? name : "",
                     name ? ")" : "");
}

/* The order alone, the normalisation alone, or both. */
static char *explain_arrangement(const struct layout *l, const double *r,
                                 const double *c)
{
    static const struct line same[3] = {{1, 0}, {1, 0}, {1, 0}};
    struct arrangement a;
    char *order, *normalisation, *text;

    if (arrangement_find(l, r, c, same, EXPLAINED, &a)) {
        order = arrangement_say(&a);
        text = order ? xasprintf("%s: that alone explains it", order) : NULL;
        free(order);
        return text;
    }
    if (!arrangement_find(l, r, c, NULL, EXPLAINED, &a))
        return NULL;
    order = arrangement_say(&a);
    normalisation = say_normalisation(&a, false);
    text = order ? xasprintf("%s; with that, another normalisation explains "
                             "it: %s",
                             order, normalisation)
                 : xasprintf("another normalisation explains it: %s",
                             normalisation);
    free(order);
    free(normalisation);
    return text;
}

static int by_bytes(const void *a, const void *b, void *size)
{
    return memcmp(*(const double *const *)a, *(const double *const *)b,
                  *(const size_t *)size);
}

/* Are the candidate's rows the reference's in any order? */
static char *explain_permutation(const struct layout *l, const double *r,
                                 const double *c)
{
    size_t rows = (size_t)l->rows;
    const double **a = xcalloc(rows + 1, sizeof(*a));
    const double **b = xcalloc(rows + 1, sizeof(*b));
    size_t size = (size_t)l->features * sizeof(double);
    bool same = true;

    for (size_t i = 0; i < rows; i++) {
        a[i] = r + (int64_t)i * l->features;
        b[i] = c + (int64_t)i * l->features;
    }
    qsort_r(a, rows, sizeof(*a), by_bytes, &size);
    qsort_r(b, rows, sizeof(*b), by_bytes, &size);
    for (size_t i = 0; i < rows && same; i++)
        same = by_bytes(&a[i], &b[i], &size) == 0;
    free(a);
    free(b);
    return same ? xstrdup("the rows are the reference's, bit for bit, in "
                          "another order, none that we know")
                : NULL;
}

char *explain_patches(const struct capture *reference,
                      const struct tensor_source *ref,
                      const struct tensor_source *cand)
{
    struct layout l;
    double *r = NULL, *c = NULL;
    char *text = NULL;

    if (layout_open(&l, reference, ref)) {
        r = explain_load(ref, PATCHES_MAX);
        c = explain_load(cand, PATCHES_MAX);
        if (r && c)
            text = explain_arrangement(&l, r, c);
        if (r && c && !text)
            text = explain_permutation(&l, r, c);
    }
    layout_close(&l);
    free(r);
    free(c);
    return text;
}
