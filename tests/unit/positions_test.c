/* Image tokens in text and ids, and rotary positions (bonsai2.md 5). */
#include "models/positions.h"

#include "base/mem.h"
#include "tap.h"

enum { IMG = 90, VID = 91, START = 92, END = 93 };

static const struct image_tokens tokens = {IMG, VID, START, 2};

/* The worked example of bonsai2.md 5.4. */
static void test_worked_example(void)
{
    static const int64_t ids[14] = {1,   2,   3,   4,   START, IMG, IMG,
                                    IMG, IMG, IMG, IMG, END,   5,   6};
    static const int64_t grid[3] = {1, 4, 6};
    static const int64_t want[3 * 14] = {
        0, 1, 2, 3, 4, 5, 5,  5, 5, 5, 5, 8, 9, 10, 0, 1, 2, 3, 4, 5, 5,
        5, 6, 6, 6, 8, 9, 10, 0, 1, 2, 3, 4, 5, 6,  7, 5, 6, 7, 8, 9, 10,
    };
    int64_t got[3 * 14], delta;
    struct err err = ERR_INIT;

    is_int(positions_rope_index(ids, 14, grid, 1, &tokens, got, &delta, &err),
           0, "the worked example has positions");
    is_mem(got, want, sizeof(want), "they are the example's");
    is_int(delta, -3, "and its delta");
}

/*
 * mlx-vlm 0.6.3, models/qwen3_5/language.py, get_rope_index on these ids:
 * text, two images (the second taller than wide, 1 x 6 x 2), nothing after.
 */
static void test_two_images(void)
{
    static const int64_t ids[12] = {7,     START, IMG, IMG, END, 8,
                                    START, IMG,   IMG, IMG, END, 9};
    static const int64_t grids[6] = {1, 2, 4, 1, 6, 2};
    static const int64_t want[3 * 12] = {
        0, 1, 2, 2, 4, 5, 6, 7, 7, 7, 10, 11, /* time */
        0, 1, 2, 2, 4, 5, 6, 7, 8, 9, 10, 11, /* height */
        0, 1, 2, 3, 4, 5, 6, 7, 7, 7, 10, 11, /* width */
    };
    int64_t got[3 * 12], delta;
    struct err err = ERR_INIT;

    is_int(positions_rope_index(ids, 12, grids, 2, &tokens, got, &delta, &err),
           0, "two images have positions");
    is_mem(got, want, sizeof(want), "each counts on from the one before");
    is_int(delta, 0, "delta of both");
    is_int(positions_rope_index(ids, 10, grids, 2, &tokens, got, &delta, &err),
           0, "an image may end the prompt");
    is_int(delta, 0, "delta is then that of its largest axis");
}

static void test_text(void)
{
    static const int64_t ids[3] = {1, 2, 3};
    static const int64_t want[9] = {0, 1, 2, 0, 1, 2, 0, 1, 2};
    int64_t got[9], delta;
    struct err err = ERR_INIT;

    is_int(positions_rope_index(ids, 3, NULL, 0, &tokens, got, &delta, &err), 0,
           "text has positions");
    is_mem(got, want, sizeof(want), "0, 1, 2 on each axis");
    is_int(delta, 0, "and delta 0");
}

static void test_refusals(void)
{
    static const struct {
        const char *name, *says;
        int64_t ids[8], n;
        size_t images;
        enum err_code code;
    } rows[] = {
        {"too few image tokens",
         "image 0 has 3 tokens from 1 on, its grid "
         "gives 4",
         {START, IMG, IMG, IMG, END},
         5,
         1,
         ERR_INPUT},
        {"the prompt ends inside an image",
         "image 0 has 2 tokens",
         {START, IMG, IMG},
         3,
         1,
         ERR_INPUT},
        {"too many image tokens",
         "past the last of 1 images",
         {START, IMG, IMG, IMG, IMG, IMG},
         6,
         1,
         ERR_INPUT},
        {"no vision start",
         "does not follow a vision start",
         {1, IMG, IMG, IMG, IMG},
         5,
         1,
         ERR_INPUT},
        {"an image first of all",
         "does not follow a vision start",
         {IMG, IMG, IMG, IMG},
         4,
         1,
         ERR_INPUT},
        {"an image token without images",
         "past the last of 0 images",
         {START, IMG},
         2,
         0,
         ERR_INPUT},
        {"images without tokens",
         "1 images, image tokens for 0",
         {1, 2},
         2,
         1,
         ERR_INPUT},
        {"a video",
         "videos are not supported",
         {START, VID},
         2,
         0,
         ERR_UNSUPPORTED},
    };
    static const int64_t grid[3] = {1, 4, 4};
    int64_t got[24], delta;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct err err = ERR_INIT;
        int ret =
            positions_rope_index(rows[i].ids, rows[i].n, grid, rows[i].images,
                                 &tokens, got, &delta, &err);

        if (!ok(ret == -1 && err.code == rows[i].code &&
                    strstr(err.text, rows[i].says),
                "%s: refused", rows[i].name))
            diag("%s", err.text);
    }
}

static void test_expansion(void)
{
    static const int64_t grids[6] = {1, 4, 2, 1, 2, 6};
    static const struct {
        const char *text, *want;
        size_t images;
        enum err_code code;
    } rows[] = {
        {"a<P>b<P>c", "a<P><P>b<P><P><P>c", 2, ERR_NONE},
        {"<P>", "<P><P>", 1, ERR_NONE},
        {"plain", "plain", 0, ERR_NONE},
        {"", "", 0, ERR_NONE},
        {"a<P>b", "holds 1 times '<P>', the case 2 images", 2, ERR_INPUT},
        {"a<P>b<P>", "holds 2 times '<P>', the case 1 images", 1, ERR_INPUT},
        {"a<P>", "holds 1 times '<P>', the case 0 images", 0, ERR_INPUT},
        {"<|placeholder|><P>", "<|placeholder|>", 1, ERR_UNSUPPORTED},
        {"<|placeholder|>", "<|placeholder|>", 0, ERR_NONE},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct buf out = BUF_INIT;
        struct err err = ERR_INIT;
        int ret = positions_expand(rows[i].text, strlen(rows[i].text), "<P>",
                                   grids, rows[i].images, 2, &out, &err);

        buf_add(&out, "", 0);
        if (!ok(rows[i].code ? ret == -1 && err.code == rows[i].code &&
                                   strstr(err.text, rows[i].want)
                             : ret == 0 && strcmp(out.data ? out.data : "",
                                                  rows[i].want) == 0,
                "'%s' with %zu images", rows[i].text, rows[i].images))
            diag("'%s' %s", out.data ? out.data : "", err.text);
        buf_release(&out);
    }
}

static void test_grids(void)
{
    static const int64_t bad[][3] = {
        {1, 3, 4}, {1, 4, 0}, {0, 4, 4}, {1, -2, 4}, {1, 1 << 24, 1 << 24}};
    struct err err = ERR_INIT;

    is_int(positions_image_rows((int64_t[]){1, 26, 40}, 2, &err), 260,
           "26 x 40 patches are 260 tokens");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        err_clear(&err);
        ok(positions_image_rows(bad[i], 2, &err) == -1 && err.code == ERR_INPUT,
           "grid %zu is refused", i);
    }
}

int main(void)
{
    test_worked_example();
    test_two_images();
    test_text();
    test_refusals();
    test_expansion();
    test_grids();
    return done();
}
