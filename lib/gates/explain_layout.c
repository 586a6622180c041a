/* How the rows and features of image patches are laid out. */
#include "gates/explain_internal.h"

#include <math.h>
#include <stdlib.h>

enum { IMAGES_MAX = 1 << 16, FRAMES_MAX = 64 };

static int64_t square_root(int64_t n)
{
    int64_t root = (int64_t)sqrt((double)n);

    while (root * root > n)
        root--;
    while ((root + 1) * (root + 1) <= n)
        root++;
    return root * root == n ? root : 0;
}

/* Does the row repeat the first of its frames, in every channel? */
static bool is_repeated(const struct layout *l, const double *row)
{
    int64_t size = l->patch * l->patch;

    for (int64_t f = 0; f < l->features; f++)
        if (row[f] != row[f / (size * l->frames) * size * l->frames + f % size])
            return false;
    return true;
}

/* Frames and patch that make so many features: of an image all frames are
 * equal.  Patches of 16 and 14 pixels are what the models have. */
static void find_frames(struct layout *l, const struct tensor_source *patches)
{
    static const int64_t usual[] = {16, 14};
    struct tensor_source first = *patches;

    first.shape.size[0] = 1;
    double *row = explain_load(&first, PATCHES_MAX);
    for (size_t i = 0; row && i < 2 && !l->patch; i++) {
        int64_t of_frame = l->channels * usual[i] * usual[i];

        l->patch = usual[i];
        l->frames = l->features / of_frame;
        if (l->features % of_frame != 0 || l->frames < 1 ||
            l->frames > FRAMES_MAX || !is_repeated(l, row))
            l->patch = 0;
    }
    free(row);
    if (l->patch)
        return;
    for (l->frames = 2; l->frames >= 1 && !l->patch; l->frames--)
        if (l->features % (l->channels * l->frames) == 0)
            l->patch = square_root(l->features / (l->channels * l->frames));
    l->frames++;
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
    find_frames(l, patches);
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
