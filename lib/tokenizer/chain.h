#ifndef TOKENIZER_CHAIN_H
#define TOKENIZER_CHAIN_H

#include "ledger/config.h"
#include "tokenizer/pattern.h"
#include "tokenizer/piece.h"

/*
 * The components of a tokenizer as flat lists of steps: what is done to a text
 * before the model sees its pieces, what is put around its ids, and what is
 * done to the texts of ids when they are decoded.
 */

enum step_kind {
    STEP_NFC, /* normalizers */
    STEP_NFD,
    STEP_NFKC,
    STEP_NFKD,
    STEP_LOWERCASE,
    STEP_STRIP,
    STEP_STRIP_ACCENTS,
    STEP_REPLACE, /* a decoder too */
    STEP_PREPEND,
    STEP_SPLIT, /* pre-tokenizers */
    STEP_BYTE_LEVEL,
    STEP_METASPACE,
    STEP_DECODE_BYTE_LEVEL, /* decoders */
    STEP_DECODE_BYTE_FALLBACK,
    STEP_DECODE_FUSE,
    STEP_DECODE_STRIP,
    STEP_DECODE_METASPACE,
};

enum behavior {
    SPLIT_REMOVED,
    SPLIT_ISOLATED,
    SPLIT_MERGED_WITH_PREVIOUS,
    SPLIT_MERGED_WITH_NEXT,
    SPLIT_CONTIGUOUS,
};

enum scheme { SCHEME_ALWAYS, SCHEME_FIRST, SCHEME_NEVER };

struct step {
    enum step_kind kind;
    struct pattern
        *pattern; /* replace, split, metaspace; byte level: or NULL */
    char *text;   /* replace, prepend, metaspace, decode strip */
    size_t len;
    enum behavior behavior;
    enum scheme scheme;
    bool invert, left, right, add_prefix_space, split;
    size_t start, stop; /* decode strip */
};

struct steps {
    struct step *items;
    size_t count;
};

/* What a post-processor puts around a text: ids, and -1 for the text. */
struct frame {
    int64_t *ids;
    size_t count;
    size_t texts; /* how often the text stands in it */
};
struct frames {
    struct frame *items;
    size_t count;
};

/* A chain of components from a file or made by a class. */
struct chain {
    struct steps normalizer, pre_tokenizer, decoder;
    bool has_decoder;
    bool is_byte_level; /* the model sees bytes for characters */
};

struct scratch;

int steps_read_normalizer(const struct section *value, struct steps *out,
                          struct err *err);
int steps_read_pre_tokenizer(const struct section *value, struct steps *out,
                             struct err *err);
int steps_read_decoder(const struct section *value, struct steps *out,
                       struct err *err);
int frames_read(const struct section *value, struct frames *out,
                struct err *err);
struct step *steps_add(struct steps *s, enum step_kind kind);
void steps_release(struct steps *s);
void frames_release(struct frames *f);
void chain_release(struct chain *c);

/*
 * Runs the steps over p; *out is p itself or a text in one of the two made
 * texts, valid until these change.
 */
int normalize(const struct steps *steps, const struct piece *p,
              struct made made[2], struct pattern_scratch *match,
              struct growth *growth, struct piece *out, struct err *err);

typedef int piece_each(void *arg, const struct piece *p, struct err *err);
int pre_tokenize(const struct chain *chain, const struct piece *p,
                 struct scratch *scratch, piece_each *each, void *arg,
                 struct err *err);
#endif
