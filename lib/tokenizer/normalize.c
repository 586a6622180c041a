/* Normalizers, one after the other. */
#include "base/mem.h"
#include "tokenizer/chain.h"
#include "tokenizer/unicode_form.h"

#include <stdlib.h>
#include <string.h>

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
        if (step->kind == STEP_NFC && unicode_settled_end(&now, 0) == now.len)
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
            unicode_form(step->kind == STEP_NFC || step->kind == STEP_NFKC,
                         step->kind == STEP_NFKC || step->kind == STEP_NFKD,
                         &now, most, next);
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
