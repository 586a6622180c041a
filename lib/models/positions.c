/* Image tokens in the prompt and their three-axis positions. */
#include "models/positions.h"

#include <string.h>

enum { MAX_IMAGE_ROWS = 1 << 24 };

int64_t positions_image_rows(const int64_t grid[3], int64_t merge,
                             struct err *err)
{
    int64_t rows = 1;

    for (int i = 0; i < 3; i++) {
        int64_t by = i == 0 ? 1 : merge;

        if (by < 1 || grid[i] < 1 || grid[i] % by != 0 ||
            grid[i] / by > MAX_IMAGE_ROWS / rows)
            return err_set(err, ERR_INPUT,
                           "grid %lld x %lld x %lld does not merge by %lld",
                           (long long)grid[0], (long long)grid[1],
                           (long long)grid[2], (long long)merge);
        rows *= grid[i] / by;
    }
    return rows;
}

int positions_expand(const char *text, size_t len, const char *pad,
                     const int64_t *grids, size_t images, int64_t merge,
                     struct buf *out, struct err *err)
{
    const char *at = text, *end = text + len, *next;
    size_t pad_len = strlen(pad), seen = 0;

    if (images && memmem(text, len, "<|placeholder|>", 15))
        return err_set(err, ERR_UNSUPPORTED,
                       "the prompt holds '<|placeholder|>', which upstream "
                       "would turn into an image token");
    /* without images upstream expands nothing, but its model then refuses */
    while ((next = memmem(at, (size_t)(end - at), pad, pad_len))) {
        if (seen < images) {
            int64_t rows = positions_image_rows(grids + 3 * seen, merge, err);

            if (rows < 0)
                return err_in(err, "image %zu", seen);
            buf_add(out, at, (size_t)(next - at));
            for (int64_t i = 0; i < rows; i++)
                buf_add(out, pad, pad_len);
        }
        seen++;
        at = next + pad_len;
    }
    if (seen != images)
        return err_set(err, ERR_INPUT,
                       "the prompt holds %zu times '%s', the case %zu images",
                       seen, pad, images);
    buf_add(out, at, (size_t)(end - at));
    return 0;
}

/* `count` text positions from `next` on, on all axes. */
static void put_text(int64_t *out, int64_t n, int64_t at, int64_t count,
                     int64_t next)
{
    for (int axis = 0; axis < 3; axis++)
        for (int64_t i = 0; i < count; i++)
            out[axis * n + at + i] = next + i;
}

static void put_image(int64_t *out, int64_t n, int64_t at,
                      const int64_t grid[3], int64_t merge, int64_t base)
{
    int64_t h = grid[1] / merge, w = grid[2] / merge;

    for (int64_t ti = 0; ti < grid[0]; ti++)
        for (int64_t hi = 0; hi < h; hi++)
            for (int64_t wi = 0; wi < w; wi++, at++) {
                out[at] = base + ti;
                out[n + at] = base + hi;
                out[2 * n + at] = base + wi;
            }
}

int positions_rope_index(const int64_t *ids, int64_t n, const int64_t *grids,
                         size_t images, const struct image_tokens *tokens,
                         int64_t *out, int64_t *delta, struct err *err)
{
    int64_t done = 0, next = 0;
    size_t image = 0;

    for (int64_t i = 0; i < n; i++) {
        if (ids[i] == tokens->video)
            return err_set(err, ERR_UNSUPPORTED,
                           "token %lld is a video token: videos are not "
                           "supported",
                           (long long)i);
        if (ids[i] != tokens->image)
            continue;
        if (image == images)
            return err_set(err, ERR_INPUT,
                           "token %lld is an image token past the last of %zu "
                           "images",
                           (long long)i, images);
        if (i == 0 || ids[i - 1] != tokens->vision_start)
            return err_set(err, ERR_INPUT,
                           "image %zu at token %lld does not follow a vision "
                           "start",
                           image, (long long)i);
        const int64_t *grid = grids + 3 * image;
        int64_t rows = positions_image_rows(grid, tokens->merge, err);
        if (rows < 0)
            return err_in(err, "image %zu", image);
        for (int64_t k = i; k < i + rows; k++)
            if (k >= n || ids[k] != tokens->image)
                return err_set(err, ERR_INPUT,
                               "image %zu has %lld tokens from %lld on, its "
                               "grid gives %lld",
                               image, (long long)(k - i), (long long)i,
                               (long long)rows);
        put_text(out, n, done, i - done, next);
        next += i - done;
        put_image(out, n, i, grid, tokens->merge, next);
        int64_t high = grid[0];
        for (int axis = 1; axis < 3; axis++)
            if (grid[axis] / tokens->merge > high)
                high = grid[axis] / tokens->merge;
        next += high;
        done = i + rows;
        i = done - 1;
        image++;
    }
    if (image != images)
        return err_set(err, ERR_INPUT, "%zu images, image tokens for %zu",
                       images, image);
    put_text(out, n, done, n - done, next);
    *delta = next + (n - done) - n;
    return 0;
}
