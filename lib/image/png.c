/*
 * PNG.  The chunks are walked and checked first (lengths, CRC, order); libpng
 * then reads a stream of the essential ones alone, so that no ancillary chunk
 * reaches it, and what Pillow ignores (tRNS, gAMA, sRGB, iCCP) cannot act.
 *
 *     signature | length type data CRC | ... | IEND
 */
#include "base/buf.h"
#include "base/mem.h"
#include "image/image_internal.h"

#include <png.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

struct chunks {
    uint32_t width, height;
    int depth, color, interlace;
    bool has_palette, has_data, is_data_over;
    size_t data_len;
    uint8_t palette[256 * 3];
    size_t colors;
    struct buf stream; /* signature, IHDR, PLTE, IDAT..., IEND */
    struct png_notes notes;
};

static uint32_t be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 |
           p[3];
}

/* CRC-32 of ISO 3309, eight bytes at a time: by[k][b] is b followed by k zero
 * bytes. */
struct crc_tables {
    uint32_t by[8][256];
};

static void crc_init(struct crc_tables *t)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;

        for (int bit = 0; bit < 8; bit++)
            c = c >> 1 ^ (c & 1 ? 0xedb88320u : 0);
        t->by[0][i] = c;
    }
    for (int k = 1; k < 8; k++)
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t c = t->by[k - 1][i];

            t->by[k][i] = t->by[0][c & 0xff] ^ c >> 8;
        }
}

static uint32_t crc(const struct crc_tables *t, const uint8_t *p, size_t len)
{
    uint32_t c = 0xffffffffu;

    for (; len >= 8; p += 8, len -= 8)
        c = t->by[7][(c ^ p[0]) & 0xff] ^ t->by[6][(c >> 8 ^ p[1]) & 0xff] ^
            t->by[5][(c >> 16 ^ p[2]) & 0xff] ^ t->by[4][c >> 24 ^ p[3]] ^
            t->by[3][p[4]] ^ t->by[2][p[5]] ^ t->by[1][p[6]] ^ t->by[0][p[7]];
    for (; len; p++, len--)
        c = t->by[0][(c ^ *p) & 0xff] ^ c >> 8;
    return ~c;
}

static int read_header(struct chunks *c, const uint8_t *d, uint32_t len,
                       struct err *err)
{
    static const struct {
        int color, depths; /* a bit for each depth allowed */
    } known[] = {{0, 1 | 2 | 4 | 8 | 16},
                 {2, 8 | 16},
                 {3, 1 | 2 | 4 | 8},
                 {4, 8 | 16},
                 {6, 8 | 16}};

    if (len != 13)
        return err_set(err, ERR_INPUT, "IHDR of %u bytes", len);
    c->width = be32(d);
    c->height = be32(d + 4);
    c->depth = d[8];
    c->color = d[9];
    c->interlace = d[12];
    if (image_check_size(c->width, c->height, err))
        return -1;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (known[i].color == c->color && (c->depth & known[i].depths) &&
            (c->depth & (c->depth - 1)) == 0) {
            if (d[10] != 0 || d[11] != 0 || d[12] > 1)
                return err_set(err, ERR_INPUT,
                               "compression %d, filter %d, interlace %d", d[10],
                               d[11], d[12]);
            return 0;
        }
    return err_set(err, ERR_INPUT, "colour type %d with %d bits", c->color,
                   c->depth);
}

static int read_palette(struct chunks *c, const uint8_t *d, uint32_t len,
                        struct err *err)
{
    if (c->has_palette)
        return err_set(err, ERR_INPUT, "a second PLTE");
    if (c->has_data)
        return err_set(err, ERR_INPUT, "PLTE after the pixels");
    if (len == 0 || len % 3 != 0 || len > sizeof(c->palette))
        return err_set(err, ERR_INPUT, "PLTE of %u bytes", len);
    c->has_palette = true;
    c->colors = len / 3;
    memcpy(c->palette, d, len);
    return 0;
}

static int walk_one(struct chunks *c, const uint8_t *chunk, uint32_t len,
                    struct err *err)
{
    const uint8_t *type = chunk + 4, *d = chunk + 8;
    bool is_first = c->stream.len == 8;
    bool is_kept = true;

