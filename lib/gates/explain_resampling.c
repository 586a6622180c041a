/*
 * Which resampling made a candidate's patches?  Each image of the case is read
 * again, scaled to the size that the grid gives, cut into patches and
 * normalised by the line that takes bicubic to the reference.
 */
#include "base/buf.h"
#include "base/mem.h"
#include "gates/explain_internal.h"
#include "image/image.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of one step of a byte: what an 8-bit rounding the other way may leave. */
static const double EXACT_STEPS = 0.01, NEAR_STEPS = 1.01;
/* What f32 normalisation may round, and no more. */
static const double ROUNDED = 1e-4;

/* What becomes of a scaled value. */
enum rounding { TO_BYTES, CLIPPED, NOT_AT_ALL };

/*
 * A way to scale: Pillow's (bytes between its passes too), nearest, or taps of
 * a kernel.  The reference's is one of the first three.
 */
static const struct way {
    enum { PILLOW, NEAREST, NEAREST_CORNER, LINEAR, CUBIC } kind;
    int filter, passes; /* Pillow's; 0 is box and passes of 12.1 */
    double a;           /* of CUBIC */
    bool is_antialiased, is_cornered; /* of the taps; corners on corners */
    enum rounding rounding;
    const char *name;
} ways[] = {
    {PILLOW, IMAGE_BICUBIC, IMAGE_PASSES_12_3, 0, 0, 0, TO_BYTES,
     "bicubic with antialiasing, passes as in Pillow 12.3"},
    {PILLOW, IMAGE_BICUBIC, IMAGE_PASSES_12_1, 0, 0, 0, TO_BYTES,
     "bicubic with antialiasing, passes as in Pillow 12.1"},
    {PILLOW, IMAGE_BICUBIC, IMAGE_PASSES_13_0, 0, 0, 0, TO_BYTES,
     "bicubic with antialiasing, passes as in Pillow 13.0"},
    {NEAREST, 0, 0, 0, 0, 0, TO_BYTES, "nearest-neighbour"},
    {NEAREST_CORNER, 0, 0, 0, 0, 0, TO_BYTES,
     "nearest-neighbour, counted from the corners of pixels"},
    {PILLOW, IMAGE_BILINEAR, IMAGE_PASSES_12_3, 0, 0, 0, TO_BYTES,
     "bilinear with antialiasing"},
    {LINEAR, 0, 0, 0, false, false, TO_BYTES, "bilinear without antialiasing"},
    {CUBIC, 0, 0, -0.75, false, false, TO_BYTES,
     "bicubic without antialiasing"},
    {PILLOW, IMAGE_BOX, IMAGE_PASSES_12_3, 0, 0, 0, TO_BYTES, "box"},
    {PILLOW, IMAGE_HAMMING, IMAGE_PASSES_12_3, 0, 0, 0, TO_BYTES, "hamming"},
    {PILLOW, IMAGE_LANCZOS, IMAGE_PASSES_12_3, 0, 0, 0, TO_BYTES, "lanczos"},
    {CUBIC, 0, 0, -0.5, false, false, TO_BYTES,
     "bicubic (a = -0.5) without antialiasing"},
    {LINEAR, 0, 0, 0, false, true, TO_BYTES,
     "bilinear without antialiasing, corners on corners"},
    {CUBIC, 0, 0, -0.5, true, false, TO_BYTES,
     "bicubic with antialiasing, not rounded between its passes"},
    {CUBIC, 0, 0, -0.75, true, false, TO_BYTES,
     "bicubic (a = -0.75) with antialiasing, not rounded between its passes"},
    {LINEAR, 0, 0, 0, true, false, TO_BYTES,
     "bilinear with antialiasing, not rounded between its passes"},
    {CUBIC, 0, 0, -0.5, true, false, NOT_AT_ALL,
     "bicubic with antialiasing, not rounded to bytes"},
    {CUBIC, 0, 0, -0.5, true, false, CLIPPED,
     "bicubic with antialiasing, kept from 0 to 255 but not rounded to bytes"},
    {LINEAR, 0, 0, 0, true, false, NOT_AT_ALL,
     "bilinear with antialiasing, not rounded to bytes"},
    {LINEAR, 0, 0, 0, false, false, NOT_AT_ALL,
     "bilinear without antialiasing, not rounded to bytes"},
    {CUBIC, 0, 0, -0.75, false, false, NOT_AT_ALL,
     "bicubic without antialiasing, not rounded to bytes"},
    {CUBIC, 0, 0, -0.75, false, false, CLIPPED,
     "bicubic without antialiasing, kept from 0 to 255 but not rounded to "
     "bytes"},
    {CUBIC, 0, 0, -0.5, false, false, NOT_AT_ALL,
     "bicubic (a = -0.5) without antialiasing, not rounded to bytes"},
};
enum { OWN_WAYS = 3, WAYS = sizeof(ways) / sizeof(ways[0]) };

