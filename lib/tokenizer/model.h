#ifndef TOKENIZER_MODEL_H
#define TOKENIZER_MODEL_H

#include "tokenizer/merges.h"
#include "tokenizer/seams.h"
#include "tokenizer/trie.h"
#include "tokenizer/vocab.h"

/*
 * The model: one piece of text to tokens.  Made in this order: its tables from
 * the file, its flags, then model_finish_bpe() or unigram_finish(); afterwards
 * it is only read, by any number of threads, each with its own model_work.
 */

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
    struct seams *seams;       /* NULL: pieces stay whole */
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
#endif
