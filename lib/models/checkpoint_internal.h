#ifndef MODELS_CHECKPOINT_INTERNAL_H
#define MODELS_CHECKPOINT_INTERNAL_H

#include "base/arena.h"
#include "models/checkpoint.h"
#include "models/weight_buffer.h"
#include "safetensors/safetensors.h"

/* Shared by checkpoint.c (names, checks), checkpoint_load.c (reading) and
 * stored.c (how a tensor lies in the files); nobody else includes it. */

/* Elements of a tensor that stay in memory once read (checkpoint_hold). */
struct held {
    struct held *next;
    enum wanted_kind kind;
    int64_t offset, count;
    bool is_kept; /* in f32 */
    union {
        struct dense_weight dense;
        struct param param;
        const int64_t *ints;
    } loaded; /* by kind, what a target becomes */
    char *memory;
    size_t bytes;
};

/* A tensor of the files. */
struct entry {
    const struct tensor_info *info;
    const char *name; /* canonical; NULL: ignored */
    bool is_wanted, is_skipped;
    int64_t elements_read;
    const struct entry *same; /* an earlier one of this name and these bytes */
    struct held *held;
};

struct checkpoint {
    const struct checkpoint_names *names;
    struct safetensors *st;
    struct entry *entries; /* sorted by canonical name, ignored ones last */
    size_t count, named;   /* all; those that have a name */
    enum precision precision;
    struct weight_buffer buffers[2];
    size_t hold_room; /* bytes that may still be held */
    struct arena arena;
};

/* Weights that would take more are refused. */
static const size_t CHECKPOINT_CAP = (size_t)1 << 40;

/* The first tensor of a canonical name, or NULL. */
struct entry *checkpoint_find(const struct checkpoint *c, const char *name);

/* Frees what is held; none of it may be in use. */
void checkpoint_forget(struct checkpoint *c);

/* ---- how a wanted tensor lies in the files ---- */

enum form {
    FORM_PLAIN,
    FORM_F8,  /* NAME F8_E4M3 and a grid of scales, NAME_scale_inv */
    FORM_FP4, /* NAME I8 and NAME_scale_inv, or NAME_packed U8 and NAME_scale:
                 two columns a byte, a scale a group of 32 */
    FORM_INT4 /* NAME_packed I32 [out, in / 8], NAME_scale, NAME_shape */
};

struct stored {
    enum form form;
    struct entry *data, *scales, *shape; /* may be NULL where not PLAIN */
};

struct stored stored_find(const struct checkpoint *c, const struct wanted *w);

/* Are names, dtypes and shapes those of what is wanted?  They are marked. */
int stored_check(const struct checkpoint *c, const struct wanted *w,
                 struct err *err);

/* n floats at element `offset` of a tensor that is not quantised, through `raw`
 * of 4 n bytes. */
int stored_floats(const struct checkpoint *c, const struct entry *e,
                  int64_t offset, size_t n, void *raw, float *out,
                  struct err *err);

/* A quantised matrix, as `dtype`; all of it. */
int stored_decode(const struct checkpoint *c, const struct wanted *w,
                  const struct stored *s, enum dtype dtype, char *data,
                  struct err *err);

/* The bytes that stored_decode() takes meanwhile. */
size_t stored_decoding_bytes(const struct wanted *w, const struct stored *s);
#endif