/* Of the reference, whose passes matter only where another's would differ. */
static const char *own_name(size_t way)
{
    return way == 0 ? "bicubic with antialiasing" : ways[way].name;
}

/* "bicubic resampling", "bicubic, not rounded to bytes, resampling". */
static void add_resampling(struct buf *out, size_t way)
{
    buf_addf(out, "%s%s resampling", ways[way].name,
             strchr(ways[way].name, ',') ? "," : "");
}

/* ---- scaling along one axis ---- */

/* Output i is the sum over k of weights[i * most + k] times input places[...],
 * the edge repeated beyond it. */
struct taps {
    int64_t most;
    int64_t *places;
    double *weights;
};

static void taps_release(struct taps *t)
{
    free(t->places);
    free(t->weights);
}

static double kernel(const struct way *way, double d)
{
    const double a = way->a;

    d = fabs(d);
    if (way->kind == LINEAR)
        return d < 1 ? 1 - d : 0;
    if (d < 1)
        return ((a + 2) * d - (a + 3)) * d * d + 1;
    return d < 2 ? ((d - 5) * d + 8) * d * a - 4 * a : 0;
}

static int64_t within(int64_t i, int64_t n)
{
    return i < 0 ? 0 : i >= n ? n - 1 : i;
}

static int taps_make(struct taps *t, const struct way *way, int64_t in,
                     int64_t out)
{
    const double scale = (double)in / (double)out;
    const double wide = way->is_antialiased ? fmax(scale, 1) : 1;
    const double reach = (way->kind == LINEAR ? 1 : 2) * wide;
    struct err why = ERR_INIT;

    t->most = (int64_t)ceil(reach) * 2 + 1;
    t->places =
        mem_array((size_t)(out * t->most), sizeof(*t->places), SIZE_MAX, &why);
    t->weights =
        mem_array((size_t)(out * t->most), sizeof(*t->weights), SIZE_MAX, &why);
    if (!t->places || !t->weights)
        return -1;
    for (int64_t i = 0; i < out; i++) {
        double at = ((double)i + 0.5) * scale - 0.5, sum = 0;
        double *w = t->weights + i * t->most;

        if (way->is_cornered)
            at = out > 1 ? (double)i * (double)(in - 1) / (double)(out - 1) : 0;
        int64_t first = (int64_t)floor(at - reach) + 1;
        for (int64_t k = 0; k < t->most; k++) {
            int64_t place = first + k;
            bool is_outside = place < 0 || place >= in;

            t->places[i * t->most + k] = within(place, in);
            w[k] = is_outside && way->is_antialiased
                       ? 0 /* what is there makes up for it */
                       : kernel(way, ((double)place - at) / wide);
            sum += w[k];
        }
        for (int64_t k = 0; k < t->most; k++)
            w[k] /= sum;
    }
    return 0;
}

/* ---- scaling ---- */

/* Values of [height, width, 3], freed by the caller; NULL: too many. */
static double *values_new(int64_t width, int64_t height)
{
    const size_t cap = (size_t)1 << 29;
    struct err why = ERR_INIT;

    return mem_array((size_t)(width * height) * 3, sizeof(double), cap, &why);
}

static double *scale_by_pillow(const struct image *from, const struct way *way,
                               int64_t width, int64_t height)
{
    struct image to;
    struct err why = ERR_INIT;

    if (image_resize(from, width, height, (enum image_filter)way->filter,
                     (enum image_passes)way->passes, &to, &why))
        return NULL;
    double *out = values_new(width, height);
    for (int64_t i = 0; out && i < width * height * 3; i++)
        out[i] = to.rgb[i];
    image_release(&to);
    return out;
}

static double *scale_nearest(const struct image *from, const struct way *way,
                             int64_t width, int64_t height)
{
    double *out = values_new(width, height);
    const int64_t half = way->kind == NEAREST; /* of centres */

    for (int64_t y = 0; out && y < height; y++) {
        int64_t sy = (2 * y + half) * from->height / (2 * height);

        for (int64_t x = 0; x < width; x++) {
            int64_t sx = (2 * x + half) * from->width / (2 * width);

            for (int c = 0; c < 3; c++)
                out[(y * width + x) * 3 + c] =
                    from->rgb[(sy * from->width + sx) * 3 + c];
        }
    }
    return out;
}

