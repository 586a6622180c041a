#ifndef TOKENIZER_TOKENIZER_INTERNAL_H
#define TOKENIZER_TOKENIZER_INTERNAL_H

#include "base/arena.h"
#include "tokenizer/merges.h"
#include "tokenizer/pattern.h"
#include "tokenizer/piece.h"
#include "tokenizer/text_map.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/trie.h"
#include "tokenizer/vocab.h"

#include "json/json.h"
#include <string.h>

/* -- components, as flat lists of steps -- */

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

/* -- normalizing and splitting -- */

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

/* -- models -- */

enum model_kind { MODEL_BPE, MODEL_UNIGRAM, MODEL_TIKTOKEN };

struct model {
    enum model_kind kind;
    bool is_borrowing;  /* its tables are another model's: see model_borrow() */
    struct vocab vocab; /* as the file spells it */
    bool is_byte_level; /* pieces are bytes, and spelled by ByteLevel's rule */
    /* BPE */
    struct pairs pairs;
    char *unk_token, *prefix, *suffix;
    int64_t unk_id; /* -1: none */
    bool has_unk, fuse_unk, byte_fallback, ignore_merges;
    int64_t byte_ids[256];     /* byte level: each byte's token, or -1 */
    int64_t fallback_ids[256]; /* <0xHH>, or -1 */
    /* Unigram */
    double *scores; /* by id */
    double least_score;
    struct trie *prefixes;
    /* tiktoken: a pair's rank is that of its bytes as a token */
    struct vocab bytes;
    size_t longest;
};

/* One symbol of a piece during merging; a doubly linked list. */
struct symbol {
    uint32_t id;
    uint32_t len; /* bytes of the piece; 0: merged away */
    uint32_t at;  /* where it begins in the piece */
    int32_t prev, next;
};
struct candidate {
    uint32_t rank, at, id;
};

struct model_token {
    uint32_t id, len;
};

struct cached;
struct model_work {
    struct symbol *symbols;
    size_t symbol_count, symbol_cap;
    struct candidate *heap;
    size_t heap_count, heap_cap;
    struct model_token *tokens; /* the last piece's */
    size_t token_count, token_cap;
    struct buf text;
    struct best_path *paths;
    size_t path_cap;
    struct cached *cache;
    uint64_t operations; /* steps of merging, for tests of its order */
};

struct best_path;
/* What is looked up again and again, once all else of a model is there. */
void model_finish_bpe(struct model *m);
int unigram_finish(struct model *m, int64_t unk_id, struct err *err);
/* A model with the same tables, which must outlive it; its flags and texts are
 * its own. */
struct model *model_borrow(const struct model *m);
/* The id of a token as the file spells it, or -1. */
int64_t model_find(const struct model *m, const char *token, size_t len);
int unigram_encode(const struct model *m, struct model_work *work,
                   const char *text, size_t len, struct err *err);
/* The tokens of one piece into work->tokens. */
int model_encode(const struct model *m, struct model_work *work,
                 const char *text, size_t len, struct err *err);
void model_work_release(struct model_work *work);
void model_free(struct model *m); /* NULL is fine */

int bpe_encode(const struct model *m, struct model_work *work, const char *text,
               size_t len, struct err *err);
void work_put(struct model_work *work, uint32_t id, uint32_t len);
void work_put_symbol(struct model_work *work, int64_t id, size_t len);

/* -- added tokens -- */

struct added_token {
    char *content;
    size_t len;
    int64_t id;
    bool single_word, lstrip, rstrip;
    bool special;               /* given so at least once */
    bool is_raw, is_normalized; /* where it is looked for, maybe in both */
    char *shown; /* how it is decoded where that is not its content, or NULL */
    size_t shown_len;
    bool is_shown_normalized;
};

struct added {
    struct added_token *items;
    size_t count, cap;
    struct text_map all;           /* a content's place in items */
    struct trie *raw, *normalized; /* the same, to be looked for in texts */
    uint32_t *by_id;               /* places, by rising id */
    /*
     * tokenizers 0.23 looks for a token only as it was given last, and decodes
     * one that was ever to be normalized as its normalized form (which is then
     * special only by that name).  0.22, beside transformers 5.5: content.
     */
    bool is_0_23;
};

