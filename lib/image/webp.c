/* WebP through libwebp: one still frame, RGBA decoded, alpha dropped or kept.
 */
#include "base/mem.h"
#include "image/image_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <webp/decode.h>
#include <webp/demux.h>

static int orientation(const WebPDemuxer *demux)
{
    WebPChunkIterator it;
    int found = 0;

    if (WebPDemuxGetChunk(demux, "EXIF", 1, &it)) {
        found = image_exif_orientation(it.chunk.bytes, it.chunk.size);
        WebPDemuxReleaseChunkIterator(&it);
    }
    if (!found && WebPDemuxGetChunk(demux, "XMP ", 1, &it)) {
        found = image_xmp_orientation(it.chunk.bytes, it.chunk.size);
        WebPDemuxReleaseChunkIterator(&it);
    }
    return found;
}

static int decode(const WebPDemuxer *demux, bool is_alpha_kept,
                  struct image *out, struct err *err)
{
    WebPIterator frame;
    uint8_t *rgba = NULL;
    int ret = -1;

    if (WebPDemuxGetI(demux, WEBP_FF_FORMAT_FLAGS) & ANIMATION_FLAG)
        return err_set(err, ERR_UNSUPPORTED, "animated");
    if (!WebPDemuxGetFrame(demux, 1, &frame))
        return err_set(err, ERR_INPUT, "no frame");
    uint64_t w = WebPDemuxGetI(demux, WEBP_FF_CANVAS_WIDTH);
    uint64_t h = WebPDemuxGetI(demux, WEBP_FF_CANVAS_HEIGHT);
    if (frame.x_offset || frame.y_offset || (uint64_t)frame.width != w ||
        (uint64_t)frame.height != h) {
        err_set(err, ERR_INPUT, "the frame does not fill the canvas");
        goto out;
    }
    bool has_alpha = is_alpha_kept && frame.has_alpha;
    if (image_alloc(out, w, h, err) ||
        (has_alpha && image_alloc_alpha(out, err)))
        goto out;
    rgba = mem_array((size_t)(w * h), 4, (size_t)IMAGE_MAX_PIXELS * 4, err);
    if (!rgba)
        goto out;
    if (!WebPDecodeRGBAInto(frame.fragment.bytes, frame.fragment.size, rgba,
                            (size_t)(w * h * 4), (int)w * 4)) {
        err_set(err, ERR_INPUT, "damaged pixel data");
        goto out;
    }
    for (uint64_t i = 0; i < w * h; i++)
        for (int c = 0; c < 3; c++)
            out->rgb[i * 3 + (uint64_t)c] = rgba[i * 4 + (uint64_t)c];
    for (uint64_t i = 0; has_alpha && i < w * h; i++)
        out->alpha[i] = rgba[i * 4 + 3];
    out->orientation = orientation(demux);
    ret = 0;
out:
    free(rgba);
    WebPDemuxReleaseIterator(&frame);
    return ret;
}

int image_decode_webp(const uint8_t *data, size_t len, bool is_alpha_kept,
                      struct image *out, struct err *err)
{
    WebPData bytes = {data, len};
    WebPDemuxer *demux = WebPDemux(&bytes);
    int ret;

    if (!demux)
        return err_set(err, ERR_INPUT, "cut short or damaged");
    ret = decode(demux, is_alpha_kept, out, err);
    WebPDemuxDelete(demux);
    return ret;
}

const char *image_webp_version(void)
{
    static char text[32];
    int v = WebPGetDecoderVersion();

    snprintf(text, sizeof(text), "%d.%d.%d", v >> 16, v >> 8 & 255, v & 255);
    return text;
}
