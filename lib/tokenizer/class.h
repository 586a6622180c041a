#ifndef TOKENIZER_CLASS_H
#define TOKENIZER_CLASS_H

#include "tokenizer/tokenizer_internal.h"

/*
 * What upstream's AutoTokenizer makes of a pack (transformers 5.5.0 and 5.24.0,
 * without the pack's own code).  config.json and tokenizer_config.json choose a
 * class (class.c).  Most take tokenizer.json as it is; one with a constructor
 * of its own keeps vocabulary, merges and post-processor, and builds everything
 * else anew (class_build.c).  Either then adds the tokens that
 * tokenizer_config.json and the files beside it ask for (class_files.c,
 * class_added.c).
 */
enum class_version { CLASS_5_5, CLASS_5_24, CLASS_VERSIONS };
/* NULL: 5.5.0, which the packs pin; of others, the last of these before. */
enum class_version class_version(const char *transformers);

/* A model type, and the classes that each version has for it. */
struct class_row {
    const char *model_type;
    const char *named[CLASS_VERSIONS]; /* registered under it, or NULL */
    const char *made[CLASS_VERSIONS];  /* of a pack that names none */
    bool is_distrusted; /* 5.24.0 does not believe the class a pack names */
};
extern const struct class_row class_table[]; /* by model type, rising */
extern const size_t class_table_count;

/* The classes that upstream knows and that are not tokenizer.json as it is. */
extern const char *const class_names[]; /* rising */
extern const size_t class_names_count;

struct rebuild;

/* A class that builds anew. */
struct class_kind {
    const char *name;
    void (*build)(struct rebuild *r, const struct section *config);
    /* Special tokens where the pack names none: key, token, key ...  Those with
     * a key of the class's own are its extra ones too. */
    const char *specials[17];
    /* What it does with its special tokens once they are added. */
    enum { AGAIN_NOT, AGAIN_AS_TEXT, AGAIN_AS_THEY_ARE } again;
    bool has_unk;  /* its model knows the pack's unk_token */
    bool puts_bos; /* it frames a text with bos_token alone */
    bool drops_frames_5_24;
};
const struct class_kind *class_kind_find(const char *name);

/* What a class puts in place of the file's components (NULL: none) and the
 * flags of the model it builds. */
struct rebuild {
    enum class_version version;
    const struct class_kind *kind; /* NULL: tokenizer.json as it is */
    json_t *normalizer, *pre_tokenizer, *decoder, *post_processor;
    char *unk_token; /* of its model: class_added() knows it, or NULL */
    bool fuse_unk, byte_fallback;
    bool has_own_frames; /* post_processor (NULL: none) is the class's */
    bool cleans_up;      /* decoded text of any model; */
    bool cleans_up_bpe;  /* of a BPE */
};
void rebuild_release(struct rebuild *r);

/*
 * Chooses and builds; file is the path of tokenizer.json.  *is_known is false
 * where upstream's class is one that we do not follow (or there is no pack):
 * the file stands, with a warning, and is refused where the class was asked
 * for.
 */
int class_read(struct tokenizer *t, const char *file, struct rebuild *out,
               bool *is_known, struct err *err);

/* The added tokens that upstream ends up with; t is the file as it is. */
int class_added(const struct tokenizer *t, struct rebuild *r, struct added *out,
                struct err *err);

/* Refuses the keys of tokenizer_config.json that change ids and that nobody
 * reads; notes those without effect. */
int class_check(const struct section *config, enum class_version version,
                struct err *err);
#endif
