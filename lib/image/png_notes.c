/*
 * The chunks of a PNG that are beside its pixels: refused where Pillow's reader
 * stumbles over them, and searched for what says how the picture is turned.
 */
#include "base/buf.h"
#include "base/utf8.h"
#include "image/image_internal.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
    TEXT_MAX = 1 << 20,       /* of one, inflated: Pillow's limit */
    TEXTS_MAX = 64 * TEXT_MAX /* of all */
};

struct span {
    const uint8_t *data;
    size_t len;
};

/* What stands before the first NUL, and behind it; false when there is none. */
static bool split(struct span *whole, struct span *head)
{
    const uint8_t *end = whole->len ? memchr(whole->data, 0, whole->len) : NULL;

    if (!end)
        return false;
    *head = (struct span){whole->data, (size_t)(end - whole->data)};
    *whole = (struct span){end + 1, whole->len - head->len - 1};
    return true;
}

static bool is_text(const struct span *s, const char *text)
{
    return s->len == strlen(text) && memcmp(s->data, text, s->len) == 0;
}

/* A damaged stream is not good; one that is cut short gives what it has. */
static int unpack(struct span packed, struct buf *out, bool *is_good,
                  struct err *err)
{
    z_stream z = {.next_in = (z_const Bytef *)packed.data,
                  .avail_in = (uInt)packed.len};
    int state;

    if (inflateInit(&z) != Z_OK)
        return err_set(err, ERR_SYSTEM, "out of memory");
    buf_reserve(out, TEXT_MAX);
    z.next_out = (Bytef *)out->data;
    z.avail_out = TEXT_MAX;
    state = inflate(&z, Z_NO_FLUSH);
    out->len = TEXT_MAX - z.avail_out;
    out->data[out->len] = '\0';
    inflateEnd(&z);
    *is_good = state == Z_OK || state == Z_STREAM_END || state == Z_BUF_ERROR;
    if (*is_good && state != Z_STREAM_END && z.avail_in > 0)
        return err_set(err, ERR_INPUT, "inflates to more than %d bytes",
                       TEXT_MAX);
    return 0;
}

/* Hexadecimal bytes behind the third line's end, as ImageMagick writes them;
 * white space between bytes is free. */
static int raw_orientation(const char *text, size_t len)
{
    struct buf exif = BUF_INIT;
    const char *end = text + len;
    bool is_hex = true;

    for (int line = 0; line < 3; line++) {
        const char *next = memchr(text, '\n', (size_t)(end - text));

        text = next ? next + 1 : end;
    }
    while (is_hex && text < end) {
        static const char digits[] = "0123456789abcdef";
        const char *high, *low;

        if (memchr(" \t\n\v\f\r", *text, 6)) {
            text++;
            continue;
        }
        high = memchr(digits, *text | 0x20, 16);
        /* lines are joined first: a byte may stand on two */
        do
            text++;
        while (text < end && *text == '\n');
        low = text < end ? memchr(digits, *text | 0x20, 16) : NULL;
        is_hex = high && low;
        if (is_hex)
            buf_addch(&exif, (int)((high - digits) << 4 | (low - digits)));
        text++;
    }
    int found =
        is_hex ? image_exif_orientation((const uint8_t *)exif.data, exif.len)
               : -1;
    buf_release(&exif);
    return found;
}

/* A text chunk, unpacked, of whatever kind. */
static int note_text(struct png_notes *n, const struct span *key,
                     const struct span *value, struct err *err)
{
    if (key->len == 0)
        return 0;
    if (is_text(key, "exif")) { /* as text, which Pillow fails on */
        n->has_exif = true;
        n->exif = value->len > 0 ? -1 : 0;
    }
    if (is_text(key, "Raw profile type exif"))
        n->raw = raw_orientation((const char *)value->data, value->len);
    if (is_text(key, "XML:com.adobe.xmp")) {
        n->is_xmp_text = value->len > 0;
        n->xmp_text = image_xmp_orientation(value->data, value->len);
    }
    n->text_len += value->len;
    return n->text_len > TEXTS_MAX
               ? err_set(err, ERR_INPUT, "more than %d bytes of text",
                         TEXTS_MAX)
               : 0;
}

static int note_plain(struct png_notes *n, struct span d, struct err *err)
{
    struct span key;

    if (!split(&d, &key)) {
        key = d;
        d.len = 0;
    }
    if (note_text(n, &key, &d, err))
        return -1;
    if (is_text(&key, "exif")) /* of this kind alone it is bytes */
        n->exif = image_exif_orientation(d.data, d.len);
    return 0;
}

