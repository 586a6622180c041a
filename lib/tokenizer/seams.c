/* The pairs of characters that some token has side by side, as bits of a table
 * by their hash: a bit that others have set only hides a seam. */
#include "tokenizer/seams.h"

#include "base/hex.h"
#include "base/mem.h"
#include "tokenizer/unicode.h"

#include <stdlib.h>

enum { BITS_A_TOKEN = 16, FALLBACK_LEN = 6 };

struct seams {
    uint64_t *bits;
    int shift; /* leaves the places of bits */
};

static uint64_t place_of(const struct seams *s, uint32_t a, uint32_t b)
{
    uint64_t h = ((uint64_t)a << 32 | b) * 0x9e3779b97f4a7c15u;

    return (h ^ h >> 32) * 0xff51afd7ed558ccdu >> s->shift;
}

static bool may_join(const struct seams *s, uint32_t a, uint32_t b)
{
    uint64_t place = place_of(s, a, b);

    return s->bits[place / 64] >> place % 64 & 1;
}

static void put_pairs(struct seams *s, const char *text, size_t len)
{
    size_t n;
    uint32_t last = utf8_get(text, &n);

    for (size_t i = n; i < len; i += n) {
        uint32_t c = utf8_get(text + i, &n);
        uint64_t place = place_of(s, last, c);

        s->bits[place / 64] |= UINT64_C(1) << place % 64;
        last = c;
    }
}

/* Does "<0xHH>" stand in a token that is longer? */
static bool is_of_fallback(const char *text, size_t len)
{
    const char *end = text + len, *at = text;

    while (len > FALLBACK_LEN &&
           (at = memmem(at, (size_t)(end - at), "<0x", 3))) {
        uint32_t byte;

        if (end - at >= FALLBACK_LEN && hex_read(at + 3, 2, &byte) == 0 &&
            at[5] == '>')
            return true;
        at++;
    }
    return false;
}

struct seams *seams_new(const struct vocab *vocab)
{
    struct seams *s = xcalloc(1, sizeof(*s));
    size_t count = 64;

    for (s->shift = 64 - 6; count < BITS_A_TOKEN * vocab->count; s->shift--)
        count *= 2;
    s->bits = xcalloc(count / 64, sizeof(*s->bits));
    for (size_t id = 0; id < vocab->limit; id++) {
        size_t len;
        const char *text = vocab_text(vocab, (int64_t)id, &len);

        if (!text || len == 0)
            continue;
        if (is_of_fallback(text, len)) {
            seams_free(s);
            return NULL;
        }
        put_pairs(s, text, len);
    }
    return s;
}

void seams_free(struct seams *s)
{
    if (!s)
        return;
    free(s->bits);
    free(s);
}

size_t seams_next(const struct seams *s, const char *text, size_t len)
{
    size_t n;
    uint32_t last = utf8_get(text, &n);

    for (size_t i = n; i < len; i += n) {
        uint32_t c = utf8_get(text + i, &n);

        if (!may_join(s, last, c))
            return i;
        last = c;
    }
    return len;
}
