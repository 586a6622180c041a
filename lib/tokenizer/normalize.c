/*
 * Normalizers.  Unicode forms work on stretches between characters that no
 * form joins to what stands before them; NFC copies what is settled.
 */
#include "base/mem.h"
#include "tokenizer/tokenizer_internal.h"

#include <stdlib.h>
#include <string.h>

struct piece piece_part(const struct piece *p, size_t start, size_t end)
{
    return (struct piece){p->text + start, end - start,
                          p->map ? p->map + start : NULL, p->base + start};
}

struct span piece_span(const struct piece *p, size_t start, size_t end)
{
    if (start >= end) {
        size_t at = p->base + start;

        if (p->map)
            at = start < p->len ? p->map[start].start
                 : p->len       ? p->map[p->len - 1].end
                                : 0;
        return (struct span){(uint32_t)at, (uint32_t)at};
    }
    if (!p->map)
        return (struct span){(uint32_t)(p->base + start),
                             (uint32_t)(p->base + end)};
    struct span out = p->map[start];
    for (size_t i = start + 1; i < end; i++) {
        if (p->map[i].start < out.start)
            out.start = p->map[i].start;
        if (p->map[i].end > out.end)
            out.end = p->map[i].end;
    }
    return out;
}

void made_clear(struct made *m)
{
    buf_clear(&m->text);
}

void made_release(struct made *m)
{
    buf_release(&m->text);
    free(m->map);
    *m = (struct made){0};
}

static void made_reserve(struct made *m, size_t more)
{
    size_t need = m->text.len + more;

    buf_reserve(&m->text, more);
    if (need > m->map_cap) {
        m->map_cap = need + need / 2 + 64;
        m->map = xrealloc(m->map, m->map_cap * sizeof(*m->map));
    }
}

void made_add(struct made *m, const char *text, size_t len, struct span from)
{
    made_reserve(m, len);
    for (size_t i = 0; i < len; i++)
        m->map[m->text.len + i] = from;
    buf_add(&m->text, text, len);
}

void made_copy(struct made *m, const struct piece *p, size_t start, size_t end)
{
    size_t n = end - start, at = m->text.len;

    made_reserve(m, n);
    if (n && p->map)
        memcpy(m->map + at, p->map + start, n * sizeof(*m->map));
    for (size_t i = 0; !p->map && i < n; i++)
        m->map[at + i] = (struct span){(uint32_t)(p->base + start + i),
                                       (uint32_t)(p->base + start + i + 1)};
    buf_add(&m->text, p->text + start, n);
}

struct piece made_piece(const struct made *m)
{
    return (struct piece){m->text.data ? m->text.data : "", m->text.len, m->map,
                          0};
}

static void made_put(struct made *m, uint32_t c, struct span from)
{
    char u[4];

    made_add(m, u, utf8_put(c, u), from);
}

/* -- Unicode forms -- */

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

/* Where NFC leaves everything alone: the settled character before the first
 * that is not, or the end. */
static size_t settled_end(const struct piece *p, size_t from)
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

