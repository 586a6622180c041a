/*
 * Which resampling made a candidate's patches?  Each image of the case is read
 * again, scaled to the size that the grid gives, cut into patches and
 * normalised by the line that takes bicubic to the reference.
 */
#include "base/mem.h"
#include "gates/explain_internal.h"
#include "image/image.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of one step of a byte: what an 8-bit rounding the other way may leave. */
static const double EXACT_STEPS = 0.01, NEAR_STEPS = 1.01;
/* What f32 normalisation may round, and no more. */
static const double ROUNDED = 1e-4;

enum way {
    WAY_PASSES_12_3, /* bicubic, by the order of its passes */
    WAY_PASSES_12_1,
    WAY_PASSES_13_0,
    WAY_NEAREST,
    WAY_BILINEAR,
    WAY_BILINEAR_PLAIN,
    WAY_BICUBIC_PLAIN,
    WAY_BOX,
    WAY_HAMMING,
    WAY_LANCZOS,
    WAYS
};

static const char *const way_names[WAYS] = {
    [WAY_PASSES_12_3] = "bicubic with antialiasing, passes as in Pillow 12.3,",
    [WAY_PASSES_12_1] = "bicubic with antialiasing, passes as in Pillow 12.1,",
    [WAY_PASSES_13_0] = "bicubic with antialiasing, passes as in Pillow 13.0,",
    [WAY_NEAREST] = "nearest-neighbour",
    [WAY_BILINEAR] = "bilinear with antialiasing",
    [WAY_BILINEAR_PLAIN] = "bilinear without antialiasing",
    [WAY_BICUBIC_PLAIN] = "bicubic without antialiasing",
    [WAY_BOX] = "box",
    [WAY_HAMMING] = "hamming",
    [WAY_LANCZOS] = "lanczos",
};

/* Of the reference, whose passes matter only where another's would differ. */
static const char *own_name(enum way way)
{
    return way == WAY_PASSES_12_3 ? "bicubic with antialiasing"
                                  : way_names[way];
}

/* The byte of channel c at a place, the edge repeated beyond it. */
static double byte_at(const struct image *from, int64_t x, int64_t y, int c)
{
    x = x < 0 ? 0 : x >= from->width ? from->width - 1 : x;
    y = y < 0 ? 0 : y >= from->height ? from->height - 1 : y;
    return from->rgb[(y * from->width + x) * 3 + c];
}

/* Weights of taps -1 .. 2 at a distance t in [0, 1) behind tap 0. */
static void weights(enum way way, double t, double w[4])
{
    const double a = way == WAY_BICUBIC_PLAIN ? -0.75 : 0;

    if (way == WAY_BILINEAR_PLAIN) {
        w[0] = w[3] = 0;
        w[1] = 1 - t;
        w[2] = t;
        return;
    }
    for (int k = 0; k < 4; k++) {
        double d = fabs(t - (k - 1));

        w[k] = d < 1 ? ((a + 2) * d - (a + 3)) * d * d + 1
                     : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
    }
}

/* Four taps around each place, whatever the scale: what libraries do that do
 * not antialias.  Rounded to bytes. */
static void resize_plain(const struct image *from, enum way way,
                         struct image *to)
{
    double sx = (double)from->width / (double)to->width;
    double sy = (double)from->height / (double)to->height;

    for (int64_t y = 0; y < to->height; y++) {
        double at_y = ((double)y + 0.5) * sy - 0.5, wy[4];
        int64_t y0 = (int64_t)floor(at_y);

        weights(way, at_y - (double)y0, wy);
        for (int64_t x = 0; x < to->width; x++) {
            double at_x = ((double)x + 0.5) * sx - 0.5, wx[4];
            int64_t x0 = (int64_t)floor(at_x);

            weights(way, at_x - (double)x0, wx);
            for (int c = 0; c < 3; c++) {
                double sum = 0;

                for (int j = 0; j < 4; j++)
                    for (int i = 0; i < 4; i++)
                        sum += wy[j] * wx[i] *
                               byte_at(from, x0 + i - 1, y0 + j - 1, c);
                sum = fmin(fmax(floor(sum + 0.5), 0), 255);
                to->rgb[(y * to->width + x) * 3 + c] = (uint8_t)sum;
            }
        }
    }
}