static double rounded(double v, enum rounding rounding)
{
    if (rounding == TO_BYTES)
        v = floor(v + 0.5);
    return rounding == NOT_AT_ALL ? v : fmin(fmax(v, 0), 255);
}

/* Horizontally, then vertically. */
static void scale_passes(const struct image *from, const struct way *way,
                         const struct taps *across, const struct taps *down,
                         int64_t width, int64_t height, double *between,
                         double *out)
{
    for (int64_t y = 0; y < from->height; y++)
        for (int64_t x = 0; x < width; x++)
            for (int c = 0; c < 3; c++) {
                double sum = 0;

                for (int64_t k = x * across->most; k < (x + 1) * across->most;
                     k++)
                    sum += across->weights[k] *
                           from->rgb[(y * from->width + across->places[k]) * 3 +
                                     c];
                between[(y * width + x) * 3 + c] = sum;
            }
    for (int64_t y = 0; y < height; y++)
        for (int64_t i = 0; i < width * 3; i++) {
            double sum = 0;

            for (int64_t k = y * down->most; k < (y + 1) * down->most; k++)
                sum +=
                    down->weights[k] * between[down->places[k] * width * 3 + i];
            out[y * width * 3 + i] = rounded(sum, way->rounding);
        }
}

static double *scale_by_taps(const struct image *from, const struct way *way,
                             int64_t width, int64_t height)
{
    struct taps across = {0}, down = {0};
    double *between = values_new(width, from->height), *out = NULL;

    if (between && taps_make(&across, way, from->width, width) == 0 &&
        taps_make(&down, way, from->height, height) == 0)
        out = values_new(width, height);
    if (out)
        scale_passes(from, way, &across, &down, width, height, between, out);
    taps_release(&across);
    taps_release(&down);
    free(between);
    return out;
}

static double *scale(const struct image *from, const struct way *way,
                     int64_t width, int64_t height)
{
    switch (way->kind) {
    case PILLOW:
        return scale_by_pillow(from, way, width, height);
    case NEAREST:
    case NEAREST_CORNER:
        return scale_nearest(from, way, width, height);
    case LINEAR:
    case CUBIC:
        break;
    }
    return scale_by_taps(from, way, width, height);
}

/* ---- the case's images ---- */

struct resampling {
    const struct layout *l;
    struct image *images;   /* upright */
    struct image *stored;   /* as stored, where that is not upright */
    bool is_turned;         /* is any of them not the same? */
    double *bytes;          /* [rows, features] by one way */
    size_t own;             /* the reference's way */
    struct arrangement due; /* its lines take bytes to the reference */
};

void resampling_close(struct resampling *s)
{
    if (!s)
        return;
    for (int64_t i = 0; i < s->l->images; i++) {
        image_release(&s->images[i]);
        image_release(&s->stored[i]);
    }
    free(s->images);
    free(s->stored);
    free(s->bytes);
    free(s);
}

const struct line *resampling_lines(const struct resampling *s)
{
    return s->due.lines;
}

static int load(const struct case_image *file, struct image *upright,
                struct image *stored)
{
    struct buf bytes = BUF_INIT;
    struct err why = ERR_INIT;
    int ret = case_image_read(file, &bytes, &why);

    if (ret == 0)
        ret = image_decode(bytes.data, bytes.len, upright, &why);
    if (ret == 0 && upright->orientation != 1)
        ret = image_decode(bytes.data, bytes.len, stored, &why);
    buf_release(&bytes);
    return ret ? -1 : image_orient(upright, &why);
}

/* All patches as bytes, in the reference's order, by one way. */
static int make_patches(struct resampling *s, bool is_stored,
                        const struct way *way)
{
    const struct layout *l = s->l;
    int64_t n = 0, p = l->patch;

    for (int64_t k = 0; k < l->images; k++) {
        const double *g = l->grid + 3 * k;
        int64_t rows = (int64_t)(g[0] * g[1] * g[2]);
        int64_t width = (int64_t)g[2] * p, height = (int64_t)g[1] * p;
        const struct image *from =
            is_stored && s->stored[k].rgb ? &s->stored[k] : &s->images[k];
        double *scaled = scale(from, way, width, height);

        if (!scaled)
            return -1;
        for (int64_t end = n + rows; n < end; n++) {
            struct spot at = layout_spot(l, n);
            const double *corner = scaled + (at.y * width + at.x) * p * 3;
            double *to = s->bytes + n * l->features;

            for (int64_t c = 0; c < l->channels; c++)
                for (int64_t t = 0; t < l->frames; t++)
                    for (int64_t y = 0; y < p; y++)
                        for (int64_t x = 0; x < p; x++)
                            *to++ = corner[(y * width + x) * 3 + c];
        }
        free(scaled);
    }
    return 0;
}