    if (memcmp(type, "IHDR", 4) == 0) {
        if (!is_first)
            return err_set(err, ERR_INPUT, "a second IHDR");
        if (read_header(c, d, len, err))
            return -1;
    } else if (is_first) {
        return err_set(err, ERR_INPUT, "does not start with IHDR");
    } else if (memcmp(type, "PLTE", 4) == 0) {
        if (read_palette(c, d, len, err))
            return -1;
        is_kept = c->color == PNG_COLOR_TYPE_PALETTE;
    } else if (memcmp(type, "IDAT", 4) == 0) {
        if (c->is_data_over)
            return err_set(err, ERR_INPUT, "IDAT in two places");
        c->has_data = true;
        c->data_len += len;
    } else if (memcmp(type, "IEND", 4) == 0) {
        if (len != 0)
            return err_set(err, ERR_INPUT, "IEND of %u bytes", len);
    } else if (memcmp(type, "acTL", 4) == 0 || memcmp(type, "fcTL", 4) == 0 ||
               memcmp(type, "fdAT", 4) == 0) {
        return err_set(err, ERR_UNSUPPORTED, "animated (%.4s)", type);
    } else if (!(type[0] & 0x20)) {
        return err_set(err, ERR_INPUT, "unknown critical chunk '%.4s'", type);
    } else {
        if (png_note(&c->notes, type, d, len, c->color, err))
            return -1;
        is_kept = false;
    }
    if (c->has_data && memcmp(type, "IDAT", 4) != 0)
        c->is_data_over = true;
    if (is_kept)
        buf_add(&c->stream, chunk, (size_t)len + 12);
    return 0;
}

static int walk(struct chunks *c, const uint8_t *data, size_t len,
                struct err *err)
{
    struct crc_tables tables;
    size_t at = 8;
    bool is_over = false;

    crc_init(&tables);
    buf_add(&c->stream, data, 8);
    while (!is_over) {
        if (len - at < 12)
            return err_set(err, ERR_INPUT, "cut short at byte %zu%s", len,
                           c->has_data ? ": no IEND" : "");
        uint32_t n = be32(data + at);
        const uint8_t *type = data + at + 4;

        for (int i = 0; i < 4; i++)
            if ((type[i] | 0x20) < 'a' || (type[i] | 0x20) > 'z')
                return err_set(err, ERR_INPUT, "no chunk at byte %zu", at);
        if (n > len - at - 12)
            return err_set(err, ERR_INPUT,
                           "chunk '%.4s' at byte %zu passes the end", type, at);
        if (crc(&tables, type, (size_t)n + 4) != be32(type + 4 + n))
            return err_set(err, ERR_INPUT, "chunk '%.4s' at byte %zu: bad CRC",
                           type, at);
        if (walk_one(c, data + at, n, err))
            return -1;
        is_over = memcmp(type, "IEND", 4) == 0;
        at += (size_t)n + 12;
    }
    if (at != len)
        return err_set(err, ERR_INPUT, "%zu bytes after IEND", len - at);
    if (!c->has_data)
        return err_set(err, ERR_INPUT, "no IDAT");
    if (c->color == PNG_COLOR_TYPE_PALETTE && !c->has_palette)
        return err_set(err, ERR_INPUT, "a palette image without PLTE");
    /* deflate makes at most 1,032 bytes of one: a bomb has too little data */
    uint64_t channels = c->color == 2   ? 3
                        : c->color == 6 ? 4
                        : c->color == 4 ? 2
                                        : 1;
    uint64_t raw = c->width * channels * (uint64_t)c->depth / 8 * c->height;
    if (raw / 1032 > c->data_len)
        return err_set(err, ERR_INPUT, "too little pixel data: %zu bytes",
                       c->data_len);
    return 0;
}

struct reader {
    const uint8_t *data;
    size_t at, len;
    char reason[128];
    jmp_buf out;
};

static void read_bytes(png_structp png, png_bytep to, size_t n)
{
    struct reader *r = png_get_io_ptr(png);

    if (n > r->len - r->at)
        png_error(png, "cut short");
    memcpy(to, r->data + r->at, n);
    r->at += n;
}

static void on_error(png_structp png, png_const_charp text)
{
    struct reader *r = png_get_error_ptr(png);

    strncpy(r->reason, text, sizeof(r->reason) - 1);
    longjmp(r->out, 1);
}

static void on_warning(png_structp png, png_const_charp text)
{
    (void)png, (void)text;
}

