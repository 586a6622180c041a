/* Where ids or rendered prompts part: the words around it on both sides. */
#include "base/mem.h"
#include "base/utf8.h"
#include "gates/explain_internal.h"

#include <stdlib.h>
#include <string.h>

enum {
    IDS_MAX = 1 << 22,
    IDS_BEFORE = 5, /* shown before the first that differs, */
    IDS_AFTER = 5,  /* and from it on */
    BYTES_AROUND = 48,
};

/* Whole numbers, freed by the caller; NULL when there are too many, or they
 * cannot be read. */
static int64_t *load_ids(const struct tensor_source *s)
{
    struct err why = ERR_INIT;
    int64_t count = shape_count(&s->shape);

    if (count < 0 || count > IDS_MAX)
        return NULL;
    size_t bytes = (size_t)shape_bytes(&s->shape, s->dtype);
    void *raw = mem_array(bytes, 1, SIZE_MAX, &why);
    int64_t *out = mem_array((size_t)count, sizeof(*out), SIZE_MAX, &why);

    if (!raw || !out || s->read(s, 0, bytes, raw, &why)) {
        free(out);
        out = NULL;
    } else
        dtype_to_i64(s->dtype, raw, (size_t)count, out);
    free(raw);
    return out;
}

static json_t *side_ids(struct texts *texts, const char *case_name,
                        const char *tensor, const char *side,
                        const int64_t *ids, int64_t first, int64_t count)
{
    char *what = xasprintf("%s of the %s", tensor, side);
    int64_t left = count - first;
    size_t n =
        (size_t)(left < IDS_BEFORE + IDS_AFTER ? left : IDS_BEFORE + IDS_AFTER);
    json_t *out = texts_ids(texts, case_name, what, ids + first, n);

    free(what);
    return out;
}

json_t *explain_around(const char *case_name, const char *tensor,
                       const struct tensor_source *ref,
                       const struct tensor_source *cand, struct texts *texts)
{
    int64_t *r = NULL, *c = NULL;
    int64_t nr = shape_count(&ref->shape), nc = shape_count(&cand->shape);
    json_t *out = NULL;

    if (ref->shape.dims != 1 || cand->shape.dims != 1 ||
        !dtype_is_int(ref->dtype) || !dtype_is_int(cand->dtype))
        return NULL;
    r = load_ids(ref);
    c = load_ids(cand);
    int64_t at = 0, less = nr < nc ? nr : nc;
    while (r && c && at < less && r[at] == c[at])
        at++;
    if (r && c && (at < nr || at < nc)) {
        int64_t first = at > IDS_BEFORE ? at - IDS_BEFORE : 0;

        out = json_object();
        json_object_set_new(out, "tensor", json_string(tensor));
        json_object_set_new(out, "index", json_integer(at));
        json_object_set_new(out, "first", json_integer(first));
        json_object_set_new(
            out, "reference",
            side_ids(texts, case_name, tensor, "reference", r, first, nr));
        json_object_set_new(
            out, "candidate",
            side_ids(texts, case_name, tensor, "candidate", c, first, nc));
    }
    free(r);
    free(c);
    return out;
}

static bool is_inside(const struct buf *text, size_t at)
{
    return at < text->len && ((unsigned char)text->data[at] & 0xc0) == 0x80;
}

/* Where the character begins that holds the byte at `at`, sound or cut off:
 * there itself when the byte belongs to none before it. */
static size_t character_start(const struct buf *text, size_t at)
{
    size_t from = at;

    while (from > 0 && at - from < 3 && is_inside(text, from))
        from--;
    unsigned char lead = from < at ? (unsigned char)text->data[from] : 0;
    size_t len = lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;

    return at - from < len ? from : at;
}

/* Bytes [from, to), which begin and end between characters; U+FFFD for each
 * byte that is no UTF-8. */
static json_t *excerpt(const struct buf *text, size_t from, size_t to)
{
    struct buf sound = BUF_INIT;

    for (size_t at = from, n; at < to; at += n ? n : 1) {
        n = utf8_len(text->data + at, to - at);
        if (n)
            buf_add(&sound, text->data + at, n);
        else
            buf_addstr(&sound, "\xef\xbf\xbd");
    }
    json_t *out = json_stringn(sound.data ? sound.data : "", sound.len);
    buf_release(&sound);
    return out;
}

/* Of a side: around the character that holds the byte at `offset`. */
static json_t *side_text(const struct buf *text, size_t at, size_t offset)
{
    size_t from = at > BYTES_AROUND ? at - BYTES_AROUND : 0;
    size_t to = text->len - at > BYTES_AROUND ? at + BYTES_AROUND : text->len;

    while (from < at && is_inside(text, from))
        from++;
    while (to > at && is_inside(text, to))
        to--;
    json_t *out = json_object();
    json_object_set_new(out, "bytes", json_integer((json_int_t)text->len));
    json_object_set_new(out, "byte",
                        offset < text->len
                            ? json_integer((unsigned char)text->data[offset])
                            : json_null());
    json_object_set_new(out, "before", excerpt(text, from, at));
    json_object_set_new(out, "after", excerpt(text, at, to));
    return out;
}

json_t *explain_prompt(const struct test_case *planned,
                       const struct buf *reference, const struct buf *candidate,
                       struct texts *texts)
{
    size_t less =
        reference->len < candidate->len ? reference->len : candidate->len;
    size_t offset = 0, line = 1, column = 1;

    while (offset < less && reference->data[offset] == candidate->data[offset])
        offset++;
    if (offset == reference->len && offset == candidate->len)
        return NULL;
    size_t start = character_start(reference, offset);
    size_t other = character_start(candidate, offset);
    if (other < start)
        start = other;
    for (size_t i = 0; i < start; i++) {
        if (reference->data[i] == '\n') {
            line++;
            column = 1;
        } else {
            column += !is_inside(reference, i);
        }
    }
    json_t *out = json_object(), *place = NULL;
    json_object_set_new(out, "offset", json_integer((json_int_t)offset));
    json_object_set_new(out, "line", json_integer((json_int_t)line));
    json_object_set_new(out, "column", json_integer((json_int_t)column));
    json_object_set_new(out, "reference", side_text(reference, start, offset));
    json_object_set_new(out, "candidate", side_text(candidate, start, offset));
    if (planned)
        place = texts_place(texts, planned, reference, candidate, offset);
    json_object_set_new(out, "written_by", place ? place : json_null());
    return out;
}
