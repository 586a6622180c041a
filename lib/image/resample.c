/*
 * Pillow's resampling of 8-bit channels: two passes, each a weighted sum with
 * 22 fractional bits, rounded to 8 bits in between (formats.md 5).  Output i
 * of a pass covers the inputs [first, first + count) with weights k.
 */
#include "base/mem.h"
#include "image/image_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FRACTION = 22, HALF = 1 << (FRACTION - 1), CHANNELS = 3, BLOCK = 32 };

static double sinc(double x)
{
    if (x == 0.0)
        return 1.0;
    x *= M_PI;
    return sin(x) / x;
}

/* sin and cos only reach box-free filters that no known pack asks for, and
 * their last bit is far below the 22 that are kept. */
static double weigh(enum image_filter filter, double x)
{
    switch (filter) {
    case IMAGE_BOX:
        return x > -0.5 && x <= 0.5 ? 1.0 : 0.0;
    case IMAGE_BILINEAR:
        x = fabs(x);
        return x < 1.0 ? 1.0 - x : 0.0;
    case IMAGE_HAMMING:
        x = fabs(x);
        if (x == 0.0)
            return 1.0;
        if (x >= 1.0)
            return 0.0;
        x *= M_PI;
        return sin(x) / x * ((double)0.54f + (double)0.46f * cos(x));
    case IMAGE_BICUBIC: {
        const double a = -0.5;

        x = fabs(x);
        if (x < 1.0)
            return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
        if (x < 2.0)
            return (((x - 5.0) * x + 8.0) * x - 4.0) * a;
        return 0.0;
    }
    case IMAGE_LANCZOS:
        return x >= -3.0 && x < 3.0 ? sinc(x) * sinc(x / 3.0) : 0.0;
    }
    return 0.0;
}

static double support(enum image_filter filter)
{
    static const double reach[] = {0.5, 1.0, 1.0, 2.0, 3.0};

    return reach[filter];
}

struct taps {
    int64_t outputs, most; /* most: weights kept for each output */
    int64_t *first, *count;
    int32_t *k;
};

static void taps_release(struct taps *t)
{
    free(t->first);
    free(t->count);
    free(t->k);
}

static int taps_make(struct taps *t, int64_t in, int64_t out,
                     enum image_filter filter, struct err *err)
{
    const size_t cap = (size_t)1 << 32;
    double scale = (double)in / (double)out;
    double filter_scale = scale < 1.0 ? 1.0 : scale;
    double reach = support(filter) * filter_scale, inverse = 1.0 / filter_scale;
    double *w;

    t->outputs = out;
    t->most = (int64_t)ceil(reach) * 2 + 1;
    t->first = mem_array((size_t)out, sizeof(*t->first), cap, err);
    t->count = mem_array((size_t)out, sizeof(*t->count), cap, err);
    t->k = mem_array((size_t)(out * t->most), sizeof(*t->k), cap, err);
    w = mem_array((size_t)t->most, sizeof(*w), cap, err);
    if (!t->first || !t->count || !t->k || !w) {
        free(w);
        return -1;
    }
    for (int64_t i = 0; i < out; i++) {
        double centre = ((double)i + 0.5) * scale, sum = 0.0;
        int64_t first = (int64_t)(centre - reach + 0.5);
        int64_t last = (int64_t)(centre + reach + 0.5);

        first = first < 0 ? 0 : first;
        last = last > in ? in : last;
        t->first[i] = first;
        t->count[i] = last - first;
        for (int64_t j = 0; j < last - first; j++) {
            w[j] =
                weigh(filter, ((double)(j + first) - centre + 0.5) * inverse);
            sum += w[j];
        }
        for (int64_t j = 0; j < last - first; j++) {
            double v = sum != 0.0 ? w[j] / sum : w[j];

            v *= 1 << FRACTION;
            t->k[i * t->most + j] = (int32_t)(v < 0 ? v - 0.5 : v + 0.5);
        }
    }
    free(w);
    return 0;
}

