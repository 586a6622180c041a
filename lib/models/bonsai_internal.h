#ifndef MODELS_BONSAI_INTERNAL_H
#define MODELS_BONSAI_INTERNAL_H

#include "models/bonsai_config.h"
#include "models/bonsai_weights.h"
#include "models/model.h"
#include "models/tensor_ops.h"

struct generation;

struct bonsai {
    struct model model;
    struct bonsai_config config;
    struct bonsai_weights *weights;
    struct generation *generation; /* NULL before bonsai_begin() */
};

/* What one pass over the weights works with. */
struct bonsai_pass {
    const struct bonsai_config *config;
    struct bonsai_weights *weights;
    const struct forward_options *options;
    const struct sequence *sequences;
    int64_t count;
    int64_t first; /* rows of the sequence that are done already (generation) */
    const struct model_tap *tap;
    struct ops ops;
};

/* Hands rows of a stage to the tap; they may come back with other values. */
int bonsai_tap(const struct bonsai_pass *pass, int64_t sequence,
               const char *name, int64_t row, int64_t column,
               const struct act *values, struct err *err);

/* "trace.layer3.mixer" */
const char *bonsai_layer_stage(char out[64], int64_t layer, const char *part);

/* f16, f32 and f64 are what a pack computes in. */
int bonsai_check_precision(enum precision p, struct err *err);

/* ---- bonsai_stages.c ---- */

int bonsai_stages(const struct model *m, const struct forward_options *o,
                  const struct sequence *s, stage_visitor *visit, void *ctx,
                  struct err *err);

/* ---- bonsai_pass.c ---- */

struct bonsai_totals {
    int64_t rows, longest;    /* text rows in all, of the longest sequence */
    int64_t exported;         /* rows with logits, in all */
    int64_t patches, largest; /* in all, of the largest picture */
};

/* Of what a pass does whose first `first` rows are done already. */
struct bonsai_totals bonsai_count(const struct sequence *s, int64_t count,
                                  int64_t first);

/* The workspace of a pass. */
size_t bonsai_pass_bytes(const struct bonsai_config *c, enum precision p,
                         const struct bonsai_totals *t, int64_t chunk);

struct bonsai_cache;

/* The rows of all sequences that are not done yet, embedded. */
int bonsai_embed(struct bonsai_pass *pass, const struct act *residual,
                 struct err *err);

/* The rows x of one sequence through one layer, a chunk at a time. */
int bonsai_layer_chunks(struct bonsai_pass *pass, const struct bonsai_layer *l,
                        int64_t layer, struct bonsai_cache *cache,
                        int64_t sequence, struct act *x, struct err *err);

/* Final norm and head. */
int bonsai_finish(struct bonsai_pass *pass, const struct act *residual,
                  struct err *err);

size_t bonsai_memory(struct model *m, const struct forward_options *o,
                     const struct sequence *s, int64_t count);
int bonsai_forward(struct model *m, const struct forward_options *o,
                   const struct sequence *s, int64_t count,
                   const struct model_tap *tap, struct err *err);

/* ---- bonsai_generate.c ---- */

int bonsai_begin(struct model *m, const struct forward_options *o,
                 const struct sequence *prompt, int64_t capacity,
                 const struct model_tap *tap, struct err *err);
int bonsai_step(struct model *m, int64_t token, const struct model_tap *tap,
                struct err *err);
void bonsai_generation_free(struct generation *g); /* NULL is fine */

/* ---- bonsai_text.c ---- */

/* What a layer remembers of one sequence. */
struct bonsai_cache {
    struct act keys, values; /* full attention: [capacity, kv_heads * dim] */
    int64_t length;          /* rows remembered */
    struct act conv;         /* gated delta: the last 3 inputs, [3, channels] */
    void *state;             /* [value_heads, value_dim, key_dim], float or
                                double */
};

/* Numbers that one layer's cache takes for `capacity` rows. */
size_t bonsai_cache_values(const struct bonsai_config *config, int64_t layer,
                           int64_t capacity);

/* Lays out a cache in the workspace, empty. */
void bonsai_cache_init(struct bonsai_pass *pass, struct bonsai_cache *cache,
                       int64_t layer, int64_t capacity);

/* Numbers that one chunk of `rows` rows needs inside a layer. */
size_t bonsai_layer_values(const struct bonsai_config *config, int64_t rows);

/* Rows [row, row + x->rows) of a sequence through one layer; x is replaced. */
int bonsai_layer_rows(struct bonsai_pass *pass, const struct bonsai_layer *l,
                      int64_t layer, struct bonsai_cache *cache,
                      int64_t sequence, int64_t row, struct act *x,
                      struct err *err);

/* ---- bonsai_vision.c ---- */

/* Numbers that the tower needs for `patches` patches in all. */
size_t bonsai_vision_values(const struct bonsai_config *config, int64_t patches,
                            int64_t largest);

/* The image embeddings of all sequences, rows one sequence after another. */
int bonsai_vision(struct bonsai_pass *pass, const struct act *embeds,
                  struct err *err);
#endif