/* Stops where it has grown past `most`. */
static void unicode_form(enum step_kind form, const struct piece *p,
                         size_t most, struct made *out)
{
    bool is_compatible = form == STEP_NFKC || form == STEP_NFKD;
    bool is_composed = form == STEP_NFC || form == STEP_NFKC;
    struct stretch s = {0};
    size_t n;

    for (size_t i = 0; i < p->len && out->text.len <= most;) {
        if (form == STEP_NFC) {
            size_t end = settled_end(p, i);

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

/* -- the others -- */

static void lowercase(const struct piece *p, struct made *out)
{
    size_t n;

    for (size_t i = 0; i < p->len; i += n) {
        uint32_t low[2], c = utf8_get(p->text + i, &n);
        struct span from = piece_span(p, i, i + n);
        size_t count = unicode_to_lower(c, low);

        for (size_t k = 0; k < count; k++)
            made_put(out, low[k], from);
    }
}

static void strip_accents(const struct piece *p, struct made *out)
{
    size_t n;

    for (size_t i = 0; i < p->len; i += n)
        if (!unicode_has(unicode_accents, unicode_accents_count,
                         utf8_get(p->text + i, &n)))
            made_copy(out, p, i, i + n);
}

static struct piece strip(const struct step *step, const struct piece *p)
{
    size_t start = 0, end = p->len, n;

    while (step->left && start < end &&
           unicode_has(unicode_space, unicode_space_count,
                       utf8_get(p->text + start, &n)))
        start += n;
    while (step->right && end > start &&
           unicode_has(unicode_space, unicode_space_count,
                       utf8_get_before(p->text, end, &n)))
        end = n;
    return piece_part(p, start, end);
}

struct replacing {
    const struct step *step;
    const struct piece *p;
    struct made *out;
    size_t begin; /* where the piece began before any step */
    size_t most;  /* that it may grow to */
};

/* Where upstream says that text put in place of [..., end) came from: the
 * character that ends there, nowhere at the very start. */
static struct span replaced_from(const struct replacing *r, size_t end)
{
    size_t start = end;

    if (end == 0)
        return (struct span){(uint32_t)r->begin, (uint32_t)r->begin};
    do
        start--;
    while (start > 0 && ((unsigned char)r->p->text[start] & 0xc0) == 0x80);
    return piece_span(r->p, start, end);
}

static int replace_each(void *arg, size_t start, size_t end, bool is_match,
                        struct err *err)
{
    struct replacing *r = arg;

    if (r->out->text.len > r->most || (is_match && r->step->len > r->most))
        return grown_too_long(r->most, err);
    if (is_match)
        made_add(r->out, r->step->text, r->step->len, replaced_from(r, end));
    else
        made_copy(r->out, r->p, start, end);
    return 0;
}

int grown_too_long(uint64_t most, struct err *err)
{
    return err_set(err, ERR_INPUT,
                   "text grows past %llu bytes on its way to the model",
                   (unsigned long long)most);
}

struct growth growth_of(size_t text_len)
{
    return (struct growth){0, MADE_FREE + (uint64_t)MADE_A_BYTE * text_len};
}

int growth_add(struct growth *g, size_t len, struct err *err)
{
    g->bytes += len;
    return g->bytes > g->most ? grown_too_long(g->most, err) : 0;
}

int piece_check_start(const struct piece *p, struct err *err)
{
    if (!p->map || p->map[0].start != p->map[0].end)
        return 0;
    return err_set(err, ERR_UNSUPPORTED,
                   "text put before the first character and changed once more "
                   "(upstream doubles it)");
}

int normalize(const struct steps *steps, const struct piece *p,
              struct made made[2], struct pattern_scratch *match,
              struct growth *growth, struct piece *out, struct err *err)
{
    struct piece now = *p;
    size_t most = GROWN_FREE + GROWN_A_BYTE * p->len;
    int side = 0; /* of the made text that `now` does not lie in */

    for (size_t i = 0; i < steps->count; i++) {
        const struct step *step = &steps->items[i];
        struct made *next = &made[side];
        struct replacing r = {step, &now, next, piece_span(p, 0, 1).start,
                              most};

        if (now.len == 0)
            break;
        if (step->kind != STEP_REPLACE && step->kind != STEP_PREPEND &&
            piece_check_start(&now, err))
            return -1;
        if (step->kind == STEP_NFC && settled_end(&now, 0) == now.len)
            continue;
        if (step->kind == STEP_STRIP) {
            now = strip(step, &now);
            continue;
        }
        side = !side;
        made_clear(next);
        switch (step->kind) {
        case STEP_NFC:
        case STEP_NFD:
        case STEP_NFKC:
        case STEP_NFKD:
            unicode_form(step->kind, &now, most, next);
            break;
        case STEP_LOWERCASE:
            lowercase(&now, next);
            break;
        case STEP_STRIP_ACCENTS:
            strip_accents(&now, next);
            break;
        case STEP_PREPEND: {
            size_t n;

            if (step->len > most)
                return grown_too_long(most, err);
            utf8_get(now.text, &n);
            made_add(next, step->text, step->len, piece_span(&now, 0, n));
            made_copy(next, &now, 0, now.len);
            break;
        }
        default: /* STEP_REPLACE */
            if (pattern_cut(step->pattern, match, now.text, now.len,
                            replace_each, &r, err))
                return -1;
            break;
        }
        now = made_piece(next);
        if (now.len > most)
            return grown_too_long(most, err);
        if (growth_add(growth, now.len, err))
            return -1;
    }
    *out = now;
    return 0;
}