static int note_packed(struct png_notes *n, struct span d, struct err *err)
{
    struct buf text = BUF_INIT;
    struct span key;
    bool is_good = true;

    if (!split(&d, &key)) {
        key = d;
        d.len = 0;
    }
    if (d.len > 0 && d.data[0] != 0)
        return err_set(err, ERR_INPUT, "compression method %d", d.data[0]);
    if (d.len > 0)
        d = (struct span){d.data + 1, d.len - 1};
    int ret = unpack(d, &text, &is_good, err);
    struct span value = {(const uint8_t *)text.data, is_good ? text.len : 0};
    if (ret == 0)
        ret = note_text(n, &key, &value, err);
    buf_release(&text);
    return ret;
}

/* Keyword, two flags, language, translated keyword, text. */
static int note_international(struct png_notes *n, struct span d,
                              struct err *err)
{
    struct buf text = BUF_INIT;
    struct span key, language, translated;
    bool is_good = true;
    int ret = 0;

    if (!split(&d, &key) || d.len < 2)
        return 0;
    bool is_packed = d.data[0] != 0, is_known = d.data[1] == 0;
    d = (struct span){d.data + 2, d.len - 2};
    if (!split(&d, &language) || !split(&d, &translated) ||
        (is_packed && !is_known))
        return 0;
    if (is_packed) {
        ret = unpack(d, &text, &is_good, err);
        d = (struct span){(const uint8_t *)text.data, text.len};
    }
    if (ret == 0 && is_good) {
        if (is_text(&key, "XML:com.adobe.xmp"))
            n->xmp = image_xmp_orientation(d.data, d.len);
        if (utf8_is_valid((const char *)language.data, language.len) &&
            utf8_is_valid((const char *)translated.data, translated.len) &&
            utf8_is_valid((const char *)d.data, d.len))
            ret = note_text(n, &key, &d, err);
    }
    buf_release(&text);
    return ret;
}

/* A name, the method, the profile; Pillow counts from the start when there is
 * no NUL. */
static int check_profile(struct span d, struct err *err)
{
    struct buf profile = BUF_INIT;
    struct span name;
    bool is_good;

    split(&d, &name);
    if (d.len == 0)
        return err_set(err, ERR_INPUT, "cut short");
    if (d.data[0] != 0)
        return err_set(err, ERR_INPUT, "compression method %d", d.data[0]);
    d = (struct span){d.data + 1, d.len - 1};
    int ret = unpack(d, &profile, &is_good, err);
    buf_release(&profile);
    return ret;
}

/* Shorter than what Pillow takes out of it? */
static int check_length(const char *type, size_t len, int color,
                        struct err *err)
{
    const struct {
        const char *type;
        size_t least;
    } lengths[] = {
        {"gAMA", 4},
        {"sRGB", 1},
        {"pHYs", 9},
        {"tRNS", color == 0   ? 2
                 : color == 2 ? 6
                              : 0},
    };

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
        if (memcmp(type, lengths[i].type, 4) == 0 && len < lengths[i].least)
            return err_set(err, ERR_INPUT, "%zu bytes", len);
    if (memcmp(type, "cHRM", 4) == 0 && len % 4 != 0)
        return err_set(err, ERR_INPUT, "%zu bytes", len);
    return 0;
}

static int note(struct png_notes *n, const char *type, struct span d, int color,
                struct err *err)
{
    if (check_length(type, d.len, color, err))
        return -1;
    if (memcmp(type, "iCCP", 4) == 0)
        return check_profile(d, err);
    if (memcmp(type, "tEXt", 4) == 0)
        return note_plain(n, d, err);
    if (memcmp(type, "zTXt", 4) == 0)
        return note_packed(n, d, err);
    if (memcmp(type, "iTXt", 4) == 0)
        return note_international(n, d, err);
    if (memcmp(type, "eXIf", 4) == 0) {
        n->has_exif = true;
        n->exif = image_exif_orientation(d.data, d.len);
    }
    return 0;
}

int png_note(struct png_notes *n, const uint8_t *type, const uint8_t *data,
             size_t len, int color, struct err *err)
{
    if (note(n, (const char *)type, (struct span){data, len}, color, err))
        return err_in(err, "chunk '%.4s'", type);
    return 0;
}

int png_notes_orientation(const struct png_notes *n)
{
    int found = n->has_exif ? n->exif : n->raw;

    if (found)
        return found;
    return n->is_xmp_text ? n->xmp_text : n->xmp;
}
