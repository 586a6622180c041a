#ifndef MODELS_MODEL_H
#define MODELS_MODEL_H

#include "base/err.h"
#include "models/tensor_ops.h"
#include "json/json.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * A model family computes tensors from a checkpoint and token ids, layer by
 * layer over all positions of all sequences given.  What it computes at a named
 * stage is handed to the caller's tap, which may save it and may put other
 * values in its place (that is how a stage is judged alone).
 */

/* One case: a prompt, and the continuation along which it is forced. */
struct sequence {
    const char *name;
    int64_t prompt;           /* rows of the prompt, at least 1 */
    int64_t rows;             /* rows fed: the prompt and all of the
                                 continuation but its last token */
    const int64_t *ids;       /* [rows] */
    const int64_t *positions; /* time, height, width of row r at r, */
    int64_t position_stride;  /* stride + r and 2 * stride + r */
    int64_t images;
    const int64_t *grids; /* [images, 3] in patches: time, height, width */
    const float *patches; /* [patch_rows, patch_cols], or NULL */
    int64_t patch_rows, patch_cols;
};

/* Rows whose distribution is exported: the last of the prompt and all after. */
static inline int64_t sequence_exported(const struct sequence *s)
{
    return s->rows - s->prompt + 1;
}

/*
 * How upstream cut the prompt into calls (protocol keys prefill_chunk and
 * tail): a property of each position, since rounding follows the rows per call.
 * Every continuation row is a call of its own.
 */
struct regime {
    int64_t prefill_chunk;
    bool is_tail_one; /* a prompt longer than one chunk leaves its last token
                         to a call of its own */
};

/* Rows of the call in which row `row` of the sequence was computed upstream. */
int64_t regime_call_rows(const struct regime *regime, const struct sequence *s,
                         int64_t row);

/*
 * A piece of a stage: rows [row, row + values.rows) and columns
 * [column, column + values.cols) of the tensor `name` of a sequence.
 */
struct tap_piece {
    int64_t sequence;
    const char *name;
    int64_t row, column;
    struct act values; /* may be overwritten in place */
};

struct model_tap {
    void *ctx;
    int (*piece)(void *ctx, const struct tap_piece *piece, struct err *err);
};

/* A stage that will come, for a sequence: its whole shape and dtype. */
struct stage_shape {
    const char *name;
    int64_t rows, cols;
    enum dtype dtype;
};
typedef int stage_visitor(void *ctx, const struct stage_shape *shape,
                          struct err *err);

struct forward_options {
    enum precision precision;
    enum sums sums;
    struct regime regime;
    int64_t chunk;       /* rows worked on at once; changes no bit */
    bool is_states_only; /* no logits, where a family can leave them out */
    bool is_flash_exact; /* PyTorch's fused attention with the exact exp */
};

struct model;
struct model_family;
struct decoder_hooks;

/* What a family fills in. */
struct model_family {
    const char *model_type;
    bool is_text_only; /* takes no images; one position a token */
    const struct decoder_hooks *decoder; /* of those of models/decoder.h */
    struct model *(*open)(const struct model_family *family, const char *pack,
                          bool is_kept, struct err *err);
    void (*close)(struct model *m);
    int64_t (*vocab)(const struct model *m);
    bool (*is_stop)(const struct model *m, int64_t token);
    int (*check)(const struct model *m, const struct sequence *s,
                 struct err *err);
    int (*stages)(const struct model *m, const struct forward_options *o,
                  const struct sequence *s, stage_visitor *visit, void *ctx,
                  struct err *err);
    int (*forward)(struct model *m, const struct forward_options *o,
                   const struct sequence *s, int64_t count,
                   const struct model_tap *tap, struct err *err);
    size_t (*memory)(struct model *m, const struct forward_options *o,
                     const struct sequence *s, int64_t count);
    int (*begin)(struct model *m, const struct forward_options *o,
                 const struct sequence *s, int64_t capacity,
                 const struct model_tap *tap, struct err *err);
    int (*step)(struct model *m, int64_t token, const struct model_tap *tap,
                struct err *err);
    json_t *(*keys)(const struct model *m);
    json_t *(*weights)(const struct model *m, struct err *err);
    enum sums sums; /* unless the caller asks for others */
};

/* Every model begins with its family. */
struct model {
    const struct model_family *family;
};

/*
 * Opens the checkpoint in a pack folder by config.json's model_type; a family
 * that is not in the table is ERR_UNSUPPORTED by name.  is_kept: weights stay
 * in memory once read (for generation), else each layer's are read and dropped.
 */
struct model *model_open(const char *pack, bool is_kept, struct err *err);

/* The family of a model_type, or NULL. */
const struct model_family *model_family_find(const char *model_type);
void model_close(struct model *m); /* NULL is fine */

int64_t model_vocab(const struct model *m);

/* The order in which its products are summed unless another is asked for. */
enum sums model_sums(const struct model *m);

/* Does generation end with this token? */
bool model_is_stop(const struct model *m, int64_t token);

/* Ids within the vocabulary, image rows matching the grids and so on. */
int model_check(const struct model *m, const struct sequence *s,
                struct err *err);

/*
 * Every stage that a pass over `s` will hand to the tap, in order: logits,
 * hidden_states, image_embeds, and trace.STAGE.
 */
int model_stages(const struct model *m, const struct forward_options *o,
                 const struct sequence *s, stage_visitor *visit, void *ctx,
                 struct err *err);

/* One pass over the weights for all sequences. */
int model_forward(struct model *m, const struct forward_options *o,
                  const struct sequence *s, int64_t count,
                  const struct model_tap *tap, struct err *err);

/*
 * The bytes that model_forward() over these sequences will allocate: workspace
 * and the largest weights held at once.  Of a sequence only rows, prompt, grids
 * and the patches' shape are looked at.
 */
size_t model_memory(struct model *m, const struct forward_options *o,
                    const struct sequence *s, int64_t count);

/*
 * What became of the keys of the pack's files, {"config.json": [...], ...}
 * (ledger/config.h), and of its tensors, a line each (models/checkpoint.h).
 * New references; the second reads the tensors again, NULL with err set.
 */
json_t *model_keys(const struct model *m);
json_t *model_weights(const struct model *m, struct err *err);

/*
 * Generation with caches: model_begin() computes the prompt, at most `capacity`
 * rows will follow; each model_step() feeds one token.  Both hand the same
 * pieces to the tap as one teacher-forced pass would.
 */
int model_begin(struct model *m, const struct forward_options *o,
                const struct sequence *prompt, int64_t capacity,
                const struct model_tap *tap, struct err *err);
int model_step(struct model *m, int64_t token, const struct model_tap *tap,
               struct err *err);
#endif
