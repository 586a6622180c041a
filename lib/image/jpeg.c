/*
 * JPEG through libjpeg-turbo with every setting at its default (slow integer
 * DCT, fancy upsampling, block smoothing), as Pillow uses it.
 */
#include "base/buf.h"
#include "base/mem.h"
#include "image/image_internal.h"

#include <stdio.h> /* jpeglib.h needs it before */

#include <jerror.h>
#include <jpeglib.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SCANS = 500 }; /* a small progressive file may name very many */

struct decoder {
    struct jpeg_decompress_struct info;
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress;
    struct image *image;
    JSAMPROW row; /* CMYK: one row of four channels */
    char reason[JMSG_LENGTH_MAX];
    enum err_code code;
    jmp_buf out;
};

static void fail(struct decoder *d, enum err_code code, const char *reason)
{
    d->code = code;
    strncpy(d->reason, reason, sizeof(d->reason) - 1);
    longjmp(d->out, 1);
}

static void on_error(j_common_ptr info)
{
    struct decoder *d = info->client_data;
    char text[JMSG_LENGTH_MAX];
    int code = info->err->msg_code;

    info->err->format_message(info, text);
    fail(d,
         code == JERR_SOF_UNSUPPORTED || code == JERR_ARITH_NOTIMPL ||
                 code == JERR_NOTIMPL || code == JERR_NOT_COMPILED ||
                 code == JERR_CONVERSION_NOTIMPL ||
                 code == JERR_FRACT_SAMPLE_NOTIMPL ||
                 code == JERR_CCIR601_NOTIMPL || code == JERR_BAD_PRECISION
             ? ERR_UNSUPPORTED
         : code == JERR_OUT_OF_MEMORY ? ERR_SYSTEM
                                      : ERR_INPUT,
         text);
}

static void on_message(j_common_ptr info, int level)
{
    struct decoder *d = info->client_data;
    char text[JMSG_LENGTH_MAX];

    if (level >= 0)
        return;
    if (info->err->num_warnings++ == 0) {
        info->err->format_message(info, text);
        snprintf(d->image->warning, sizeof(d->image->warning), "%s", text);
    }
}

static void on_progress(j_common_ptr info)
{
    struct decoder *d = info->client_data;

    if (d->info.input_scan_number > MAX_SCANS)
        fail(d, ERR_INPUT, "more than 500 scans");
}

static void source_start(j_decompress_ptr info)
{
    (void)info;
}

static boolean source_more(j_decompress_ptr info)
{
    fail(info->client_data, ERR_INPUT, "cut short");
    return FALSE;
}

static void source_skip(j_decompress_ptr info, long n)
{
    struct jpeg_source_mgr *s = info->src;

    if (n <= 0)
        return;
    if ((size_t)n > s->bytes_in_buffer)
        fail(info->client_data, ERR_INPUT, "cut short");
    s->next_input_byte += n;
    s->bytes_in_buffer -= (size_t)n;
}

static int div255(int v)
{
    v += 128;
    return (v + (v >> 8)) >> 8;
}

/* Adobe's CMYK is stored inverted; Pillow takes every CMYK file so. */
static void cmyk_to_rgb(const JSAMPLE *from, uint8_t *rgb, int64_t width)
{
    for (int64_t x = 0; x < width; x++, from += 4, rgb += 3) {
        int light = from[3];

        for (int c = 0; c < 3; c++) {
            int v = light - div255((255 - from[c]) * light);

            rgb[c] = (uint8_t)(v < 0 ? 0 : v);
        }
    }
}

static void gray_to_rgb(uint8_t *row, int64_t width)
{
    for (int64_t x = width - 1; x >= 0; x--)
        row[3 * x] = row[3 * x + 1] = row[3 * x + 2] = row[x];
}

static bool starts(jpeg_saved_marker_ptr m, int marker, const void *text,
                   size_t len)
{
    return m->marker == marker && m->data_length >= len &&
           memcmp(m->data, text, len) == 0;
}

/*
 * Pillow joins all EXIF blocks, and takes the last XMP packet.  A damaged block
 * it passes over when it looks for the resolution there, JFIF having none; then
 * it never looks again.
 */
