/* Why patches differ: their order, or their normalisation. */
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

/* Orders of features, likewise: where the candidate holds (c, t, y, x). */
struct pixel {
    int64_t c, t, y, x;
};
static int64_t feature_same(const struct layout *l, struct pixel p)
{
    return ((p.c * l->frames + p.t) * l->patch + p.y) * l->patch + p.x;
}
static int64_t feature_bgr(const struct layout *l, struct pixel p)
{
    p.c = l->channels - 1 - p.c;
    return feature_same(l, p);
}
static int64_t feature_channel_last(const struct layout *l, struct pixel p)
{
    return ((p.t * l->patch + p.y) * l->patch + p.x) * l->channels + p.c;
}
static int64_t feature_frame_first(const struct layout *l, struct pixel p)
{
    return ((p.t * l->channels + p.c) * l->patch + p.y) * l->patch + p.x;
}
static int64_t feature_transposed(const struct layout *l, struct pixel p)
{
    int64_t y = p.y;

    p.y = p.x;
    p.x = y;
    return feature_same(l, p);
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
static const struct {
    int64_t (*feature)(const struct layout *l, struct pixel p);
    const char *says;
} feature_orders[] = {
    {feature_same, ""},
    {feature_bgr, "channels are in the order blue, green, red"},
    {feature_channel_last, "features have the channel last"},
    {feature_frame_first, "features have the frame before the channel"},
    {feature_transposed, "features have x and y exchanged"},
};

static void fill_features(const struct layout *l, size_t order, int64_t *where)
{
    int64_t f = 0;
    struct pixel p;

    for (p.c = 0; p.c < l->channels; p.c++)
        for (p.t = 0; p.t < l->frames; p.t++)
            for (p.y = 0; p.y < l->patch; p.y++)
                for (p.x = 0; p.x < l->patch; p.x++)
                    where[f++] = feature_orders[order].feature(l, p);
}

static bool order_fits(const struct layout *l, const double *r, const double *c,
                       size_t order, const int64_t *where)
{
    for (int64_t n = 0; n < l->rows; n++) {
        const double *a = r + n * l->features;
        const double *b = c + row_orders[order].row(l, n) * l->features;

        for (int64_t f = 0; f < l->features; f++)
            if (!(fabs(a[f] - b[where[f]]) <= EXPLAINED))
                return false;
    }
    return true;
}

static char *explain_order(const struct layout *l, const double *r,
                           const double *c)
{
    int64_t *where = xcalloc((size_t)l->features, sizeof(*where));
    char *text = NULL;
    size_t rows = sizeof(row_orders) / sizeof(row_orders[0]);
    size_t features = sizeof(feature_orders) / sizeof(feature_orders[0]);

    for (size_t i = 0; i < features && !text; i++) {
        fill_features(l, i, where);
        for (size_t j = 0; j < rows && !text; j++) {
            if ((i == 0 && j == 0) || !order_fits(l, r, c, j, where))
                continue;
            text =
                xasprintf("%s%s%s: that alone explains it", row_orders[j].says,
                          i && j ? "; " : "", feature_orders[i].says);
        }
    }
    free(where);
    return text;
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

bool layout_fit(const struct layout *l, const double *r, const double *c,
                int64_t channel, double room, struct line *out)
{
    int64_t size = l->features / l->channels, low = -1, high = -1;

    for (int64_t n = 0; n < l->rows; n++) {
        for (int64_t f = channel * size; f < (channel + 1) * size; f++) {
            int64_t at = n * l->features + f;

            if (low < 0 || r[at] < r[low])
                low = at;
            if (high < 0 || r[at] > r[high])
                high = at;
        }
    }
    if (low < 0 || !(r[high] > r[low]))
        return false;
    out->slope = (c[high] - c[low]) / (r[high] - r[low]);
    out->offset = c[low] - out->slope * r[low];
    room *= fmax(1, fabs(out->slope));
    for (int64_t n = 0; n < l->rows; n++) {
        for (int64_t f = channel * size; f < (channel + 1) * size; f++) {
            int64_t at = n * l->features + f;

            if (!(fabs(out->slope * r[at] + out->offset - c[at]) <= room))
                return false;
        }
    }
    return out->slope != 0;
}

/* The mean and deviation of a candidate on that line, when the reference has
 * the usual 0.5 and 0.5. */
static char *explain_normalisation(const struct layout *l, const double *r,
                                   const double *c)
{
    double mean[3], deviation[3];
    const char *name = NULL;

    for (int64_t k = 0; k < 3; k++) {
        struct line line = {0};

        if (!layout_fit(l, r, c, k, EXPLAINED, &line))
            return NULL;
        deviation[k] = 0.5 / line.slope;
        mean[k] = 0.5 - line.offset * deviation[k];
        if (fabs(mean[k]) < EXPLAINED) /* 0 but for rounding */
            mean[k] = 0;
    }
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]) && !name; i++) {
        bool fits = true;

        for (int k = 0; k < 3; k++)
            fits &= fabs(mean[k] - known[i].mean[k]) < 1e-4 &&
                    fabs(deviation[k] / known[i].deviation[k] - 1) < 1e-4;
        if (fits)
            name = known[i].name;
    }
    return xasprintf(
        "another normalisation explains it: if the reference has "
        "mean 0.5 and deviation 0.5, the candidate has mean "
        "[%.4g, %.4g, %.4g] and deviation [%.4g, %.4g, %.4g]%s%s%s",
        mean[0], mean[1], mean[2], deviation[0], deviation[1], deviation[2],
        name ? " (" : "", name ? name : "", name ? ")" : "");
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
            text = explain_order(&l, r, c);
        if (r && c && !text)
            text = explain_normalisation(&l, r, c);
        if (r && c && !text)
            text = explain_permutation(&l, r, c);
    }
    layout_close(&l);
    free(r);
    free(c);
    return text;
}
