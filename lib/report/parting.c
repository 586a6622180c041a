/* Where two prompts part, in words for people. */
#include "report/report_internal.h"

#include <stdint.h>
#include <string.h>

/* Of a text that is UTF-8 (it comes from JSON): a code point, its bytes. */
static uint32_t code_point(const unsigned char *at, size_t *n)
{
    uint32_t c = at[0];

    *n = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    if (*n > 1)
        c &= 0xffu >> (*n + 1);
    for (size_t i = 1; i < *n; i++)
        c = c << 6 | (at[i] & 0x3f);
    return c;
}

/* Controls, spaces and signs without a shape, but for the ASCII space. */
static bool is_hidden(uint32_t c)
{
    static const uint32_t ranges[][2] = {
        {0, 0x1f},        {0x7f, 0xa0},     {0xad, 0xad},      {0x300, 0x36f},
        {0x61c, 0x61c},   {0x115f, 0x1160}, {0x1680, 0x1680},  {0x17b4, 0x17b5},
        {0x180b, 0x180f}, {0x2000, 0x200f}, {0x2028, 0x202f},  {0x205f, 0x206f},
        {0x3000, 0x3000}, {0x3164, 0x3164}, {0xfe00, 0xfe0f},  {0xfeff, 0xfeff},
        {0xffa0, 0xffa0}, {0xfff9, 0xfffb}, {0xe0000, 0xe0fff}};

    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
        if (c >= ranges[i][0] && c <= ranges[i][1])
            return true;
    return false;
}

/* The signs that we write ourselves: a space, and where two texts part. */
static bool is_ours(uint32_t c)
{
    return c == 0x2423 || c == 0xbb;
}

/* Text with its white space and all that does not show made visible: a space
 * is "␣", a line feed "\n", a zero-width space "\u{200b}"; and a
 * backslash is two, but in a piece, where bytes are "\xNN" already. */
static void add_visible(const json_t *text, bool is_piece, struct buf *out)
{
    const unsigned char *at = (const unsigned char *)json_string_value(text);
    const unsigned char *end = at ? at + json_string_length(text) : NULL;

    for (size_t n; at < end; at += n) {
        uint32_t c = code_point(at, &n);

        if (c == ' ')
            buf_addstr(out, "\u2423");
        else if (c == '\n')
            buf_addstr(out, "\\n");
        else if (c == '\t')
            buf_addstr(out, "\\t");
        else if (c == '\r')
            buf_addstr(out, "\\r");
        else if (c == '\\' && !is_piece)
            buf_addstr(out, "\\\\");
        else if (is_hidden(c) || is_ours(c))
            buf_addf(out, "\\u{%x}", c);
        else
            buf_add(out, (const char *)at, n);
    }
}

static long long whole(const json_t *object, const char *key)
{
    return (long long)json_integer_value(json_object_get(object, key));
}

/* The ids of one side with their pieces; the first that differs is marked. */
static void add_ids(const json_t *around, const char *side, struct buf *out)
{
    const json_t *of = json_object_get(around, side);
    const json_t *pieces = json_object_get(of, "pieces");
    size_t mark = (size_t)(whole(around, "index") - whole(around, "first"));
    size_t i;
    json_t *id;

    buf_addf(out, "  %s:", side);
    json_array_foreach(json_object_get(of, "ids"), i, id)
    {
        const json_t *piece = json_array_get(pieces, i);

        buf_addf(out, " %s%lld", i == mark ? "\u00bb" : "",
                 (long long)json_integer_value(id));
        if (json_is_string(piece)) {
            buf_addch(out, ' ');
            buf_addch(out, '"');
            add_visible(piece, true, out);
            buf_addch(out, '"');
        } else if (pieces) {
            buf_addstr(out, " (no piece)");
        }
    }
    if (json_array_size(json_object_get(of, "ids")) <= mark)
        buf_addstr(out, " \u00bbend");
    buf_addch(out, '\n');
    if (json_is_string(json_object_get(of, "text"))) {
        buf_addf(out, "  %s text: ", side);
        add_visible(json_object_get(of, "text"), false, out);
        buf_addch(out, '\n');
    }
}

static void add_text(const json_t *prompt, const char *side, struct buf *out)
{
    const json_t *of = json_object_get(prompt, side);

    const json_t *after = json_object_get(of, "after");

    buf_addf(out, "  %s: ", side);
    add_visible(json_object_get(of, "before"), false, out);
    buf_addstr(out, "\u00bb");
    add_visible(after, false, out);
    if (json_string_length(after) == 0)
        buf_addstr(out, " (end)"); /* no text has this space */
    buf_addch(out, '\n');
}

/* The bytes themselves, where they are not all ASCII. */
static void add_bytes(const json_t *prompt, struct buf *out)
{
    static const char *const sides[] = {"reference", "candidate"};
    const json_t *bytes[2];

    for (int i = 0; i < 2; i++)
        bytes[i] = json_object_get(json_object_get(prompt, sides[i]), "byte");
    if (json_integer_value(bytes[0]) < 0x80 &&
        json_integer_value(bytes[1]) < 0x80)
        return;
    for (int i = 0; i < 2; i++) {
        buf_addstr(out, i ? " against " : "; ");
        if (json_is_integer(bytes[i]))
            buf_addf(out, "0x%02x", (unsigned)json_integer_value(bytes[i]));
        else
            buf_addstr(out, "the end");
    }
}

void report_parting(const json_t *test_case, struct buf *out)
{
    const json_t *around = json_object_get(test_case, "around");
    const json_t *prompt = json_object_get(test_case, "prompt");
    const json_t *place = json_object_get(prompt, "written_by");

    if (around) {
        buf_addf(out, "%s part at %lld; ids from %lld on:\n",
                 report_str(around, "tensor"), whole(around, "index"),
                 whole(around, "first"));
        add_ids(around, "reference", out);
        add_ids(around, "candidate", out);
    }
    if (prompt) {
        buf_addf(out,
                 "the rendered prompts part at byte %lld, line %lld, column "
                 "%lld",
                 whole(prompt, "offset"), whole(prompt, "line"),
                 whole(prompt, "column"));
        if (json_is_object(place)) {
            buf_addf(out, "; the %s's byte was written by ",
                     report_str(place, "of"));
            add_visible(json_object_get(place, "template"), true, out);
            buf_addf(out, ", line %lld, column %lld", whole(place, "line"),
                     whole(place, "column"));
        }
        add_bytes(prompt, out);
        buf_addch(out, '\n');
        add_text(prompt, "reference", out);
        add_text(prompt, "candidate", out);
    }
}
