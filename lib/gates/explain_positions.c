/* Why positions on three axes differ: which axis, from where on, in which
 * image. */
#include "base/buf.h"
#include "base/mem.h"
#include "gates/explain_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { AXES = 3, TOKENS_MAX = 1 << 22, IMAGES_MAX = 1 << 16 };

static const char *const axis_names[AXES] = {"time", "height", "width"};

struct positions {
    const double *r, *c; /* [AXES, tokens] */
    int64_t tokens;
};

static bool is_axis(const struct positions *p, int of_reference,
                    int of_candidate)
{
    return memcmp(p->r + of_reference * p->tokens,
                  p->c + of_candidate * p->tokens,
                  (size_t)p->tokens * sizeof(double)) == 0;
}

/* The candidate's axes are the reference's in another order. */
static char *explain_exchange(const struct positions *p)
{
    for (int a = 0; a < AXES; a++)
        for (int b = 0; b < AXES; b++) {
            int c = AXES - a - b;

            if (a == b || c == a || c == b || c < 0 || c >= AXES)
                continue;
            if (is_axis(p, a, 0) && is_axis(p, b, 1) && is_axis(p, c, 2))
                return xasprintf("the candidate's time, height and width are "
                                 "the reference's %s, %s and %s: that alone "
                                 "explains it",
                                 axis_names[a], axis_names[b], axis_names[c]);
        }
    return NULL;
}

static char *explain_counting(const struct positions *p)
{
    for (int64_t i = 0; i < AXES * p->tokens; i++)
        if (p->c[i] != (double)(i % p->tokens))
            return NULL;
    return xstrdup("the candidate counts tokens on every axis, as for text "
                   "without images");
}

/* Images lie where an id stands as often as their merged patches: the one that
 * holds a token, or the last one before it; -1: none. */
static int64_t image_before(const struct capture *reference, int64_t token,
                            bool *is_inside)
{
    struct tensor_source ids, grid;
    double *id = NULL, *g = NULL;
    int64_t found = -1;

    *is_inside = false;
    if (capture_find(reference, "prompt_ids", &ids) &&
        capture_find(reference, "image_grid_thw", &grid) &&
        ids.shape.dims == 1 && grid.shape.dims == 2 &&
        grid.shape.size[1] == 3) {
        id = explain_load(&ids, TOKENS_MAX);
        g = explain_load(&grid, 3 * IMAGES_MAX);
    }
    int64_t n = id && g ? ids.shape.size[0] : 0;
    for (int64_t i = 0, end, k = 0; i < n && i <= token; i = end) {
        for (end = i + 1; end < n && id[end] == id[i];)
            end++;
        double run = (double)(end - i);
        if (k < grid.shape.size[0] && end - i > 1 &&
            run * 4 == g[3 * k] * g[3 * k + 1] * g[3 * k + 2]) {
            found = k++;
            *is_inside = token < end;
        }
    }
    free(id);
    free(g);
    return found;
}

/* What every axis is off by from a token on; 0 when they are not alike. */
static double shift_from(const struct positions *p, int64_t first)
{
    double by = p->c[first] - p->r[first];

    for (int a = 0; a < AXES; a++)
        for (int64_t i = first; i < p->tokens; i++)
            if (p->c[a * p->tokens + i] - p->r[a * p->tokens + i] != by)
                return 0;
    return by;
}

static char *explain_first(const struct positions *p,
                           const struct capture *reference)
{
    struct buf out = BUF_INIT;
    int64_t first = p->tokens;
    bool is_inside;

    for (int a = 0; a < AXES; a++)
        for (int64_t i = 0; i < first; i++)
            if (p->r[a * p->tokens + i] != p->c[a * p->tokens + i])
                first = i;
    if (first == p->tokens)
        return NULL;
    for (int a = 0; a < AXES; a++) {
        const double *r = p->r + a * p->tokens, *c = p->c + a * p->tokens;
        int64_t differ = 0;

        for (int64_t i = 0; i < p->tokens; i++)
            differ += r[i] != c[i];
        buf_addf(&out, "%s%s%s", a ? ", " : "", axis_names[a],
                 differ ? " " : " agrees");
        if (differ)
            buf_addf(&out, "differs at %" PRId64 " of %" PRId64 " tokens",
                     differ, p->tokens);
    }
    int64_t image = image_before(reference, first, &is_inside);
    buf_addf(&out, "; the first is token %" PRId64, first);
    if (image >= 0)
        buf_addf(&out, ", %s image %" PRId64, is_inside ? "in" : "behind",
                 image);
    double by = shift_from(p, first);
    if (by != 0)
        buf_addf(&out, "; from there on every axis is %+.0f", by);
    return buf_detach(&out);
}

char *explain_positions(const struct capture *reference,
                        const struct tensor_source *ref,
                        const struct tensor_source *cand)
{
    struct positions p = {0};
    double *r = NULL, *c = NULL;
    char *text = NULL;

    if (ref->shape.dims != 2 || ref->shape.size[0] != AXES ||
        ref->shape.size[1] < 1 || !shape_equal(&ref->shape, &cand->shape))
        return NULL;
    r = explain_load(ref, AXES * (int64_t)TOKENS_MAX);
    c = explain_load(cand, AXES * (int64_t)TOKENS_MAX);
    if (r && c) {
        p = (struct positions){r, c, ref->shape.size[1]};
        text = explain_exchange(&p);
        if (!text)
            text = explain_counting(&p);
        if (!text)
            text = explain_first(&p, reference);
    }
    free(r);
    free(c);
    return text;
}