static uint8_t clip(int32_t sum)
{
    sum >>= FRACTION; /* arithmetic on every compiler we build with */
    return (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

/* One output pixel of a row; and BLOCK neighbouring bytes of an output row:
 * sums of integers, so the order of the additions is free. */
static void weigh_pixel(const uint8_t *at, const int32_t *k, int64_t count,
                        uint8_t *to)
{
    int32_t r = HALF, g = HALF, b = HALF;

    for (int64_t j = 0; j < count; j++, at += CHANNELS) {
        r += at[0] * k[j];
        g += at[1] * k[j];
        b += at[2] * k[j];
    }
    to[0] = clip(r);
    to[1] = clip(g);
    to[2] = clip(b);
}

static void weigh_block(const uint8_t *at, int64_t row, const int32_t *k,
                        int64_t count, uint8_t *to)
{
    int32_t sum[BLOCK];

    for (int c = 0; c < BLOCK; c++)
        sum[c] = HALF;
    for (int64_t j = 0; j < count; j++, at += row)
        for (int c = 0; c < BLOCK; c++)
            sum[c] += at[c] * k[j];
    for (int c = 0; c < BLOCK; c++)
        to[c] = clip(sum[c]);
}

/*
 * One pass along an axis.  Samples of one output lie `step` bytes apart in the
 * source; `lines` groups of `run` neighbouring bytes are treated alike:
 * horizontally a line is a row and a run one pixel, vertically there is one
 * line and a run is a whole row.
 */
static void pass(const struct taps *t, const uint8_t *from, uint8_t *to,
                 int64_t lines, int64_t run, int64_t line_bytes)
{
    for (int64_t line = 0; line < lines; line++, from += line_bytes)
        for (int64_t i = 0; i < t->outputs; i++, to += run) {
            const int32_t *k = t->k + i * t->most;
            const uint8_t *at = from + t->first[i] * run;

            int64_t c = 0;

            if (run == CHANNELS) {
                weigh_pixel(at, k, t->count[i], to);
                continue;
            }
            for (; c + BLOCK <= run; c += BLOCK)
                weigh_block(at + c, run, k, t->count[i], to + c);
            for (; c < run; c++) {
                int32_t sum = HALF;

                for (int64_t j = 0; j < t->count[i]; j++)
                    sum += at[j * run + c] * k[j];
                to[c] = clip(sum);
            }
        }
}

static int resize_one(const struct image *from, bool is_vertical, int64_t size,
                      enum image_filter filter, struct image *out,
                      struct err *err)
{
    struct taps t = {0};
    int64_t row = from->width * CHANNELS;
    int ret = -1;

    *out = *from;
    out->rgb = out->alpha = NULL;
    if (image_alloc(out, (uint64_t)(is_vertical ? from->width : size),
                    (uint64_t)(is_vertical ? size : from->height), err) ||
        (from->alpha && image_alloc_alpha(out, err)) ||
        taps_make(&t, is_vertical ? from->height : from->width, size, filter,
                  err))
        goto out;
    if (is_vertical)
        pass(&t, from->rgb, out->rgb, 1, row, 0);
    else
        pass(&t, from->rgb, out->rgb, from->height, CHANNELS, row);
    if (from->alpha && is_vertical)
        pass(&t, from->alpha, out->alpha, 1, from->width, 0);
    else if (from->alpha)
        pass(&t, from->alpha, out->alpha, from->height, 1, from->width);
    ret = 0;
out:
    taps_release(&t);
    if (ret)
        image_release(out);
    return ret;
}

static bool is_vertical_first(const struct image *from, int64_t w, int64_t h,
                              enum image_passes passes)
{
    switch (passes) {
    case IMAGE_PASSES_12_1:
        return false;
    case IMAGE_PASSES_12_3:
        return h < from->height && from->height > 100 * from->width;
    case IMAGE_PASSES_13_0:
        return h < from->height && from->height - h > 2 * (from->width - w);
    }
    return false;
}

static int copy(const struct image *from, struct image *out, struct err *err)
{
    size_t pixels = (size_t)(from->width * from->height);

    *out = *from;
    out->rgb = out->alpha = NULL;
    if (image_alloc(out, (uint64_t)from->width, (uint64_t)from->height, err) ||
        (from->alpha && image_alloc_alpha(out, err))) {
        image_release(out);
        return -1;
    }
    memcpy(out->rgb, from->rgb, pixels * CHANNELS);
    if (from->alpha)
        memcpy(out->alpha, from->alpha, pixels);
    return 0;
}

/* Colours times alpha / 255, rounded; and back, rounded down. */
static void premultiply(struct image *image)
{
    int64_t pixels = image->width * image->height;

    for (int64_t i = 0; i < pixels * CHANNELS; i++) {
        int t = image->rgb[i] * image->alpha[i / CHANNELS] + 128;

        image->rgb[i] = (uint8_t)(((t >> 8) + t) >> 8);
    }
}

static void unpremultiply(struct image *image)
{
    int64_t pixels = image->width * image->height;

    for (int64_t i = 0; i < pixels * CHANNELS; i++) {
        int a = image->alpha[i / CHANNELS];

        if (a != 0 && a != 255) {
            int v = 255 * image->rgb[i] / a;

            image->rgb[i] = (uint8_t)(v > 255 ? 255 : v);
        }
    }
}

static int resize(const struct image *from, int64_t width, int64_t height,
                  enum image_filter filter, enum image_passes passes,
                  struct image *out, struct err *err)
{
    bool is_second_first = is_vertical_first(from, width, height, passes);
    struct image current = *from, next;
    bool is_owned = false;

    for (int i = 0; i < 2; i++) {
        bool is_vertical = (i == 1) != is_second_first;
        int64_t size = is_vertical ? height : width;

        if (size == (is_vertical ? current.height : current.width))
            continue;
        if (resize_one(&current, is_vertical, size, filter, &next, err)) {
            if (is_owned)
                image_release(&current);
            return -1;
        }
        if (is_owned)
            image_release(&current);
        current = next;
        is_owned = true;
    }
    if (!is_owned)
        return copy(from, out, err);
    *out = current;
    return 0;
}

int image_resize(const struct image *from, int64_t width, int64_t height,
                 enum image_filter filter, enum image_passes passes,
                 struct image *out, struct err *err)
{
    bool is_same = width == from->width && height == from->height;
    struct image multiplied;

    *out = (struct image)IMAGE_INIT;
    if (width < 1 || height < 1 ||
        image_check_size((uint64_t)width, (uint64_t)height, err))
        return err_set(err, ERR_INPUT, "%lld x %lld pixels", (long long)width,
                       (long long)height);
    if (!from->alpha || is_same)
        return resize(from, width, height, filter, passes, out, err);
    if (copy(from, &multiplied, err))
        return -1;
    premultiply(&multiplied);
    int ret = resize(&multiplied, width, height, filter, passes, out, err);
    image_release(&multiplied);
    if (ret == 0)
        unpremultiply(out);
    return ret;
}

bool image_filter_parse(const char *name, enum image_filter *out)
{
    static const char *const names[] = {"box", "bilinear", "hamming", "bicubic",
                                        "lanczos"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(name, names[i]) == 0) {
            *out = (enum image_filter)i;
            return true;
        }
    return false;
}

int image_passes_parse(const char *library, enum image_passes *out,
                       struct err *err)
{
    unsigned major, minor, patch;
    int end = 0;
    bool is_read =
        (sscanf(library, "pillow %3u.%3u%n", &major, &minor, &end) == 2 &&
         library[end] == '\0') ||
        (sscanf(library, "pillow %3u.%3u.%3u%n", &major, &minor, &patch,
                &end) == 3 &&
         library[end] == '\0');

    if (!is_read || major < 5 || major > 13 || (major == 12 && minor > 3) ||
        (major == 13 && minor > 0))
        return err_set(err, ERR_UNSUPPORTED,
                       "image library '%s': known are pillow 5.0 to 12.3 and "
                       "13.0",
                       library);
    *out = major == 13                 ? IMAGE_PASSES_13_0
           : major == 12 && minor >= 2 ? IMAGE_PASSES_12_3
                                       : IMAGE_PASSES_12_1;
    return 0;
}
