/* Why patches differ: what their values show, and what the images do. */
#include "base/buf.h"
#include "base/mem.h"
#include "gates/explain_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GRIDS_COMPARED = 1024 }; /* each with each */

/* Two sides of one layout, as f64. */
struct sides {
    const struct layout *layout;
    const double *r, *c;
    int64_t count;
};

/* ---- values rounded to fewer bits ---- */

static double of_f16(double v)
{
    return (double)f16_to_f32(f16_from_f32((float)v));
}

static double of_bf16(double v)
{
    return (double)bf16_to_f32(bf16_from_f32((float)v));
}

static double of_bf16_cut(double v)
{
    float whole = (float)v;
    uint32_t bits;

    memcpy(&bits, &whole, sizeof(bits));
    return (double)bf16_to_f32((uint16_t)(bits >> 16));
}

static char *explain_rounding(const struct sides *s)
{
    static const struct {
        double (*round)(double v);
        const char *says;
    } kinds[] = {{of_f16, "rounded to f16"},
                 {of_bf16, "rounded to bf16"},
                 {of_bf16_cut, "cut to bf16"}};

    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        int64_t at = 0;

        while (at < s->count && kinds[k].round(s->r[at]) == s->c[at])
            at++;
        if (at == s->count)
            return xasprintf("the values are the reference's, %s: that alone "
                             "explains it",
                             kinds[k].says);
    }
    return NULL;
}

/* ---- frames ---- */

/* Of an image every frame is the same; a candidate may fill up otherwise. */
static char *explain_frames(const struct sides *s)
{
    const struct layout *l = s->layout;
    int64_t size = l->patch * l->patch;
    double filler = NAN;

    if (l->frames < 2)
        return NULL;
    for (int64_t at = 0; at < s->count; at++) {
        bool is_first = at % l->features / size % l->frames == 0;

        if (is_first && fabs(s->c[at] - s->r[at]) > EXPLAINED)
            return NULL;
        if (is_first)
            continue;
        if (isnan(filler))
            filler = s->c[at];
        if (s->c[at] != filler)
            return NULL;
    }
    return xasprintf("the first frame of every patch agrees, the others are "
                     "%.4g throughout, where the reference repeats the first",
                     filler);
}

/* ---- rows ---- */

/* How many significant bits do all values have?  0: more than f16's. */
static int significant_bits(const struct sides *s)
{
    bool is_f16 = true, is_bf16 = true;

    for (int64_t at = 0; at < s->count && (is_f16 || is_bf16); at++) {
        is_f16 = is_f16 && of_f16(s->c[at]) == s->c[at];
        is_bf16 = is_bf16 && of_bf16(s->c[at]) == s->c[at];
    }
    return is_bf16 ? 8 : is_f16 ? 11 : 0;
}

static bool is_unchanged(const struct line lines[3])
{
    for (int k = 0; k < 3; k++)
        if (lines[k].slope != 1 || lines[k].offset != 0)
            return false;
    return true;
}

/* The order alone, the normalisation alone, or both; NULL when it is neither,
 * or one that cannot be told. */
static char *say_arrangement(const struct arrangement *a,
                             const struct line due[3], const char *rounded)
{
    char *order = arrangement_say(a), *own = NULL, *text = NULL;
    char *normalisation =
        is_unchanged(a->lines) ? NULL : say_normalisation(a, due);

    if (normalisation) {
        if (due)
            own = say_own_normalisation(due);
        text = xasprintf("%s%s explains it: %s%s%s%s", order ? order : "",
                         order ? "; with that, another normalisation"
                               : "another normalisation",
                         normalisation, own ? ", where the reference has " : "",
                         own ? own : "", rounded);
    } else if (order && is_unchanged(a->lines)) {
        text = xasprintf("%s%s: that alone explains it", order, rounded);
    }
    free(order);
    free(normalisation);
    free(own);
    return text;
}

static char *explain_arrangement(const struct sides *s,
                                 const struct resampling *images)
{
    static const struct line same[3] = {
        {.slope = 1}, {.slope = 1}, {.slope = 1}};
    const struct line *due = images ? resampling_lines(images) : NULL;
    const struct layout *l = s->layout;
    struct arrangement a;
    char *text = NULL;

    if (arrangement_find(l, s->r, s->c, same, EXPLAINED, &a))
        return say_arrangement(&a, due, "");
    if (arrangement_find(l, s->r, s->c, NULL, EXPLAINED, &a))
        text = say_arrangement(&a, due, "");
    int bits = text ? 0 : significant_bits(s);
    if (bits && arrangement_find_coarse(l, s->r, s->c, due, bits, &a))
        text = say_arrangement(&a, due,
                               bits == 8 ? "; the values are rounded to bf16"
                                         : "; the values are rounded to f16");
    return text;
}

static int64_t rows_of(const struct layout *l, int64_t image)
{
    const double *g = l->grid + 3 * image;

    return (int64_t)(g[0] * g[1] * g[2]);
}

/* The image of the reference whose rows stand in the candidate from `row` on;
 * -1: none. */
static int64_t image_at(const struct sides *s, int64_t row)
{
    const struct layout *l = s->layout;
    int64_t first = 0;

    for (int64_t i = 0; i < l->images; first += rows_of(l, i++)) {
        size_t size = (size_t)(rows_of(l, i) * l->features) * sizeof(*s->c);

        if (row + rows_of(l, i) <= l->rows &&
            memcmp(s->c + row * l->features, s->r + first * l->features,
                   size) == 0)
            return i;
    }
    return -1;
}