static void resize_nearest(const struct image *from, struct image *to)
{
    for (int64_t y = 0; y < to->height; y++) {
        int64_t sy = (2 * y + 1) * from->height / (2 * to->height);

        for (int64_t x = 0; x < to->width; x++) {
            int64_t sx = (2 * x + 1) * from->width / (2 * to->width);

            memcpy(to->rgb + (y * to->width + x) * 3,
                   from->rgb + (sy * from->width + sx) * 3, 3);
        }
    }
}

static int resize(const struct image *from, enum way way, int64_t width,
                  int64_t height, struct image *to)
{
    static const enum image_filter filters[WAYS] = {
        [WAY_PASSES_12_3] = IMAGE_BICUBIC,
        [WAY_PASSES_12_1] = IMAGE_BICUBIC,
        [WAY_PASSES_13_0] = IMAGE_BICUBIC,
        [WAY_BILINEAR] = IMAGE_BILINEAR,
        [WAY_BOX] = IMAGE_BOX,
        [WAY_HAMMING] = IMAGE_HAMMING,
        [WAY_LANCZOS] = IMAGE_LANCZOS,
    };
    enum image_passes passes = way == WAY_PASSES_12_1   ? IMAGE_PASSES_12_1
                               : way == WAY_PASSES_13_0 ? IMAGE_PASSES_13_0
                                                        : IMAGE_PASSES_12_3;
    struct err why = ERR_INIT;
    bool is_ours = way == WAY_NEAREST || way == WAY_BILINEAR_PLAIN ||
                   way == WAY_BICUBIC_PLAIN;

    if (!is_ours)
        return image_resize(from, width, height, filters[way], passes, to,
                            &why);
    to->width = width;
    to->height = height;
    to->rgb =
        mem_array((size_t)(width * height), 3, (size_t)PATCHES_MAX * 3, &why);
    if (!to->rgb)
        return -1;
    if (way == WAY_NEAREST)
        resize_nearest(from, to);
    else
        resize_plain(from, way, to);
    return 0;
}

/* The case's images, upright; `count` of them or none. */
struct images {
    struct image *items;
    size_t count;
};

static void images_release(struct images *images)
{
    for (size_t i = 0; i < images->count; i++)
        image_release(&images->items[i]);
    free(images->items);
}

static int images_load(const struct test_case *planned, struct images *out)
{
    struct err why = ERR_INIT;

    out->count = 0;
    out->items = xcalloc(planned->image_count + 1, sizeof(*out->items));
    for (size_t i = 0; i < planned->image_count; i++) {
        struct buf bytes = BUF_INIT;
        int ret = case_image_read(&planned->images[i], &bytes, &why);

        if (ret == 0)
            ret = image_decode(bytes.data, bytes.len, &out->items[i], &why);
        buf_release(&bytes);
        if (ret)
            return -1;
        out->count++;
        if (image_orient(&out->items[i], &why))
            return -1;
    }
    return 0;
}

/* All patches as bytes, in the reference's order, by one way of resampling. */
static int make_patches(const struct layout *l, const struct images *images,
                        enum way way, double *out)
{
    int64_t n = 0, p = l->patch;

    for (int64_t k = 0; k < l->images; k++) {
        const double *g = l->grid + 3 * k;
        int64_t rows = (int64_t)(g[0] * g[1] * g[2]);
        struct image scaled = IMAGE_INIT;

        if (resize(&images->items[k], way, (int64_t)g[2] * p, (int64_t)g[1] * p,
                   &scaled))
            return -1;
        for (int64_t end = n + rows; n < end; n++) {
            struct spot s = layout_spot(l, n);

            for (int64_t f = 0; f < l->features; f++) {
                int64_t y = s.y * p + f / p % p, x = s.x * p + f % p;
                int64_t c = f / (p * p * l->frames);

                out[n * l->features + f] =
                    scaled.rgb[(y * scaled.width + x) * 3 + c];
            }
        }
        image_release(&scaled);
    }
    return 0;
}

/* The largest distance of the candidate from these patches, in byte steps, and
 * the mean one. */
static double distance(const struct layout *l, const double *bytes,
                       const double *c, const struct line lines[3],
                       double *mean)
{
    double most = 0, sum = 0;

    for (int64_t at = 0; at < l->rows * l->features; at++) {
        const struct line *line =
            &lines[at % l->features / (l->features / l->channels)];
        double d = fabs((c[at] - line->offset) / line->slope - bytes[at]);

        most = fmax(most, d);
        sum += d;
    }
    *mean = sum / (double)(l->rows * l->features);
    return most;
}

