#ifndef TOKENIZER_DRAFT_H
#define TOKENIZER_DRAFT_H

#include "tokenizer/tokenizer_internal.h"
#include "json/stream.h"

/*
 * A tokenizer.json as it is read, in one pass: the model's vocabulary and
 * merges as they stream by, the small components through a tree each.  What
 * depends on several of them is put together afterwards, so keys may come in
 * any order.
 */
enum part { ADDED, NORMALIZER, PRE_TOKENIZER, POST_PROCESSOR, DECODER, PARTS };
extern const char *const draft_part_names[PARTS];

struct draft {
    struct json_stream stream;
    json_t *parts[PARTS];
    json_t *document, *settings; /* what is small of the file, of its model */
    struct model *model;
    char *model_type;
    const bool *null_flag; /* the model's last one that is null */
    bool has_version, has_model, has_vocab, has_prefix, has_merges,
        vocab_is_list;
    int64_t unk_id; /* Unigram's */
    size_t score_cap;
    /* The list of merges: where it begins, and what was read of it. */
    size_t merges_from, merge_count;
    bool merges_are_read;
};

/*
 * The events of an object that must come next, key by key: *key is NULL at its
 * end.  A key that comes twice is refused.  Free the keys in the end.
 */
struct seen_keys {
    char *names[64];
    size_t count;
    bool is_open;
};
int draft_next_key(struct draft *d, struct seen_keys *seen, const char **key,
                   struct err *err);
void draft_forget_keys(struct seen_keys *seen);

/* ERR_INPUT at the last event's place. */
int draft_wrong(const struct draft *d, const char *what, struct err *err);

/* Reads over a value that is small, and keeps it under an object's key. */
int draft_keep(struct draft *d, json_t *object, const char *key,
               struct err *err);

/* Reads the model's section; then, once the document has ended, the merges
 * that stood before what they need. */
int draft_read_model(struct tokenizer *t, struct draft *d, struct err *err);
int draft_read_merges(struct draft *d, struct err *err);

/* Puts together what was read, around t->model; added (NULL: the file's) is
 * taken over. */
int draft_finish(struct tokenizer *t, const struct draft *d, const char *path,
                 struct added *added, struct err *err);

/* Makes t->other where the pack's class means something else than the file. */
struct rebuild;
int draft_follow_class(struct tokenizer *t, struct draft *d, struct rebuild *by,
                       const char *path, struct err *err);
#endif