/* Are the candidate's rows whole images of the reference, in another order? */
static char *explain_images(const struct sides *s)
{
    struct buf out = BUF_INIT;

    buf_addstr(&out, "the candidate holds the images in the order ");
    for (int64_t row = 0; row < s->layout->rows;) {
        int64_t i = image_at(s, row);

        if (i < 0) {
            buf_release(&out);
            return NULL;
        }
        buf_addf(&out, "%s%" PRId64, row ? ", " : "", i);
        row += rows_of(s->layout, i);
    }
    return buf_detach(&out);
}

static int by_bytes(const void *a, const void *b, void *size)
{
    return memcmp(*(const double *const *)a, *(const double *const *)b,
                  *(const size_t *)size);
}

/* Are the candidate's rows the reference's in any order? */
static char *explain_permutation(const struct sides *s)
{
    size_t rows = (size_t)s->layout->rows;
    const double **a = xcalloc(rows + 1, sizeof(*a));
    const double **b = xcalloc(rows + 1, sizeof(*b));
    size_t size = (size_t)s->layout->features * sizeof(double);
    bool same = true;

    for (size_t i = 0; i < rows; i++) {
        a[i] = s->r + (int64_t)i * s->layout->features;
        b[i] = s->c + (int64_t)i * s->layout->features;
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

/* ---- how much differs ---- */

/* Few elements that differ are hardly a matter of resampling. */
static char *explain_few(const struct sides *s)
{
    int64_t differ = 0;

    for (int64_t at = 0; at < s->count; at++)
        differ += !(fabs(s->c[at] - s->r[at]) <= EXPLAINED);
    if (differ == 0 || differ * 100 > s->count)
        return NULL;
    return xasprintf("%" PRId64 " of %" PRId64 " values differ, the others "
                     "agree within 1e-5",
                     differ, s->count);
}

static char *explain_values(const struct sides *s, struct resampling *images)
{
    char *few = explain_few(s);
    char *way = images ? resampling_explain(images, s->c) : NULL;
    char *text;

    if (!few || !way)
        return few ? few : way;
    text = xasprintf("%s; %s", few, way);
    free(few);
    free(way);
    return text;
}

char *explain_patches(const struct test_case *planned,
                      const struct capture *reference,
                      const struct tensor_source *ref,
                      const struct tensor_source *cand)
{
    struct resampling *images = NULL;
    struct sides s = {0};
    struct layout l;
    double *r = NULL, *c = NULL;
    char *text = NULL;

    if (layout_open(&l, reference, ref)) {
        r = explain_load(ref, PATCHES_MAX);
        c = explain_load(cand, PATCHES_MAX);
    }
    if (r && c) {
        s = (struct sides){&l, r, c, l.rows * l.features};
        text = explain_rounding(&s);
        if (!text && planned)
            images = resampling_open(planned, &l, r);
        if (!text)
            text = explain_arrangement(&s, images);
        if (!text)
            text = explain_images(&s);
        if (!text)
            text = explain_permutation(&s);
        if (!text)
            text = explain_frames(&s);
        if (!text)
            text = explain_values(&s, images);
    }
    resampling_close(images);
    layout_close(&l);
    free(r);
    free(c);
    return text;
}

/* The first image that two grids cut otherwise, -1: none. */
static int64_t grid_parts(const double *r, const double *c, int64_t images)
{
    for (int64_t i = 0; i < images; i++)
        if (memcmp(r + 3 * i, c + 3 * i, 3 * sizeof(*r)) != 0)
            return i;
    return -1;
}

/* Does one grid hold the other's images, in another order? */
static bool grid_reordered(const double *r, const double *c, int64_t images)
{
    const size_t size = 3 * sizeof(*r);
    int64_t in_r = 0, in_c = 0;

    for (int64_t i = 0; i < images && in_r == in_c; i++) {
        in_r = in_c = 0;
        for (int64_t k = 0; k < images; k++) {
            in_r += memcmp(r + 3 * i, r + 3 * k, size) == 0;
            in_c += memcmp(r + 3 * i, c + 3 * k, size) == 0;
        }
    }
    return in_r == in_c;
}

char *explain_grid(const struct capture *reference,
                   const struct capture *candidate)
{
    const char *name = "image_grid_thw";
    struct tensor_source ref, cand;
    double *r = NULL, *c = NULL;
    char *text = NULL;

    if (!capture_find(reference, name, &ref) ||
        !capture_find(candidate, name, &cand) || ref.shape.dims != 2 ||
        ref.shape.size[1] != 3 || !shape_equal(&ref.shape, &cand.shape))
        return NULL;
    r = explain_load(&ref, PATCHES_MAX);
    c = explain_load(&cand, PATCHES_MAX);
    int64_t images = ref.shape.size[0];
    int64_t i = r && c ? grid_parts(r, c, images) : -1;
    if (i >= 0) {
        const double *a = r + 3 * i, *b = c + 3 * i;

        text = xasprintf(
            "image %" PRId64 " is cut into %.0f rows of %.0f "
            "patches, by the candidate into %.0f of %.0f%s",
            i, a[1], a[2], b[1], b[2],
            a[1] == b[2] && a[2] == b[1] ? ": height and width changed places"
            : images <= GRIDS_COMPARED && grid_reordered(r, c, images)
                ? ": the images are in another order"
                : "");
    }
    free(r);
    free(c);
    return text;
}
