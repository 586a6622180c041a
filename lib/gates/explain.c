/*
 * Why two tensors differ, as far as they show it themselves: ids put in or left
 * out.
 */
#include "gates/explain.h"

#include "base/buf.h"
#include "base/mem.h"
#include "gates/explain_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    IDS_MAX = 1 << 22, /* elements of an id tensor we look into */
    IDS_SHOWN = 6,     /* of a run of ids in a sentence */
};

double *explain_load(const struct tensor_source *s, int64_t max)
{
    struct err why = ERR_INIT;
    int64_t count = shape_count(&s->shape);
    size_t bytes;

    if (count < 0 || count > max || dtype_bits(s->dtype) % 8 != 0 ||
        !(dtype_is_float(s->dtype) || dtype_is_int(s->dtype)))
        return NULL;
    bytes = (size_t)shape_bytes(&s->shape, s->dtype);
    void *raw = mem_array(bytes, 1, SIZE_MAX, &why);
    double *out = mem_array((size_t)count, sizeof(*out), SIZE_MAX, &why);
    if (!raw || !out || s->read(s, 0, bytes, raw, &why)) {
        free(raw);
        free(out);
        return NULL;
    }
    dtype_to_f64(s->dtype, raw, (size_t)count, out);
    free(raw);
    return out;
}

static void add_ids(struct buf *out, const double *ids, int64_t count)
{
    buf_addch(out, '[');
    for (int64_t i = 0; i < count && i < IDS_SHOWN; i++)
        buf_addf(out, "%s%.0f", i ? ", " : "", ids[i]);
    buf_addstr(out, count > IDS_SHOWN ? ", ...]" : "]");
}

/* Rows of ids with the same number of columns, but for the last dimension. */
static char *explain_flat(const double *r, int64_t nr, const double *c,
                          int64_t nc)
{
    struct buf text = BUF_INIT;
    int64_t less = nr < nc ? nr : nc, head = 0, tail = 0, differ = 0;

    while (head < less && r[head] == c[head])
        head++;
    while (tail < less - head && r[nr - 1 - tail] == c[nc - 1 - tail])
        tail++;
    if (nr == nc) {
        for (int64_t i = head; i < nr; i++)
            differ += r[i] != c[i];
        buf_addf(&text,
                 "%" PRId64 " of %" PRId64 " differ, first at %" PRId64
                 ": %.0f in the reference, %.0f in the candidate",
                 differ, nr, head, r[head], c[head]);
    } else if (head + tail == less) {
        bool more = nc > nr;

        buf_addf(&text, "the candidate has %" PRId64 " too %s at %" PRId64 ": ",
                 more ? nc - nr : nr - nc, more ? "many" : "few", head);
        add_ids(&text, more ? c + head : r + head, more ? nc - nr : nr - nc);
    } else {
        buf_addf(&text,
                 "%" PRId64 " in the reference, %" PRId64
                 " in the candidate; from %" PRId64 " on ",
                 nr, nc, head);
        add_ids(&text, r + head, nr - head - tail);
        buf_addstr(&text, " in the reference is ");
        add_ids(&text, c + head, nc - head - tail);
        buf_addstr(&text, " in the candidate");
    }
    return buf_detach(&text);
}

char *explain_ids(const struct tensor_source *ref,
                  const struct tensor_source *cand)
{
    const struct tensor_shape *rs = &ref->shape, *cs = &cand->shape;
    double *r = explain_load(ref, IDS_MAX), *c = explain_load(cand, IDS_MAX);
    int64_t nr = shape_count(rs), nc = shape_count(cs);
    char *text = NULL;

    if (!r || !c)
        goto out;
    if (rs->dims == 1 && cs->dims == 1) {
        if (nr != nc || memcmp(r, c, (size_t)nr * sizeof(*r)) != 0)
            text = explain_flat(r, nr, c, nc);
    } else if (rs->dims == 2 && cs->dims == 2 && rs->size[0] == cs->size[0]) {
        int64_t wr = rs->size[1], wc = cs->size[1];

        for (int64_t row = 0; row < rs->size[0] && !text; row++) {
            const double *a = r + row * wr, *b = c + row * wc;

            if (wr == wc && memcmp(a, b, (size_t)wr * sizeof(*a)) == 0)
                continue;
            char *inner = explain_flat(a, wr, b, wc);
            text = xasprintf("row %" PRId64 ": %s", row, inner);
            free(inner);
        }
    } else {
        text = xstrdup("the shapes differ");
    }
out:
    free(r);
    free(c);
    return text;
}