/* The way that made the reference, a line a channel; WAYS when none did. */
static enum way reference_way(const struct layout *l,
                              const struct images *images, const double *r,
                              double *bytes, struct arrangement *lines)
{
    static const enum way own[] = {WAY_PASSES_12_3, WAY_PASSES_12_1,
                                   WAY_PASSES_13_0};

    for (size_t i = 0; i < 3; i++)
        if (make_patches(l, images, own[i], bytes) == 0 &&
            arrangement_find(l, bytes, r, NULL, ROUNDED, lines) &&
            !lines->row && !lines->axes && !lines->is_blue_first)
            return own[i];
    return WAYS;
}

/* A way with another order or normalisation beside it. */
static char *explain_both(const struct layout *l, const double *bytes,
                          const double *c, const struct line lines[3],
                          enum way way)
{
    struct arrangement a;
    char *order, *normalisation = NULL, *text = NULL;

    if (!arrangement_find(l, bytes, c, lines, ROUNDED, &a)) {
        if (!arrangement_find(l, bytes, c, NULL, ROUNDED, &a))
            return NULL;
        normalisation = say_normalisation(&a, true);
    }
    order = arrangement_say(&a);
    if (order || normalisation)
        text = xasprintf("%s resampling explains it exactly, with another "
                         "%s%s%s: %s%s%s",
                         way_names[way], order ? "order" : "",
                         order && normalisation ? " and " : "",
                         normalisation ? "normalisation" : "",
                         order ? order : "", order && normalisation ? "; " : "",
                         normalisation ? normalisation : "");
    free(order);
    free(normalisation);
    return text;
}

static char *explain(const struct layout *l, const struct images *images,
                     const double *r, const double *c, double *bytes)
{
    struct arrangement due;
    enum way own = reference_way(l, images, r, bytes, &due), nearest = own;
    double best = INFINITY, most = 0;
    char *both = NULL;

    if (own == WAYS)
        return NULL;
    for (int i = -1; i < WAYS; i++) {
        enum way way = i < 0 ? own : (enum way)i; /* the reference's first */
        double mean, largest;

        if (i == (int)own)
            continue;
        if (make_patches(l, images, way, bytes)) {
            free(both);
            return NULL;
        }
        largest = distance(l, bytes, c, due.lines, &mean);
        if (mean < best) {
            best = mean;
            most = largest;
            nearest = way;
        }
        if (!both && i >= 0)
            both = explain_both(l, bytes, c, due.lines, way);
    }
    if (nearest != own && most <= EXACT_STEPS) {
        free(both);
        return xasprintf("%s resampling explains it exactly, where the "
                         "reference has %s",
                         way_names[nearest], own_name(own));
    }
    if (both)
        return both;
    if (nearest == own)
        return xstrdup("no other resampling comes nearer than the reference's "
                       "own");
    if (most <= NEAR_STEPS)
        return xasprintf("%s resampling explains it to one step of a byte, "
                         "where the reference has %s",
                         way_names[nearest], own_name(own));
    return xasprintf("no resampling that we know explains it: nearest comes "
                     "%s, on average %.3g steps of a byte away",
                     way_names[nearest], best);
}

char *explain_resampling(const struct test_case *planned,
                         const struct capture *reference,
                         const struct tensor_source *ref,
                         const struct tensor_source *cand)
{
    struct layout l;
    struct images images = {0};
    struct err why = ERR_INIT;
    double *r = NULL, *c = NULL, *bytes = NULL;
    char *text = NULL;

    if (layout_open(&l, reference, ref) && planned->image_count > 0 &&
        (int64_t)planned->image_count == l.images &&
        images_load(planned, &images) == 0) {
        r = explain_load(ref, PATCHES_MAX);
        c = explain_load(cand, PATCHES_MAX);
        if (r && c)
            bytes = mem_array((size_t)(l.rows * l.features), sizeof(*bytes),
                              SIZE_MAX, &why);
        if (bytes)
            text = explain(&l, &images, r, c, bytes);
    }
    layout_close(&l);
    images_release(&images);
    free(r);
    free(c);
    free(bytes);
    return text;
}
