/*
 * The Unicode forms, in stretches between characters that no form joins to what
 * stands before them; NFC copies what is settled.
 */
#include "tokenizer/unicode_form.h"

#include "base/mem.h"
#include "tokenizer/unicode.h"

#include <stdlib.h>
#include <string.h>

struct mark {
    uint32_t c;
    struct span from;
    uint8_t rank;
    bool is_more; /* not the first that its character became */
};

struct stretch {
    struct mark *marks, *sorted;
    size_t count, cap;
};

static void stretch_put(struct stretch *s, uint32_t c, struct span from,
                        bool is_more)
{
    if (s->count == s->cap) {
        s->cap = s->cap ? s->cap * 2 : 64;
        s->marks = xrealloc(s->marks, s->cap * sizeof(*s->marks));
        s->sorted = xrealloc(s->sorted, s->cap * sizeof(*s->sorted));
    }
    s->marks[s->count++] =
        (struct mark){c, from, unicode_norm(c)->rank, is_more};
}

static void decompose(struct stretch *s, uint32_t c, struct span from,
                      bool is_compatible)
{
    const struct unicode_norm *n = unicode_norm(c);
    const uint32_t *to = unicode_norm_pool + n->nfd_at;
    size_t len = n->nfd_len;

    if (is_compatible && n->nfkd_len) {
        to = unicode_norm_pool + n->nfkd_at;
        len = n->nfkd_len;
    }
    if (c - 0xac00 < 11172) {
        c -= 0xac00;
        stretch_put(s, 0x1100 + c / 588, from, false);
        stretch_put(s, 0x1161 + c % 588 / 28, from, true);
        if (c % 28)
            stretch_put(s, 0x11a7 + c % 28, from, true);
    } else if (len == 0) {
        stretch_put(s, c, from, false);
    } else {
        for (size_t i = 0; i < len; i++)
            stretch_put(s, to[i], from, i > 0);
    }
}

/*
 * Sorts the marks of [start, end), all of a rank above 0, keeping equals.  As
 * upstream counts, places stay in order: the k-th mark that begins a character
 * takes the k-th place, the others the place before them.
 */
static void sort_marks(struct stretch *s, size_t start, size_t end)
{
    size_t at[256] = {0}, sum = start, next = start;

    for (size_t i = start; i < end; i++)
        at[s->marks[i].rank]++;
    for (size_t r = 0; r < 256; r++) {
        size_t n = at[r];

        at[r] = sum;
        sum += n;
    }
    for (size_t i = start; i < end; i++)
        s->sorted[at[s->marks[i].rank]++] = s->marks[i];
    for (size_t i = start; i < end; i++) {
        struct mark *m = &s->sorted[i];

        if (m->is_more) {
            m->from = i > start   ? s->sorted[i - 1].from
                      : start > 0 ? s->marks[start - 1].from
                                  : m->from;
            continue;
        }
        while (s->marks[next].is_more)
            next++;
        m->from = s->marks[next++].from;
    }
    memcpy(s->marks + start, s->sorted + start,
           (end - start) * sizeof(*s->marks));
}

static void order(struct stretch *s)
{
    for (size_t i = 0; i < s->count;) {
        size_t start = i;

        if (s->marks[i].rank == 0) {
            i++;
            continue;
        }
        while (i < s->count && s->marks[i].rank > 0)
            i++;
        if (i - start > 1)
            sort_marks(s, start, i);
    }
}

static void compose(struct stretch *s)
{
    size_t kept = 0, starter = SIZE_MAX;
    int last = -1; /* rank of what stands between the starter and here */

    for (size_t i = 0; i < s->count; i++) {
        struct mark m = s->marks[i];

        if (starter != SIZE_MAX && (last < 0 || last < m.rank)) {
            struct mark *to = &s->marks[starter];
            uint32_t whole = unicode_compose(to->c, m.c);

            if (whole) {
                to->c = whole;
                if (to->is_more && !m.is_more) { /* upstream counts so */
                    to->from = m.from;
                    to->is_more = false;
                    continue;
                }
                if (m.from.start < to->from.start)
                    to->from.start = m.from.start;
                if (m.from.end > to->from.end)
                    to->from.end = m.from.end;
                continue;
            }
        }
        if (m.rank == 0) {
            starter = kept;
            last = -1;
        } else {
            last = m.rank;
        }
        s->marks[kept++] = m;
    }
    s->count = kept;
}

/* May a stretch begin at c, whatever stands before it? */
static bool is_settled(uint32_t c, bool is_compatible)
{
    const struct unicode_norm *n = unicode_norm(c);

    if (is_compatible && n->nfkd_len)
        return !unicode_norm(unicode_norm_pool[n->nfkd_at])->is_unsettled;
    return !n->is_unsettled;
}

size_t unicode_settled_end(const struct piece *p, size_t from)
{
    size_t last = from, n;

    for (size_t i = from; i < p->len; i += n) {
        if ((unsigned char)p->text[i] < 0x80) {
            n = 1;
            last = i;
            continue;
        }
        if (!is_settled(utf8_get(p->text + i, &n), false))
            return last;
        last = i;
    }
    return p->len;
}

void unicode_form(bool is_composed, bool is_compatible, const struct piece *p,
                  size_t most, struct made *out)
{
    struct stretch s = {0};
    size_t n;

    for (size_t i = 0; i < p->len && out->text.len <= most;) {
        if (is_composed && !is_compatible) {
            size_t end = unicode_settled_end(p, i);

            made_copy(out, p, i, end);
            i = end;
        }
        s.count = 0;
        for (bool is_first = true; i < p->len; i += n, is_first = false) {
            uint32_t c = utf8_get(p->text + i, &n);

            if (!is_first && is_settled(c, is_compatible))
                break;
            decompose(&s, c, piece_span(p, i, i + n), is_compatible);
        }
        order(&s);
        if (is_composed)
            compose(&s);
        for (size_t k = 0; k < s.count; k++)
            made_put(out, s.marks[k].c, s.marks[k].from);
    }
    free(s.marks);
    free(s.sorted);
}
