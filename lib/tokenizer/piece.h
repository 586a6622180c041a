#ifndef TOKENIZER_PIECE_H
#define TOKENIZER_PIECE_H

#include "base/buf.h"
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/*
 * Texts on their way from the caller to the model.  Each byte knows which bytes
 * of the original text it came from, through all that normalizers and
 * pre-tokenizers do:
 *
 *     struct piece p = {text, len, NULL, 0};
 *     made_clear(&m);
 *     made_add(&m, "x", 1, piece_span(&p, 0, 1));
 *     made_copy(&m, &p, 1, p.len);
 *     p = made_piece(&m);
 */
struct span {
    uint32_t start, end; /* bytes of the original text */
};

/* A text being looked at: byte i came from map[i], or from base + i. */
struct piece {
    const char *text;
    size_t len;
    const struct span *map; /* NULL: nothing was changed */
    size_t base;
};

/*
 * Files are hostile: what a text may grow to and how many steps of a table it
 * may take are bounded by its length, far above what any real file asks for.
 */
enum {
    MAX_STEPS = 64,       /* of one chain */
    GROWN_FREE = 4 << 20, /* bytes, and so many a byte of the text: */
    GROWN_A_BYTE = 32,
    WORK_FREE = 64 << 20, /* steps into a trie, and so many a byte: */
    WORK_A_BYTE = 256,
    MADE_FREE = 16 << 20, /* bytes that all steps make, and: */
    MADE_A_BYTE = 128,
};

/* A text being made. */
struct made {
    struct buf text;
    struct span *map;
    size_t map_cap;
};

/* Part of a piece, and where bytes of it came from: the hull of their spans;
 * where start is end, the place between. */
struct piece piece_part(const struct piece *p, size_t start, size_t end);
struct span piece_span(const struct piece *p, size_t start, size_t end);

void made_clear(struct made *m);
void made_release(struct made *m);
/* Appends text that came from `from`, a part of a piece, a character. */
void made_add(struct made *m, const char *text, size_t len, struct span from);
void made_copy(struct made *m, const struct piece *p, size_t start, size_t end);
void made_put(struct made *m, uint32_t c, struct span from);
/* Valid until the text is made longer or released. */
struct piece made_piece(const struct made *m);

int grown_too_long(uint64_t most, struct err *err); /* ERR_INPUT */

/* What all steps have made of one text; growth_add() is ERR_INPUT past most. */
struct growth {
    uint64_t bytes, most;
};
struct growth growth_of(size_t text_len);
int growth_add(struct growth *g, size_t len, struct err *err);

/* Upstream doubles what a Replace put before the first character as soon as
 * another step changes the piece: ERR_UNSUPPORTED there. */
int piece_check_start(const struct piece *p, struct err *err);
#endif
