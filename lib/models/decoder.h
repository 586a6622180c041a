#ifndef MODELS_DECODER_H
#define MODELS_DECODER_H

#include "ledger/config.h"
#include "models/checkpoint.h"
#include "models/model.h"
#include "models/moe.h"
#include "models/tensor_ops.h"

/*
 * What decoder-only text families have in common: one pass over the layers for
 * all rows of all sequences, embedding first, final norm last.
 *
 *     x = embed[ids]                          [rows of all sequences, width]
 *     x = layer(x) for every layer            a family's own
 *     hidden_states = finish(x)               a family's own: the final norm
 *     logits = lm_head hidden_states          unless only states are wanted
 *
 * A family's struct begins with a struct decoder, which its open() fills in;
 * the functions below then stand in its struct model_family.  Canonical names:
 * model.embed_tokens.weight, lm_head.weight.
 */
struct decoder_pass;

/* A stage inside a layer, "trace.layerN.NAME", columns each. */
struct decoder_stage {
    const char *name;
    int64_t cols;
    bool is_f32; /* of f32 values in every rounding precision */
};

struct decoder;
struct decoder_hooks {
    /* Numbers that layer() and finish() need beyond the residual, for `rows`
     * rows in all, `longest` of them in one sequence. */
    size_t (*values)(const struct decoder *d, int64_t rows, int64_t longest);
    /* One layer over all rows, x replaced. */
    int (*layer)(struct decoder_pass *p, int64_t layer, struct act *x,
                 struct err *err);
    /* The final norm: [rows, hidden], of the compute dtype. */
    int (*finish)(struct decoder_pass *p, const struct act *x, struct act *out,
                  struct err *err);
    /* The residual [rows, width] from embeddings [rows, hidden], when it is
     * wider; else NULL. */
    void (*spread)(struct decoder_pass *p, const struct act *embedded,
                   const struct act *x);
    /* The stages that layer() hands to decoder_tap(), in order: at most
     * DECODER_STAGES, their number returned. */
    size_t (*stages)(const struct decoder *d, int64_t layer,
                     struct decoder_stage *out);
    /* What the family allocated in its own struct; may be NULL. */
    void (*release)(struct decoder *d);
};
enum { DECODER_STAGES = 32 };

struct decoder {
    struct model model; /* first */
    const struct decoder_hooks *hooks;
    struct config *config;
    struct checkpoint *weights;
    int64_t vocab, hidden, width, layers; /* width: of the residual */
    bool is_tied;                         /* the head is the embedding */
};

struct decoder_pass {
    struct decoder *decoder;
    const struct forward_options *options;
    const struct sequence *sequences;
    int64_t count, rows; /* sequences, rows of all of them */
    const struct model_tap *tap;
    struct ops ops;
};

/* First row of sequence i among all rows. */
int64_t decoder_first(const struct decoder_pass *p, int64_t i);

/* The rows of sequence i. */
struct act decoder_rows(const struct decoder_pass *p, const struct act *x,
                        int64_t i);

/* A dense or a shared expert over all rows, a sequence at a time as upstream
 * calls it; e says its unit. */
struct act decoder_unit(struct decoder_pass *p, const struct act *x,
                        const struct expert *w, const struct experts *e);

/* The plain last step of a family: loads `part`, which describes the final
 * norm's weight and whose target is `norm`, releases it, and norms x into *out.
 */
int decoder_final_norm(struct decoder_pass *p, const struct act *x,
                       struct part *part, const struct param *norm, double eps,
                       struct act *out, struct err *err);

/* Hands a stage of a layer, all rows of all sequences, to the tap. */
int decoder_tap(const struct decoder_pass *p, int64_t layer, const char *name,
                const struct act *x, struct err *err);

/* The stages "experts" and "margin" of a layer: which experts each row took,
 * and by how much (models/moe.h).  In stages() they are DECODER_ROUTED_STAGES.
 */
struct routed;
int decoder_tap_routed(const struct decoder_pass *p, int64_t layer,
                       const struct routed *r, struct err *err);
#define DECODER_ROUTED_STAGES(chosen) \
    {"experts", chosen, true},        \
    {                                 \
        "margin", 1, true             \
    }

/* Checks embedding, head and whether anything is left over: the last step of a
 * family's open(), after its parts. */
int decoder_expect(struct decoder *d, struct err *err);

/* ---- the members of struct model_family ---- */
void decoder_close(struct model *m);
int64_t decoder_vocab(const struct model *m);
bool decoder_is_stop(const struct model *m, int64_t token);
int decoder_check(const struct model *m, const struct sequence *s,
                  struct err *err);
int decoder_stages(const struct model *m, const struct forward_options *o,
                   const struct sequence *s, stage_visitor *visit, void *ctx,
                   struct err *err);
int decoder_forward(struct model *m, const struct forward_options *o,
                    const struct sequence *s, int64_t count,
                    const struct model_tap *tap, struct err *err);
json_t *decoder_ledger(const struct model *m, struct err *err);

/* Generation is not offered: ERR_UNSUPPORTED. */
int decoder_begin(struct model *m, const struct forward_options *o,
                  const struct sequence *prompt, int64_t capacity,
                  const struct model_tap *tap, struct err *err);
int decoder_step(struct model *m, int64_t token, const struct model_tap *tap,
                 struct err *err);

#define DECODER_FAMILY_OF(type, open_function, sums_order)               \
    {                                                                    \
        .model_type = type, .is_text_only = true, .open = open_function, \
        .close = decoder_close, .vocab = decoder_vocab,                  \
        .is_stop = decoder_is_stop, .check = decoder_check,              \
        .stages = decoder_stages, .forward = decoder_forward,            \
        .begin = decoder_begin, .step = decoder_step,                    \
        .ledger = decoder_ledger, .sums = sums_order                     \
    }
#define DECODER_FAMILY(type, open_function) \
    DECODER_FAMILY_OF(type, open_function, SUMS_WRITTEN)
#endif