struct resampling *resampling_open(const struct test_case *planned,
                                   const struct layout *l, const double *r)
{
    struct resampling *s;
    struct err why = ERR_INIT;

    if (planned->image_count == 0 || (int64_t)planned->image_count != l->images)
        return NULL;
    s = xcalloc(1, sizeof(*s));
    s->l = l;
    s->images = xcalloc((size_t)l->images, sizeof(*s->images));
    s->stored = xcalloc((size_t)l->images, sizeof(*s->stored));
    s->bytes = mem_array((size_t)(l->rows * l->features), sizeof(*s->bytes),
                         SIZE_MAX, &why);
    bool is_read = s->bytes != NULL;
    for (int64_t i = 0; is_read && i < l->images; i++) {
        is_read = load(&planned->images[i], &s->images[i], &s->stored[i]) == 0;
        s->is_turned |= s->stored[i].rgb != NULL;
    }
    for (s->own = 0; is_read && s->own < OWN_WAYS; s->own++) {
        const struct arrangement *a = &s->due;

        if (make_patches(s, false, &ways[s->own]) == 0 &&
            arrangement_find(l, s->bytes, r, NULL, ROUNDED, &s->due) &&
            !a->row && !a->axes && !a->is_blue_first &&
            lines_settle(s->due.lines))
            return s;
    }
    resampling_close(s);
    return NULL;
}

/* ---- how near a way comes ---- */

struct nearness {
    double mean, most; /* in steps of a byte */
};

/* Of one image, from its first row to the next image's. */
static struct nearness measure(const struct resampling *s, const double *c,
                               int64_t first, int64_t rows)
{
    const struct layout *l = s->l;
    const int64_t run = l->features / l->channels;
    struct nearness n = {0};

    for (int64_t i = first * l->channels; i < (first + rows) * l->channels;
         i++) {
        const struct line *line = &s->due.lines[i % l->channels];
        const double over = 1 / line->slope;

        for (int64_t at = i * run; at < (i + 1) * run; at++) {
            double d = fabs((c[at] - line->offset) * over - s->bytes[at]);

            n.most = d > n.most ? d : n.most;
            n.mean += d;
        }
    }
    n.mean /= (double)(rows * l->features);
    return n;
}

/* The nearest way of each image. */
struct best {
    size_t way; /* WAYS: the reference's, of the image as it is stored */
    struct nearness near;
};

/* Does the reference's own way give this image? */
static bool agrees(const struct resampling *s, const struct best *b)
{
    return b->way == s->own && b->near.most <= EXACT_STEPS;
}

static void take_best(const struct resampling *s, const double *c, size_t way,
                      struct best *best)
{
    struct best *now = xcalloc((size_t)s->l->images, sizeof(*now));
    int64_t first = 0;
    bool is_all = true; /* does this way give all images that differ? */

    for (int64_t i = 0; i < s->l->images; i++) {
        const double *g = s->l->grid + 3 * i;
        int64_t rows = (int64_t)(g[0] * g[1] * g[2]);

        now[i] = (struct best){way, measure(s, c, first, rows)};
        is_all &= agrees(s, &best[i]) || now[i].near.most <= EXACT_STEPS;
        first += rows;
    }
    for (int64_t i = 0; i < s->l->images; i++)
        if (way == s->own || (!agrees(s, &best[i]) &&
                              (is_all || now[i].near.mean < best[i].near.mean)))
            best[i] = now[i];
    free(now);
}

