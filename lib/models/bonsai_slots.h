#ifndef MODELS_BONSAI_SLOTS_H
#define MODELS_BONSAI_SLOTS_H

#include "models/bonsai_config.h"
#include "models/bonsai_weights.h"

#include <stddef.h>

/*
 * What each part of the model is in the pack's files.  A slot describes one
 * member:
 *
 *     packed   PATH.weight U32 [out, in/16], PATH.scales and PATH.biases F16
 *              [out, in/128], PATH.signs F32 [in] when the module is rotated
 *     dense    NAME F16, BF16 or F32 [out, in...], used as stored
 *     param    NAME F16, BF16 or F32, widened
 *
 * The same description checks the files, sizes the buffer and reads.
 */
enum {
    BONSAI_MAX_SLOTS = 24,
    BONSAI_NAME_SIZE = 160,
    BONSAI_WORD = 16, /* codes in a word */
};

enum slot_kind { SLOT_PACKED, SLOT_DENSE, SLOT_PARAM };

struct slot {
    enum slot_kind kind;
    char name[BONSAI_NAME_SIZE]; /* packed: the path under language_model. */
    struct tensor_shape shape;
    void *target; /* struct linear, struct dense_weight or struct param */
};

struct slots {
    struct slot at[BONSAI_MAX_SLOTS];
    size_t count;
};

/* Each fills `slots` anew, with targets inside the part given. */
void bonsai_layer_slots(const struct bonsai_config *c, int64_t layer,
                        struct bonsai_layer *part, struct slots *slots);
void bonsai_stem_slots(const struct bonsai_config *c,
                       struct bonsai_vision_stem *part, struct slots *slots);
void bonsai_vision_block_slots(const struct bonsai_config *c, int64_t block,
                               struct bonsai_vision_block *part,
                               struct slots *slots);
void bonsai_merger_slots(const struct bonsai_config *c,
                         struct bonsai_vision_merger *part,
                         struct slots *slots);
void bonsai_final_norm_slots(const struct bonsai_config *c, struct param *part,
                             struct slots *slots);

/*
 * Checks the open pack against all parts (bonsai_check.c): every tensor there,
 * of its dtype and shape, none left over, every sign vector the manifest's.
 */
int bonsai_check_pack(const struct bonsai_config *config,
                      const struct safetensors *st, struct err *err);
#endif