/* A token that is to be added. */
struct added_wish {
    const char *content;
    size_t len;
    bool single_word, lstrip, rstrip, normalized, special;
};

void added_release(struct added *a);
/* The tokens of another list, into an empty one. */
void added_copy(struct added *a, const struct added *from);
/* The token of that content, or NULL. */
struct added_token *added_find(const struct added *a, const char *text,
                               size_t len);
/* Its text when decoded; *is_special: is it left out with the special ones? */
const char *added_shown(const struct added *a, const struct added_token *token,
                        size_t *len, bool *is_special);
/*
 * Adds them at once, as upstream's add_tokens() does: a token's id is its
 * vocabulary id, else the next above all that are there.  One that was added
 * before takes the new flags, but stays special, and (0.22) stays where it was
 * looked for.
 */
void added_batch(struct added *a, const struct model *m,
                 const struct added_wish *wishes, size_t count);
/* The item of a content, made where there is none, without an id as yet; valid
 * until the next is made. */
struct added_token *added_take(struct added *a, const char *text, size_t len);
/* Reads the list of a tokenizer.json (NULL: none). */
int added_read(struct added *a, const struct model *m, const json_t *list,
               struct err *err);
/* Fills by_id and the tries that texts are searched with. */
int added_index(struct added *a, const struct steps *normalizer,
                struct err *err);
/* The same tokens, found alike? */
bool added_is_equal(const struct added *a, const struct added *b);

typedef int added_each(void *arg, const struct added_token *token, size_t start,
                       size_t end, struct err *err);
/*
 * Calls `each` for every token of the trie found in text and (token NULL) for
 * what lies between.
 */
int added_cut(const struct added *a, const struct trie *t, const char *text,
              size_t len, added_each *each, void *arg, struct err *err);

/* -- the whole -- */

struct scratch {
    struct pattern_scratch *match;
    struct made normal[2];
    struct made *stage; /* one a pre-tokenizer step */
    size_t stage_count;
    struct growth growth;
    struct model_work work;
};

struct tokenizer {
    struct model *model;
    struct chain chain;
    struct added added;
    struct frames frames;
    struct tokenizer *other; /* what the class makes of it, if not the same */
    enum tokenizer_rule rule;
    char *class_name; /* as the pack names it, or NULL */
    char *made_by;    /* the class that upstream takes, or NULL */
    bool cleans_up;   /* the class, when it decodes */
    bool is_cut;      /* tiktoken: long texts are cut before all else */
    char **warnings;
    size_t warning_count;
    const char *transformers;         /* while it is opened, as is ... */
    struct ledger *ledger;            /* ... this; NULL for a file by name */
    _Atomic(struct scratch *) *spare; /* one scratch kept between calls */
};

struct tokenizer *tokenizer_new(void);
/* The one whose ids and texts count: t itself, or what the class makes of it.
 */
static inline const struct tokenizer *tokenizer_meant(const struct tokenizer *t)
{
    return t->other && t->rule == TOKENIZER_CLASS ? t->other : t;
}
/* The added token of an id, or NULL. */
const struct added_token *tokenizer_added(const struct tokenizer *t,
                                          int64_t id);
/*
 * Loads a tokenizer.json.  With a pack's ledger and a rule that asks for it,
 * t->other becomes what the pack's class makes of it, where that is not the
 * same.
 */
int tokenizer_load(struct tokenizer *t, const char *path, struct err *err);
/* Kimi's own cuts of a text before anything else looks at it. */
typedef int tiktoken_each(void *arg, size_t start, size_t end, struct err *err);
int tiktoken_cut(const char *text, size_t len, tiktoken_each *each, void *arg,
                 struct err *err);
int tokenizer_load_tiktoken(struct tokenizer *t, const char *model_path,
                            struct err *err);
void tokenizer_warn(struct tokenizer *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
#endif
