/* Pieces of text, texts being made, and how far they may grow. */
#include "tokenizer/piece.h"

#include "base/mem.h"
#include "tokenizer/unicode.h"

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

void made_put(struct made *m, uint32_t c, struct span from)
{
    char u[4];

    made_add(m, u, utf8_put(c, u), from);
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