/* A way with another order or normalisation beside it. */
static char *explain_both(const struct resampling *s, const double *c,
                          size_t way)
{
    struct arrangement a;
    char *order, *normalisation = NULL, *text = NULL;

    if (!arrangement_find(s->l, s->bytes, c, s->due.lines, ROUNDED, &a)) {
        static const struct line bytes[3] = {
            {.slope = 1}, {.slope = 1}, {.slope = 1}};

        if (!arrangement_find(s->l, s->bytes, c, NULL, ROUNDED, &a))
            return NULL;
        normalisation = say_normalisation(&a, bytes);
        if (!normalisation)
            return NULL;
    }
    order = arrangement_say(&a);
    if (order || normalisation) {
        struct buf out = BUF_INIT;

        add_resampling(&out, way);
        buf_addf(&out, " explains it exactly, with another %s%s%s: %s%s%s",
                 order ? "order" : "", order && normalisation ? " and " : "",
                 normalisation ? "normalisation" : "", order ? order : "",
                 order && normalisation ? "; " : "",
                 normalisation ? normalisation : "");
        text = buf_detach(&out);
    }
    free(order);
    free(normalisation);
    return text;
}

static void add_way(struct buf *out, const struct best *b)
{
    if (b->way == WAYS)
        buf_addstr(out, "the image as it is stored, not turned as its EXIF "
                        "orientation says,");
    else
        add_resampling(out, b->way);
}

/* What is said of one image is said of another: the same way, as near? */
static bool is_alike(const struct best *a, const struct best *b)
{
    return a->way == b->way &&
           (a->near.most <= EXACT_STEPS) == (b->near.most <= EXACT_STEPS);
}

/* "image 1: ", "images 0, 2: "; nothing where all images are alike. */
static void add_images(const struct resampling *s, const struct best *best,
                       int64_t of, struct buf *out)
{
    struct buf list = BUF_INIT;
    int64_t count = 0;

    for (int64_t i = 0; i < s->l->images; i++)
        if (!agrees(s, &best[i]) && is_alike(&best[i], &best[of]))
            buf_addf(&list, "%s%" PRId64, count++ ? ", " : "", i);
    if (count < s->l->images)
        buf_addf(out, "image%s %s: ", count > 1 ? "s" : "", list.data);
    buf_release(&list);
}

static void add_sentence(const struct resampling *s, const struct best *b,
                         struct buf *out)
{
    if (b->way == s->own) {
        buf_addf(out,
                 "no other resampling comes nearer than the reference's own, "
                 "on average %.3g steps of a byte away",
                 b->near.mean);
    } else if (b->near.most <= NEAR_STEPS) {
        add_way(out, b);
        buf_addf(out, " explains it %s, where the reference has %s",
                 b->near.most <= EXACT_STEPS ? "exactly"
                                             : "to one step of a byte",
                 own_name(s->own));
    } else {
        buf_addf(out,
                 "no resampling that we know explains it: nearest comes "
                 "%s, on average %.3g steps of a byte away",
                 b->way == WAYS ? "the image as it is stored"
                                : ways[b->way].name,
                 b->near.mean);
    }
}

/* A sentence for the images that differ alike. */
static char *say(const struct resampling *s, const struct best *best)
{
    struct buf out = BUF_INIT;

    for (int64_t i = 0; i < s->l->images; i++) {
        bool is_said = agrees(s, &best[i]);

        for (int64_t k = 0; k < i; k++)
            is_said |= !agrees(s, &best[k]) && is_alike(&best[k], &best[i]);
        if (is_said)
            continue;
        buf_addstr(&out, out.len ? "; " : "");
        add_images(s, best, i, &out);
        add_sentence(s, &best[i], &out);
    }
    if (!out.len)
        buf_addstr(&out, "every value is within a hundredth of a byte's step "
                         "of the reference's: a normalisation that is rounded "
                         "otherwise");
    return buf_detach(&out);
}

static bool is_exact(const struct resampling *s, const struct best *best)
{
    for (int64_t i = 0; i < s->l->images; i++)
        if (best[i].near.most > EXACT_STEPS)
            return false;
    return true;
}

char *resampling_explain(struct resampling *s, const double *c)
{
    struct best *best = xcalloc((size_t)s->l->images, sizeof(*best));
    char *both = NULL, *text = NULL;

    if (make_patches(s, false, &ways[s->own])) /* the nearest so far */
        goto out;
    take_best(s, c, s->own, best);
    if (s->is_turned && make_patches(s, true, &ways[s->own]) == 0)
        take_best(s, c, WAYS, best);
    for (size_t way = 0; way < WAYS && !is_exact(s, best); way++) {
        if (way == s->own || make_patches(s, false, &ways[way]))
            continue;
        take_best(s, c, way, best);
        if (!both)
            both = explain_both(s, c, way);
    }
    if (both && !is_exact(s, best)) {
        text = both;
        both = NULL;
    } else {
        text = say(s, best);
    }
out:
    free(both);
    free(best);
    return text;
}