static int read_markers(const struct jpeg_decompress_struct *info,
                        int *orientation, struct err *err)
{
    static const char xmp[] = "http://ns.adobe.com/xap/1.0/";
    const int app = JPEG_APP0;
    struct buf exif = BUF_INIT;
    bool has_resolution = false;
    int of_xmp = 0, ret = -1;

    for (jpeg_saved_marker_ptr m = info->marker_list; m; m = m->next) {
        if ((starts(m, app, "JFIF", 4) || starts(m, app + 14, "Adobe", 5)) &&
            m->data_length < 7) {
            err_set(err, ERR_INPUT, "marker APP%d of %u bytes", m->marker - app,
                    m->data_length);
            goto out;
        }
        if (starts(m, app, "JFIF", 4) && m->data_length >= 12)
            has_resolution |= m->data[7] == 1 || m->data[7] == 2;
        else if (starts(m, app + 1, "Exif\0\0", 6))
            buf_add(&exif, m->data + 6, m->data_length - 6);
        else if (starts(m, app + 1, xmp, sizeof(xmp)))
            of_xmp = image_xmp_orientation(m->data + sizeof(xmp),
                                           m->data_length - sizeof(xmp));
    }
    int found =
        exif.len ? image_exif_orientation((const uint8_t *)exif.data, exif.len)
                 : 0;
    if (found < 0 && !has_resolution)
        found = 1;
    *orientation = found ? found : of_xmp;
    ret = 0;
out:
    buf_release(&exif);
    return ret;
}

/*
 * Where a progressive file lacks bits of a block's first coefficients, the
 * library guesses them from the blocks around, and versions before 3.0.1 guess
 * otherwise than those that Pillow 12 carries.
 */
static bool is_guessed(const struct jpeg_decompress_struct *info)
{
    const int guessed = 9; /* coefficients 1 to 9, in zigzag order */

    if (!info->progressive_mode || !info->coef_bits)
        return false;
    for (int c = 0; c < info->num_components; c++)
        for (int i = 1; i <= guessed; i++)
            if (info->coef_bits[c][i] != 0)
                return true;
    return false;
}

static int decode(struct decoder *d, struct err *err)
{
    struct jpeg_decompress_struct *info = &d->info;
    struct image *image = d->image;

    jpeg_save_markers(info, JPEG_APP0, 0xffff);
    jpeg_save_markers(info, JPEG_APP0 + 1, 0xffff);
    jpeg_save_markers(info, JPEG_APP0 + 14, 0xffff);
    jpeg_read_header(info, TRUE);
    if (image_check_size(info->image_width, info->image_height, err))
        return -1;
    switch (info->num_components) {
    case 1:
        info->out_color_space = JCS_GRAYSCALE;
        break;
    case 3:
        info->out_color_space = JCS_RGB;
        break;
    case 4:
        info->out_color_space = JCS_CMYK;
        break;
    default:
        return err_set(err, ERR_INPUT, "%d components", info->num_components);
    }
    if (read_markers(info, &image->orientation, err) ||
        image_alloc(image, info->image_width, info->image_height, err))
        return -1;
    if (info->num_components == 4) {
        d->row = mem_array(info->image_width, 4, IMAGE_MAX_SIDE * 4, err);
        if (!d->row)
            return -1;
    }
    jpeg_start_decompress(info);
    if (is_guessed(info))
        return err_set(err, ERR_UNSUPPORTED,
                       "progressive without its last scans: what is guessed "
                       "for them differs between versions of libjpeg-turbo");
    while (info->output_scanline < info->output_height) {
        uint8_t *to = image->rgb + info->output_scanline * image->width * 3;
        JSAMPROW row = d->row ? d->row : to;

        jpeg_read_scanlines(info, &row, 1);
        if (d->row)
            cmyk_to_rgb(d->row, to, image->width);
        else if (info->num_components == 1)
            gray_to_rgb(to, image->width);
    }
    jpeg_finish_decompress(info);
    return 0;
}

int image_decode_jpeg(const uint8_t *data, size_t len, struct image *out,
                      struct err *err)
{
    struct decoder *d = xcalloc(1, sizeof(*d));
    int ret;

    d->image = out;
    d->info.err = jpeg_std_error(&d->errors);
    d->info.client_data = d;
    d->errors.error_exit = on_error;
    d->errors.emit_message = on_message;
    if (setjmp(d->out)) {
        ret = err_set(err, d->code, "%s", d->reason);
    } else {
        jpeg_create_decompress(&d->info);
        d->progress.progress_monitor = on_progress;
        d->info.progress = &d->progress;
        d->source = (struct jpeg_source_mgr){
            .next_input_byte = data,
            .bytes_in_buffer = len,
            .init_source = source_start,
            .fill_input_buffer = source_more,
            .skip_input_data = source_skip,
            .resync_to_restart = jpeg_resync_to_restart,
            .term_source = source_start,
        };
        d->info.src = &d->source;
        ret = decode(d, err);
    }
    jpeg_destroy_decompress(&d->info);
    free(d->row);
    free(d);
    return ret;
}

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
const char *image_jpeg_version(void)
{
    return TEXT(LIBJPEG_TURBO_VERSION);
}