/* Rows as stored, one byte a sample (two for 16-bit gray), into `rows`. */
static int read_rows(const struct chunks *c, bool is_alpha_kept,
                     png_bytep *rows, struct err *err)
{
    struct reader r = {.data = (const uint8_t *)c->stream.data,
                       .len = c->stream.len};
    png_structp png =
        png_create_read_struct(PNG_LIBPNG_VER_STRING, &r, on_error, on_warning);
    png_infop info = png ? png_create_info_struct(png) : NULL;

    if (!info) {
        png_destroy_read_struct(&png, NULL, NULL);
        return err_set(err, ERR_SYSTEM, "out of memory");
    }
    if (setjmp(r.out)) {
        png_destroy_read_struct(&png, &info, NULL);
        return err_set(err, ERR_INPUT, "%s", r.reason);
    }
    png_set_read_fn(png, &r, read_bytes);
    /* every CRC was checked by walk() */
    png_set_crc_action(png, PNG_CRC_QUIET_USE, PNG_CRC_QUIET_USE);
    png_set_benign_errors(png, 0);
    png_set_check_for_invalid_index(png, 0); /* checked when looked up */
    png_set_user_limits(png, IMAGE_MAX_SIDE, IMAGE_MAX_SIDE);
    png_read_info(png, info);
    png_set_packing(png);
    if (c->color != PNG_COLOR_TYPE_GRAY)
        png_set_strip_16(png);
    if (!is_alpha_kept)
        png_set_strip_alpha(png);
    png_set_interlace_handling(png);
    png_read_update_info(png, info);
    png_read_image(png, rows);
    png_read_end(png, NULL);
    png_destroy_read_struct(&png, &info, NULL);
    return 0;
}

/* One channel of samples to three of 8 bits. */
static int expand(const struct chunks *c, const uint8_t *from, uint8_t *rgb,
                  size_t pixels, struct err *err)
{
    static const int scale[] = {[1] = 255, [2] = 85, [4] = 17, [8] = 1};

    for (size_t i = 0; i < pixels; i++, rgb += 3) {
        int v;

        if (c->color == PNG_COLOR_TYPE_PALETTE) {
            if (from[i] >= c->colors)
                return err_set(err, ERR_INPUT,
                               "pixel %zu has colour %d of a palette of %zu", i,
                               from[i], c->colors);
            memcpy(rgb, c->palette + 3 * from[i], 3);
            continue;
        }
        if (c->color == PNG_COLOR_TYPE_GRAY && c->depth == 16)
            v = from[2 * i] ? 255 : from[2 * i + 1];
        else if (c->color == PNG_COLOR_TYPE_GRAY)
            v = from[i] * scale[c->depth];
        else
            v = from[i];
        rgb[0] = rgb[1] = rgb[2] = (uint8_t)v;
    }
    return 0;
}

/* Samples whose last channel is alpha, gray or colour, apart. */
static void split(const uint8_t *from, size_t channels, struct image *out)
{
    size_t pixels = (size_t)(out->width * out->height);

    for (size_t i = 0; i < pixels; i++, from += channels) {
        for (size_t k = 0; k < 3; k++)
            out->rgb[3 * i + k] = from[channels == 4 ? k : 0];
        out->alpha[i] = from[channels - 1];
    }
}

int image_decode_png(const uint8_t *data, size_t len, bool is_alpha_kept,
                     struct image *out, struct err *err)
{
    struct chunks c = {.stream = BUF_INIT};
    uint8_t *samples = NULL;
    png_bytep *rows = NULL;
    int ret = -1;

    if (walk(&c, data, len, err) || image_alloc(out, c.width, c.height, err))
        goto out;
    size_t pixels = (size_t)c.width * c.height;
    bool has_alpha = is_alpha_kept && c.color & PNG_COLOR_MASK_ALPHA;
    size_t sample = c.color & PNG_COLOR_MASK_COLOR && c.color != 3    ? 3
                    : c.color == PNG_COLOR_TYPE_GRAY && c.depth == 16 ? 2
                                                                      : 1;
    sample += has_alpha;
    if (sample != 3) {
        samples = mem_array(pixels, sample, (size_t)IMAGE_MAX_PIXELS * 4, err);
        if (!samples || (has_alpha && image_alloc_alpha(out, err)))
            goto out;
    }
    rows = mem_array(c.height, sizeof(*rows), SIZE_MAX / 2, err);
    if (!rows)
        goto out;
    for (size_t y = 0; y < c.height; y++)
        rows[y] = (samples ? samples : out->rgb) + y * c.width * sample;
    if (read_rows(&c, has_alpha, rows, err) ||
        (samples && !has_alpha && expand(&c, samples, out->rgb, pixels, err)))
        goto out;
    if (has_alpha)
        split(samples, sample, out);
    out->orientation = png_notes_orientation(&c.notes);
    ret = 0;
out:
    free(rows);
    free(samples);
    buf_release(&c.stream);
    return ret;
}

const char *image_png_version(void)
{
    return png_get_libpng_ver(NULL);
}
